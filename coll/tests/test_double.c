/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent calls with WEFT_DOUBLE: every collective and algorithm that can be doubled,
 * started again and again with other contents, with ranks that run ahead and others that
 * come late; no control message after two starts (F5); what is not in order is refused or
 * told, and a rank that dies ends them.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(30000000)
#define ROUNDS	6
#define FREE_OF 2 /* starts that may have control messages */

static const enum weft_coll colls[] = {WEFT_COLL_ALLGATHER, WEFT_COLL_ALLREDUCE,
				       WEFT_COLL_REDUCE_SCATTER, WEFT_COLL_ALLTOALL};

static uint64_t readys(struct weft_ctx *ctx)
{
	struct weft_stats stats = {.size = sizeof(stats)};

	return weft_ctx_stats(ctx, &stats) == WEFT_SUCCESS ? stats.readys : UINT64_MAX;
}

/* The doubled call of a case, whose destination in b is not used. */
static enum weft_result double_init(struct weft_comm *comm, const struct ref_case *c,
				    const struct case_bufs *b, struct weft_req **req)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_call call = WEFT_CALL_INIT;
	const int32_t rank = weft_comm_rank(comm), size = weft_comm_size(comm);

	opts.algorithm = c->algorithm;
	opts.flags = WEFT_DOUBLE;
	call.coll = c->coll;
	call.op = c->op;
	call.src = (struct weft_buf){
		.addr = b->src, .count = ref_src(c, rank, size).span, .type = c->type};
	call.dst =
		(struct weft_buf){.count = ref_dst(c, rank, size).span, .type = c->type};
	return weft_call_init(comm, &call, &opts, req);
}

/* Some ranks come late, others each time. */
static void stroll(const struct ranks *r, int round)
{
	const struct timespec nap = {.tv_nsec = 300000};

	if ((r->rank + round) % 3 == 0)
		nanosleep(&nap, NULL);
}

/* *ctl: control messages of this rank after the first two starts. */
static int case_rounds(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm,
		       struct ref_case *c, uint64_t *ctl)
{
	const void *got;
	struct case_bufs b;
	struct weft_req *req;
	char text[200];
	int bad = RANKS_GOOD;

	ref_case_print(c, text, sizeof(text));
	if (!case_bufs_open(&b, c, r) || double_init(comm, c, &b, &req) != WEFT_SUCCESS)
		return ranks_say(r, "%s: %s", text, weft_error_detail());
	for (int round = 0; round < ROUNDS && !bad; round++) {
		if (round == FREE_OF)
			*ctl = readys(ctx);
		c->salt++;
		case_bufs_refill(&b, c, r);
		stroll(r, round);
		if (weft_req_start(req) != WEFT_SUCCESS ||
		    weft_req_wait(req, 0) != WEFT_SUCCESS ||
		    weft_req_result(req, &got) != WEFT_SUCCESS)
			return ranks_say(r, "%s, round %d: %s", text, round,
					 weft_error_detail());
		/* Until the next start it stays, whatever the others do. */
		stroll(r, round + 1);
		if (b.dst_len)
			memcpy(b.dst, got, b.dst_len);
		bad = case_check(r, c, &b);
	}
	*ctl = readys(ctx) - *ctl;
	if (weft_req_free(req) != WEFT_SUCCESS)
		return ranks_say(r, "free: %s", weft_error_detail());
	case_bufs_close(&b);
	return bad;
}

/* No receive of it waits for anything, at any length. */
static bool stays_quiet(const struct algo *algo)
{
	return strcmp(algo->name, "double-tree") != 0 &&
	       (strcmp(algo->name, "hierarchical") != 0 ||
		algo->goal == PLAN_GOAL_ALLGATHER);
}

