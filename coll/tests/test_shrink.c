/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators that go on without ranks that died: at random moments, also while the
 * others decide about an earlier death; without one that stands still, which is told so
 * when it wakes; without a majority, where nothing is decided until enough come; and the
 * last one alone, where the kernel says that all others have ended. WEFT_SEED repeats the
 * moments.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define LONG_US	 INT64_C(120000000)
#define CALL_US	 INT64_C(5000000) /* then a call is given up; nobody may have died */
#define RUN_S	 180
#define SIZE	 5
#define DEATHS	 2
#define LARGE	 50000
#define STEPS	 30	/* that count, when only those are left that live */
#define SOON_MAX 400000 /* us, in which who dies does so */

static const char *provider;
static uint64_t seed;

static void nap_us(int64_t us)
{
	const struct timespec ts = {.tv_sec = us / 1000000,
				    .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

static bool marks_reach(struct ranks *r, int32_t count)
{
	const int64_t until = exec_now() + LONG_US;

	while (ranks_marks(r) < count && exec_now() < until)
		nap_us(1000);
	return ranks_marks(r) >= count;
}

static enum weft_result go_away(struct weft_comm *comm)
{
	const int64_t until = exec_now() + LONG_US;
	enum weft_result result = weft_comm_destroy(comm);

	/* A peer that lives may still write; it lets go when it hears of the end. */
	while (result == WEFT_ERR_BUSY && exec_now() < until) {
		nap_us(1000);
		result = weft_comm_destroy(comm);
	}
	return result;
}

/* ---- deaths at random moments ---------------------------------------------------------
 */

static void *die_soon(void *arg)
{
	nap_us(*(const int64_t *)arg);
	kill(getpid(), SIGKILL);
	return NULL;
}

/* One step: everybody's number, once in a while in something long. */
static enum weft_result step(struct weft_comm *comm, int id, int64_t *members, float *big,
			     int number)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	const int64_t mine = INT64_C(1) << 8 * id;
	enum weft_result result;

	opts.timeout_us = CALL_US;
	if (number % 4 == 3) {
		for (int i = 0; i < LARGE; i++)
			big[i] = 1;
		result = weft_allreduce(comm, big, big + LARGE, LARGE, WEFT_FP32,
					WEFT_SUM, &opts);
		if (result == WEFT_SUCCESS &&
		    big[LARGE + LARGE - 1] != (float)weft_comm_size(comm))
			*members = -1;
		return result;
	}
	return weft_allreduce(comm, &mine, members, 1, WEFT_INT64, WEFT_SUM, &opts);
}

/* Steps until only those that live are left, and then some; comm is replaced. */
static int go_on(struct ranks *r, struct weft_comm **comm, float *big, int32_t left)
{
	int counted = 0, shrunk = 0;

	for (int i = 0; counted < STEPS; i++) {
		int64_t members = 0;
		enum weft_result result = step(*comm, r->rank, &members, big, i);
		struct weft_comm *next;

		if (result == WEFT_SUCCESS) {
			counted += weft_comm_size(*comm) == left;
			for (int id = 0; id < SIZE && members; id++) {
				if ((members >> 8 * id & 0xff) > 1 || members < 0)
					return ranks_say(r, "a wrong sum: %llx",
							 (unsigned long long)members);
			}
			continue;
		}
		result = weft_comm_shrink(*comm, NULL, LONG_US, &next);
		if (result != WEFT_SUCCESS)
			return ranks_say(r, "shrink: %s", weft_error_detail());
		if (weft_comm_size(next) > weft_comm_size(*comm) || ++shrunk > 20)
			return ranks_say(r, "%d times, %d of %d ranks", shrunk,
					 weft_comm_size(next), weft_comm_size(*comm));
		if (go_away(*comm) != WEFT_SUCCESS)
			return ranks_say(r, "destroy: %s", weft_error_detail());
		*comm = next;
		/* Steps of all begin alike in it. */
		i = -1;
		counted = 0;
	}
	return RANKS_GOOD;
}

static bool dies_here(const struct ranks *r)
{
	const int32_t first = (int32_t)(mix(seed) % SIZE);

	return r->rank == first || r->rank == (first + 2) % SIZE;
}

static int deaths_body(struct ranks *r)
{
	/* What is left as it is, where this can't be had, is no leak. */
	static struct weft_comm *world, *comm;
	static struct weft_ctx *ctx;
	float *big = calloc((size_t)2 * LARGE, sizeof(*big));
	/* The second dies soon after the first, while that is looked into. */
	const int64_t base = (int64_t)(mix(seed + 1) % SOON_MAX);
	int64_t at = base + (int64_t)(mix(seed + 2 + (uint64_t)r->rank) % 60000);
	pthread_t thread;
	int bad = ranks_open(r, provider, LONG_US, &ctx);

	if (bad) {
		free(big);
		return bad;
	}
	/* The other way round, so that numbers here and there differ. */
	if (!big || weft_comm_create(ctx, NULL, &world) != WEFT_SUCCESS ||
	    weft_comm_split(world, 0, -r->rank, NULL, &comm) != WEFT_SUCCESS ||
	    !ranks_barrier(r))
		return ranks_say(r, "begin: %s", weft_error_detail());
	/* Without the proof that they have ended it is silence that counts, which takes
	 * minutes here; and buffers that the dead might write are not given back. */
	if (exec_lines_level(ctx->exec) == LINES_NONE) {
		free(big);
		return RANKS_ABSENT;
	}
	if (dies_here(r) && pthread_create(&thread, NULL, die_soon, &at))
		return ranks_say(r, "no thread");
	bad = go_on(r, &comm, big, SIZE - DEATHS);
	if (!bad && (go_away(comm) != WEFT_SUCCESS || go_away(world) != WEFT_SUCCESS ||
		     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	free(big);
	return bad;
}

/* ---- one that stands still ------------------------------------------------------------
 */

#define STILL_US INT64_C(30000000)

static int still_wakes(struct ranks *r, struct weft_comm *comm)
{
	struct weft_comm *out;
	enum weft_result result;

	raise(SIGSTOP);
	result = weft_comm_shrink(comm, NULL, LONG_US, &out);
	if (result != WEFT_ERR_FENCED || !strstr(weft_error_detail(), "without rank 3"))
		return ranks_say(r, "%s: %s", weft_strerror(result), weft_error_detail());
	result = weft_comm_shrink(comm, NULL, LONG_US, &out);
	if (result != WEFT_ERR_ARG)
		return ranks_say(r, "again: %s", weft_error_detail());
	ranks_mark(r);
	return RANKS_GOOD;
}

/* The others answer who comes late, as long as they call something. */
static int still_others(struct ranks *r, struct weft_comm *comm, const pid_t *pids,
			struct weft_comm **out)
{
	uint32_t over = 0;

	/* All at the same time: who is left out is the one that stands still. */
	ranks_mark(r);
	if (!marks_reach(r, 3))
		return ranks_say(r, "the others don't come");
	if (weft_comm_shrink(comm, NULL, STILL_US, out) != WEFT_SUCCESS)
		return ranks_say(r, "shrink: %s", weft_error_detail());
	if (weft_comm_size(*out) != 3)
		return ranks_say(r, "%d ranks go on", weft_comm_size(*out));
	if (weft_comm_rank(*out) == 0)
		kill(pids[3], SIGCONT);
	while (!over) {
		over = ranks_marks(r) >= 4;
		if (weft_broadcast(*out, &over, 1, WEFT_UINT32, 0, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "broadcast: %s", weft_error_detail());
	}
	return RANKS_GOOD;
}

static int still_body(struct ranks *r)
{
	struct weft_comm *comm, *out = NULL;
	pid_t pids[RANKS_MAX], own = getpid();
	struct weft_ctx *ctx;
	int bad = ranks_open(r, provider, LONG_US, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS ||
	    !ranks_gather(r, &own, pids, sizeof(own)))
		return ranks_say(r, "begin: %s", weft_error_detail());
	bad = r->rank == 3 ? still_wakes(r, comm) : still_others(r, comm, pids, &out);
	if (!bad &&
	    ((out && go_away(out) != WEFT_SUCCESS) || go_away(comm) != WEFT_SUCCESS ||
	     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

/* ---- too few, at first ----------------------------------------------------------------
 */

#define FEW_US INT64_C(3000000)

/* Two of four decide nothing alone. When the others come, all go on; or those two, if
 * the others answered what had been proposed before they asked themselves. */
static int few_body(struct ranks *r)
{
	struct weft_comm *comm, *out = NULL;
	struct weft_ctx *ctx;
	enum weft_result result;
	int32_t one = 1, sum = 0;
	int bad = ranks_open(r, provider, LONG_US, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS || !ranks_barrier(r))
		return ranks_say(r, "begin: %s", weft_error_detail());
	if (r->rank < 2) {
		result = weft_comm_shrink(comm, NULL, FEW_US, &out);
		if (result != WEFT_ERR_TIMEOUT ||
		    !strstr(weft_error_detail(), "more than half of them"))
			return ranks_say(r, "%s: %s", weft_strerror(result),
					 weft_error_detail());
		ranks_mark(r);
	} else if (!marks_reach(r, 2)) {
		return ranks_say(r, "the others don't give up");
	}
	result = weft_comm_shrink(comm, NULL, LONG_US, &out);
	if (result == WEFT_ERR_FENCED && r->rank >= 2)
		out = NULL;
	else if (result != WEFT_SUCCESS)
		return ranks_say(r, "then: %s", weft_error_detail());
	if (out && (weft_allreduce(out, &one, &sum, 1, WEFT_INT32, WEFT_SUM, NULL) !=
			    WEFT_SUCCESS ||
		    sum != weft_comm_size(out) || (sum != 2 && sum != 4)))
		return ranks_say(r, "sum %d: %s", sum, weft_error_detail());
	/* Whoever is late is still answered. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if ((out && go_away(out) != WEFT_SUCCESS) || go_away(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		bad = ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

/* ---- the last one ---------------------------------------------------------------------
 */

static int last_body(struct ranks *r)
{
	/* Of what the dead may still write to nothing is given back: that is no leak. */
	static struct weft_comm *comm;
	static struct weft_ctx *ctx;
	const char *lines = getenv("WEFT_LINES");
	struct weft_comm *out, *wrong;
	enum weft_result result;
	int32_t one = 1, sum = 0;
	int bad = ranks_open(r, provider, LONG_US, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "begin: %s", weft_error_detail());
	if (weft_comm_shrink(NULL, NULL, 0, &out) != WEFT_ERR_ARG ||
	    weft_comm_shrink(comm, NULL, 0, NULL) != WEFT_ERR_ARG ||
	    weft_comm_shrink(comm, NULL, -5, &out) != WEFT_ERR_ARG ||
	    weft_comm_shrink(comm, NULL, WEFT_TIMEOUT_INFINITE, &out) != WEFT_ERR_ARG)
		return ranks_say(r, "what makes no sense is not refused");
	/* Nothing of that took the communicator back. */
	if (weft_barrier(comm, NULL) != WEFT_SUCCESS || !ranks_barrier(r))
		return ranks_say(r, "barrier: %s", weft_error_detail());
	if (r->rank != 2)
		kill(getpid(), SIGKILL);
	if (exec_lines_level(ctx->exec) == LINES_NONE &&
	    !(lines && strcmp(lines, "off") == 0))
		return RANKS_ABSENT;
	result = weft_comm_shrink(
		comm, NULL, exec_lines_level(ctx->exec) != LINES_NONE ? LONG_US : FEW_US,
		&out);
	if (exec_lines_level(ctx->exec) == LINES_NONE)
		return result == WEFT_ERR_TIMEOUT
			       ? RANKS_GOOD
			       : ranks_say(r, "alone without proof: %s",
					   weft_strerror(result));
	if (result != WEFT_SUCCESS || weft_comm_size(out) != 1 ||
	    weft_allreduce(out, &one, &sum, 1, WEFT_INT32, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS ||
	    sum != 1)
		return ranks_say(r, "alone: %s", weft_error_detail());
	if (weft_comm_shrink(comm, NULL, 0, &wrong) != WEFT_ERR_ARG ||
	    !strstr(weft_error_detail(), "was shrunk before"))
		return ranks_say(r, "again: %s", weft_error_detail());
	if (go_away(out) != WEFT_SUCCESS || go_away(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* ---- all of it ------------------------------------------------------------------------
 */

static bool run(int32_t size, int (*body)(struct ranks *r), int32_t dead, int *absent)
{
	int ends[RANKS_MAX];
	int32_t killed = 0, good = 0;

	ranks_run(size, RUN_S, body, NULL, ends);
	*absent = 0;
	for (int32_t i = 0; i < size; i++) {
		killed += ends[i] == RANKS_KILLED;
		good += ends[i] == RANKS_GOOD;
		*absent |= ends[i] == RANKS_ABSENT;
	}
	if (killed != dead || good != size - dead)
		tap_diag("%d ranks ended well, %d were killed", good, killed);
	return killed == dead && good == size - dead;
}

static void say(bool good, int absent, const char *what)
{
	if (absent)
		tap_skip(1, "%s: %s: not on this machine", provider, what);
	else
		tap_ok(good, "%s: %s", provider, what);
}

static void test_provider(uint64_t first)
{
	const int rounds = tap_short() ? 3 : 12;
	bool good = true;
	int absent = 0;

	for (int i = 0; i < rounds && good; i++) {
		seed = first + (uint64_t)i * 16;
		good = run(SIZE, deaths_body, DEATHS, &absent);
		if (!good && !absent)
			tap_diag("repeat with WEFT_SEED=%llu", (unsigned long long)seed);
	}
	say(good, absent, "two of five die at random moments, the others go on");
	if (absent)
		return;
	good = run(4, still_body, 0, &absent);
	say(good, absent, "one stands still, is left out, and is told so");
	good = run(4, few_body, 0, &absent);
	say(good, absent, "half of them decide nothing until others come");
	good = run(3, last_body, 2, &absent);
	say(good, absent,
	    "the last one goes on where all others are known to have ended");
	setenv("WEFT_LINES", "off", 1);
	good = run(3, last_body, 2, &absent);
	say(good, absent, "and does not where that is not known");
	unsetenv("WEFT_LINES");
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");
	const uint64_t first =
		given ? strtoull(given, NULL, 0) : (uint64_t)exec_now() % 1000000;
	char names[8][32];
	const int count = ranks_providers("weft,tcp", names, 8);

	tap_diag("seed %llu (repeat with WEFT_SEED=%llu)", (unsigned long long)first,
		 (unsigned long long)first);
	for (int i = 0; i < count; i++) {
		provider = names[i];
		test_provider(first);
	}
	return tap_done();
}
