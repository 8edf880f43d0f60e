/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-reduce around a ring: a reduce-scatter, then an all-gather, as one pipeline. The
 * vector is cut into n blocks of C chunks. In step g = 0 .. 2n - 3 a rank sends the block
 * of rank - g and gets that of rank - g - 1; in the first n - 1 steps it adds its own
 * part to what it got and sends the sum on, in the others it passes finished blocks on.
 * Step and chunk are flattened into one trip t = g * C + c, chunks of a block in
 * descending order, so that parts go down by one in each trip and a few loops say it for
 * any n. Here because no all-reduce moves fewer bytes, and each rank talks to its two
 * neighbours only.
 *
 * Out of place, partial sums arrive in DST itself: no scratch, and no receive of the
 * reduce-scatter depends on anything. In place they arrive in a few slots of scratch that
 * are used over and over: a receive waits for the REDUCE that freed its slot. A part of
 * DST is finished by its second arrival, which waits for the SEND of the partial sum.
 * In roomy calls they arrive in scratch as long as the vector, and are added up and sent
 * on there, so that only finished parts come to DST, and no receive waits for anything.
 * A part is reduced along one chain of ranks and divided once, by the last of them: all
 * ranks get the same bits.
 * Cost: 2 * (n - 1) * (C * a + m / n * b) + (n - 1) * m / n * g for m bytes, with up to C
 * messages in flight; g per byte reduced.
 * Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", 2009; chunks as in pipelined rings everywhere.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk in bytes: what arrived is still in a core's second-level cache when it is added,
 * and adding one chunk overlaps with the arrival of the next. */
#define ALLREDUCE_GRANULE (128 * 1024)

/* Slots of scratch in place: one being reduced, one arriving, two announced. */
#define RING_SLOTS 4

/* A run of consecutive trips of the reduce-scatter with the same form. */
struct stretch {
	int64_t start, trips; /* global trips */
	uint32_t recv, send, reduce;
};

struct ring {
	const struct plan_call *call;
	struct plan_builder *b;
	int64_t chunks, parts, slots;
	int32_t left, right;
	uint8_t part;	      /* the vector: n blocks of C chunks */
	uint8_t in_part;      /* where partial sums arrive: parts of that buffer */
	enum plan_buf in_buf; /* DST, in place SCRATCH */
	enum plan_buf own;    /* the caller's vector: SRC, in place DST */
	struct stretch stretch[3];
	int stretches;
};

static uint32_t sent_part(const struct ring *r, int64_t trip)
{
	return build_mod(r->call->rank * r->chunks + r->chunks - 1 - trip, r->parts);
}

static uint32_t received_part(const struct ring *r, int64_t trip)
{
	return build_mod(r->call->rank * r->chunks - 1 - trip, r->parts);
}

/* step, in trip t of the loop that begins at global trip `start`, waits for global trip
 * start + t - lag of a step of the stretch. Nothing is added where no trip matches. */
static void dep_add(const struct ring *r, uint32_t step, int64_t start, int64_t trips,
		    const struct stretch *s, uint32_t on, int64_t lag)
{
	int64_t trip0 = start - lag - s->start;

	if (trip0 < s->trips && trip0 + trips > 0)
		plan_add_dep(r->b, step, on, (int32_t)trip0, 1);
}

static void stretch_add(struct ring *r, int64_t start, int64_t trips, bool last)
{
	struct stretch *s = &r->stretch[r->stretches++];
	uint32_t in = received_part(r, start), out = sent_part(r, start);
	const enum plan_buf sums = r->call->roomy ? PLAN_SCRATCH : PLAN_DST;
	struct plan_range arrives = plan_run(r->in_buf, r->in_part, in, 1);

	*s = (struct stretch){.start = start, .trips = trips};
	plan_loop_begin(r->b, (uint32_t)trips);
	s->recv = plan_add_recv(r->b, r->left, arrives);
	plan_set_advance(r->b, s->recv, 0, -1, 0, 0);
	s->send = plan_add_send(r->b, r->right,
				plan_run(start ? sums : r->own, r->part, out, 1),
				plan_run(r->in_buf, r->in_part, out, 1));
	plan_set_advance(r->b, s->send, 0, -1, -1, 0);
	s->reduce =
		plan_add_reduce(r->b, plan_run(last ? PLAN_DST : sums, r->part, in, 1),
				arrives, plan_run(r->own, r->part, in, 1));
	plan_set_advance(r->b, s->reduce, 0, -1, -1, -1);
	plan_add_dep_same(r->b, s->reduce, s->recv);
	for (int i = 0; i < r->stretches; i++) {
		const struct stretch *e = &r->stretch[i];

		dep_add(r, s->send, start, trips, e, e->reduce, r->chunks);
		if (r->call->in_place)
			dep_add(r, s->recv, start, trips, e, e->reduce, r->slots);
	}
	if (last && r->call->average)
		plan_set_scale(r->b, s->reduce);
	plan_loop_end(r->b);
}

