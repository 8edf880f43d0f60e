/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels of one type for one instruction set; included by reduce_isa.h, many times, so
 * it has no guard. Before including: R_NAME(op) names the function, R_T is the element,
 * R_C what it is computed in, R_LOAD and R_STORE convert, R_ADD, R_MUL, R_MIN, R_MAX
 * combine two R_C, R_DIV divides an R_C by R_D(divisor). All are undefined at the end.
 *
 * The loops carry no dependency (reduce.h: dst is a, is b, or overlaps neither), which
 * the compiler cannot know: REDUCE_IVDEP tells it.
 */
REDUCE_TARGET static void R_NAME(sum)(void *dst, const void *a, const void *b,
				      size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++)
		d[i] = R_STORE(R_ADD(R_LOAD(x[i]), R_LOAD(y[i])));
}

REDUCE_TARGET static void R_NAME(prod)(void *dst, const void *a, const void *b,
				       size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++)
		d[i] = R_STORE(R_MUL(R_LOAD(x[i]), R_LOAD(y[i])));
}

REDUCE_TARGET static void R_NAME(min)(void *dst, const void *a, const void *b,
				      size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++) {
		R_C l = R_LOAD(x[i]), r = R_LOAD(y[i]);

		d[i] = R_STORE(R_MIN(l, r));
	}
}

REDUCE_TARGET static void R_NAME(max)(void *dst, const void *a, const void *b,
				      size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++) {
		R_C l = R_LOAD(x[i]), r = R_LOAD(y[i]);

		d[i] = R_STORE(R_MAX(l, r));
	}
}

REDUCE_TARGET static void R_NAME(scale)(void *dst, const void *src, size_t count,
					uint64_t divisor)
{
	const R_T *s = src;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++)
		d[i] = R_STORE(R_DIV(R_LOAD(s[i]), R_D(divisor)));
}

#undef R_NAME
#undef R_T
#undef R_C
#undef R_LOAD
#undef R_STORE
#undef R_ADD
#undef R_MUL
#undef R_MIN
#undef R_MAX
#undef R_DIV
#undef R_D
