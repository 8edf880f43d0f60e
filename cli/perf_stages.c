/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See perf_stages.h. A call that is overlapped is started, the caller computes half as
 * long again as the call takes alone, and waits. The computation is a fixed amount of
 * work and not a fixed time, so that what the progress thread takes away from it counts.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/perf_stages.h"
#include "coll/comm/comm.h"

enum {
	CALLS_LEAST = 3,
	CALLS_MOST = 100,
	LOOPS_TRIED = 200000, /* to find out how long one takes */
	COMPUTE_LEAST_NS = 20000,
};

struct stages {
	struct perf *p;
	const struct perf_op *op;
	struct weft_call call;
	struct weft_opts opts;
	int64_t time[CALLS_MOST];
	int calls;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median(int64_t *time, int count)
{
	qsort(time, (size_t)count, sizeof(*time), by_value);
	return (time[(count - 1) / 2] + time[count / 2]) / 2;
}

/* Work that needs nothing but the processor. */
static void compute(uint64_t loops)
{
	static volatile uint64_t sink;
	uint64_t x = sink | 1;

	for (uint64_t i = 0; i < loops; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

static uint64_t loops_for(int64_t ns)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		const int64_t begin = now_ns();
		int64_t took;

		compute(LOOPS_TRIED);
		took = now_ns() - begin;
		least = took < least ? took : least;
	}
	return (uint64_t)((double)ns * LOOPS_TRIED / (double)(least > 0 ? least : 1)) + 1;
}

static bool said(const struct stages *s, enum weft_result result)
{
	if (result)
		perf_say_error(s->p, s->op->name, result);
	return result == WEFT_SUCCESS;
}

/* Over all ranks. */
static bool join(struct stages *s, int64_t *value, uint64_t count, enum weft_op op)
{
	return said(
		s, weft_allreduce(s->p->comm, value, value, count, WEFT_INT64, op, NULL));
}

static bool together_begin(struct stages *s)
{
	return said(s, weft_barrier(s->p->comm, NULL));
}

/* ---- overlap ---------------------------------------------------------------------- */

/* One call with so many loops of work in it; *early: done before it was waited for. */
static bool overlap_call(struct stages *s, uint64_t loops, int64_t *ns, bool *early)
{
	struct weft_req *req;
	int64_t begin;
	int done = 0;

	if (!together_begin(s))
		return false;
	begin = now_ns();
	if (!said(s, weft_call_start(s->p->comm, &s->call, &s->opts, &req)))
		return false;
	if (loops) {
		compute(loops);
		if (!said(s, weft_req_test(req, &done)))
			return false;
	}
	if (!done && !said(s, weft_req_wait(req, WEFT_TIMEOUT_DEFAULT)))
		return false;
	*ns = now_ns() - begin;
	*early = done;
	return true;
}

/* The median of the calls, of the slowest rank; early: calls of all ranks. */
static bool overlap_calls(struct stages *s, uint64_t loops, int64_t *ns, int64_t *early)
{
	*early = 0;
	for (int i = 0; i < s->calls; i++) {
		bool done;

		if (!overlap_call(s, loops, &s->time[i], &done))
			return false;
		*early += done;
	}
	*ns = median(s->time, s->calls);
	return join(s, ns, 1, WEFT_MAX) && join(s, early, 1, WEFT_SUM);
}

static bool overlap(struct stages *s, struct perf_row *row)
{
	int64_t alone, together, work, early;
	uint64_t loops;

	if (!overlap_calls(s, 0, &alone, &early))
		return false;
	work = alone + alone / 2;
	loops = loops_for(work > COMPUTE_LEAST_NS ? work : COMPUTE_LEAST_NS);
	for (int i = 0; i < s->calls; i++) {
		const int64_t begin = now_ns();

		compute(loops);
		s->time[i] = now_ns() - begin;
	}
	work = median(s->time, s->calls);
	if (!join(s, &work, 1, WEFT_MAX) || !overlap_calls(s, loops, &together, &early))
		return false;
	row->overlap = (struct perf_overlap){
		.alone_us = (double)alone / 1e3,
		.work_us = (double)work / 1e3,
		.together_us = (double)together / 1e3,
		.early = (double)early / ((double)s->calls * s->p->size),
		.part = (double)(alone + work - together) / (double)alone,
	};
	if (row->overlap.part < 0)
		row->overlap.part = 0;
	if (row->overlap.part > 1)
		row->overlap.part = 1;
	return true;
}

/* ---- breakdown -------------------------------------------------------------------- */

enum { STAGES = 4 };

/* READY messages of this rank so far. */
static int64_t readys(const struct stages *s)
{
	struct weft_stats stats = {.size = sizeof(stats)};

	(void)weft_ctx_stats(s->p->ctx, &stats);
	return (int64_t)stats.readys;
}

/* One call; or, where there is a persistent one, its next start. */
static bool staged_call(struct stages *s, struct weft_req *persistent)
{
	struct weft_req *req = persistent;

	if (persistent ? !said(s, weft_req_start(req))
		       : !said(s, weft_call_start(s->p->comm, &s->call, &s->opts, &req)))
		return false;
	return said(s, weft_req_wait(req, WEFT_TIMEOUT_DEFAULT));
}

/* The median of each stage, on average over the ranks. The look into the executor is
 * what the public interface does not offer. */
static bool staged_calls(struct stages *s, struct weft_req *persistent,
			 struct perf_stage_times *out)
{
	int64_t(*time)[CALLS_MOST] = calloc(STAGES, sizeof(*time)), mean[STAGES + 1];
	struct exec_times at = {0};
	bool good = time != NULL;
	int64_t told = 0;

