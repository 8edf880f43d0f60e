/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast down trees, in chunks that follow one another.
 *
 * knomial: a rank tells up to three on each level, so there are half the levels of a
 * binomial tree: for short messages where starting a message costs its sender little.
 * Cost: log4 n * (a + 3 o + m b).
 *
 * double-tree: the two halves of the message go down two binary trees; who passes on in
 * one is a leaf of the other, so every rank sends and receives about the message once,
 * whatever n is, in 2 log2 n steps instead of a chain's n. Cost: 2 (log2 n + C) (a + m /
 * (2 C) b) in C chunks. Source: Sanders, Speck, Traff, "Two-tree algorithms for full
 * bandwidth broadcast, reduction and scan", 2009.
 *
 * hierarchical: a tree of nodes, one rank of each speaking for it, and a tree within each
 * node. A rank sends to other nodes first: while a chunk is on its way over the slow
 * links, the one before is handed round on the fast ones. For any split of the ranks.
 * Cost: log4 N (a + m b) between N nodes, and log4 s of what is cheaper within s ranks.
 */
#include "config.h"

#include "coll/algo/tree.h"

/* Chunk in bytes, as in broadcast_binomial.c; of each half where there are two trees. */
#define BROADCAST_TREE_GRANULE (256 * 1024)
#define BROADCAST_HALF_GRANULE (64 * 1024)

static int broadcast_build(const char *name, const struct plan_call *call,
			   const tree_shape *shapes, uint32_t trees, struct plan **plan,
			   const char **why)
{
	const bool root = call->rank == call->root, from_src = root && !call->in_place;
	int ret = build_check(call, 1, why);
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
			      trees > 1 ? BROADCAST_HALF_GRANULE : BROADCAST_TREE_GRANULE,
			      trees);
	part = plan_add_balanced(b, call->count, chunks * trees);
	if (call->size > 1)
		plan_loop_begin(b, chunks);
	for (uint32_t i = 0; call->size > 1 && i < trees; i++) {
		run[i] = (struct tree_run){.call = call,
					   .b = b,
					   .shape = shapes[i],
					   .part = part,
					   .first = i * chunks};
		tree_run_init(&run[i], false);
		tree_down(&run[i], from_src ? PLAN_SRC : PLAN_DST, NULL);
	}
	if (call->size > 1)
		plan_loop_end(b);
	if (from_src)
		plan_add_copy(b, plan_run(PLAN_DST, part, 0, chunks * trees),
			      plan_run(PLAN_SRC, part, 0, chunks * trees));
	return plan_builder_finish(b, plan, why);
}

int broadcast_knomial_build(const struct plan_call *call, struct plan **plan,
			    const char **why)
{
	static const tree_shape shape = tree_knomial;

	return broadcast_build("broadcast/knomial", call, &shape, 1, plan, why);
}

int broadcast_double_build(const struct plan_call *call, struct plan **plan,
			   const char **why)
{
	static const tree_shape shape[] = {tree_double_first, tree_double_second};

	return broadcast_build("broadcast/double-tree", call, shape, 2, plan, why);
}

int broadcast_nodes_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	static const tree_shape shape = tree_nodes;

	return broadcast_build("broadcast/hierarchical", call, &shape, 1, plan, why);
}