static int all_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	for (size_t a = 0; a < algo_count; a++) {
		struct ref_case c = {.algorithm = algo_table[a].name,
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .salt = (uint32_t)a * 100};
		size_t k = 0;

		while (k < 4 && strcmp(weft_coll_name(colls[k]), algo_table[a].coll) != 0)
			k++;
		if (k == 4)
			continue;
		c.coll = colls[k];
		for (int v = 0; v < 3; v++) {
			uint64_t ctl = 0;
			int bad;

			c.count = v == 0 ? 9 : v == 1 ? 10007 : 60013;
			bad = case_rounds(r, ctx, comm, &c, &ctl);
			if (bad)
				return bad;
			if (ctl && stays_quiet(&algo_table[a]))
				return ranks_say(r,
						 "%s (%s) of %llu: %llu control "
						 "messages after the second start",
						 algo_table[a].coll, c.algorithm,
						 (unsigned long long)c.count,
						 (unsigned long long)ctl);
		}
	}
	return RANKS_GOOD;
}

static bool refused(struct ranks *r, enum weft_result got, enum weft_result want,
		    const char *word)
{
	if (got == want && strstr(weft_error_detail(), word))
		return true;
	ranks_say(r, "\"%s\": got %s (%s)", word, weft_strerror(got),
		  weft_error_detail());
	return false;
}

static int order_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct ref_case c = {.coll = WEFT_COLL_ALLREDUCE,
			     .type = WEFT_INT32,
			     .op = WEFT_SUM,
			     .count = 3};
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct case_bufs b;
	struct weft_req *req, *plain;
	const void *got;
	int32_t x = 1, y = 0;

	(void)ctx;
	opts.flags = WEFT_DOUBLE;
	if (!case_bufs_open(&b, &c, r))
		return ranks_say(r, "no memory");
	if (!refused(r, weft_allreduce(comm, &x, &y, 1, WEFT_INT32, WEFT_SUM, &opts),
		     WEFT_ERR_UNSUPPORTED, "persistent") ||
	    !refused(r, weft_broadcast_init(comm, &x, 1, WEFT_INT32, 0, &opts, &req),
		     WEFT_ERR_UNSUPPORTED, "broadcast") ||
	    !refused(r,
		     weft_allreduce_init(comm, &x, &y, 1, WEFT_INT32, WEFT_SUM, &opts,
					 &req),
		     WEFT_ERR_ARG, "must be NULL") ||
	    !refused(r,
		     weft_allreduce_init(comm, NULL, NULL, 1, WEFT_INT32, WEFT_SUM, &opts,
					 &req),
		     WEFT_ERR_ARG, "src is NULL"))
		return RANKS_BAD;
	if (weft_allreduce_init(comm, &x, &y, 1, WEFT_INT32, WEFT_SUM, NULL, &plain) ||
	    !refused(r, weft_req_result(plain, &got), WEFT_ERR_ARG, "not made with") ||
	    weft_req_free(plain) || double_init(comm, &c, &b, &req) ||
	    !refused(r, weft_req_result(req, &got), WEFT_ERR_ARG, "no result") ||
	    weft_req_start(req) ||
	    !refused(r, weft_req_result(req, &got), WEFT_ERR_ARG, "no result") ||
	    !refused(r, weft_req_result(NULL, &got), WEFT_ERR_ARG, "req is NULL") ||
	    weft_req_wait(req, 0) || weft_req_result(req, &got) || weft_req_free(req))
		return ranks_say(r, "in order: %s", weft_error_detail());
	case_bufs_close(&b);
	return RANKS_GOOD;
}

