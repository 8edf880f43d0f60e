/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast by the root to every other rank itself. Here because nobody waits for anybody
 * but the root: for few ranks that is faster than the rounds of a tree where a send costs
 * the root little, as a short message does, or a long one that its receivers fetch, all
 * at the same time.
 * Cost: (n - 1) * o + a + m * b, o what the root needs to start a send; where the root
 * moves the bytes (n - 1) * (o + m * b) + a. m bytes.
 */
#include "config.h"

#include <errno.h>

#include "coll/algo/build.h"

/* Pairs in bytes: short enough to be fetched whatever the message (the executor's limit
 * is twice that), long enough to hide what each costs. */
#define FLAT_GRANULE (512 * 1024)

static void root_add(struct plan_builder *b, const struct plan_call *call, uint8_t part,
		     uint32_t chunks)
{
	const enum plan_buf own = call->in_place ? PLAN_DST : PLAN_SRC;

	plan_loop_begin(b, chunks);
	for (int32_t i = 1; i < call->size; i++) {
		const int32_t peer =
			(int32_t)build_mod((int64_t)call->rank + i, call->size);
		const uint32_t send = plan_add_send(b, peer, plan_run(own, part, 0, 1),
						    plan_run(PLAN_DST, part, 0, 1));

		plan_set_advance(b, send, 0, 1, 1, 0);
	}
	plan_loop_end(b);
}

static void other_add(struct plan_builder *b, const struct plan_call *call, uint8_t part,
		      uint32_t chunks)
{
	uint32_t recv;

	plan_loop_begin(b, chunks);
	recv = plan_add_recv(b, call->root, plan_run(PLAN_DST, part, 0, 1));
	plan_set_advance(b, recv, 0, 1, 0, 0);
	plan_loop_end(b);
}

int broadcast_flat_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	const bool root = call->rank == call->root;
	int ret = build_check(call, 1, why);
	struct plan_builder *b;
	uint32_t chunks;
	uint8_t part;

	if (ret)
		return ret;
	if (call->size > BUILD_FLAT_RANKS) {
		*why = "too many ranks for one to talk to them all";
		return -EINVAL;
	}
	if (call->root < 0 || call->root >= call->size) {
		*why = "the root is no rank of the communicator";
		return -EINVAL;
	}
	b = plan_builder_open("broadcast/flat", call);
	if (!call->count)
		return plan_builder_finish(b, plan, why);
	chunks = build_chunks(call, call->count, FLAT_GRANULE, 1);
	part = plan_add_balanced(b, call->count, chunks);
	if (call->size > 1 && root)
		root_add(b, call, part, chunks);
	else if (call->size > 1)
		other_add(b, call, part, chunks);
	if (root && !call->in_place)
		plan_add_copy(b, plan_run(PLAN_DST, part, 0, chunks),
			      plan_run(PLAN_SRC, part, 0, chunks));
	return plan_builder_finish(b, plan, why);
}
