/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent calls of every collective and algorithm: started again and again, with other
 * contents each time, several at a time, and in step with ranks that use the plain call;
 * what is not in order is refused, and a rank that dies ends them.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(30000000)
#define ROUNDS	3

static enum weft_coll coll_of(const struct algo *algo)
{
	int coll = 0;

	while (coll < WEFT_COLL_COUNT &&
	       strcmp(weft_coll_name((enum weft_coll)coll), algo->coll) != 0)
		coll++;
	return (enum weft_coll)coll;
}

/* Two of a case at a time, in buffers of their own; in odd rounds rank 0 makes the plain
 * calls. */
static int case_rounds(struct ranks *r, struct weft_comm *comm, const struct ref_case *c)
{
	struct case_bufs b[2];
	struct weft_req *persistent[2], *plain[2];
	char text[200];
	int bad = RANKS_GOOD;

	ref_case_print(c, text, sizeof(text));
	for (int i = 0; i < 2; i++) {
		if (!case_bufs_open(&b[i], c, r) ||
		    case_init(comm, c, &b[i], &persistent[i]) != WEFT_SUCCESS)
			return ranks_say(r, "%s: %s", text, weft_error_detail());
	}
	for (int round = 0; round < ROUNDS && !bad; round++) {
		const bool calls = round % 2 && r->rank == 0;
		enum weft_result got = WEFT_SUCCESS;

		for (int i = 0; i < 2 && got == WEFT_SUCCESS; i++) {
			case_bufs_refill(&b[i], c, r);
			got = calls ? case_start(comm, c, &b[i], &plain[i])
				    : weft_req_start(persistent[i]);
		}
		for (int i = 1; i >= 0 && got == WEFT_SUCCESS; i--)
			got = weft_req_wait(calls ? plain[i] : persistent[i], 0);
		if (got != WEFT_SUCCESS)
			return ranks_say(r, "%s, round %d: %s", text, round,
					 weft_error_detail());
		for (int i = 0; i < 2 && !bad; i++)
			bad = case_check(r, c, &b[i]);
	}
	for (int i = 0; i < 2; i++) {
		if (weft_req_free(persistent[i]) != WEFT_SUCCESS)
			return ranks_say(r, "free: %s", weft_error_detail());
		case_bufs_close(&b[i]);
	}
	return bad;
}

