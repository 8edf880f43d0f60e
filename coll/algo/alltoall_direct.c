/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all by everybody sending each rank its block, straight from place to place. In
 * trip t a rank sends to the one t + 1 above it and hears from the one t + 1 below it, so
 * that nobody is everybody's target at once. So many sends as the algorithm has lanes are
 * on their way; the next starts when the oldest has gone and its counterpart has come.
 * "pairwise" has one: no rank and no link has more than one block to carry, which long
 * blocks want. "direct" has several: shorter ones, whose start-up times overlap.
 *
 * In place a block must have left before another takes its place. Then in round i rank r
 * exchanges with (i - r) mod n, which exchanges with r in the same round; what comes in
 * arrives in scratch of a block a lane and is copied when the block there has gone.
 * Cost: (n - 1) * (a + m * b) for blocks of m bytes; a divided by the lanes.
 * Source: pairwise exchange of the textbooks, as in Thakur, Rabenseifner, Gropp, 2005; a
 * bound on what is outstanding as in linear algorithms of several libraries.
 */
#include "config.h"

#include "coll/algo/build.h"

struct exchange {
	const struct plan_call *call;
	struct plan_builder *b;
	struct build_blocks src, dst;
	int64_t lanes;
};

static void apart_add(const struct exchange *x)
{
	const struct plan_call *call = x->call;
	const int64_t r = call->rank, n = call->size;
	uint32_t recv, send;

	plan_loop_begin(x->b, (uint32_t)(n - 1));
	recv = plan_add_recv(x->b, build_rank(call, r, -1),
			     build_block_run(PLAN_DST, x->dst, r - 1, 1, call->size));
	plan_set_advance(x->b, recv, -1, -x->dst.per, 0, 0);
	send = plan_add_send(
		x->b, build_rank(call, r, 1),
		build_block_run(PLAN_SRC, x->src, r + 1, 1, call->size),
		call->vector ? plan_anywhere()
			     : build_block_run(PLAN_DST, x->dst, r, 1, call->size));
	plan_set_advance(x->b, send, 1, 0, x->src.per, 0);
	plan_add_dep(x->b, send, send, (int32_t)-x->lanes, 1);
	plan_add_dep(x->b, send, recv, (int32_t)-x->lanes, 1);
	plan_loop_end(x->b);
	plan_add_copy(x->b, build_block_run(PLAN_DST, x->dst, r, 1, call->size),
		      build_block_run(PLAN_SRC, x->src, r, 1, call->size));
}

/* Rounds first to first + rounds - 1; `copy` is the step of the rounds 0 to before - 1.
 */
static uint32_t rounds_add(const struct exchange *x, uint8_t in, int64_t first,
			   int64_t rounds, int64_t before, uint32_t copied)
{
	const struct plan_call *call = x->call;
	const int64_t partner = build_mod(first - call->rank, call->size);
	/* The partner is in its round `first` as well. */
	const struct plan_range slot =
		plan_run(PLAN_SCRATCH, in, build_mod(first, x->lanes), 1);
	const struct plan_range place =
		build_block_run(PLAN_DST, x->dst, partner, 1, call->size);
	uint32_t recv, send, copy;

	plan_loop_begin(x->b, (uint32_t)rounds);
	recv = plan_add_recv(x->b, (int32_t)partner, slot);
	plan_set_advance(x->b, recv, 1, 1, 0, 0);
	send = plan_add_send(x->b, (int32_t)partner, place, slot);
	plan_set_advance(x->b, send, 1, 1, x->dst.per, 0);
	copy = plan_add_copy(x->b, place, slot);
	plan_set_advance(x->b, copy, 0, x->dst.per, 1, 0);
	plan_add_dep_same(x->b, copy, recv);
	plan_add_dep_same(x->b, copy, send);
	plan_add_dep(x->b, recv, copy, (int32_t)-x->lanes, 1);
	plan_add_dep(x->b, send, copy, (int32_t)-x->lanes, 1);
	if (before) {
		/* The round with ourselves is missing between: where a slot's turn before
		 * was that, the one before it counts. */
		for (int64_t turns = 1; turns <= 2; turns++) {
			const int32_t lag = (int32_t)(first - turns * x->lanes);

			plan_add_dep(x->b, recv, copied, lag, 1);
			plan_add_dep(x->b, send, copied, lag, 1);
		}
	}
	plan_loop_end(x->b);
	return copy;
}

static void in_place_add(const struct exchange *x)
{
	const struct plan_call *call = x->call;
	const int64_t n = call->size, self = build_mod(2 * (int64_t)call->rank, n);
	uint32_t copied = 0;
	uint8_t in;

	plan_need_scratch(x->b, call->count * (uint64_t)x->lanes);
	in = plan_add_balanced(x->b, call->count * (uint64_t)x->lanes,
			       (uint32_t)x->lanes);
	if (self)
		copied = rounds_add(x, in, 0, self, 0, 0);
	if (self + 1 < n)
		rounds_add(x, in, self + 1, n - 1 - self, self, copied);
}

static int exchange_build(const struct plan_call *call, const char *name, int64_t lanes,
			  struct plan **plan, const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct exchange x = {.call = call, .lanes = lanes};

	if (ret)
		return ret;
	x.b = plan_builder_open(name, call);
	if (build_is_empty(call))
		return plan_builder_finish(x.b, plan, why);
	if (x.lanes > call->size)
		x.lanes = call->size;
	x.src = build_send_blocks(x.b, call);
	x.dst = build_recv_blocks(x.b, call);
	if (call->in_place && call->size > 1)
		in_place_add(&x);
	else if (!call->in_place && call->size > 1)
		apart_add(&x);
	else if (!call->in_place)
		plan_add_copy(x.b, build_block_run(PLAN_DST, x.dst, 0, 1, 1),
			      build_block_run(PLAN_SRC, x.src, 0, 1, 1));
	return plan_builder_finish(x.b, plan, why);
}

int alltoall_pairwise_build(const struct plan_call *call, struct plan **plan,
			    const char **why)
{
	return exchange_build(call, "alltoall/pairwise", 1, plan, why);
}

int alltoall_direct_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	return exchange_build(call, "alltoall/direct", BUILD_LANES, plan, why);
}
