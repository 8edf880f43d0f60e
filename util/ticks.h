/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A clock that costs a few nanoseconds: the processor's own counter where it runs at one
 * speed, else the monotonic clock in nanoseconds. How long a tick is, whoever wants to
 * know finds by looking at another clock twice.
 */
#ifndef WEFT_UTIL_TICKS_H
#define WEFT_UTIL_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

static inline int64_t ticks_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether the processor's counter can be used: it goes on at one speed in every state. */
static inline bool ticks_have_counter(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
	return false;
#endif
}

/* By itself, so that what is around ticks_now() keeps its registers. */
__attribute__((unused, noinline, cold)) static uint64_t ticks_clock(void)
{
	return (uint64_t)ticks_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t ticks_now(bool counter)
{
#if defined(__x86_64__)
	if (counter)
		return __rdtsc();
#else
	(void)counter;
#endif
	return ticks_clock();
}

#endif
