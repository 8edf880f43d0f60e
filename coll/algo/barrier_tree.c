/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barriers of empty messages up and down trees.
 *
 * hierarchical: a node's ranks tell the one that speaks for it, these go by dissemination
 * (barrier_dissemination.c), and it tells its node: only one rank of each node sends to
 * others. Cost: 2 log4 s a within a node of s ranks, and log2 N a between N nodes.
 *
 * recursive-doubling: partners at distances 1, 2, 4, ... tell each other. Each pair talks
 * both ways, which is one round trip on wires that carry both at once; where n is no
 * power of two the ranks beyond it tell a neighbour first and hear from it last. Cost:
 * log2 n a; two more where n is no power of two.
 */
#include "config.h"

#include "coll/algo/tree.h"

enum { ROUNDS_MAX = 33 };

struct signals {
	struct plan_builder *b;
	uint32_t recv[TREE_CHILDREN_MAX + ROUNDS_MAX]; /* so far: all are waited for */
	uint32_t count;
};

static void hear(struct signals *s, int32_t from)
{
	s->recv[s->count++] = plan_add_recv(s->b, from, plan_nothing());
}

/* After the first `heard` of what was to be heard. */
static void tell(struct signals *s, int32_t to, uint32_t heard)
{
	const uint32_t send = plan_add_send(s->b, to, plan_nothing(), plan_nothing());

	for (uint32_t i = 0; i < heard; i++)
		plan_add_dep_same(s->b, send, s->recv[i]);
}

static void between_add(struct signals *s, const struct plan_call *call)
{
	const int64_t nodes = tree_node_count(call);
	const int64_t node = tree_node_of(call, call->rank);

	for (int64_t dist = 1; dist < nodes; dist *= 2) {
		const uint32_t heard = s->count;

		hear(s,
		     tree_node_member(call, (int32_t)build_mod(node - dist, nodes), 0));
		tell(s, tree_node_member(call, (int32_t)build_mod(node + dist, nodes), 0),
		     heard);
	}
}

int barrier_nodes_build(const struct plan_call *call, struct plan **plan,
			const char **why)
{
	int ret = build_check(call, 0, why);
	struct signals s = {.count = 0};
	struct tree tree;

	if (ret)
		return ret;
	s.b = plan_builder_open("barrier/hierarchical", call);
	tree_within(call, call->rank, &tree);
	for (uint32_t i = 0; i < tree.count; i++)
		hear(&s, tree.child[i]);
	if (tree.parent < 0) {
		between_add(&s, call);
	} else {
		tell(&s, tree.parent, s.count);
		hear(&s, tree.parent);
	}
	for (uint32_t i = tree.count; i-- > 0;)
		tell(&s, tree.child[i], s.count);
	return plan_builder_finish(s.b, plan, why);
}

int barrier_doubling_build(const struct plan_call *call, struct plan **plan,
			   const char **why)
{
	int64_t power = 1, extra, id;
	int ret = build_check(call, 0, why);
	struct signals s = {.count = 0};
	bool folds;

	if (ret)
		return ret;
	s.b = plan_builder_open("barrier/recursive-doubling", call);
	while (power * 2 <= call->size)
		power *= 2;
	extra = call->size - power;
	folds = call->rank < 2 * extra;
	if (folds && call->rank % 2) {
		tell(&s, call->rank - 1, 0);
		hear(&s, call->rank - 1);
		return plan_builder_finish(s.b, plan, why);
	}
	if (folds)
		hear(&s, call->rank + 1);
	id = folds ? call->rank / 2 : call->rank - extra;
	for (int64_t dist = 1; dist < power; dist *= 2) {
		const int64_t other = id ^ dist;
		const int32_t peer = (int32_t)(other < extra ? 2 * other : other + extra);
		const uint32_t heard = s.count;

		hear(&s, peer);
		tell(&s, peer, heard);
	}
	if (folds)
		tell(&s, call->rank + 1, s.count);
	return plan_builder_finish(s.b, plan, why);
}
