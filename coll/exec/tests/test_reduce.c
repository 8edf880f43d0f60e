/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reductions against slow references of higher precision, for each instruction set
 * that this CPU has: every type and operation, odd counts, misaligned starts, dst equal
 * to a or b, bytes around dst untouched, every bit pattern of fp16 and bf16, every pair
 * of fp8.
 */
#include "config.h"

#include <math.h>

#include "coll/exec/reduce.h"
#include "coll/exec/reduce_kernel.h"
#include "util/tap.h"

#if defined(__SIZEOF_FLOAT128__)
typedef __float128 wide_float;
#else
typedef long double wide_float;
#endif

enum { MAX_COUNT = 1031, GUARD = 64, BUF = GUARD * 3 + MAX_COUNT * 8 };

struct value {
	union {
		uint64_t bits;
		int8_t i8;
		uint8_t u8;
		int16_t i16;
		uint16_t u16;
		int32_t i32;
		uint32_t u32;
		int64_t i64;
		uint64_t u64;
		float f32;
		double f64;
	};
};

static uint64_t rng_state = 0x9e3779b97f4a7c15u;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static bool is_float(enum weft_type t)
{
	return t == WEFT_FP16 || t == WEFT_BF16 || t == WEFT_FP32 || t == WEFT_FP64 ||
	       t == WEFT_FP8_E4M3 || t == WEFT_FP8_E5M2;
}

static bool is_bitwise(enum weft_op op)
{
	return op == WEFT_BAND || op == WEFT_BOR || op == WEFT_BXOR;
}

static const enum weft_op all_ops[] = {WEFT_SUM, WEFT_PROD, WEFT_MIN, WEFT_MAX,
				       WEFT_AVG, WEFT_BAND, WEFT_BOR, WEFT_BXOR};
#define ALL_OPS (sizeof(all_ops) / sizeof(all_ops[0]))

/* ---- references ------------------------------------------------------------------- */

/* A small float by its definition; `top` is the largest exponent field. Of E4M3 that has
 * numbers as well, and only its last mantissa is a NaN. */
struct format {
	int bits, mant, bias, top;
	bool finite;
};

static const struct format *format_of(enum weft_type t)
{
	static const struct format fp16 = {16, 10, 15, 31, false},
				   bf16 = {16, 7, 127, 255, false},
				   e4m3 = {8, 3, 7, 15, true},
				   e5m2 = {8, 2, 15, 31, false};

	switch (t) {
	case WEFT_FP16:
		return &fp16;
	case WEFT_BF16:
		return &bf16;
	case WEFT_FP8_E4M3:
		return &e4m3;
	case WEFT_FP8_E5M2:
		return &e5m2;
	default:
		return NULL;
	}
}

static double small_decode(uint16_t h, const struct format *f)
{
	const int sign = 1 << (f->bits - 1);
	int exp = (h & (sign - 1)) >> f->mant;
	int frac = h & ((1 << f->mant) - 1);
	double v;

	if (exp == f->top && !f->finite)
		v = frac ? (double)NAN : (double)INFINITY;
	else if (exp == f->top && frac == (1 << f->mant) - 1)
		v = (double)NAN;
	else if (exp == 0)
		v = ldexp(frac, 1 - f->bias - f->mant);
	else
		v = ldexp((1 << f->mant) + frac, exp - f->bias - f->mant);
	return h & sign ? -v : v;
}

/* v rounded to nearest even to the values such a float can have. */
static double small_round(double v, const struct format *f)
{
	int exp, unit;
	double r;

	if (isnan(v) || v == 0)
		return v;
	if (isinf(v))
		return f->finite ? (double)NAN : v;
	frexp(v, &exp); /* |v| in [2^(exp-1), 2^exp) */
	unit = exp - 1 - f->mant;
	if (unit < 1 - f->bias - f->mant)
		unit = 1 - f->bias - f->mant;
	r = ldexp(nearbyint(ldexp(v, -unit)), unit);
	if (f->finite && fabs(r) >= ldexp((2 << f->mant) - 1, f->top - f->bias - f->mant))
		return (double)NAN;
	if (!f->finite && fabs(r) >= ldexp(1, f->top - f->bias))
		r = copysign(INFINITY, v);
	return copysign(r, v);
}

static double decode(enum weft_type t, const struct value *v)
{
	const struct format *f = format_of(t);

	if (f)
		return small_decode(f->bits == 8 ? v->u8 : v->u16, f);
	return t == WEFT_FP32 ? v->f32 : v->f64;
}

static double round_to(enum weft_type t, double v)
{
	const struct format *f = format_of(t);

	if (f)
		return small_round((float)v, f);
	return t == WEFT_FP32 ? (float)v : v;
}

