/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gather around a ring. In step s a rank passes on the block of rank - s and gets
 * that of rank - s - 1. Blocks are cut into C chunks; step and chunk are flattened into
 * one trip t = s * C + c, chunks of a block in descending order, so that the part that is
 * sent, and the one that is received, are one lower in each trip: two loops say it for
 * any n. Here because every rank talks to one neighbour only, at full bandwidth, and
 * chunks travel on while their block still arrives. No receive depends on anything: each
 * place is written once.
 * Cost: (n - 1) * (C * a + m * b) for blocks of m bytes, with C messages in flight.
 * Source: the ring of the textbooks; Thakur, Rabenseifner, Gropp, "Optimization of
 * Collective Communication Operations in MPICH", 2005.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk in bytes: nothing is computed here, so only start-up time is to be hidden. */
#define ALLGATHER_GRANULE (256 * 1024)

struct ring {
	struct plan_builder *b;
	int32_t left, right;
	int64_t parts;
	uint8_t part; /* of DST: n blocks of C chunks */
};

/* The part that is sent and received in the first trip of a loop that begins at global
 * trip `start`. Returns the RECV and sets *send. */
static uint32_t pair_add(const struct ring *r, int64_t top, int64_t start, int64_t chunks,
			 struct plan_range from, uint32_t *send)
{
	struct plan_range at_peer =
		plan_run(PLAN_DST, r->part, build_mod(top - start, r->parts), 1);
	struct plan_range dst =
		plan_run(PLAN_DST, r->part, build_mod(top - start - chunks, r->parts), 1);
	uint32_t recv = plan_add_recv(r->b, r->left, dst);

	plan_set_advance(r->b, recv, 0, -1, 0, 0);
	*send = plan_add_send(r->b, r->right, from, at_peer);
	plan_set_advance(r->b, *send, 0, -1, -1, 0);
	return recv;
}

static void steps_add(const struct ring *r, const struct plan_call *call, uint8_t own,
		      int64_t chunks)
{
	int64_t n = call->size, top = call->rank * chunks + chunks - 1;
	uint32_t recv0, recv, send;
	struct plan_range from;

	/* Step 0: the own block, straight from where the caller has it. */
	from = call->in_place ? plan_run(PLAN_DST, r->part, (uint32_t)top, 1)
			      : plan_run(PLAN_SRC, own, (uint32_t)chunks - 1, 1);
	plan_loop_begin(r->b, (uint32_t)chunks);
	recv0 = pair_add(r, top, 0, chunks, from, &send);
	plan_loop_end(r->b);
	if (!call->in_place)
		plan_add_copy(r->b,
			      plan_run(PLAN_DST, r->part, (uint32_t)(call->rank * chunks),
				       (uint32_t)chunks),
			      plan_run(PLAN_SRC, own, 0, (uint32_t)chunks));
	if (n == 2)
		return;
	/* Steps 1 to n - 2: what arrived C trips ago. */
	from = plan_run(PLAN_DST, r->part, build_mod(top - chunks, r->parts), 1);
	plan_loop_begin(r->b, (uint32_t)((n - 2) * chunks));
	recv = pair_add(r, top, chunks, chunks, from, &send);
	plan_add_dep(r->b, send, recv0, 0, 1);
	plan_add_dep(r->b, send, recv, (int32_t)-chunks, 1);
	plan_loop_end(r->b);
}

int allgather_ring_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	int ret = build_check(call, (uint64_t)call->size, why);
	int64_t n = call->size;
	uint32_t chunks;
	struct ring r;
	uint8_t own;

	if (ret)
		return ret;
	r.b = plan_builder_open("allgather/ring", call);
	if (!call->count)
		return plan_builder_finish(r.b, plan, why);
	chunks = build_chunks(call, call->count, ALLGATHER_GRANULE, (uint32_t)n);
	r.left = (int32_t)build_mod((int64_t)call->rank - 1, n);
	r.right = (int32_t)build_mod((int64_t)call->rank + 1, n);
	r.parts = n * chunks;
	/* floor(i * n * count / (n * C)) = floor(i * count / C): chunks never straddle
	 * blocks, and all blocks are cut alike. */
	r.part = plan_add_balanced(r.b, call->count * (uint64_t)n, (uint32_t)r.parts);
	own = plan_add_balanced(r.b, call->count, chunks);
	if (n > 1)
		steps_add(&r, call, own, chunks);
	else if (!call->in_place)
		plan_add_copy(r.b, plan_run(PLAN_DST, r.part, 0, chunks),
			      plan_run(PLAN_SRC, own, 0, chunks));
	return plan_builder_finish(r.b, plan, why);
}
