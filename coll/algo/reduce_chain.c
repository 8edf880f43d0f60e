/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce along a chain that ends at the root, cut into chunks: every rank adds its own to
 * each chunk that comes from the next one, counted from the root, and passes it on. Here
 * because a long vector costs every rank one send, one receive and one addition of it,
 * whatever n is, where a tree costs its root log2 n.
 *
 * Where the operation does not commute two chains end at the root, from rank 0 up and
 * from the last rank down: each rank joins its own to what lies on one side of it, the
 * root to both.
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
	uint8_t in[2]; /* scratch: what comes from above and, if in order, from below */
	uint32_t recv[2]; /* of these */
};

static struct plan_range own_range(const struct chain *c)
{
	const bool shared = c->call->rank == c->call->root && c->call->in_place;

	return plan_run(shared ? PLAN_DST : PLAN_SRC, c->part, 0, 1);
}

static struct plan_range in_range(const struct chain *c, int side)
{
	return plan_run(PLAN_SCRATCH, c->in[side], 0, 1);
}

static void receive_add(struct chain *c, int side, int32_t from)
{
	c->recv[side] = plan_add_recv(c->b, from, in_range(c, side));
	plan_set_advance(c->b, c->recv[side], 0, 1, 0, 0);
}

/* `to` = a op b, after step `after`. */
static uint32_t join_add(struct chain *c, struct plan_range to, struct plan_range a,
			 struct plan_range b, uint32_t after)
{
	const uint32_t reduce = plan_add_reduce(c->b, to, a, b);

	plan_set_advance(c->b, reduce, 0, 1, 1, 1);
	plan_add_dep_same(c->b, reduce, after);
	return reduce;
}

/* Own chunk and what comes from `from`, if anybody is there, go to `to`. */
static void pass_add(struct chain *c, int side, int32_t from, int32_t to)
{
	const struct plan_range in = in_range(c, side), own = own_range(c);
	uint32_t reduce = 0, send;

	if (from >= 0) {
		receive_add(c, side, from);
		/* What comes from below is of lower ranks. */
		reduce = join_add(c, in, side ? in : own, side ? own : in, c->recv[side]);
	}
	send = plan_add_send(c->b, to, from >= 0 ? in : own, in);
	plan_set_advance(c->b, send, 0, 1, 1, 0);
	if (from >= 0) {
		plan_add_dep_same(c->b, send, reduce);
		plan_add_dep(c->b, c->recv[side], send, -(int32_t)c->slots, 1);
	}
}

/* The root: joins its own to what comes from above, and from below; -1: nothing does. */
static void root_add(struct chain *c, int32_t above, int32_t below)
{
	const struct plan_range dst = plan_run(PLAN_DST, c->part, 0, 1);
	struct plan_range own = own_range(c);
	uint32_t reduce = 0;

	if (below >= 0) {
		receive_add(c, 1, below);
		reduce = join_add(c, dst, in_range(c, 1), own, c->recv[1]);
		plan_add_dep(c->b, c->recv[1], reduce, -(int32_t)c->slots, 1);
		own = dst;
	}
	if (above >= 0) {
		const uint32_t before = reduce;

		receive_add(c, 0, above);
		reduce = join_add(c, dst, own, in_range(c, 0), c->recv[0]);
		plan_add_dep(c->b, c->recv[0], reduce, -(int32_t)c->slots, 1);
		if (below >= 0)
			plan_add_dep_same(c->b, reduce, before);
	}
	if (c->call->average)
		plan_set_scale(c->b, reduce);
}

static void steps_add(struct chain *c)
{
	const struct plan_call *call = c->call;
	const int32_t rank = call->rank, root = call->root, last = call->size - 1;
	const int64_t v = build_from_root(call);

	plan_loop_begin(c->b, c->chunks);
	if (call->ordered && rank == root)
		root_add(c, root < last ? root + 1 : -1, root - 1);
	else if (call->ordered && rank < root)
		pass_add(c, 1, rank - 1, rank + 1);
	else if (call->ordered)
		pass_add(c, 0, rank < last ? rank + 1 : -1, rank - 1);
	else if (v == 0)
		root_add(c, build_rank(call, rank, 1), -1);
	else
		pass_add(c, 0, v < last ? build_rank(call, rank, 1) : -1,
			 build_rank(call, rank, -1));
	plan_loop_end(c->b);
}

/* Chunks that arrive: slots for each side, those from below behind the others. */
static void scratch_add(struct chain *c)
{
	const struct plan_call *call = c->call;
	const uint64_t len = c->slots * plan_longest(c->b, c->part);
	const bool above =
		call->ordered ? call->rank >= call->root && call->rank + 1 < call->size
			      : build_from_root(call) + 1 < call->size;
	const bool below = call->ordered && call->rank && call->rank <= call->root;

	c->in[0] = plan_add_folded_at(c->b, c->part, c->slots, 0);
	c->in[1] = plan_add_folded_at(c->b, c->part, c->slots, len);
	if (above || below)
		plan_need_scratch(c->b, below ? 2 * len : len);
}

int reduce_chain_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	int ret = build_check(call, 2 * CHAIN_SLOTS, why);
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
	scratch_add(&c);
	if (call->size > 1)
		steps_add(&c);
	else if (!call->in_place)
		plan_add_copy(c.b, plan_run(PLAN_DST, c.part, 0, c.chunks),
			      plan_run(PLAN_SRC, c.part, 0, c.chunks));
	return plan_builder_finish(c.b, plan, why);
}
