/* SPDX-License-Identifier: BSD-2-Clause */
/* Reduction kernels for x86-64 with AVX-512: 64-bit products, minima and maxima of
 * integers exist only here, and the selections of floating-point minima cost a mask. */
#include "config.h"

#if defined(__x86_64__)

#if !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include <immintrin.h>
#include <stdint.h>

#define REDUCE_TARGET \
	__attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define REDUCE_TABLE reduce_kernel_avx512

typedef __m512 half_vec;
enum { HALF_STEP = 16 };

REDUCE_TARGET static inline half_vec half_load(const uint16_t *p)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

REDUCE_TARGET static inline void half_store(uint16_t *p, half_vec v)
{
	_mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

REDUCE_TARGET static inline half_vec half_set(float f)
{
	return _mm512_set1_ps(f);
}

REDUCE_TARGET static inline half_vec half_add(half_vec a, half_vec b)
{
	return _mm512_add_ps(a, b);
}

REDUCE_TARGET static inline half_vec half_mul(half_vec a, half_vec b)
{
	return _mm512_mul_ps(a, b);
}

REDUCE_TARGET static inline half_vec half_div(half_vec a, half_vec b)
{
	return _mm512_div_ps(a, b);
}

/* As num_min_float(); see reduce_avx2.c. */
REDUCE_TARGET static inline half_vec half_min(half_vec a, half_vec b)
{
	__mmask16 same = _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
	__mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
	half_vec m = _mm512_mask_or_ps(_mm512_min_ps(a, b), same, a, b);

	return _mm512_mask_mov_ps(m, nan, a);
}

REDUCE_TARGET static inline half_vec half_max(half_vec a, half_vec b)
{
	__mmask16 same = _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
	__mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
	half_vec m = _mm512_mask_and_ps(_mm512_max_ps(a, b), same, a, b);

	return _mm512_mask_mov_ps(m, nan, a);
}

#include "coll/exec/reduce_half.h"

#define REDUCE_HALF_SIMD
#include "coll/exec/reduce_isa.h"

#endif
