/* SPDX-License-Identifier: BSD-2-Clause */
/* See tree.h. */
#include "config.h"

#include "coll/algo/tree.h"

/* ---- nodes ----------------------------------------------------------------------- */

int32_t tree_node_count(const struct plan_call *call)
{
	return call->nodes ? call->nodes->count : 1;
}

int32_t tree_node_of(const struct plan_call *call, int32_t rank)
{
	return call->nodes ? call->nodes->of[rank] : 0;
}

int32_t tree_node_size(const struct plan_call *call, int32_t node)
{
	if (!call->nodes)
		return call->size;
	return call->nodes->first[node + 1] - call->nodes->first[node];
}

int32_t tree_node_member(const struct plan_call *call, int32_t node, int32_t index)
{
	return call->nodes ? call->nodes->member[call->nodes->first[node] + index]
			   : index;
}

int32_t tree_node_index(const struct plan_call *call, int32_t rank)
{
	return call->nodes ? call->nodes->index[rank] : rank;
}

/* ---- shapes ---------------------------------------------------------------------- */

/* The place of v in a k-nomial tree over 0 .. n - 1: its parent, or -1, and children. */
struct knomial {
	int64_t parent;
	uint32_t count;
	int64_t child[TREE_CHILDREN_MAX / 2];
};

static void knomial_of(int64_t v, int64_t n, struct knomial *k)
{
	k->parent = -1;
	k->count = 0;
	for (int64_t unit = 1; unit < n; unit *= TREE_RADIX) {
		const int64_t digit = v / unit % TREE_RADIX;

		if (digit) {
			k->parent = v - digit * unit;
			return;
		}
		for (int64_t d = 1; d < TREE_RADIX && v + d * unit < n; d++)
			k->child[k->count++] = v + d * unit;
	}
}

void tree_knomial(const struct plan_call *call, int32_t rank, struct tree *tree)
{
	struct knomial k;

	knomial_of(build_mod((int64_t)rank - call->root, call->size), call->size, &k);
	tree->parent = k.parent < 0 ? -1 : build_rank(call, call->root, k.parent);
	tree->count = tree->inside = k.count;
	for (uint32_t i = 0; i < k.count; i++)
		tree->child[i] = build_rank(call, call->root, k.child[i]);
}

/*
 * The binary tree over labels 1 .. n in order: what lies under the label with lowest bit
 * b is less than b away from it. Odd labels are leaves. What is above n is passed over:
 * instead of a child beyond the end comes the first of its left ones that is not.
 */
static int64_t binary_parent(int64_t label, int64_t n)
{
	for (;;) {
		const int64_t bit = label & -label;

		/* Up is the neighbour at `bit` whose own lowest bit is the next one. */
		label = (label & (bit << 1)) ? label - bit : label + bit;
		if (label <= n)
			return label;
		if (bit > n)
			return 0;
	}
}

static int64_t binary_right(int64_t label, int64_t n)
{
	for (int64_t bit = (label & -label) / 2; bit; bit /= 2) {
		if (label + bit <= n)
			return label + bit;
	}
	return 0;
}

/* The label of the tree's top: the only one without a parent. */
static int64_t binary_top(int64_t n)
{
	int64_t top = 1;

	while (top * 2 <= n)
		top *= 2;
	return top;
}

/* Distances from the root, 1 to n, and labels of the second tree: the first one's leaves,
 * which are odd, get even ones. (1 alone stays a leaf twice where n is odd.) */
static int64_t second_label(int64_t v, int64_t n)
{
	return n % 2 ? v % n + 1 : n + 1 - v;
}

static int64_t second_distance(int64_t label, int64_t n)
{
	return n % 2 ? (label == 1 ? n : label - 1) : n + 1 - label;
}

static void tree_double(const struct plan_call *call, int32_t rank, bool second,
			struct tree *tree)
{
	const int64_t n = (int64_t)call->size - 1;
	const int64_t v = build_mod((int64_t)rank - call->root, call->size);
	int64_t label = v, links[3] = {0, 0, 0}; /* up, down, down */

	tree->parent = -1;
	tree->count = 0;
	if (v && second)
		label = second_label(v, n);
	if (!v) {
		links[1] = n ? binary_top(n) : 0;
	} else {
		links[0] = label == binary_top(n) ? 0 : binary_parent(label, n);
		links[1] = label % 2 ? 0 : label - (label & -label) / 2;
		links[2] = binary_right(label, n);
	}
	for (int i = 0; i < 3; i++) {
		const int64_t at =
			links[i] && second ? second_distance(links[i], n) : links[i];

		if (i == 0 && v)
			tree->parent = build_rank(call, call->root, at);
		else if (i && at)
			tree->child[tree->count++] = build_rank(call, call->root, at);
	}
	tree->inside = tree->count;
}

void tree_double_first(const struct plan_call *call, int32_t rank, struct tree *tree)
{
	tree_double(call, rank, false, tree);
}

void tree_double_second(const struct plan_call *call, int32_t rank, struct tree *tree)
{
	tree_double(call, rank, true, tree);
}

/* Ranks of a node as its tree counts them: who speaks for it first. */
static int32_t member_at(const struct plan_call *call, int32_t node, int64_t at,
			 int32_t head)
{
	const int64_t lead = tree_node_index(call, head);

	if (at == 0)
		return head;
	return tree_node_member(call, node, (int32_t)(at - 1 < lead ? at - 1 : at));
}

static int64_t member_place(const struct plan_call *call, int32_t rank, int32_t head)
{
	const int32_t lead = tree_node_index(call, head),
		      at = tree_node_index(call, rank);

	if (rank == head)
		return 0;
	return at < lead ? (int64_t)at + 1 : at;
}

