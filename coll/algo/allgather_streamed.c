/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gather by doubling, streamed: the rounds and distances of allgather_ffbruck.c, for
 * any n, but what a round brought leaves for the peers of all later rounds at once, as a
 * message of its own, and does not wait until the rounds between are over. The own block
 * goes to all of them at the very start. Chunks of blocks go through all rounds one after
 * another. Here because the last and largest rounds have most of their bytes early, and a
 * slow link holds up only what came over it. No receive depends on anything: each place
 * is written once.
 * Cost: log2 n * a + (n - 1) * m * b in log2 n * (log2 n + 1) / 2 messages a chunk.
 * Source: streamed recursive doubling as in "Collective Communication for 100k+ GPUs",
 * 2025, in words; distances of a ring instead of pairs, so that any n will do.
 */
#include "config.h"

#include "coll/algo/build.h"

/* Chunk of a block, in bytes. */
#define STREAMED_GRANULE (128 * 1024)

/* Whose blocks: the own one, or what came in round `group`. */
#define GROUP_OWN (-1)

struct streamed {
	const struct plan_call *call;
	struct plan_builder *b;
	uint32_t chunks;
	uint32_t rounds;
	uint8_t part; /* DST: n blocks of so many chunks */
	uint8_t own;  /* SRC: one */
	/* By round and group + 1, the RECV. */
	uint32_t recv[BUILD_LEVELS_MAX][BUILD_LEVELS_MAX];
	bool came[BUILD_LEVELS_MAX][BUILD_LEVELS_MAX];
	/* By round: the multiples of its distance, from lo to hi - 1, that arrived. */
	int64_t lo[BUILD_LEVELS_MAX], hi[BUILD_LEVELS_MAX];
};

/* Blocks `first + i * step` from some rank on, i below count. */
struct blocks {
	int64_t first, step, count;
};

static int64_t distance(const struct streamed *s, uint32_t round)
{
	return INT64_C(1) << (s->rounds - round);
}

/* Which multiples m of a round's distance go: as in allgather_ffbruck.c. */
static void multiples_set(struct streamed *s, uint32_t round)
{
	const int64_t n = s->call->size, d = distance(s, round);
	const int64_t held = INT64_C(1) << round, q = n / d;

	s->lo[round] = 0;
	s->hi[round] = n % d == 0 && q < held ? q : held;
	if (n % d == d / 2 && d > 1) {
		s->hi[round] = q < held ? q : held;
		s->lo[round] = held - q - 1 > 0 ? held - q - 1 : 0;
	}
}

/* Of these, the ones that came in round `group`: odd multiples of half that distance. */
static struct blocks blocks_of(const struct streamed *s, uint32_t round, int group)
{
	struct blocks k = {0, 0, s->lo[round] == 0};
	int64_t unit, x;

	if (group == GROUP_OWN)
		return k;
	/* m = x * unit, x odd. */
	unit = INT64_C(1) << ((int)round - 1 - group);
	x = (s->lo[round] + unit - 1) / unit;
	x |= 1;
	k.first = x * unit * distance(s, round);
	k.step = 2 * unit * distance(s, round);
	k.count = 0;
	if (x * unit < s->hi[round])
		k.count = (s->hi[round] - 1 - x * unit) / (2 * unit) + 1;
	return k;
}

static struct plan_range range_of(const struct streamed *s, int64_t from, struct blocks k)
{
	const int64_t n = s->call->size;

	return (struct plan_range){
		.buf = PLAN_DST,
		.part = s->part,
		.first = build_mod(from + k.first, n) * s->chunks,
		.block = 1,
		.stride = (uint32_t)(k.step % n) * s->chunks,
		.count = (uint32_t)k.count,
	};
}

/* The blocks of a group arrived in that round, unless the round left some of them out
 * because they were there already: then any round before may have brought them. */
static bool came_in_group(const struct streamed *s, uint32_t group, struct blocks k)
{
	/* In units of the group's round's distance: 1/2 + m. */
	const int64_t d = distance(s, group), first = (k.first - d / 2) / d;
	const int64_t last = (k.first + (k.count - 1) * k.step - d / 2) / d;

	return first >= s->lo[group] && last < s->hi[group];
}

static void deps_add(struct streamed *s, uint32_t send, uint32_t round, int group,
		     struct blocks k)
{
	uint32_t from = (uint32_t)group, to = (uint32_t)group;

	if (group == GROUP_OWN)
		return;
	if (!came_in_group(s, (uint32_t)group, k)) {
		from = 0;
		to = round - 1;
	}
	for (uint32_t r = from; r <= to; r++) {
		for (uint32_t g = 0; g <= r; g++) {
			if (s->came[r][g])
				plan_add_dep_same(s->b, send, s->recv[r][g]);
		}
	}
}

static void round_add(struct streamed *s, uint32_t round)
{
	const struct plan_call *call = s->call;
	const int64_t d = distance(s, round), r = call->rank;
	const int32_t above = build_rank(call, r, d / 2);
	const int32_t below = build_rank(call, r, -(d / 2));

	multiples_set(s, round);
	for (int group = GROUP_OWN; group < (int)round; group++) {
		const struct blocks k = blocks_of(s, round, group);
		struct plan_range from, at;
		uint32_t recv, send;

		if (!k.count)
			continue;
		at = range_of(s, r, k);
		from = at;
		if (group == GROUP_OWN && !call->in_place)
			from = plan_run(PLAN_SRC, s->own, 0, 1);
		recv = plan_add_recv(s->b, above, range_of(s, above, k));
		plan_set_advance(s->b, recv, 0, 1, 0, 0);
		send = plan_add_send(s->b, below, from, at);
		plan_set_advance(s->b, send, 0, 1, 1, 0);
		deps_add(s, send, round, group, k);
		s->recv[round][group + 1] = recv;
		s->came[round][group + 1] = true;
	}
}

int allgather_streamed_build(const struct plan_call *call, struct plan **plan,
			     const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct streamed s = {.call = call};
	uint32_t copy;

	if (ret)
		return ret;
	s.b = plan_builder_open("allgather/streamed-doubling", call);
	if (!call->count)
		return plan_builder_finish(s.b, plan, why);
	s.chunks =
		build_chunks(call, call->count, STREAMED_GRANULE, (uint32_t)call->size);
	/* Cut alike in all blocks, as in allgather_ring.c. */
	s.part = plan_add_balanced(s.b, call->count * (uint64_t)call->size,
				   (uint32_t)call->size * s.chunks);
	s.own = plan_add_balanced(s.b, call->count, s.chunks);
	while (INT64_C(1) << s.rounds < call->size)
		s.rounds++;
	if (call->size == 1 && call->in_place)
		return plan_builder_finish(s.b, plan, why);
	plan_loop_begin(s.b, s.chunks);
	for (uint32_t round = 0; round < s.rounds; round++)
		round_add(&s, round);
	if (!call->in_place) {
		copy = plan_add_copy(
			s.b,
			plan_run(PLAN_DST, s.part, (uint32_t)call->rank * s.chunks, 1),
			plan_run(PLAN_SRC, s.own, 0, 1));
		plan_set_advance(s.b, copy, 0, 1, 1, 0);
	}
	plan_loop_end(s.b);
	return plan_builder_finish(s.b, plan, why);
}
