/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank's plan among a million ranks costs what its steps cost: no walk over ranks,
 * parts or loops. Work is counted, not timed: basic blocks of coll/plan and coll/algo
 * that were run, which the compiler has report themselves (-fsanitize-coverage=trace-pc),
 * and what was asked of malloc().
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/plan/nodes.h"
#include "util/tap.h"

/* Of a plan of steps and dependencies together. A walk over all ranks takes more than a
 * million blocks; the most seen is 137, and 260 bytes. */
#define BLOCKS_PER_STEP 500
#define BYTES_PER_STEP	1000
#define STEPS_AT_LEAST	16 /* what a plan without any costs */

static uint64_t blocks, bytes;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	bytes += size;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	bytes += count * size;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	bytes += size;
	return __real_realloc(old, size);
}

/* The plan of that rank, within what its steps allow. */
static bool rank_good(const struct algo *algo, struct plan_call *call, int32_t rank)
{
	const uint64_t blocks_before = blocks, bytes_before = bytes;
	struct plan *plan = NULL;
	const char *why = "";
	uint64_t size, ran, asked;
	bool good;

	call->rank = rank;
	if (algo->build(call, &plan, &why)) {
		tap_diag("%s/%s, rank %d of %d: %s", algo->coll, algo->name, rank,
			 call->size, why);
		return false;
	}
	ran = blocks - blocks_before;
	asked = bytes - bytes_before;
	size = (uint64_t)plan->step_count + plan->dep_count + STEPS_AT_LEAST;
	good = ran && ran <= size * BLOCKS_PER_STEP && asked <= size * BYTES_PER_STEP;
	if (!good || getenv("WEFT_TEST_VERBOSE"))
		tap_diag("%s/%s, rank %d of %d: %u steps, %u dependencies, %" PRIu64
			 " blocks run, %" PRIu64 " bytes allocated",
			 algo->coll, algo->name, rank, call->size, plan->step_count,
			 plan->dep_count, ran, asked);
	plan_free(plan);
	return good;
}

static void algo_test(const struct algo *algo, int32_t size,
		      const struct plan_nodes *nodes)
{
	const int32_t rank[] = {0, 1, size / 2, size / 3, size - 2, size - 1};
	struct plan_call call = {.size = size,
				 .count = UINT64_C(1) << 30,
				 .elem_size = 4,
				 .vector = algo->vector,
				 .nodes = nodes};
	uint64_t before = blocks;
	bool good = true;

	if (!algo->supports(&call))
		return;
	good = blocks - before <= BLOCKS_PER_STEP;
	for (size_t i = 0; i < sizeof(rank) / sizeof(rank[0]); i++)
		good = rank_good(algo, &call, rank[i]) && good;
	tap_ok(good, "%s/%s of %d ranks on %d node(s): work and memory follow steps",
	       algo->coll, algo->name, size, nodes ? nodes->count : 1);
}

/* Whether a plan is taken that receives from peer, `advance` further on in each trip. */
static bool peers_taken(const struct plan_call *call, int32_t peer, int32_t advance,
			uint32_t trips)
{
	struct plan_builder *b = plan_builder_open("peers", call);
	struct plan *plan = NULL;
	const char *why = "";
	uint32_t step;
	bool taken;

	plan_loop_begin(b, trips);
	step = plan_add_recv(b, peer, plan_nothing());
	plan_set_advance(b, step, advance, 0, 0, 0);
	plan_loop_end(b);
	taken = plan_builder_finish(b, &plan, &why) == 0;
	if (taken)
		plan_free(plan);
	return taken;
}

/* Loops of as many trips as ranks: which one meets the own rank is calculated. */
static void peers_test(void)
{
	const struct plan_call call = {.rank = 5, .size = 1 << 20};
	const struct {
		int32_t peer, advance;
		uint32_t trips;
		bool good;
	} row[] = {
		{6, 1, (1 << 20) - 1, true},  {6, 1, 1 << 20, false},
		{4, -1, (1 << 20) - 1, true}, {4, -1, 1 << 20, false},
		{6, 2, 1 << 30, true},	      {7, 2, (1 << 19) - 1, true},
		{7, 2, 1 << 19, false},	      {8, 3, 1 << 19, true},
		{6, 0, 1 << 30, true},	      {5, 1, 1, false},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const uint64_t before = blocks;
		const bool taken =
			peers_taken(&call, row[i].peer, row[i].advance, row[i].trips);

		tap_ok(taken == row[i].good, "peer %d, %+d a trip, %u trips: %s",
		       row[i].peer, row[i].advance, row[i].trips,
		       taken ? "never the rank itself" : "refused");
		tap_ok(blocks - before <= 4 * BLOCKS_PER_STEP, "in %" PRIu64 " blocks",
		       blocks - before);
	}
}

static bool peers_walked(const struct plan_call *call, int32_t peer, int32_t advance,
			 uint32_t trips)
{
	for (int64_t t = 0; t < trips; t++) {
		if ((peer + advance * t - call->rank) % call->size == 0)
			return false;
	}
	return true;
}

/* xorshift */
static uint64_t chance(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 8;
}

/* What is calculated is what a walk would find. */
static void walks_test(uint64_t seed)
{
	unsigned wrong = 0, refused = 0;

	for (unsigned i = 0; i < 4000; i++) {
		const int32_t size = 1 + (int32_t)(chance(&seed) % 40);
		const struct plan_call call = {
			.size = size, .rank = (int32_t)(chance(&seed) % (uint64_t)size)};
		const int32_t peer = (int32_t)(chance(&seed) % (uint64_t)size),
			      advance = (int32_t)(chance(&seed) % 200) - 100;
		const uint32_t trips = (uint32_t)(chance(&seed) % 60);
		const bool taken = peers_taken(&call, peer, advance, trips);

		refused += !taken;
		if (taken == peers_walked(&call, peer, advance, trips))
			continue;
		wrong++;
		tap_diag("rank %d of %d, peer %d, %+d a trip, %u trips: %s", call.rank,
			 size, peer, advance, trips, taken ? "taken" : "refused");
	}
	tap_ok(!wrong && refused > 400 && refused < 3600,
	       "peers: as a walk over all trips says, %u of 4000 refused", refused);
	wrong = 0;
	for (unsigned i = 0; i < 4000; i++) {
		struct plan_part part = {.kind = PLAN_BALANCED,
					 .parts = 1 + (uint32_t)(chance(&seed) % 50),
					 .total = chance(&seed) % 300};
		const struct plan plan = {.part = &part, .part_count = 1};
		uint64_t longest = 0;

		for (uint32_t j = 0; j < part.parts; j++) {
			const uint64_t len = plan_part_length(&plan, NULL, 0, j);

			longest = len > longest ? len : longest;
		}
		wrong += longest != plan_part_longest(&part);
	}
	tap_ok(!wrong, "the longest part: as a walk over all parts says");
}

int main(void)
{
	const int32_t size[] = {1 << 20, (1 << 20) - 3, 1000000};
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

	seed += !seed;
	tap_diag("seed %" PRIu64 " (repeat with WEFT_SEED=%" PRIu64 ")", seed, seed);

	for (size_t s = 0; s < sizeof(size) / sizeof(size[0]); s++) {
		struct plan_nodes *nodes =
			plan_nodes_fake(PLAN_LAYOUT_BLOCKS, size[s], 8);

		if (!nodes)
			tap_bail("no memory for a map of %d ranks", size[s]);
		for (size_t a = 0; a < algo_count; a++)
			algo_test(&algo_table[a], size[s], nodes);
		free(nodes);
	}
	peers_test();
	walks_test(seed);
	return tap_done();
}
