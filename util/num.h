/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scalar arithmetic of the reductions, of hosts and of GPUs (C and CUDA C++), one
 * function per operation and number format, each free of branches so that a loop over it
 * vectorises. The order of min and max is total:
 * -0 is less than +0, and NaN wins, so that all ranks find the same bits whatever the
 * order of operands. Conversions round to nearest even and treat denormals without
 * denormal fp32 arithmetic, so that a process that flushes denormals gets the same fp16
 * result.
 */
#ifndef WEFT_UTIL_NUM_H
#define WEFT_UTIL_NUM_H

#include <stdint.h>

/* What stands before each function: kernels of GPUs define it before they include this,
 * so that hosts and devices have one arithmetic. */
#ifndef NUM_FN
#define NUM_FN static inline
#endif

NUM_FN uint32_t num_bits32(float f)
{
	uint32_t u;

	__builtin_memcpy(&u, &f, sizeof(u));
	return u;
}

NUM_FN float num_float(uint32_t u)
{
	float f;

	__builtin_memcpy(&f, &u, sizeof(f));
	return f;
}

NUM_FN uint64_t num_bits64(double d)
{
	uint64_t u;

	__builtin_memcpy(&u, &d, sizeof(u));
	return u;
}

NUM_FN double num_double(uint64_t u)
{
	double d;

	__builtin_memcpy(&d, &u, sizeof(d));
	return d;
}

/* binary16 to fp32: exact. Signalling NaNs stay as they are. */
NUM_FN float num_from_fp16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
	uint32_t mag = h & 0x7fffu;
	uint32_t normal = (mag << 13) + ((127u - 15u) << 23);
	uint32_t special = (mag << 13) | 0x7f800000u;
	/* 0.5 has a unit in the last place of 2^-24, which is a denormal's unit. */
	uint32_t denormal = num_bits32(num_float(0x3f000000u + mag) - 0.5f);
	uint32_t u = mag < 0x0400u ? denormal : normal;

	u = mag >= 0x7c00u ? special : u;
	return num_float(u | sign);
}

NUM_FN uint16_t num_to_fp16(float f)
{
	uint32_t u = num_bits32(f);
	uint32_t sign = (u >> 16) & 0x8000u;
	uint32_t mag = u & 0x7fffffffu;
	uint32_t odd = (mag >> 13) & 1u;
	uint32_t normal = (mag - ((127u - 15u) << 23) + 0xfffu + odd) >> 13;
	/* The addition to 0.5 rounds to the denormal's unit, to nearest even. */
	uint32_t small = mag < 0x38800000u ? mag : 0;
	uint32_t denormal = num_bits32(num_float(small) + 0.5f) - 0x3f000000u;
	uint32_t nan = 0x7e00u | ((mag >> 13) & 0x3ffu);
	uint32_t h;

	normal = normal > 0x7c00u ? 0x7c00u : normal;
	h = mag < 0x38800000u ? denormal : normal;
	h = mag > 0x7f800000u ? nan : h;
	return (uint16_t)(h | sign);
}

NUM_FN float num_from_bf16(uint16_t h)
{
	return num_float((uint32_t)h << 16);
}

