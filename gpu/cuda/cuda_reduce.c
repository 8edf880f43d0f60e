/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/cuda/cuda_reduce.h"

#include <errno.h>

int cuda_reduce(struct cuda *cuda, int device, CUstream stream,
		const struct gpu_reduce *reduce)
{
	(void)device;
	(void)stream;
	(void)reduce;
	return cuda_refuse(-ENOSYS, "no kernels for reductions: %s",
			   cuda->gpu.kernels_why[0] ? cuda->gpu.kernels_why
						    : "this build has none");
}
