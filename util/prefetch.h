/* SPDX-License-Identifier: BSD-2-Clause */
/* Cache lines ahead of their use: hints only, for any address. */
#ifndef WEFT_UTIL_PREFETCH_H
#define WEFT_UTIL_PREFETCH_H

#include <stddef.h>

#define PREFETCH_LINE ((ptrdiff_t)64)

static inline void prefetch_read(const void *at)
{
	__builtin_prefetch(at, 0, 3);
}

/* The line will be written: taken away from other caches. */
static inline void prefetch_write(const void *at)
{
#if defined(__x86_64__)
	/* What the compiler makes for every x86-64 is a read; processors that don't know
	 * this one do nothing. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1, 3);
#endif
}

/* The lines of len bytes and up to three more, by fours. */
static inline void prefetch_read_all(const char *at, size_t len)
{
	for (const char *end = at + len; at < end; at += 4 * PREFETCH_LINE) {
		prefetch_read(at);
		prefetch_read(at + PREFETCH_LINE);
		prefetch_read(at + 2 * PREFETCH_LINE);
		prefetch_read(at + 3 * PREFETCH_LINE);
	}
}

static inline void prefetch_write_all(const char *at, size_t len)
{
	for (const char *end = at + len; at < end; at += 4 * PREFETCH_LINE) {
		prefetch_write(at);
		prefetch_write(at + PREFETCH_LINE);
		prefetch_write(at + 2 * PREFETCH_LINE);
		prefetch_write(at + 3 * PREFETCH_LINE);
	}
}

#endif
