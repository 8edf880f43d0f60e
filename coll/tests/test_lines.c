/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives by lines among ranks of this host: every kind of call against the
 * reference, without a message; calls in line, non-blocking and persistent ones between
 * calls by messages, over two communicators at once; a rank that is ahead, one that dies,
 * ranks that disagree; and everybody by messages where one rank has no lines.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/algo/algo.h"
#include "coll/exec/lines.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define RUN_S	    120
#define LONG_US	    INT64_C(60000000)
#define DEADLINE_US INT64_C(1000000)
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const enum weft_coll colls[] = {
	WEFT_COLL_BARRIER,   WEFT_COLL_BROADCAST,      WEFT_COLL_ALLGATHER,
	WEFT_COLL_ALLREDUCE, WEFT_COLL_REDUCE_SCATTER, WEFT_COLL_ALLTOALL,
	WEFT_COLL_REDUCE,    WEFT_COLL_GATHER,	       WEFT_COLL_SCATTER};

/* A rank that lost a peer cannot close everything: it leaves with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

struct job {
	int (*run)(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm);
	uint32_t seed;
	bool lacks;  /* rank 1 has none */
	bool leaves; /* what failed is left as it is */
};

static uint32_t draw(uint32_t *state, size_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % (uint32_t)below;
}

static bool is_lines(struct weft_comm *comm)
{
	struct weft_call call = WEFT_CALL_INIT;
	const char *name;

	call.coll = WEFT_COLL_BARRIER;
	name = weft_algorithm(comm, &call, NULL);
	return name && strcmp(name, ALGO_LINES) == 0;
}

static const char *provider; /* the first that is there: lines do without */

static int there_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	int bad = ranks_open(r, r->arg, LONG_US, &ctx);

	if (!bad && weft_ctx_close(ctx) != WEFT_SUCCESS)
		bad = RANKS_BAD;
	return bad;
}

static int body(struct ranks *r)
{
	const struct job *job = r->arg;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad;

	if (job->lacks && r->rank == 1)
		setenv("WEFT_LINES", "off", 1);
	bad = ranks_open(r, provider, LONG_US, &ctx);
	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (is_lines(comm) != (r->size > 1 && !job->lacks))
		return ranks_say(r, "lines: %d", is_lines(comm));
	bad = job->run(r, ctx, comm);
	if (bad || job->leaves)
		return bad;
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* ---- every kind of call
 * -------------------------------------------------------------- */

/* Bytes of a block; where there is one for each rank, divided among them. */
static const uint64_t lengths[] = {1,	  8,	       LINES_SHORT, LINES_SHORT + 8,
				   1000,  LINES_BYTES, 20000,	    33344,
				   60000, 120000};
/* Those behind are read where they lie, or go in several turns. */
#define LENGTHS_SHORT 5

static bool has_blocks(enum weft_coll coll)
{
	return coll == WEFT_COLL_REDUCE_SCATTER || coll == WEFT_COLL_ALLTOALL ||
	       coll == WEFT_COLL_SCATTER;
}

static bool is_case(const struct ref_case *c)
{
	if (c->coll == WEFT_COLL_BROADCAST && c->in_place)
		return false;
	return !ref_reduces(c->coll) || ref_supported(c->type, c->op);
}

static struct ref_case any_case(const struct ranks *r, uint32_t *state)
{
	struct ref_case c;

	do {
		c = (struct ref_case){
			.coll = colls[draw(state, COUNT_OF(colls))],
			.type = (enum weft_type)draw(state, WEFT_TYPE_COUNT),
			.op = (enum weft_op)draw(state, WEFT_OP_COUNT),
			.root = (int32_t)draw(state, (size_t)r->size),
			.in_place = draw(state, 2),
			.salt = draw(state, 1000000),
		};
		/* In place only short ones of these go by lines. */
		c.count = lengths[draw(state, c.coll == WEFT_COLL_ALLTOALL && c.in_place
						      ? LENGTHS_SHORT
						      : COUNT_OF(lengths))] /
			  weft_type_size(c.type);
		if (has_blocks(c.coll))
			c.count /= (uint64_t)r->size;
	} while (!is_case(&c));
	if (c.coll == WEFT_COLL_BARRIER)
		c = (struct ref_case){.coll = WEFT_COLL_BARRIER, .type = WEFT_INT32};
	return c;
}

static uint64_t messages(struct weft_ctx *ctx)
{
	struct weft_stats stats = {.size = sizeof(stats)};

	weft_ctx_stats(ctx, &stats);
	return stats.msgs + stats.puts;
}

/* Each collective, type and operation that there is with it, then others at random. */
static int cases_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	uint32_t state = ((const struct job *)r->arg)->seed;
	const size_t types = WEFT_TYPE_COUNT, ops = WEFT_OP_COUNT;
	int bad = RANKS_GOOD;

	for (size_t i = 0; i < COUNT_OF(colls) * types * ops && !bad; i++) {
		struct ref_case c = {.coll = colls[i / types / ops],
				     .type = (enum weft_type)(i / ops % types),
				     .op = (enum weft_op)(i % ops),
				     .root = (int32_t)(i % (size_t)r->size),
				     .in_place = i / 3 % 2,
				     .count = 3,
				     .salt = (uint32_t)i};

		if (is_case(&c) && (ref_reduces(c.coll) || c.op == WEFT_SUM) &&
		    c.coll != WEFT_COLL_BARRIER)
			bad = case_run(r, comm, &c, c.coll == WEFT_COLL_ALLREDUCE);
	}
	for (int i = 0; i < (tap_short() ? 100 : 400) && !bad; i++) {
		struct ref_case c = any_case(r, &state);

		bad = case_run(r, comm, &c, c.coll == WEFT_COLL_ALLREDUCE);
	}
	if (!bad && messages(ctx))
		bad = ranks_say(r, "%llu messages", (unsigned long long)messages(ctx));
	return bad;
}