static double float_min(double a, double b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return signbit(a) ? a : b;
	return a < b ? a : b;
}

/* What the result must be; divisor only for scale (op AVG). */
static double float_want(enum weft_type t, enum weft_op op, double a, double b,
			 uint64_t divisor)
{
	bool wide = t == WEFT_FP64;

	switch (op) {
	case WEFT_SUM:
		return wide ? (double)((wide_float)a + b) : round_to(t, a + b);
	case WEFT_PROD:
		return wide ? (double)((wide_float)a * b) : round_to(t, a * b);
	case WEFT_MIN:
		return float_min(a, b);
	case WEFT_MAX:
		return -float_min(-a, -b);
	default:
		return wide ? (double)((wide_float)a / (double)divisor)
			    : round_to(t, a / (double)(float)divisor);
	}
}

static __int128 int_decode(enum weft_type t, const struct value *v)
{
	switch (t) {
	case WEFT_INT8:
		return v->i8;
	case WEFT_UINT8:
		return v->u8;
	case WEFT_INT16:
		return v->i16;
	case WEFT_UINT16:
		return v->u16;
	case WEFT_INT32:
		return v->i32;
	case WEFT_UINT32:
		return v->u32;
	case WEFT_INT64:
		return v->i64;
	default:
		return v->u64;
	}
}

/* Low bits of the exact result. */
static uint64_t int_want(enum weft_op op, __int128 a, __int128 b, uint64_t divisor)
{
	switch (op) {
	case WEFT_SUM:
		return (uint64_t)(a + b);
	case WEFT_PROD:
		return (uint64_t)((unsigned __int128)a * (unsigned __int128)b);
	case WEFT_MIN:
		return (uint64_t)(a < b ? a : b);
	case WEFT_MAX:
		return (uint64_t)(a > b ? a : b);
	case WEFT_BAND:
		return (uint64_t)a & (uint64_t)b;
	case WEFT_BOR:
		return (uint64_t)a | (uint64_t)b;
	case WEFT_BXOR:
		return (uint64_t)a ^ (uint64_t)b;
	default:
		return (uint64_t)(a / (__int128)divisor);
	}
}

static bool value_good(enum weft_type t, enum weft_op op, const struct value *got,
		       const struct value *a, const struct value *b, uint64_t divisor)
{
	size_t size = weft_type_size(t);
	double want, have;

	if (!is_float(t)) {
		uint64_t bits = int_want(op, int_decode(t, a), int_decode(t, b), divisor);

		return memcmp(&got->bits, &bits, size) == 0;
	}
	want = float_want(t, op, decode(t, a), decode(t, b), divisor);
	have = decode(t, got);
	if (isnan(want))
		return isnan(have);
	return have == want && !signbit(have) == !signbit(want);
}

/* ---- runs ------------------------------------------------------------------------- */

struct bench {
	unsigned char a[BUF], b[BUF], d[BUF], a0[BUF], b0[BUF];
};

static struct value value_at(const unsigned char *p, size_t size)
{
	struct value v = {.bits = 0};

	memcpy(&v.bits, p, size);
	return v;
}

static void fill(enum weft_type t, unsigned char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)rng();
	/* Random bits of fp32 and fp64 hardly ever meet in exponent: make half of them
	 * do. */
	for (size_t i = 0; t == WEFT_FP32 && i + 4 <= bytes; i += 8)
		p[i + 3] = 0x40, p[i + 2] &= 0x7f;
	for (size_t i = 0; t == WEFT_FP64 && i + 8 <= bytes; i += 16)
		p[i + 7] = 0x40, p[i + 6] &= 0x1f;
}

static void apply(const struct reduce_kernel *k, enum weft_op op, void *d, const void *a,
		  const void *b, size_t n, uint64_t divisor)
{
	switch (op) {
	case WEFT_SUM:
		k->sum(d, a, b, n);
		break;
	case WEFT_PROD:
		k->prod(d, a, b, n);
		break;
	case WEFT_MIN:
		k->min(d, a, b, n);
		break;
	case WEFT_MAX:
		k->max(d, a, b, n);
		break;
	case WEFT_BAND:
		k->band(d, a, b, n);
		break;
	case WEFT_BOR:
		k->bor(d, a, b, n);
		break;
	case WEFT_BXOR:
		k->bxor(d, a, b, n);
		break;
	default:
		k->scale(d, a, n, divisor);
		break;
	}
}

/* mode 0: dst apart; 1: dst is a; 2: dst is b. Starts are `shift` elements into 64 bytes.
 */
