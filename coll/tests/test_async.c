/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was started goes on while its caller calls nothing of Weft: rank 0 starts its
 * part and does nothing until the others, who need it, have told it by other means that
 * they are done. The thread that does it sleeps when nothing is started, stands aside
 * for calls, and ends with its context. What can't be had is refused.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define DEADLINE_US INT64_C(60000000)

/* Until so many ranks have made a mark, without a call of Weft. */
static bool marks_reach(struct ranks *r, int32_t count)
{
	const int64_t until = exec_now() + DEADLINE_US;

	while (ranks_marks(r) < count) {
		const struct timespec nap = {.tv_nsec = 1000000};

		if (exec_now() > until)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* Until the thread sleeps for want of work. */
static bool falls_asleep(struct weft_ctx *ctx)
{
	const int64_t until = exec_now() + DEADLINE_US;
	bool asleep;

	do {
		const struct timespec nap = {.tv_nsec = 1000000};

		ctx_lock(ctx);
		asleep = progress_asleep(ctx->progress);
		ctx_unlock(ctx);
		if (!asleep)
			nanosleep(&nap, NULL);
	} while (!asleep && exec_now() < until);
	return asleep;
}

/* Rank 0 starts and waits for the marks of all others, which they make when their call is
 * done; the k-th time for as many more. */
static int away(struct ranks *r, struct weft_comm *comm, struct ref_case *c, int32_t k)
{
	struct case_bufs b;
	struct weft_req *req;
	int bad = RANKS_GOOD;

	if (!case_bufs_open(&b, c, r) || case_start(comm, c, &b, &req) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	if (r->rank == 0 && !marks_reach(r, (k + 1) * (r->size - 1)))
		bad = ranks_say(r, "call %d: the others wait for rank 0, which computes",
				k);
	if (weft_req_wait(req, 0) != WEFT_SUCCESS)
		return ranks_say(r, "wait: %s", weft_error_detail());
	if (r->rank != 0)
		ranks_mark(r);
	bad = bad || case_check(r, c, &b);
	case_bufs_close(&b);
	return bad;
}

static int open_with_thread(struct ranks *r, struct weft_ctx **ctx,
			    struct weft_comm **comm)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	enum weft_result result;

	opts.provider = r->arg;
	opts.timeout_us = DEADLINE_US;
	opts.boot = &r->boot;
	opts.progress = WEFT_PROGRESS_THREAD;
	result = weft_ctx_open(&opts, ctx);
	if (result == WEFT_ERR_PROVIDER && strstr(weft_error_detail(), "no libfabric"))
		return RANKS_ABSENT;
	if (result != WEFT_SUCCESS || weft_comm_create(*ctx, NULL, comm) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int close_both(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* By messages and by puts, with arithmetic between. */
static int away_body(struct ranks *r)
{
	static const struct {
		enum weft_coll coll;
		const char *algorithm;
		uint64_t count;
	} cases[] = {
		{WEFT_COLL_BARRIER, NULL, 0},
		{WEFT_COLL_ALLREDUCE, "ring", 3},
		{WEFT_COLL_ALLREDUCE, "ring", 700001},
		{WEFT_COLL_ALLGATHER, "ring", 100001},
		{WEFT_COLL_ALLTOALL, "pairwise", 50001},
	};
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_with_thread(r, &ctx, &comm);

	if (bad)
		return bad;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && !bad; i++) {
		struct ref_case c = {.coll = cases[i].coll,
				     .algorithm = cases[i].algorithm,
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .count = cases[i].count,
				     .salt = (uint32_t)i};

		bad = away(r, comm, &c, (int32_t)i);
		if (!bad && !falls_asleep(ctx))
			bad = ranks_say(r, "the thread does not sleep");
	}
	return bad ? bad : close_both(r, ctx, comm);
}

/* Another thread's calls, blocking and not, beside it. */
struct beside {
	struct ranks *r;
	struct weft_comm *comm;
	int bad;
};

static void *beside_body(void *arg)
{
	struct beside *t = arg;

	for (uint32_t i = 0; i < 30 && !t->bad; i++) {
		struct ref_case c = {.coll = (enum weft_coll)(i % 4),
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .count = i % 3 ? 40000 : 5,
				     .salt = i};

		t->bad = case_run(t->r, t->comm, &c, false);
	}
	return NULL;
}

static int test_until_done(struct ranks *r, struct weft_req *req)
{
	const int64_t until = exec_now() + DEADLINE_US;
	int done = 0;

	while (!done) {
		if (weft_req_test(req, &done) != WEFT_SUCCESS || exec_now() > until)
			return ranks_say(r, "test: %s", weft_error_detail());
	}
	return RANKS_GOOD;
}

static int threads_body(struct ranks *r)
{
	struct beside t = {.r = r};
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	pthread_t id;
	int bad = open_with_thread(r, &ctx, &comm);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &t.comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	pthread_create(&id, NULL, beside_body, &t);
	for (uint32_t i = 0; i < 30 && !bad; i++) {
		struct ref_case c = {.coll = WEFT_COLL_ALLREDUCE,
				     .type = WEFT_INT64,
				     .op = WEFT_SUM,
				     .count = i % 2 ? 30000 : 1,
				     .salt = i};
		struct case_bufs b;
		struct weft_req *req;

		if (!case_bufs_open(&b, &c, r) ||
		    case_start(comm, &c, &b, &req) != WEFT_SUCCESS)
			bad = ranks_say(r, "start: %s", weft_error_detail());
		else
			bad = test_until_done(r, req) || case_check(r, &c, &b);
		if (!bad)
			case_bufs_close(&b);
	}
	pthread_join(id, NULL);
	if (bad || t.bad || weft_comm_destroy(t.comm) != WEFT_SUCCESS)
		return RANKS_BAD;
	return close_both(r, ctx, comm);
}

/* A peer gets from a window while its owner computes. */
static int window_body(struct ranks *r)
{
	static uint32_t part[64];
	uint32_t got[64] = {0};
	struct weft_win *win;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_with_thread(r, &ctx, &comm);

	if (bad)
		return bad;
	for (uint32_t i = 0; i < 64; i++)
		part[i] = (uint32_t)r->rank * 1000 + i;
	if (weft_win_create(comm, part, sizeof(part), NULL, &win) != WEFT_SUCCESS)
		return ranks_say(r, "window: %s", weft_error_detail());
	if (r->rank == 0) {
		if (!marks_reach(r, r->size - 1))
			bad = ranks_say(r, "the others wait for the window of rank 0");
	} else {
		if (weft_win_get(win, got, sizeof(got), 0, 0) != WEFT_SUCCESS ||
		    weft_win_flush(win, 0, 0) != WEFT_SUCCESS)
			bad = ranks_say(r, "get: %s", weft_error_detail());
		ranks_mark(r);
		for (uint32_t i = 0; i < 64 && !bad; i++) {
			if (got[i] != i)
				bad = ranks_say(r, "word %u is %u", i, got[i]);
		}
	}
	if (bad || weft_win_destroy(win) != WEFT_SUCCESS)
		return ranks_say(r, "destroy: %s", weft_error_detail());
	return close_both(r, ctx, comm);
}

/* ---- what can't be had ----------------------------------------------------------- */

static int refused_by(struct ranks *r, const struct weft_ctx_opts *opts,
		      const char *words)
{
	struct weft_ctx *ctx;
	const enum weft_result result = weft_ctx_open(opts, &ctx);

	if (result == WEFT_ERR_ARG && strstr(weft_error_detail(), words))
		return RANKS_GOOD;
	return ranks_say(r, "%d: \"%s\" has no \"%s\"", result, weft_error_detail(),
			 words);
}

static int refused_body(struct ranks *r)
{
	static const char *const lists[] = {"",	   "x",	     "1-",  "3-1",  "0,",   "-1",
					    "0x1", "999999", "1;2", "0,,1", "1-2-3"};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	int bad = RANKS_GOOD;

	opts.provider = r->arg;
	opts.boot = &r->boot;
	opts.progress = (enum weft_progress)7;
	bad = refused_by(r, &opts, "progress is 7");
	opts.progress = WEFT_PROGRESS_THREAD;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !bad; i++) {
		opts.progress_cpus = lists[i];
		bad = refused_by(r, &opts, "processors");
	}
	opts.progress_cpus = "1023"; /* no machine of a test has so many */
	bad = bad || refused_by(r, &opts, "none of them");
	opts.progress = WEFT_PROGRESS_DEFAULT;
	setenv("WEFT_PROGRESS", "magic", 1);
	bad = bad || refused_by(r, &opts, "WEFT_PROGRESS");
	return bad;
}

/* Who was built before the fields were there says so by the size, and has none. */
static int older_body(struct ranks *r)
{
	struct weft_ctx_opts opts;
	struct weft_ctx *ctx;
	int bad = RANKS_GOOD;

	memset(&opts, 0x77, sizeof(opts));
	opts.size = offsetof(struct weft_ctx_opts, progress);
	opts.provider = r->arg;
	opts.domain = NULL;
	opts.timeout_us = 0;
	opts.flags = 0;
	opts.boot = &r->boot;
	if (weft_ctx_open(&opts, &ctx) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	if (ctx->progress)
		bad = ranks_say(r, "a thread that nobody asked for");
	if (weft_ctx_close(ctx) != WEFT_SUCCESS)
		bad = ranks_say(r, "close: %s", weft_error_detail());
	setenv("WEFT_PROGRESS", "thread", 1);
	if (weft_ctx_open(&opts, &ctx) != WEFT_SUCCESS || !ctx->progress)
		return ranks_say(r, "WEFT_PROGRESS=thread: %s", weft_error_detail());
	return weft_ctx_close(ctx) == WEFT_SUCCESS ? bad : RANKS_BAD;
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	for (int i = 0; i < count; i++) {
		const bool good = ranks_run(3, 200, away_body, names[i], end);

		if (!good && end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(good, "%s: collectives end while a rank computes", names[i]);
		tap_ok(ranks_run(2, 200, window_body, names[i], end),
		       "%s: a window is read while its owner computes", names[i]);
		tap_ok(ranks_run(2, 200, threads_body, names[i], end),
		       "%s: beside the calls of two threads", names[i]);
		tap_ok(ranks_run(1, 200, refused_body, names[i], end),
		       "%s: what can't be had is refused", names[i]);
		tap_ok(ranks_run(1, 200, older_body, names[i], end),
		       "%s: options of a program that knows no thread", names[i]);
	}
	return tap_done();
}
