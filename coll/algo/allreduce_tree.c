/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-reduce up and down two binary trees (broadcast_tree.c): each half of the vector
 * goes up one of them to rank 0, which has the result, and down again, chunk by chunk.
 * Here because every rank sends and receives about the vector twice, whatever n is, as in
 * a ring, but in 4 log2 n steps and not 2 n. A part is added up along one tree and
 * divided once: all ranks get the same bits. Cost: (4 log2 n + C) (a + m / (2 C) (b + g))
 * for m bytes in C chunks. Source: Sanders, Speck, Traff, 2009.
 */
#include "config.h"

#include "coll/algo/tree.h"

/* Chunk of each half, in bytes. */
#define ALLREDUCE_TREE_GRANULE (64 * 1024)

#define ALLREDUCE_TREE_SLOTS 2

enum { TREES = 2 };

static void steps_add(struct plan_builder *b, const struct plan_call *call, uint8_t part,
		      uint32_t chunks)
{
	static const tree_shape shape[TREES] = {tree_double_first, tree_double_second};
	struct tree_run run[TREES];

	for (uint32_t i = 0; i < TREES; i++) {
		run[i] = (struct tree_run){
			.call = call,
			.b = b,
			.shape = shape[i],
			.part = part,
			.first = i * chunks,
			.own = call->in_place ? PLAN_DST : PLAN_SRC,
			.keep = call->in_place,
			.slots = chunks < ALLREDUCE_TREE_SLOTS ? 1 : ALLREDUCE_TREE_SLOTS,
		};
		if (i)
			run[i].base = tree_scratch(&run[0], 2);
		tree_run_init(&run[i], true);
		tree_up(&run[i]);
		if (call->rank == 0 && call->average)
			plan_set_scale(b, run[i].reduce[1]);
	}
	for (uint32_t i = 0; i < TREES; i++)
		tree_down(&run[i], PLAN_DST, &run[i].reduce[1]);
}

int allreduce_double_build(const struct plan_call *call, struct plan **plan,
			   const char **why)
{
	int ret = build_check(call, 2 * TREE_CHILDREN_MAX, why);
	struct plan_call rooted = *call;
	struct plan_builder *b;
	uint32_t chunks;
	uint8_t part;

	if (ret)
		return ret;
	rooted.root = 0;
	b = plan_builder_open("allreduce/double-tree", call);
	if (!call->count)
		return plan_builder_finish(b, plan, why);
	chunks = build_chunks(call, (call->count + 1) / 2, ALLREDUCE_TREE_GRANULE, TREES);
	part = plan_add_balanced(b, call->count, chunks * TREES);
	if (call->size > 1) {
		plan_loop_begin(b, chunks);
		steps_add(b, &rooted, part, chunks);
		plan_loop_end(b);
	} else if (!call->in_place) {
		plan_add_copy(b, plan_run(PLAN_DST, part, 0, chunks * TREES),
			      plan_run(PLAN_SRC, part, 0, chunks * TREES));
	}
	return plan_builder_finish(b, plan, why);
}
