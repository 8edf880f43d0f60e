/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A communicator is revoked: by another rank in the middle of every kind of call, by
 * another thread of a rank that waits, by all at once and twice, before others have it,
 * and after a failure. Every rank gets out and hears who and why; what follows is
 * refused; buffers and the communicator can be given back, and the other communicators
 * work.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define LONG_US INT64_C(120000000)
#define RUN_S	120
#define SIZE	4
#define LARGE	100000 /* elements of what is put, or sent long */
#define REASON	"the test says so"

static const char *provider;

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	nanosleep(&ts, NULL);
}

struct scene {
	struct ranks *r;
	struct weft_ctx *ctx;
	struct weft_comm *world, *comm;
	float *src, *dst; /* SIZE * LARGE each */
	int32_t marks;	  /* that were made in scenes before */
};

/* ---- what is open when it comes -------------------------------------------------------
 */

typedef enum weft_result (*start_fn)(struct scene *s, struct weft_req **req);

static enum weft_result start_allreduce(struct scene *s, struct weft_req **req)
{
	return weft_allreduce_start(s->comm, s->src, s->dst, 2, WEFT_FP32, WEFT_SUM, NULL,
				    req);
}

static enum weft_result start_allreduce_large(struct scene *s, struct weft_req **req)
{
	return weft_allreduce_start(s->comm, s->src, s->dst, LARGE, WEFT_FP32, WEFT_SUM,
				    NULL, req);
}

static enum weft_result start_barrier(struct scene *s, struct weft_req **req)
{
	return weft_barrier_start(s->comm, NULL, req);
}

static enum weft_result start_broadcast(struct scene *s, struct weft_req **req)
{
	return weft_broadcast_start(s->comm, s->dst, LARGE, WEFT_FP32, 0, NULL, req);
}

static enum weft_result start_alltoall(struct scene *s, struct weft_req **req)
{
	return weft_alltoall_start(s->comm, s->src, s->dst, LARGE, WEFT_FP32, NULL, req);
}

static enum weft_result start_gatherv(struct scene *s, struct weft_req **req)
{
	const uint64_t counts[SIZE] = {LARGE, 1, LARGE, 2};
	const struct weft_counts recv = {.counts = counts};

	return weft_allgatherv_start(s->comm, s->src, counts[s->r->rank], s->dst, &recv,
				     WEFT_FP32, NULL, req);
}

static enum weft_result start_recv(struct scene *s, struct weft_req **req)
{
	return weft_recv_start(s->comm, s->dst, LARGE, WEFT_FP32, 0, NULL, req);
}

static enum weft_result start_send(struct scene *s, struct weft_req **req)
{
	return weft_send_start(s->comm, s->src, 4 * LARGE, WEFT_FP32, 0, NULL, req);
}

static enum weft_result start_persistent(struct scene *s, struct weft_req **req)
{
	enum weft_result result = weft_allreduce_init(s->comm, s->src, s->dst, LARGE,
						      WEFT_FP32, WEFT_SUM, NULL, req);

	return result == WEFT_SUCCESS ? weft_req_start(*req) : result;
}

static enum weft_result start_doubled(struct scene *s, struct weft_req **req)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum weft_result result;

	opts.flags = WEFT_DOUBLE;
	result = weft_allreduce_init(s->comm, s->src, NULL, LARGE, WEFT_FP32, WEFT_SUM,
				     &opts, req);
	return result == WEFT_SUCCESS ? weft_req_start(*req) : result;
}

struct kind {
	const char *name;
	start_fn start;
	bool persistent;
};

