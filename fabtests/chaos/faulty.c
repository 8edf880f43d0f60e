/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rank of a job in which one rank does something wrong, for analyze-seeded: all go
 * round some collectives, then the fault happens, and whoever hangs hangs. Ranks that
 * come to an end keep their contexts and wait to be killed.
 *
 *   faulty FAULT RANK FOLDER     FOLDER/fault is written just before the fault
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "weft/weft.h"

enum {
	ROUNDS = 8,
	COUNT = 1024,	      /* elements of short calls */
	LONG = 32 * 1024,     /* and of long ones */
	LEAVE_S = 300,	      /* a rank that nobody kills leaves */
	SLOW_RUN_US = 1000,   /* a rank that is slowed down runs so long, */
	SLOW_STOP_US = 29000, /* and is stopped so long */
	WORK_US = 4000,	      /* of computing between calls, in time of the processor */
};

struct work {
	struct weft_ctx *ctx;
	struct weft_comm *all, *other; /* the same ranks */
	int32_t rank, size, bad;
	const char *fault, *folder;
	float *in, *out;
};

static void leave(int number)
{
	(void)number;
	_exit(0);
}

/* The rest of the job goes on hanging as it does. */
static void stay(void)
{
	for (;;)
		pause();
}

static void say(const struct work *w, const char *what)
{
	fprintf(stderr, "rank %d: %s: %s\n", w->rank, what, weft_error_detail());
}

/* What fails is not repeated: the rank stays as it is. */
static void must(const struct work *w, const char *what, enum weft_result result)
{
	if (result == WEFT_SUCCESS)
		return;
	say(w, what);
	stay();
}

static void mark(const struct work *w)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/fault", w->folder);
	out = fopen(path, "w");
	if (!out || fclose(out)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		_exit(1);
	}
}

static bool is(const struct work *w, const char *fault)
{
	return strcmp(w->fault, fault) == 0;
}

/* ---- what all do ------------------------------------------------------------------- */

static void allreduce(struct work *w, struct weft_comm *comm, uint64_t count)
{
	must(w, "all-reduce",
	     weft_allreduce(comm, w->in, w->out, count, WEFT_FP32, WEFT_SUM, NULL));
}

static void broadcast(struct work *w)
{
	must(w, "broadcast", weft_broadcast(w->all, w->in, COUNT, WEFT_FP32, 0, NULL));
}

/* So much computing, in time of the processor. */
static void compute(void)
{
	struct timespec t;
	int64_t begin, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	begin = now = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
	while (now - begin < WORK_US) {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		now = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
	}
}

static void round_of(struct work *w)
{
	allreduce(w, w->all, COUNT);
	broadcast(w);
	allreduce(w, w->other, LONG);
}

/* ---- faults ------------------------------------------------------------------------ */

/* Somebody who stops the parent again and again, until it is gone. */
static void slow_down(void)
{
	const pid_t parent = getpid();

	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent && kill(parent, SIGSTOP) == 0) {
		usleep(SLOW_STOP_US);
		kill(parent, SIGCONT);
		usleep(SLOW_RUN_US);
	}
	_exit(0);
}

static void started_and_left(struct work *w)
{
	struct weft_req *req;

	must(w, "start",
	     weft_allreduce_start(w->all, w->in, w->out, LONG, WEFT_FP32, WEFT_SUM, NULL,
				  &req));
	if (is(w, "halt"))
		raise(SIGSTOP);
}

