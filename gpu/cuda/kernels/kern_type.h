/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All kernels of one type; included by kern_all.h once a type, so it has no guard. Before
 * including: KT(op) names the kernel, KT_T is the element, KT_C what it is computed in,
 * KT_BITS its width, KT_LOAD and KT_STORE convert between a word of that width and KT_C,
 * KT_DIV divides by a count, KT_SCALE multiplies (floating types). KT_MIN and KT_MAX
 * where they differ by type; KT_PROD where this type has its product; KT_PAIR(pack) and
 * KT_PAIR(unpack) where two elements are converted at once. All are undefined at the end.
 */
#define KR_ADD(a, b) ((a) + (b))
#define KR_MUL(a, b) ((a) * (b))

#define KR(what)  KT(sum_##what)
#define KR_KERNEL KT(sum)
#define KR_OP	  KR_ADD
#define KR_FINISH 1
#include "gpu/cuda/kernels/kern_reduce.h"

#ifdef KT_PROD
#define KR(what)  KT(prod_##what)
#define KR_KERNEL KT(prod)
#define KR_OP	  KR_MUL
#define KR_FINISH KT_FLOATING
#include "gpu/cuda/kernels/kern_reduce.h"
#endif

#ifdef KT_MIN
#define KR(what)  KT(min_##what)
#define KR_KERNEL KT(min)
#define KR_OP	  KT_MIN
#define KR_FINISH KT_FLOATING
#include "gpu/cuda/kernels/kern_reduce.h"

#define KR(what)  KT(max_##what)
#define KR_KERNEL KT(max)
#define KR_OP	  KT_MAX
#define KR_FINISH KT_FLOATING
#include "gpu/cuda/kernels/kern_reduce.h"
#endif

#if KT_FLOATING
#include "gpu/cuda/kernels/kern_cast.h"
#endif

#undef KR_ADD
#undef KR_MUL
#undef KT
#undef KT_T
#undef KT_C
#undef KT_BITS
#undef KT_GET
#undef KT_PUT
#undef KT_LOAD
#undef KT_STORE
#undef KT_DIV
#undef KT_SCALE
#undef KT_MIN
#undef KT_MAX
#undef KT_PROD
#undef KT_FLOATING
#undef KT_PAIR
