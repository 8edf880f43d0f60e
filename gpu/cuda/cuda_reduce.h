/* SPDX-License-Identifier: BSD-2-Clause */
/* Reductions: from a call to the kernel for it. */
#ifndef WEFT_GPU_CUDA_CUDA_REDUCE_H
#define WEFT_GPU_CUDA_CUDA_REDUCE_H

#include "gpu/cuda/cuda.h"

/* Puts one on a stream of the device, whose context is current. Errors: gpu_reduce(). */
int cuda_reduce(struct cuda *cuda, int device, CUstream stream,
		const struct gpu_reduce *reduce);

#endif
