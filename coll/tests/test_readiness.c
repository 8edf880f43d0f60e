/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rule F3: a remembered handle saves the key exchange, never readiness. A rank that comes
 * late writes into its destination between calls, makes progress, and finds what it wrote
 * until it calls: no put of call n + 1 from a faster rank may land before. And several
 * requests of two communicators at a time, waited for in different orders.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/exec/exec.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define READY_CALLS 6
#define LATE_US	    30000

/* ---- readiness
 * ----------------------------------------------------------------------- */

/* Writes the destination, lets time and progress go by, looks at it again. */
static int late_rank(struct ranks *r, struct weft_req *other, void *dst, size_t len,
		     int round)
{
	const int64_t until = exec_now() + LATE_US;
	const uint8_t value = (uint8_t)(0x30 + round);
	int done = 0;

	memset(dst, value, len);
	while (exec_now() < until) {
		/* The barrier of the other communicator cannot finish yet; testing
		 * it makes the context's progress. */
		if (weft_req_test(other, &done) != WEFT_SUCCESS || done)
			return ranks_say(r, "the barrier ended early");
	}
	for (size_t i = 0; i < len; i++) {
		if (((uint8_t *)dst)[i] != value)
			return ranks_say(r, "byte %zu of call %d was written early", i,
					 round);
	}
	return RANKS_GOOD;
}

static int ready_call(struct ranks *r, struct weft_comm *comm[2], struct ref_case *c,
		      struct case_bufs *b, int round)
{
	const bool late = r->rank == round % r->size;
	struct weft_req *req, *other = NULL;

