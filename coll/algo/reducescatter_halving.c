/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce-scatter by recursive halving, for any n. p is the largest power of two in n. An
 * odd rank among the first 2 (n - p) gives its vector to the one below it first, which
 * works for both and sends it its block at the end. The p that work have a range of
 * blocks each that halves: with partners at distances p/2, ..., 1 a rank sends the sums
 * of the half that it leaves and adds what it gets to the half that it keeps. Here
 * because it moves as few bytes as the ring in log2 p steps instead of n - 1: for short
 * blocks.
 *
 * Sums are kept in scratch as long as SRC; what arrives has one vector more, or two while
 * they are short, so that a receive need not wait for the round before.
 * Cost: log2 p * a + (p - 1) / p * n m * b + (p - 1) / p * n m * g for blocks of m bytes;
 * a + n m (b + g) and a + m b more where n is no power of two; g per byte reduced.
 *
 * In the order of ranks (plan_call.ordered) the partners are at distances 1, 2, ..., p/2,
 * so that what is joined are neighbours; a rank ends with the blocks of the one whose
 * number among those that work has the same bits in reverse, and sends them where they
 * belong: a + m b more.
 * Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
 * Operations in MPICH", 2005, section 4.3 (in order: 4.4, as MPICH does it for what does
 * not commute); folding as in allreduce_halving.c.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Scratch in bytes within which arrivals have two vectors; roomy calls have one for each
 * round. */
#define HALVING_SCRATCH (1024 * 1024)

#define HALVING_ROUNDS_MAX 33

struct halving {
	const struct plan_call *call;
	struct plan_builder *b;
	struct build_blocks blocks; /* of SRC, and of each vector of scratch */
	uint8_t scratch[1 + HALVING_ROUNDS_MAX]; /* sums; arrivals, in `slots` of them */
	uint32_t slots;
	int64_t extra; /* n - p: so many work for two */
	bool own;      /* nothing was added up yet: sums are in SRC */
	uint32_t rounds, first;
	uint32_t last; /* the SEND that was added last */
	uint32_t reduce[HALVING_ROUNDS_MAX];
	uint8_t dst;
};

/* The first block of the working rank `id`, and so the end of the one before. */
static int64_t block_of(const struct halving *h, int64_t id)
{
	return id < h->extra ? 2 * id : id + h->extra;
}

static int32_t rank_of(const struct halving *h, int64_t id)
{
	return (int32_t)block_of(h, id);
}

/* Blocks of working ranks id to id + count - 1 in vector `v` of scratch; -1: in SRC. */
static struct plan_range run(const struct halving *h, int v, int64_t id, int64_t count)
{
	const int64_t first = block_of(h, id), end = block_of(h, id + count);
	struct plan_range r =
		build_block_run(PLAN_SRC, h->blocks, first, end - first, h->call->size);

	if (v < 0)
		return r;
	r.buf = PLAN_SCRATCH;
	r.part = h->scratch[v];
	return r;
}

static int arrivals(const struct halving *h)
{
	return 1 + (int)(h->rounds % h->slots);
}

/* Adds what arrives to our own: into the sums, or if `last` into DST. `below`: it is of
 * lower ranks. */
static void reduce_add(struct halving *h, struct plan_range arrives, int64_t keep,
		       int64_t count, uint32_t recv, bool last, bool below)
{
	const struct plan_range own = run(h, h->own ? -1 : 0, keep, count);
	const struct plan_range to =
		last ? plan_run(PLAN_DST, h->dst, 0, 1) : run(h, 0, keep, count);
	const uint32_t reduce =
		plan_add_reduce(h->b, to, below ? arrives : own, below ? own : arrives);

	plan_add_dep_same(h->b, reduce, recv);
	if (!h->own)
		plan_add_dep_same(h->b, reduce, h->reduce[h->rounds - 1]);
	if (last && h->call->average)
		plan_set_scale(h->b, reduce);
	h->own = false;
	h->reduce[h->rounds++] = reduce;
}

