/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks for tests: forks a process per rank, gives them a bootstrap through shared
 * memory, and collects how they ended. The parent makes no libfabric call, so that every
 * rank initialises the library for itself.
 */
#ifndef WEFT_TESTS_RANKS_H
#define WEFT_TESTS_RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft/weft.h"

#define RANKS_MAX  16
#define RANKS_CARD 1024 /* bytes a rank gives to one all-gather */

struct ranks_shared;

struct ranks {
	int32_t rank, size;
	void *arg;
	int part; /* of ranks_parts() */
	struct ranks_shared *shared;
	struct weft_boot_callbacks boot; /* for weft_ctx_opts */
};

enum ranks_end {
	RANKS_GOOD = 0,
	RANKS_BAD = 1,	   /* returned 1 after ranks_say() */
	RANKS_ABSENT = 77, /* what it needs is not on this machine */
	RANKS_KILLED = -1, /* by a signal, also when the time was over */
};

/* Runs body in `size` processes; end[rank] says how each ended. True when all are good.
 * body returns enum ranks_end. */
bool ranks_run(int32_t size, int timeout_s, int (*body)(struct ranks *r), void *arg,
	       int end[RANKS_MAX]);

/* One of several things that are tried after one start, which costs more than most. */
struct ranks_part {
	int32_t size; /* ranks that take part: those below */
	int32_t dies; /* of which this one ends without a word; -1: none */
	const char *what;
};

/* Runs body for each part in turn, with r->part saying which, in as many processes as the
 * largest needs; parts know nothing of each other's ranks. After one that did not end
 * well the others are not run, and so not good. False where the first said RANKS_ABSENT.
 */
bool ranks_parts(const struct ranks_part *part, int count, int timeout_s,
		 int (*body)(struct ranks *r), void *arg, bool good[]);

/* All-gather over the ranks of the test, independent of Weft; false when it timed out. */
bool ranks_gather(struct ranks *r, const void *in, void *out, size_t len);
bool ranks_barrier(struct ranks *r);
/* For who must not sleep meanwhile: counts this rank, and how many were counted. */
void ranks_mark(struct ranks *r);
int32_t ranks_marks(const struct ranks *r);

/* A TAP comment with the rank in front. Returns RANKS_BAD. */
__attribute__((format(printf, 2, 3))) int ranks_say(const struct ranks *r,
						    const char *fmt, ...);

/* Opens a context on the provider; RANKS_ABSENT when there is no such provider.
 * "weft+uet" is weft over that wire alone: chosen by environment variables of this
 * process. */
int ranks_open(struct ranks *r, const char *provider, int64_t timeout_us,
	       struct weft_ctx **ctx);

/* "tcp": the providers to test: WEFT_TEST_PROVIDER (commas), else `fallback`. Returns
 * their number. */
int ranks_providers(const char *fallback, char names[][32], int max);

#endif
