/* SPDX-License-Identifier: BSD-2-Clause */
/* Reduction kernels for x86-64 with AVX2 and F16C. */
#include "config.h"

#if defined(__x86_64__)

#if !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include <immintrin.h>
#include <stdint.h>

#define REDUCE_TARGET __attribute__((target("avx2,f16c")))
#define REDUCE_TABLE  reduce_kernel_avx2

typedef __m256 half_vec;
enum { HALF_STEP = 8 };

REDUCE_TARGET static inline half_vec half_load(const uint16_t *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

REDUCE_TARGET static inline void half_store(uint16_t *p, half_vec v)
{
	_mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

REDUCE_TARGET static inline half_vec half_set(float f)
{
	return _mm256_set1_ps(f);
}

REDUCE_TARGET static inline half_vec half_add(half_vec a, half_vec b)
{
	return _mm256_add_ps(a, b);
}

REDUCE_TARGET static inline half_vec half_mul(half_vec a, half_vec b)
{
	return _mm256_mul_ps(a, b);
}

REDUCE_TARGET static inline half_vec half_div(half_vec a, half_vec b)
{
	return _mm256_div_ps(a, b);
}

/* As num_min_float(): the instruction alone returns its second operand when the operands
 * are equal, which may be zeros of two signs, or when one is NaN. */
REDUCE_TARGET static inline half_vec half_min(half_vec a, half_vec b)
{
	half_vec m = _mm256_min_ps(a, b);
	half_vec same = _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
	half_vec nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);

	m = _mm256_blendv_ps(m, _mm256_or_ps(a, b), same);
	return _mm256_blendv_ps(m, a, nan);
}

REDUCE_TARGET static inline half_vec half_max(half_vec a, half_vec b)
{
	half_vec m = _mm256_max_ps(a, b);
	half_vec same = _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
	half_vec nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);

	m = _mm256_blendv_ps(m, _mm256_and_ps(a, b), same);
	return _mm256_blendv_ps(m, a, nan);
}

#include "coll/exec/reduce_half.h"

#define REDUCE_HALF_SIMD
#include "coll/exec/reduce_isa.h"

#endif
