/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce along a chain that ends at the root, cut into chunks: every rank adds its own to
 * each chunk that comes from the next one, counted from the root, and passes it on. Here
 * because a long vector costs every rank one send, one receive and one addition of it,
 * whatever n is, where a tree costs its root log2 n.
 *
 * A chunk is added up where it arrived, in a few slots of scratch: a receive waits for
 * the SEND that freed its slot, at the root for the REDUCE into DST. Cost: (C + n - 2) *
 * (a + m / C * (b + g)) for m bytes in C chunks, g per byte reduced. Source: the pipeline
 * of the textbooks, as in broadcast_chain.c.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk in bytes, as in allreduce_ring.c. */
#define CHAIN_GRANULE (128 * 1024)

#define CHAIN_SLOTS 4 /* one being added, one leaving, two arriving */

struct chain {
	const struct plan_call *call;
	struct plan_builder *b;
	uint32_t chunks, slots;
	uint8_t part;
	uint8_t in; /* scratch */
};

static void steps_add(struct chain *c)
{
	const struct plan_call *call = c->call;
	const int64_t v = build_from_root(call);
	const bool root = v == 0, last = v + 1 == call->size;
	const struct plan_range in = plan_run(PLAN_SCRATCH, c->in, 0, 1);
	const struct plan_range own =
		plan_run(root && call->in_place ? PLAN_DST : PLAN_SRC, c->part, 0, 1);
	uint32_t recv = 0, reduce = 0, send;

	plan_loop_begin(c->b, c->chunks);
	if (!last) {
		recv = plan_add_recv(c->b, build_rank(call, call->rank, 1), in);
		plan_set_advance(c->b, recv, 0, 1, 0, 0);
		reduce = plan_add_reduce(
			c->b, root ? plan_run(PLAN_DST, c->part, 0, 1) : in, in, own);
		plan_set_advance(c->b, reduce, 0, 1, 1, 1);
		plan_add_dep_same(c->b, reduce, recv);
	}
	if (root) {
		plan_add_dep(c->b, recv, reduce, -(int32_t)c->slots, 1);
		if (call->average)
			plan_set_scale(c->b, reduce);
	} else {
		send = plan_add_send(c->b, build_rank(call, call->rank, -1),
				     last ? own : in, in);
		plan_set_advance(c->b, send, 0, 1, 1, 0);
		if (!last) {
			plan_add_dep_same(c->b, send, reduce);
			plan_add_dep(c->b, recv, send, -(int32_t)c->slots, 1);
		}
	}
	plan_loop_end(c->b);
}

int reduce_chain_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	int ret = build_check(call, CHAIN_SLOTS, why);
	struct chain c = {.call = call};

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	c.b = plan_builder_open("reduce/chain", call);
	if (!call->count)
		return plan_builder_finish(c.b, plan, why);
	c.chunks = build_chunks(call, call->count, CHAIN_GRANULE, 1);
	c.slots = c.chunks < CHAIN_SLOTS ? c.chunks : CHAIN_SLOTS;
	c.part = plan_add_balanced(c.b, call->count, c.chunks);
	c.in = plan_add_folded_at(c.b, c.part, c.slots, 0);
	if (build_from_root(call) + 1 < call->size)
		plan_need_scratch(c.b, c.slots * plan_longest(c.b, c.part));
	if (call->size > 1)
		steps_add(&c);
	else if (!call->in_place)
		plan_add_copy(c.b, plan_run(PLAN_DST, c.part, 0, c.chunks),
			      plan_run(PLAN_SRC, c.part, 0, c.chunks));
	return plan_builder_finish(c.b, plan, why);
}
