/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees over the ranks, and the steps by which a vector goes up or down one in chunks:
 * what the tree algorithms share. A tree is asked for a rank at a time, since a rank must
 * know its parent's children to know its place among them.
 */
#ifndef WEFT_ALGO_TREE_H
#define WEFT_ALGO_TREE_H

#include "coll/algo/build.h"

#define TREE_RADIX	  4 /* of the k-nomial ones */
#define TREE_CHILDREN_MAX 96

struct tree {
	int32_t parent;	 /* rank; -1: the root */
	uint32_t count;	 /* of children */
	uint32_t inside; /* the first so many are on the rank's own node */
	int32_t child[TREE_CHILDREN_MAX]; /* ranks, the smallest subtree first */
};

typedef void (*tree_shape)(const struct plan_call *call, int32_t rank, struct tree *tree);

/* k-nomial, from the root on: v hears from v without its lowest digit to base k. */
void tree_knomial(const struct plan_call *call, int32_t rank, struct tree *tree);
/* Two binary trees under the root. Whoever passes on in one is a leaf of the other. */
void tree_double_first(const struct plan_call *call, int32_t rank, struct tree *tree);
void tree_double_second(const struct plan_call *call, int32_t rank, struct tree *tree);
/* A k-nomial tree of nodes, and one within each under the rank that speaks for it; the
 * root speaks for its own. */
void tree_nodes(const struct plan_call *call, int32_t rank, struct tree *tree);
/* Only the trees within the nodes: each has a root, its lowest rank. */
void tree_within(const struct plan_call *call, int32_t rank, struct tree *tree);

/* A vector on its way along one tree. The fields down to `base` are the caller's. */
struct tree_run {
	const struct plan_call *call;
	struct plan_builder *b;
	tree_shape shape;
	uint8_t part;	   /* partition: the vector in chunks... */
	uint32_t first;	   /* ...of which the first of this tree is that one */
	enum plan_buf own; /* where the caller's vector is */
	bool keep;	/* what comes down may not overwrite the caller's vector early */
	uint32_t slots; /* chunks that may arrive before the first is added */
	uint64_t base;	/* elements of scratch before ours; the same at all ranks */
	struct tree tree; /* of this rank: by tree_run_init() */
	uint64_t slots_len;
	bool reduces;
	uint32_t reduce[2]; /* the first and the last REDUCE of a chunk */
	bool sends;
	uint32_t send; /* up */
	uint32_t recv; /* down */
};

/* Asks for scratch too, where `up`. */
void tree_run_init(struct tree_run *t, bool up);

/* Elements of scratch of one that has at most so many children anywhere. */
uint64_t tree_scratch(const struct tree_run *t, uint32_t children);

/* The vector of this rank, first chunk: where the caller has it. */
struct plan_range tree_own(const struct tree_run *t);

/* In a loop over chunks: adds up what the children send and passes it on. */
void tree_up(struct tree_run *t);

/* The same downwards. At the root chunks are in `from`, once step `after` (NULL: at once)
 * is done. */
void tree_down(struct tree_run *t, enum plan_buf from, const uint32_t *after);

/* ---- nodes: of call->nodes, or all ranks on one ---- */

int32_t tree_node_count(const struct plan_call *call);
int32_t tree_node_of(const struct plan_call *call, int32_t rank);
int32_t tree_node_size(const struct plan_call *call, int32_t node);
/* A rank's place on its node, and who is at a place: ascending. */
int32_t tree_node_index(const struct plan_call *call, int32_t rank);
int32_t tree_node_member(const struct plan_call *call, int32_t node, int32_t index);

#endif