	c->salt = (uint32_t)round;
	if (!late) {
		if (case_start(comm[0], c, b, &req) != WEFT_SUCCESS)
			return ranks_say(r, "start: %s", weft_error_detail());
	} else {
		if (weft_barrier_start(comm[1], NULL, &other) != WEFT_SUCCESS)
			return ranks_say(r, "barrier: %s", weft_error_detail());
		if (late_rank(r, other, b->dst, b->dst_len, round))
			return RANKS_BAD;
		ref_fill(c, r->rank, r->size, b->src);
		if (case_start(comm[0], c, b, &req) != WEFT_SUCCESS)
			return ranks_say(r, "start: %s", weft_error_detail());
	}
	if (weft_req_wait(req, 0) != WEFT_SUCCESS)
		return ranks_say(r, "wait: %s", weft_error_detail());
	if (case_check(r, c, b))
		return RANKS_BAD;
	if (!other && weft_barrier_start(comm[1], NULL, &other) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	if (weft_req_wait(other, 0) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int ready_body(struct ranks *r)
{
	static const struct {
		enum weft_coll coll;
		const char *algorithm;
	} cases[] = {
		{WEFT_COLL_ALLGATHER, "ring"},
		{WEFT_COLL_ALLGATHER, "recursive-doubling"},
		{WEFT_COLL_ALLREDUCE, "ring"},
		{WEFT_COLL_ALLREDUCE, "recursive-doubling"},
		{WEFT_COLL_BROADCAST, "binomial"},
		{WEFT_COLL_REDUCE_SCATTER, "ring"},
		{WEFT_COLL_ALLTOALL, "direct"},
		{WEFT_COLL_GATHER, "direct"},
		{WEFT_COLL_SCATTER, "direct"},
	};
	struct weft_ctx *ctx;
	struct weft_comm *comm[2];
	int bad = ranks_open(r, r->arg, 20000000, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm[0]) != WEFT_SUCCESS ||
	    weft_comm_create(ctx, NULL, &comm[1]) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ref_case c = {.coll = cases[i].coll,
				     .algorithm = cases[i].algorithm,
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .count = 60000};
		struct case_bufs b;

		if (!case_bufs_open(&b, &c, r))
			return ranks_say(r, "no memory");
		for (int round = 0; round < READY_CALLS && !bad; round++) {
			/* A new input per call: a stale result would be seen. */
			c.salt = (uint32_t)round;
			ref_fill(&c, r->rank, r->size, b.src);
			bad = ready_call(r, comm, &c, &b, round);
		}
		if (bad)
			return ranks_say(r, "%s (%s)", weft_coll_name(c.coll),
					 c.algorithm);
		case_bufs_close(&b);
	}
	for (int i = 0; i < 2; i++) {
		if (weft_comm_destroy(comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "destroy: %s", weft_error_detail());
	}
	return weft_ctx_close(ctx) == WEFT_SUCCESS ? RANKS_GOOD : RANKS_BAD;
}

/* ---- overlap
 * ------------------------------------------------------------------------- */

#define OVERLAP 8

static void overlap_case(struct ref_case *c, int round, int i)
{
	static const uint64_t counts[] = {0, 3, 5000, 40000, 1, 100000, 777, 20000};

	*c = (struct ref_case){.coll = (enum weft_coll)((round + i) % 4),
			       .type = i % 2 ? WEFT_FP32 : WEFT_INT64,
			       .op = i % 3 ? WEFT_SUM : WEFT_MAX,
			       .count = counts[(round * 3 + i) % 8],
			       .in_place = i % 2,
			       .salt = (uint32_t)(round * 100 + i)};
}

static int overlap_round(struct ranks *r, struct weft_comm *comm[2], int round)
{
	struct ref_case c[OVERLAP];
	struct case_bufs b[OVERLAP];
	struct weft_req *req[OVERLAP];
	int bad = RANKS_GOOD;

	for (int i = 0; i < OVERLAP; i++) {
		overlap_case(&c[i], round, i);
		if (!case_bufs_open(&b[i], &c[i], r) ||
		    case_start(comm[i % 2], &c[i], &b[i], &req[i]) != WEFT_SUCCESS)
			return ranks_say(r, "start %d: %s", i, weft_error_detail());
	}
	for (int i = 0; i < OVERLAP; i++) {
		/* Each rank waits in another order. */
		const int at = (i * 3 + r->rank) % OVERLAP;

		if (weft_req_wait(req[at], 0) != WEFT_SUCCESS)
			return ranks_say(r, "wait %d: %s", at, weft_error_detail());
		bad = bad || case_check(r, &c[at], &b[at]);
		case_bufs_close(&b[at]);
	}
	return bad;
}

static int overlap_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	struct weft_comm *comm[2];
	int bad = ranks_open(r, r->arg, 20000000, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm[0]) != WEFT_SUCCESS ||
	    weft_comm_create(ctx, NULL, &comm[1]) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	for (int round = 0; round < 6 && !bad; round++)
		bad = overlap_round(r, comm, round);
	if (bad)
		return bad;
	for (int i = 0; i < 2; i++) {
		if (weft_comm_destroy(comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "destroy: %s", weft_error_detail());
	}
	return weft_ctx_close(ctx) == WEFT_SUCCESS ? RANKS_GOOD : RANKS_BAD;
}

/* ---- threads
 * ------------------------------------------------------------------------- */

struct thread {
	struct ranks *r;
	struct weft_comm *comm;
	int number;
	int bad;
};

static void *thread_body(void *arg)
{
	struct thread *t = arg;

	for (int round = 0; round < 20 && !t->bad; round++) {
		struct ref_case c = {.coll = (enum weft_coll)((round + t->number) % 4),
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .count = round % 3 ? 50000 : 5,
				     .salt = (uint32_t)(round * 7 + t->number)};

		t->bad = case_run(t->r, t->comm, &c, false);
	}
	return NULL;
}

/* Two threads of a rank, each with its communicator, on one context. */
static int threads_body(struct ranks *r)
{
	struct thread thread[2];
	pthread_t id[2];
	struct weft_ctx *ctx;
	int bad = ranks_open(r, r->arg, 20000000, &ctx);

	if (bad)
		return bad;
	for (int i = 0; i < 2; i++) {
		thread[i] = (struct thread){.r = r, .number = i};
		if (weft_comm_create(ctx, NULL, &thread[i].comm) != WEFT_SUCCESS)
			return ranks_say(r, "comm: %s", weft_error_detail());
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&id[i], NULL, thread_body, &thread[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < 2; i++) {
		if (thread[i].bad || weft_comm_destroy(thread[i].comm) != WEFT_SUCCESS)
			return RANKS_BAD;
	}
	return weft_ctx_close(ctx) == WEFT_SUCCESS ? RANKS_GOOD : RANKS_BAD;
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	for (int i = 0; i < count; i++) {
		ranks_run(1, 30, overlap_body, names[i], end);
		if (end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(ranks_run(3, 60, ready_body, names[i], end),
		       "%s: nothing lands before READY of its call (F3)", names[i]);
		tap_ok(ranks_run(4, 60, overlap_body, names[i], end),
		       "%s: requests of two communicators at a time (F4)", names[i]);
		tap_ok(ranks_run(3, 60, threads_body, names[i], end),
		       "%s: two threads on one context", names[i]);
	}
	return tap_done();
}
