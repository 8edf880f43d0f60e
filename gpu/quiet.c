/* SPDX-License-Identifier: BSD-2-Clause */
/* See quiet.h. */
#include "gpu/quiet.h"

#include <pthread.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static uint64_t quiets, holds;

static void cond_make(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* One more of `mine` when there is none of `other`. */
static bool begin(uint64_t *mine, const uint64_t *other, uint64_t wait_ns)
{
	struct timespec until;
	bool there;
	int rc = 0;

	pthread_once(&once, cond_make);
	clock_gettime(CLOCK_MONOTONIC, &until);
	wait_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(wait_ns / NS_PER_S);
	until.tv_nsec = (long)(wait_ns % NS_PER_S);
	pthread_mutex_lock(&lock);
	while (*other && rc == 0)
		rc = pthread_cond_timedwait(&changed, &lock, &until);
	there = !*other;
	*mine += there;
	pthread_mutex_unlock(&lock);
	return there;
}

static void end(uint64_t *mine)
{
	pthread_mutex_lock(&lock);
	if (--*mine == 0)
		pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

bool quiet_begin(uint64_t wait_ns)
{
	return begin(&quiets, &holds, wait_ns);
}

void quiet_end(void)
{
	end(&quiets);
}

bool hold_begin(uint64_t wait_ns)
{
	return begin(&holds, &quiets, wait_ns);
}

void hold_end(void)
{
	end(&holds);
}