static int all_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	int bad = RANKS_GOOD;

	(void)ctx;
	for (size_t a = 0; a < algo_count && !bad; a++) {
		const enum weft_coll coll = coll_of(&algo_table[a]);
		struct ref_case c = {.coll = coll,
				     .algorithm = algo_table[a].name,
				     .type = WEFT_INT32,
				     .op = a % 2 ? WEFT_SUM : WEFT_AVG,
				     .root = (int32_t)a % r->size,
				     .salt = (uint32_t)a};

		/* Short and by READY; out of place and, where there is one, in place. */
		for (int v = 0; v < 4 && !bad; v++) {
			c.count = v % 2 ? 30011 : 9;
			c.in_place =
				v / 2 && !ref_apart(coll) && coll != WEFT_COLL_BROADCAST;
			bad = case_rounds(r, comm, &c);
		}
	}
	return bad;
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
	struct weft_req *req, *plain;
	uint32_t x = 1, sum;
	int done;

	if (weft_allreduce_init(comm, &x, &sum, 1, WEFT_UINT32, WEFT_SUM, NULL, &req) !=
	    WEFT_SUCCESS)
		return ranks_say(r, "init: %s", weft_error_detail());
	if (!refused(r, weft_req_wait(req, 0), WEFT_ERR_ARG, "not started") ||
	    !refused(r, weft_req_test(req, &done), WEFT_ERR_ARG, "not started") ||
	    !refused(r, weft_comm_destroy(comm), WEFT_ERR_BUSY, "requests are open") ||
	    weft_req_start(req) != WEFT_SUCCESS ||
	    !refused(r, weft_req_start(req), WEFT_ERR_ARG, "wait for it first") ||
	    !refused(r, weft_req_free(req), WEFT_ERR_BUSY, "wait for it first") ||
	    weft_req_wait(req, 0) != WEFT_SUCCESS ||
	    !refused(r, weft_req_wait(req, 0), WEFT_ERR_ARG, "not started"))
		return RANKS_BAD;
	if (weft_barrier_start(comm, NULL, &plain) != WEFT_SUCCESS ||
	    !refused(r, weft_req_start(plain), WEFT_ERR_ARG, "of one call") ||
	    !refused(r, weft_req_free(plain), WEFT_ERR_ARG, "of one call") ||
	    weft_req_wait(plain, 0) != WEFT_SUCCESS)
		return RANKS_BAD;
	if (!refused(r, weft_req_start(NULL), WEFT_ERR_ARG, "req is NULL") ||
	    !refused(r, weft_req_free(NULL), WEFT_ERR_ARG, "req is NULL") ||
	    !refused(r,
		     weft_allreduce_init(comm, &x, NULL, 1, WEFT_UINT32, WEFT_SUM, NULL,
					 &plain),
		     WEFT_ERR_ARG, "dst is NULL"))
		return RANKS_BAD;
	/* By testing, and freed: the communicator goes. */
	if (weft_req_start(req) != WEFT_SUCCESS)
		return ranks_say(r, "again: %s", weft_error_detail());
	do {
		if (weft_req_test(req, &done) != WEFT_SUCCESS)
			return ranks_say(r, "test: %s", weft_error_detail());
	} while (!done);
	if (weft_req_free(req) != WEFT_SUCCESS || sum != (uint32_t)r->size ||
	    weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* The last rank dies between two rounds. */
static int dies_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_req *req;
	uint32_t x = 1, sum;
	enum weft_result got;

	(void)ctx;
	opts.timeout_us = TIMEOUT;
	if (weft_allreduce_init(comm, &x, &sum, 1, WEFT_UINT32, WEFT_SUM, &opts, &req) !=
		    WEFT_SUCCESS ||
	    weft_req_start(req) != WEFT_SUCCESS || weft_req_wait(req, 0) != WEFT_SUCCESS)
		return ranks_say(r, "first: %s", weft_error_detail());
	/* Not before all have it: what it sent last may be lost with it. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank + 1 == r->size)
		raise(SIGKILL);
	got = weft_req_start(req);
	if (got == WEFT_SUCCESS)
		got = WEFT_ERR_BUSY;
	/* Until what was sent to the dead rank is known to be lost. */
	for (int i = 0; got == WEFT_ERR_BUSY && i < 40; i++)
		got = weft_req_wait(req, 0);
	if (got != WEFT_ERR_PEER && got != WEFT_ERR_TIMEOUT)
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (!refused(r, weft_req_start(req), WEFT_ERR_COMM, "failed earlier") ||
	    weft_req_free(req) != WEFT_SUCCESS)
		return RANKS_BAD;
	return RANKS_GOOD;
}

enum part { ALL_4, ALL_2, ALL_1, ORDER, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[ALL_4] = {4, -1, "all of them on 4 ranks"},
	[ALL_2] = {2, -1, "all of them on 2 ranks"},
	[ALL_1] = {1, -1, "all of them on 1 rank"},
	[ORDER] = {2, -1, "what is not in order"},
	[DIES] = {3, 2, "a rank that dies"},
};

static int (*const bodies[PARTS])(struct ranks *, struct weft_ctx *,
				  struct weft_comm *) = {
	[ALL_4] = all_body,   [ALL_2] = all_body, [ALL_1] = all_body,
	[ORDER] = order_body, [DIES] = dies_body,
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
	if (!bad && bodies[r->part] == all_body &&
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
	int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		if (!ranks_parts(parts, PARTS, 240, job_body, names[i], good)) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
