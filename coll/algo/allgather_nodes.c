/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gather over nodes: the j-th ranks of all nodes pass the j-th blocks on round a ring
 * of nodes, and whoever got one from another node hands it to the other ranks of its own.
 * Here because each block crosses to a node once, over as many links at a time as a node
 * has ranks, and is handed round while the next one is on its way. Where a node has fewer
 * ranks, they take more than one of another's blocks. No receive depends on anything.
 * Cost: N - 1 steps of a + m b between N nodes, each with s - 1 of what is cheaper within
 * the s ranks of one.
 * Source: ring and hand-out as in "Collective Communication for 100k+ GPUs", 2025, in
 * words.
 *
 * Where all nodes have as many ranks, one after another, steps repeat and are a loop.
 * Else there is a step for each block: for so many ranks at most.
 *
 * Step h of the ring and block j of a node are done in the same order by all, sender and
 * receiver alike, so that nobody waits for what lies behind its window.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "coll/algo/tree.h"

#define ALLGATHER_NODES_ANY  512 /* ranks, where the split is uneven */
#define ALLGATHER_NODES_SIZE 64	 /* ranks of a node */

struct ring {
	const struct plan_call *call;
	struct plan_builder *b;
	uint8_t part; /* DST: n blocks */
	uint8_t own;  /* SRC: one */
	int32_t nodes, node, index;
	int32_t most;	   /* ranks of a node */
	uint32_t *arrived; /* uneven, by block: its RECV, where this rank took it in */
	uint32_t before;   /* the last of them */
	bool looped;	   /* steps repeat... */
	int32_t advance;   /* ...so many blocks on */
};

static bool even_split(const struct plan_call *call)
{
	return !call->nodes || call->nodes->even;
}

/* Ranks of the largest node. */
static int32_t node_most(const struct plan_call *call)
{
	return call->nodes ? call->nodes->most : call->size;
}

bool allgather_nodes_can(const struct plan_call *call)
{
	if (call->size < 1)
		return false;
	if (node_most(call) > ALLGATHER_NODES_SIZE)
		return false;
	return call->size <= ALLGATHER_NODES_ANY || even_split(call);
}

/* Where block `index` of any node comes in at a node. */
static int32_t entry_of(const struct ring *r, int32_t node, int32_t index)
{
	return tree_node_member(r->call, node, index % tree_node_size(r->call, node));
}

static struct plan_range block_at(const struct ring *r, int32_t rank)
{
	return plan_run(PLAN_DST, r->part, (uint32_t)rank, 1);
}

static uint32_t recv_add(const struct ring *r, int32_t from, int32_t block)
{
	const uint32_t recv = plan_add_recv(r->b, from, block_at(r, block));

	plan_set_advance(r->b, recv, 0, r->advance, 0, 0);
	return recv;
}

/* The own block may still be in SRC only. */
static uint32_t send_add(const struct ring *r, int32_t to, int32_t block)
{
	const struct plan_range at = block_at(r, block);
	const bool from_src = block == r->call->rank && !r->call->in_place;
	const uint32_t send = plan_add_send(
		r->b, to, from_src ? plan_run(PLAN_SRC, r->own, 0, 1) : at, at);

	plan_set_advance(r->b, send, 0, r->advance, from_src ? 0 : r->advance, 0);
	return send;
}

static void hand_round(const struct ring *r, int32_t block, const uint32_t *recv)
{
	const int32_t size = tree_node_size(r->call, r->node);

	for (int32_t i = 1; i < size; i++) {
		const int32_t to =
			tree_node_member(r->call, r->node, (r->index + i) % size);
		const uint32_t send = send_add(r, to, block);

		if (recv)
			plan_add_dep_same(r->b, send, *recv);
	}
}

static int32_t node_at(const struct ring *r, int64_t distance)
{
	return (int32_t)build_mod(r->node + distance, r->nodes);
}

/* To the entry of the next node, what came a step ago. */
static uint32_t pass_on(struct ring *r, int32_t hop, int32_t j)
{
	const int32_t block = tree_node_member(r->call, node_at(r, 1 - (int64_t)hop), j);
	const uint32_t send = send_add(r, entry_of(r, node_at(r, 1), j), block);

	if (r->looped) /* in the first trip it came before the loop */
		plan_add_dep(r->b, send, r->before, 0, 1);
	else if (hop > 1 && r->arrived)
		plan_add_dep_same(r->b, send, r->arrived[block]);
	return send;
}

/* From the entry of the node before, or the own block; handed round. */
static void take_in(struct ring *r, int32_t hop, int32_t j, const uint32_t *passed)
{
	const int32_t block = tree_node_member(r->call, node_at(r, -(int64_t)hop), j);
	uint32_t recv;

	if (!hop) {
		hand_round(r, block, NULL);
		return;
	}
	recv = recv_add(r, entry_of(r, node_at(r, -1), j), block);
	if (r->looped)
		plan_add_dep(r->b, *passed, recv, -1, 1);
	r->before = recv;
	if (r->arrived)
		r->arrived[block] = recv;
	hand_round(r, block, &recv);
}

/* One step of the ring. */
static void hop_add(struct ring *r, int32_t hop)
{
	const struct plan_call *call = r->call;
	const int32_t passed_from = node_at(r, 1 - (int64_t)hop);
	const int32_t from = node_at(r, -(int64_t)hop);

	for (int32_t j = 0; j < r->most; j++) {
		const int32_t entry = entry_of(r, r->node, j);
		uint32_t passed = 0;

		if (hop && entry == call->rank && j < tree_node_size(call, passed_from))
			passed = pass_on(r, hop, j);
		if (j >= tree_node_size(call, from))
			continue;
		if (entry == call->rank)
			take_in(r, hop, j, &passed);
		else
			recv_add(r, entry, tree_node_member(call, from, j));
	}
}

static void hops_add(struct ring *r)
{
	const struct plan_call *call = r->call;

	hop_add(r, 0);
	if (!even_split(call)) {
		for (int32_t hop = 1; hop < r->nodes; hop++)
			hop_add(r, hop);
		return;
	}
	if (r->nodes > 1)
		hop_add(r, 1);
	if (r->nodes < 3)
		return;
	r->looped = true;
	r->advance = -tree_node_size(call, 0);
	plan_loop_begin(r->b, (uint32_t)r->nodes - 2);
	hop_add(r, 2);
	plan_loop_end(r->b);
}

int allgather_nodes_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct ring r = {.call = call};

	if (ret)
		return ret;
	if (!allgather_nodes_can(call)) {
		*why = "nodes of too many ranks, or too many ranks in uneven ones";
		return -EINVAL;
	}
	if (!even_split(call)) {
		r.arrived = calloc((size_t)call->size, sizeof(*r.arrived));
		if (!r.arrived)
			return -ENOMEM;
	}
	r.b = plan_builder_open("allgather/hierarchical", call);
	if (!call->count) {
		free(r.arrived);
		return plan_builder_finish(r.b, plan, why);
	}
	r.part = plan_add_balanced(r.b, call->count * (uint64_t)call->size,
				   (uint32_t)call->size);
	r.own = plan_add_balanced(r.b, call->count, 1);
	r.nodes = tree_node_count(call);
	r.node = tree_node_of(call, call->rank);
	r.index = tree_node_index(call, call->rank);
	r.most = node_most(call);
	hops_add(&r);
	free(r.arrived);
	if (!call->in_place)
		plan_add_copy(r.b, block_at(&r, call->rank),
			      plan_run(PLAN_SRC, r.own, 0, 1));
	return plan_builder_finish(r.b, plan, why);
}
