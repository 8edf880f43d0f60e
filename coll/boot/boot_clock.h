/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines of the bootstrap: absolute, monotonic, microseconds. */
#ifndef WEFT_BOOT_BOOT_CLOCK_H
#define WEFT_BOOT_BOOT_CLOCK_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

#define BOOT_NEVER INT64_MAX

static inline int64_t boot_clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* timeout_us: > 0, or negative for a wait without end. */
static inline int64_t boot_deadline(int64_t timeout_us)
{
	int64_t now = boot_clock_us();

	return timeout_us < 0 || timeout_us > BOOT_NEVER - now ? BOOT_NEVER
							       : now + timeout_us;
}

static inline int64_t boot_deadline_later(int64_t deadline, int64_t us)
{
	return deadline > BOOT_NEVER - us ? BOOT_NEVER : deadline + us;
}

/* Milliseconds for poll(): rounded up, at most `most`, -1 only when both are endless. */
static inline int boot_wait_ms(int64_t deadline, int most)
{
	int64_t ms;

	if (deadline == BOOT_NEVER)
		return most;
	ms = (deadline - boot_clock_us() + 999) / 1000;
	if (ms < 0)
		ms = 0;
	if (most >= 0 && ms > most)
		ms = most;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

#endif
