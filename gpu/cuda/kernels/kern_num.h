/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements in a vector of 16 bytes, and their conversions: by the hardware's instructions
 * where a device has them (the same results, but for the payload of a NaN), by
 * util/num.h elsewhere.
 */
#ifndef WEFT_GPU_KERN_NUM_H
#define WEFT_GPU_KERN_NUM_H

#include "gpu/cuda/kernels/kern_at.h"

/* k is a constant in every call, after unrolling. Little endian, as all GPUs are. */
KERN_FN uint8_t kern_get8(const struct kern_vec *v, int k)
{
	return (uint8_t)(v->w[k / 4] >> 8 * (k % 4));
}

KERN_FN uint16_t kern_get16(const struct kern_vec *v, int k)
{
	return (uint16_t)(v->w[k / 2] >> 16 * (k % 2));
}

KERN_FN uint32_t kern_get32(const struct kern_vec *v, int k)
{
	return v->w[k];
}

KERN_FN uint64_t kern_get64(const struct kern_vec *v, int k)
{
	return (uint64_t)v->w[2 * k + 1] << 32 | v->w[2 * k];
}

/* Into a vector that was zero there. */
KERN_FN void kern_put8(struct kern_vec *v, int k, uint8_t e)
{
	v->w[k / 4] |= (uint32_t)e << 8 * (k % 4);
}

KERN_FN void kern_put16(struct kern_vec *v, int k, uint16_t e)
{
	v->w[k / 2] |= (uint32_t)e << 16 * (k % 2);
}

KERN_FN void kern_put32(struct kern_vec *v, int k, uint32_t e)
{
	v->w[k] = e;
}

KERN_FN void kern_put64(struct kern_vec *v, int k, uint64_t e)
{
	v->w[2 * k] = (uint32_t)e;
	v->w[2 * k + 1] = (uint32_t)(e >> 32);
}

KERN_FN float kern_from_fp16(uint16_t h)
{
#if KERN_ON_GPU
	float f;

	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
	return f;
#else
	return num_from_fp16(h);
#endif
}

KERN_FN uint16_t kern_to_fp16(float f)
{
#if KERN_ON_GPU
	uint16_t h;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
#else
	return num_to_fp16(f);
#endif
}

KERN_FN uint16_t kern_to_bf16(float f)
{
#if defined(KERN_HAS_BF16)
	uint16_t h;

	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
#else
	return num_to_bf16(f);
#endif
}

KERN_FN float kern_from_e4m3(uint8_t v)
{
#if defined(KERN_HAS_FP8)
	uint32_t two;

	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"((uint16_t)v));
	return kern_from_fp16((uint16_t)two);
#else
	return num_from_e4m3(v);
#endif
}

KERN_FN float kern_from_e5m2(uint8_t v)
{
	return kern_from_fp16((uint16_t)(v << 8));
}

KERN_FN float kern_abs(float f)
{
	return num_float(num_bits32(f) & 0x7fffffffu);
}

/* Two elements, the first in the lower byte. */
KERN_FN void kern_unpack_e4m3(uint16_t two, float *c)
{
#if defined(KERN_HAS_FP8)
	uint32_t halves;

	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(two));
	c[0] = kern_from_fp16((uint16_t)halves);
	c[1] = kern_from_fp16((uint16_t)(halves >> 16));
#else
	c[0] = num_from_e4m3((uint8_t)two);
	c[1] = num_from_e4m3((uint8_t)(two >> 8));
#endif
}

KERN_FN void kern_unpack_e5m2(uint16_t two, float *c)
{
	c[0] = kern_from_fp16((uint16_t)(two << 8));
	c[1] = kern_from_fp16((uint16_t)(two & 0xff00u));
}

/* The instruction gives 448 (0x7e) for all that is more, and what is more than half a
 * unit above it (464) would round to 480, which is NaN (0x7f). */
KERN_FN uint16_t kern_pack_e4m3(float a, float b)
{
#if defined(KERN_HAS_FP8)
	uint16_t two;

	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(b), "f"(a));
	return (uint16_t)(two | (kern_abs(a) > 464.0f ? 0x7fu : 0) |
			  (kern_abs(b) > 464.0f ? 0x7f00u : 0));
#else
	return (uint16_t)(num_to_e4m3(a) | num_to_e4m3(b) << 8);
#endif
}

/* As above: 57344 (0x7b) is the largest, and what is from half a unit above it on (61440)
 * rounds to infinity (0x7c). */
KERN_FN uint16_t kern_pack_e5m2(float a, float b)
{
#if defined(KERN_HAS_FP8)
	uint16_t two;

	asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(b), "f"(a));
	return (uint16_t)(two + (kern_abs(a) >= 61440.0f ? 1u : 0) +
			  (kern_abs(b) >= 61440.0f ? 0x100u : 0));
#else
	return (uint16_t)(num_to_e5m2(a) | num_to_e5m2(b) << 8);
#endif
}

KERN_FN uint8_t kern_to_e4m3(float f)
{
	return (uint8_t)kern_pack_e4m3(f, 0);
}

KERN_FN uint8_t kern_to_e5m2(float f)
{
	return (uint8_t)kern_pack_e5m2(f, 0);
}

/* Element i of dst, in the type `out` of a kernel that casts. */
KERN_FN void kern_store_as(uint32_t out, void *dst, uint64_t i, double exact, float f)
{
	switch (out) {
	case KERN_FP16:
		((uint16_t *)dst)[i] = kern_to_fp16(f);
		break;
	case KERN_BF16:
		((uint16_t *)dst)[i] = kern_to_bf16(f);
		break;
	case KERN_E4M3:
		((uint8_t *)dst)[i] = kern_to_e4m3(f);
		break;
	case KERN_E5M2:
		((uint8_t *)dst)[i] = kern_to_e5m2(f);
		break;
	case KERN_FP32:
		((float *)dst)[i] = f;
		break;
	default:
		((double *)dst)[i] = exact;
		break;
	}
}

#endif
