/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-reduce by recursive doubling, for any n. Of the 2 * (n - p) first ranks, p the
 * largest power of two in n, each odd one gives its vector to the even one before it,
 * which goes on for both and gives back the result. The p that go on exchange whole
 * vectors with partners at distances 1, 2, 4, ... Here because it has the fewest rounds;
 * every rank moves the whole vector in each, so it is for short ones.
 * The lower ranks' vector is always the first operand: all ranks compute the same tree of
 * operations and get the same bits.
 * Cost: log2 p * (a + m * b + m * g), and 2 * (a + m * b) + m * g where n is no power of
 * two; m bytes, g per byte reduced.
 * Source: Rabenseifner, "Optimization of Collective Reduction Operations", 2004; Thakur,
 * Rabenseifner, Gropp, 2005.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Scratch in bytes. Within it each round has a slot of its own, so that no receive waits
 * for an earlier round; longer vectors get fewer slots, at least one. */
#define DOUBLING_SCRATCH (256 * 1024)

struct doubling {
	const struct plan_call *call;
	struct plan_builder *b;
	uint8_t whole;	     /* partition: the vector */
	uint8_t slot;	     /* partition of scratch: a vector a part */
	uint32_t slots;	     /* parts of it */
	uint32_t fold;	     /* 1 where n is no power of two: round 0 is the folding */
	uint32_t reduce[33]; /* by round */
	bool reduced[33];
	enum plan_buf acc; /* where the sum so far is: SRC until the first REDUCE */
	uint32_t writer;   /* the REDUCE that wrote it, when acc is not SRC's own */
	bool written;
};

static uint32_t slots_for(const struct plan_call *call, uint32_t rounds)
{
	uint64_t fit = DOUBLING_SCRATCH / call->elem_size / call->count;

	if (call->roomy)
		return rounds;
	if (fit < 1)
		return 1;
	return fit < rounds ? (uint32_t)fit : rounds;
}

static struct plan_range acc_range(const struct doubling *d)
{
	return plan_run(d->acc, d->whole, 0, 1);
}

/* RECV into the slot of a round, after the REDUCE that had it before. */
static uint32_t recv_add(struct doubling *d, uint32_t round, int32_t peer)
{
	uint32_t recv = plan_add_recv(
		d->b, peer, plan_run(PLAN_SCRATCH, d->slot, round % d->slots, 1));

	if (round >= d->slots && d->reduced[round - d->slots])
		plan_add_dep_same(d->b, recv, d->reduce[round - d->slots]);
	return recv;
}

/* DST = lower ranks op higher ranks. */
static uint32_t reduce_add(struct doubling *d, uint32_t round, uint32_t recv,
			   bool own_first)
{
	struct plan_range own = acc_range(d);
	struct plan_range in = plan_run(PLAN_SCRATCH, d->slot, round % d->slots, 1);
	uint32_t reduce = plan_add_reduce(d->b, plan_run(PLAN_DST, d->whole, 0, 1),
					  own_first ? own : in, own_first ? in : own);

	plan_add_dep_same(d->b, reduce, recv);
	d->reduce[round] = reduce;
	d->reduced[round] = true;
	d->acc = PLAN_DST;
	d->writer = reduce;
	d->written = true;
	return reduce;
}

static uint32_t send_add(struct doubling *d, int32_t peer, struct plan_range at_peer)
{
	uint32_t send = plan_add_send(d->b, peer, acc_range(d), at_peer);

	if (d->written)
		plan_add_dep_same(d->b, send, d->writer);
	return send;
}

static void rounds_add(struct doubling *d, int64_t id, int64_t ranks, int64_t extra)
{
	uint32_t round = d->fold, reduce = 0;

	for (int64_t dist = 1; dist < ranks; dist *= 2, round++) {
		int64_t other = id ^ dist;
		int32_t peer = (int32_t)(other < extra ? 2 * other : other + extra);
		bool overwrites = d->acc == PLAN_DST;
		uint32_t recv = recv_add(d, round, peer);
		uint32_t send = send_add(
			d, peer, plan_run(PLAN_SCRATCH, d->slot, round % d->slots, 1));

		reduce = reduce_add(d, round, recv, id < other);
		/* The SEND itself waited for the REDUCE before. */
		if (overwrites)
			plan_add_dep_same(d->b, reduce, send);
	}
	/* All that go on divide the same bits, once; the folded ranks get the quotient.
	 */
	if (d->call->average)
		plan_set_scale(d->b, reduce);
}

/* An odd rank of the first ones: gives, and gets the result. */
static void folded_add(struct doubling *d)
{
	int32_t peer = d->call->rank - 1;
	uint32_t send = send_add(d, peer, plan_run(PLAN_SCRATCH, d->slot, 0, 1));
	uint32_t recv = plan_add_recv(d->b, peer, plan_run(PLAN_DST, d->whole, 0, 1));

	if (d->call->in_place)
		plan_add_dep_same(d->b, recv, send);
}

static void steps_add(struct doubling *d)
{
	const struct plan_call *call = d->call;
	int64_t ranks = 1, extra, id;
	uint32_t rounds = 0, fold = 0;
	bool folds;

	for (; ranks * 2 <= call->size; ranks *= 2)
		rounds++;
	extra = call->size - ranks;
	d->fold = extra > 0;
	d->slots = slots_for(call, rounds + d->fold);
	d->slot = plan_add_balanced(d->b, call->count * d->slots, d->slots);
	if (call->rank < 2 * extra && call->rank % 2) {
		folded_add(d);
		return;
	}
	plan_need_scratch(d->b, call->count * d->slots);
	folds = call->rank < 2 * extra;
	id = folds ? call->rank / 2 : call->rank - extra;
	if (folds) {
		fold = recv_add(d, 0, call->rank + 1);
		reduce_add(d, 0, fold, true);
	}
	rounds_add(d, id, ranks, extra);
	if (folds) {
		uint32_t send =
			send_add(d, call->rank + 1, plan_run(PLAN_DST, d->whole, 0, 1));

		/* Out of place the partner's result waits for nothing, so its vector's
		 * arrival proves that it is ready. */
		if (!call->in_place)
			plan_set_proof(d->b, send, fold, 0, 0);
	}
}

int allreduce_doubling_build(const struct plan_call *call, struct plan **plan,
			     const char **why)
{
	int ret = build_check(call, 1, why);
	struct doubling d = {.call = call};

	if (ret)
		return ret;
	d.b = plan_builder_open("allreduce/recursive-doubling", call);
	if (!call->count)
		return plan_builder_finish(d.b, plan, why);
	d.whole = plan_add_balanced(d.b, call->count, 1);
	d.acc = call->in_place ? PLAN_DST : PLAN_SRC;
	if (call->size > 1)
		steps_add(&d);
	else if (!call->in_place)
		plan_add_copy(d.b, plan_run(PLAN_DST, d.whole, 0, 1),
			      plan_run(PLAN_SRC, d.whole, 0, 1));
	return plan_builder_finish(d.b, plan, why);
}
