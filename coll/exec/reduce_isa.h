/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All kernels of one instruction set and their table; included once by each reduce_*.c
 * that has defined REDUCE_TARGET (a function attribute, or nothing) and REDUCE_TABLE (the
 * table's name). With REDUCE_HALF_SIMD the includer brings the fp16 kernels itself, named
 * fp16_sum and so on.
 *
 * Integers are combined as unsigned words of at least 32 bits, so that overflow wraps and
 * the product of two uint16 is no overflow of int.
 */
#ifndef WEFT_EXEC_REDUCE_ISA_H
#define WEFT_EXEC_REDUCE_ISA_H

#include "coll/exec/reduce_kernel.h"
#include "util/num.h"

#if defined(__clang__)
#define REDUCE_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define REDUCE_IVDEP _Pragma("GCC ivdep")
#endif

#define R_NAME(op)   int8_##op
#define R_T	     int8_t
#define R_C	     int8_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((int8_t)(v))
#define R_ADD(a, b)  ((uint8_t)((uint32_t)(a) + (uint32_t)(b)))
#define R_MUL(a, b)  ((uint8_t)((uint32_t)(a) * (uint32_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_small((a), (d))
#define R_D(divisor) (double)(divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   uint8_##op
#define R_T	     uint8_t
#define R_C	     uint8_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((uint8_t)(v))
#define R_ADD(a, b)  ((uint8_t)((uint32_t)(a) + (uint32_t)(b)))
#define R_MUL(a, b)  ((uint8_t)((uint32_t)(a) * (uint32_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_usmall((a), (d))
#define R_D(divisor) (double)(divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   int16_##op
#define R_T	     int16_t
#define R_C	     int16_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((int16_t)(v))
#define R_ADD(a, b)  ((uint16_t)((uint32_t)(a) + (uint32_t)(b)))
#define R_MUL(a, b)  ((uint16_t)((uint32_t)(a) * (uint32_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_small((a), (d))
#define R_D(divisor) (double)(divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   uint16_##op
#define R_T	     uint16_t
#define R_C	     uint16_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((uint16_t)(v))
#define R_ADD(a, b)  ((uint16_t)((uint32_t)(a) + (uint32_t)(b)))
#define R_MUL(a, b)  ((uint16_t)((uint32_t)(a) * (uint32_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_usmall((a), (d))
#define R_D(divisor) (double)(divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   int32_##op
#define R_T	     int32_t
#define R_C	     int32_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((int32_t)(v))
#define R_ADD(a, b)  ((uint32_t)((uint32_t)(a) + (uint32_t)(b)))
#define R_MUL(a, b)  ((uint32_t)((uint32_t)(a) * (uint32_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_small((a), (d))
#define R_D(divisor) (double)(divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   uint32_##op
#define R_T	     uint32_t
#define R_C	     uint32_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((uint32_t)(v))
#define R_ADD(a, b)  ((uint32_t)((uint32_t)(a) + (uint32_t)(b)))
#define R_MUL(a, b)  ((uint32_t)((uint32_t)(a) * (uint32_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_usmall((a), (d))
#define R_D(divisor) (double)(divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   int64_##op
#define R_T	     int64_t
#define R_C	     int64_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((int64_t)(v))
#define R_ADD(a, b)  ((uint64_t)((uint64_t)(a) + (uint64_t)(b)))
#define R_MUL(a, b)  ((uint64_t)((uint64_t)(a) * (uint64_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_int64((a), (d))
#define R_D(divisor) (divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   uint64_##op
#define R_T	     uint64_t
#define R_C	     uint64_t
#define R_LOAD(v)    (v)
#define R_STORE(v)   ((uint64_t)(v))
#define R_ADD(a, b)  ((uint64_t)((uint64_t)(a) + (uint64_t)(b)))
#define R_MUL(a, b)  ((uint64_t)((uint64_t)(a) * (uint64_t)(b)))
#define R_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define R_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define R_DIV(a, d)  num_div_uint64((a), (d))
#define R_D(divisor) (divisor)
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   fp32_##op
#define R_T	     float
#define R_C	     float
#define R_LOAD(v)    num_as_is_float(v)
#define R_STORE(v)   num_as_is_float(v)
#define R_ADD(a, b)  ((a) + (b))
#define R_MUL(a, b)  ((a) * (b))
#define R_MIN(a, b)  num_min_float((a), (b))
#define R_MAX(a, b)  num_max_float((a), (b))
#define R_DIV(a, d)  ((a) / (d))
#define R_D(divisor) ((float)(divisor))
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   fp64_##op
#define R_T	     double
#define R_C	     double
#define R_LOAD(v)    num_as_is_double(v)
#define R_STORE(v)   num_as_is_double(v)
#define R_ADD(a, b)  ((a) + (b))
#define R_MUL(a, b)  ((a) * (b))
#define R_MIN(a, b)  num_min_double((a), (b))
#define R_MAX(a, b)  num_max_double((a), (b))
#define R_DIV(a, d)  ((a) / (d))
#define R_D(divisor) ((double)(divisor))
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   bf16_##op
#define R_T	     uint16_t
#define R_C	     float
#define R_LOAD(v)    num_from_bf16(v)
#define R_STORE(v)   num_to_bf16(v)
#define R_ADD(a, b)  ((a) + (b))
#define R_MUL(a, b)  ((a) * (b))
#define R_MIN(a, b)  num_min_float((a), (b))
#define R_MAX(a, b)  num_max_float((a), (b))
#define R_DIV(a, d)  ((a) / (d))
#define R_D(divisor) ((float)(divisor))
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   e4m3_##op
#define R_T	     uint8_t
#define R_C	     float
#define R_LOAD(v)    num_from_e4m3(v)
#define R_STORE(v)   num_to_e4m3(v)
#define R_ADD(a, b)  ((a) + (b))
#define R_MUL(a, b)  ((a) * (b))
#define R_MIN(a, b)  num_min_float((a), (b))
#define R_MAX(a, b)  num_max_float((a), (b))
#define R_DIV(a, d)  ((a) / (d))
#define R_D(divisor) ((float)(divisor))
#include "coll/exec/reduce_template.h"

#define R_NAME(op)   e5m2_##op
#define R_T	     uint8_t
#define R_C	     float
#define R_LOAD(v)    num_from_e5m2(v)
#define R_STORE(v)   num_to_e5m2(v)
#define R_ADD(a, b)  ((a) + (b))
#define R_MUL(a, b)  ((a) * (b))
#define R_MIN(a, b)  num_min_float((a), (b))
#define R_MAX(a, b)  num_max_float((a), (b))
#define R_DIV(a, d)  ((a) / (d))
#define R_D(divisor) ((float)(divisor))
#include "coll/exec/reduce_template.h"

#ifndef REDUCE_HALF_SIMD
#define R_NAME(op)   fp16_##op
#define R_T	     uint16_t
#define R_C	     float
#define R_LOAD(v)    num_from_fp16(v)
#define R_STORE(v)   num_to_fp16(v)
#define R_ADD(a, b)  ((a) + (b))
#define R_MUL(a, b)  ((a) * (b))
#define R_MIN(a, b)  num_min_float((a), (b))
#define R_MAX(a, b)  num_max_float((a), (b))
#define R_DIV(a, d)  ((a) / (d))
#define R_D(divisor) ((float)(divisor))
#include "coll/exec/reduce_template.h"
#endif

#define R_BITS(op) bits8_##op
#define R_T	   uint8_t
#include "coll/exec/reduce_bits.h"

#define R_BITS(op) bits16_##op
#define R_T	   uint16_t
#include "coll/exec/reduce_bits.h"

#define R_BITS(op) bits32_##op
#define R_T	   uint32_t
#include "coll/exec/reduce_bits.h"

#define R_BITS(op) bits64_##op
#define R_T	   uint64_t
#include "coll/exec/reduce_bits.h"

#define REDUCE_FLOAT(name)                                                 \
	{                                                                  \
		.sum = name##_sum, .prod = name##_prod, .min = name##_min, \
		.max = name##_max, .scale = name##_scale,                  \
	}

#define REDUCE_INT(name, bits)                                                 \
	{                                                                      \
		.sum = name##_sum, .prod = name##_prod, .min = name##_min,     \
		.max = name##_max, .scale = name##_scale, .band = bits##_band, \
		.bor = bits##_bor, .bxor = bits##_bxor,                        \
	}

const struct reduce_kernel REDUCE_TABLE[WEFT_TYPE_COUNT] = {
	[WEFT_INT8] = REDUCE_INT(int8, bits8),
	[WEFT_UINT8] = REDUCE_INT(uint8, bits8),
	[WEFT_INT16] = REDUCE_INT(int16, bits16),
	[WEFT_UINT16] = REDUCE_INT(uint16, bits16),
	[WEFT_INT32] = REDUCE_INT(int32, bits32),
	[WEFT_UINT32] = REDUCE_INT(uint32, bits32),
	[WEFT_INT64] = REDUCE_INT(int64, bits64),
	[WEFT_UINT64] = REDUCE_INT(uint64, bits64),
	[WEFT_FP16] = REDUCE_FLOAT(fp16),
	[WEFT_BF16] = REDUCE_FLOAT(bf16),
	[WEFT_FP8_E4M3] = REDUCE_FLOAT(e4m3),
	[WEFT_FP8_E5M2] = REDUCE_FLOAT(e5m2),
	[WEFT_FP32] = REDUCE_FLOAT(fp32),
	[WEFT_FP64] = REDUCE_FLOAT(fp64),
};

#endif
