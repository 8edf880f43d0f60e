/* SPDX-License-Identifier: BSD-2-Clause */
/* See reference.h. Values are small whole numbers, so that every type holds sums and
 * products of them exactly and only the division of an average may round. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coll/tests/reference.h"

/* ---- values of any type as double
 * ---------------------------------------------------- */

static float half_to_float(uint16_t h)
{
	const int sign = h >> 15, exponent = h >> 10 & 31, mantissa = h & 1023;
	float f = exponent ? ldexpf((float)(1024 + mantissa), exponent - 25)
			   : ldexpf((float)mantissa, -24);

	if (exponent == 31)
		f = mantissa ? NAN : INFINITY;
	return sign ? -f : f;
}

/* Exact for the whole numbers up to 2048 that the tests use. */
static uint16_t half_from_float(float f)
{
	const uint16_t sign = f < 0 ? 0x8000 : 0;
	int exponent;
	float mantissa = frexpf(fabsf(f), &exponent);

	if (f == 0)
		return 0;
	return (uint16_t)(sign | (exponent + 14) << 10 |
			  ((int)ldexpf(mantissa, 11) & 1023));
}

static double ref_get(enum weft_type type, const void *buf, uint64_t i)
{
	uint32_t word;
	float f;

	switch (type) {
	case WEFT_INT32:
		return ((const int32_t *)buf)[i];
	case WEFT_INT64:
		return (double)((const int64_t *)buf)[i];
	case WEFT_FP16:
		return half_to_float(((const uint16_t *)buf)[i]);
	case WEFT_BF16:
		word = (uint32_t)((const uint16_t *)buf)[i] << 16;
		memcpy(&f, &word, sizeof(f));
		return f;
	case WEFT_FP32:
		return ((const float *)buf)[i];
	case WEFT_FP64:
		return ((const double *)buf)[i];
	default:
		return ((const uint8_t *)buf)[i];
	}
}

static void ref_set(enum weft_type type, void *buf, uint64_t i, double value)
{
	const float f = (float)value;
	uint32_t word;

	switch (type) {
	case WEFT_INT32:
		((int32_t *)buf)[i] = (int32_t)value;
		break;
	case WEFT_INT64:
		((int64_t *)buf)[i] = (int64_t)value;
		break;
	case WEFT_FP16:
		((uint16_t *)buf)[i] = half_from_float(f);
		break;
	case WEFT_BF16:
		memcpy(&word, &f, sizeof(word));
		((uint16_t *)buf)[i] = (uint16_t)(word >> 16);
		break;
	case WEFT_FP32:
		((float *)buf)[i] = f;
		break;
	case WEFT_FP64:
		((double *)buf)[i] = value;
		break;
	default:
		((uint8_t *)buf)[i] = (uint8_t)value;
		break;
	}
}

/* How far an average may be off: one rounding of the type. */
static double ref_tolerance(enum weft_type type)
{
	switch (type) {
	case WEFT_FP16:
		return 0x1p-10;
	case WEFT_BF16:
		return 0x1p-7;
	case WEFT_FP32:
		return 0x1p-22;
	case WEFT_FP64:
		return 0x1p-51;
	default:
		return 0;
	}
}

/* ---- cases
 * --------------------------------------------------------------------------- */

bool ref_reduces(enum weft_coll coll)
{
	return coll == WEFT_COLL_ALLREDUCE || coll == WEFT_COLL_REDUCE ||
	       coll == WEFT_COLL_REDUCE_SCATTER;
}

bool ref_rooted(enum weft_coll coll)
{
	return coll == WEFT_COLL_BROADCAST || coll == WEFT_COLL_REDUCE ||
	       coll == WEFT_COLL_GATHER || coll == WEFT_COLL_SCATTER;
}

uint64_t ref_src_count(const struct ref_case *c, int32_t rank, int32_t size)
{
	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return 0;
	case WEFT_COLL_BROADCAST:
		return rank == c->root ? c->count : 0;
	case WEFT_COLL_SCATTER:
		return rank == c->root ? c->count * (uint64_t)size : 0;
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_ALLTOALL:
		return c->count * (uint64_t)size;
	default:
		return c->count;
	}
}

