/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gather along a binomial tree. Ranks are counted from the root: v collects the blocks of
 * the subtrees v + 1, v + 2, v + 4, ... below its lowest set bit in scratch behind its
 * own and passes all of them to v without that bit; at the root they arrive in DST, as a
 * run that may pass the end. Here because it has the fewest rounds: for short blocks.
 * Cost: ceil(log2 n) * a + (n - 1) * m * b for blocks of m bytes.
 * Source: the binomial tree of the textbooks, turned round (broadcast_binomial.c).
 */
#include "config.h"

#include "coll/algo/build.h"

struct tree {
	const struct plan_call *call;
	struct plan_builder *b;
	uint8_t own; /* SRC */
	uint8_t all; /* DST of the root */
};

/* Where `count` blocks from v's on are at v's parent or, at the root, in DST. */
static struct plan_range place_at(const struct tree *t, int64_t at, int64_t v,
				  int64_t count)
{
	const int64_t n = t->call->size, held = build_subtree(at, n);

	if (!at)
		return plan_run(PLAN_DST, t->all, build_mod(t->call->root + v, n),
				(uint32_t)count);
	return plan_run(
		PLAN_SCRATCH,
		plan_add_balanced(t->b, t->call->count * (uint64_t)held, (uint32_t)held),
		(uint32_t)(v - at), (uint32_t)count);
}

static void steps_add(struct tree *t)
{
	const struct plan_call *call = t->call;
	const int64_t n = call->size, v = build_from_root(call);
	const int64_t held = build_subtree(v, n), parent = v & (v - 1);
	struct plan_range from = plan_run(PLAN_SRC, t->own, 0, 1);
	uint32_t step[BUILD_LEVELS_MAX], steps = 0, send;

	for (int64_t dist = 1; dist < held; dist *= 2)
		step[steps++] = plan_add_recv(
			t->b, build_rank(call, call->root, v + dist),
			place_at(t, v, v + dist, build_subtree(v + dist, n)));
	if (held > 1 && !(v == 0 && call->in_place))
		step[steps++] = plan_add_copy(t->b, place_at(t, v, v, 1), from);
	if (v == 0)
		return;
	if (held > 1) {
		plan_need_scratch(t->b, call->count * (uint64_t)held);
		from = place_at(t, v, v, held);
	}
	send = plan_add_send(t->b, build_rank(call, call->root, parent), from,
			     place_at(t, parent, v, held));
	for (uint32_t i = 0; held > 1 && i < steps; i++)
		plan_add_dep_same(t->b, send, step[i]);
}

int gather_binomial_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct tree t = {.call = call};

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	t.b = plan_builder_open("gather/binomial", call);
	if (!call->count)
		return plan_builder_finish(t.b, plan, why);
	t.own = plan_add_balanced(t.b, call->count, 1);
	t.all = plan_add_balanced(t.b, call->count * (uint64_t)call->size,
				  (uint32_t)call->size);
	if (call->size > 1)
		steps_add(&t);
	else if (!call->in_place)
		plan_add_copy(t.b, plan_run(PLAN_DST, t.all, 0, 1),
			      plan_run(PLAN_SRC, t.own, 0, 1));
	return plan_builder_finish(t.b, plan, why);
}
