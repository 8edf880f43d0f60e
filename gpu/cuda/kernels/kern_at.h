/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ground that kernels stand on, once for GPUs (nvcc, or clang without any of CUDA's
 * files) and once for CPUs, where tests and the stand-in driver run them: which thread
 * this is, 16-byte accesses, ordering. On a CPU the threads of a launch run one after the
 * other, and what a kernel does after its block has met is a function of its own.
 */
#ifndef WEFT_GPU_KERN_AT_H
#define WEFT_GPU_KERN_AT_H

#include <stdint.h>

#include "gpu/cuda/kernels/kern.h"

#if defined(__CUDACC__) || defined(__CUDA__)
#define KERN_ON_GPU 1
#if defined(__clang__)
#define __device__	     __attribute__((device))
#define __global__	     __attribute__((global))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#define KERN_CONST	     /* clang has no such parameters */
#else
#define KERN_CONST __grid_constant__ /* its address may be taken without a copy */
#endif
#define KERN_FN	      static inline __device__ __attribute__((always_inline))
#define KERN_UNROLL   _Pragma("unroll")
#define KERN_NAME(op) weft_##op
#else
#include <sched.h>

#define KERN_ON_GPU 0
#define KERN_FN	    static inline __attribute__((always_inline, unused))
#define KERN_UNROLL
#define KERN_NAME(op) kern_##op
#endif

#define NUM_FN KERN_FN
#include "util/num.h"

/* Conversions of fp8 that the hardware has; others go by util/num.h. */
#if KERN_ON_GPU && defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 890
#define KERN_HAS_FP8 1
#endif
#if __CUDA_ARCH__ >= 800
#define KERN_HAS_BF16 1
#endif
#endif

struct kern_at {
	uint32_t thread, threads; /* in this block, of a block */
	uint32_t block, blocks;
};

struct kern_vec {
	uint32_t w[4];
};

#if KERN_ON_GPU

KERN_FN struct kern_at kern_here(void)
{
	struct kern_at at;

	asm("mov.u32 %0, %%tid.x;" : "=r"(at.thread));
	asm("mov.u32 %0, %%ntid.x;" : "=r"(at.threads));
	asm("mov.u32 %0, %%ctaid.x;" : "=r"(at.block));
	asm("mov.u32 %0, %%nctaid.x;" : "=r"(at.blocks));
	return at;
}

/* Volatile: in the order in which they stand, never before a wait. */
KERN_FN struct kern_vec kern_load16(const char *p)
{
	struct kern_vec v;

	asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
		     : "l"(p));
	return v;
}

KERN_FN void kern_store16(char *p, struct kern_vec v)
{
	asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
		     :
		     : "l"(p), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3])
		     : "memory");
}

/* The four bytes that begin `bytes` (0 .. 3) into two words. */
KERN_FN uint32_t kern_shift(uint32_t lo, uint32_t hi, uint32_t bytes)
{
	uint32_t r;

	asm("shf.r.clamp.b32 %0, %1, %2, %3;"
	    : "=r"(r)
	    : "r"(lo), "r"(hi), "r"(8 * bytes));
	return r;
}

KERN_FN uint64_t kern_acquire(const uint64_t *word)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
		     : "=l"(v)
		     : "l"(word)
		     : "memory");
	return v;
}

KERN_FN void kern_release(uint64_t *word, uint64_t v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;"
		     :
		     : "l"(word), "l"(v)
		     : "memory");
}

KERN_FN void kern_release_add(uint64_t *word, uint64_t v)
{
	asm volatile("red.release.sys.global.add.u64 [%0], %1;"
		     :
		     : "l"(word), "l"(v)
		     : "memory");
}

/* One more has come; how many came before. Orders what they did. */
KERN_FN uint32_t kern_arrive(uint32_t *word)
{
	uint32_t v;

	asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], 1;"
		     : "=r"(v)
		     : "l"(word)
		     : "memory");
	return v;
}

KERN_FN void kern_meet(void)
{
	asm volatile("bar.sync 0;" : : : "memory");
}

KERN_FN void kern_pause(void)
{
}

#else

KERN_FN struct kern_vec kern_load16(const char *p)
{
	struct kern_vec v;

	__builtin_memcpy(&v, __builtin_assume_aligned(p, KERN_VEC), sizeof(v));
	return v;
}

