/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How streams are held. The driver's memory waits take no part of the device, but their
 * engine looks rarely (8 us from the host's word to the stream's next on an H200); a
 * kernel of one block polls all the time (under 3 us) and takes a place on a
 * multiprocessor. What is there is tried, and of two that work the faster is taken.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/cuda/cuda.h"

#define ROUNDS 9	     /* of each; the median counts */
#define LIMIT  2000000000ULL /* ns for one of them */

/* The words of a trial, each alone in its line. */
struct trial {
	_Alignas(128) _Atomic uint64_t arrived;
	_Alignas(128) _Atomic uint64_t opened;
	_Alignas(128) _Atomic uint64_t left;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool reaches(_Atomic uint64_t *word, uint64_t value)
{
	const uint64_t start = now_ns();

	while (atomic_load_explicit(word, memory_order_acquire) < value) {
		if (now_ns() - start > LIMIT)
			return false;
		sched_yield();
	}
	return true;
}

static bool put(struct cuda *cuda, int device, enum gpu_hold hold,
		const struct gpu_word_op *ops, uint32_t count)
{
	CUstream stream = cuda->dev[device].scratch;

	if (hold == GPU_HOLD_KERNEL)
		return cuda_word_kernel(cuda, device, stream, ops, count) == 0;
	return cuda->drv.stream_batch_mem_op && cuda->drv.stream_write_value64 &&
	       cuda_word_ops(cuda, stream, ops, count) == CUDA_SUCCESS;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* ns from the host's word to what the next kernel on the stream does (without kernels,
 * the driver's next write); 0: it does not work. Nothing that was tried is left on the
 * stream, unless it never ends. */
static uint64_t try_hold(struct cuda *cuda, int device, enum gpu_hold hold,
			 enum gpu_hold next, struct trial *t)
{
	uint64_t took[ROUNDS];

	memset(t, 0, sizeof(*t));
	for (uint64_t n = 1; n <= ROUNDS; n++) {
		const struct gpu_word_op pass[] = {
			{.kind = GPU_WORD_WRITE, .word = &t->arrived, .value = n},
			{.kind = GPU_WORD_WAIT, .word = &t->opened, .value = n},
		};
		const struct gpu_word_op left = {
			.kind = GPU_WORD_WRITE, .word = &t->left, .value = n};
		bool good = put(cuda, device, hold, pass, 2);
		uint64_t start;

		good = good && put(cuda, device, next, &left, 1) &&
		       reaches(&t->arrived, n);
		start = now_ns();
		atomic_store_explicit(&t->opened, n, memory_order_release);
		good = good && reaches(&t->left, n);
		took[n - 1] = now_ns() - start;
		if (!good)
			return 0;
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_value);
	return took[ROUNDS / 2] ? took[ROUNDS / 2] : 1;
}

/* What WEFT_GPU_HOLD allows. False: it says what nobody knows. */
static bool hold_named(const char *named, bool *memops, bool *kernel)
{
	*memops = !named || strcmp(named, "memops") == 0;
	*kernel = !named || strcmp(named, "kernel") == 0;
	return *memops || *kernel;
}

/* Why none of those that were wanted works. */
static enum gpu_hold hold_none(struct gpu_device *info, const char *named, bool kernels)
{
	if (named)
		snprintf(info->hold_why, sizeof(info->hold_why),
			 "WEFT_GPU_HOLD is \"%.32s\", which does not work here: unset it",
			 named);
	else
		snprintf(info->hold_why, sizeof(info->hold_why),
			 "no memory waits of the driver work, and %s",
			 kernels ? "the kernel that waits does not either"
				 : "there are no kernels");
	return GPU_HOLD_NONE;
}

enum gpu_hold cuda_hold_choose(struct cuda *cuda, int device)
{
	struct gpu_device *info = &cuda->gpu.device[device];
	const char *named = getenv("WEFT_GPU_HOLD");
	const bool kernels = cuda->dev[device].module != NULL;
	uint64_t memops = 0, kernel = 0;
	bool want_memops, want_kernel;
	void *words = NULL;

	if (named && !*named)
		named = NULL;
	if (!hold_named(named, &want_memops, &want_kernel)) {
		snprintf(info->hold_why, sizeof(info->hold_why),
			 "WEFT_GPU_HOLD is \"%.32s\": it must be memops or kernel, or "
			 "unset",
			 named);
		return GPU_HOLD_NONE;
	}
	if (cuda->drv.mem_host_alloc(&words, sizeof(struct trial),
				     CU_MEMHOSTALLOC_PORTABLE |
					     CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) {
		snprintf(info->hold_why, sizeof(info->hold_why),
			 "no pinned memory to try it with");
		return GPU_HOLD_NONE;
	}
	if (want_kernel && kernels)
		kernel = try_hold(cuda, device, GPU_HOLD_KERNEL, GPU_HOLD_KERNEL, words);
	if (want_memops && info->hold == GPU_HOLD_MEMOPS)
		memops = try_hold(cuda, device, GPU_HOLD_MEMOPS,
				  kernel ? GPU_HOLD_KERNEL : GPU_HOLD_MEMOPS, words);
	cuda->dev[device].memops = memops != 0;
	if (cuda_drain(cuda, cuda->dev[device].scratch, LIMIT) == 0)
		cuda->drv.mem_free_host(words);
	if (kernel && (!memops || kernel < memops))
		return GPU_HOLD_KERNEL;
	return memops ? GPU_HOLD_MEMOPS : hold_none(info, named, kernels);
}
