/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast along a binomial tree, cut into chunks that follow one another down the tree.
 * Ranks are counted from the root: v hears from v without its lowest set bit and tells
 * v + 2^j for all 2^j below that bit, the largest subtree first. Here because it has the
 * fewest rounds for a short message and works for any n; a long message pays for the root
 * sending it log2 n times.
 * Cost: ceil(log2 n) * (a + m * b) for one chunk of m bytes; each further chunk adds what
 * the root needs to send it, ceil(log2 n) * m * b.
 * Source: the binomial tree of the textbooks, e.g. Kumar et al., "Introduction to
 * Parallel Computing", chapter 4.
 */
#include "config.h"

#include <errno.h>

#include "coll/algo/build.h"

/* Chunk in bytes: long enough to hide a message's start-up time at 10 GB/s. */
#define BROADCAST_GRANULE (256 * 1024)

static void sends_add(struct plan_builder *b, const struct plan_call *call,
		      struct plan_range from, struct plan_range at_peer, uint32_t recv,
		      bool has_recv)
{
	int64_t n = call->size;
	int64_t v = build_mod((int64_t)call->rank - call->root, n);
	int64_t dist = 1;

	while (dist < n && !(v & dist))
		dist *= 2;
	for (dist /= 2; dist >= 1; dist /= 2) {
		uint32_t send;

		if (v + dist >= n)
			continue;
		send = plan_add_send(b, (int32_t)build_mod((int64_t)call->rank + dist, n),
				     from, at_peer);
		plan_set_advance(b, send, 0, 1, 1, 0);
		if (has_recv)
			plan_add_dep_same(b, send, recv);
	}
}

int broadcast_binomial_build(const struct plan_call *call, struct plan **plan,
			     const char **why)
{
	bool root = call->rank == call->root, from_src = root && !call->in_place;
	int ret = build_check(call, 1, why);
	struct plan_builder *b;
	struct plan_range dst;
	uint32_t chunks;
	uint8_t part;

	if (ret)
		return ret;
	if (call->root < 0 || call->root >= call->size) {
		*why = "the root is no rank of the communicator";
		return -EINVAL;
	}
	b = plan_builder_open("broadcast/binomial", call);
	if (!call->count)
		return plan_builder_finish(b, plan, why);
	chunks = build_chunks(call, call->count, BROADCAST_GRANULE, 1);
	part = plan_add_balanced(b, call->count, chunks);
	dst = plan_run(PLAN_DST, part, 0, 1);
	if (call->size > 1) {
		plan_loop_begin(b, chunks);
		if (root) {
			sends_add(b, call,
				  plan_run(from_src ? PLAN_SRC : PLAN_DST, part, 0, 1),
				  dst, 0, false);
		} else {
			int64_t n = call->size;
			int64_t v = build_mod((int64_t)call->rank - call->root, n);
			int64_t parent = (v & (v - 1)) + call->root;
			uint32_t recv =
				plan_add_recv(b, (int32_t)build_mod(parent, n), dst);

			plan_set_advance(b, recv, 0, 1, 0, 0);
			sends_add(b, call, dst, dst, recv, true);
		}
		plan_loop_end(b);
	}
	if (from_src)
		plan_add_copy(b, plan_run(PLAN_DST, part, 0, chunks),
			      plan_run(PLAN_SRC, part, 0, chunks));
	return plan_builder_finish(b, plan, why);
}
