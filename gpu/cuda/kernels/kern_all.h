/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kernel of kern_list.h: included once by kernels.cu (GPUs) and once by kern_cpu.c.
 *
 * Integers are combined as unsigned words of at least 32 bits: overflow wraps, and the
 * product of two 16-bit numbers is no overflow of int. The product and the bitwise
 * operations are the same for both signs.
 */
#ifndef WEFT_GPU_KERN_ALL_H
#define WEFT_GPU_KERN_ALL_H

#include "gpu/cuda/kernels/kern_num.h"

#define KT(op)		KERN_NAME(int8_##op)
#define KT_T		int8_t
#define KT_C		uint32_t
#define KT_BITS		8
#define KT_GET		kern_get8
#define KT_PUT(v, k, e) kern_put8((v), (k), (uint8_t)(e))
#define KT_LOAD(e)	((uint32_t)(int8_t)(e))
#define KT_STORE(c)	((int8_t)(c))
#define KT_MIN(a, b)	((int32_t)(a) < (int32_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((int32_t)(a) > (int32_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint32_t)num_div_small((int8_t)(c), (double)(d)))
#define KT_FLOATING	0
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(uint8_##op)
#define KT_T		uint8_t
#define KT_C		uint32_t
#define KT_BITS		8
#define KT_GET		kern_get8
#define KT_PUT(v, k, e) kern_put8((v), (k), (uint8_t)(e))
#define KT_LOAD(e)	((uint32_t)(uint8_t)(e))
#define KT_STORE(c)	((uint8_t)(c))
#define KT_MIN(a, b)	((uint32_t)(a) < (uint32_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((uint32_t)(a) > (uint32_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint32_t)num_div_usmall((uint8_t)(c), (double)(d)))
#define KT_FLOATING	0
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(int16_##op)
#define KT_T		int16_t
#define KT_C		uint32_t
#define KT_BITS		16
#define KT_GET		kern_get16
#define KT_PUT(v, k, e) kern_put16((v), (k), (uint16_t)(e))
#define KT_LOAD(e)	((uint32_t)(int16_t)(e))
#define KT_STORE(c)	((int16_t)(c))
#define KT_MIN(a, b)	((int32_t)(a) < (int32_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((int32_t)(a) > (int32_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint32_t)num_div_small((int16_t)(c), (double)(d)))
#define KT_FLOATING	0
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(uint16_##op)
#define KT_T		uint16_t
#define KT_C		uint32_t
#define KT_BITS		16
#define KT_GET		kern_get16
#define KT_PUT(v, k, e) kern_put16((v), (k), (uint16_t)(e))
#define KT_LOAD(e)	((uint32_t)(uint16_t)(e))
#define KT_STORE(c)	((uint16_t)(c))
#define KT_MIN(a, b)	((uint32_t)(a) < (uint32_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((uint32_t)(a) > (uint32_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint32_t)num_div_usmall((uint16_t)(c), (double)(d)))
#define KT_FLOATING	0
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(int32_##op)
#define KT_T		int32_t
#define KT_C		uint32_t
#define KT_BITS		32
#define KT_GET		kern_get32
#define KT_PUT(v, k, e) kern_put32((v), (k), (uint32_t)(e))
#define KT_LOAD(e)	((uint32_t)(int32_t)(e))
#define KT_STORE(c)	((int32_t)(c))
#define KT_MIN(a, b)	((int32_t)(a) < (int32_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((int32_t)(a) > (int32_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint32_t)num_div_small((int32_t)(c), (double)(d)))
#define KT_FLOATING	0
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(uint32_##op)
#define KT_T		uint32_t
#define KT_C		uint32_t
#define KT_BITS		32
#define KT_GET		kern_get32
#define KT_PUT(v, k, e) kern_put32((v), (k), (uint32_t)(e))
#define KT_LOAD(e)	((uint32_t)(uint32_t)(e))
#define KT_STORE(c)	((uint32_t)(c))
#define KT_MIN(a, b)	((uint32_t)(a) < (uint32_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((uint32_t)(a) > (uint32_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint32_t)num_div_usmall((uint32_t)(c), (double)(d)))
#define KT_FLOATING	0
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(int64_##op)
#define KT_T		int64_t
#define KT_C		uint64_t
#define KT_BITS		64
#define KT_GET		kern_get64
#define KT_PUT(v, k, e) kern_put64((v), (k), (uint64_t)(e))
#define KT_LOAD(e)	((uint64_t)(int64_t)(e))
#define KT_STORE(c)	((int64_t)(c))
#define KT_MIN(a, b)	((int64_t)(a) < (int64_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((int64_t)(a) > (int64_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint64_t)num_div_int64((int64_t)(c), (d)))
#define KT_FLOATING	0
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(uint64_##op)
#define KT_T		uint64_t
#define KT_C		uint64_t
#define KT_BITS		64
#define KT_GET		kern_get64
#define KT_PUT(v, k, e) kern_put64((v), (k), (uint64_t)(e))
#define KT_LOAD(e)	((uint64_t)(uint64_t)(e))
#define KT_STORE(c)	((uint64_t)(c))
#define KT_MIN(a, b)	((uint64_t)(a) < (uint64_t)(b) ? (a) : (b))
#define KT_MAX(a, b)	((uint64_t)(a) > (uint64_t)(b) ? (a) : (b))
#define KT_DIV(c, d)	((uint64_t)num_div_uint64((uint64_t)(c), (d)))
#define KT_FLOATING	0
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)	       KERN_NAME(fp16_##op)
#define KT_T	       uint16_t
#define KT_C	       float
#define KT_BITS	       16
#define KT_GET	       kern_get16
#define KT_PUT	       kern_put16
#define KT_LOAD(e)     kern_from_fp16(e)
#define KT_STORE(c)    kern_to_fp16(c)
#define KT_MIN	       num_min_float
#define KT_MAX	       num_max_float
#define KT_DIV(c, d)   ((c) / (float)(d))
#define KT_SCALE(c, s) ((c) * (float)(s))
#define KT_FLOATING    1
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)	       KERN_NAME(bf16_##op)
#define KT_T	       uint16_t
#define KT_C	       float
#define KT_BITS	       16
#define KT_GET	       kern_get16
#define KT_PUT	       kern_put16
#define KT_LOAD(e)     num_from_bf16(e)
#define KT_STORE(c)    kern_to_bf16(c)
#define KT_MIN	       num_min_float
#define KT_MAX	       num_max_float
#define KT_DIV(c, d)   ((c) / (float)(d))
#define KT_SCALE(c, s) ((c) * (float)(s))
#define KT_FLOATING    1
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)	       KERN_NAME(e4m3_##op)
#define KT_PAIR(what)  kern_##what##_e4m3
#define KT_T	       uint8_t
#define KT_C	       float
#define KT_BITS	       8
#define KT_GET	       kern_get8
#define KT_PUT	       kern_put8
#define KT_LOAD(e)     kern_from_e4m3(e)
#define KT_STORE(c)    kern_to_e4m3(c)
#define KT_MIN	       num_min_float
#define KT_MAX	       num_max_float
#define KT_DIV(c, d)   ((c) / (float)(d))
#define KT_SCALE(c, s) ((c) * (float)(s))
#define KT_FLOATING    1
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)	       KERN_NAME(e5m2_##op)
#define KT_PAIR(what)  kern_##what##_e5m2
#define KT_T	       uint8_t
#define KT_C	       float
#define KT_BITS	       8
#define KT_GET	       kern_get8
#define KT_PUT	       kern_put8
#define KT_LOAD(e)     kern_from_e5m2(e)
#define KT_STORE(c)    kern_to_e5m2(c)
#define KT_MIN	       num_min_float
#define KT_MAX	       num_max_float
#define KT_DIV(c, d)   ((c) / (float)(d))
#define KT_SCALE(c, s) ((c) * (float)(s))
#define KT_FLOATING    1
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(fp32_##op)
#define KT_T		float
#define KT_C		float
#define KT_BITS		32
#define KT_GET(v, k)	num_float(kern_get32((v), (k)))
#define KT_PUT(v, k, e) kern_put32((v), (k), num_bits32(e))
#define KT_LOAD(e)	(e)
#define KT_STORE(c)	(c)
#define KT_MIN		num_min_float
#define KT_MAX		num_max_float
#define KT_DIV(c, d)	((c) / (float)(d))
#define KT_SCALE(c, s)	((c) * (float)(s))
#define KT_FLOATING	1
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(fp64_##op)
#define KT_T		double
#define KT_C		double
#define KT_BITS		64
#define KT_GET(v, k)	num_double(kern_get64((v), (k)))
#define KT_PUT(v, k, e) kern_put64((v), (k), num_bits64(e))
#define KT_LOAD(e)	(e)
#define KT_STORE(c)	(c)
#define KT_MIN		num_min_double
#define KT_MAX		num_max_double
#define KT_DIV(c, d)	((c) / (double)(d))
#define KT_SCALE(c, s)	((c) * (s))
#define KT_FLOATING	1
#define KT_PROD
#include "gpu/cuda/kernels/kern_type.h"

#define KT(op)		KERN_NAME(bits8_##op)
#define KT_T		uint8_t
#define KT_C		uint32_t
#define KT_BITS		8
#define KT_GET		kern_get8
#define KT_PUT(v, k, e) kern_put8((v), (k), (e))
#include "gpu/cuda/kernels/kern_bits.h"

#define KT(op)		KERN_NAME(bits16_##op)
#define KT_T		uint16_t
#define KT_C		uint32_t
#define KT_BITS		16
#define KT_GET		kern_get16
#define KT_PUT(v, k, e) kern_put16((v), (k), (e))
#include "gpu/cuda/kernels/kern_bits.h"

#define KT(op)		KERN_NAME(bits32_##op)
#define KT_T		uint32_t
#define KT_C		uint32_t
#define KT_BITS		32
#define KT_GET		kern_get32
#define KT_PUT(v, k, e) kern_put32((v), (k), (e))
#include "gpu/cuda/kernels/kern_bits.h"

#define KT(op)		KERN_NAME(bits64_##op)
#define KT_T		uint64_t
#define KT_C		uint64_t
#define KT_BITS		64
#define KT_GET		kern_get64
#define KT_PUT(v, k, e) kern_put64((v), (k), (e))
#include "gpu/cuda/kernels/kern_bits.h"

#include "gpu/cuda/kernels/kern_copy.h"

#endif
