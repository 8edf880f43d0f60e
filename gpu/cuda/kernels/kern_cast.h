/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reduction that is stored in another floating type; included by kern_type.h once a
 * floating type, so it has no guard. Element by element, neighbours by neighbouring
 * threads: the operation is chosen while it runs.
 */
KERN_FN KT_C KT(cast_pair)(uint32_t op, KT_C a, KT_C b)
{
	switch (op) {
	case 1:
		return a * b;
	case 2:
		return KT_MIN(a, b);
	case 3:
		return KT_MAX(a, b);
	default: /* sum, average */
		return a + b;
	}
}

KERN_FN void KT(cast_run)(struct kern_at at, const struct kern_reduce *a)
{
	const uint64_t step = (uint64_t)at.threads * at.blocks;

	for (uint64_t i = (uint64_t)at.block * at.threads + at.thread; i < a->count;
	     i += step) {
		KT_C c = KT_LOAD(((const KT_T *)a->src[0])[i]);

		for (uint32_t s = 1; s < a->sources; s++) {
			const KT_C next = KT_LOAD(((const KT_T *)a->src[s])[i]);

			c = KT(cast_pair)(a->op, c, next);
		}
		if (a->divisor > 1)
			c = KT_DIV(c, a->divisor);
		if (a->scale != 1.0)
			c = KT_SCALE(c, a->scale);
		kern_store_as(a->out, a->dst, i, (double)c, (float)c);
		if (a->dst2)
			kern_store_as(a->out, a->dst2, i, (double)c, (float)c);
	}
}

#if KERN_ON_GPU
extern "C" __global__ void __launch_bounds__(KERN_THREADS)
	KT(cast)(const KERN_CONST struct kern_reduce a)
{
	const struct kern_at at = kern_here();

	KT(cast_run)(at, &a);
	kern_meet();
	kern_tell(at, &a.signal);
}
#else
static void KT(cast)(struct kern_at at, const void *args, int met)
{
	if (met)
		kern_tell(at, &((const struct kern_reduce *)args)->signal);
	else
		KT(cast_run)(at, args);
}
#endif