static void send_add(struct halving *h, int32_t peer, int64_t leave, int64_t count)
{
	const uint32_t send = plan_add_send(
		h->b, peer, run(h, h->own ? -1 : 0, leave, count),
		h->call->vector ? plan_anywhere() : run(h, arrivals(h), leave, count));

	if (!h->own)
		plan_add_dep_same(h->b, send, h->reduce[h->rounds - 1]);
	h->last = send;
}

static void receive_add(struct halving *h, int32_t peer, int64_t keep, int64_t count,
			bool last)
{
	const struct plan_range in = run(h, arrivals(h), keep, count);
	const uint32_t recv = plan_add_recv(h->b, peer, in);

	if (h->rounds >= h->first + h->slots)
		plan_add_dep_same(h->b, recv, h->reduce[h->rounds - h->slots]);
	reduce_add(h, in, keep, count, recv, last, peer < h->call->rank);
}

/* Who worked for two: our own block into DST, the neighbour's to it. */
static void results_add(struct halving *h, int64_t id)
{
	const struct plan_range dst = plan_run(PLAN_DST, h->dst, 0, 1);
	struct plan_range mine = run(h, 0, id, 1), other;
	uint32_t step;

	mine.block = mine.count = 1;
	other = mine;
	other.first += h->blocks.per;
	step = plan_add_copy(h->b, dst, mine);
	plan_add_dep_same(h->b, step, h->reduce[h->rounds - 1]);
	if (h->call->average)
		plan_set_scale(h->b, step);
	step = h->reduce[h->rounds - 1];
	if (h->call->average) {
		/* Divided in its place, which nobody else reads any more. */
		step = plan_add_copy(h->b, other, other);
		plan_set_scale(h->b, step);
		plan_add_dep_same(h->b, step, h->reduce[h->rounds - 1]);
	}
	plan_add_dep_same(h->b,
			  plan_add_send(h->b, rank_of(h, id) + 1, other,
					h->call->vector ? plan_anywhere() : dst),
			  step);
}

static int64_t reversed(int64_t id, int64_t p)
{
	int64_t out = 0;

	for (int64_t bit = 1; bit < p; bit *= 2)
		out = out * 2 + ((id & bit) ? 1 : 0);
	return out;
}

/* One of the blocks that this rank has in order, to the rank that it is of. */
static void deliver_add(struct halving *h, int64_t of, int64_t block)
{
	const struct plan_range dst = plan_run(PLAN_DST, h->dst, 0, 1);
	const uint32_t sum = h->reduce[h->rounds - 1];
	struct plan_range at = run(h, 0, of, 1);
	uint32_t step = sum;

	at.block = at.count = 1;
	at.first += (uint32_t)(block - block_of(h, of)) * h->blocks.per;
	if (block == h->call->rank) {
		step = plan_add_copy(h->b, dst, at);
		plan_add_dep_same(h->b, step, sum);
		if (h->call->average)
			plan_set_scale(h->b, step);
		return;
	}
	if (h->call->average) {
		step = plan_add_copy(h->b, at, at);
		plan_set_scale(h->b, step);
		plan_add_dep_same(h->b, step, sum);
	}
	plan_add_dep_same(h->b,
			  plan_add_send(h->b, (int32_t)block, at,
					h->call->vector ? plan_anywhere() : dst),
			  step);
}

