/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One measurement: a call with a full check first, then timed calls that begin together
 * and of which samples are checked, then a full check again. A call took as long as its
 * slowest rank. Everything but the call itself is outside the times.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/perf.h"
#include "coll/comm/comm.h"

enum {
	FULL_CHECK_BYTES = 4096, /* up to here every call is checked in full */
	ITERS_LEAST = 3,
	ITERS_MOST = 1000, /* of those that the budget decides */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void perf_say_error(const struct perf *p, const char *what, enum weft_result result)
{
	fprintf(stderr, "weft %s: rank %" PRId32 ": %s: %s: %s\n", p->opts->who, p->rank,
		what, weft_strerror(result), weft_error_detail());
}

/* Adds what one call moved. */
static void stats_add(struct perf *p, const struct weft_stats *a,
		      const struct weft_stats *b)
{
	struct weft_stats *m = &p->moved;

	m->calls += b->calls - a->calls;
	m->puts += b->puts - a->puts;
	m->put_bytes += b->put_bytes - a->put_bytes;
	m->msgs += b->msgs - a->msgs;
	m->msg_bytes += b->msg_bytes - a->msg_bytes;
	m->readys += b->readys - a->readys;
	m->handles += b->handles - a->handles;
	m->staged_bytes += b->staged_bytes - a->staged_bytes;
	m->plan_copy_bytes += b->plan_copy_bytes - a->plan_copy_bytes;
	m->reduced_bytes += b->reduced_bytes - a->reduced_bytes;
}

struct cell {
	struct perf *p;
	const struct perf_op *op;
	uint64_t count;
	struct weft_opts opts;
};

/* One call with new data, checked. *ns is the time of the call alone. */
static bool cell_call(struct cell *c, bool sampled, int64_t *ns)
{
	struct perf *p = c->p;
	struct weft_stats before = {.size = sizeof(before)}, after = before;
	enum weft_result result = WEFT_SUCCESS;
	bool right = true;
	int64_t begin;

	p->round++;
	if (!perf_prepare(p, c->op, c->count, sampled))
		return false;
	if (c->op->coll != WEFT_COLL_BARRIER)
		result = weft_barrier(p->comm, NULL);
	(void)weft_ctx_stats(p->ctx, &before);
	begin = now_ns();
	if (!result)
		result = c->op->call(p, c->count, &c->opts);
	*ns = now_ns() - begin;
	if (result) {
		perf_say_error(p, c->op->name, result);
		return false;
	}
	(void)weft_ctx_stats(p->ctx, &after);
	stats_add(p, &before, &after);
	p->moved_calls++;
	p->times[1]++;
	/* A rank that is full of errors says so once per size. */
	if (p->times[0] == 0 && !perf_check(p, c->op, c->count, sampled, &right))
		return false;
	p->times[0] += !right;
	return true;
}

/*
 * How many calls come next; 0: enough. Rank 0 decides, by what the calls so far have
 * taken, and the others obey: one estimate from one call would be far off on a busy host.
 */
static bool agree_batch(struct cell *c, int64_t done, int64_t took_ns, int64_t budget_ns,
			int64_t *batch)
{
	int64_t most = c->p->opts->iters ? c->p->opts->iters : ITERS_MOST,
		n = most - done;
	enum weft_result result;

	if (c->p->opts->iters == 0) {
		if (done == 0)
			n = took_ns < budget_ns ? ITERS_LEAST : 1;
		else if (took_ns >= budget_ns)
			n = 0;
		else if (n > (budget_ns - took_ns) * done / (took_ns + 1))
			n = (budget_ns - took_ns) * done / (took_ns + 1);
		if (n > done && done > 0)
			n = done;
	}
	result = weft_broadcast(c->p->comm, &n, 1, WEFT_INT64, 0, NULL);
	if (result)
		perf_say_error(c->p, "broadcast of the number of calls", result);
	*batch = n;
	/* A rank does not trust rank 0 with its memory. */
	return !result && n >= 0 && n <= PERF_ITERS_MAX - done;
}

static bool timed_calls(struct cell *c, int64_t begin, int64_t budget_ns, int64_t *iters)
{
	bool sampled = c->count * c->p->elem > FULL_CHECK_BYTES;
	int64_t batch, done = 0;

	do {
		if (!agree_batch(c, done, now_ns() - begin, budget_ns, &batch))
			return false;
		for (int64_t end = done + batch; done < end; done++)
			if (!cell_call(c, sampled, &c->p->times[PERF_FLAGS + done]))
				return false;
	} while (batch > 0 && done < PERF_ITERS_MAX);
	*iters = done;
	return true;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Between which of the sorted times the median of all calls like these is, with 95 %: by
 * the binomial distribution of how many lie below it, which takes at least 6 of them. */
static void confidence(const int64_t *sorted, int64_t n, struct perf_row *row)
{
	const double half = 0.98 * sqrt((double)n);
	int64_t low = (int64_t)floor((double)n / 2 - half),
		high = (int64_t)ceil((double)n / 2 + half);

	row->low_us = row->high_us = NAN;
	if (n < 6)
		return;
	low = low < 0 ? 0 : low;
	high = high > n - 1 ? n - 1 : high;
	row->low_us = (double)sorted[low] / 1e3;
	row->high_us = (double)sorted[high] / 1e3;
}

/* Everybody's times become the row: the slowest rank's of each call. */
static bool summarize(struct cell *c, int64_t iters, struct perf_row *row)
{
	struct perf *p = c->p;
	uint64_t len = (uint64_t)iters + PERF_FLAGS;
	double bytes = c->op->bytes((double)row->bytes, p->size);
	int64_t *slowest = p->times + PERF_FLAGS;
	enum weft_result result;

	result = weft_allgather(p->comm, p->times, p->all, len, WEFT_INT64, NULL);
	if (result) {
		perf_say_error(p, "all-gather of the times", result);
		return false;
	}
	for (int32_t r = 0; r < p->size; r++) {
		const int64_t *of = p->all + (size_t)r * len;

		row->wrong += (uint64_t)of[0];
		for (int64_t i = 0; i < iters; i++)
			if (of[PERF_FLAGS + i] > slowest[i])
				slowest[i] = of[PERF_FLAGS + i];
	}
	qsort(slowest, (size_t)iters, sizeof(*slowest), by_value);
	row->iters = iters;
	row->median_us = (double)(slowest[(iters - 1) / 2] + slowest[iters / 2]) / 2e3;
	row->p99_us = (double)slowest[(iters * 99 + 99) / 100 - 1] / 1e3;
	confidence(slowest, iters, row);
	row->alg_gbps = row->median_us > 0 ? bytes / row->median_us / 1e3 : 0;
	row->bus_gbps = row->alg_gbps * c->op->bus_factor(p->size);
	return true;
}

void perf_call(struct perf *p, const struct perf_op *op, uint64_t count,
	       struct weft_call *call)
{
	const uint64_t src = count * (op->src_blocks ? 1 : (uint64_t)p->size),
		       dst = count * (op->dst_blocks ? 1 : (uint64_t)p->size);
	const size_t own = (size_t)p->rank * count * p->elem;
	const enum weft_type type = p->opts->type;

	*call = (struct weft_call)WEFT_CALL_INIT;
	call->coll = op->coll;
	if (op->coll == WEFT_COLL_BARRIER)
		return;
	call->op = p->opts->op;
	call->src = (struct weft_buf){.addr = p->src, .count = src, .type = type};
	call->dst = (struct weft_buf){.addr = p->dst, .count = dst, .type = type};
	if (op->counts) {
		perf_counts_fill(p, count);
		if (!op->src_blocks)
			call->send_counts = &p->counts;
		if (!op->dst_blocks && op->coll != WEFT_COLL_ALLTOALLV_DYNAMIC)
			call->recv_counts = &p->counts;
		if (op->coll == WEFT_COLL_ALLTOALLV_DYNAMIC)
			call->dynamic = &p->dynamic;
		return;
	}
	if (op->coll == WEFT_COLL_BROADCAST ||
	    (p->opts->in_place && op->src_blocks == op->dst_blocks))
		call->src.addr = p->dst;
	else if (p->opts->in_place && op->src_blocks)
		call->src.addr = (char *)p->dst + own;
	else if (p->opts->in_place)
		call->dst.addr = (char *)p->src + own;
}

const char *perf_algorithm(struct perf *p, const struct perf_op *op, uint64_t count)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_call call;

	opts.algorithm = p->opts->algorithm;
	perf_memory_say(p, &opts);
	perf_call(p, op, count, &call);
	return weft_algorithm(p->comm, &call, &opts);
}

static struct plan_call plan_call_of(const struct perf *p, const struct perf_op *op,
				     uint64_t count)
{
	return (struct plan_call){
		.rank = p->rank,
		.size = p->size,
		.count = count,
		.elem_size = op->sized ? (uint32_t)p->elem : 1,
		.in_place = p->opts->in_place && op->in_place,
		.fetches = exec_fetches(p->ctx->exec),
		.crowded = exec_is_crowded(p->ctx->exec),
		.lines = p->comm->lines,
		.reads = p->comm->reads,
		.nodes = p->comm->nodes,
		.vector = op->counts,
	};
}

bool perf_table_counts(const struct perf *p, const struct perf_op *op, uint64_t count,
		       const struct algo *algo)
{
	const struct plan_call call = plan_call_of(p, op, count);

	return tune_counts(algo, &call);
}

double perf_model_us(const struct perf *p, const struct perf_op *op, uint64_t count,
		     const struct algo *algo, const struct cost_terms *terms)
{
	const struct plan_call call = plan_call_of(p, op, count);
	const uint64_t ps = terms->alpha_ps ? cost_of(terms, algo, &call) : COST_NONE;

	return ps == COST_NONE ? 0 : (double)ps / 1e6;
}

/* Who chose it, and by what the library goes. */
static void algorithm_why(const struct perf *p, const struct perf_op *op, uint64_t count,
			  const char *algorithm, char *text, size_t len)
{
	const struct algo *forced = p->ctx->force[op->coll].algo;
	const struct plan_call call = plan_call_of(p, op, count);

	if (p->opts->algorithm)
		snprintf(text, len, "--algo names it");
	else if (forced && strcmp(forced->name, algorithm) == 0)
		snprintf(text, len, "WEFT_ALGO names it");
	else
		tune_say(p->ctx->tune, weft_coll_name(op->coll), &call, text, len);
}

bool perf_measure(struct perf *p, const struct perf_op *op, uint64_t count,
		  int64_t budget_us, struct perf_row *row)
{
	struct cell c = {.p = p, .op = op, .count = count, .opts = WEFT_OPTS_INIT};
	int64_t begin = now_ns(), iters, ns;

	c.opts.algorithm = p->opts->algorithm;
	perf_memory_say(p, &c.opts);
	*row = (struct perf_row){.op = op, .count = count, .bytes = count * p->elem};
	row->algorithm = perf_algorithm(p, op, count);
	if (!row->algorithm) {
		fprintf(stderr, "weft %s: %s\n", p->opts->who, weft_error_detail());
		return false;
	}
	if (p->opts->explain)
		algorithm_why(p, op, count, row->algorithm, row->why, sizeof(row->why));
	memset(p->times, 0, (PERF_FLAGS + PERF_ITERS_MAX) * sizeof(*p->times));
	/* The first call connects and exchanges handles: it is checked, not timed. */
	return cell_call(&c, false, &ns) &&
	       timed_calls(&c, begin, budget_us * 1000, &iters) &&
	       cell_call(&c, false, &ns) && summarize(&c, iters, row);
}
