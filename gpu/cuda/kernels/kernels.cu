/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernels for GPUs: nvcc, or clang -x cuda with none of CUDA's files. */
#include "gpu/cuda/kernels/kern_all.h"
