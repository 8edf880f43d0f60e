/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fp16 kernels over vectors of HALF_STEP elements, for instruction sets that convert fp16
 * in hardware (compilers do not find those conversions by themselves). Included once by
 * the file that defines REDUCE_TARGET, the vector type half_vec, and half_load,
 * half_store, half_set, half_add, half_mul, half_min, half_max, half_div.
 *
 * The rest of a run goes through a padded copy, so that every element takes the same
 * path.
 */
#ifndef WEFT_EXEC_REDUCE_HALF_H
#define WEFT_EXEC_REDUCE_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Inlined into each kernel, so that op is a known function and disappears. */
REDUCE_TARGET static inline __attribute__((always_inline)) void half_run(
	uint16_t *d, const uint16_t *x, const uint16_t *y, size_t count,
	half_vec (*op)(half_vec, half_vec))
{
	uint16_t rest[2][HALF_STEP] = {{0}};
	size_t i = 0;

	for (; i + HALF_STEP <= count; i += HALF_STEP)
		half_store(d + i, op(half_load(x + i), half_load(y + i)));
	if (i == count)
		return;
	memcpy(rest[0], x + i, (count - i) * sizeof(*x));
	memcpy(rest[1], y + i, (count - i) * sizeof(*y));
	half_store(rest[0], op(half_load(rest[0]), half_load(rest[1])));
	memcpy(d + i, rest[0], (count - i) * sizeof(*d));
}

REDUCE_TARGET static void fp16_sum(void *dst, const void *a, const void *b, size_t count)
{
	half_run(dst, a, b, count, half_add);
}

REDUCE_TARGET static void fp16_prod(void *dst, const void *a, const void *b, size_t count)
{
	half_run(dst, a, b, count, half_mul);
}

REDUCE_TARGET static void fp16_min(void *dst, const void *a, const void *b, size_t count)
{
	half_run(dst, a, b, count, half_min);
}

REDUCE_TARGET static void fp16_max(void *dst, const void *a, const void *b, size_t count)
{
	half_run(dst, a, b, count, half_max);
}

REDUCE_TARGET static void fp16_scale(void *dst, const void *src, size_t count,
				     uint64_t divisor)
{
	const half_vec by = half_set((float)divisor);
	const uint16_t *s = src;
	uint16_t *d = dst, rest[HALF_STEP] = {0};
	size_t i = 0;

	for (; i + HALF_STEP <= count; i += HALF_STEP)
		half_store(d + i, half_div(half_load(s + i), by));
	if (i == count)
		return;
	memcpy(rest, s + i, (count - i) * sizeof(*s));
	half_store(rest, half_div(half_load(rest), by));
	memcpy(d + i, rest, (count - i) * sizeof(*d));
}

#endif