/* Two alike; in the third round rank 0 starts them the other way round. */
static int swapped_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct ref_case c = {.coll = WEFT_COLL_ALLGATHER,
			     .type = WEFT_INT32,
			     .op = WEFT_SUM,
			     .count = 20011};
	struct case_bufs b;
	struct weft_req *req[2];
	enum weft_result got = WEFT_SUCCESS;

	(void)ctx;
	if (!case_bufs_open(&b, &c, r) || double_init(comm, &c, &b, &req[0]) ||
	    double_init(comm, &c, &b, &req[1]))
		return ranks_say(r, "init: %s", weft_error_detail());
	for (int round = 0; round < 4 && got == WEFT_SUCCESS; round++) {
		for (int i = 0; i < 2 && got == WEFT_SUCCESS; i++) {
			const int k = round == 2 && r->rank == 0 ? 1 - i : i;

			got = weft_req_start(req[k]);
			/* Until nobody can write what is not safe yet. */
			for (int w = 0; w < 60 && (w == 0 || got == WEFT_ERR_BUSY); w++)
				got = weft_req_wait(req[k], 0);
		}
	}
	if (got == WEFT_ERR_MISMATCH && !strstr(weft_error_detail(), "WEFT_DOUBLE"))
		return ranks_say(r, "told as: %s", weft_error_detail());
	if (got != WEFT_ERR_MISMATCH && got != WEFT_ERR_COMM)
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (weft_req_free(req[0]) || weft_req_free(req[1]))
		return ranks_say(r, "free: %s", weft_error_detail());
	case_bufs_close(&b);
	return RANKS_GOOD;
}

static int dies_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct ref_case c = {.coll = WEFT_COLL_ALLTOALL,
			     .type = WEFT_INT32,
			     .op = WEFT_SUM,
			     .count = 20011};
	struct case_bufs b;
	struct weft_req *req;
	enum weft_result got = WEFT_SUCCESS;

	(void)ctx;
	if (!case_bufs_open(&b, &c, r) || double_init(comm, &c, &b, &req))
		return ranks_say(r, "init: %s", weft_error_detail());
	for (int round = 0; round < 3; round++) {
		if (weft_req_start(req) || weft_req_wait(req, 0))
			return ranks_say(r, "first: %s", weft_error_detail());
	}
	/* Not before all have it: what it sent last may be lost with it. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank + 1 == r->size)
		raise(SIGKILL);
	got = weft_req_start(req);
	if (got == WEFT_SUCCESS)
		got = WEFT_ERR_BUSY;
	for (int i = 0; got == WEFT_ERR_BUSY && i < 60; i++)
		got = weft_req_wait(req, 0);
	if (got != WEFT_ERR_PEER && got != WEFT_ERR_TIMEOUT)
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (!refused(r, weft_req_start(req), WEFT_ERR_COMM, "failed earlier") ||
	    weft_req_free(req) != WEFT_SUCCESS)
		return RANKS_BAD;
	case_bufs_close(&b);
	return RANKS_GOOD;
}

enum part { ALL_4, ALL_2, ALL_3, ALL_1, ORDER, SWAPPED, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[ALL_4] = {4, -1, "all of them on 4 ranks"},
	[ALL_2] = {2, -1, "all of them on 2 ranks"},
	[ALL_3] = {3, -1, "all of them on 3 ranks"},
	[ALL_1] = {1, -1, "all of them on 1 rank"},
	[ORDER] = {2, -1, "what is not in order"},
	[SWAPPED] = {3, -1, "two that are swapped"},
	[DIES] = {3, 2, "a rank that dies"},
};

static int (*const bodies[PARTS])(struct ranks *, struct weft_ctx *,
				  struct weft_comm *) = {
	[ALL_4] = all_body, [ALL_2] = all_body,	  [ALL_3] = all_body,
	[ALL_1] = all_body, [ORDER] = order_body, [SWAPPED] = swapped_body,
	[DIES] = dies_body,
};

/* arg: the provider. */
static int job_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, r->arg, TIMEOUT, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	bad = bodies[r->part](r, ctx, comm);
	if (!bad && (bodies[r->part] == all_body || bodies[r->part] == order_body) &&
	    (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

/* A rank that lost a peer, or disagreed, cannot close everything (rule D3): it leaves
 * with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	char names[8][32];
	bool good[PARTS];
	int count = ranks_providers("weft,tcp,shm", names, 8);

	for (int i = 0; i < count; i++) {
		/* tcp and shm of libfabric 1.17 do not always notice before the deadline.
		 */
		const int tried = strcmp(names[i], "weft") == 0 ? PARTS : DIES;

		if (!ranks_parts(parts, tried, 240, job_body, names[i], good)) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		for (int p = 0; p < tried; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
