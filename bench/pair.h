/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes, each pinned to a processor of its own, and the page that they share:
 * meeting points, one word, and the cache line whose latency is measured.
 */
#ifndef WEFT_BENCH_PAIR_H
#define WEFT_BENCH_PAIR_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { PAIR_CARD_MAX = 512 };

struct pair_shared {
	_Alignas(128) _Atomic uint32_t met[2]; /* how often each role came to a meeting */
	_Alignas(128) _Atomic uint32_t line;   /* goes back and forth in pair_line_ns */
	_Alignas(
		128) _Atomic uint64_t word; /* what role 0 tells role 1, or the reverse */
	_Alignas(128) char card[2][PAIR_CARD_MAX];
};

struct pair {
	struct pair_shared *shared;
	int role; /* 0 or 1 */
	uint32_t meetings;
	uint32_t line_turn;
	/* Called again and again while this side waits for the other to come; NULL:
	 * nothing. */
	void (*meanwhile)(void *arg);
	void *arg;
};

typedef void pair_main(struct pair *p, void *arg);

/* Forks both, pinned to cpu[role]; each runs main and exits with 0 unless it died
 * before. Gives what the program exits with: 1 when one of them failed (the other is
 * ended then) or when they took longer than the seconds. */
int pair_run(const int cpu[2], unsigned seconds, pair_main *main, void *arg);

/* Both have come here. */
void pair_meet(struct pair *p);
/* Gives the other what it says, and takes the same from it; len <= PAIR_CARD_MAX. */
void pair_exchange(struct pair *p, const void *mine, void *others, size_t len);
/* Role 0's value, in both. */
uint64_t pair_tell(struct pair *p, uint64_t value);

/* How long a cache line takes from one processor to the other, one way, in ns; the
 * median of batches, about 2 ms on a quiet machine. Both call it; the value is role 0's,
 * role 1 gets 0. */
double pair_line_ns(struct pair *p);

/* In a loop that waits for the other process: lets others run after many spins, and dies
 * when nothing comes for long. *spins begins as 0. */
void pair_relax(uint32_t *spins, uint64_t *since);

#endif