static bool one_run(const struct reduce_kernel *k, enum weft_type t, enum weft_op op,
		    size_t n, size_t shift, int mode, uint64_t divisor)
{
	static struct bench s;
	size_t size = weft_type_size(t), off = GUARD + shift * size;
	size_t off_b = GUARD + (shift * 3 % 8) * size;
	size_t off_d = mode == 1   ? off
		       : mode == 2 ? off_b
				   : GUARD + (shift * 5 % 8) * size;
	unsigned char *d = mode == 1 ? s.a : mode == 2 ? s.b : s.d, *guard_of = NULL;
	static unsigned char before[BUF];

	fill(t, s.a, BUF);
	fill(t, s.b, BUF);
	fill(t, s.d, BUF);
	memcpy(s.a0, s.a, BUF);
	memcpy(s.b0, s.b, BUF);
	memcpy(before, d, BUF);
	apply(k, op, d + off_d, s.a + off, s.b + off_b, n, divisor);
	for (size_t i = 0; i < n; i++) {
		struct value a = value_at(s.a0 + off + i * size, size);
		struct value b = value_at(s.b0 + off_b + i * size, size);
		struct value got = value_at(d + off_d + i * size, size);

		if (value_good(t, op, &got, &a, &b, divisor))
			continue;
		tap_diag("%s n %zu shift %zu mode %d divisor %" PRIu64
			 ": element %zu of 0x%" PRIx64 ", 0x%" PRIx64 " is 0x%" PRIx64,
			 op == WEFT_AVG ? "scale" : weft_op_name(op), n, shift, mode,
			 divisor, i, a.bits, b.bits, got.bits);
		return false;
	}
	if (memcmp(d, before, off_d) != 0 ||
	    memcmp(d + off_d + n * size, before + off_d + n * size,
		   BUF - off_d - n * size) != 0)
		guard_of = d;
	if (guard_of || (d != s.a && memcmp(s.a, s.a0, BUF) != 0) ||
	    (d != s.b && memcmp(s.b, s.b0, BUF) != 0)) {
		tap_diag("%s n %zu shift %zu mode %d: wrote outside dst",
			 weft_op_name(op), n, shift, mode);
		return false;
	}
	return true;
}

static void check_shapes(const struct reduce_isa *isa, enum weft_type t)
{
	static const size_t counts[] = {0,  1,	2,  3,	7,  8,	 15,  16,	17,
					31, 33, 63, 64, 65, 127, 255, MAX_COUNT};
	static const uint64_t divisors[] = {1,
					    2,
					    3,
					    7,
					    64,
					    131072,
					    1u << 31,
					    UINT32_MAX,
					    (uint64_t)1 << 32,
					    ((uint64_t)1 << 32) + 1,
					    UINT64_MAX};
	bool good = true;

	for (size_t o = 0; good && o < ALL_OPS; o++) {
		if (is_bitwise(all_ops[o]) && is_float(t))
			continue;
		for (size_t c = 0; good && c < sizeof(counts) / sizeof(*counts); c++) {
			for (size_t shift = 0; good && shift < 8; shift += 1 + shift % 2)
				for (int mode = 0; good && mode < 3; mode++)
					good = one_run(&isa->kernel[t], t, all_ops[o],
						       counts[c], shift,
						       all_ops[o] == WEFT_AVG && mode == 2
							       ? 0
							       : mode,
						       divisors[(c + shift) % 11]);
		}
	}
	for (size_t i = 0; good && i < 11; i++)
		good = one_run(&isa->kernel[t], t, WEFT_AVG, MAX_COUNT, 1, 0,
			       divisors[i]);
	tap_ok(good, "%s %s: all operations, counts, alignments, in place", isa->name,
	       weft_type_name(t));
}

/* Every 16-bit pattern against partners that are special, and against random ones. */
static void check_patterns(const struct reduce_isa *isa, enum weft_type t)
{
	static const uint16_t fp16[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400,
					0x3c00, 0xbc00, 0x3555, 0x7bff, 0xfbff, 0x7c00,
					0xfc00, 0x7e00, 0x7c01, 0x1000};
	static const uint16_t bf16[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080,
					0x3f80, 0xbf80, 0x3eab, 0x7f7f, 0xff7f, 0x7f80,
					0xff80, 0x7fc0, 0x7f81, 0x2000};
	static uint16_t a[65536], b[65536], d[65536];
	static const enum weft_op ops[] = {WEFT_SUM, WEFT_PROD, WEFT_MIN, WEFT_MAX,
					   WEFT_AVG};
	int bad = 0;

	for (int i = 0; i < 65536; i++)
		a[i] = (uint16_t)i;
	for (int partner = 0; partner < 18; partner++) {
		for (int i = 0; i < 65536; i++)
			b[i] = partner >= 16	? (uint16_t)rng()
			       : t == WEFT_FP16 ? fp16[partner]
						: bf16[partner];
		for (size_t o = 0; o < 5; o++) {
			uint64_t divisor = (uint64_t)partner * 3 + 1;

			apply(&isa->kernel[t], ops[o], d, a, b, 65536, divisor);
			for (int i = 0; i < 65536; i++) {
				struct value x = value_at((void *)&a[i], 2);
				struct value y = value_at((void *)&b[i], 2);
				struct value z = value_at((void *)&d[i], 2);

				if (value_good(t, ops[o], &z, &x, &y, divisor))
					continue;
				if (bad++ == 0)
					tap_diag("%s of 0x%04x and 0x%04x is 0x%04x",
						 weft_op_name(ops[o]), a[i], b[i], d[i]);
			}
		}
	}
	tap_is_int(bad, 0, t == WEFT_FP16 ? "all fp16 patterns" : "all bf16 patterns");
}