static void reduce_scatter_add(struct ring *r)
{
	int64_t n = r->call->size, all = (n - 1) * r->chunks;
	/* The last step divides, or goes from scratch to DST: a form of its own. */
	int64_t plain = r->call->average || r->call->roomy ? all - r->chunks : all;

	stretch_add(r, 0, r->chunks, n == 2);
	if (plain > r->chunks)
		stretch_add(r, r->chunks, plain - r->chunks, false);
	if (plain < all && n > 2)
		stretch_add(r, plain, all - plain, true);
}

static void all_gather_add(struct ring *r)
{
	int64_t start = (r->call->size - 1) * r->chunks, trips = start;
	struct plan_range out = plan_run(PLAN_DST, r->part, sent_part(r, start), 1);
	uint32_t recv, send;

	plan_loop_begin(r->b, (uint32_t)trips);
	recv = plan_add_recv(r->b, r->left,
			     plan_run(PLAN_DST, r->part, received_part(r, start), 1));
	plan_set_advance(r->b, recv, 0, -1, 0, 0);
	send = plan_add_send(r->b, r->right, out, out);
	plan_set_advance(r->b, send, 0, -1, -1, 0);
	plan_add_dep(r->b, send, recv, (int32_t)-r->chunks, 1);
	for (int i = 0; i < r->stretches; i++) {
		const struct stretch *s = &r->stretch[i];

		dep_add(r, send, start, trips, s, s->reduce, r->chunks);
		/* The part arrives for the second time: n - 1 steps ago it was sent, from
		 * DST; in the first step from the caller's vector. */
		if ((s->start && !r->call->roomy) || r->call->in_place)
			dep_add(r, recv, start, trips, s, s->send, start);
	}
	plan_loop_end(r->b);
}

/* Slots must divide the parts: else two neighbours share a slot where parts wrap. */
static int64_t slots_dividing(int64_t parts)
{
	static const int64_t good[] = {RING_SLOTS, 3, 5, 6, 7, 2};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (parts % good[i] == 0)
			return good[i];
	}
	return 1;
}

static void chunks_set(struct ring *r)
{
	const struct plan_call *call = r->call;
	int64_t n = call->size;
	uint64_t block = call->count / (uint64_t)n + (call->count % (uint64_t)n != 0);

	/* Doubling is for a prime number of ranks with one chunk. */
	r->chunks = build_chunks(call, block, ALLREDUCE_GRANULE, 2 * (uint32_t)n);
	if (call->in_place && r->chunks > RING_SLOTS)
		r->chunks -= r->chunks % RING_SLOTS;
	r->slots = slots_dividing(n * r->chunks);
	if (call->in_place && r->slots == 1) {
		r->chunks *= 2;
		r->slots = 2;
	}
	r->parts = n * r->chunks;
}

int allreduce_ring_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	struct ring r = {.call = call, .in_buf = PLAN_DST, .own = PLAN_SRC};
	int ret = build_check(call, 1, why);
	int64_t n = call->size;

	if (ret)
		return ret;
	r.b = plan_builder_open("allreduce/ring", call);
	if (!call->count)
		return plan_builder_finish(r.b, plan, why);
	chunks_set(&r);
	r.part = r.in_part = plan_add_balanced(r.b, call->count, (uint32_t)r.parts);
	r.left = (int32_t)build_mod((int64_t)call->rank - 1, n);
	r.right = (int32_t)build_mod((int64_t)call->rank + 1, n);
	if (n == 1) {
		if (!call->in_place)
			plan_add_copy(r.b,
				      plan_run(PLAN_DST, r.part, 0, (uint32_t)r.parts),
				      plan_run(PLAN_SRC, r.part, 0, (uint32_t)r.parts));
		return plan_builder_finish(r.b, plan, why);
	}
	if (call->in_place) {
		r.own = PLAN_DST;
		r.in_buf = PLAN_SCRATCH;
		r.in_part = plan_add_folded(r.b, r.part, (uint32_t)r.slots);
	}
	if (call->roomy) {
		r.in_buf = PLAN_SCRATCH;
		plan_need_scratch(r.b, call->count);
	}
	/* A partial sum is added where it arrived, and a block is sent on by who has just
	 * added to it: the sender has it at hand. In place this is not so: what arrives
	 * in scratch is read by its receiver only. */
	if (!call->in_place)
		plan_prefer_puts(r.b);
	reduce_scatter_add(&r);
	all_gather_add(&r);
	return plan_builder_finish(r.b, plan, why);
}
