/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a forked child gets of its parent. Descriptors and shared mappings of the parent
 * are the child's as well, but threads are not: the child can't use what was opened
 * before, and whatever it does with it must not reach the parent.
 *
 * So each object knows in which process it was opened (mem_fork_generation), and what
 * holds descriptors or mappings that others write is registered here, and lets go of
 * them in the child before anything else runs there. Children of vfork and posix_spawn
 * execute another program at once: close-on-exec does for them.
 */
#ifndef WEFT_MEM_FORK_H
#define WEFT_MEM_FORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"

/* Different in each process of a family that forks. */
uint32_t mem_fork_generation(void);

struct mem_fork {
	struct list node;
	/* Held while the process forks, so that the child finds nothing half done. */
	pthread_mutex_t *lock;
	/* In the child, alone: system calls only. */
	void (*child)(struct mem_fork *f);
	bool held;
};

/* lock and child are set. Not with the lock held. */
void mem_fork_enter(struct mem_fork *f);
void mem_fork_leave(struct mem_fork *f);

/* For `child`: closes *fd if there is one, and forgets it. */
void mem_fork_close(int *fd);
/* Private zeroes in place of shared memory: the child may touch it, to no effect. */
void mem_fork_cover(void *at, size_t len);

#endif
