/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every collective x algorithm x type x operation x {in place or not} x count x number of
 * ranks against the reference, over every provider that is there. `make check` runs a
 * sample drawn from a printed seed; WEFT_TEST_FULL=1 runs all of it, WEFT_TEST_SEED=n
 * repeats a sample.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define SAMPLE_PER_RUN 40
#define RUN_TIMEOUT_S  150
#define CALL_TIMEOUT   INT64_C(20000000)

static const enum weft_type matrix_types[] = {
	WEFT_INT32,  WEFT_INT64,  WEFT_FP16,	 WEFT_BF16,    WEFT_FP32,
	WEFT_FP64,   WEFT_INT8,	  WEFT_UINT8,	 WEFT_INT16,   WEFT_UINT16,
	WEFT_UINT32, WEFT_UINT64, WEFT_FP8_E4M3, WEFT_FP8_E5M2};
static const enum weft_op matrix_ops[] = {WEFT_SUM, WEFT_PROD, WEFT_MIN, WEFT_MAX,
					  WEFT_AVG, WEFT_BAND, WEFT_BOR, WEFT_BXOR};
static const uint64_t matrix_counts[] = {0, 1, 7, 8, 1024, 65536, 262147};
static const int32_t matrix_ranks[] = {1, 2, 3, 4, 5, 7, 8};

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

struct matrix {
	const char *provider;
	uint32_t seed;
	bool full;
	bool slow; /* one case per collective, up to 64 KiB */
};

static enum weft_coll coll_of(const struct algo *algo)
{
	int coll = 0;

	while (coll < WEFT_COLL_COUNT &&
	       strcmp(weft_coll_name((enum weft_coll)coll), algo->coll) != 0)
		coll++;
	return (enum weft_coll)coll;
}

/* Case number i of all there are; false behind the last. */
static bool matrix_case(uint64_t i, int32_t size, struct ref_case *c)
{
	const size_t types = COUNT_OF(matrix_types), ops = COUNT_OF(matrix_ops),
		     counts = COUNT_OF(matrix_counts);
	const uint64_t per_algo = types * ops * counts * 2;
	const struct algo *algo;

	if (i >= per_algo * algo_count)
		return false;
	memset(c, 0, sizeof(*c));
	c->salt = (uint32_t)i;
	algo = &algo_table[i / per_algo];
	i %= per_algo;
	c->algorithm = algo->name;
	c->coll = coll_of(algo);
	c->in_place = i % 2;
	i /= 2;
	c->count = matrix_counts[i % counts];
	i /= counts;
	c->type = matrix_types[i % types];
	i /= types;
	c->op = matrix_ops[i];
	c->root = (int32_t)(c->salt % (uint32_t)size);
	return true;
}

static uint64_t matrix_size(void)
{
	return COUNT_OF(matrix_types) * COUNT_OF(matrix_ops) * COUNT_OF(matrix_counts) *
	       2 * algo_count;
}

/* Dimensions that a collective does not have are not run many times over, nor what a
 * type does not have. */
static bool matrix_repeats(const struct ref_case *c)
{
	if (c->coll == WEFT_COLL_BARRIER)
		return c->op != WEFT_SUM || c->count || c->type != WEFT_INT32 ||
		       c->in_place;
	if ((c->coll == WEFT_COLL_BROADCAST || ref_apart(c->coll)) && c->in_place)
		return true;
	if (ref_reduces(c->coll))
		return !ref_supported(c->type, c->op);
	return c->op != WEFT_SUM;
}

/* Ranks must hold the same bits where all get the same. */
static bool matrix_compares(const struct ref_case *c)
{
	return c->coll == WEFT_COLL_ALLREDUCE || c->coll == WEFT_COLL_ALLGATHER;
}

static int matrix_slow(struct ranks *r, struct weft_comm *comm)
{
	int bad = RANKS_GOOD;

	for (size_t i = 0; i < algo_count && !bad; i++) {
		struct ref_case c = {.coll = coll_of(&algo_table[i]),
				     .algorithm = algo_table[i].name,
				     .type = WEFT_FP32,
				     .op = WEFT_SUM,
				     .count = 16384};

		bad = case_run(r, comm, &c, matrix_compares(&c));
	}
	return bad;
}

static int matrix_cases(struct ranks *r, struct weft_comm *comm, const struct matrix *m)
{
	uint32_t state = m->seed * 2654435761u + (uint32_t)r->size;
	const uint64_t all = matrix_size();
	const uint64_t runs = m->full ? all : SAMPLE_PER_RUN;
	struct ref_case c;

	for (uint64_t i = 0; i < runs; i++) {
		uint64_t at = i;

		do {
			state = state * 1664525u + 1013904223u;
			if (!m->full)
				at = (uint64_t)(state >> 8) % all;
			matrix_case(at, r->size, &c);
		} while (!m->full && matrix_repeats(&c));
		if (m->full && matrix_repeats(&c))
			continue;
		if (case_run(r, comm, &c, matrix_compares(&c)))
			return RANKS_BAD;
	}
	return RANKS_GOOD;
}

static int matrix_body(struct ranks *r)
{
	const struct matrix *m = r->arg;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, m->provider, CALL_TIMEOUT, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	bad = m->slow ? matrix_slow(r, comm) : matrix_cases(r, comm, m);
	if (bad)
		return bad;
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

static void matrix_provider(struct matrix *m)
{
	int end[RANKS_MAX];

	ranks_run(1, 30, matrix_body, m, end);
	if (end[0] == RANKS_ABSENT) {
		tap_skip(1, "provider %s is not on this machine", m->provider);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(matrix_ranks); i++) {
		const int32_t size = matrix_ranks[i];

		if (m->slow && size != 4)
			continue;
		tap_ok(ranks_run(size, m->full ? 3600 : RUN_TIMEOUT_S, matrix_body, m,
				 end),
		       "%s: %s of the matrix on %d ranks", m->provider,
		       m->full ? "all" : "a sample", size);
	}
}

int main(void)
{
	const char *seed = getenv("WEFT_TEST_SEED"), *full = getenv("WEFT_TEST_FULL");
	struct matrix m = {.seed = seed ? (uint32_t)strtoul(seed, NULL, 10)
					: (uint32_t)time(NULL),
			   .full = full && *full == '1'};
	char names[8][32];
	int count = ranks_providers("weft,tcp,shm,sockets", names, 8);

	tap_diag("seed %u", m.seed);
	for (int i = 0; i < count; i++) {
		m.provider = names[i];
		m.slow = strcmp(names[i], "sockets") == 0;
		matrix_provider(&m);
	}
	return tap_done();
}
