/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two communicators whose collectives two ranks call in different orders: each waits for
 * the other. At its deadline each says so, with both calls and their numbers. The
 * deadline is made to pass when the ranks have heard of each other, so that no time is
 * waited for.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "coll/comm/comm.h"
#include "coll/exec/engine.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define DEADLINE_US INT64_C(120000000)

static bool has_heard(struct weft_req *req)
{
	bool heard;

	ctx_lock(req->comm->ctx);
	heard = req->exec->elsewhere_rank >= 0;
	ctx_unlock(req->comm->ctx);
	return heard;
}

/* Until all ranks of the test have heard, making progress for them. */
static int until_heard(struct ranks *r, struct weft_req *req)
{
	const int64_t until = exec_now() + DEADLINE_US;
	bool marked = false;
	int done;

	while (ranks_marks(r) < r->size) {
		if (weft_req_test(req, &done) != WEFT_SUCCESS || done ||
		    exec_now() > until)
			return ranks_say(r, "heard of nobody: %s", weft_error_detail());
		if (!marked && has_heard(req)) {
			ranks_mark(r);
			marked = true;
		}
	}
	return RANKS_GOOD;
}

/* The deadline passes; what is said has to have all the words. */
static int ends_with(struct ranks *r, struct weft_req *req, const char *const words[])
{
	enum weft_result result;

	ctx_lock(req->comm->ctx);
	req->exec->deadline = 0;
	ctx_unlock(req->comm->ctx);
	do
		result = weft_req_wait(req, 0);
	while (result == WEFT_ERR_BUSY);
	if (result != WEFT_ERR_TIMEOUT)
		return ranks_say(r, "%s: %s", weft_strerror(result), weft_error_detail());
	for (int i = 0; words[i]; i++) {
		if (!strstr(weft_error_detail(), words[i]))
			return ranks_say(r, "no \"%s\" in \"%s\"", words[i],
					 weft_error_detail());
	}
	return RANKS_GOOD;
}

struct two {
	struct weft_ctx *ctx;
	struct weft_comm *comm[2];
};

static int two_open(struct ranks *r, struct two *t)
{
	int bad = ranks_open(r, r->arg, DEADLINE_US, &t->ctx);

	if (bad)
		return bad;
	for (int i = 0; i < 2; i++) {
		if (weft_comm_create(t->ctx, NULL, &t->comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "comm: %s", weft_error_detail());
	}
	/* So that the numbers of the calls differ. */
	if (weft_barrier(t->comm[0], NULL) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int two_close(struct ranks *r, struct two *t)
{
	for (int i = 0; i < 2; i++) {
		if (weft_comm_destroy(t->comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "destroy: %s", weft_error_detail());
	}
	return weft_ctx_close(t->ctx) == WEFT_SUCCESS ? RANKS_GOOD : RANKS_BAD;
}

/* Rank 0 is in the second call of communicator 0, rank 1 in the first of 1. */
static int crossed_body(struct ranks *r)
{
	static const char *const words[2][5] = {
		{"call 1 of communicator 0", "rank 1 has not called it",
		 "waits for rank 0 in call 0 of communicator 1", "a deadlock"},
		{"call 0 of communicator 1", "rank 0 has not called it",
		 "waits for rank 1 in call 1 of communicator 0", "a deadlock"},
	};
	uint64_t x = 1, sum;
	struct weft_req *req;
	struct two t;
	int bad = two_open(r, &t);

	if (bad)
		return bad;
	if (weft_allreduce_start(t.comm[r->rank], &x, &sum, 1, WEFT_UINT64, WEFT_SUM,
				 NULL, &req) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	bad = until_heard(r, req);
	/* Both before either fails: what failed answers nobody. */
	if (!bad && !ranks_barrier(r))
		bad = RANKS_BAD;
	if (!bad)
		bad = ends_with(r, req, words[r->rank]);
	if (!bad && !ranks_barrier(r))
		bad = RANKS_BAD;
	return bad ? bad : two_close(r, &t);
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	for (int i = 0; i < count; i++) {
		const bool good = ranks_run(2, 300, crossed_body, names[i], end);

		if (!good && end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(good, "%s: two ranks name the deadlock, and both calls", names[i]);
	}
	return tap_done();
}