KERN_FN void kern_store16(char *p, struct kern_vec v)
{
	__builtin_memcpy(__builtin_assume_aligned(p, KERN_VEC), &v, sizeof(v));
}

KERN_FN uint32_t kern_shift(uint32_t lo, uint32_t hi, uint32_t bytes)
{
	return (uint32_t)(((uint64_t)hi << 32 | lo) >> (8 * bytes));
}

KERN_FN uint64_t kern_acquire(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

KERN_FN void kern_release(uint64_t *word, uint64_t v)
{
	__atomic_store_n(word, v, __ATOMIC_RELEASE);
}

KERN_FN void kern_release_add(uint64_t *word, uint64_t v)
{
	__atomic_fetch_add(word, v, __ATOMIC_RELEASE);
}

KERN_FN uint32_t kern_arrive(uint32_t *word)
{
	return __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
}

KERN_FN void kern_pause(void)
{
	sched_yield();
}

#endif

/* 16 bytes at any address, of two aligned accesses: off, 1 to 15, is the address's
 * distance from the aligned one below. */
KERN_FN struct kern_vec kern_load_across(const char *p, uint32_t off)
{
	const struct kern_vec lo = kern_load16(p - off), hi = kern_load16(p - off + 16);
	uint32_t x0 = lo.w[0], x1 = lo.w[1], x2 = lo.w[2], x3 = lo.w[3];
	uint32_t x4 = hi.w[0], x5 = hi.w[1], x6 = hi.w[2];
	struct kern_vec v;

	/* By words first; no index that is not a constant, or it would be memory. */
	if (off & 8u) {
		x0 = x2, x1 = x3, x2 = x4, x3 = x5, x4 = x6;
		x5 = hi.w[3], x6 = 0;
	}
	if (off & 4u)
		x0 = x1, x1 = x2, x2 = x3, x3 = x4, x4 = x5;
	v.w[0] = kern_shift(x0, x1, off & 3u);
	v.w[1] = kern_shift(x1, x2, off & 3u);
	v.w[2] = kern_shift(x2, x3, off & 3u);
	v.w[3] = kern_shift(x3, x4, off & 3u);
	return v;
}

KERN_FN struct kern_vec kern_load(const char *p, uint32_t off)
{
	return off ? kern_load_across(p, off) : kern_load16(p);
}

/* 16 bytes to any address that is a multiple of `align`, 1 to 16. */
KERN_FN void kern_store(char *p, struct kern_vec v, uint32_t align)
{
	if (align == 16) {
		kern_store16(p, v);
		return;
	}
	KERN_UNROLL
	for (int i = 0; i < 4; i++) {
		if (align >= 4) {
			*(uint32_t *)(void *)(p + 4 * i) = v.w[i];
		} else if (align == 2) {
			*(uint16_t *)(void *)(p + 4 * i) = (uint16_t)v.w[i];
			*(uint16_t *)(void *)(p + 4 * i + 2) = (uint16_t)(v.w[i] >> 16);
		} else {
			p[4 * i] = (char)v.w[i];
			p[4 * i + 1] = (char)(v.w[i] >> 8);
			p[4 * i + 2] = (char)(v.w[i] >> 16);
			p[4 * i + 3] = (char)(v.w[i] >> 24);
		}
	}
}

/* How far an address is above a multiple of 16, and the largest power of two that it is a
 * multiple of, up to 16. */
KERN_FN uint32_t kern_off(const void *p)
{
	return (uint32_t)((uintptr_t)p & 15u);
}

KERN_FN uint32_t kern_align(const void *p)
{
	const uint32_t off = kern_off(p) | 16u;

	return off & (0u - off);
}

/* By thread 0 of each block, when the block has met: the last one tells. */
KERN_FN void kern_tell(struct kern_at at, const struct kern_signal *s)
{
	if (!s->word || at.thread != 0)
		return;
	if (at.blocks > 1 && kern_arrive(s->arrived) != at.blocks - 1)
		return;
	if (at.blocks > 1)
		*s->arrived = 0;
	if (s->add)
		kern_release_add(s->word, s->value);
	else
		kern_release(s->word, s->value);
}

#endif