/* What the bad rank does instead of the next round. */
static void fault_alone(struct work *w)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	double *wide;

	mark(w);
	if (is(w, "kill"))
		raise(SIGKILL);
	if (is(w, "crash"))
		raise(SIGSEGV);
	if (is(w, "stop"))
		raise(SIGSTOP);
	if (is(w, "never"))
		stay();
	if (is(w, "asleep") || is(w, "halt"))
		started_and_left(w);
	if (is(w, "skip"))
		broadcast(w);
	if (is(w, "count"))
		allreduce(w, w->all, COUNT - 1);
	if (is(w, "type")) {
		wide = calloc(COUNT, 2 * sizeof(*wide));
		if (wide)
			must(w, "all-reduce",
			     weft_allreduce(w->all, wide, wide + COUNT, COUNT, WEFT_FP64,
					    WEFT_SUM, NULL));
	}
	if (is(w, "op"))
		must(w, "all-reduce",
		     weft_allreduce(w->all, w->in, w->out, COUNT, WEFT_FP32, WEFT_MAX,
				    NULL));
	if (is(w, "algorithm")) {
		opts.algorithm = "recursive-doubling";
		must(w, "all-reduce",
		     weft_allreduce(w->all, w->in, w->out, LONG, WEFT_FP32, WEFT_SUM,
				    &opts));
	}
	if (is(w, "order"))
		allreduce(w, w->other, COUNT);
	if (is(w, "message"))
		must(w, "receive",
		     weft_recv(w->all, w->out, COUNT, WEFT_FP32, (w->bad + 1) % w->size,
			       NULL));
	stay();
}

/* What the others do, when it has happened or is about to. */
static void others(struct work *w)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.algorithm = "ring";
	if (is(w, "message") && w->rank == (w->bad + 1) % w->size)
		stay();
	if (is(w, "algorithm"))
		must(w, "all-reduce",
		     weft_allreduce(w->all, w->in, w->out, LONG, WEFT_FP32, WEFT_SUM,
				    &opts));
	allreduce(w, w->all, is(w, "asleep") || is(w, "halt") ? LONG : COUNT);
	allreduce(w, w->other, COUNT);
	for (;;)
		round_of(w);
}

/* Those that the environment of the bad rank makes: rings of long calls, with a little
 * computing, until somebody ends it. */
static void around(struct work *w)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.algorithm = "ring";
	if (w->rank == w->bad) {
		if (is(w, "slow-rank"))
			slow_down();
		mark(w);
	}
	for (;;) {
		if (is(w, "slow-rank"))
			compute();
		must(w, "all-reduce",
		     weft_allreduce(w->all, w->in, w->out, 8 * LONG, WEFT_FP32, WEFT_SUM,
				    &opts));
	}
}

static bool is_around(const struct work *w)
{
	return is(w, "slow-rank") || is(w, "around");
}

static void work(struct work *w)
{
	w->in = calloc(8 * LONG, sizeof(*w->in));
	w->out = calloc(8 * LONG, sizeof(*w->out));
	if (!w->in || !w->out)
		_exit(1);
	must(w, "communicator", weft_comm_create(w->ctx, NULL, &w->all));
	w->size = weft_comm_size(w->all);
	must(w, "second communicator", weft_comm_dup(w->all, NULL, &w->other));
	if (is_around(w))
		around(w);
	for (int i = 0; i < ROUNDS; i++)
		round_of(w);
	if (w->rank == w->bad)
		fault_alone(w);
	others(w);
}

int main(int argc, char **argv)
{
	struct work w = {.bad = argc == 4 ? atoi(argv[2]) : -1};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	const char *name = getenv("WEFT_RANK"), *bad;

	if (argc != 4 || !name) {
		fprintf(stderr, "usage: weft run -n N faulty FAULT RANK FOLDER\n");
		return 2;
	}
	w.rank = atoi(name);
	w.fault = argv[1];
	w.folder = argv[3];
	signal(SIGALRM, leave);
	alarm(LEAVE_S);
	/* What is wrong with the network of one rank its own environment says. */
	bad = getenv("FAULTY_SHIM");
	if (bad && w.rank == w.bad)
		setenv("FI_WEFT_UET_SHIM", bad, 1);
	bad = getenv("FAULTY_EMUVERBS");
	if (bad && w.rank == w.bad)
		setenv("EMUVERBS_FAULTS", bad, 1);
	opts.timeout_us = INT64_C(1000000) * LEAVE_S;
	if (weft_ctx_open(&opts, &w.ctx) != WEFT_SUCCESS) {
		say(&w, "context");
		return 1;
	}
	work(&w);
	return 0;
}
