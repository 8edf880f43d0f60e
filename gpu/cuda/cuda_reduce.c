/* SPDX-License-Identifier: BSD-2-Clause */
/* See cuda_reduce.h. */
#include "gpu/cuda/cuda_reduce.h"

#include <errno.h>

#include "gpu/cuda/kernels/launch.h"

int cuda_reduce(struct cuda *cuda, int device, CUstream stream,
		const struct gpu_reduce *reduce)
{
	char why[GPU_WHY_LEN];
	struct gpu_launch kernel;
	struct launch call;
	void *args[] = {&call.args};
	const int ret =
		launch_reduce(&call, reduce, cuda->gpu.device[device].blocks, NULL, why);

	if (ret < 0)
		return cuda_refuse(ret, "%s", why);
	if (reduce->count == 0)
		return 0;
	kernel = (struct gpu_launch){.function = call.function,
				     .grid = {call.blocks, 1, 1},
				     .block = {call.threads, 1, 1},
				     .args = args};
	return cuda_launch(cuda, device, stream, &kernel);
}
