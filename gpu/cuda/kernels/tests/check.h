/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of the kernels, and what must come out: computed here in higher precision,
 * with number formats written down a second time. The same for kernels on a CPU and on a
 * device; where they run is the caller's (struct check_env).
 */
#ifndef WEFT_GPU_KERN_CHECK_H
#define WEFT_GPU_KERN_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda/kernels/launch.h"

#define CHECK_WHY 512

/* Where kernels run. The arena is the host's memory; pointers in a launch lie in it. */
struct check_env {
	char *arena;
	size_t len;
	int processors;
	/* Runs it with all pointers moved from the arena to wherever the kernels' memory
	 * is, that memory filled from the arena before, and the arena from it after. */
	bool (*run)(struct check_env *env, const struct launch *launch, size_t args_len);
	/* What lies outside of buffers must not even be read; or NULL. */
	void (*fence)(struct check_env *env, bool up, char *from, size_t len);
	uint64_t rng;
};

uint64_t check_random(uint64_t *rng);

/* One call with random sources, counts, addresses, second result, division, scale, cast
 * and number of blocks. false: why says what is wrong. */
bool check_reduce(struct check_env *env, enum gpu_type type, enum gpu_op op, char *why);

/* Random bytes between random addresses, and the word that says so. */
bool check_copy(struct check_env *env, char *why);

/* An element as a number; NaN and infinities as such. */
double check_value(enum gpu_type type, const void *element);

#endif
