/* SPDX-License-Identifier: BSD-2-Clause */
/* See perf_data.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/perf_data.h"

/* ---- encodings -------------------------------------------------------------------- */

/* Stored bits of mantissa and the exponent's bias of floats of 8 and 16 bits. */
struct small_format {
	int mant, bias;
};

static const struct small_format small_table[WEFT_TYPE_COUNT] = {
	[WEFT_FP16] = {10, 15},
	[WEFT_BF16] = {7, 127},
	[WEFT_FP8_E4M3] = {3, 7},
	[WEFT_FP8_E5M2] = {2, 15},
};

/* An integer of at most 9 bits in such a format; low bits without a place are left out,
 * which keeps the order. */
static uint16_t small_float(unsigned value, const struct small_format *f)
{
	int exp = 0;

	if (value == 0)
		return 0;
	while (value >> (exp + 1))
		exp++;
	value = exp > f->mant ? value >> (exp - f->mant) : value << (f->mant - exp);
	return (uint16_t)((unsigned)(exp + f->bias) << f->mant |
			  (value & ((1u << f->mant) - 1)));
}

static void encode(enum weft_type type, unsigned value, uint8_t out[8])
{
	uint16_t half = small_float(value, &small_table[type]);
	float f = (float)value;
	double d = value;
	uint8_t b1 = (uint8_t)(small_table[type].mant ? half : value);
	uint16_t b2 = (uint16_t)value;
	uint32_t b4 = value;
	uint64_t b8 = value;

	memset(out, 0, 8);
	switch (type) {
	case WEFT_FP16:
	case WEFT_BF16:
		memcpy(out, &half, sizeof(half));
		break;
	case WEFT_FP32:
		memcpy(out, &f, sizeof(f));
		break;
	case WEFT_FP64:
		memcpy(out, &d, sizeof(d));
		break;
	default:
		switch (weft_type_size(type)) {
		case 1:
			memcpy(out, &b1, sizeof(b1));
			break;
		case 2:
			memcpy(out, &b2, sizeof(b2));
			break;
		case 4:
			memcpy(out, &b4, sizeof(b4));
			break;
		default:
			memcpy(out, &b8, sizeof(b8));
			break;
		}
		break;
	}
}

/* The largest integer up to which sums are exact, and below the poison in one byte. */
static unsigned exact_limit(const struct data *d)
{
	if (d->type == WEFT_FP8_E4M3)
		return 16;
	if (d->type == WEFT_FP8_E5M2)
		return 8;
	return d->elem == 1 ? 127 : DATA_VALUES - 1;
}

void data_init(struct data *d, enum weft_type type, enum weft_op op, int32_t ranks)
{
	memset(d, 0, sizeof(*d));
	d->type = type;
	d->op = op;
	d->ranks = ranks;
	d->elem = weft_type_size(type);
	for (unsigned v = 0; v < DATA_VALUES; v++)
		encode(type, v, d->code[v]);
}

/* ---- values ----------------------------------------------------------------------- */

static uint32_t mix(uint32_t a, uint32_t b, uint64_t round)
{
	uint64_t x = ((uint64_t)a << 32 | b) + round * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 29) * 0x94d049bb133111ebu;
	return (uint32_t)(x >> 32);
}

/* Which rank contributes something of its own at this position. */
static int32_t owner(const struct data *d, uint32_t i)
{
	return (int32_t)(i % (uint32_t)d->ranks);
}

/* Sums: every rank contributes at every position, unless there are so many ranks that
 * only one can without the sum becoming inexact. */
static unsigned sum_operand(const struct data *d, int32_t rank, uint32_t i,
			    uint64_t round)
{
	unsigned share = exact_limit(d) / (unsigned)d->ranks;

	if (share >= 1)
		return mix((uint32_t)rank, i, round) % (share + 1);
	return rank == owner(d, i) ? mix((uint32_t)rank, i, round) % 101 : 0;
}

static unsigned sum_result(const struct data *d, uint32_t i, uint64_t round)
{
	unsigned sum = 0;

	if (exact_limit(d) / (unsigned)d->ranks == 0)
		return sum_operand(d, owner(d, i), i, round);
	for (int32_t r = 0; r < d->ranks; r++)
		sum += sum_operand(d, r, i, round);
	return sum;
}

/* Averages: `mean` at every rank, except that two neighbours are as much above as below.
 */
static unsigned avg_result(const struct data *d, uint32_t i, uint64_t round)
{
	return mix(1, i, round) % (exact_limit(d) / (unsigned)d->ranks + 1);
}

static unsigned avg_operand(const struct data *d, int32_t rank, uint32_t i,
			    uint64_t round)
{
	unsigned mean = avg_result(d, i, round), off = mix(2, i, round) % (mean + 1);

	if (d->ranks == 1)
		return mean;
	if (rank == owner(d, i))
		return mean + off;
	return rank == owner(d, i + 1) ? mean - off : mean;
}

/* Products: one rank 1 to 7, its neighbour 2, the others 1. */
static unsigned prod_operand(const struct data *d, int32_t rank, uint32_t i,
			     uint64_t round)
{
	if (rank == owner(d, i))
		return mix(3, i, round) % 7 + 1;
	return rank == owner(d, i + 1) ? 2 : 1;
}

static unsigned prod_result(const struct data *d, uint32_t i, uint64_t round)
{
	return prod_operand(d, owner(d, i), i, round) * (d->ranks > 1 ? 2 : 1);
}

static unsigned extreme_result(const struct data *d, uint32_t i, uint64_t round)
{
	unsigned best = mix(0, i, round) % 101;

	for (int32_t r = 1; r < d->ranks; r++) {
		unsigned v = mix((uint32_t)r, i, round) % 101;

		if (d->op == WEFT_MIN ? v < best : v > best)
			best = v;
	}
	return best;
}

