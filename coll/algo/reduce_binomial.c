/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce along a binomial tree, cut into chunks that follow one another up the tree.
 * Ranks are counted from the root: v adds up what v + 1, v + 2, v + 4, ... below its
 * lowest set bit send, the smallest subtree first, and passes the sum to v without that
 * bit. Here because it has the fewest rounds for a short vector and works for any n.
 *
 * A child's chunks arrive in two slots of scratch of its own, so that one arrives while
 * the one before is added; sums are in two slots as well, at the root in DST.
 * Cost: ceil(log2 n) * (a + m * b + m * g) for one chunk of m bytes, g per byte reduced.
 * Source: the binomial tree of the textbooks, turned round (broadcast_binomial.c).
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk in bytes, as in allreduce_ring.c. */
#define REDUCE_GRANULE (128 * 1024)

#define TREE_SLOTS 2 /* one where there is one chunk */

struct tree {
	const struct plan_call *call;
	struct plan_builder *b;
	uint8_t part; /* the vector in chunks */
	uint32_t slots;
	uint64_t slots_len;    /* of the slots of one child, or of the sums */
	struct plan_range acc; /* where the sum of the first chunk is */
	uint32_t first;	       /* the REDUCE that begins it */
	bool root;
};

/* Where the chunks of the child at distance 2^j arrive, at its parent: behind the sums.
 */
static struct plan_range slot_of(const struct tree *t, uint32_t j)
{
	return plan_run(
		PLAN_SCRATCH,
		plan_add_folded_at(t->b, t->part, t->slots, (j + 1) * t->slots_len), 0,
		1);
}

/* Adds the children's chunks up; returns the last REDUCE. */
static uint32_t children_add(struct tree *t, int64_t v, uint32_t children)
{
	const struct plan_range own = plan_run(
		t->root && t->call->in_place ? PLAN_DST : PLAN_SRC, t->part, 0, 1);
	uint32_t reduce = 0;

	for (uint32_t j = 0; j < children; j++) {
		const struct plan_range in = slot_of(t, j);
		const uint32_t recv = plan_add_recv(
			t->b, build_rank(t->call, t->call->root, v + (INT64_C(1) << j)),
			in);
		const uint32_t before = reduce;

		plan_set_advance(t->b, recv, 0, 1, 0, 0);
		reduce = plan_add_reduce(t->b, t->acc, in, j ? t->acc : own);
		plan_set_advance(t->b, reduce, 0, 1, 1, 1);
		plan_add_dep_same(t->b, reduce, recv);
		plan_add_dep(t->b, recv, reduce, -(int32_t)t->slots, 1);
		if (j)
			plan_add_dep_same(t->b, reduce, before);
		else
			t->first = reduce;
	}
	return reduce;
}

static void steps_add(struct tree *t, uint32_t chunks)
{
	const struct plan_call *call = t->call;
	const int64_t v = build_from_root(call);
	uint32_t children = 0, up = 0, reduce, send;

	while ((INT64_C(1) << up) < call->size && !(v & INT64_C(1) << up))
		up++;
	while (children < up && v + (INT64_C(1) << children) < call->size)
		children++;
	if (children)
		plan_need_scratch(t->b, (children + 1) * t->slots_len);
	t->acc = plan_run(PLAN_DST, t->part, 0, 1);
	if (!t->root)
		t->acc = plan_run(PLAN_SCRATCH,
				  plan_add_folded_at(t->b, t->part, t->slots, 0), 0, 1);
	plan_loop_begin(t->b, chunks);
	reduce = children_add(t, v, children);
	if (!t->root) {
		const struct plan_range from =
			children ? t->acc : plan_run(PLAN_SRC, t->part, 0, 1);

		send = plan_add_send(t->b, build_rank(call, call->root, v & (v - 1)),
				     from, slot_of(t, up));
		plan_set_advance(t->b, send, 0, 1, 1, 0);
		if (children) {
			plan_add_dep_same(t->b, send, reduce);
			plan_add_dep(t->b, t->first, send, -(int32_t)t->slots, 1);
		}
	} else if (call->average) {
		plan_set_scale(t->b, reduce);
	}
	plan_loop_end(t->b);
}

int reduce_binomial_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	int ret = build_check(call, 64, why); /* children and their slots */
	struct tree t = {.call = call, .root = call->rank == call->root};
	uint32_t chunks;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	t.b = plan_builder_open("reduce/binomial", call);
	if (!call->count)
		return plan_builder_finish(t.b, plan, why);
	chunks = build_chunks(call, call->count, REDUCE_GRANULE, 1);
	t.slots = chunks < TREE_SLOTS ? 1 : TREE_SLOTS;
	t.part = plan_add_balanced(t.b, call->count, chunks);
	t.slots_len = t.slots * plan_longest(t.b, t.part);
	if (call->size > 1)
		steps_add(&t, chunks);
	else if (!call->in_place)
		plan_add_copy(t.b, plan_run(PLAN_DST, t.part, 0, chunks),
			      plan_run(PLAN_SRC, t.part, 0, chunks));
	return plan_builder_finish(t.b, plan, why);
}
