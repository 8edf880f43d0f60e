/* SPDX-License-Identifier: BSD-2-Clause */
/* The bitwise operations of one width; included by kern_all.h once a width, so it has no
 * guard. What to define before is as in kern_type.h. */
#define KT_LOAD(e)  ((KT_C)(e))
#define KT_STORE(c) ((KT_T)(c))
#define KT_FLOATING 0
#define KR_FINISH   0

#define KR_AND(a, b) ((a) & (b))
#define KR_OR(a, b)  ((a) | (b))
#define KR_XOR(a, b) ((a) ^ (b))

#define KR(what)  KT(band_##what)
#define KR_KERNEL KT(band)
#define KR_OP	  KR_AND
#include "gpu/cuda/kernels/kern_reduce.h"

#define KR_FINISH 0
#define KR(what)  KT(bor_##what)
#define KR_KERNEL KT(bor)
#define KR_OP	  KR_OR
#include "gpu/cuda/kernels/kern_reduce.h"

#define KR_FINISH 0
#define KR(what)  KT(bxor_##what)
#define KR_KERNEL KT(bxor)
#define KR_OP	  KR_XOR
#include "gpu/cuda/kernels/kern_reduce.h"

#undef KR_AND
#undef KR_OR
#undef KR_XOR
#undef KT
#undef KT_T
#undef KT_C
#undef KT_BITS
#undef KT_GET
#undef KT_PUT
#undef KT_LOAD
#undef KT_STORE
#undef KT_FLOATING
