/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce-scatter around a ring. In step s a rank passes on the sum of the block of
 * rank - 1 - s, to which it has added its own part, and gets that of rank - 2 - s; the
 * last one that it gets is its own block's. Blocks are cut into C chunks; step and chunk
 * are flattened into one trip t = s * C + c, chunks of a block in descending order, as in
 * allgather_ring.c. Here because no reduce-scatter moves fewer bytes, and each rank talks
 * to its two neighbours only.
 *
 * Sums arrive in scratch of two blocks, one that arrives and one that is passed on, and
 * are added up there: a receive waits for the SEND that freed its chunk. The last step
 * adds into DST. Blocks of a (v) form are not cut, and scratch is as long as SRC, as in
 * roomy calls: each block has its place, and no receive waits for anything.
 * Cost: (n - 1) * (C * a + m * b + m * g) for blocks of m bytes, g per byte reduced.
 * Source: the ring of the textbooks; Patarasuk, Yuan, "Bandwidth optimal all-reduce
 * algorithms for clusters of workstations", 2009, first half.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk in bytes: as in allreduce_ring.c, what arrived is still in the cache. */
#define REDUCE_SCATTER_GRANULE (128 * 1024)

struct ring {
	const struct plan_call *call;
	struct plan_builder *b;
	int64_t chunks;
	struct build_blocks blocks; /* of SRC */
	uint8_t src;		    /* SRC in n * C parts, and in a (v) form its blocks */
	int64_t src_parts;
	int32_t src_step; /* parts down from trip to trip */
	uint8_t in;	  /* scratch */
	int64_t in_parts;
	uint8_t dst;
	int32_t left, right;
	uint32_t recv[3], send[3], reduce[3]; /* by stretch */
	int64_t start[3], trips[3];
	int stretches;
};

/* Part of SRC that is added (up = 1: sent) in a trip. */
static uint32_t src_at(const struct ring *r, int64_t trip, int64_t up)
{
	int64_t part = (r->call->rank - 2 + up) * r->chunks + r->chunks - 1 - trip;

	return build_mod(part * -r->src_step, r->src_parts);
}

/* Where the sum of trip `trip` arrives, at every rank. */
static struct plan_range in_at(const struct ring *r, int64_t trip, int64_t up)
{
	if (r->call->vector)
		return plan_run(PLAN_SCRATCH, r->in, src_at(r, trip, up), 1);
	return plan_run(PLAN_SCRATCH, r->in,
			build_mod(r->in_parts - 1 - trip, r->in_parts), 1);
}

/* step, in trip t of a stretch that begins at `start`, waits for global trip
 * start + t - lag of a step of the stretch e. */
static void dep_add(const struct ring *r, uint32_t step, int64_t start, int64_t trips,
		    int e, uint32_t on, int64_t lag)
{
	const int64_t trip0 = start - lag - r->start[e];

	if (trip0 < r->trips[e] && trip0 + trips > 0)
		plan_add_dep(r->b, step, on, (int32_t)trip0, 1);
}

/* Trips `start` to start + trips - 1, of the same form; the last adds into DST. */
static void stretch_add(struct ring *r, int64_t start, int64_t trips, bool last)
{
	const int e = r->stretches++;
	const struct plan_range in = in_at(r, start, 0);
	const int32_t down = r->call->vector ? r->src_step : -1;

	r->start[e] = start;
	r->trips[e] = trips;
	plan_loop_begin(r->b, (uint32_t)trips);
	r->recv[e] = plan_add_recv(r->b, r->left, in);
	plan_set_advance(r->b, r->recv[e], 0, down, 0, 0);
	/* What was added up a step ago, in the beginning the caller's own. */
	r->send[e] =
		plan_add_send(r->b, r->right,
			      start ? in_at(r, start - r->chunks, 0)
				    : plan_run(PLAN_SRC, r->src, src_at(r, start, 1), 1),
			      r->call->vector ? plan_anywhere() : in_at(r, start, 1));
	plan_set_advance(r->b, r->send[e], 0, down, start ? down : r->src_step, 0);
	r->reduce[e] = plan_add_reduce(
		r->b, last ? plan_run(PLAN_DST, r->dst, (uint32_t)r->chunks - 1, 1) : in,
		in, plan_run(PLAN_SRC, r->src, src_at(r, start, 0), 1));
	plan_set_advance(r->b, r->reduce[e], 0, last ? -1 : down, down, r->src_step);
	plan_add_dep_same(r->b, r->reduce[e], r->recv[e]);
	for (int i = 0; i <= e; i++) {
		dep_add(r, r->send[e], start, trips, i, r->reduce[i], r->chunks);
		/* The chunk of two steps ago was passed on a step ago. */
		if (!r->call->vector && !r->call->roomy)
			dep_add(r, r->recv[e], start, trips, i, r->send[i], r->chunks);
	}
	if (last && r->call->average)
		plan_set_scale(r->b, r->reduce[e]);
	plan_loop_end(r->b);
}

static void parts_add(struct ring *r)
{
	const struct plan_call *call = r->call;
	const int64_t n = call->size;
	uint64_t blocks;

	r->chunks = 1;
	r->blocks = build_send_blocks(r->b, call);
	if (call->vector) {
		r->src = r->in = r->blocks.part;
		r->src_step = -r->blocks.per;
		r->src_parts = r->in_parts = n * r->blocks.per;
		r->dst = build_own_block(r->b, call, true, call->rank);
		plan_need_scratch(r->b, n > 1 ? build_send_span(call) : 0);
		return;
	}
	r->chunks = build_chunks(call, call->count, REDUCE_SCATTER_GRANULE, (uint32_t)n);
	r->src_step = -1;
	r->src_parts = n * r->chunks;
	/* floor(i * n * count / (n * C)) = floor(i * count / C): chunks never straddle
	 * blocks, and all blocks are cut alike; so are two of them in scratch. */
	r->src = plan_add_balanced(r->b, call->count * (uint64_t)n,
				   (uint32_t)r->src_parts);
	blocks = call->roomy ? (uint64_t)n : 2;
	r->in_parts = (int64_t)blocks * r->chunks;
	r->in = plan_add_balanced(r->b, call->count * blocks, (uint32_t)r->in_parts);
	r->dst = plan_add_balanced(r->b, call->count, (uint32_t)r->chunks);
	if (n > 1)
		plan_need_scratch(r->b, call->count * blocks);
}

int reducescatter_ring_build(const struct plan_call *call, struct plan **plan,
			     const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct ring r = {.call = call};
	int64_t n = call->size;

	if (ret)
		return ret;
	r.b = plan_builder_open("reduce_scatter/ring", call);
	if (build_is_empty(call))
		return plan_builder_finish(r.b, plan, why);
	parts_add(&r);
	r.left = build_rank(call, call->rank, -1);
	r.right = build_rank(call, call->rank, 1);
	if (n == 1) {
		if (!call->in_place)
			plan_add_copy(r.b,
				      plan_run(PLAN_DST, r.dst, 0, (uint32_t)r.chunks),
				      plan_run(PLAN_SRC, r.src, 0, (uint32_t)r.chunks));
		return plan_builder_finish(r.b, plan, why);
	}
	plan_prefer_puts(r.b);
	stretch_add(&r, 0, r.chunks, n == 2);
	if (n > 3)
		stretch_add(&r, r.chunks, (n - 3) * r.chunks, false);
	if (n > 2)
		stretch_add(&r, (n - 2) * r.chunks, r.chunks, true);
	return plan_builder_finish(r.b, plan, why);
}
