/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-reduce by recursive halving and doubling, for any n. p is the largest power of two
 * in n; the ranks beyond it give their vector to a neighbour first and get the result at
 * the end, as in allreduce_doubling.c. The vector is cut into p blocks. A reduce-scatter
 * halves the range of blocks that a rank works on: with partners at distances p/2, ..., 1
 * it sends the half that it leaves and adds what it gets to the one that it keeps, until
 * one finished block is left. An all-gather with the same partners in the opposite order
 * doubles it again. Here because it moves as few bytes as the ring in log2 p steps
 * instead of p - 1: for vectors between short and long.
 * A block is reduced along one tree and divided once, by its last rank: all ranks get the
 * same bits.
 * Cost: 2 * log2 p * a + 2 * (p - 1) / p * m * b + (p - 1) / p * m * g, and 2 * (a + m *
 * b) + m * g where n is no power of two; m bytes, g per byte reduced.
 * Source: Rabenseifner, "Optimization of Collective Reduction Operations", 2004.
 */
#include "config.h"

#include "coll/algo/build.h"

#define HALVING_STEPS_MAX 32 /* rounds of the reduce-scatter, with the folding */

/* Scratch in bytes. Within it there are two vectors: a round's partial sums arrive in one
 * while those of the round before are added from the other. Longer vectors have one.
 * Roomy calls have one for each round, and add up there: so nothing is sent from DST that
 * arrives again. */
#define HALVING_SCRATCH (1024 * 1024)

struct halving {
	const struct plan_call *call;
	struct plan_builder *b;
	uint32_t blocks;   /* p */
	uint8_t part;	   /* the vector: p blocks */
	uint8_t slot_part; /* scratch: `slots` times that */
	uint32_t slots;
	enum plan_buf acc; /* where the sum so far is; SCRATCH: in the slot of the round
			      before */
	uint32_t rounds;   /* so far: of folding and reduce-scatter */
	uint32_t first;	   /* round in which this rank adds first */
	uint32_t reduce[HALVING_STEPS_MAX + 1]; /* by round */
	uint32_t recvs[HALVING_STEPS_MAX];	/* of the all-gather, in order */
	uint32_t recv_count;
};

/* One round of the reduce-scatter: what was sent, and from where. */
struct halving_sent {
	uint32_t send;
	bool from_dst;
};

static struct plan_range in_range(const struct halving *h, uint32_t first, uint32_t count)
{
	return plan_run(PLAN_SCRATCH, h->slot_part,
			h->rounds % h->slots * h->blocks + first, count);
}

static struct plan_range acc_range(const struct halving *h, uint32_t first,
				   uint32_t count)
{
	if (h->acc != PLAN_SCRATCH)
		return plan_run(h->acc, h->part, first, count);
	return plan_run(PLAN_SCRATCH, h->slot_part, (h->rounds - 1) * h->blocks + first,
			count);
}

/* What comes in this round is added to the same blocks of our own. */
static void round_recv_reduce(struct halving *h, int32_t peer, uint32_t first,
			      uint32_t count, bool last)
{
	const bool stays = h->call->roomy && !last;
	const struct plan_range in = in_range(h, first, count);
	const struct plan_range own = acc_range(h, first, count);
	const uint32_t recv = plan_add_recv(h->b, peer, in);
	const uint32_t reduce = plan_add_reduce(
		h->b, stays ? in : plan_run(PLAN_DST, h->part, first, count), own, in);

	if (h->rounds >= h->first + h->slots)
		plan_add_dep_same(h->b, recv, h->reduce[h->rounds - h->slots]);
	plan_add_dep_same(h->b, reduce, recv);
	if (h->rounds > h->first)
		plan_add_dep_same(h->b, reduce, h->reduce[h->rounds - 1]);
	h->reduce[h->rounds++] = reduce;
	h->acc = stays ? PLAN_SCRATCH : PLAN_DST;
}

/* From the half that is left, to the same blocks of the partner's scratch. */
static struct halving_sent round_send(struct halving *h, int32_t peer, uint32_t first,
				      uint32_t count)
{
	const struct halving_sent sent = {
		.send = plan_add_send(h->b, peer, acc_range(h, first, count),
				      in_range(h, first, count)),
		.from_dst = h->acc == PLAN_DST,
	};

	if (h->rounds > h->first)
		plan_add_dep_same(h->b, sent.send, h->reduce[h->rounds - 1]);
	return sent;
}

static void after_all(struct halving *h, uint32_t send)
{
	plan_add_dep_same(h->b, send, h->reduce[h->rounds - 1]);
	for (uint32_t i = 0; i < h->recv_count; i++)
		plan_add_dep_same(h->b, send, h->recvs[i]);
}

