/* SPDX-License-Identifier: BSD-2-Clause */
/* See progress.h. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"

/* Rounds that move something before others get a chance at the lock. */
#define PROGRESS_ROUNDS 16

/* Between two looks where only windows are open, which nobody here waits for. */
#define PROGRESS_WATCH_NS 1000000L

struct progress {
	struct weft_ctx *ctx;
	pthread_t thread;
	pthread_cond_t wake; /* with the context's lock; its clock is monotonic */
	bool stop;
	bool asleep; /* until it is woken */
	bool gpu;    /* the thread has told the GPUs of the context that it is ours */
};

/* ---- what was asked for ---------------------------------------------------------- */

enum weft_result progress_read(const struct weft_ctx_opts *opts,
			       struct progress_attr *attr)
{
	const char *text = getenv("WEFT_PROGRESS");
	const char *cpus = getenv("WEFT_PROGRESS_CPUS");

	*attr = (struct progress_attr){.cpus = opts->progress_cpus};
	if (!attr->cpus && cpus && *cpus)
		attr->cpus = cpus;
	switch (opts->progress) {
	case WEFT_PROGRESS_CALLER:
		return WEFT_SUCCESS;
	case WEFT_PROGRESS_THREAD:
		attr->thread = true;
		return WEFT_SUCCESS;
	case WEFT_PROGRESS_DEFAULT:
		break;
	default:
		return error_set(WEFT_ERR_ARG, "weft_ctx_opts.progress is %d",
				 (int)opts->progress);
	}
	if (!text || !*text || strcmp(text, "caller") == 0)
		return WEFT_SUCCESS;
	attr->thread = strcmp(text, "thread") == 0;
	if (attr->thread)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "WEFT_PROGRESS is \"%.40s\": it must be caller or thread", text);
}

/* "0,2-4" */
static bool cpus_parse(const char *text, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*text) {
		char *end;
		long first, last;

		errno = 0;
		first = strtol(text, &end, 10);
		last = first;
		if (end == text || *text < '0' || *text > '9')
			return false;
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtol(end + 1, &end, 10);
		if (errno || last < first || last >= CPU_SETSIZE)
			return false;
		for (long cpu = first; cpu <= last; cpu++)
			CPU_SET((size_t)cpu, set);
		if (*end && (*end != ',' || !end[1]))
			return false;
		text = *end ? end + 1 : end;
	}
	return CPU_COUNT(set) > 0;
}

/* ---- the thread ------------------------------------------------------------------ */

LOCK_HELD(lock_context) static void progress_watch(struct progress *p)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PROGRESS_WATCH_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&p->wake, &p->ctx->lock, &until);
}

/* Until there is something to do, or the end. */
LOCK_HELD(lock_context) static void progress_sleep(struct progress *p)
{
	p->asleep = true;
	while (p->asleep && !p->stop)
		pthread_cond_wait(&p->wake, &p->ctx->lock);
	p->asleep = false;
}

/* Lets go of the lock: to whoever waits for it, else for as long as waits do. */
LOCK_HELD(lock_context)
static void progress_pause(struct progress *p, struct exec_idle *idle, bool moved)
{
	struct weft_ctx *ctx = p->ctx;
	const int64_t now = exec_clock(ctx->exec);

	ctx_unlock(ctx);
	exec_idle_wait(ctx->exec, idle, moved, now);
	while (atomic_load_explicit(&ctx->wanted, memory_order_relaxed))
		sched_yield();
	ctx_lock(ctx);
}

static void *progress_main(void *arg)
{
	struct progress *p = arg;
	struct weft_ctx *ctx = p->ctx;
	struct exec_idle idle = {0};

	ctx_lock(ctx);
	while (!p->stop) {
		const enum exec_work work = exec_work(ctx->exec);
		bool moved = true;

		if (!p->gpu)
			p->gpu = exec_thread_init(ctx->exec);

		if (ctx->waiting || work == EXEC_WORK_NONE) {
			progress_sleep(p);
			idle.since = 0;
			continue;
		}
		for (int i = 0; moved && i < PROGRESS_ROUNDS; i++)
			moved = exec_progress(ctx->exec);
		if (work == EXEC_WORK_WATCH && !moved)
			progress_watch(p);
		else
			progress_pause(p, &idle, moved);
	}
	ctx_unlock(ctx);
	return NULL;
}

void progress_wake(struct progress *p)
{
	if (!p->asleep || p->ctx->waiting || exec_work(p->ctx->exec) == EXEC_WORK_NONE)
		return;
	p->asleep = false;
	pthread_cond_signal(&p->wake);
}

bool progress_asleep(const struct progress *p)
{
	return p->asleep;
}

/* ---- begin and end --------------------------------------------------------------- */

/* With no signal that could be meant for a thread of the caller. */
static int progress_thread(struct progress *p, const cpu_set_t *set)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	if (set)
		rc = pthread_attr_setaffinity_np(&attr, sizeof(*set), set);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!rc)
		rc = pthread_create(&p->thread, &attr, progress_main, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_setname_np(p->thread, "weft-progress");
	return rc;
}

enum weft_result progress_open(struct weft_ctx *ctx, const struct progress_attr *attr,
			       struct progress **out)
{
	struct progress *p;
	pthread_condattr_t clock;
	cpu_set_t set;
	int rc;

	*out = NULL;
	if (!attr->thread)
		return WEFT_SUCCESS;
	if (attr->cpus && !cpus_parse(attr->cpus, &set))
		return error_set(WEFT_ERR_ARG,
				 "the progress thread is to run on processors \"%.60s\": "
				 "they must be numbers below %d, as in 0,2-4",
				 attr->cpus, CPU_SETSIZE);
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(WEFT_ERR_NOMEM, "no memory for a progress thread");
	p->ctx = ctx;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &clock);
	pthread_condattr_destroy(&clock);
	rc = progress_thread(p, attr->cpus ? &set : NULL);
	if (!rc) {
		*out = p;
		return WEFT_SUCCESS;
	}
	pthread_cond_destroy(&p->wake);
	free(p);
	if (attr->cpus && rc == EINVAL)
		return error_set(WEFT_ERR_ARG,
				 "the progress thread is to run on processors \"%.60s\": "
				 "this process may use none of them",
				 attr->cpus);
	return error_set(WEFT_ERR_NOMEM, "no progress thread: %s", strerror(rc));
}

void progress_close(struct progress *p)
{
	if (!p)
		return;
	ctx_lock(p->ctx);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	ctx_unlock(p->ctx);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	free(p);
}
