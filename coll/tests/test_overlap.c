/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gradient buckets and all-gathers ahead of their use: the results of each round are
 * those of plain calls, whatever the order in which pieces become ready on each rank; no
 * buffer is reused while the caller has it; what is wrong is refused.
 *
 *   test_overlap [SEED]
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/tests/ranks.h"
#include "util/tap.h"

#define TIMEOUT_US INT64_C(60000000)
#define PIECES	   9
#define ROUNDS	   6

struct overlap {
	const char *provider;
	uint32_t seed;
};

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

static int open_all(struct ranks *r, struct weft_ctx **ctx, struct weft_comm **comm)
{
	const struct overlap *arg = r->arg;
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	enum weft_result result;

	opts.provider = arg->provider;
	opts.timeout_us = TIMEOUT_US;
	opts.boot = &r->boot;
	opts.progress = WEFT_PROGRESS_THREAD;
	result = weft_ctx_open(&opts, ctx);
	if (result == WEFT_ERR_PROVIDER && strstr(weft_error_detail(), "no libfabric"))
		return RANKS_ABSENT;
	if (result != WEFT_SUCCESS || weft_comm_create(*ctx, NULL, comm) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int close_all(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* ---- buckets ------------------------------------------------------------------------
 */

static const uint64_t counts[PIECES] = {5, 0, 300, 20000, 1, 70000, 64, 64, 3};

static int32_t grad_of(int32_t rank, uint32_t piece, uint32_t round, uint64_t i)
{
	return (int32_t)((uint32_t)rank * 31 + piece * 7 + round * 1000 + i % 97);
}

static bool grads_open(struct weft_buf *piece)
{
	for (uint32_t p = 0; p < PIECES; p++) {
		piece[p] = (struct weft_buf){
			.addr = malloc((counts[p] + 1) * sizeof(int32_t)),
			.count = counts[p],
			.type = WEFT_INT32};
		if (!piece[p].addr)
			return false;
	}
	return true;
}

/* Pieces in an order of this rank's own, each written just before it is ready. */
static int bucket_round(struct ranks *r, struct weft_bucket *b, struct weft_buf *piece,
			uint32_t *state, uint32_t round)
{
	uint32_t order[PIECES] = {0};

	for (uint32_t i = 0; i < PIECES; i++) {
		const uint32_t at = draw(state, i + 1);

		order[i] = order[at];
		order[at] = i;
	}
	for (uint32_t i = 0; i < PIECES; i++) {
		const uint32_t p = order[i];
		int32_t *grad = piece[p].addr;

		for (uint64_t k = 0; k < counts[p]; k++)
			grad[k] = grad_of(r->rank, p, round, k);
		grad[counts[p]] = -1;
		if (weft_bucket_wait(b) != WEFT_ERR_ARG)
			return ranks_say(r, "waiting for what is not ready");
		if (weft_bucket_ready(b, p) != WEFT_SUCCESS)
			return ranks_say(r, "ready: %s", weft_error_detail());
		if (weft_bucket_ready(b, p) != WEFT_ERR_ARG)
			return ranks_say(r, "a piece that is ready twice");
	}
	if (weft_bucket_wait(b) != WEFT_SUCCESS)
		return ranks_say(r, "wait: %s", weft_error_detail());
	for (uint32_t p = 0; p < PIECES; p++) {
		const int32_t *grad = piece[p].addr;

		for (uint64_t k = 0; k < counts[p]; k++) {
			int32_t want = 0;

			for (int32_t rank = 0; rank < r->size; rank++)
				want += grad_of(rank, p, round, k);
			if (grad[k] != want)
				return ranks_say(r,
						 "round %u, piece %u, element %llu: "
						 "%d, must be %d",
						 round, p, (unsigned long long)k, grad[k],
						 want);
		}
		if (grad[counts[p]] != -1)
			return ranks_say(r, "piece %u was written behind its end", p);
	}
	return RANKS_GOOD;
}

static int bucket_body(struct ranks *r)
{
	/* Every piece alone; some together; all. */
	static const struct {
		uint64_t bytes;
		uint32_t calls;
	} sizes[] = {{1, PIECES - 1}, {1300, 5}, {1 << 30, 1}};
	const struct overlap *arg = r->arg;
	uint32_t state = arg->seed + (uint32_t)r->rank;
	struct weft_buf piece[PIECES];
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_all(r, &ctx, &comm);

	if (bad)
		return bad;
	if (!grads_open(piece))
		return ranks_say(r, "no memory");
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && !bad; s++) {
		struct weft_bucket_opts opts = WEFT_BUCKET_OPTS_INIT;
		struct weft_bucket *b;

		opts.bytes = sizes[s].bytes;
		if (weft_bucket_create(comm, piece, PIECES, WEFT_SUM, &opts, &b))
			return ranks_say(r, "create: %s", weft_error_detail());
		if (weft_bucket_calls(b) != sizes[s].calls)
			bad = ranks_say(r, "%llu bytes: %u all-reduces, must be %u",
					(unsigned long long)sizes[s].bytes,
					weft_bucket_calls(b), sizes[s].calls);
		for (uint32_t round = 0; round < ROUNDS && !bad; round++)
			bad = bucket_round(r, b, piece, &state, round);
		if (!bad && weft_bucket_destroy(b) != WEFT_SUCCESS)
			bad = ranks_say(r, "destroy: %s", weft_error_detail());
	}
	for (uint32_t p = 0; p < PIECES; p++)
		free(piece[p].addr);
	return bad ? bad : close_all(r, ctx, comm);
}

/* ---- prefetching --------------------------------------------------------------------
 */

#define SHARDS 5

static const uint64_t shard_counts[SHARDS] = {7, 40000, 0, 1, 900};

static uint16_t shard_value(int32_t rank, uint32_t shard, uint32_t round, uint64_t i)
{
	return (uint16_t)((uint32_t)rank * 131 + shard * 17 + round * 1001 + i % 89);
}

static int whole_check(struct ranks *r, const uint16_t *whole, uint32_t shard,
		       uint32_t round)
{
	const uint64_t count = shard_counts[shard];

	for (uint64_t i = 0; i < count * (uint64_t)r->size; i++) {
		const uint16_t want =
			shard_value((int32_t)(i / count), shard, round, i % count);

		if (whole[i] != want)
			return ranks_say(r,
					 "round %u, shard %u, element %llu: %u, must "
					 "be %u",
					 round, shard, (unsigned long long)i, whole[i],
					 want);
	}
	return RANKS_GOOD;
}

/* One round; each is checked when it was given, and again before the next is asked for,
 * when those after it have had time to come. */
static int prefetch_round(struct ranks *r, struct weft_prefetch *p,
			  struct weft_comm *comm, const uint32_t *order, uint32_t steps,
			  uint32_t round)
{
	for (uint32_t s = 0; s < steps; s++) {
		const uint32_t want = order ? order[s] : s;
		const void *whole;
		uint32_t shard;

		if (weft_prefetch_next(p, &whole, &shard) != WEFT_SUCCESS)
			return ranks_say(r, "next: %s", weft_error_detail());
		if (shard != want)
			return ranks_say(r, "step %u is shard %u, must be %u", s, shard,
					 want);
		if (whole_check(r, whole, shard, round))
			return RANKS_BAD;
		/* Everybody has it, and started what comes next. */
		if (weft_barrier(comm, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "barrier: %s", weft_error_detail());
		if (whole_check(r, whole, shard, round))
			return RANKS_BAD;
	}
	return RANKS_GOOD;
}

static int prefetch_run(struct ranks *r, struct weft_comm *comm, struct weft_buf *shard,
			uint32_t ahead, const uint32_t *order, uint32_t steps)
{
	struct weft_prefetch_opts opts = WEFT_PREFETCH_OPTS_INIT;
	struct weft_prefetch *p;
	int bad = RANKS_GOOD;

	opts.ahead = ahead;
	opts.order = order;
	opts.steps = order ? steps : 0;
	if (weft_prefetch_create(comm, shard, SHARDS, &opts, &p) != WEFT_SUCCESS)
		return ranks_say(r, "create: %s", weft_error_detail());
	for (uint32_t round = 0; round < 3 && !bad; round++) {
		for (uint32_t k = 0; k < SHARDS; k++) {
			uint16_t *at = shard[k].addr;

			for (uint64_t i = 0; i < shard_counts[k]; i++)
				at[i] = shard_value(r->rank, k, round, i);
		}
		bad = prefetch_round(r, p, comm, order, steps, round);
	}
	/* In the middle of a round, too. */
	if (!bad && weft_prefetch_next(p, &(const void *){NULL}, NULL) != WEFT_SUCCESS)
		bad = ranks_say(r, "next: %s", weft_error_detail());
	if (!bad && weft_prefetch_destroy(p) != WEFT_SUCCESS)
		bad = ranks_say(r, "destroy: %s", weft_error_detail());
	return bad;
}

static int prefetch_body(struct ranks *r)
{
	static const uint32_t there_and_back[] = {0, 1, 2, 3, 4, 3, 1, 1, 0};
	struct weft_buf shard[SHARDS];
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_all(r, &ctx, &comm);

	if (bad)
		return bad;
	for (uint32_t k = 0; k < SHARDS; k++)
		shard[k] = (struct weft_buf){
			.addr = malloc((shard_counts[k] + 1) * sizeof(uint16_t)),
			.count = shard_counts[k],
			.type = WEFT_BF16};
	for (uint32_t ahead = 0; ahead < 8 && !bad; ahead = ahead * 2 + 1) {
		bad = prefetch_run(r, comm, shard, ahead, NULL, SHARDS);
		if (!bad)
			bad = prefetch_run(r, comm, shard, ahead, there_and_back, 9);
	}
	for (uint32_t k = 0; k < SHARDS; k++)
		free(shard[k].addr);
	return bad ? bad : close_all(r, ctx, comm);
}

/* ---- what is wrong ------------------------------------------------------------------
 */

static int refused(struct ranks *r, enum weft_result got, enum weft_result want,
		   const char *words)
{
	if (got == want && strstr(weft_error_detail(), words))
		return RANKS_GOOD;
	return ranks_say(r, "%s: \"%s\" has no \"%s\"", weft_strerror(got),
			 weft_error_detail(), words);
}

static int wrong_buckets(struct ranks *r, struct weft_comm *comm)
{
	struct weft_bucket_opts opts = WEFT_BUCKET_OPTS_INIT;
	float a[4] = {1, 2, 3, 4};
	struct weft_buf piece[2] = {{.addr = a, .count = 2, .type = WEFT_FP32},
				    {.addr = a + 2, .count = 2, .type = WEFT_FP32}};
	struct weft_bucket *b;
	int bad = refused(r, weft_bucket_create(NULL, piece, 2, WEFT_SUM, NULL, &b),
			  WEFT_ERR_ARG, "comm is NULL");

	bad |= refused(r, weft_bucket_create(comm, NULL, 2, WEFT_SUM, NULL, &b),
		       WEFT_ERR_ARG, "piece is NULL");
	bad |= refused(r, weft_bucket_create(comm, piece, 2, WEFT_BAND, NULL, &b),
		       WEFT_ERR_UNSUPPORTED, "fp32");
	opts.flags = 1;
	bad |= refused(r, weft_bucket_create(comm, piece, 2, WEFT_SUM, &opts, &b),
		       WEFT_ERR_UNSUPPORTED, "flags");
	piece[1].type = WEFT_INT32;
	bad |= refused(r, weft_bucket_create(comm, piece, 2, WEFT_SUM, NULL, &b),
		       WEFT_ERR_ARG, "one type");
	piece[1].type = WEFT_FP32;
	piece[1].addr = NULL;
	bad |= refused(r, weft_bucket_create(comm, piece, 2, WEFT_SUM, NULL, &b),
		       WEFT_ERR_ARG, "piece 1 is NULL");
	piece[1].addr = a + 2;
	if (weft_bucket_create(comm, piece, 2, WEFT_SUM, NULL, &b) != WEFT_SUCCESS)
		return ranks_say(r, "create: %s", weft_error_detail());
	bad |= refused(r, weft_bucket_ready(b, 2), WEFT_ERR_ARG, "there are 2");
	bad |= refused(r, weft_bucket_wait(b), WEFT_ERR_ARG, "piece 0 is not");
	if (weft_bucket_ready(b, 1) || weft_bucket_ready(b, 0) || weft_bucket_wait(b))
		bad = ranks_say(r, "a round: %s", weft_error_detail());
	if (a[0] != 1 || a[3] != 4)
		bad = ranks_say(r, "the sum over one rank is another");
	if (weft_bucket_destroy(b) != WEFT_SUCCESS)
		bad = ranks_say(r, "destroy: %s", weft_error_detail());
	return bad;
}

static int wrong_body(struct ranks *r)
{
	struct weft_prefetch_opts opts = WEFT_PREFETCH_OPTS_INIT;
	uint8_t a[4] = {0};
	struct weft_buf shard = {.addr = a, .count = 4, .type = WEFT_UINT8};
	const uint32_t order[] = {0, 1};
	struct weft_prefetch *p;
	const void *whole;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_all(r, &ctx, &comm);

	if (bad)
		return bad;
	bad = wrong_buckets(r, comm);
	opts.order = order;
	opts.steps = 2;
	bad |= refused(r, weft_prefetch_create(comm, &shard, 1, &opts, &p), WEFT_ERR_ARG,
		       "order[1] is 1, there are 1");
	opts.order = NULL;
	bad |= refused(r, weft_prefetch_create(comm, &shard, 1, &opts, &p), WEFT_ERR_ARG,
		       "order is NULL");
	opts.steps = 0;
	opts.ahead = 1000;
	bad |= refused(r, weft_prefetch_create(comm, &shard, 1, &opts, &p), WEFT_ERR_ARG,
		       "ahead is 1000");
	shard.count = UINT64_MAX;
	bad |= refused(r, weft_prefetch_create(comm, &shard, 1, NULL, &p), WEFT_ERR_ARG,
		       "memory can hold");
	if (weft_prefetch_create(comm, NULL, 0, NULL, &p) != WEFT_SUCCESS)
		return ranks_say(r, "create: %s", weft_error_detail());
	bad |= refused(r, weft_prefetch_next(p, &whole, NULL), WEFT_ERR_ARG, "no shards");
	if (weft_prefetch_destroy(p) != WEFT_SUCCESS)
		bad = ranks_say(r, "destroy: %s", weft_error_detail());
	return bad ? bad : close_all(r, ctx, comm);
}

int main(int argc, char **argv)
{
	const char *given = argc > 1 ? argv[1] : getenv("WEFT_TEST_SEED");
	struct overlap arg = {.seed = given ? (uint32_t)strtoul(given, NULL, 0)
					    : (uint32_t)time(NULL)};
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	tap_diag("seed %u", arg.seed);
	for (int i = 0; i < count; i++) {
		bool good;

		arg.provider = names[i];
		good = ranks_run(3, 200, bucket_body, &arg, end);
		if (!good && end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(good, "%s: buckets, ready in any order", names[i]);
		tap_ok(ranks_run(3, 200, prefetch_body, &arg, end),
		       "%s: all-gathers ahead of their use", names[i]);
		tap_ok(ranks_run(1, 200, wrong_body, &arg, end),
		       "%s: what is wrong is refused", names[i]);
	}
	return tap_done();
}