/* Halves with neighbours first, then everybody gets its own block. */
static void ordered_add(struct halving *h, int64_t id, int64_t p, bool folds)
{
	const int64_t holder = reversed(id, p);
	int64_t lo = 0, half = p / 2;
	uint32_t sent = 0, recv;
	bool sends = false;

	for (int64_t dist = 1; dist < p; dist *= 2, half /= 2) {
		const int32_t peer = rank_of(h, id ^ dist);
		const int64_t keep = (id & dist) ? lo + half : lo;

		send_add(h, peer, (id & dist) ? lo : lo + half, half);
		/* The step that reads what the caller gave, where no sum is there yet. */
		if (dist == 1 && !folds) {
			sent = h->last;
			sends = true;
		}
		receive_add(h, peer, keep, half, false);
		lo = keep;
	}
	for (int64_t block = block_of(h, lo); block < block_of(h, lo + 1); block++)
		deliver_add(h, lo, block);
	if (holder == id)
		return;
	recv = plan_add_recv(h->b, rank_of(h, holder), plan_run(PLAN_DST, h->dst, 0, 1));
	/* In place the result is a block of what was given: behind what reads that. */
	if (h->call->in_place) {
		if (sends)
			plan_add_dep_same(h->b, recv, sent);
		plan_add_dep_same(h->b, recv, h->reduce[h->first]);
	}
}

/* An odd rank of the first ones: gives, and gets its block. */
static void folded_add(struct halving *h, int64_t p)
{
	const int32_t peer = h->call->rank - 1;
	const int64_t id = h->call->rank / 2;
	uint32_t recv;

	send_add(h, peer, 0, p);
	recv = plan_add_recv(h->b, h->call->ordered ? rank_of(h, reversed(id, p)) : peer,
			     plan_run(PLAN_DST, h->dst, 0, 1));
	/* The result is a block of what was given. */
	if (h->call->in_place)
		plan_add_dep_same(h->b, recv, recv - 1);
}

static void steps_add(struct halving *h, int64_t p)
{
	const int32_t rank = h->call->rank;
	const bool folds = rank < 2 * h->extra;
	const int64_t id = folds ? rank / 2 : rank - h->extra;

	if (folds && rank % 2) {
		folded_add(h, p);
		return;
	}
	plan_need_scratch(h->b, build_send_span(h->call) * (1 + h->slots));
	if (folds)
		receive_add(h, rank + 1, 0, p, false);
	else if (h->extra)
		h->rounds = h->first = 1; /* the folding is a round for all */
	if (h->call->ordered) {
		ordered_add(h, id, p, folds);
		return;
	}
	for (int64_t dist = p / 2; dist >= 1; dist /= 2) {
		const int64_t keep = id & ~(dist - 1);
		const int32_t peer = rank_of(h, id ^ dist);

		send_add(h, peer, keep ^ dist, dist);
		receive_add(h, peer, keep, dist, dist == 1 && !folds);
	}
	if (folds)
		results_add(h, id);
}

int reducescatter_halving_build(const struct plan_call *call, struct plan **plan,
				const char **why)
{
	int ret = build_check(call,
			      (call->roomy ? HALVING_ROUNDS_MAX + 1 : 3) *
				      build_blocks_most(call),
			      why);
	struct halving h = {.call = call, .own = true};
	int64_t p = 1;

	if (ret)
		return ret;
	h.b = plan_builder_open("reduce_scatter/recursive-halving", call);
	if (build_is_empty(call))
		return plan_builder_finish(h.b, plan, why);
	while (p * 2 <= call->size)
		p *= 2;
	h.extra = call->size - p;
	h.blocks = build_send_blocks(h.b, call);
	h.slots = build_send_span(call) <= HALVING_SCRATCH / 2 / call->elem_size ? 2 : 1;
	if (call->roomy) {
		for (h.slots = 1; ((int64_t)1 << h.slots) < call->size;)
			h.slots++;
	}
	for (uint32_t v = 0; v <= h.slots; v++)
		h.scratch[v] =
			plan_add_shifted(h.b, h.blocks.part, v * build_send_span(call));
	h.dst = build_own_block(h.b, call, true, call->rank);
	if (call->size > 1)
		steps_add(&h, p);
	else if (!call->in_place)
		plan_add_copy(h.b, plan_run(PLAN_DST, h.dst, 0, 1),
			      build_block_run(PLAN_SRC, h.blocks, 0, 1, call->size));
	return plan_builder_finish(h.b, plan, why);
}