/* ---- turns
 * --------------------------------------------------------------------------- */

#define OPEN_MAX 6

struct open_call {
	struct ref_case c;
	struct case_bufs b;
	struct weft_req *req;
};

static int open_end(struct ranks *r, struct open_call *o)
{
	int bad;

	if (weft_req_wait(o->req, WEFT_TIMEOUT_DEFAULT) != WEFT_SUCCESS)
		return ranks_say(r, "wait: %s", weft_error_detail());
	bad = case_check(r, &o->c, &o->b);
	case_bufs_close(&o->b);
	return bad;
}

/* Calls of all kinds, some of which others overtake; ranks wait for theirs in different
 * orders. What starts, and in which communicator, is drawn alike by all. */
static int turns_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *first)
{
	uint32_t state = ((const struct job *)r->arg)->seed,
		 own = state + (uint32_t)r->rank;
	struct open_call open[OPEN_MAX];
	struct weft_comm *comm[2] = {first, NULL};
	int count = 0, bad = RANKS_GOOD;

	if (weft_comm_create(ctx, NULL, &comm[1]) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	for (int i = 0; i < (tap_short() ? 150 : 600) && !bad; i++) {
		struct ref_case c = any_case(r, &state);
		struct weft_comm *in = comm[draw(&state, 2)];

		if (draw(&state, 5) == 0 && c.coll != WEFT_COLL_BARRIER)
			/* Not by lines. */
			c.algorithm = algo_at(weft_coll_name(c.coll), 0)->name;
		if (draw(&state, 2)) {
			bad = case_run(r, in, &c, false);
		} else if (count < OPEN_MAX) {
			struct open_call *o = &open[count++];

			o->c = c;
			if (!case_bufs_open(&o->b, &c, r))
				return ranks_say(r, "no memory");
			if (case_start(in, &c, &o->b, &o->req) != WEFT_SUCCESS)
				return ranks_say(r, "start: %s", weft_error_detail());
		}
		while (count && !bad && (count == OPEN_MAX || draw(&state, 4) == 0)) {
			/* Any, one after the other. */
			while (count && !bad) {
				const size_t at = draw(&own, (size_t)count);

				bad = open_end(r, &open[at]);
				open[at] = open[--count];
			}
		}
	}
	while (count && !bad)
		bad = open_end(r, &open[--count]);
	if (!bad && weft_comm_destroy(comm[1]) != WEFT_SUCCESS)
		bad = ranks_say(r, "destroy: %s", weft_error_detail());
	return bad;
}

/* ---- failures
 * ------------------------------------------------------------------------ */

/* The root of broadcasts is ahead of a rank that calls none, as far as its slots go. */
static int ahead_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum weft_result got = WEFT_SUCCESS;
	uint32_t word = 7;
	int calls = 0;

	(void)ctx;
	if (weft_barrier(comm, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	opts.timeout_us = DEADLINE_US;
	while (r->rank != 1 && got == WEFT_SUCCESS && calls < 20) {
		got = weft_broadcast(comm, &word, 1, WEFT_UINT32, 0, &opts);
		calls += got == WEFT_SUCCESS;
	}
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank == 1)
		return RANKS_GOOD;
	if (calls != LINES_SLOTS - 1)
		return ranks_say(r, "%d calls were done", calls);
	if (r->rank == 0 && (got != WEFT_ERR_TIMEOUT ||
			     !strstr(weft_error_detail(), "no answer from rank 1") ||
			     !strstr(weft_error_detail(), "it to read ours")))
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	return RANKS_GOOD;
}

/* One dies where the others wait for it, after a barrier that all were in. */
static int death_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum weft_result got;

	(void)ctx;
	for (int i = 0; i < 10; i++) {
		if (weft_barrier(comm, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "barrier: %s", weft_error_detail());
	}
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank == 1)
		kill(getpid(), SIGKILL);
	/* Long before the deadline, also where a provider has no connection to the dead;
	 * a rank may begin when another has given up already. */
	opts.timeout_us = LONG_US;
	got = weft_barrier(comm, &opts);
	if ((got != WEFT_ERR_PEER && got != WEFT_ERR_COMM) ||
	    !strstr(weft_error_detail(), "rank 1"))
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	got = weft_barrier(comm, NULL);
	if (got != WEFT_ERR_COMM)
		return ranks_say(r, "next: %s", weft_strerror(got));
	return RANKS_GOOD;
}

