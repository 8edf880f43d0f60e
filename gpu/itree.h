/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of addresses that may overlap, and which of them meet or cover another one: a
 * search tree by start, in each node the furthest end below it. Nodes lie in the caller's
 * structs. Balanced by chance that depends on the address only (a treap), so that one
 * sequence of calls always gives one tree. No locks of its own.
 */
#ifndef WEFT_GPU_ITREE_H
#define WEFT_GPU_ITREE_H

#include <stdbool.h>
#include <stdint.h>

struct itree_node {
	struct itree_node *left, *right;
	uint64_t start, end; /* the range: [start, end), start < end; the caller's */
	uint64_t furthest;   /* end of any node from here down */
	uint64_t rank;
};

struct itree {
	struct itree_node *root;
};

/* Adds a node whose range is set. Equal ranges may be in it at once. */
void itree_add(struct itree *tree, struct itree_node *node);
/* Takes out one that is in it. */
void itree_take(struct itree *tree, struct itree_node *node);

/* The first, by start, that has an address in common with [start, end); NULL: none. With
 * `after`, the next one behind that. O(log n) each, where few overlap. */
struct itree_node *itree_meet(const struct itree *tree, uint64_t start, uint64_t end,
			      const struct itree_node *after);

/* One that has all of [start, end); NULL: none. */
struct itree_node *itree_cover(const struct itree *tree, uint64_t start, uint64_t end);

#endif