NUM_FN uint16_t num_to_bf16(float f)
{
	uint32_t u = num_bits32(f);
	uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
	uint32_t nan = (u >> 16) | 0x40u;

	return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/*
 * fp8. Which of two results counts is chosen by masks: of a condition compilers make a
 * branch, with floating-point arithmetic behind it, and then no vectors.
 */
NUM_FN uint32_t num_pick(uint32_t first, uint32_t yes, uint32_t no)
{
	const uint32_t mask = 0u - first;

	return (yes & mask) | (no & ~mask);
}

/* mag: exponent above `mant` bits of mantissa. A whole number times a power of two. */
NUM_FN float num_from_small(uint32_t mag, uint32_t mant, uint32_t bias)
{
	const uint32_t exp = mag >> mant, normal = exp > 0;
	const uint32_t frac = (mag & ((1u << mant) - 1)) | normal << mant;

	return (float)(int32_t)frac *
	       num_float((exp + !normal + 127u - bias - mant) << 23);
}

/* The reverse for |f|, to nearest even; grows beyond what there is room for. */
NUM_FN uint32_t num_to_small(uint32_t mag, uint32_t mant, uint32_t bias)
{
	const uint32_t shift = 23u - mant, least = (127u - bias + 1u) << 23;
	const uint32_t odd = (mag >> shift) & 1u, is_small = mag < least;
	const uint32_t normal =
		(mag - ((127u - bias) << 23) + (1u << (shift - 1)) - 1u + odd) >> shift;
	/* The addition rounds to the unit of a denormal, which is the last place of
	 * this: 2^(1 - bias - mant + 23). */
	const uint32_t unit = (127u + 24u - bias - mant) << 23;
	const uint32_t denormal =
		num_bits32(num_float(mag & (0u - is_small)) + num_float(unit)) - unit;

	return num_pick(is_small, denormal, normal);
}

/* 4 exponent bits (OCP E4M3): no infinity, one NaN per sign. Exact. */
NUM_FN float num_from_e4m3(uint8_t v)
{
	const uint32_t mag = v & 0x7fu;
	const uint32_t u = num_bits32(num_from_small(mag, 3, 7));

	return num_float(num_pick(mag == 0x7fu, 0x7fc00000u, u) | (uint32_t)(v & 0x80u)
									  << 24);
}

/* What rounds to more than 448, the largest, becomes NaN: an overflow is seen. */
NUM_FN uint8_t num_to_e4m3(float f)
{
	const uint32_t u = num_bits32(f);
	const uint32_t v = num_to_small(u & 0x7fffffffu, 3, 7);

	return (uint8_t)(num_pick(v > 0x7fu, 0x7fu, v) | (u >> 24 & 0x80u));
}

/* 5 exponent bits (OCP E5M2): the upper half of a binary16. Exact. */
NUM_FN float num_from_e5m2(uint8_t v)
{
	const uint32_t mag = v & 0x7fu;
	const uint32_t u = num_bits32(num_from_small(mag, 2, 15));

	return num_float(num_pick(mag >= 0x7cu, 0x7f800000u | (mag & 3u) << 21, u) |
			 (uint32_t)(v & 0x80u) << 24);
}

/* Beyond 57344, the largest, is infinity. */
NUM_FN uint8_t num_to_e5m2(float f)
{
	const uint32_t u = num_bits32(f), mag = u & 0x7fffffffu;
	uint32_t v = num_to_small(mag, 2, 15);

	v = num_pick(v > 0x7cu, 0x7cu, v);
	v = num_pick(mag > 0x7f800000u, 0x7eu, v);
	return (uint8_t)(v | (u >> 24 & 0x80u));
}

NUM_FN float num_as_is_float(float f)
{
	return f;
}

NUM_FN double num_as_is_double(double d)
{
	return d;
}

NUM_FN float num_min_float(float a, float b)
{
	float m = a < b ? a : b;

	m = a == b ? num_float(num_bits32(a) | num_bits32(b)) : m;
	return a == a ? m : a;
}

NUM_FN float num_max_float(float a, float b)
{
	float m = a > b ? a : b;

	m = a == b ? num_float(num_bits32(a) & num_bits32(b)) : m;
	return a == a ? m : a;
}

NUM_FN double num_min_double(double a, double b)
{
	double m = a < b ? a : b;

	m = a == b ? num_double(num_bits64(a) | num_bits64(b)) : m;
	return a == a ? m : a;
}

NUM_FN double num_max_double(double a, double b)
{
	double m = a > b ? a : b;

	m = a == b ? num_double(num_bits64(a) & num_bits64(b)) : m;
	return a == a ? m : a;
}

/*
 * Division that truncates towards zero. Up to 32 bits the quotient is taken in fp64,
 * which vectorises, and is exact: a quotient that is no integer is at least 1/divisor
 * away from one, that is 2^-32 of its value, far above fp64's 2^-53. Divisors beyond 2^32
 * are larger than any element.
 */
NUM_FN int32_t num_div_small(int32_t a, double divisor)
{
	return (int32_t)((double)a / divisor);
}

NUM_FN uint32_t num_div_usmall(uint32_t a, double divisor)
{
	return (uint32_t)((double)a / divisor);
}

NUM_FN int64_t num_div_int64(int64_t a, uint64_t divisor)
{
	uint64_t mag = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
	uint64_t q = mag / divisor;

	return (int64_t)(a < 0 ? 0 - q : q);
}

NUM_FN uint64_t num_div_uint64(uint64_t a, uint64_t divisor)
{
	return a / divisor;
}

#endif
