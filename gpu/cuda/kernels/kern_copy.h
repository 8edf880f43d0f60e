/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy and tell; steps on words. Included by kern_all.h. */
#ifndef WEFT_GPU_KERN_COPY_H
#define WEFT_GPU_KERN_COPY_H

#include "gpu/cuda/kernels/kern_at.h"

#define KERN_COPY_DEEP 4

KERN_FN void kern_copy_vectors(const struct kern_copy *a, uint64_t first, uint64_t stride,
			       const int deep)
{
	const uint64_t at = a->head + first * KERN_VEC, step = stride * KERN_VEC;
	const char *src = (const char *)a->src + at;
	const uint32_t off = kern_off(src);
	char *dst = (char *)a->dst + at;
	struct kern_vec x[KERN_COPY_DEEP];

	KERN_UNROLL
	for (int k = 0; k < deep; k++)
		x[k] = kern_load(src + k * step, off);
	KERN_UNROLL
	for (int k = 0; k < deep; k++)
		kern_store16(dst + k * step, x[k]);
}

KERN_FN void kern_copy_run(struct kern_at at, const struct kern_copy *a)
{
	const uint64_t tile = (uint64_t)at.threads * KERN_COPY_DEEP;
	const char *src = (const char *)a->src;
	char *dst = (char *)a->dst;

	for (uint64_t t = at.block * tile; t < a->vecs; t += at.blocks * tile) {
		if (t + tile <= a->vecs) {
			kern_copy_vectors(a, t + at.thread, at.threads, KERN_COPY_DEEP);
			continue;
		}
		for (uint64_t v = t + at.thread; v < a->vecs; v += at.threads)
			kern_copy_vectors(a, v, 0, 1);
	}
	if (at.block != at.blocks - 1)
		return;
	for (uint64_t i = at.thread; i < a->bytes - a->vecs * KERN_VEC; i += at.threads) {
		const uint64_t byte = i < a->head ? i : i + a->vecs * KERN_VEC;

		dst[byte] = src[byte];
	}
}

/* One thread: for streams on devices without the driver's memory waits. What gives up
 * writes the awaited value; a process that is killed takes its kernels with it. */
KERN_FN void kern_words_run(const struct kern_words *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct kern_word *op = &a->op[i];

		if (op->kind == KERN_WRITE) {
			kern_release(op->word, op->value);
			continue;
		}
		while ((int64_t)(kern_acquire(op->word) - op->value) < 0)
			kern_pause();
	}
}

#if KERN_ON_GPU
extern "C" __global__ void __launch_bounds__(KERN_THREADS)
	weft_copy(const KERN_CONST struct kern_copy a)
{
	const struct kern_at at = kern_here();

	kern_copy_run(at, &a);
	kern_meet();
	kern_tell(at, &a.signal);
}

extern "C" __global__ void __launch_bounds__(32)
	weft_words(const KERN_CONST struct kern_words a, uint32_t count)
{
	if (kern_here().thread == 0)
		kern_words_run(&a, count);
}
#else
static void kern_copy(struct kern_at at, const void *args, int met)
{
	if (met)
		kern_tell(at, &((const struct kern_copy *)args)->signal);
	else
		kern_copy_run(at, args);
}
#endif

#endif