#define FAR_COUNT 20000

/* Rank 1 comes when rank 0 has given up, and has changed what it gave: it must not end
 * well by it. */
static int late_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	float *src = calloc(FAR_COUNT, sizeof(*src));
	float *dst = calloc(FAR_COUNT * 2, sizeof(*dst));
	enum weft_result got;

	(void)ctx;
	if (!src || !dst || weft_barrier(comm, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	/* Rank 0 is silent afterwards: whether its word of it arrives is not the point.
	 */
	opts.timeout_us = r->rank == 0 ? DEADLINE_US / 4 : DEADLINE_US;
	if (r->rank == 1 && !ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	got = weft_allgather(comm, src, dst, FAR_COUNT, WEFT_FP32, &opts);
	if (got != (r->rank == 0 ? WEFT_ERR_TIMEOUT : WEFT_ERR_COMM) &&
	    (r->rank == 0 || (got != WEFT_ERR_TIMEOUT && got != WEFT_ERR_PEER)))
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	memset(src, 1, FAR_COUNT * sizeof(*src));
	if (r->rank == 0 && !ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	/* Rank 1 hears from us why. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	free(src);
	free(dst);
	return RANKS_GOOD;
}

/* One dies among long calls, at any moment of them. */
static int far_death_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	float *src = calloc(FAR_COUNT, sizeof(*src));
	float *dst = calloc(FAR_COUNT, sizeof(*dst));
	enum weft_result got = WEFT_SUCCESS;

	(void)ctx;
	if (!src || !dst || !ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	for (int i = 0; got == WEFT_SUCCESS; i++) {
		if (r->rank == 1 && i == 50)
			kill(getpid(), SIGKILL);
		got = weft_allreduce(comm, src, dst, FAR_COUNT, WEFT_FP32, WEFT_SUM,
				     NULL);
	}
	free(src);
	free(dst);
	if ((got != WEFT_ERR_PEER && got != WEFT_ERR_COMM) ||
	    !strstr(weft_error_detail(), "rank 1"))
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	return RANKS_GOOD;
}

#define DISAGREE_COUNT 400000

/* Rank 1 gives another root; another operation; another collective; one that is no call
 * for lines. */
static int disagree_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *first)
{
	uint32_t *big = calloc(DISAGREE_COUNT, sizeof(*big));

	for (int kind = 0; kind < 4; kind++) {
		struct weft_comm *comm;
		enum weft_result got;
		const bool odd = r->rank == 1;
		uint32_t x = 1, y[8];
		const char *text;

		if (!big || weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
			return ranks_say(r, "comm: %s", weft_error_detail());
		if (kind == 0)
			got = weft_broadcast(comm, &x, 1, WEFT_UINT32, odd, NULL);
		else if (kind == 1 || !odd)
			got = weft_allreduce(comm, &x, y, 1, WEFT_UINT32,
					     odd ? WEFT_MAX : WEFT_SUM, NULL);
		else if (kind == 2)
			got = weft_allgather(comm, &x, y, 1, WEFT_UINT32, NULL);
		else
			got = weft_allreduce(comm, big, big, DISAGREE_COUNT, WEFT_UINT32,
					     WEFT_SUM, NULL);
		/* Who finished hears it in the next. */
		if (got == WEFT_SUCCESS)
			got = weft_barrier(comm, NULL);
		text = weft_error_detail();
		if ((got != WEFT_ERR_MISMATCH && got != WEFT_ERR_COMM) ||
		    !strstr(text, "rank 1") || !strstr(text, "every rank must give"))
			return ranks_say(r, "kind %d: %s: %s", kind, weft_strerror(got),
					 text);
		/* The others need our answers until they know. */
		if (weft_barrier(first, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "barrier: %s", weft_error_detail());
	}
	free(big);
	return RANKS_GOOD;
}

int main(void)
{
	const char *given = getenv("WEFT_TEST_SEED");
	struct job job = {.run = cases_run,
			  .seed = given ? (uint32_t)strtoul(given, NULL, 10)
					: (uint32_t)time(NULL)};
	static const int32_t sizes[] = {1, 2, 3, 5, 8};
	char names[8][32];
	const int count = ranks_providers("weft,tcp,shm", names, 8);
	int end[RANKS_MAX];

	for (int i = 0; i < count && !provider; i++) {
		ranks_run(1, RUN_S, there_body, names[i], end);
		if (end[0] != RANKS_ABSENT)
			provider = names[i];
	}
	if (!provider) {
		tap_skip(1, "no provider is on this machine");
		return tap_done();
	}
	tap_diag("seed %u (repeat with WEFT_TEST_SEED=%u)", job.seed, job.seed);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		tap_ok(ranks_run(sizes[i], RUN_S, body, &job, end),
		       "%d ranks: each kind of call has its result, without a message",
		       sizes[i]);
	}
	job.run = turns_run;
	for (int32_t size = 2; size <= 4; size++)
		tap_ok(ranks_run(size, RUN_S, body, &job, end),
		       "%d ranks: calls of all kinds take their turns", size);
	job.lacks = true;
	tap_ok(ranks_run(3, RUN_S, body, &job, end),
	       "where one rank has no lines all go by messages");
	job = (struct job){.run = ahead_run, .leaves = true};
	tap_ok(ranks_run(2, RUN_S, body, &job, end),
	       "a root is ahead as far as its slots go, and then names whom it waits "
	       "for");
	job.run = disagree_run;
	tap_ok(ranks_run(3, RUN_S, body, &job, end), "ranks that disagree hear so");
	job.run = late_run;
	tap_ok(ranks_run(2, RUN_S, body, &job, end),
	       "what a rank takes back nobody ends well by");
	job.run = far_death_run;
	ranks_run(3, RUN_S, body, &job, end);
	tap_ok(end[0] == RANKS_GOOD && end[2] == RANKS_GOOD,
	       "a rank that dies among long calls is named by the others");
	job.run = death_run;
	ranks_run(3, RUN_S, body, &job, end);
	tap_ok(end[0] == RANKS_GOOD && end[2] == RANKS_GOOD,
	       "a rank that dies is named by the others");
	return tap_done();
}
