/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every collective x algorithm x type x operation x {in place or not} x count x number of
 * ranks against the reference, over every provider that is there. `make check` runs a
 * covering sample, drawn from a printed seed: every algorithm on every number of ranks,
 * and over those with every length and half of the types; the slow providers with fewer
 * of both. WEFT_TEST_FULL=1 runs all of it, WEFT_TEST_SEED=n repeats a sample.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define RUN_TIMEOUT_S 150
#define CALL_TIMEOUT  INT64_C(20000000)

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const enum weft_type matrix_types[] = {
	WEFT_INT32,  WEFT_INT64,  WEFT_FP16,	 WEFT_BF16,    WEFT_FP32,
	WEFT_FP64,   WEFT_INT8,	  WEFT_UINT8,	 WEFT_INT16,   WEFT_UINT16,
	WEFT_UINT32, WEFT_UINT64, WEFT_FP8_E4M3, WEFT_FP8_E5M2};
static const enum weft_op matrix_ops[] = {WEFT_SUM, WEFT_PROD, WEFT_MIN, WEFT_MAX,
					  WEFT_AVG, WEFT_BAND, WEFT_BOR, WEFT_BXOR};
/* Bytes: of the vector or of a block, up to a whole element. */
static const uint64_t matrix_bytes[] = {0, 1, 7, 8, 1024, 65536, 1024 * 1024 + 3};
static const int32_t matrix_ranks[] = {1, 2, 3, 4, 5, 7, 8};

struct matrix {
	const char *provider;
	uint32_t seed;
	bool full;
	const struct matrix_share *share;
	bool there; /* only to see whether the provider is */
};

/* How much of the sample a provider gets. */
struct matrix_share {
	const char *provider; /* NULL: any other */
	size_t lengths;	      /* the first so many */
	uint32_t ranks;	      /* a bit for each of matrix_ranks */
};
static const struct matrix_share matrix_shares[] = {
	/* One needs as many packets as a vector has thousands of bytes, another has no
	 * remote CQ data and no way to be quick. */
	{"weft+uet", 6, 1 << 1 | 1 << 4 | 1 << 6},
	{"udp;ofi_rxd", 5, 1 << 2 | 1 << 4},
	{"sockets", 6, 1 << 3},
	{NULL, COUNT_OF(matrix_bytes), UINT32_MAX},
};

static const struct matrix_share *share_of(const char *provider)
{
	const struct matrix_share *s = matrix_shares;

	while (s->provider && strcmp(s->provider, provider) != 0)
		s++;
	return s;
}

static enum weft_coll coll_of(const struct algo *algo)
{
	int coll = 0;

	while (coll < WEFT_COLL_COUNT &&
	       strcmp(weft_coll_name((enum weft_coll)coll), algo->coll) != 0)
		coll++;
	return (enum weft_coll)coll;
}

/* A case by where it is in each dimension. */
struct matrix_point {
	size_t algo, op, type, length;
	bool in_place;
};

static struct ref_case matrix_case(const struct matrix_point *at, int32_t size,
				   uint32_t salt)
{
	const struct algo *algo = &algo_table[at->algo];
	const enum weft_type type = matrix_types[at->type];
	const uint64_t elem = weft_type_size(type);

	return (struct ref_case){
		.salt = salt,
		.algorithm = algo->name,
		.coll = coll_of(algo),
		.in_place = at->in_place,
		.count = (matrix_bytes[at->length] + elem - 1) / elem,
		.type = type,
		.op = matrix_ops[at->op],
		.root = (int32_t)(salt % (uint32_t)size),
	};
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

static int matrix_one(struct ranks *r, struct weft_comm *comm,
		      const struct matrix_point *at, uint32_t salt)
{
	const struct ref_case c = matrix_case(at, r->size, salt);

	return case_run(r, comm, &c, matrix_compares(&c));
}

/* Every case there is. */
static int matrix_full(struct ranks *r, struct weft_comm *comm)
{
	const uint64_t per_algo = COUNT_OF(matrix_ops) * COUNT_OF(matrix_types) *
				  COUNT_OF(matrix_bytes) * 2;

	for (uint64_t i = 0; i < per_algo * algo_count; i++) {
		uint64_t rest = i % per_algo / 2;
		struct matrix_point at = {.algo = i / per_algo, .in_place = i % 2};
		struct ref_case c;

		at.length = rest % COUNT_OF(matrix_bytes);
		rest /= COUNT_OF(matrix_bytes);
		at.type = rest % COUNT_OF(matrix_types);
		at.op = rest / COUNT_OF(matrix_types);
		c = matrix_case(&at, r->size, (uint32_t)i);
		if (!matrix_repeats(&c) && matrix_one(r, comm, &at, (uint32_t)i))
			return RANKS_BAD;
	}
	return RANKS_GOOD;
}

static uint32_t draw(uint32_t *state, size_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % (uint32_t)below;
}

/* Each algorithm once; run is the place of the number of ranks in matrix_ranks. */
static int matrix_sample(struct ranks *r, struct weft_comm *comm, const struct matrix *m)
{
	uint32_t state = m->seed * 2654435761u + (uint32_t)r->size, run = 0;

	while (matrix_ranks[run] != r->size)
		run++;
	for (size_t i = 0; i < algo_count; i++) {
		struct matrix_point at = {.algo = i};
		struct ref_case c;

		/* What a collective does not have has one place only. */
		do {
			at.length = (m->seed + i + run) % m->share->lengths;
			at.type = (m->seed + i + 2 * run + draw(&state, 2)) %
				  COUNT_OF(matrix_types);
			at.in_place = draw(&state, 2);
			at.op = draw(&state, COUNT_OF(matrix_ops));
			c = matrix_case(&at, r->size, 0);
			if (c.coll == WEFT_COLL_BARRIER)
				at = (struct matrix_point){.algo = i};
			else if (!ref_reduces(c.coll))
				at.op = 0;
			c = matrix_case(&at, r->size, 0);
		} while (matrix_repeats(&c));
		if (matrix_one(r, comm, &at, draw(&state, 1 << 20)))
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
	if (!m->there)
		bad = m->full ? matrix_full(r, comm) : matrix_sample(r, comm, m);
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

	m->there = true;
	ranks_run(1, RUN_TIMEOUT_S, matrix_body, m, end);
	m->there = false;
	if (end[0] == RANKS_ABSENT) {
		tap_skip(1, "provider %s is not on this machine", m->provider);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(matrix_ranks); i++) {
		const int32_t size = matrix_ranks[i];

		if (!m->full && !(m->share->ranks & UINT32_C(1) << i))
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
	int count =
		ranks_providers("weft,weft+uet,tcp,shm,udp;ofi_rxd,sockets", names, 8);

	tap_diag("seed %u", m.seed);
	for (int i = 0; i < count; i++) {
		m.provider = names[i];
		m.share = share_of(names[i]);
		matrix_provider(&m);
	}
	return tap_done();
}
