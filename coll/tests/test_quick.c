/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocking calls that are made again and again in the same places, which need no request
 * where all ranks come at once (coll/exec/lines_quick.c): each has its result, also where
 * a rank comes late, so that the call becomes a request in the middle, between other
 * calls, and when its plan was forgotten; ranks that disagree about one, a rank that
 * takes the communicator back and one that dies meanwhile are heard of.
 *
 *   test_quick [SEED]
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/api/memo.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define RUN_S	120
#define LONG_US INT64_C(60000000)
#define MOST	9000 /* elements of a block: several turns */
#define KINDS	9

/* A rank that lost a peer cannot close everything: it leaves with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

struct job {
	int (*run)(struct ranks *r, struct weft_comm *comm, const struct job *job);
	uint32_t seed;
	bool fails;
};

struct bufs {
	uint32_t src[2 * MOST], dst[2 * MOST];
};

static const enum weft_coll colls[KINDS] = {
	WEFT_COLL_BARRIER,   WEFT_COLL_BROADCAST,      WEFT_COLL_ALLGATHER,
	WEFT_COLL_ALLREDUCE, WEFT_COLL_REDUCE_SCATTER, WEFT_COLL_ALLTOALL,
	WEFT_COLL_REDUCE,    WEFT_COLL_GATHER,	       WEFT_COLL_SCATTER};

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

/* What a rank gives at a place, in a round. */
static uint32_t given(int32_t rank, uint32_t at, uint32_t round)
{
	return (uint32_t)rank * 7919u + at * 31u + round * 101u;
}

static enum weft_result call(struct weft_comm *comm, enum weft_coll coll, struct bufs *b,
			     uint64_t n)
{
	switch (coll) {
	case WEFT_COLL_BARRIER:
		return weft_barrier(comm, NULL);
	case WEFT_COLL_BROADCAST:
		return weft_broadcast(comm, b->dst, n, WEFT_UINT32, 1, NULL);
	case WEFT_COLL_ALLGATHER:
		return weft_allgather(comm, b->src, b->dst, n, WEFT_UINT32, NULL);
	case WEFT_COLL_ALLREDUCE:
		return weft_allreduce(comm, b->src, b->dst, n, WEFT_UINT32, WEFT_SUM,
				      NULL);
	case WEFT_COLL_REDUCE_SCATTER:
		return weft_reduce_scatter(comm, b->src, b->dst, n, WEFT_UINT32, WEFT_SUM,
					   NULL);
	case WEFT_COLL_ALLTOALL:
		return weft_alltoall(comm, b->src, b->dst, n, WEFT_UINT32, NULL);
	case WEFT_COLL_REDUCE:
		return weft_reduce(comm, b->src, b->dst, n, WEFT_UINT32, WEFT_SUM, 0,
				   NULL);
	case WEFT_COLL_GATHER:
		return weft_gather(comm, b->src, b->dst, n, WEFT_UINT32, 1, NULL);
	default:
		return weft_scatter(comm, b->src, b->dst, n, WEFT_UINT32, 0, NULL);
	}
}

/* What is at place i of block k of rank `me` afterwards, of two ranks; false: anything.
 */
static bool wanted(enum weft_coll coll, int32_t me, uint32_t n, uint32_t k, uint32_t i,
		   uint32_t round, uint32_t *value)
{
	const uint32_t own = (uint32_t)me * n + i;

	switch (coll) {
	case WEFT_COLL_BROADCAST:
		*value = given(1, i, round);
		return k == 0;
	case WEFT_COLL_ALLGATHER:
		*value = given((int32_t)k, i, round);
		return true;
	case WEFT_COLL_ALLREDUCE:
		*value = given(0, i, round) + given(1, i, round);
		return k == 0;
	case WEFT_COLL_REDUCE_SCATTER:
		*value = given(0, own, round) + given(1, own, round);
		return k == 0;
	case WEFT_COLL_ALLTOALL:
		*value = given((int32_t)k, own, round);
		return true;
	case WEFT_COLL_REDUCE:
		*value = given(0, i, round) + given(1, i, round);
		return k == 0 && me == 0;
	case WEFT_COLL_GATHER:
		*value = given((int32_t)k, i, round);
		return me == 1;
	case WEFT_COLL_SCATTER:
		*value = given(0, own, round);
		return k == 0;
	default:
		return false;
	}
}

static int check(struct ranks *r, enum weft_coll coll, const struct bufs *b, uint32_t n,
		 uint32_t round)
{
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t want;

			if (!wanted(coll, r->rank, n, k, i, round, &want) ||
			    b->dst[k * n + i] == want)
				continue;
			return ranks_say(r,
					 "round %u, %s of %u: place %u of block %u is "
					 "%u, must be %u",
					 round, weft_coll_name(coll), n, i, k,
					 b->dst[k * n + i], want);
		}
	}
	return RANKS_GOOD;
}

static int one(struct ranks *r, struct weft_comm *comm, enum weft_coll coll,
	       struct bufs *b, uint32_t n, uint32_t round)
{
	for (uint32_t i = 0; i < 2 * n; i++) {
		b->src[i] = given(r->rank, i, round);
		b->dst[i] = coll == WEFT_COLL_BROADCAST ? b->src[i] : 0xdeadbeef;
	}
	if (call(comm, coll, b, n) != WEFT_SUCCESS)
		return ranks_say(r, "round %u, %s of %u: %s", round, weft_coll_name(coll),
				 n, weft_error_detail());
	return check(r, coll, b, n, round);
}

/* ---- parts ---------------------------------------------------------------------------
 */

#define ROUNDS 60

