/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong between ranks: one dies in the middle, one never calls, ranks disagree
 * about a call. Everybody else gets out within the deadline and hears whom it was about;
 * the communicator remembers the first cause; memory that a peer may write stays held
 * (rule D3).
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/exec/exec.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

/* Of calls that somebody never answers. */
#define DEADLINE_US INT64_C(1000000)
/* Of all others: more than anything needs, on whatever machine. */
#define LONG_US INT64_C(60000000)
#define RUN_S	120

/* Elements of an all-reduce that sends long messages without READY over Weft. */
#define LONG_COUNT 12000

/* A rank that lost a peer cannot close everything (rule D3): it leaves with memory held.
 */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

struct failure {
	const char *provider;
	uint64_t count; /* elements of the all-reduce */
	int32_t culprit;
	bool dies;
};

static int open_both(struct ranks *r, const char *provider, struct weft_ctx **ctx,
		     struct weft_comm **comm)
{
	int bad = ranks_open(r, provider, LONG_US, ctx);

	if (bad)
		return bad;
	if (weft_comm_create(*ctx, NULL, comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* Progress for others that still need our answers: until they have what they wait for,
 * and for a while until nobody writes into our buffers any more. */
static void linger(struct ranks *r, struct weft_comm *comm, int64_t us)
{
	const int64_t begin = exec_now();
	const struct timespec nap = {.tv_nsec = 1000000};

	ranks_mark(r);
	while (exec_now() < begin + LONG_US &&
	       (exec_now() < begin + us || ranks_marks(r) < r->size)) {
		if (weft_comm_destroy(comm) == WEFT_SUCCESS)
			return;
		nanosleep(&nap, NULL);
	}
}

/* ---- a rank dies, or never calls
 * ----------------------------------------------------- */

/* Whether this rank's call was begun: a machine that is busy may let a rank begin its own
 * when another has given up already. Then the communicator has failed, by what that one
 * reports. */
static bool silent_began = true;

static int silent_others(struct ranks *r, const struct failure *f, struct weft_comm *comm,
			 float *src, float *dst)
{
	enum weft_result result = WEFT_SUCCESS;
	struct weft_opts opts = WEFT_OPTS_INIT;
	char named[2][32];
	char detail[1024];
	int64_t begin = 0;

	opts.timeout_us = DEADLINE_US;
	/* A few calls may still succeed: what the dead rank sent before it died. */
	for (int i = 0; i < 10 && result == WEFT_SUCCESS; i++) {
		begin = exec_now();
		result = weft_allreduce(comm, src, dst, f->count, WEFT_FP32, WEFT_SUM,
					&opts);
	}
	snprintf(detail, sizeof(detail), "%s", weft_error_detail());
	ranks_say(r, "(%s: %s)", weft_strerror(result), detail);
	silent_began = result != WEFT_ERR_COMM || !strstr(detail, " reports: ");
	if (result != WEFT_ERR_TIMEOUT && result != WEFT_ERR_PEER && silent_began)
		return ranks_say(r, "neither timeout nor a lost peer: %s",
				 weft_strerror(result));
	/* The call's own deadline, not the context's. */
	if (exec_now() - begin > LONG_US / 2)
		return ranks_say(r, "took %.1f s", (double)(exec_now() - begin) * 1e-6);
	snprintf(named[0], sizeof(named[0]), "rank %d", f->culprit);
	snprintf(named[1], sizeof(named[1]), "no answer from rank");
	if (!strstr(detail, named[0]) && !strstr(detail, named[1]))
		return ranks_say(r, "nobody is named");
	result = weft_barrier(comm, NULL);
	if (result != WEFT_ERR_COMM || !strstr(weft_error_detail(), "rank "))
		return ranks_say(r, "the next call gave %s: %s", weft_strerror(result),
				 weft_error_detail());
	return RANKS_GOOD;
}

/* The silent rank calls at last: it hears at once that the others gave up. */
static int silent_late(struct ranks *r, const struct failure *f, struct weft_comm *comm,
		       float *src, float *dst)
{
	enum weft_result result = WEFT_SUCCESS;

	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	/* Small messages were sent before the others gave up: with them its own call may
	 * succeed, and it hears in the next one. */
	for (int i = 0; i < 2 && result == WEFT_SUCCESS; i++)
		result = weft_allreduce(comm, src, dst, f->count, WEFT_FP32, WEFT_SUM,
					NULL);
	if ((result == WEFT_ERR_TIMEOUT || result == WEFT_ERR_COMM) &&
	    strstr(weft_error_detail(), "reports"))
		return RANKS_GOOD;
	return ranks_say(r, "its own call gave %s: %s", weft_strerror(result),
			 weft_error_detail());
}

/* D3: what the silent rank might write is held until it answers, not longer. The other
 * communicator works as before. */
static int silent_end_D3(struct ranks *r, const struct failure *f, struct weft_comm *comm,
			 struct weft_comm *other)
{
	const int64_t until = exec_now() + LONG_US;
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum weft_result result;

	if (r->rank != f->culprit) {
		result = weft_comm_destroy(comm);
		if (f->count > 100000 && silent_began &&
		    r->rank == (f->culprit + 1) % r->size && result != WEFT_ERR_BUSY)
			return ranks_say(r, "destroy gave %s while a place was open",
					 weft_strerror(result));
		if (!ranks_barrier(r))
			return ranks_say(r, "the ranks of the test lost each other");
		if (result == WEFT_SUCCESS)
			comm = NULL;
	}
	while (comm && weft_comm_destroy(comm) != WEFT_SUCCESS) {
		const struct timespec nap = {.tv_nsec = 1000000};

		if (exec_now() > until)
			return ranks_say(r, "never safe: %s", weft_error_detail());
		nanosleep(&nap, NULL);
	}
	opts.timeout_us = LONG_US;
	if (weft_barrier(other, &opts) != WEFT_SUCCESS)
		return ranks_say(r, "other communicator: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int silent_run(struct ranks *r, const struct failure *f, struct weft_ctx *ctx,
		      struct weft_comm *comm, float *src, float *dst)
{
	struct weft_comm *other;
	int bad;

	if (weft_comm_create(ctx, NULL, &other) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	for (int i = 0; i < 3; i++) {
		if (weft_allreduce(comm, src, dst, f->count, WEFT_FP32, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS)
			return ranks_say(r, "before: %s", weft_error_detail());
	}
	/* Not before all have it: what it sent last may be lost with it. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank == f->culprit && f->dies)
		kill(getpid(), SIGKILL);
	if (r->rank == f->culprit)
		bad = silent_late(r, f, comm, src, dst);
	else
		bad = silent_others(r, f, comm, src, dst);
	if (!bad && !f->dies)
		bad = silent_end_D3(r, f, comm, other);
	return bad;
}

static int silent_body(struct ranks *r)
{
	const struct failure *f = r->arg;
	float *memory = calloc(2 * f->count, sizeof(*memory));
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_both(r, f->provider, &ctx, &comm);

	if (!bad)
		bad = silent_run(r, f, ctx, comm, memory, memory + f->count);
	free(memory);
	return bad;
}

static void silent_test(struct failure *f, const char *what)
{
	int end[RANKS_MAX];
	bool good = true;

	ranks_run(4, RUN_S, silent_body, f, end);
	for (int32_t i = 0; i < 4; i++)
		good = good && ((f->dies && i == f->culprit) || end[i] == RANKS_GOOD);
	tap_ok(good, "%s: %s, %llu elements: the others get out and name it", f->provider,
	       what, (unsigned long long)f->count);
}

/* ---- ranks disagree
 * ------------------------------------------------------------------ */

struct disagree {
	const char *provider;
	const char *what;
	uint64_t count, other_count; /* rank 1 gives the other one */
	bool other_coll;
};

#define GUARD_BYTES 4096

static int disagree_run(struct ranks *r, const struct disagree *d, struct weft_comm *comm,
			float *src, uint8_t *dst)
{
	const bool odd = r->rank == 1;
	const uint64_t count = odd ? d->other_count : d->count;
	enum weft_result result;
	int bad = RANKS_GOOD;

	/* A mismatch must not write beyond the destination. */
	memset(dst + count * 4, 0x77, GUARD_BYTES);
	if (odd && d->other_coll)
		result = weft_broadcast(comm, dst, count, WEFT_FP32, 1, NULL);
	else
		result = weft_allreduce(comm, src, dst, count, WEFT_FP32, WEFT_SUM, NULL);
	ranks_say(r, "(%s: %s)", weft_strerror(result), weft_error_detail());
	if (result != WEFT_ERR_MISMATCH || !strstr(weft_error_detail(), "rank "))
		bad = ranks_say(r, "no mismatch: %s", weft_strerror(result));
	linger(r, comm, 1500000);
	for (int i = 0; i < GUARD_BYTES; i++) {
		if (dst[count * 4 + i] != 0x77)
			return ranks_say(r, "wrote beyond the buffer");
	}
	return bad;
}

static int disagree_body(struct ranks *r)
{
	const struct disagree *d = r->arg;
	const uint64_t most = d->count > d->other_count ? d->count : d->other_count;
	float *src = calloc(most, sizeof(*src));
	uint8_t *dst = calloc(most * 4 + GUARD_BYTES, 1);
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = open_both(r, d->provider, &ctx, &comm);

	if (!bad)
		bad = disagree_run(r, d, comm, src, dst);
	free(src);
	free(dst);
	return bad;
}

static void disagree_test(const char *provider)
{
	struct disagree cases[] = {
		{.what = "small counts", .count = 8, .other_count = 16},
		{.what = "large counts", .count = 100000, .other_count = 100004},
		{.what = "middling counts", .count = LONG_COUNT, .other_count = 12004},
		{.what = "a small and a large count", .count = 16, .other_count = 100000},
		{.what = "the collective",
		 .count = 100000,
		 .other_count = 100000,
		 .other_coll = true},
	};
	int end[RANKS_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cases[i].provider = provider;
		tap_ok(ranks_run(2, RUN_S, disagree_body, &cases[i], end),
		       "%s: ranks that disagree about %s hear so", provider,
		       cases[i].what);
	}
}

static int there_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	int bad = ranks_open(r, r->arg, LONG_US, &ctx);

	if (!bad && weft_ctx_close(ctx) != WEFT_SUCCESS)
		bad = RANKS_BAD;
	return bad;
}

int main(void)
{
	char names[8][32];
	int count = ranks_providers("weft,tcp,shm", names, 8);

	/* What goes by messages and puts is looked at here. */
	setenv("WEFT_LINES", "off", 1);
	for (int i = 0; i < count; i++) {
		struct failure f = {.provider = names[i], .count = 64, .culprit = 2};
		int end[RANKS_MAX];

		ranks_run(1, RUN_S, there_body, names[i], end);
		if (end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		f.dies = true;
		silent_test(&f, "a rank dies");
		f.count = 200000;
		silent_test(&f, "a rank dies");
		f.dies = false;
		silent_test(&f, "a rank never calls");
		f.count = 64;
		silent_test(&f, "a rank never calls");
		/* Announced messages, which wait for their receiver. */
		if (strcmp(names[i], "weft") == 0) {
			f.count = LONG_COUNT;
			silent_test(&f, "a rank never calls");
			f.dies = true;
			silent_test(&f, "a rank dies");
		}
		disagree_test(names[i]);
	}
	return tap_done();
}
