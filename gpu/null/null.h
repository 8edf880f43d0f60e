/* SPDX-License-Identifier: BSD-2-Clause */
/* The backend of machines without a GPU: all memory is the host's, and whatever needs a
 * device is refused with the reason why there is none. */
#ifndef WEFT_GPU_NULL_NULL_H
#define WEFT_GPU_NULL_NULL_H

#include "gpu/gpu.h"

/* NULL: no host memory. */
struct gpu *null_open(const char *why);

#endif
