/* SPDX-License-Identifier: BSD-2-Clause */
/* See build.h. */
#include "config.h"

#include <errno.h>

#include "coll/algo/build.h"

/* Parts of one partition at most: advances and trips must fit 32 bits with a sign. */
#define BUILD_PARTS_MAX (UINT32_C(1) << 30)

int build_check(const struct plan_call *call, uint64_t blocks, const char **why)
{
	uint64_t all;

	*why = NULL;
	if (call->size < 1 || call->rank < 0 || call->rank >= call->size)
		*why = "the rank is not in the communicator";
	else if (blocks && !call->elem_size)
		*why = "the element size is 0";
	else if (__builtin_mul_overflow(call->count, blocks, &all) ||
		 __builtin_mul_overflow(all, (uint64_t)call->elem_size, &all))
		*why = "the buffer is longer than 64 bits can say";
	else if ((uint32_t)call->size > BUILD_PARTS_MAX)
		*why = "more ranks than a plan can number";
	return *why ? -EINVAL : 0;
}

uint32_t build_chunks(const struct plan_call *call, uint64_t block, uint64_t granule,
		      uint32_t blocks)
{
	uint64_t bytes = call->chunk_bytes ? call->chunk_bytes : granule;
	uint64_t elements = bytes / call->elem_size;
	uint64_t most = BUILD_PARTS_MAX / blocks;
	uint64_t chunks;

	if (!elements)
		elements = 1;
	chunks = block / elements + (block % elements != 0);
	if (chunks > most)
		chunks = most;
	return chunks ? (uint32_t)chunks : 1;
}

int build_check_root(const struct plan_call *call, const char **why)
{
	if (call->root >= 0 && call->root < call->size)
		return 0;
	*why = "the root is no rank of the communicator";
	return -EINVAL;
}

static struct build_blocks blocks_of(struct plan_builder *b, const struct plan_call *call,
				     bool send)
{
	const uint32_t n = (uint32_t)call->size;

	if (!call->vector)
		return (struct build_blocks){plan_add_balanced(b, call->count * n, n), 1};
	if (call->tables)
		return (struct build_blocks){
			plan_add_table(b,
				       (send ? call->tables->send
					     : call->tables->recv)[call->rank],
				       2 * n),
			2};
	return (struct build_blocks){
		plan_add_late_table(b, send ? PLAN_TABLE_SEND : PLAN_TABLE_RECV,
				    call->count, 2 * n),
		2};
}

struct build_blocks build_send_blocks(struct plan_builder *b,
				      const struct plan_call *call)
{
	return blocks_of(b, call, true);
}

struct build_blocks build_recv_blocks(struct plan_builder *b,
				      const struct plan_call *call)
{
	return blocks_of(b, call, false);
}

uint8_t build_own_block(struct plan_builder *b, const struct plan_call *call, bool send,
			int32_t of)
{
	const uint64_t *at;

	if (!call->vector)
		return plan_add_balanced(b, call->count, 1);
	if (!call->tables)
		return plan_add_late_table(b, PLAN_TABLE_OWN, call->count, 1);
	at = (send ? call->tables->send : call->tables->recv)[of];
	return plan_add_balanced(b, at[2 * call->rank + 1] - at[2 * call->rank], 1);
}

struct plan_range build_block_run(enum plan_buf buf, struct build_blocks blocks,
				  int64_t first, int64_t count, int32_t size)
{
	const uint32_t at = build_mod(first, size) * blocks.per;

	if (blocks.per == 1)
		return plan_run(buf, blocks.part, at, (uint32_t)count);
	return (struct plan_range){.buf = (uint8_t)buf,
				   .part = blocks.part,
				   .first = at,
				   .block = 1,
				   .stride = blocks.per,
				   .count = (uint32_t)count};
}

int64_t build_subtree(int64_t v, int64_t n)
{
	const int64_t most = v ? v & -v : n;

	return most < n - v ? most : n - v;
}
