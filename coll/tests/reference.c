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

/* fp8 with so many stored bits of mantissa; the tests have no specials. */
static float small_to_float(uint8_t v, int mant, int bias)
{
	const int exponent = (v & 127) >> mant, mantissa = v & ((1 << mant) - 1);
	const float f =
		exponent ? ldexpf((float)((1 << mant) + mantissa), exponent - bias - mant)
			 : ldexpf((float)mantissa, 1 - bias - mant);

	return v & 128 ? -f : f;
}

/* Exact for the whole numbers up to 8 that the tests use. */
static uint8_t small_from_float(float f, int mant, int bias)
{
	int exponent;
	float mantissa = frexpf(fabsf(f), &exponent);

	if (f == 0)
		return 0;
	return (uint8_t)((f < 0 ? 128 : 0) | (exponent - 1 + bias) << mant |
			 ((int)ldexpf(mantissa, mant + 1) & ((1 << mant) - 1)));
}

static double ref_get(enum weft_type type, const void *buf, uint64_t i)
{
	uint32_t word;
	float f;

	switch (type) {
	case WEFT_INT8:
		return (double)((const int8_t *)buf)[i];
	case WEFT_INT16:
		return (double)((const int16_t *)buf)[i];
	case WEFT_UINT16:
		return (double)((const uint16_t *)buf)[i];
	case WEFT_UINT32:
		return (double)((const uint32_t *)buf)[i];
	case WEFT_UINT64:
		return (double)((const uint64_t *)buf)[i];
	case WEFT_INT32:
		return ((const int32_t *)buf)[i];
	case WEFT_INT64:
		return (double)((const int64_t *)buf)[i];
	case WEFT_FP16:
		return half_to_float(((const uint16_t *)buf)[i]);
	case WEFT_FP8_E4M3:
		return small_to_float(((const uint8_t *)buf)[i], 3, 7);
	case WEFT_FP8_E5M2:
		return small_to_float(((const uint8_t *)buf)[i], 2, 15);
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
	case WEFT_INT8:
		((int8_t *)buf)[i] = (int8_t)value;
		break;
	case WEFT_INT16:
		((int16_t *)buf)[i] = (int16_t)value;
		break;
	case WEFT_UINT16:
		((uint16_t *)buf)[i] = (uint16_t)value;
		break;
	case WEFT_UINT32:
		((uint32_t *)buf)[i] = (uint32_t)value;
		break;
	case WEFT_UINT64:
		((uint64_t *)buf)[i] = (uint64_t)value;
		break;
	case WEFT_INT32:
		((int32_t *)buf)[i] = (int32_t)value;
		break;
	case WEFT_INT64:
		((int64_t *)buf)[i] = (int64_t)value;
		break;
	case WEFT_FP16:
		((uint16_t *)buf)[i] = half_from_float(f);
		break;
	case WEFT_FP8_E4M3:
		((uint8_t *)buf)[i] = small_from_float(f, 3, 7);
		break;
	case WEFT_FP8_E5M2:
		((uint8_t *)buf)[i] = small_from_float(f, 2, 15);
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
	case WEFT_FP8_E4M3:
		return 0x1p-3;
	case WEFT_FP8_E5M2:
		return 0x1p-2;
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
	       coll == WEFT_COLL_REDUCE_SCATTER || coll == WEFT_COLL_REDUCE_SCATTERV;
}

static bool op_is_bitwise(enum weft_op op)
{
	return op == WEFT_BAND || op == WEFT_BOR || op == WEFT_BXOR;
}

bool ref_supported(enum weft_type type, enum weft_op op)
{
	return !op_is_bitwise(op) || !ref_tolerance(type);
}

bool ref_rooted(enum weft_coll coll)
{
	return coll == WEFT_COLL_BROADCAST || coll == WEFT_COLL_REDUCE ||
	       coll == WEFT_COLL_GATHER || coll == WEFT_COLL_SCATTER ||
	       coll == WEFT_COLL_GATHERV || coll == WEFT_COLL_SCATTERV;
}

bool ref_vector(enum weft_coll coll)
{
	return coll == WEFT_COLL_ALLGATHERV || coll == WEFT_COLL_REDUCE_SCATTERV ||
	       coll == WEFT_COLL_ALLTOALLV || coll == WEFT_COLL_GATHERV ||
	       coll == WEFT_COLL_SCATTERV || coll == WEFT_COLL_ALLTOALLV_DYNAMIC;
}

/* Each pair of ranks has a length of its own as well. */
bool ref_apart(enum weft_coll coll)
{
	return coll == WEFT_COLL_ALLTOALLV || coll == WEFT_COLL_ALLTOALLV_DYNAMIC;
}

uint64_t ref_block_most(const struct ref_case *c)
{
	return (c->count * 3 + 1) / 2;
}

/* Elements of a block from one rank to another; by the latter alone where all share. */
static uint64_t ref_block(const struct ref_case *c, int32_t from, int32_t to)
{
	const uint32_t k = (uint32_t)to * 2 + c->salt +
			   (ref_apart(c->coll) ? (uint32_t)from * 5 : 0);

	if (!ref_vector(c->coll))
		return c->count;
	return k % 4 == 3 ? 0 : (c->count * (1 + k % 3) + 1) / 2;
}

static struct ref_blocks ref_one(uint64_t count)
{
	return (struct ref_blocks){.n = 1, .count = {count}, .span = count};
}

/* `sends`: block i is for rank i, else it comes from it. */
static struct ref_blocks ref_all(const struct ref_case *c, int32_t rank, int32_t size,
				 bool sends)
{
	struct ref_blocks b = {.n = size};

	b.gaps = ref_vector(c->coll) && c->salt % 2;
	for (int32_t i = 0; i < size; i++) {
		b.count[i] = !ref_apart(c->coll) ? ref_block(c, 0, i)
			     : sends		 ? ref_block(c, rank, i)
						 : ref_block(c, i, rank);
		b.at[i] = b.span + (b.gaps ? (uint64_t)(i + rank) % 3 : 0);
		if (c->coll == WEFT_COLL_ALLTOALLV_DYNAMIC && !sends)
			b.at[i] = (uint64_t)i * ref_block_most(c);
		b.span = b.at[i] + b.count[i];
	}
	if (c->coll == WEFT_COLL_ALLTOALLV_DYNAMIC && !sends)
		b.span = (uint64_t)size * ref_block_most(c);
	return b;
}

struct ref_blocks ref_src(const struct ref_case *c, int32_t rank, int32_t size)
{
	const struct ref_blocks none = {.n = 0};

	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return none;
	case WEFT_COLL_BROADCAST:
		return rank == c->root ? ref_one(c->count) : none;
	case WEFT_COLL_SCATTER:
	case WEFT_COLL_SCATTERV:
		return rank == c->root ? ref_all(c, rank, size, true) : none;
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_REDUCE_SCATTERV:
	case WEFT_COLL_ALLTOALL:
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLV_DYNAMIC:
		return ref_all(c, rank, size, true);
	default:
		return ref_one(ref_block(c, 0, rank));
	}
}

