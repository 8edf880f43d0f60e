/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a call of gpu.h to a kernel: which one, its arguments, how many blocks. Pure,
 * thread-safe; knows no driver.
 */
#ifndef WEFT_GPU_KERN_LAUNCH_H
#define WEFT_GPU_KERN_LAUNCH_H

#include <stddef.h>

#include "gpu/cuda/kernels/kern.h"
#include "gpu/gpu.h"

/* What a block of 512 threads moves in a second at least, read and written bytes counted
 * (H200: 70 to 78e9, of up to 32 blocks), and how many blocks on a multiprocessor give
 * all that the device's memory does (there: 95 % with one, 97 % with four). */
#define LAUNCH_BLOCK_RATE 70e9
#define LAUNCH_FULL	  4

struct launch {
	const char *function;
	uint32_t blocks, threads;
	union {
		struct kern_reduce reduce;
		struct kern_copy copy;
	} args; /* by value: the kernel's one parameter */
};

/*
 * processors: multiprocessors of the device (gpu_device.blocks). signal: what to say at
 * the end, or NULL. arrived of it may be NULL where reduce->blocks is 1.
 * -EINVAL with a sentence in why (GPU_WHY_LEN bytes): a number is out of range, the type
 * has not that operation or an address is not aligned to its element.
 */
int launch_reduce(struct launch *launch, const struct gpu_reduce *reduce, int processors,
		  const struct kern_signal *signal, char *why);

/* Copies bytes between any addresses; blocks: at most so many, 0: at full speed. */
void launch_copy(struct launch *launch, void *dst, const void *src, uint64_t bytes,
		 int processors, uint32_t blocks, const struct kern_signal *signal);

/* How many blocks sustain `rate` bytes per second of results of a reduction of `sources`
 * sources, not more than the device has use for: gpu_reduce.blocks. */
uint32_t launch_blocks(double rate, uint32_t sources, int processors);

size_t launch_type_size(enum gpu_type type);

/* Symbols of all kernels, for preloading. */
extern const char *const launch_symbols[];
extern const size_t launch_symbol_count;

#endif
