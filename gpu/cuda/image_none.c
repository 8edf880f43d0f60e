/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/cuda/image.h"

const struct cuda_image cuda_images[1];
const size_t cuda_image_count;
const char *const cuda_kernels[1];
const size_t cuda_kernel_count;