struct ref_blocks ref_dst(const struct ref_case *c, int32_t rank, int32_t size)
{
	const struct ref_blocks none = {.n = 0};

	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return none;
	case WEFT_COLL_REDUCE:
		return rank == c->root ? ref_one(c->count) : none;
	case WEFT_COLL_GATHER:
	case WEFT_COLL_GATHERV:
		return rank == c->root ? ref_all(c, rank, size, false) : none;
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLGATHERV:
	case WEFT_COLL_ALLTOALL:
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLV_DYNAMIC:
		return ref_all(c, rank, size, false);
	default:
		return ref_one(ref_block(c, 0, rank));
	}
}

static uint32_t ref_mix(uint32_t a, uint64_t i, uint32_t salt)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)a << 32 ^ salt;

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 33);
}

/* Element i of the block of rank's source that is for `to`, 0 where it has one block. */
static double ref_value(const struct ref_case *c, int32_t rank, int32_t to, uint64_t i)
{
	const uint32_t x = ref_mix((uint32_t)(rank * REF_RANKS_MAX + to), i, c->salt);

	const bool is_signed = c->type != WEFT_UINT8 && c->type != WEFT_UINT16 &&
			       c->type != WEFT_UINT32 && c->type != WEFT_UINT64;
	const bool fp8 = c->type == WEFT_FP8_E4M3 || c->type == WEFT_FP8_E5M2;

	/* Sums of at most 8, which fp8 has exactly. */
	if (ref_reduces(c->coll) && fp8 && (c->op == WEFT_SUM || c->op == WEFT_AVG))
		return rank < 8 ? (double)(x % 3) - 1 : 0;
	if (ref_reduces(c->coll) && op_is_bitwise(c->op))
		return (double)(x % 128) - (is_signed ? 64 : 0);
	/* A byte has no room for products of many. */
	if (ref_reduces(c->coll) && c->op == WEFT_PROD && weft_type_size(c->type) == 1)
		return x % 8 == 0 && is_signed ? -1.0 : 1.0;
	if (ref_reduces(c->coll) && c->op == WEFT_PROD)
		return x % 8 == 0 && is_signed ? -2.0 : 1.0 + x % 2;
	return (double)(x % 15) - (is_signed ? 7 : 0);
}

