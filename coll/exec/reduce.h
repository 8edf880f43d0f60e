/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions on host memory: dst[i] = a[i] op b[i], vectorised; fp16, bf16
 * and fp8 are computed in fp32 and rounded to nearest even once per call: beyond its
 * largest value fp8_e4m3, which has no infinity, becomes NaN, the others infinity. dst
 * may equal a or b, not overlap otherwise. No alignment is required beyond that of the
 * type. Pure, thread-safe.
 */
#ifndef WEFT_EXEC_REDUCE_H
#define WEFT_EXEC_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "weft/weft.h"

/* Bitwise operations are of integers; the others of every type. */
bool reduce_supported(enum weft_type type, enum weft_op op);

/* "int32, int64, fp16, ... with sum, prod, ...": for the message of a refusal. */
const char *reduce_supported_text(void);

/* WEFT_AVG adds here; the division is reduce_scale, once, at the end. NaN: min and max
 * return NaN when either operand is NaN. Integer overflow wraps. */
void reduce_apply(enum weft_type type, enum weft_op op, void *dst, const void *a,
		  const void *b, size_t count);

/* dst[i] = src[i] / divisor; integers truncate towards zero. dst may equal src. */
void reduce_scale(enum weft_type type, void *dst, const void *src, size_t count,
		  uint64_t divisor);

#endif
