/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One reduction; included by kern_type.h many times, so it has no guard. Before
 * including: KR(name) names its functions, KR_KERNEL the kernel, KR_OP combines two KT_C,
 * KR_FINISH says whether divisor and scale count. All are undefined at the end.
 *
 * A block works on tiles of KR_DEEP vectors a thread. The first two sources are loaded
 * before anything is computed, further ones a tile's width at a time: so that few blocks
 * have enough under way.
 */
#define KR_PER ((int)(KERN_VEC / sizeof(KT_T))) /* elements of a vector */
#ifdef KT_PAIR
#define KR_DEEP 2 /* sixteen fp32 a vector: registers */
#else
#define KR_DEEP 4
#endif

KERN_FN KT_C KR(finish)(const struct kern_reduce *a, KT_C c)
{
#if KR_FINISH
	if (a->divisor > 1)
		c = KT_DIV(c, a->divisor);
#endif
#if KT_FLOATING
	if (a->scale != 1.0)
		c = KT_SCALE(c, a->scale);
#endif
	(void)a;
	return c;
}

KERN_FN void KR(element)(const struct kern_reduce *a, uint64_t i)
{
	KT_C c = KT_LOAD(((const KT_T *)a->src[0])[i]);
	KT_T e;

	for (uint32_t s = 1; s < a->sources; s++) {
		const KT_C next = KT_LOAD(((const KT_T *)a->src[s])[i]);

		c = KR_OP(c, next);
	}
	c = KR(finish)(a, c);
	e = KT_STORE(c);
	((KT_T *)a->dst)[i] = e;
	if (a->dst2)
		((KT_T *)a->dst2)[i] = e;
}

KERN_FN void KR(unpack)(KT_C *c, struct kern_vec v)
{
#ifdef KT_PAIR
	KERN_UNROLL
	for (int k = 0; k < KR_PER; k += 2)
		KT_PAIR(unpack)(kern_get16(&v, k / 2), &c[k]);
#else
	KERN_UNROLL
	for (int k = 0; k < KR_PER; k++)
		c[k] = KT_LOAD((KT_T)KT_GET(&v, k));
#endif
}

KERN_FN struct kern_vec KR(pack)(const KT_C *c)
{
	struct kern_vec v = {{0, 0, 0, 0}};

#ifdef KT_PAIR
	KERN_UNROLL
	for (int k = 0; k < KR_PER; k += 2)
		kern_put16(&v, k / 2, KT_PAIR(pack)(c[k], c[k + 1]));
#else
	KERN_UNROLL
	for (int k = 0; k < KR_PER; k++)
		KT_PUT(&v, k, KT_STORE(c[k]));
#endif
	return v;
}

KERN_FN void KR(combine)(KT_C *c, struct kern_vec v)
{
	KT_C next[KERN_VEC / sizeof(KT_T)];

	KR(unpack)(next, v);
	KERN_UNROLL
	for (int k = 0; k < KR_PER; k++)
		c[k] = KR_OP(c[k], next[k]);
}

KERN_FN void KR(store)(const struct kern_reduce *a, uint64_t at, KT_C *c, uint32_t align2)
{
	struct kern_vec v;

	KERN_UNROLL
	for (int k = 0; k < KR_PER; k++)
		c[k] = KR(finish)(a, c[k]);
	v = KR(pack)(c);
	kern_store16((char *)a->dst + at, v);
	if (a->dst2)
		kern_store((char *)a->dst2 + at, v, align2);
}

/* Vectors first, first + stride, ...: `deep` of them. */
KERN_FN void KR(vectors)(const struct kern_reduce *a, uint64_t first, uint64_t stride,
			 const int deep)
{
	const uint64_t head = a->head * sizeof(KT_T);
	const uint32_t align2 = kern_align((const char *)a->dst2 + head);
	const uint64_t at = head + first * KERN_VEC, step = stride * KERN_VEC;
	struct kern_vec x[KR_DEEP], y[KR_DEEP];
	KT_C c[KR_DEEP][KERN_VEC / sizeof(KT_T)];
	const char *p = (const char *)a->src[0] + at;
	uint32_t off = kern_off(p);

	KERN_UNROLL
	for (int k = 0; k < deep; k++)
		x[k] = kern_load(p + k * step, off);
	if (a->sources > 1) {
		p = (const char *)a->src[1] + at;
		off = kern_off(p);
		KERN_UNROLL
		for (int k = 0; k < deep; k++)
			y[k] = kern_load(p + k * step, off);
	}
	KERN_UNROLL
	for (int k = 0; k < deep; k++)
		KR(unpack)(c[k], x[k]);
	for (uint32_t s = 1; s < a->sources; s++) {
		KERN_UNROLL
		for (int k = 0; k < deep; k++)
			KR(combine)(c[k], y[k]);
		if (s + 1 == a->sources)
			break;
		p = (const char *)a->src[s + 1] + at;
		off = kern_off(p);
		KERN_UNROLL
		for (int k = 0; k < deep; k++)
			y[k] = kern_load(p + k * step, off);
	}
	KERN_UNROLL
	for (int k = 0; k < deep; k++)
		KR(store)(a, at + k * step, c[k], align2);
}

KERN_FN void KR(run)(struct kern_at at, const struct kern_reduce *a)
{
	const uint64_t tile = (uint64_t)at.threads * KR_DEEP;

	for (uint64_t t = at.block * tile; t < a->vecs; t += at.blocks * tile) {
		if (t + tile <= a->vecs) {
			KR(vectors)(a, t + at.thread, at.threads, KR_DEEP);
			continue;
		}
		for (uint64_t v = t + at.thread; v < a->vecs; v += at.threads)
			KR(vectors)(a, v, 0, 1);
	}
	if (at.block != at.blocks - 1)
		return;
	for (uint64_t i = at.thread; i < a->count - a->vecs * KR_PER; i += at.threads)
		KR(element)(a, i < a->head ? i : i + a->vecs * KR_PER);
}

#if KERN_ON_GPU
extern "C" __global__ void __launch_bounds__(KERN_THREADS)
	KR_KERNEL(const KERN_CONST struct kern_reduce a)
{
	const struct kern_at at = kern_here();

	KR(run)(at, &a);
	kern_meet();
	kern_tell(at, &a.signal);
}
#else
static void KR_KERNEL(struct kern_at at, const void *args, int met)
{
	if (met)
		kern_tell(at, &((const struct kern_reduce *)args)->signal);
	else
		KR(run)(at, args);
}
#endif

#undef KR
#undef KR_KERNEL
#undef KR_OP
#undef KR_FINISH
#undef KR_PER
#undef KR_DEEP
