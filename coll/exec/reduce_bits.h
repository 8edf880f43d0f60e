/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bitwise kernels of one width, for integers of either sign; included by reduce_isa.h
 * once a width, so it has no guard. Before including: R_BITS(op) names the function, R_T
 * is the word. Both are undefined at the end.
 */
REDUCE_TARGET static void R_BITS(band)(void *dst, const void *a, const void *b,
				       size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++)
		d[i] = x[i] & y[i];
}

REDUCE_TARGET static void R_BITS(bor)(void *dst, const void *a, const void *b,
				      size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++)
		d[i] = x[i] | y[i];
}

REDUCE_TARGET static void R_BITS(bxor)(void *dst, const void *a, const void *b,
				       size_t count)
{
	const R_T *x = a, *y = b;
	R_T *d = dst;

	REDUCE_IVDEP
	for (size_t i = 0; i < count; i++)
		d[i] = x[i] ^ y[i];
}

#undef R_BITS
#undef R_T
