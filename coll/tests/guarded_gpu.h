/* SPDX-License-Identifier: BSD-2-Clause */
/* What the backend guarded_gpu.c exports besides that of every backend. */
#ifndef WEFT_TESTS_GUARDED_GPU_H
#define WEFT_TESTS_GUARDED_GPU_H

#include "gpu/gpu.h"

int weft_gpu_backend(uint32_t abi, struct gpu **gpu, char *why);

/* From now on the device fails, and does nothing any more. */
void guarded_break(int device);

/* Some pieces of work take so much longer; 0: none. */
void guarded_late(uint32_t us);

#endif