static void within(const struct plan_call *call, int32_t rank, int32_t head,
		   struct tree *tree)
{
	const int32_t node = tree_node_of(call, rank);
	struct knomial k;

	knomial_of(member_place(call, rank, head), tree_node_size(call, node), &k);
	tree->parent = k.parent < 0 ? -1 : member_at(call, node, k.parent, head);
	tree->count = tree->inside = k.count;
	for (uint32_t i = 0; i < k.count; i++)
		tree->child[i] = member_at(call, node, k.child[i], head);
}

void tree_within(const struct plan_call *call, int32_t rank, struct tree *tree)
{
	within(call, rank, tree_node_member(call, tree_node_of(call, rank), 0), tree);
}

static int32_t head_of(const struct plan_call *call, int32_t node)
{
	return node == tree_node_of(call, call->root) ? call->root
						      : tree_node_member(call, node, 0);
}

void tree_nodes(const struct plan_call *call, int32_t rank, struct tree *tree)
{
	const int64_t nodes = tree_node_count(call);
	const int32_t node = tree_node_of(call, rank), head = head_of(call, node);
	const int64_t from = tree_node_of(call, call->root);
	struct knomial k;

	within(call, rank, head, tree);
	if (rank != head)
		return;
	knomial_of(build_mod(node - from, nodes), nodes, &k);
	if (k.parent >= 0)
		tree->parent = head_of(call, (int32_t)build_mod(k.parent + from, nodes));
	for (uint32_t i = 0; i < k.count; i++)
		tree->child[tree->count++] =
			head_of(call, (int32_t)build_mod(k.child[i] + from, nodes));
}

/* ---- steps ----------------------------------------------------------------------- */

void tree_run_init(struct tree_run *t, bool up)
{
	t->shape(t->call, t->call->rank, &t->tree);
	t->slots_len = up ? t->slots * plan_longest(t->b, t->part) : 0;
	if (up && t->tree.count)
		plan_need_scratch(t->b, t->base + tree_scratch(t, t->tree.count));
}

uint64_t tree_scratch(const struct tree_run *t, uint32_t children)
{
	return ((uint64_t)children + 1) * t->slots_len;
}

struct plan_range tree_own(const struct tree_run *t)
{
	return plan_run(t->own, t->part, t->first, 1);
}

/* Slot 0 has the sums, slot i + 1 what comes from child i. */
static struct plan_range slot_of(const struct tree_run *t, uint32_t slot)
{
	return plan_run(PLAN_SCRATCH,
			plan_add_folded_at(t->b, t->part, t->slots,
					   t->base + slot * t->slots_len),
			t->first, 1);
}

static uint32_t place_at_parent(const struct tree_run *t)
{
	struct tree above;
	uint32_t place = 0;

	t->shape(t->call, t->tree.parent, &above);
	while (place + 1 < above.count && above.child[place] != t->call->rank)
		place++;
	return place;
}

static void children_add(struct tree_run *t, struct plan_range acc)
{
	for (uint32_t i = 0; i < t->tree.count; i++) {
		const struct plan_range in = slot_of(t, i + 1);
		const uint32_t recv = plan_add_recv(t->b, t->tree.child[i], in);
		const uint32_t reduce =
			plan_add_reduce(t->b, acc, in, i ? acc : tree_own(t));

		plan_set_advance(t->b, recv, 0, 1, 0, 0);
		plan_set_advance(t->b, reduce, 0, 1, 1, 1);
		plan_add_dep_same(t->b, reduce, recv);
		plan_add_dep(t->b, recv, reduce, -(int32_t)t->slots, 1);
		if (i)
			plan_add_dep_same(t->b, reduce, t->reduce[1]);
		else
			t->reduce[0] = reduce;
		t->reduce[1] = reduce;
		t->reduces = true;
	}
}

void tree_up(struct tree_run *t)
{
	const bool root = t->tree.parent < 0;
	struct plan_range acc = plan_run(PLAN_DST, t->part, t->first, 1);

	if (!root)
		acc = slot_of(t, 0);
	children_add(t, acc);
	if (root)
		return;
	t->send = plan_add_send(t->b, t->tree.parent, t->reduces ? acc : tree_own(t),
				slot_of(t, place_at_parent(t) + 1));
	t->sends = true;
	plan_set_advance(t->b, t->send, 0, 1, 1, 0);
	if (!t->reduces)
		return;
	plan_add_dep_same(t->b, t->send, t->reduce[1]);
	plan_add_dep(t->b, t->reduce[0], t->send, -(int32_t)t->slots, 1);
}

void tree_down(struct tree_run *t, enum plan_buf from, const uint32_t *after)
{
	const struct plan_range dst = plan_run(PLAN_DST, t->part, t->first, 1);
	const bool root = t->tree.parent < 0;
	struct plan_range held = dst;

	if (root) {
		held.buf = (uint8_t)from;
	} else {
		t->recv = plan_add_recv(t->b, t->tree.parent, dst);
		plan_set_advance(t->b, t->recv, 0, 1, 0, 0);
		if (t->keep)
			plan_add_dep_same(t->b, t->recv,
					  t->reduces ? t->reduce[0] : t->send);
		after = &t->recv;
	}
	for (uint32_t i = t->tree.count; i-- > 0;) {
		const uint32_t send = plan_add_send(t->b, t->tree.child[i], held, dst);

		plan_set_advance(t->b, send, 0, 1, 1, 0);
		if (after)
			plan_add_dep_same(t->b, send, *after);
	}
}
