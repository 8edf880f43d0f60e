/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks disagree about a call that one of them has ended so many calls ago that it does
 * not know any more what it was: by messages, by lines, about a message between the two,
 * and where only the hash of the calls before shows it. Each ends with a sentence that
 * names both ranks and what is known, and with nothing that is not so.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "coll/comm/comm.h"
#include "coll/exec/engine.h"
#include "coll/exec/pair.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define DEADLINE_US INT64_C(120000000) /* the test makes it pass where it is to */
#define AHEAD	    (CTL_PAST_MAX + 4) /* calls that a rank has ended before */
#define MESSAGES    (PAIR_PAST + 4)    /* and messages */

struct world {
	struct weft_ctx *ctx;
	struct weft_comm *comm, *other; /* nothing goes wrong on the other one */
};

static enum weft_result call(struct weft_comm *comm, enum weft_coll coll,
			     const char *algorithm, uint64_t count, int32_t root)
{
	const struct ref_case c = {.coll = coll,
				   .algorithm = algorithm,
				   .type = WEFT_UINT8,
				   .op = WEFT_MAX,
				   .count = count,
				   .root = root};
	uint8_t in[64] = {1}, out[256] = {0};
	const struct case_bufs b = {.src = in, .dst = out};

	return case_call(comm, &c, &b);
}