static const struct kind kinds[] = {
	{"all-reduce, 8 bytes", start_allreduce, false},
	{"all-reduce, large", start_allreduce_large, false},
	{"barrier", start_barrier, false},
	{"broadcast", start_broadcast, false},
	{"all-to-all", start_alltoall, false},
	{"all-gatherv", start_gatherv, false},
	{"receive", start_recv, false},
	{"send, long", start_send, false},
	{"persistent all-reduce", start_persistent, true},
	{"doubled all-reduce", start_doubled, true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- steps of scenes ------------------------------------------------------------------
 */

static bool marks_reach(struct scene *s, int32_t count)
{
	const int64_t until = exec_now() + LONG_US;

	s->marks += count;
	while (ranks_marks(s->r) < s->marks) {
		if (exec_now() > until)
			return false;
		nap();
	}
	return true;
}

static int begin(struct scene *s)
{
	return weft_comm_create(s->ctx, NULL, &s->comm) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : ranks_say(s->r, "create: %s", weft_error_detail());
}

/* Waits until the request has ended, whoever has to let go of its buffers; others need
 * this rank's answers meanwhile. */
static enum weft_result end_request(struct scene *s, struct weft_req *req)
{
	const int64_t until = exec_now() + LONG_US;
	enum weft_result result;

	do
		result = weft_req_wait(req, 20000);
	while ((result == WEFT_ERR_BUSY || result == WEFT_ERR_TIMEOUT) &&
	       exec_now() < until);
	(void)s;
	return result;
}

/* Later calls are refused with the cause; the communicator goes, and the other works. */
static int end(struct scene *s, const char *cause)
{
	const int64_t until = exec_now() + LONG_US;
	struct weft_comm *copy;
	struct weft_req *req;
	float x = 1, sum;

	if (weft_allreduce(s->comm, &x, &sum, 1, WEFT_FP32, WEFT_SUM, NULL) !=
		    WEFT_ERR_COMM ||
	    !strstr(weft_error_detail(), cause))
		return ranks_say(s->r, "then: %s", weft_error_detail());
	if (weft_comm_dup(s->comm, NULL, &copy) != WEFT_ERR_COMM ||
	    weft_recv_start(s->comm, &x, 1, WEFT_FP32,
			    (weft_comm_rank(s->comm) + 1) % SIZE, NULL,
			    &req) != WEFT_ERR_COMM)
		return ranks_say(s->r, "it is copied, or receives: %s",
				 weft_error_detail());
	while (weft_comm_destroy(s->comm) != WEFT_SUCCESS) {
		if (exec_now() > until)
			return ranks_say(s->r, "destroy: %s", weft_error_detail());
		nap();
	}
	if (weft_allreduce(s->world, &x, &sum, 1, WEFT_FP32, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS ||
	    sum != SIZE)
		return ranks_say(s->r, "the other: %s", weft_error_detail());
	return RANKS_GOOD;
}

static bool told(enum weft_result result, const char *by)
{
	return result == WEFT_ERR_REVOKED && strstr(weft_error_detail(), by) &&
	       strstr(weft_error_detail(), REASON);
}

/* Revokes when rank 1, 2, 3 (or some of them) have begun. */
static int scene_kind(struct scene *s, const struct kind *kind)
{
	struct weft_req *req = NULL;
	int bad = begin(s);

	if (bad)
		return bad;
	if (s->r->rank == 0) {
		if (!marks_reach(s, SIZE - 1))
			return ranks_say(s->r, "%s: the others don't begin", kind->name);
		if (weft_comm_revoke(s->comm, REASON) != WEFT_SUCCESS)
			return ranks_say(s->r, "revoke: %s", weft_error_detail());
		return end(s, "rank 0 revoked");
	}
	if (kind->start(s, &req) != WEFT_SUCCESS)
		return ranks_say(s->r, "%s: %s", kind->name, weft_error_detail());
	ranks_mark(s->r);
	if (!told(end_request(s, req), "rank 0 revoked"))
		return ranks_say(s->r, "%s: %s", kind->name, weft_error_detail());
	if (kind->persistent &&
	    (weft_req_start(req) != WEFT_ERR_COMM || weft_req_free(req) != WEFT_SUCCESS))
		return ranks_say(s->r, "%s: %s", kind->name, weft_error_detail());
	return end(s, "rank 0 revoked");
}

/* A window: what waits for a signal. */
static int scene_window(struct scene *s)
{
	struct weft_win_opts opts = WEFT_WIN_OPTS_INIT;
	const int64_t until = exec_now() + LONG_US;
	enum weft_result result;
	struct weft_win *win;
	int bad = begin(s);

	if (bad)
		return bad;
	if (weft_win_create(s->comm, s->dst, LARGE, &opts, &win) != WEFT_SUCCESS)
		return ranks_say(s->r, "window: %s", weft_error_detail());
	if (!ranks_barrier(s->r))
		return RANKS_BAD;
	if (s->r->rank == 2)
		weft_comm_revoke(s->comm, REASON);
	result = weft_win_wait(win, 0, 1, LONG_US);
	if (!told(result, "rank 2 revoked"))
		return ranks_say(s->r, "wait: %s", weft_error_detail());
	if (weft_win_put(win, s->src, 4, 0, 0) != WEFT_ERR_REVOKED)
		return ranks_say(s->r, "put: %s", weft_error_detail());
	while (weft_win_destroy(win) != WEFT_SUCCESS) {
		if (exec_now() > until)
			return ranks_say(s->r, "destroy: %s", weft_error_detail());
		nap();
	}
	return end(s, "rank 2 revoked");
}

/* ---- threads --------------------------------------------------------------------------
 */

/* Until a call is open, which its own thread waits in; or until that thread has none any
 * more, since a peer's failed, and the word that it was revoked is still under way:
 * nobody makes progress then who could read it. */
static void *revoke_when_open(void *arg)
{
	const int64_t until = exec_now() + LONG_US;
	struct scene *s = arg;
	const char *text;
	bool open = false;

	while (!open && exec_now() < until) {
		ctx_lock(s->ctx);
		open = s->comm->open_reqs > 0 ||
		       exec_comm_failed(s->ctx->exec, s->comm->number, &text) !=
			       WEFT_SUCCESS;
		ctx_unlock(s->ctx);
		if (!open)
			nap();
	}
	weft_comm_revoke(s->comm, REASON);
	return NULL;
}

/* Blocking calls, large ones so that they are under way for a while, until one fails;
 * others get the error as COMM when they were between two calls. */
static int run_until(struct scene *s, bool starts)
{
	enum weft_result result = WEFT_SUCCESS;

	for (long i = 0; result == WEFT_SUCCESS && (starts || i < 1); i++)
		result = weft_allreduce(s->comm, s->src, s->dst, LARGE, WEFT_FP32,
					WEFT_SUM, NULL);
	if ((result != WEFT_ERR_REVOKED && result != WEFT_ERR_COMM) ||
	    !strstr(weft_error_detail(), " revoked ") ||
	    !strstr(weft_error_detail(), REASON))
		return ranks_say(s->r, "%s: %s", weft_strerror(result),
				 weft_error_detail());
	return RANKS_GOOD;
}

/* Rank 0 never calls; a second thread of rank 1 ends the call of its first. */
static int scene_thread(struct scene *s)
{
	pthread_t thread;
	int bad = begin(s);

	if (bad)
		return bad;
	if (s->r->rank == 1 && pthread_create(&thread, NULL, revoke_when_open, s))
		return ranks_say(s->r, "no thread");
	if (s->r->rank != 0)
		bad = run_until(s, false);
	if (s->r->rank == 1)
		pthread_join(thread, NULL);
	/* It hears by making progress. */
	while (s->r->rank == 0 && !bad) {
		const char *text;
		bool over;

		ctx_lock(s->ctx);
		exec_progress(s->ctx->exec);
		over = exec_comm_failed(s->ctx->exec, s->comm->number, &text) !=
		       WEFT_SUCCESS;
		ctx_unlock(s->ctx);
		if (over)
			break;
		nap();
	}
	return bad ? bad : end(s, "rank 1 revoked");
}

/* All at the same time, each from a second thread, while calls are under way. */
static int scene_all(struct scene *s)
{
	pthread_t thread;
	int bad = begin(s);

	if (bad)
		return bad;
	if (pthread_create(&thread, NULL, revoke_when_open, s))
		return ranks_say(s->r, "no thread");
	bad = run_until(s, true);
	pthread_join(thread, NULL);
	if (!bad && weft_comm_revoke(s->comm, "again") != WEFT_SUCCESS)
		bad = ranks_say(s->r, "again: %s", weft_error_detail());
	return bad ? bad : end(s, " revoked ");
}

/* ---- before, and after ----------------------------------------------------------------
 */

/* A group by list, which rank 3 has and revokes before the others know of it. */
static int scene_early(struct scene *s)
{
	struct weft_comm_opts opts = WEFT_COMM_OPTS_INIT;
	const int32_t list[] = {3, 2, 1, 0};
	struct weft_comm *parent, *sub;
	enum weft_result result = WEFT_SUCCESS;

	opts.groups = 1;
	if (weft_comm_create(s->ctx, &opts, &parent) != WEFT_SUCCESS)
		return ranks_say(s->r, "create: %s", weft_error_detail());
	if (s->r->rank != 3 && !ranks_barrier(s->r))
		return RANKS_BAD;
	if (weft_comm_group(parent, list, SIZE, NULL, &s->comm) != WEFT_SUCCESS)
		return ranks_say(s->r, "group: %s", weft_error_detail());
	if (s->r->rank == 3) {
		weft_comm_revoke(s->comm, REASON);
		if (!ranks_barrier(s->r))
			return RANKS_BAD;
	}
	result = weft_barrier(s->comm, NULL);
	if ((result != WEFT_ERR_COMM && result != WEFT_ERR_REVOKED) ||
	    !strstr(weft_error_detail(), "rank 3 revoked"))
		return ranks_say(s->r, "%s: %s", weft_strerror(result),
				 weft_error_detail());
	/* The parent is none the worse; once it is revoked it has no groups. */
	if (weft_barrier(parent, NULL) != WEFT_SUCCESS)
		return ranks_say(s->r, "parent: %s", weft_error_detail());
	if (!ranks_barrier(s->r))
		return RANKS_BAD;
	weft_comm_revoke(parent, NULL);
	if (weft_comm_group(parent, list, SIZE, NULL, &sub) != WEFT_ERR_COMM ||
	    weft_comm_destroy(parent) != WEFT_SUCCESS)
		return ranks_say(s->r, "parent: %s", weft_error_detail());
	return end(s, "rank 3 revoked");
}

/* What failed first is what all hear of. */
static int scene_after(struct scene *s)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum weft_result result;
	int bad = begin(s);

	if (bad)
		return bad;
	opts.timeout_us = 50000;
	if (s->r->rank == 2) {
		result = weft_recv(s->comm, s->dst, 1, WEFT_FP32, 3, &opts);
		if (result != WEFT_ERR_TIMEOUT)
			return ranks_say(s->r, "receive: %s", weft_error_detail());
		/* With collectives of all the communicator has failed. */
		result = weft_barrier(s->comm, &opts);
		if (result != WEFT_ERR_TIMEOUT)
			return ranks_say(s->r, "barrier: %s", weft_error_detail());
		weft_comm_revoke(s->comm, REASON);
		weft_comm_revoke(s->comm, "another reason");
		ranks_mark(s->r);
		return end(s, "no answer from rank");
	}
	if (!marks_reach(s, 1))
		return ranks_say(s->r, "rank 2 does not fail");
	result = weft_barrier(s->comm, NULL);
	if (!strstr(weft_error_detail(), "no answer from rank") ||
	    strstr(weft_error_detail(), "another reason") ||
	    (result != WEFT_ERR_COMM && result != WEFT_ERR_REVOKED &&
	     result != WEFT_ERR_TIMEOUT))
		return ranks_say(s->r, "%s: %s", weft_strerror(result),
				 weft_error_detail());
	return end(s, "no answer from rank");
}

static int (*const scenes[])(struct scene *s) = {
	scene_window, scene_thread, scene_all, scene_early, scene_after,
};
static const char *const scene_names[] = {
	"a wait for a signal",
	"a blocking call, by another thread",
	"calls in a row, by all at once",
	"a group that others have not made",
	"a communicator that has failed",
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

static int body(struct ranks *r)
{
	struct scene s = {.r = r};
	int bad = ranks_open(r, provider, LONG_US, &s.ctx);

	if (bad)
		return bad;
	s.src = calloc((size_t)SIZE * LARGE, sizeof(*s.src));
	s.dst = calloc((size_t)SIZE * LARGE, sizeof(*s.dst));
	if (!s.src || !s.dst || weft_comm_create(s.ctx, NULL, &s.world) != WEFT_SUCCESS)
		return ranks_say(r, "world: %s", weft_error_detail());
	if (weft_comm_revoke(NULL, NULL) != WEFT_ERR_ARG)
		return ranks_say(r, "no communicator is revoked");
	for (size_t i = 0; i < KINDS && !bad; i++) {
		s.marks = (int32_t)i * (SIZE - 1);
		bad = scene_kind(&s, &kinds[i]);
		bad = bad || !ranks_barrier(r);
	}
	s.marks = (int32_t)KINDS * (SIZE - 1);
	for (size_t i = 0; i < SCENES && !bad; i++) {
		bad = scenes[i](&s);
		if (bad)
			ranks_say(r, "in %s", scene_names[i]);
		bad = bad || !ranks_barrier(r);
	}
	if (!bad && (weft_comm_destroy(s.world) != WEFT_SUCCESS ||
		     weft_ctx_close(s.ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	free(s.src);
	free(s.dst);
	return bad;
}

int main(void)
{
	char names[8][32];
	const int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		int ends[RANKS_MAX];
		bool good;

		provider = names[i];
		good = ranks_run(SIZE, RUN_S, body, NULL, ends);
		if (ends[0] == RANKS_ABSENT)
			tap_skip(1, "provider %s is not on this machine", names[i]);
		else
			tap_ok(good,
			       "%s: revoked in the middle of %zu kinds of calls, by "
			       "threads, by all, before and after: every rank hears it",
			       names[i], KINDS);
	}
	return tap_done();
}
