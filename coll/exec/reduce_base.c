/* SPDX-License-Identifier: BSD-2-Clause */
/* Reduction kernels in plain C for whatever the compiler's target is: SSE2 on x86-64,
 * NEON on aarch64. */
#include "config.h"

/* Automake's default of -O2 vectorises only loops of known length. */
#if !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#define REDUCE_TARGET
#define REDUCE_TABLE reduce_kernel_base
#include "coll/exec/reduce_isa.h"
