/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that die while they reduce: what the driver (chaos.c) and the ranks (rank.c)
 * share, in memory that all of them see.
 */
#ifndef FABTESTS_CHAOS_CHAOS_H
#define FABTESTS_CHAOS_CHAOS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A rank's place: a bit of what it reduces. A newcomer gets one that was free longest. */
enum { CHAOS_SLOTS = 62, CHAOS_STEPS = 1 << 22, CHAOS_WHY = 300 };

struct chaos_rank {
	pid_t pid; /* the driver's; 0: free */
	bool harmed;
	int seat;      /* in the network (space.h), where there is one */
	int64_t ended; /* when it was freed */
	/* the rank's */
	_Atomic uint64_t step; /* the last that it was told counts; 0: none yet */
	_Atomic uint64_t steps, wrong, errors;
	_Atomic int fenced, left;
	_Atomic int64_t memory_first, memory_last; /* KiB; 0: not yet */
	_Atomic int64_t heap_first, heap_last;	   /* KiB that malloc() gave out */
	_Atomic int files_first, files_last;
	char why[CHAOS_WHY];
};

struct chaos {
	char address[80], job[64], provider[32];
	uint64_t count;	       /* elements of a step */
	int64_t deadline_us;   /* who says nothing for so long is dead */
	_Atomic int end;       /* leave now */
	_Atomic uint64_t last; /* the highest step that counted */
	struct chaos_rank rank[CHAOS_SLOTS];
	/* Of each step: who contributed, and when the first heard that it counts. */
	_Atomic uint64_t mask[CHAOS_STEPS];
	_Atomic int64_t when[CHAOS_STEPS];
};

static inline int64_t chaos_clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* A rank, from its first step to its last; does not return. */
void chaos_rank_main(struct chaos *c, int slot) __attribute__((noreturn));

#endif
