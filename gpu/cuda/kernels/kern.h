/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What host and kernels say to each other: arguments, passed by value. C and CUDA C++;
 * only plain types, the same layout on both sides (launch.c asserts the sizes).
 *
 * Rounding, in all reductions: sources are combined from left to right. Integers wrap.
 * fp32 and fp64 round to nearest even at every operation, as one by one on the host.
 * fp16, bf16 and fp8 are combined in fp32 and rounded to nearest even once, when the
 * result is stored, after division and scale: of two sources that is what the host's
 * reductions give, bit by bit (but for the payload of a NaN), of more it is nearer to
 * the true value than a chain of them. fp64 is stored in another type through fp32.
 * Overflow of fp8_e4m3 becomes NaN, of the others infinity. min and max: NaN wins, and
 * -0 is less than +0.
 */
#ifndef WEFT_GPU_KERN_H
#define WEFT_GPU_KERN_H

#include <stdint.h>

#define KERN_SOURCES 8
#define KERN_THREADS 512 /* of a block, of every kernel with many threads */
#define KERN_VEC     16	 /* bytes of one access */

/* Numbers of enum weft_type, of those that a reduction can be stored in. */
enum kern_out {
	KERN_FP16 = 8,
	KERN_BF16 = 9,
	KERN_E4M3 = 10,
	KERN_E5M2 = 11,
	KERN_FP32 = 12,
	KERN_FP64 = 13,
};

/* Said when all blocks of a kernel have finished; word NULL: nobody is told. */
struct kern_signal {
	uint64_t *word;	   /* in memory of host or device, aligned to 8 */
	uint64_t value;	   /* stored there, after all that the kernel wrote */
	uint32_t *arrived; /* device memory, 0 before, and 0 again afterwards */
	uint32_t add;	   /* not 0: value is added, in one access of this device */
	uint32_t unused;
};

/*
 * dst[i] = dst2[i] = src[0][i] op src[1][i] op ...; which op and type is the kernel's
 * name. Elements head .. head + vecs * (elements of 16 bytes) go by 16-byte accesses,
 * those before and after one by one. dst + head elements is aligned to 16; sources need
 * not be: two aligned accesses are shifted into one, and both lie inside the source.
 */
struct kern_reduce {
	void *dst;
	void *dst2; /* or NULL */
	const void *src[KERN_SOURCES];
	uint64_t count;
	uint64_t head;
	uint64_t vecs;
	uint64_t divisor; /* of averages; 0 or 1: none */
	double scale;	  /* of floating types; 1: none */
	uint32_t sources; /* 1 .. KERN_SOURCES */
	uint32_t op;	  /* kernels that cast: enum weft_op, sum prod min max avg */
	uint32_t out;	  /* kernels that cast: enum kern_out */
	uint32_t unused;
	struct kern_signal signal;
};

/* dst[0 .. bytes) = src, by the same rules, of single bytes. */
struct kern_copy {
	void *dst;
	const void *src;
	uint64_t bytes;
	uint64_t head;
	uint64_t vecs;
	struct kern_signal signal;
};

/* One step on a word, by one thread: the layout of struct gpu_word_op. */
enum kern_word_kind {
	KERN_WRITE, /* stores, after all that the stream did before */
	KERN_WAIT,  /* until (int64_t)(*word - value) >= 0 */
};

struct kern_word {
	uint32_t kind;
	uint32_t unused;
	uint64_t *word;
	uint64_t value;
};

#define KERN_WORDS 8

struct kern_words {
	struct kern_word op[KERN_WORDS];
};

#endif
