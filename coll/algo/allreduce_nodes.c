/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-reduce in three stages, for any split of the ranks into nodes: each node adds up
 * along a tree to its lowest rank, these ranks double as in allreduce_doubling.c, and the
 * result goes down the tree again. Chunks follow one another through all stages. Here
 * because between nodes only one rank of each talks, log2 N times for N nodes, and what
 * is within a node stays there. The lower nodes' sums are the first operand, so that all
 * ranks get the same bits.
 * Cost: 2 log4 s (a + m (b + g)) within s ranks of a node, and log2 N (a + m b + m g)
 * between N nodes; two more where N is no power of two.
 */
#include "config.h"

#include "coll/algo/tree.h"

#define ALLREDUCE_NODES_GRANULE (64 * 1024)

/* A slot for each of so many chunks, in the tree and for each round between nodes. */
#define ALLREDUCE_NODES_SLOTS 2

struct nodes_run {
	const struct plan_call *call;
	struct plan_builder *b;
	struct tree_run tree;
	uint32_t fold;	 /* 1: the number of nodes is no power of two */
	uint32_t rounds; /* with the folding */
	uint64_t slots_len;
	struct plan_range acc; /* where the first chunk's sum is */
	bool written;
	uint32_t writer; /* the step that wrote it */
};

static struct plan_range slot_of(const struct nodes_run *r, uint32_t round)
{
	return plan_run(PLAN_SCRATCH,
			plan_add_folded_at(r->b, r->tree.part, r->tree.slots,
					   round * r->slots_len),
			0, 1);
}

static uint32_t send_add(struct nodes_run *r, int32_t peer, struct plan_range at_peer)
{
	const uint32_t send = plan_add_send(r->b, peer, r->acc, at_peer);

	plan_set_advance(r->b, send, 0, 1, 1, 0);
	if (r->written)
		plan_add_dep_same(r->b, send, r->writer);
	return send;
}

/* Takes what comes in a round to the sum; `send` reads the sum meanwhile. */
static void take_add(struct nodes_run *r, uint32_t recv, struct plan_range in,
		     bool own_first, const uint32_t *send)
{
	const struct plan_range dst = plan_run(PLAN_DST, r->tree.part, 0, 1);
	const uint32_t reduce = plan_add_reduce(r->b, dst, own_first ? r->acc : in,
						own_first ? in : r->acc);

	plan_set_advance(r->b, reduce, 0, 1, 1, 1);
	plan_add_dep_same(r->b, reduce, recv);
	if (r->written)
		plan_add_dep_same(r->b, reduce, r->writer);
	if (send && r->acc.buf == PLAN_DST)
		plan_add_dep_same(r->b, reduce, *send);
	plan_add_dep(r->b, recv, reduce, -(int32_t)r->tree.slots, 1);
	r->acc = dst;
	r->written = true;
	r->writer = reduce;
}

static uint32_t recv_add(struct nodes_run *r, int32_t peer, struct plan_range place)
{
	const uint32_t recv = plan_add_recv(r->b, peer, place);

	plan_set_advance(r->b, recv, 0, 1, 0, 0);
	return recv;
}

/* The rank that speaks for the node with that number among those that go on. */
static int32_t head_of(const struct nodes_run *r, int64_t id, int64_t extra)
{
	return tree_node_member(r->call, (int32_t)(id < extra ? 2 * id : id + extra), 0);
}

/* The node gives its sum to the one before it, and gets the result. */
static void folded_add(struct nodes_run *r, int32_t node)
{
	const int32_t peer = tree_node_member(r->call, node - 1, 0);
	const struct plan_range dst = plan_run(PLAN_DST, r->tree.part, 0, 1);
	const uint32_t send = send_add(r, peer, slot_of(r, 0));
	const uint32_t recv = recv_add(r, peer, dst);

	if (r->acc.buf == PLAN_DST)
		plan_add_dep_same(r->b, recv, send);
	r->written = true;
	r->writer = recv;
}

