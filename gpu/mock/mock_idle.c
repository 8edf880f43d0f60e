/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait until a device is idle, as the driver may: to allocate, to free, to pin
 * and to load. While one waits, other calls of that context wait for it. So who makes one
 * while a stream is held that only goes on after a further call hangs here as there; for
 * ever is as long as the knob says, and then the process ends with the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/mock/mock_api.h"

/* Under the lock. */
static bool has_turn(int device)
{
	return !mock.idling[device] || pthread_equal(mock.idler[device], pthread_self());
}

void mock_turn(int device)
{
	pthread_mutex_lock(&mock.lock);
	while (!has_turn(device))
		pthread_cond_wait(&mock.changed, &mock.lock);
	pthread_mutex_unlock(&mock.lock);
}

/* A stream of the device that has something to do; NULL: it is idle. Under the lock. */
static const struct CUstream_st *at_work(int device)
{
	const struct CUstream_st *s = &mock.null_stream[device];

	if (s->first || s->busy)
		return s;
	for (s = mock.streams; s; s = s->next) {
		if (s->device == device && (s->first || s->busy))
			return s;
	}
	return NULL;
}

static void too_long(int device, const char *call, long ms)
{
	fprintf(stderr,
		"mock: %s has waited %ld ms until device %d is idle, and a stream of it "
		"is still held: a real driver would hang here\n",
		call, ms, device);
	abort();
}

/* Under the lock. */
static void idle_one(int device, const char *call, long ms, const struct timespec *until)
{
	int rc = 0;

	while (!has_turn(device) && rc == 0)
		rc = pthread_cond_timedwait(&mock.changed, &mock.lock, until);
	if (rc)
		too_long(device, call, ms);
	mock.idling[device] = true;
	mock.idler[device] = pthread_self();
	while (at_work(device) && rc == 0)
		rc = pthread_cond_timedwait(&mock.changed, &mock.lock, until);
	if (rc)
		too_long(device, call, ms);
	mock.idling[device] = false;
	pthread_cond_broadcast(&mock.changed);
}

void mock_idle(int device, const char *call)
{
	struct timespec until;
	long ms;

	clock_gettime(CLOCK_REALTIME, &until);
	pthread_mutex_lock(&mock.lock);
	ms = mock_knob(MOCK_IDLE_MS);
	until.tv_sec += ms / 1000 + 1;
	for (int i = 0; i < MOCK_DEVICES_MAX && ms > 0; i++) {
		if (device < 0 || device == i)
			idle_one(i, call, ms, &until);
	}
	pthread_mutex_unlock(&mock.lock);
}