static int world_open(struct ranks *r, struct world *w)
{
	const int bad = ranks_open(r, r->arg, DEADLINE_US, &w->ctx);

	if (bad)
		return bad;
	/* Connections take both sides, and nobody waits for the other one later. */
	if (weft_comm_create(w->ctx, NULL, &w->comm) != WEFT_SUCCESS ||
	    weft_comm_create(w->ctx, NULL, &w->other) != WEFT_SUCCESS ||
	    call(w->other, WEFT_COLL_ALLTOALL, "direct", 8, 0) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* Whoever is through answers the others by this barrier. */
static int world_close(struct ranks *r, struct world *w)
{
	enum weft_result result;

	if (weft_barrier(w->other, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	do
		result = w->comm ? weft_comm_destroy(w->comm) : WEFT_SUCCESS;
	while (result == WEFT_ERR_BUSY);
	if (result != WEFT_SUCCESS || weft_comm_destroy(w->other) != WEFT_SUCCESS ||
	    weft_ctx_close(w->ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int says(struct ranks *r, enum weft_result got, enum weft_result want,
		const char *const words[])
{
	if (got != want)
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	for (int i = 0; words[i]; i++) {
		if (!strstr(weft_error_detail(), words[i]))
			return ranks_say(r, "no \"%s\" in \"%s\"", words[i],
					 weft_error_detail());
	}
	return RANKS_GOOD;
}

/* Waits until a rank has said that it has forgotten; then the deadline passes. */
static enum weft_result forgotten(struct weft_req *req)
{
	enum weft_result result;
	int done = 0;

	/* It is over when nothing can be written any more either. */
	do {
		ctx_lock(req->comm->ctx);
		if (req->exec->forgot_rank >= 0)
			req->exec->deadline = 0;
		ctx_unlock(req->comm->ctx);
		result = weft_req_test(req, &done);
	} while (result == WEFT_ERR_BUSY || (result == WEFT_SUCCESS && !done));
	return result;
}

/* Rank 0 gives what it has to rank 1 in many calls; rank 2 waits for something from rank
 * 0 in the first. Rank 1, whom nobody waits for, makes no progress meanwhile. */
static int messages_body(struct ranks *r)
{
	static const char *const words[] = {
		"call 0 of communicator 0",	 "broadcast (flat)",
		"rank 0 has ended it",		 "started 19 more since",
		"every rank must give the same", NULL};
	uint8_t x[8] = {0};
	struct weft_req *req;
	struct world w;
	int bad = world_open(r, &w);

	if (bad)
		return bad;
	for (int i = 0; r->rank == 0 && i < AHEAD; i++) {
		if (call(w.comm, WEFT_COLL_REDUCE, "binomial", 8, 1) != WEFT_SUCCESS)
			return ranks_say(r, "call %d: %s", i, weft_error_detail());
	}
	if (!ranks_barrier(r))
		return RANKS_BAD;
	if (r->rank == 2) {
		const struct ref_case c = {.coll = WEFT_COLL_BROADCAST,
					   .algorithm = "flat",
					   .type = WEFT_UINT8,
					   .count = sizeof(x)};
		const struct case_bufs b = {.dst = x, .src = x};

		if (case_start(w.comm, &c, &b, &req) != WEFT_SUCCESS)
			return ranks_say(r, "start: %s", weft_error_detail());
		bad = says(r, forgotten(req), WEFT_ERR_TIMEOUT, words);
	}
	return bad ? bad : world_close(r, &w);
}

/* Rank 0 closes the communicator without the call that rank 1 waits in: that it has not
 * forgotten. */
static int closed_body(struct ranks *r)
{
	static const char *const words[] = {"call 0 of communicator 0",
					    "no answer from rank 0", NULL};
	struct weft_opts opts = WEFT_OPTS_INIT;
	uint8_t x[8] = {0};
	struct world w;
	int bad = world_open(r, &w);

	if (bad)
		return bad;
	opts.timeout_us = 1000000;
	if (r->rank == 0 && weft_comm_destroy(w.comm) != WEFT_SUCCESS)
		return ranks_say(r, "destroy: %s", weft_error_detail());
	if (r->rank == 0)
		w.comm = NULL;
	if (!ranks_barrier(r))
		return RANKS_BAD;
	if (r->rank == 1)
		bad = says(r, weft_broadcast(w.comm, x, 8, WEFT_UINT8, 0, &opts),
			   WEFT_ERR_TIMEOUT, words);
	return bad ? bad : world_close(r, &w);
}

/* As the first, but both meet in lines: those of rank 0 are of a later call. */
static int lines_body(struct ranks *r)
{
	static const char *const words[] = {
		"communicator 0: rank 1 runs allreduce (lines) of 8 uint8 max in call 0, "
		"rank 0 is in call 20, and gave different arguments to call 0",
		"every rank must give the same", NULL};
	struct world w;
	enum weft_result got;
	int bad = world_open(r, &w);

	if (bad)
		return bad;
	for (int i = 0; r->rank == 0 && i < AHEAD; i++) {
		if (call(w.comm, WEFT_COLL_REDUCE, "binomial", 8, 1) != WEFT_SUCCESS)
			return ranks_say(r, "call %d: %s", i, weft_error_detail());
	}
	if (!ranks_barrier(r))
		return RANKS_BAD;
	got = call(w.comm, WEFT_COLL_ALLREDUCE, "lines", 8, 0);
	/* It is in a call after the one that ranks disagree about. */
	bad = says(r, got, r->rank ? WEFT_ERR_MISMATCH : WEFT_ERR_COMM, words);
	return bad ? bad : world_close(r, &w);
}

/* The first message is longer than its receive; where such ones do not meet, rank 1 waits
 * for one that rank 0 has sent long ago. Where they do it hears at once what it was. */
static int pair_body(struct ranks *r)
{
	static const char *const words[] = {"message 0 from rank 0",
					    "rank 0 has ended it",
					    "started 11 more since", "both must give",
					    NULL},
				 *const meets[] = {"message 0 from rank 0",
						   "both must give the same", NULL};
	uint8_t x[64] = {0};
	struct weft_req *req;
	enum weft_result got;
	struct world w;
	bool meet;
	int bad = world_open(r, &w);

	if (bad)
		return bad;
	for (int i = 0; r->rank == 0 && i < MESSAGES; i++) {
		if (weft_send(w.comm, x, i ? 8 : 9, WEFT_UINT8, 1, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "message %d: %s", i, weft_error_detail());
	}
	if (!ranks_barrier(r))
		return RANKS_BAD;
	if (r->rank == 1) {
		ctx_lock(w.ctx);
		meet = w.ctx->exec->caps.truncates;
		ctx_unlock(w.ctx);
		if (weft_recv_start(w.comm, x, 8, WEFT_UINT8, 0, NULL, &req) !=
		    WEFT_SUCCESS)
			return ranks_say(r, "start: %s", weft_error_detail());
		got = forgotten(req);
		bad = says(r, got, meet ? WEFT_ERR_MISMATCH : WEFT_ERR_TIMEOUT,
			   meet ? meets : words);
	}
	return bad ? bad : world_close(r, &w);
}

/* Both end the first call, as different ones; rank 1 sees in the second that one before
 * was not the same, and rank 0 has forgotten it. */
static int hash_body(struct ranks *r)
{
	static const char *const words[] = {
		"communicator 0: rank 0 and rank 1 gave different arguments to a call "
		"before call 1",
		"every rank must give the same", NULL};
	struct world w;
	int bad = world_open(r, &w);

	if (bad)
		return bad;
	if (call(w.comm, WEFT_COLL_REDUCE, "binomial", 8, 1 - r->rank) != WEFT_SUCCESS)
		return ranks_say(r, "call 0: %s", weft_error_detail());
	for (int i = 0; r->rank == 0 && i < AHEAD; i++) {
		if (call(w.comm, WEFT_COLL_BROADCAST, "flat", 8, 0) != WEFT_SUCCESS)
			return ranks_say(r, "call %d: %s", i + 1, weft_error_detail());
	}
	if (!ranks_barrier(r))
		return RANKS_BAD;
	if (r->rank == 1)
		bad = says(r, call(w.comm, WEFT_COLL_BROADCAST, "flat", 8, 0),
			   WEFT_ERR_MISMATCH, words);
	return bad ? bad : world_close(r, &w);
}

static const struct {
	int32_t size;
	int (*body)(struct ranks *r);
	const char *what;
} cases[] = {
	{3, messages_body, "a rank that waits in a forgotten call hears it"},
	{2, closed_body, "what was never called is not forgotten"},
	{2, lines_body, "lines of a call and of one far behind it"},
	{2, pair_body, "a message that was sent long ago"},
	{2, hash_body, "a call before, which is forgotten"},
};

/* Buffers of failed calls are leaked on purpose. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	for (int i = 0; i < count; i++) {
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			const bool good = ranks_run(cases[k].size, 150, cases[k].body,
						    names[i], end);

			if (!good && end[0] == RANKS_ABSENT)
				tap_skip(1, "provider %s is not on this machine",
					 names[i]);
			else
				tap_ok(good, "%s: %s", names[i], cases[k].what);
		}
	}
	return tap_done();
}