	for (int i = 0; i < s->calls && good; i++) {
		int64_t begin, end;

		good = together_begin(s);
		told -= readys(s);
		exec_time_calls(s->p->ctx->exec, &at);
		begin = now_ns();
		good = good && staged_call(s, persistent);
		end = now_ns();
		exec_time_calls(s->p->ctx->exec, NULL);
		told += readys(s);
		time[0][i] = at.begin - begin;
		time[1][i] = at.ready - at.begin;
		time[2][i] = at.issued > at.ready ? at.issued - at.ready : 0;
		time[3][i] = end - (at.issued > at.ready ? at.issued : at.ready);
	}
	for (int k = 0; k < STAGES && good; k++)
		mean[k] = median(time[k], s->calls);
	mean[STAGES] = told;
	free(time);
	if (!good || !join(s, mean, STAGES + 1, WEFT_SUM))
		return false;
	*out = (struct perf_stage_times){
		.call_us = (double)mean[0] / 1e3 / s->p->size,
		.control_us = (double)mean[1] / 1e3 / s->p->size,
		.issue_us = (double)mean[2] / 1e3 / s->p->size,
		.wait_us = (double)mean[3] / 1e3 / s->p->size,
		.readys = (double)mean[STAGES] / s->calls,
	};
	return true;
}

/* As a doubled call, whose first starts tell where its places are. */
static bool doubled_calls(struct stages *s, struct perf_stage_times *out)
{
	struct weft_call call = s->call;
	struct weft_opts opts = s->opts;
	struct weft_req *req;
	bool good;

	call.dst.addr = NULL;
	opts.flags = WEFT_DOUBLE;
	if (!said(s, weft_call_init(s->p->comm, &call, &opts, &req)))
		return false;
	good = staged_call(s, req) && staged_call(s, req) && staged_calls(s, req, out);
	return said(s, weft_req_free(req)) && good;
}

static bool may_double(const struct stages *s)
{
	/* Of such the destination is the library's, in host memory. */
	return !s->p->opts->in_place && !s->p->opts->cuda &&
	       (s->op->coll == WEFT_COLL_ALLGATHER ||
		s->op->coll == WEFT_COLL_ALLREDUCE ||
		s->op->coll == WEFT_COLL_REDUCE_SCATTER ||
		s->op->coll == WEFT_COLL_ALLTOALL);
}

static bool breakdown(struct stages *s, struct perf_row *row)
{
	row->has_doubled = may_double(s);
	return staged_calls(s, NULL, &row->stages) &&
	       (!row->has_doubled || doubled_calls(s, &row->doubled));
}

bool perf_stages(struct perf *p, const struct perf_op *op, struct perf_row *row)
{
	struct stages *s;
	bool good = true;

	if (!p->opts->overlap && !p->opts->breakdown)
		return true;
	s = calloc(1, sizeof(*s));
	if (!s)
		return said(&(struct stages){.p = p, .op = op}, WEFT_ERR_NOMEM);
	s->p = p;
	s->op = op;
	s->opts = (struct weft_opts)WEFT_OPTS_INIT;
	s->opts.algorithm = p->opts->algorithm;
	perf_memory_say(p, &s->opts);
	perf_call(p, op, row->count, &s->call);
	s->calls = row->iters < CALLS_LEAST  ? CALLS_LEAST
		   : row->iters > CALLS_MOST ? CALLS_MOST
					     : (int)row->iters;
	good = perf_prepare(p, op, row->count, true);
	if (good && p->opts->overlap)
		good = overlap(s, row);
	if (good && p->opts->breakdown)
		good = breakdown(s, row);
	free(s);
	return good;
}