uint64_t ref_dst_count(const struct ref_case *c, int32_t rank, int32_t size)
{
	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return 0;
	case WEFT_COLL_REDUCE:
		return rank == c->root ? c->count : 0;
	case WEFT_COLL_GATHER:
		return rank == c->root ? c->count * (uint64_t)size : 0;
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLTOALL:
		return c->count * (uint64_t)size;
	default:
		return c->count;
	}
}

static uint32_t ref_mix(uint32_t a, uint64_t i, uint32_t salt)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)a << 32 ^ salt;

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 33);
}

static double ref_value(const struct ref_case *c, int32_t rank, uint64_t i)
{
	const uint32_t x = ref_mix((uint32_t)rank, i, c->salt);

	if (ref_reduces(c->coll) && c->op == WEFT_PROD)
		return x % 8 == 0 ? -2.0 : 1.0 + x % 2;
	return (double)(x % 15) - 7;
}

void ref_fill(const struct ref_case *c, int32_t rank, uint64_t first, uint64_t count,
	      void *buf)
{
	for (uint64_t i = 0; i < count; i++)
		ref_set(c->type, buf, i, ref_value(c, rank, first + i));
}

static double ref_reduced(const struct ref_case *c, int32_t size, uint64_t i)
{
	double value = ref_value(c, 0, i);

	for (int32_t r = 1; r < size; r++) {
		const double next = ref_value(c, r, i);

		switch (c->op) {
		case WEFT_PROD:
			value *= next;
			break;
		case WEFT_MIN:
			value = fmin(value, next);
			break;
		case WEFT_MAX:
			value = fmax(value, next);
			break;
		default:
			value += next;
			break;
		}
	}
	if (c->op == WEFT_AVG) {
		value /= size;
		if (c->type == WEFT_INT32 || c->type == WEFT_INT64)
			value = trunc(value);
	}
	return value;
}

static double ref_result(const struct ref_case *c, int32_t rank, int32_t size, uint64_t i)
{
	const uint64_t mine = (uint64_t)rank * c->count;

	switch (c->coll) {
	case WEFT_COLL_BROADCAST:
		return ref_value(c, c->root, i);
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_GATHER:
		return ref_value(c, (int32_t)(i / c->count), i % c->count);
	case WEFT_COLL_ALLTOALL:
		return ref_value(c, (int32_t)(i / c->count), mine + i % c->count);
	case WEFT_COLL_SCATTER:
		return ref_value(c, c->root, mine + i);
	case WEFT_COLL_REDUCE_SCATTER:
		return ref_reduced(c, size, mine + i);
	default:
		return ref_reduced(c, size, i);
	}
}

int64_t ref_check(const struct ref_case *c, int32_t rank, int32_t size, const void *dst)
{
	const uint64_t total = ref_dst_count(c, rank, size);
	const bool average = ref_reduces(c->coll) && c->op == WEFT_AVG;

	for (uint64_t i = 0; i < total; i++) {
		const double want = ref_result(c, rank, size, i),
			     got = ref_get(c->type, dst, i);
		const double slack = average ? fabs(want) * ref_tolerance(c->type) : 0;

		if (!(fabs(got - want) <= slack))
			return (int64_t)i;
	}
	return -1;
}

void ref_case_print(const struct ref_case *c, char *text, size_t len)
{
	snprintf(text, len, "%s (%s) of %llu %s%s%s root %d%s salt %u",
		 weft_coll_name(c->coll), c->algorithm ? c->algorithm : "default",
		 (unsigned long long)c->count, weft_type_name(c->type),
		 ref_reduces(c->coll) ? " " : "",
		 ref_reduces(c->coll) ? weft_op_name(c->op) : "", c->root,
		 c->in_place ? " in place" : "", c->salt);
}