void ref_fill(const struct ref_case *c, int32_t rank, int32_t size, void *buf)
{
	const struct ref_blocks b = ref_src(c, rank, size);

	for (int32_t k = 0; k < b.n; k++) {
		for (uint64_t i = 0; i < b.count[k]; i++)
			ref_set(c->type, buf, b.at[k] + i, ref_value(c, rank, k, i));
	}
}

static double ref_reduced(const struct ref_case *c, int32_t to, int32_t size, uint64_t i)
{
	double value = ref_value(c, 0, to, i);

	for (int32_t r = 1; r < size; r++) {
		const double next = ref_value(c, r, to, i);

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
		case WEFT_BAND:
			value = (double)((int64_t)value & (int64_t)next);
			break;
		case WEFT_BOR:
			value = (double)((int64_t)value | (int64_t)next);
			break;
		case WEFT_BXOR:
			value = (double)((int64_t)value ^ (int64_t)next);
			break;
		default:
			value += next;
			break;
		}
	}
	if (c->op == WEFT_AVG) {
		value /= size;
		if (!ref_tolerance(c->type))
			value = trunc(value);
	}
	return value;
}

/* Element i of block k of rank's destination. */
static double ref_result(const struct ref_case *c, int32_t rank, int32_t size, int32_t k,
			 uint64_t i)
{
	switch (c->coll) {
	case WEFT_COLL_BROADCAST:
		return ref_value(c, c->root, 0, i);
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLGATHERV:
	case WEFT_COLL_GATHER:
	case WEFT_COLL_GATHERV:
		return ref_value(c, k, 0, i);
	case WEFT_COLL_ALLTOALL:
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLV_DYNAMIC:
		return ref_value(c, k, rank, i);
	case WEFT_COLL_SCATTER:
	case WEFT_COLL_SCATTERV:
		return ref_value(c, c->root, rank, i);
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_REDUCE_SCATTERV:
		return ref_reduced(c, rank, size, i);
	default:
		return ref_reduced(c, 0, size, i);
	}
}

int64_t ref_check(const struct ref_case *c, int32_t rank, int32_t size, const void *dst)
{
	const struct ref_blocks b = ref_dst(c, rank, size);
	const bool average = ref_reduces(c->coll) && c->op == WEFT_AVG;

	for (int32_t k = 0; k < b.n; k++) {
		for (uint64_t i = 0; i < b.count[k]; i++) {
			const double want = ref_result(c, rank, size, k, i),
				     got = ref_get(c->type, dst, b.at[k] + i);
			const double slack =
				average ? fabs(want) * ref_tolerance(c->type) : 0;

			if (!(fabs(got - want) <= slack))
				return (int64_t)(b.at[k] + i);
		}
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