static int again_run(struct ranks *r, struct weft_comm *comm, const struct job *job)
{
	static const uint32_t lengths[] = {1, 12, 13, 700, MOST};
	struct bufs *b = calloc(1, sizeof(*b));
	uint32_t state = job->seed, own = job->seed + (uint32_t)r->rank;
	int bad = RANKS_GOOD;

	for (uint32_t round = 0; b && !bad && round < ROUNDS; round++) {
		const uint32_t n = lengths[draw(&state, 5)];
		const uint32_t times = 1 + draw(&state, 6);

		for (uint32_t t = 0; !bad && t < times * KINDS; t++) {
			/* So late that the others have begun to wait otherwise. */
			if (draw(&own, 40) == 0)
				usleep(500);
			bad = one(r, comm, colls[t % KINDS], b, n, round * 100 + t);
		}
		if (!bad && times > 1 && n == 1 && !comm->memo[WEFT_COLL_ALLREDUCE]->plan)
			bad = ranks_say(r, "no all-reduce is remembered");
	}
	free(b);
	return b ? bad : RANKS_BAD;
}

/* More plans than a communicator remembers, between two calls of one. */
static int forget_run(struct ranks *r, struct weft_comm *comm, const struct job *job)
{
	struct bufs *b = calloc(1, sizeof(*b));
	int bad = RANKS_GOOD;

	(void)job;
	for (uint32_t round = 0; b && !bad && round < 3; round++) {
		for (uint32_t t = 0; !bad && t < 3; t++)
			bad = one(r, comm, WEFT_COLL_ALLREDUCE, b, 5, round * 10 + t);
		for (uint32_t n = 1; !bad && n < 80; n++)
			bad = one(r, comm, WEFT_COLL_ALLGATHER, b, n, n);
		if (!bad && comm->memo[WEFT_COLL_ALLREDUCE]->plan)
			bad = ranks_say(r, "a plan that is gone is remembered");
	}
	free(b);
	return b ? bad : RANKS_BAD;
}

/* The call that all have made before, but one makes another one. */
static int disagree_run(struct ranks *r, struct weft_comm *comm, const struct job *job)
{
	uint32_t x = 1, y = 0, z[2];
	enum weft_result got;

	(void)job;
	for (int i = 0; i < 5; i++) {
		if (weft_allreduce(comm, &x, &y, 1, WEFT_UINT32, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS)
			return ranks_say(r, "%s", weft_error_detail());
	}
	got = r->rank ? weft_allgather(comm, &x, z, 1, WEFT_UINT32, NULL)
		      : weft_allreduce(comm, &x, &y, 1, WEFT_UINT32, WEFT_SUM, NULL);
	if (got != WEFT_ERR_MISMATCH || !strstr(weft_error_detail(), "allgather") ||
	    !strstr(weft_error_detail(), "allreduce"))
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	/* Nobody leaves before the other has heard it. */
	return ranks_barrier(r) ? RANKS_GOOD : RANKS_BAD;
}

/* Rank 1 does not make the call: it takes the communicator back, or dies. */
static int gone_run(struct ranks *r, struct weft_comm *comm, const struct job *job)
{
	enum weft_result got = WEFT_SUCCESS;

	for (int i = 0; i < 5 && got == WEFT_SUCCESS; i++)
		got = weft_barrier(comm, NULL);
	if (got != WEFT_SUCCESS || !ranks_barrier(r))
		return ranks_say(r, "%s", weft_error_detail());
	if (r->rank == 1 && job->seed)
		kill(getpid(), SIGKILL);
	if (r->rank == 1)
		got = weft_comm_revoke(comm, "enough");
	else
		got = weft_barrier(comm, NULL);
	if (got != (r->rank == 1 ? WEFT_SUCCESS
		    : job->seed	 ? WEFT_ERR_PEER
				 : WEFT_ERR_REVOKED))
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	if (weft_barrier(comm, NULL) == WEFT_SUCCESS)
		return ranks_say(r, "the next call is good");
	return job->seed || ranks_barrier(r) ? RANKS_GOOD : RANKS_BAD;
}

static const char *provider;

static int body(struct ranks *r)
{
	const struct job *job = r->arg;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, provider, LONG_US, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	bad = job->run ? job->run(r, comm, job) : RANKS_GOOD;
	if (bad || job->fails)
		return bad;
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

int main(int argc, char **argv)
{
	struct job job = {.seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10)
					   : (uint32_t)time(NULL)};
	const uint32_t seed = job.seed;
	char names[8][32];
	const int count = ranks_providers("weft,tcp,shm", names, 8);
	int end[RANKS_MAX];

	for (int i = 0; i < count && !provider; i++) {
		provider = names[i];
		ranks_run(1, RUN_S, body, &job, end);
		if (end[0] == RANKS_ABSENT)
			provider = NULL;
	}
	if (!provider) {
		tap_skip(1, "no provider is on this machine");
		return tap_done();
	}
	tap_diag("seed %u", seed);
	job.run = again_run;
	tap_ok(ranks_run(2, RUN_S, body, &job, end),
	       "the same calls again and again, ranks late now and then");
	job.run = forget_run;
	tap_ok(ranks_run(2, RUN_S, body, &job, end), "a call whose plan was forgotten");
	job.run = disagree_run;
	job.fails = true;
	tap_ok(ranks_run(2, RUN_S, body, &job, end), "ranks that disagree hear so");
	job.run = gone_run;
	job.seed = 0;
	tap_ok(ranks_run(2, RUN_S, body, &job, end),
	       "a communicator is taken back from under it");
	job.seed = 1;
	ranks_run(2, RUN_S, body, &job, end);
	tap_ok(end[0] == RANKS_GOOD, "a rank that dies is named by the other");
	return tap_done();
}
