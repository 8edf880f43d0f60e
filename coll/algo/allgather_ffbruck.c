/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gather, farthest first: in ceil(log2 n) rounds with distances from n/2 down to 1,
 * for any n. Before round s rank q holds the blocks q + m * D (mod n), D = 2^(k - s), for
 * m below 2^s; it gives those that the rank D/2 below it lacks, and gets its own from the
 * one D/2 above. Blocks go straight to their final places, with a stride, so that nothing
 * is turned round at the end. Here because what is far away gets little: one block over
 * the longest distance, half of all over the shortest; where links between groups of
 * ranks are few that is what counts. Blocks are cut in two, so that halves of the next
 * round leave while halves of this one arrive. No receive depends on anything: each place
 * is written once. Cost: ceil(log2 n) * a + (n - 1) * m * b for blocks of m bytes; ranges
 * of many pieces are packed. Source: Bruck et al., 1997, with the distances turned round;
 * as in "Collective Communication for 100k+ GPUs", 2025, in words.
 */
#include "config.h"

#include "coll/algo/build.h"

/* From here on halves are worth their start-up time; bytes of a block. */
#define FFBRUCK_GRANULE (64 * 1024)
#define FFBRUCK_HALVES	2

struct ffbruck {
	const struct plan_call *call;
	struct plan_builder *b;
	uint32_t halves;
	uint8_t part; /* DST: n blocks of that many parts */
	uint8_t own;  /* SRC: one */
	uint32_t recv[FFBRUCK_HALVES][BUILD_LEVELS_MAX];
	uint32_t rounds;
	uint32_t copy;
};

/* Which multiples m of D go: from lo to hi - 1. The others are where they would go, by
 * way of the end of the ring. */
struct multiples {
	int64_t lo, hi;
};

static struct multiples multiples_of(int64_t n, int64_t d, int64_t held)
{
	const int64_t q = n / d;
	struct multiples m = {0, held};

	if (n % d == 0 && q < held)
		m.hi = q;
	if (n % d == d / 2 && d > 1) {
		m.hi = q < held ? q : held;
		m.lo = held - q - 1 > 0 ? held - q - 1 : 0;
	}
	return m;
}

/* Half `half` of the blocks that rank `from` gives. */
static struct plan_range given(const struct ffbruck *f, int64_t from, int64_t d,
			       struct multiples m, uint32_t half)
{
	const int64_t n = f->call->size;

	return (struct plan_range){
		.buf = PLAN_DST,
		.part = f->part,
		.first = build_mod(from + m.lo * d, n) * f->halves + half,
		.block = 1,
		.stride = (uint32_t)(d % n) * f->halves,
		.count = (uint32_t)(m.hi - m.lo),
	};
}

static void half_add(struct ffbruck *f, int64_t d, struct multiples m, uint32_t half)
{
	const struct plan_call *call = f->call;
	const int64_t r = call->rank, above = build_rank(call, r, d / 2);
	const struct plan_range held = given(f, r, d, m, half);
	const bool from_src = f->rounds == 0 && !call->in_place;
	uint32_t send;

	f->recv[half][f->rounds] =
		plan_add_recv(f->b, (int32_t)above, given(f, above, d, m, half));
	send = plan_add_send(f->b, build_rank(call, r, -(d / 2)),
			     from_src ? plan_run(PLAN_SRC, f->own, half, 1) : held, held);
	for (uint32_t k = 0; k < f->rounds; k++)
		plan_add_dep_same(f->b, send, f->recv[half][k]);
	if (f->rounds && !call->in_place)
		plan_add_dep_same(f->b, send, f->copy);
}

static void rounds_add(struct ffbruck *f)
{
	const struct plan_call *call = f->call;
	int64_t d = 1, held = 1;

	while (d < call->size)
		d *= 2;
	for (; d > 1; d /= 2, held *= 2) {
		const struct multiples m = multiples_of(call->size, d, held);

		for (uint32_t half = 0; half < f->halves; half++)
			half_add(f, d, m, half);
		/* After the first sends have been started from the source itself. */
		if (f->rounds++ == 0 && !call->in_place)
			f->copy = plan_add_copy(f->b,
						plan_run(PLAN_DST, f->part,
							 (uint32_t)call->rank * f->halves,
							 f->halves),
						plan_run(PLAN_SRC, f->own, 0, f->halves));
	}
}

int allgather_ffbruck_build(const struct plan_call *call, struct plan **plan,
			    const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct ffbruck f = {.call = call};

	if (ret)
		return ret;
	f.b = plan_builder_open("allgather/ffbruck", call);
	if (!call->count)
		return plan_builder_finish(f.b, plan, why);
	f.halves = build_chunks(call, call->count, FFBRUCK_GRANULE, (uint32_t)call->size);
	if (f.halves > FFBRUCK_HALVES)
		f.halves = FFBRUCK_HALVES;
	/* Cut alike in all blocks, as in allgather_ring.c. */
	f.part = plan_add_balanced(f.b, call->count * (uint64_t)call->size,
				   (uint32_t)call->size * f.halves);
	f.own = plan_add_balanced(f.b, call->count, f.halves);
	if (call->size > 1)
		rounds_add(&f);
	else if (!call->in_place)
		plan_add_copy(f.b, plan_run(PLAN_DST, f.part, 0, f.halves),
			      plan_run(PLAN_SRC, f.own, 0, f.halves));
	return plan_builder_finish(f.b, plan, why);
}
