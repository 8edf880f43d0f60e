/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gather of blocks of any lengths around a ring: in trip t a rank passes on the block
 * of rank - t and gets that of rank - t - 1, as allgather_ring.c does, but whole: blocks
 * differ, and may be known only when the call starts. Here because every rank talks to
 * one neighbour only, at full bandwidth. Cost: (n - 1) * (a + m * b) where m is the
 * longest block, in bytes. Source: the ring of the textbooks; Thakur, Rabenseifner,
 * Gropp, 2005.
 */
#include "config.h"

#include "coll/algo/build.h"

struct ring {
	const struct plan_call *call;
	struct plan_builder *b;
	struct build_blocks blocks; /* of DST */
	uint8_t own;
	int32_t left, right;
};

static struct plan_range block(const struct ring *r, int64_t of)
{
	return build_block_run(PLAN_DST, r->blocks, of, 1, r->call->size);
}

/* Trips `start` on; returns the RECV. */
static uint32_t trips_add(const struct ring *r, int64_t start, int64_t trips,
			  uint32_t before)
{
	const struct plan_call *call = r->call;
	const int32_t down = -r->blocks.per;
	const bool src = !start && !call->in_place;
	uint32_t recv, send;

	plan_loop_begin(r->b, (uint32_t)trips);
	recv = plan_add_recv(r->b, r->left, block(r, call->rank - 1 - start));
	plan_set_advance(r->b, recv, 0, down, 0, 0);
	send = plan_add_send(r->b, r->right,
			     src ? plan_run(PLAN_SRC, r->own, 0, 1)
				 : block(r, call->rank - start),
			     plan_anywhere());
	plan_set_advance(r->b, send, 0, 0, src ? 0 : down, 0);
	if (start) {
		plan_add_dep(r->b, send, recv, -1, 1);
		plan_add_dep(r->b, send, before, 0, 1);
	}
	plan_loop_end(r->b);
	return recv;
}

int allgatherv_ring_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct ring r = {.call = call};

	if (ret)
		return ret;
	r.b = plan_builder_open("allgatherv/ring", call);
	if (build_is_empty(call))
		return plan_builder_finish(r.b, plan, why);
	r.left = build_rank(call, call->rank, -1);
	r.right = build_rank(call, call->rank, 1);
	r.blocks = build_recv_blocks(r.b, call);
	r.own = build_own_block(r.b, call, false, call->rank);
	if (call->size > 1) {
		const uint32_t first = trips_add(&r, 0, 1, 0);

		if (call->size > 2)
			trips_add(&r, 1, call->size - 2, first);
	}
	if (!call->in_place)
		plan_add_copy(r.b, block(&r, call->rank),
			      plan_run(PLAN_SRC, r.own, 0, 1));
	return plan_builder_finish(r.b, plan, why);
}
