/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce up trees, in chunks that follow one another: the trees of broadcast_tree.c
 * turned round, and costs as there with g per byte added. Children arrive in slots of
 * scratch of their own, as in reduce_binomial.c.
 *
 * The two binary trees share the work of adding: a rank adds one half of the vector from
 * two children, and only passes on its part of the other half.
 */
#include "config.h"

#include "coll/algo/tree.h"

/* Chunk in bytes, as in reduce_binomial.c; of each half where there are two trees. */
#define REDUCE_TREE_GRANULE (128 * 1024)
#define REDUCE_HALF_GRANULE (64 * 1024)

#define REDUCE_TREE_SLOTS 2

static void runs_add(struct tree_run *run, uint32_t trees)
{
	const struct plan_call *call = run->call;

	for (uint32_t i = 0; i < trees; i++) {
		/* Of two trees the second begins behind the most that the first takes. */
		if (i)
			run[i].base = tree_scratch(&run[0], 2);
		tree_run_init(&run[i], true);
		tree_up(&run[i]);
		if (call->rank == call->root && call->average)
			plan_set_scale(run[i].b, run[i].reduce[1]);
	}
}

static int reduce_build(const char *name, const struct plan_call *call,
			const tree_shape *shapes, uint32_t trees, struct plan **plan,
			const char **why)
{
	const bool root = call->rank == call->root;
	int ret = build_check(call, 2 * TREE_CHILDREN_MAX, why);
	struct tree_run run[2];
	struct plan_builder *b;
	uint32_t chunks;
	uint8_t part;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	b = plan_builder_open(name, call);
	if (!call->count)
		return plan_builder_finish(b, plan, why);
	chunks = build_chunks(call, (call->count + trees - 1) / trees,
			      trees > 1 ? REDUCE_HALF_GRANULE : REDUCE_TREE_GRANULE,
			      trees);
	part = plan_add_balanced(b, call->count, chunks * trees);
	if (call->size == 1) {
		if (!call->in_place)
			plan_add_copy(b, plan_run(PLAN_DST, part, 0, chunks * trees),
				      plan_run(PLAN_SRC, part, 0, chunks * trees));
		return plan_builder_finish(b, plan, why);
	}
	for (uint32_t i = 0; i < trees; i++)
		run[i] = (struct tree_run){
			.call = call,
			.b = b,
			.shape = shapes[i],
			.part = part,
			.first = i * chunks,
			.own = root && call->in_place ? PLAN_DST : PLAN_SRC,
			.slots = chunks < REDUCE_TREE_SLOTS ? 1 : REDUCE_TREE_SLOTS};
	plan_loop_begin(b, chunks);
	runs_add(run, trees);
	plan_loop_end(b);
	return plan_builder_finish(b, plan, why);
}

int reduce_knomial_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	static const tree_shape shape = tree_knomial;

	return reduce_build("reduce/knomial", call, &shape, 1, plan, why);
}

int reduce_double_build(const struct plan_call *call, struct plan **plan,
			const char **why)
{
	static const tree_shape shape[] = {tree_double_first, tree_double_second};

	return reduce_build("reduce/double-tree", call, shape, 2, plan, why);
}

int reduce_nodes_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	static const tree_shape shape = tree_nodes;

	return reduce_build("reduce/hierarchical", call, &shape, 1, plan, why);
}
