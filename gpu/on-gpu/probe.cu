/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that only measure: what everything else is compared with. */
#include "gpu/cuda/kernels/kern_at.h"

/* The shortest way there is between a CPU and a kernel: answers each ping with a pong. */
extern "C" __global__ void probe_pong(uint64_t *ping, uint64_t *pong, uint64_t rounds)
{
	for (uint64_t i = 1; i <= rounds; i++) {
		while (kern_acquire(ping) < i)
			;
		kern_release(pong, i);
	}
}
