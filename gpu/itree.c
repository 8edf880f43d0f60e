/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/itree.h"

#include <stddef.h>

/* Nodes are ordered by start, and equal starts by where the node lies. */
static bool before(const struct itree_node *a, const struct itree_node *b)
{
	return a->start != b->start ? a->start < b->start : (uintptr_t)a < (uintptr_t)b;
}

/* Mixes the bits of an address: ranks of neighbours have nothing in common. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static void update(struct itree_node *n)
{
	n->furthest = n->end;
	if (n->left && n->left->furthest > n->furthest)
		n->furthest = n->left->furthest;
	if (n->right && n->right->furthest > n->furthest)
		n->furthest = n->right->furthest;
}

/* Nodes before `at` go left, the others right. */
static void split(struct itree_node *n, const struct itree_node *at,
		  struct itree_node **left, struct itree_node **right)
{
	if (!n) {
		*left = *right = NULL;
		return;
	}
	if (before(n, at)) {
		split(n->right, at, &n->right, right);
		*left = n;
	} else {
		split(n->left, at, left, &n->left);
		*right = n;
	}
	update(n);
}

static struct itree_node *join(struct itree_node *left, struct itree_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->rank > right->rank) {
		left->right = join(left->right, right);
		update(left);
		return left;
	}
	right->left = join(left, right->left);
	update(right);
	return right;
}

void itree_add(struct itree *tree, struct itree_node *node)
{
	struct itree_node *left, *right;

	node->left = node->right = NULL;
	node->rank = mix(node->start ^ mix(node->end));
	update(node);
	split(tree->root, node, &left, &right);
	tree->root = join(join(left, node), right);
}

static struct itree_node *without(struct itree_node *n, const struct itree_node *node)
{
	if (!n)
		return NULL;
	if (n == node)
		return join(n->left, n->right);
	if (before(node, n))
		n->left = without(n->left, node);
	else
		n->right = without(n->right, node);
	update(n);
	return n;
}

void itree_take(struct itree *tree, struct itree_node *node)
{
	tree->root = without(tree->root, node);
	node->left = node->right = NULL;
}

static struct itree_node *meet(struct itree_node *n, uint64_t start, uint64_t end,
			       const struct itree_node *after)
{
	struct itree_node *found = NULL;

	if (!n || n->furthest <= start)
		return NULL;
	if (!after || before(after, n)) {
		found = meet(n->left, start, end, after);
		if (found)
			return found;
		if (n->start < end && n->end > start)
			return n;
	}
	return n->start < end ? meet(n->right, start, end, after) : NULL;
}

struct itree_node *itree_meet(const struct itree *tree, uint64_t start, uint64_t end,
			      const struct itree_node *after)
{
	return meet(tree->root, start, end, after);
}

static struct itree_node *cover(struct itree_node *n, uint64_t start, uint64_t end)
{
	struct itree_node *found;

	if (!n || n->furthest < end)
		return NULL;
	if (n->start <= start && n->end >= end)
		return n;
	found = cover(n->left, start, end);
	if (found)
		return found;
	return n->start <= start ? cover(n->right, start, end) : NULL;
}

struct itree_node *itree_cover(const struct itree *tree, uint64_t start, uint64_t end)
{
	return cover(tree->root, start, end);
}
