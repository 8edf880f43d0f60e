/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all in ceil(log2 n) rounds. Blocks are numbered by how far they have to go:
 * block i of a rank is for the one i above it. In round k everybody passes those blocks
 * whose number has bit k to the rank 2^k above, where they keep their number; what has
 * gone all its bits is where it belongs. Here because no all-to-all has fewer rounds: for
 * blocks so short that starting a message costs more than carrying them log2 n / 2 times.
 *
 * All blocks are copied to scratch first, turned so that the rank's own is the first, and
 * from there to DST in the end, in the opposite order: in place costs nothing more. Each
 * round has scratch of its own for what arrives, so that no receive waits.
 * Cost: log2 n * (a + n/2 * m * b) and copying (2 n + n/2 * log2 n) blocks of m bytes.
 * Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
 * communications in multiport message-passing systems", 1997.
 */
#include "config.h"

#include <string.h>

#include "coll/algo/build.h"

struct bruck {
	const struct plan_call *call;
	struct plan_builder *b;
	uint8_t scratch;  /* in blocks: n that are at hand, then what arrives */
	uint32_t blocks;  /* of it, so far */
	uint32_t copy[2]; /* of the round before, which waited for those before it */
	uint32_t copies;
};

/* The blocks `held` go out and others of the same numbers come in. */
static uint32_t pass_add(struct bruck *u, int64_t dist, struct plan_range held)
{
	const struct plan_call *call = u->call;
	const uint32_t count = held.block * held.count;
	const struct plan_range in = plan_run(PLAN_SCRATCH, u->scratch, u->blocks, count);
	const uint32_t recv =
		plan_add_recv(u->b, build_rank(call, call->rank, -dist), in);
	const uint32_t send =
		plan_add_send(u->b, build_rank(call, call->rank, dist), held, in);
	uint32_t copy;

	for (uint32_t i = 0; i < u->copies; i++)
		plan_add_dep_same(u->b, send, u->copy[i]);
	copy = plan_add_copy(u->b, held, in);
	plan_add_dep_same(u->b, copy, recv);
	plan_add_dep_same(u->b, copy, send);
	u->blocks += count;
	return copy;
}

/* The numbers with a bit: whole runs of them, and one that the last number cuts off. */
static void round_add(struct bruck *u, uint32_t bit)
{
	const uint32_t n = (uint32_t)u->call->size, runs = n / (2 * bit);
	const uint32_t rest = n % (2 * bit);
	struct plan_range held = plan_run(PLAN_SCRATCH, u->scratch, bit, bit);
	uint32_t copy[2] = {0, 0}, copies = 0;

	held.stride = 2 * bit;
	held.count = runs;
	if (runs)
		copy[copies++] = pass_add(u, bit, held);
	if (rest > bit)
		copy[copies++] = pass_add(u, bit,
					  plan_run(PLAN_SCRATCH, u->scratch,
						   runs * 2 * bit + bit, rest - bit));
	memcpy(u->copy, copy, sizeof(copy));
	u->copies = copies;
}

/* Blocks that arrive in all rounds. */
static uint64_t arrivals(uint32_t n)
{
	uint64_t sum = 0;

	for (uint64_t bit = 1; bit < n; bit *= 2)
		sum += n / (2 * bit) * bit +
		       (n % (2 * bit) > bit ? n % (2 * bit) - bit : 0);
	return sum;
}

static void steps_add(struct bruck *u, struct build_blocks src, struct build_blocks dst)
{
	const struct plan_call *call = u->call;
	const uint32_t n = (uint32_t)call->size;
	struct plan_range back = plan_run(PLAN_DST, dst.part, (uint32_t)call->rank, 1);
	uint32_t last;

	u->copy[u->copies++] =
		plan_add_copy(u->b, plan_run(PLAN_SCRATCH, u->scratch, 0, n),
			      plan_run(PLAN_SRC, src.part, (uint32_t)call->rank, n));
	u->blocks = n;
	for (uint32_t bit = 1; bit < n; bit *= 2)
		round_add(u, bit);
	/* Block i came from the rank i below. */
	back.stride = n - 1;
	back.count = n;
	last = plan_add_copy(u->b, back, plan_run(PLAN_SCRATCH, u->scratch, 0, n));
	for (uint32_t i = 0; i < u->copies; i++)
		plan_add_dep_same(u->b, last, u->copy[i]);
}

int alltoall_bruck_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	struct bruck u = {.call = call};
	uint64_t blocks = call->size > 0 ? (uint64_t)call->size : 1;
	int ret;

	blocks += arrivals((uint32_t)blocks);
	ret = build_check(call, blocks, why);
	if (ret)
		return ret;
	u.b = plan_builder_open("alltoall/bruck", call);
	if (!call->count)
		return plan_builder_finish(u.b, plan, why);
	if (call->size > 1) {
		plan_need_scratch(u.b, call->count * blocks);
		u.scratch =
			plan_add_balanced(u.b, call->count * blocks, (uint32_t)blocks);
		steps_add(&u, build_send_blocks(u.b, call), build_recv_blocks(u.b, call));
	} else if (!call->in_place) {
		u.scratch = plan_add_balanced(u.b, call->count, 1);
		plan_add_copy(u.b, plan_run(PLAN_DST, u.scratch, 0, 1),
			      plan_run(PLAN_SRC, u.scratch, 0, 1));
	}
	return plan_builder_finish(u.b, plan, why);
}
