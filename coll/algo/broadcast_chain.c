/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast along a chain, cut into chunks: every rank but the last passes each chunk on
 * to the next one, counted from the root. Here because a long message costs every rank
 * one send and one receive of it, whatever n is, where a tree costs its root log2 n.
 * Cost: (C + n - 2) * (a + m / C * b) for m bytes in C chunks.
 * Source: the pipeline of the textbooks.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk in bytes: the shorter, the sooner the last rank begins. */
#define CHAIN_GRANULE (128 * 1024)

int broadcast_chain_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	const bool root = call->rank == call->root, from_src = root && !call->in_place;
	int ret = build_check(call, 1, why);
	struct plan_builder *b;
	struct plan_range dst;
	uint32_t chunks, recv = 0, send;
	uint8_t part;
	int64_t v;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	b = plan_builder_open("broadcast/chain", call);
	if (!call->count)
		return plan_builder_finish(b, plan, why);
	v = build_from_root(call);
	chunks = build_chunks(call, call->count, CHAIN_GRANULE, 1);
	part = plan_add_balanced(b, call->count, chunks);
	dst = plan_run(PLAN_DST, part, 0, 1);
	if (call->size > 1)
		plan_loop_begin(b, chunks);
	if (!root) {
		recv = plan_add_recv(b, build_rank(call, call->rank, -1), dst);
		plan_set_advance(b, recv, 0, 1, 0, 0);
	}
	if (v + 1 < call->size) {
		send = plan_add_send(b, build_rank(call, call->rank, 1),
				     from_src ? plan_run(PLAN_SRC, part, 0, 1) : dst,
				     dst);
		plan_set_advance(b, send, 0, 1, 1, 0);
		if (!root)
			plan_add_dep_same(b, send, recv);
	}
	if (call->size > 1)
		plan_loop_end(b);
	if (from_src)
		plan_add_copy(b, plan_run(PLAN_DST, part, 0, chunks),
			      plan_run(PLAN_SRC, part, 0, chunks));
	return plan_builder_finish(b, plan, why);
}