/* Every fp8 with every other. */
static void check_bytes(const struct reduce_isa *isa, enum weft_type t)
{
	static uint8_t a[65536], b[65536], d[65536];
	int bad = 0;

	for (int i = 0; i < 65536; i++) {
		a[i] = (uint8_t)i;
		b[i] = (uint8_t)(i >> 8);
	}
	for (size_t o = 0; o < ALL_OPS; o++) {
		if (is_bitwise(all_ops[o]))
			continue;
		apply(&isa->kernel[t], all_ops[o], d, a, b, 65536, 3 + o);
		for (int i = 0; i < 65536; i++) {
			struct value x = value_at(&a[i], 1), y = value_at(&b[i], 1),
				     z = value_at(&d[i], 1);

			if (value_good(t, all_ops[o], &z, &x, &y, 3 + o))
				continue;
			if (bad++ == 0)
				tap_diag("%s of 0x%02x and 0x%02x is 0x%02x",
					 weft_op_name(all_ops[o]), a[i], b[i], d[i]);
		}
	}
	tap_ok(bad == 0, "%s %s: all pairs", isa->name, weft_type_name(t));
}

static void check_public(void)
{
	int32_t i[5] = {-7, 7, -1, INT32_MIN, INT32_MAX}, one[5] = {1, 1, 1, 1, 1}, d[5];
	int refused = 0;

	reduce_apply(WEFT_INT32, WEFT_AVG, d, i, one, 5);
	tap_ok(d[0] == -6 && d[4] == INT32_MIN, "AVG adds, and wraps");
	reduce_apply(WEFT_INT32, WEFT_MAX, d, i, one, 5);
	tap_ok(d[0] == 1 && d[1] == 7, "max");
	reduce_apply(WEFT_INT32, WEFT_PROD, d, i, i, 5);
	tap_ok(d[0] == 49 && d[3] == 0 && d[4] == 1, "product");
	reduce_apply(WEFT_INT32, WEFT_MIN, d, i, one, 5);
	tap_ok(d[0] == -7 && d[1] == 1, "min");
	reduce_scale(WEFT_INT32, d, i, 5, 2);
	tap_ok(d[0] == -3 && d[1] == 3 && d[2] == 0, "averages truncate towards zero");
	for (int t = 0; t < WEFT_TYPE_COUNT; t++)
		for (int op = 0; op < WEFT_OP_COUNT; op++)
			refused += !reduce_supported((enum weft_type)t, (enum weft_op)op);
	tap_is_int(refused, 6 * 3, "bitwise operations of floats are refused");
	tap_ok(!reduce_supported(WEFT_TYPE_COUNT, WEFT_SUM) &&
		       !reduce_supported(WEFT_FP32, WEFT_OP_COUNT) &&
		       !reduce_supported((enum weft_type) - 1, (enum weft_op) - 1),
	       "values that are no type or no operation are refused");
	for (int t = 0; t < WEFT_TYPE_COUNT; t++)
		tap_ok(!strstr(reduce_supported_text(),
			       weft_type_name((enum weft_type)t)) ==
			       !reduce_supported((enum weft_type)t, WEFT_SUM),
		       "the text of a refusal is right about %s",
		       weft_type_name((enum weft_type)t));
}

int main(void)
{
	check_public();
	for (size_t i = 0; i < reduce_isa_count; i++) {
		const struct reduce_isa *isa = &reduce_isa_table[i];

		if (!isa->usable()) {
			tap_skip(1, "this CPU has no %s", isa->name);
			continue;
		}
		for (int t = 0; t < WEFT_TYPE_COUNT; t++)
			if (reduce_supported((enum weft_type)t, WEFT_SUM))
				check_shapes(isa, (enum weft_type)t);
		check_patterns(isa, WEFT_FP16);
		check_patterns(isa, WEFT_BF16);
		check_bytes(isa, WEFT_FP8_E4M3);
		check_bytes(isa, WEFT_FP8_E5M2);
	}
	return tap_done();
}