/* The rank with that number among the p. */
static int32_t rank_of(uint32_t id, int64_t extra)
{
	return (int32_t)(id < extra ? 2 * (int64_t)id : id + extra);
}

static void scatter_and_gather(struct halving *h, uint32_t id, int64_t extra)
{
	struct halving_sent sent[HALVING_STEPS_MAX];
	uint32_t step = 0;

	for (uint32_t dist = h->blocks / 2; dist >= 1; dist /= 2, step++) {
		const uint32_t keep = id & ~(dist - 1);
		const int32_t peer = rank_of(id ^ dist, extra);

		sent[step] = round_send(h, peer, keep ^ dist, dist);
		round_recv_reduce(h, peer, keep, dist, dist == 1);
	}
	if (h->call->average)
		plan_set_scale(h->b, h->reduce[h->rounds - 1]);
	for (uint32_t dist = 1; dist < h->blocks; dist *= 2) {
		const uint32_t have = id & ~(dist - 1);
		const struct plan_range out = plan_run(PLAN_DST, h->part, have, dist);
		const int32_t peer = rank_of(id ^ dist, extra);
		const uint32_t recv = plan_add_recv(
			h->b, peer, plan_run(PLAN_DST, h->part, have ^ dist, dist));

		/* These blocks were sent away in the round with the same partner. */
		if (sent[--step].from_dst)
			plan_add_dep_same(h->b, recv, sent[step].send);
		after_all(h, plan_add_send(h->b, peer, out, out));
		h->recvs[h->recv_count++] = recv;
	}
}

/* An odd rank of the first ones: gives, and gets the result. */
static void folded_add(struct halving *h)
{
	const int32_t peer = h->call->rank - 1;
	const struct plan_range dst = plan_run(PLAN_DST, h->part, 0, h->blocks);
	const uint32_t send =
		plan_add_send(h->b, peer, plan_run(h->acc, h->part, 0, h->blocks),
			      in_range(h, 0, h->blocks));
	const uint32_t recv = plan_add_recv(h->b, peer, dst);

	if (h->call->in_place)
		plan_add_dep_same(h->b, recv, send);
}

static void steps_add(struct halving *h)
{
	const struct plan_call *call = h->call;
	const int64_t extra = call->size - (int64_t)h->blocks;
	const bool folds = call->rank < 2 * extra;
	const struct plan_range whole = plan_run(PLAN_DST, h->part, 0, h->blocks);

	if (folds && call->rank % 2) {
		folded_add(h);
		return;
	}
	plan_need_scratch(h->b, call->count * h->slots);
	if (folds) {
		round_recv_reduce(h, call->rank + 1, 0, h->blocks, false);
	} else if (extra) {
		h->rounds = h->first = 1; /* the folding is a round for all */
	}
	scatter_and_gather(
		h, (uint32_t)(folds ? call->rank / 2 : call->rank - (int32_t)extra),
		extra);
	if (folds)
		after_all(h, plan_add_send(h->b, call->rank + 1, whole, whole));
}

/* Of the reduce-scatter, with the folding. */
static uint32_t rounds_for(int32_t size)
{
	uint32_t rounds = 0;

	while (((int64_t)1 << rounds) < size)
		rounds++;
	return rounds ? rounds : 1;
}

int allreduce_halving_build(const struct plan_call *call, struct plan **plan,
			    const char **why)
{
	int ret = build_check(call, call->roomy ? 33 : 2, why);
	struct halving h = {.call = call, .blocks = 1};

	if (ret)
		return ret;
	h.b = plan_builder_open("allreduce/halving-doubling", call);
	if (!call->count)
		return plan_builder_finish(h.b, plan, why);
	while ((int64_t)h.blocks * 2 <= call->size)
		h.blocks *= 2;
	h.part = plan_add_balanced(h.b, call->count, h.blocks);
	h.slots = call->count * 2 <= HALVING_SCRATCH / call->elem_size ? 2 : 1;
	if (call->roomy)
		h.slots = rounds_for(call->size);
	h.slot_part = plan_add_balanced(h.b, call->count * h.slots, h.blocks * h.slots);
	h.acc = call->in_place ? PLAN_DST : PLAN_SRC;
	if (call->size > 1)
		steps_add(&h);
	else if (!call->in_place)
		plan_add_copy(h.b, plan_run(PLAN_DST, h.part, 0, 1),
			      plan_run(PLAN_SRC, h.part, 0, 1));
	return plan_builder_finish(h.b, plan, why);
}
