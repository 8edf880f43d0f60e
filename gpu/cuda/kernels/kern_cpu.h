/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels on a CPU, from the sources that GPUs run: for tests, and for the driver
 * that stands in for a real one there. The threads of a launch run one after the other,
 * on the caller's.
 */
#ifndef WEFT_GPU_KERN_CPU_H
#define WEFT_GPU_KERN_CPU_H

#include <stdint.h>

#include "gpu/cuda/kernels/kern.h"

struct kern_cpu;

/* By the kernel's symbol ("weft_fp32_sum"); NULL: no kernel of many threads has it. */
const struct kern_cpu *kern_cpu_find(const char *symbol);

/* args: the struct that the kernel takes. Returns when all is done. */
void kern_cpu_run(const struct kern_cpu *kernel, uint32_t blocks, uint32_t threads,
		  const void *args);

/* weft_words. Waits: see there. */
void kern_cpu_words(const struct kern_words *words, uint32_t count);

#endif