static void doubling_add(struct nodes_run *r, int32_t node, int64_t extra, int64_t power)
{
	const bool folds = node < 2 * extra;
	const int64_t id = folds ? node / 2 : node - extra;
	const int32_t partner = folds ? tree_node_member(r->call, node + 1, 0) : -1;
	uint32_t round = r->fold, recv;

	if (folds) {
		const struct plan_range in = slot_of(r, 0);

		recv = recv_add(r, partner, in);
		take_add(r, recv, in, true, NULL);
	}
	for (int64_t dist = 1; dist < power; dist *= 2, round++) {
		const int64_t other = id ^ dist;
		const int32_t peer = head_of(r, other, extra);
		const struct plan_range in = slot_of(r, round);
		uint32_t send;

		recv = recv_add(r, peer, in);
		send = send_add(r, peer, in);
		take_add(r, recv, in, id < other, &send);
	}
	if (r->call->average)
		plan_set_scale(r->b, r->writer);
	if (folds)
		send_add(r, partner, r->acc);
}

static void between_add(struct nodes_run *r)
{
	const int32_t node = tree_node_of(r->call, r->call->rank);
	const int64_t nodes = tree_node_count(r->call);
	int64_t power = 1, extra;

	while (power * 2 <= nodes)
		power *= 2;
	extra = nodes - power;
	r->acc = tree_own(&r->tree);
	if (r->tree.reduces) {
		r->acc = plan_run(PLAN_DST, r->tree.part, 0, 1);
		r->written = true;
		r->writer = r->tree.reduce[1];
	}
	if (nodes == 1) {
		if (r->call->average)
			plan_set_scale(r->b, r->writer);
		return;
	}
	plan_need_scratch(r->b, r->rounds * r->slots_len);
	if (node < 2 * extra && node % 2)
		folded_add(r, node);
	else
		doubling_add(r, node, extra, power);
}

static void steps_add(struct nodes_run *r, uint32_t chunks)
{
	const int64_t nodes = tree_node_count(r->call);

	for (int64_t power = 1; power * 2 <= nodes; power *= 2)
		r->rounds++;
	r->fold = (nodes & (nodes - 1)) != 0;
	r->rounds += r->fold;
	r->slots_len = r->tree.slots * plan_longest(r->b, r->tree.part);
	r->tree.base = r->rounds * r->slots_len;
	plan_loop_begin(r->b, chunks);
	tree_run_init(&r->tree, true);
	tree_up(&r->tree);
	if (r->tree.tree.parent < 0)
		between_add(r);
	tree_down(&r->tree, PLAN_DST, &r->writer);
	plan_loop_end(r->b);
}

int allreduce_nodes_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	int ret = build_check(call, 2 * TREE_CHILDREN_MAX, why);
	struct nodes_run r = {.call = call};
	uint32_t chunks;

	if (ret)
		return ret;
	r.b = plan_builder_open("allreduce/hierarchical", call);
	if (!call->count)
		return plan_builder_finish(r.b, plan, why);
	chunks = build_chunks(call, call->count, ALLREDUCE_NODES_GRANULE, 1);
	r.tree = (struct tree_run){
		.call = call,
		.b = r.b,
		.shape = tree_within,
		.part = plan_add_balanced(r.b, call->count, chunks),
		.own = call->in_place ? PLAN_DST : PLAN_SRC,
		.keep = call->in_place,
		.slots = chunks < ALLREDUCE_NODES_SLOTS ? 1 : ALLREDUCE_NODES_SLOTS,
	};
	if (call->size > 1)
		steps_add(&r, chunks);
	else if (!call->in_place)
		plan_add_copy(r.b, plan_run(PLAN_DST, r.tree.part, 0, chunks),
			      plan_run(PLAN_SRC, r.tree.part, 0, chunks));
	return plan_builder_finish(r.b, plan, why);
}
