/* SPDX-License-Identifier: BSD-2-Clause */
/* See stats.h. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"
#include "coll/comm/stats.h"
#include "coll/trace/out_path.h"
#include "coll/trace/prom.h"

/* So that two contexts of a process have files of their own. */
static atomic_uint opened;

struct stats {
	struct weft_ctx *ctx;
	double seconds;
	pthread_t thread;
	pthread_mutex_t lock; /* of `stop`; the context's is taken within it never */
	pthread_cond_t wake;
	bool stop, told;
	struct prom prom;
	char path[TRACE_PATH_MAX];
};

bool stats_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = 10;
	if (!text || !*text)
		return true;
	*seconds = strtod(text, &end);
	return end != text && !*end && *seconds >= 0.1 && *seconds <= 86400;
}

static void write_now(struct stats *s)
{
	int rc;

	ctx_lock(s->ctx);
	exec_counts(s->ctx->exec);
	prom_take(exec_trace(s->ctx->exec), &s->prom);
	ctx_unlock(s->ctx);
	rc = prom_write(&s->prom, s->path);
	if (rc && !s->told)
		fprintf(stderr, "weft: the counters can't be written to %s: %s\n",
			s->path, strerror(-rc));
	s->told = rc != 0;
}

static void *stats_main(void *arg)
{
	struct stats *s = arg;
	bool stop = false;

	while (!stop) {
		struct timespec until;
		const double whole = floor(s->seconds);
		int rc = 0;

		write_now(s);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += (time_t)whole;
		until.tv_nsec += (long)((s->seconds - whole) * 1e9);
		if (until.tv_nsec >= 1000000000L) {
			until.tv_nsec -= 1000000000L;
			until.tv_sec++;
		}
		pthread_mutex_lock(&s->lock);
		while (!s->stop && rc != ETIMEDOUT)
			rc = pthread_cond_timedwait(&s->wake, &s->lock, &until);
		stop = s->stop;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* With no signal that could be meant for a thread of the caller. */
static int stats_thread(struct stats *s)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&s->thread, NULL, stats_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		pthread_setname_np(s->thread, "weft-stats");
	return rc;
}

/* What was asked for: ARG with the detail. */
static enum weft_result stats_read(struct stats *s, const char *folder)
{
	const char *text = getenv("WEFT_STATS_SECONDS");
	const struct out_path path = {.variable = "WEFT_STATS",
				      .folder = folder,
				      .what = "files",
				      .prefix = "weft",
				      .suffix = "prom",
				      .rank = boot_rank(s->ctx->boot),
				      .number = atomic_fetch_add(&opened, 1)};

	if (!stats_seconds(text, &s->seconds))
		return error_set(
			WEFT_ERR_ARG,
			"WEFT_STATS_SECONDS is \"%.40s\": it must be 0.1 to 86400", text);
	return out_path_set(&path, s->path, sizeof(s->path));
}

enum weft_result stats_open(struct weft_ctx *ctx, struct stats **out)
{
	const char *folder = getenv("WEFT_STATS");
	pthread_condattr_t clock;
	enum weft_result result;
	struct stats *s;
	int rc;

	*out = NULL;
	if (!folder || !*folder)
		return WEFT_SUCCESS;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(WEFT_ERR_NOMEM, "no memory for the counters' file");
	s->ctx = ctx;
	result = stats_read(s, folder);
	if (result != WEFT_SUCCESS) {
		free(s);
		return result;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &clock);
	pthread_condattr_destroy(&clock);
	rc = stats_thread(s);
	if (rc) {
		pthread_cond_destroy(&s->wake);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return error_set(WEFT_ERR_NOMEM, "no thread for the counters' file: %s",
				 strerror(rc));
	}
	*out = s;
	return WEFT_SUCCESS;
}

void stats_close(struct stats *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	write_now(s);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
