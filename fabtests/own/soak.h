/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the long tests share: how many rounds and which chance (--count, --seed), a word
 * from processes that come and go, and what a process holds of the system.
 */
#ifndef WEFT_FABTESTS_OWN_SOAK_H
#define WEFT_FABTESTS_OWN_SOAK_H

#include "fabtests/own/util.h"

struct soak {
	int count;
	uint64_t seed;
	uint64_t state;
};

/* Behind test_init. count: without --count. Prints the seed. */
void soak_init(struct soak *k, int argc, char **argv, int count);
/* 0 to below - 1. */
uint32_t soak_random(struct soak *k, uint32_t below);

/* What this process holds. */
struct soak_use {
	long held_kb; /* pages of its own and of shared memory; none of files, nor any
		       * that malloc keeps although all of it was freed */
	long heap;    /* bytes that malloc gave out */
	long maps;
	long fds;
	long threads;
};

void soak_measure(struct soak_use *use);
/* By how much memory (pages, heap, mappings) grows over measures that follow each other,
 * as far as it does so steadily: the number of steps times their median, the lower of
 * two. A leak is in every step; what a pool takes once, when more than ever before come
 * at once, is in one. */
#define SOAK_MEASURES 1000
struct soak_use soak_growth(const struct soak_use *use, int count);
/* False under a sanitizer, which keeps what is freed for a while. */
bool soak_is_exact(const struct soak_use *use);

/* fork for a process that is a side of its own; dies with its parent. In the child, *s
 * is ready and 0 is returned; in the parent, *sock is its end of the child's socket. */
pid_t soak_fork(struct side *s, int *sock);

/* In a child whose parent has threads: LeakSanitizer would wait for those, which are not
 * there, at the child's exit. */
void soak_leaks_off(void);

/* Posts until it is taken; dies at the deadline (now_ms) or of another error. */
void soak_post_wait(struct side *s, uint64_t end, const char *call);

#endif
