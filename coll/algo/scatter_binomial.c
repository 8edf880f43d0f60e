/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter along a binomial tree. Ranks are counted from the root: v gets the blocks of
 * its subtree from v without its lowest set bit into scratch, passes those of the
 * subtrees v + 2^j below that bit on, the largest first, and keeps its own. The root
 * sends from SRC, runs that may pass the end. Here because it has the fewest rounds: for
 * short blocks. Cost: ceil(log2 n) * a + (n - 1) * m * b for blocks of m bytes. Source:
 * the binomial tree of the textbooks (broadcast_binomial.c).
 */
#include "config.h"

#include "coll/algo/build.h"

struct tree {
	const struct plan_call *call;
	struct plan_builder *b;
	uint8_t own; /* DST */
	uint8_t all; /* SRC of the root */
};

/* Where `count` blocks from v's on are at rank `at`: the root has all, a leaf its own. */
static struct plan_range place_at(const struct tree *t, int64_t at, int64_t v,
				  int64_t count)
{
	const int64_t n = t->call->size, held = build_subtree(at, n);

	if (!at)
		return plan_run(PLAN_SRC, t->all, build_mod(t->call->root + v, n),
				(uint32_t)count);
	if (held == 1)
		return plan_run(PLAN_DST, t->own, 0, 1);
	return plan_run(
		PLAN_SCRATCH,
		plan_add_balanced(t->b, t->call->count * (uint64_t)held, (uint32_t)held),
		(uint32_t)(v - at), (uint32_t)count);
}

static void steps_add(struct tree *t)
{
	const struct plan_call *call = t->call;
	const int64_t n = call->size, v = build_from_root(call);
	const int64_t held = build_subtree(v, n);
	int64_t dist = 1;
	uint32_t recv = 0;

	if (v)
		recv = plan_add_recv(t->b, build_rank(call, call->root, v & (v - 1)),
				     place_at(t, v, v, held));
	while (dist * 2 < held)
		dist *= 2;
	for (; held > 1 && dist >= 1; dist /= 2) {
		const int64_t below = build_subtree(v + dist, n);
		const uint32_t send =
			plan_add_send(t->b, build_rank(call, call->root, v + dist),
				      place_at(t, v, v + dist, below),
				      place_at(t, v + dist, v + dist, below));

		if (v)
			plan_add_dep_same(t->b, send, recv);
	}
	if (held > 1 && v) {
		plan_need_scratch(t->b, call->count * (uint64_t)held);
		plan_add_dep_same(t->b,
				  plan_add_copy(t->b, plan_run(PLAN_DST, t->own, 0, 1),
						place_at(t, v, v, 1)),
				  recv);
	} else if (!v && !call->in_place) {
		plan_add_copy(t->b, plan_run(PLAN_DST, t->own, 0, 1),
			      place_at(t, v, v, 1));
	}
}

int scatter_binomial_build(const struct plan_call *call, struct plan **plan,
			   const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct tree t = {.call = call};

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	t.b = plan_builder_open("scatter/binomial", call);
	if (!call->count)
		return plan_builder_finish(t.b, plan, why);
	t.own = plan_add_balanced(t.b, call->count, 1);
	t.all = plan_add_balanced(t.b, call->count * (uint64_t)call->size,
				  (uint32_t)call->size);
	steps_add(&t);
	return plan_builder_finish(t.b, plan, why);
}
