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
