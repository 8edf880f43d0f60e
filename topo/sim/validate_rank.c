/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank of topo/sim/real: messages there and back between the first two ranks, sums on
 * one rank alone, then collectives, each after a barrier; a call takes as long as its
 * slowest rank. Rank 0 prints medians, a line each:
 *	pair BYTES SECONDS		(one way)
 *	work BYTES SECONDS
 *	COLLECTIVE ALGORITHM BYTES SECONDS
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/exec/reduce.h"
#include "topo/sim/validate.h"
#include "weft/weft.h"

enum { ROUNDS_MAX = 100, TRIPS = 21, ADDED = 1 << 18 };

struct rank {
	struct weft_comm *comm;
	unsigned rounds;
	uint64_t bytes;
	struct weft_opts opts;
	float *src, *dst; /* ranks * bytes of each */
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void need(enum weft_result result, const char *what)
{
	if (result == WEFT_SUCCESS)
		return;
	fprintf(stderr, "validate rank: %s: %s: %s\n", what, weft_strerror(result),
		weft_error_detail());
	exit(1);
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value, unsigned count)
{
	qsort(value, count, sizeof(*value), ascending);
	return value[count / 2];
}

/* ---- what parameters are taken from --------------------------------------------------
 */

static void trip(const struct rank *r, uint64_t bytes)
{
	const bool first = weft_comm_rank(r->comm) == 0;

	for (int way = 0; way < 2; way++) {
		if (first == (way == 0))
			need(weft_send(r->comm, r->src, bytes, WEFT_UINT8, first, NULL),
			     "send");
		else
			need(weft_recv(r->comm, r->dst, bytes, WEFT_UINT8, first, NULL),
			     "receive");
	}
}

static void pairs_run(const struct rank *r, uint64_t bytes, unsigned trips)
{
	double way[TRIPS];

	for (unsigned i = 0; i <= trips && weft_comm_rank(r->comm) < 2; i++) {
		const double begin = now();

		trip(r, bytes);
		if (i > 0) /* the first one connects */
			way[i - 1] = (now() - begin) / 2;
	}
	need(weft_barrier(r->comm, NULL), "barrier");
	if (weft_comm_rank(r->comm) == 0)
		printf("pair %llu %.9f\n", (unsigned long long)bytes, median(way, trips));
}

static void work_run(const struct rank *r)
{
	double took[TRIPS];

	for (unsigned i = 0; i < TRIPS; i++) {
		const double begin = now();

		reduce_apply(WEFT_FP32, WEFT_SUM, r->dst, r->dst, r->src,
			     ADDED / sizeof(float));
		took[i] = now() - begin;
	}
	if (weft_comm_rank(r->comm) == 0)
		printf("work %d %.9f\n", ADDED, median(took, TRIPS));
}

/* ---- what is compared ----------------------------------------------------------------
 */

static enum weft_result allreduce_run(const struct rank *r)
{
	return weft_allreduce(r->comm, r->src, r->dst, r->bytes / 4, WEFT_FP32, WEFT_SUM,
			      &r->opts);
}

static enum weft_result allgather_run(const struct rank *r)
{
	return weft_allgather(r->comm, r->src, r->dst, r->bytes / 4, WEFT_FP32, &r->opts);
}

static enum weft_result alltoall_run(const struct rank *r)
{
	return weft_alltoall(r->comm, r->src, r->dst, r->bytes / 4, WEFT_FP32, &r->opts);
}

static enum weft_result reduce_scatter_run(const struct rank *r)
{
	return weft_reduce_scatter(r->comm, r->src, r->dst, r->bytes / 4, WEFT_FP32,
				   WEFT_SUM, &r->opts);
}

static enum weft_result broadcast_run(const struct rank *r)
{
	return weft_broadcast(r->comm, r->dst, r->bytes / 4, WEFT_FP32, 0, &r->opts);
}

const struct validate_call validate_calls[] = {
	{"allreduce", "ring"},
	{"allreduce", "halving-doubling"},
	{"allreduce", "recursive-doubling"},
	{"allgather", "ring"},
	{"allgather", "ffbruck"},
	{"reduce_scatter", "ring"},
	{"broadcast", "chain"},
	{"broadcast", "binomial"},
	{"alltoall", "pairwise"},
};
const unsigned validate_call_count = sizeof(validate_calls) / sizeof(validate_calls[0]);

typedef enum weft_result call_run(const struct rank *r);

static call_run *run_of(const char *coll)
{
	static const struct {
		const char *coll;
		call_run *run;
	} runs[] = {{"allreduce", allreduce_run},
		    {"allgather", allgather_run},
		    {"alltoall", alltoall_run},
		    {"reduce_scatter", reduce_scatter_run},
		    {"broadcast", broadcast_run}};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		if (strcmp(runs[i].coll, coll) == 0)
			return runs[i].run;
	abort(); /* the table above names no other */
}

static void call_time(struct rank *r, const struct validate_call *call)
{
	call_run *run = run_of(call->coll);
	double took[ROUNDS_MAX];

	r->opts.algorithm = call->algo;
	for (unsigned i = 0; i <= r->rounds; i++) {
		double begin, own, most;

		need(weft_barrier(r->comm, NULL), "barrier");
		begin = now();
		need(run(r), call->coll);
		own = now() - begin;
		need(weft_allreduce(r->comm, &own, &most, 1, WEFT_FP64, WEFT_MAX, NULL),
		     "times");
		if (i > 0)
			took[i - 1] = most;
	}
	if (weft_comm_rank(r->comm) == 0) {
		printf("%s %s %llu %.9f\n", call->coll, call->algo,
		       (unsigned long long)r->bytes, median(took, r->rounds));
		fflush(stdout);
	}
}

static bool number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 10);
	return *text >= '1' && *text <= '9' && !*end && *value <= most;
}

int validate_rank(int argc, char **argv)
{
	struct rank r = {.opts = WEFT_OPTS_INIT};
	uint64_t rounds, longest = 4 * VALIDATE_PAIR_LONG;
	struct weft_ctx *ctx;

	if (argc < 2 || !number(argv[0], ROUNDS_MAX, &rounds))
		return -1;
	for (int i = 1; i < argc; i++) {
		if (!number(argv[i], 999999999, &r.bytes) || r.bytes % 4)
			return -1;
		longest = r.bytes > longest ? r.bytes : longest;
	}
	r.rounds = (unsigned)rounds;
	need(weft_ctx_open(NULL, &ctx), "open");
	need(weft_comm_create(ctx, NULL, &r.comm), "communicator");
	r.src = calloc((size_t)weft_comm_size(r.comm), longest);
	r.dst = calloc((size_t)weft_comm_size(r.comm), longest);
	if (!r.src || !r.dst) {
		fprintf(stderr, "validate rank: no memory\n");
		return 1;
	}
	pairs_run(&r, VALIDATE_PAIR_BRIEF, TRIPS);
	pairs_run(&r, VALIDATE_PAIR_LONG, 5);
	pairs_run(&r, 4 * VALIDATE_PAIR_LONG, 5);
	work_run(&r);
	for (int i = 1; i < argc; i++) {
		number(argv[i], 999999999, &r.bytes);
		for (unsigned c = 0; c < validate_call_count; c++)
			call_time(&r, &validate_calls[c]);
	}
	free(r.src);
	free(r.dst);
	need(weft_comm_destroy(r.comm), "destroy");
	need(weft_ctx_close(ctx), "close");
	return 0;
}