/* Bits: of 7, so that no byte is the poison. */
static unsigned bits_operand(int32_t rank, uint32_t i, uint64_t round)
{
	return mix((uint32_t)rank, i, round) % 128;
}

static unsigned bits_result(const struct data *d, uint32_t i, uint64_t round)
{
	unsigned bits = bits_operand(0, i, round);

	for (int32_t r = 1; r < d->ranks; r++) {
		const unsigned v = bits_operand(r, i, round);

		bits = d->op == WEFT_BAND  ? bits & v
		       : d->op == WEFT_BOR ? bits | v
					   : bits ^ v;
	}
	return bits;
}

static unsigned value_at(const struct data *d, enum data_kind kind, int32_t rank,
			 uint32_t i, uint64_t round)
{
	bool result = kind == DATA_RESULT;

	if (kind == DATA_OF_RANK)
		return mix((uint32_t)rank, i, round) % 101;
	switch (d->op) {
	case WEFT_SUM:
		return result ? sum_result(d, i, round) : sum_operand(d, rank, i, round);
	case WEFT_AVG:
		return result ? avg_result(d, i, round) : avg_operand(d, rank, i, round);
	case WEFT_PROD:
		return result ? prod_result(d, i, round)
			      : prod_operand(d, rank, i, round);
	case WEFT_BAND:
	case WEFT_BOR:
	case WEFT_BXOR:
		return result ? bits_result(d, i, round) : bits_operand(rank, i, round);
	default:
		return result ? extreme_result(d, i, round)
			      : mix((uint32_t)rank, i, round) % 101;
	}
}

/* ---- buffers ---------------------------------------------------------------------- */

static const uint8_t *code_at(const struct data *d, enum data_kind kind, int32_t rank,
			      uint64_t element, uint64_t round)
{
	return d->code[value_at(d, kind, rank, (uint32_t)(element % DATA_PERIOD), round)];
}

static uint64_t block_make(struct data *d, const struct data_view *v, enum data_kind kind,
			   int32_t rank, uint64_t round)
{
	uint64_t n = v->count < DATA_PERIOD ? v->count : DATA_PERIOD;

	for (uint64_t i = 0; i < n; i++)
		memcpy(d->block + i * d->elem, code_at(d, kind, rank, i, round), d->elem);
	return n;
}

/* Spread evenly, first and last element included. */
static uint64_t sample_at(const struct data_view *v, int k)
{
	return v->count <= 1 ? 0
			     : (v->count - 1) / (DATA_SAMPLES - 1) * (uint64_t)k +
				       (v->count - 1) % (DATA_SAMPLES - 1) * (uint64_t)k /
					       (DATA_SAMPLES - 1);
}

void data_fill(struct data *d, const struct data_view *v, enum data_kind kind,
	       int32_t rank, uint64_t round)
{
	uint8_t *p = v->buf;
	uint64_t n;

	if (v->count == 0)
		return;
	for (int k = 0; v->sampled && k < DATA_SAMPLES; k++) {
		uint64_t at = sample_at(v, k);

		memcpy(p + at * d->elem, code_at(d, kind, rank, at, round), d->elem);
	}
	if (v->sampled)
		return;
	n = block_make(d, v, kind, rank, round);
	for (uint64_t at = 0; at < v->count; at += n) {
		if (n > v->count - at)
			n = v->count - at;
		memcpy(p + at * d->elem, d->block, n * d->elem);
	}
}

void data_poison(struct data *d, const struct data_view *v)
{
	uint8_t *p = v->buf;

	if (v->count == 0)
		return;
	if (!v->sampled)
		memset(p, DATA_POISON, v->count * d->elem);
	for (int k = 0; v->sampled && k < DATA_SAMPLES; k++)
		memset(p + sample_at(v, k) * d->elem, DATA_POISON, d->elem);
}

bool data_check(struct data *d, const struct data_view *v, enum data_kind kind,
		int32_t rank, uint64_t round, uint64_t *at)
{
	const uint8_t *p = v->buf;
	uint64_t n;

	if (v->count == 0)
		return true;
	for (int k = 0; v->sampled && k < DATA_SAMPLES; k++) {
		*at = sample_at(v, k);
		if (memcmp(p + *at * d->elem, code_at(d, kind, rank, *at, round),
			   d->elem) != 0)
			return false;
	}
	if (v->sampled)
		return true;
	n = block_make(d, v, kind, rank, round);
	for (uint64_t begin = 0; begin < v->count; begin += n) {
		if (n > v->count - begin)
			n = v->count - begin;
		if (memcmp(p + begin * d->elem, d->block, n * d->elem) == 0)
			continue;
		for (*at = begin;
		     memcmp(p + *at * d->elem, d->block + (*at - begin) * d->elem,
			    d->elem) == 0;)
			++*at;
		return false;
	}
	return true;
}

static void print_hex(char *text, size_t len, const uint8_t *p, size_t elem)
{
	uint64_t bits = 0;

	memcpy(&bits, p, elem);
	snprintf(text, len, "0x%0*llx", (int)(2 * elem), (unsigned long long)bits);
}

void data_explain(struct data *d, const struct data_view *v, enum data_kind kind,
		  int32_t rank, uint64_t round, uint64_t at, char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)v->buf + at * d->elem;
	char got[24], want[24];

	print_hex(got, sizeof(got), p, d->elem);
	print_hex(want, sizeof(want), code_at(d, kind, rank, at, round), d->elem);
	snprintf(text, len, "%s, must be %s", got, want);
}
