/* SPDX-License-Identifier: BSD-2-Clause */
/* See check.h. */
#include "gpu/cuda/kernels/tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GUARD 64 /* bytes around a buffer that must stay as they are */

/* What a floating type is: bits of exponent and mantissa. e4m3 has no infinity. */
struct format {
	int bits, exp, mant;
	bool finite; /* all ones is NaN, and there is no infinity */
};

static const struct format formats[GPU_TYPE_COUNT] = {
	[GPU_FP16] = {16, 5, 10, false},  [GPU_BF16] = {16, 8, 7, false},
	[GPU_FP8_E4M3] = {8, 4, 3, true}, [GPU_FP8_E5M2] = {8, 5, 2, false},
	[GPU_FP32] = {32, 8, 23, false},  [GPU_FP64] = {64, 11, 52, false},
};

static bool floating(enum gpu_type type)
{
	return formats[type].bits != 0;
}

uint64_t check_random(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t below(struct check_env *env, uint64_t n)
{
	return check_random(&env->rng) % n;
}

static uint64_t bits_of(enum gpu_type type, const void *element)
{
	uint64_t u = 0;

	memcpy(&u, element, launch_type_size(type));
	return u;
}

double check_value(enum gpu_type type, const void *element)
{
	const struct format *f = &formats[type];
	const uint64_t u = bits_of(type, element);
	const uint64_t exp = u >> f->mant & ((1ull << f->exp) - 1);
	const uint64_t frac = u & ((1ull << f->mant) - 1);
	const int bias = (1 << (f->exp - 1)) - 1;
	const double sign = u >> (f->bits - 1) & 1 ? -1 : 1;
	const bool top = exp == (1ull << f->exp) - 1;

	if (top && f->finite && frac == (1ull << f->mant) - 1)
		return NAN;
	if (top && !f->finite)
		return frac ? NAN : sign * INFINITY;
	if (exp == 0)
		return sign * ldexp((double)frac, 1 - bias - f->mant);
	return sign * ldexp((double)(frac | 1ull << f->mant), (int)exp - bias - f->mant);
}

static int64_t int_value(enum gpu_type type, const void *element)
{
	const uint64_t u = bits_of(type, element);

	switch (type) {
	case GPU_INT8:
		return (int8_t)u;
	case GPU_INT16:
		return (int16_t)u;
	case GPU_INT32:
		return (int32_t)u;
	default:
		return (int64_t)u;
	}
}

static bool is_signed(enum gpu_type type)
{
	return type == GPU_INT8 || type == GPU_INT16 || type == GPU_INT32 ||
	       type == GPU_INT64;
}

/* The largest number, and the unit of the last place at a number. */
static double largest(enum gpu_type type)
{
	const struct format *f = &formats[type];
	const int bias = (1 << (f->exp - 1)) - 1;
	const int top = (1 << f->exp) - 1 - bias - (f->finite ? 0 : 1);
	const double frac = f->finite ? 2 - ldexp(2, -f->mant) : 2 - ldexp(1, -f->mant);

	return ldexp(frac, top);
}

static double unit(enum gpu_type type, double at)
{
	const struct format *f = &formats[type];
	const int least = 2 - (1 << (f->exp - 1)); /* exponent of the smallest normal */
	int exp;

	frexp(at, &exp);
	exp = exp - 1 < least || at == 0 ? least : exp - 1;
	return ldexp(1, exp - f->mant);
}

/* ---- inputs ---- */

static void fill_element(struct check_env *env, enum gpu_type type, char *p)
{
	static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
	const struct format *f = &formats[type];
	uint64_t u = check_random(&env->rng);

	if (floating(type) && u % 64 >= 5) { /* 1/4 to 2 */
		const int bias = (1 << (f->exp - 1)) - 1;
		const uint64_t exp = (uint64_t)bias - (u >> 8 & 1) - (u >> 9 & 1);

		u = (u >> 12 & ((1ull << f->mant) - 1)) | exp << f->mant |
		    (u >> 10 & 1) << (f->bits - 1);
	} else if (floating(type)) {
		const double d = special[u % 64];
		const uint64_t top = ((1ull << f->exp) - 1) << f->mant;

		u = isnan(d)   ? top | ((1ull << f->mant) - 1)
		    : isinf(d) ? top /* e4m3: 256 */
			       : 0;
		u |= (uint64_t)(signbit(d) != 0) << (f->bits - 1);
	}
	memcpy(p, &u, launch_type_size(type));
}

/* ---- what must come out ---- */

static bool check_int(const struct gpu_reduce *r, uint64_t i, const void *const *src,
		      const void *got, char *why)
{
	const size_t size = launch_type_size(r->type);
	const uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
	uint64_t want = bits_of(r->type, (const char *)src[0] + i * size);

	for (uint32_t s = 1; s < r->sources; s++) {
		const char *e = (const char *)src[s] + i * size;
		const uint64_t v = bits_of(r->type, e);
		const int64_t a = int_value(r->type, &want), b = int_value(r->type, e);
		const bool less = is_signed(r->type) ? b < a : v < want;
		const bool more = is_signed(r->type) ? b > a : v > want;

		want = (r->op == GPU_PROD   ? want * v
			: r->op == GPU_MIN  ? (less ? v : want)
			: r->op == GPU_MAX  ? (more ? v : want)
			: r->op == GPU_BAND ? want & v
			: r->op == GPU_BOR  ? want | v
			: r->op == GPU_BXOR ? want ^ v
					    : want + v) &
		       mask;
	}
	if (r->op == GPU_AVG && is_signed(r->type))
		want = (uint64_t)((__int128)int_value(r->type, &want) /
				  (__int128)r->divisor) &
		       mask;
	else if (r->op == GPU_AVG)
		want /= r->divisor;
	if (bits_of(r->type, got) == want)
		return true;
	snprintf(why, CHECK_WHY, "element %llu: got %#llx, want %#llx",
		 (unsigned long long)i, (unsigned long long)bits_of(r->type, got),
		 (unsigned long long)want);
	return false;
}

/* The value, and how far off the kernel's arithmetic may be before the result is rounded.
 */
static long double float_value(const struct gpu_reduce *r, uint64_t i,
			       const void *const *src, long double *slack)
{
	const size_t size = launch_type_size(r->type);
	const long double eps =
		r->type == GPU_FP64 && r->out == GPU_FP64 ? 0x1p-52L : 0x1p-23L;
	long double c = check_value(r->type, (const char *)src[0] + i * size);
	long double mag = fabsl(c);

	for (uint32_t s = 1; s < r->sources; s++) {
		const long double v =
			check_value(r->type, (const char *)src[s] + i * size);

		if (r->op == GPU_MIN || r->op == GPU_MAX) {
			if (isnan(v) || isnan(c))
				c = NAN;
			else if (v == c && !signbit(v) != !signbit(c))
				c = r->op == GPU_MIN ? -0.0L : 0.0L;
			else if (r->op == GPU_MIN ? v < c : v > c)
				c = v;
			mag = fabsl(c);
		} else if (r->op == GPU_PROD) {
			c *= v;
			mag = fabsl(c);
		} else {
			c += v;
			mag += fabsl(v);
		}
	}
	c = r->op == GPU_AVG ? c / r->divisor : c;
	mag = r->op == GPU_AVG ? mag / r->divisor : mag;
	c *= r->scale;
	*slack = (r->op == GPU_MIN || r->op == GPU_MAX) && r->scale == 1 &&
				 r->out == r->type
			 ? 0
			 : fabsl(mag * r->scale) * eps * (r->sources + 2);
	return c;
}

static bool check_float(const struct gpu_reduce *r, uint64_t i, const void *const *src,
			const void *got, char *why)
{
	long double slack;
	const long double want = float_value(r, i, src, &slack);
	const double have = check_value(r->out, got), max = largest(r->out);
	const long double over = max + unit(r->out, max) / 2;
	const long double room = unit(r->out, (double)want) * 0.5L + slack;
	bool good;

	if (isnan(want))
		good = isnan(have);
	else if (isinf(want) || fabsl(want) > over + slack)
		good = formats[r->out].finite ? isnan(have)
					      : isinf(have) && (have > 0) == (want > 0);
	else if (fabsl(want) >= over - slack)
		return true; /* either */
	else
		good = fabsl(have - want) <= room &&
		       (have != 0 || want != 0 || !signbit(have) == !signbit(want));
	if (!good)
		snprintf(why, CHECK_WHY,
			 "element %llu: got %.17g, want %.17Lg within %.3Lg",
			 (unsigned long long)i, have, want, room);
	return good;
}

/* ---- one call ---- */

struct buffers {
	char *dst, *dst2, *src[GPU_SOURCES];
	uint64_t *word;
	uint32_t *arrived;
	char *next; /* of the arena */
};

/* Room for len bytes at an address that is a multiple of align and of nothing larger, as
 * far as chance has it. */
static char *place(struct check_env *env, struct buffers *b, uint64_t len, uint64_t align)
{
	char *p = b->next + GUARD;

	p += (0 - (uintptr_t)p) % 16;
	if (below(env, 3))
		p += below(env, 16 / align) * align;
	b->next = p + len;
	return p;
}

static void describe(const struct gpu_reduce *r, const struct launch *l, char *why)
{
	const size_t used = strlen(why);
	size_t at = used;

	at += (size_t)snprintf(
		why + at, CHECK_WHY - at,
		" (%u sources, %llu elements into type %d, %u x %u threads, "
		"divisor %llu, scale %g; dst +%u",
		r->sources, (unsigned long long)r->count, r->out, l->blocks, l->threads,
		(unsigned long long)r->divisor, r->scale,
		(unsigned)((uintptr_t)r->dst % 16));
	for (uint32_t s = 0; s < r->sources && at < CHECK_WHY; s++)
		at += (size_t)snprintf(why + at, CHECK_WHY - at, " src +%u",
				       (unsigned)((uintptr_t)r->src[s] % 16));
	if (at < CHECK_WHY)
		snprintf(why + at, CHECK_WHY - at, ")");
}

static void choose(struct check_env *env, enum gpu_type type, enum gpu_op op,
		   struct gpu_reduce *r, struct buffers *b)
{
	static const enum gpu_type outs[] = {GPU_FP16,	   GPU_BF16, GPU_FP8_E4M3,
					     GPU_FP8_E5M2, GPU_FP32, GPU_FP64};
	static const uint32_t most[] = {40, 300, 3000, 12000};
	const size_t size = launch_type_size(type);
	size_t out;

	*r = (struct gpu_reduce){.type = type, .op = op, .out = type, .scale = 1};
	r->sources = (uint32_t)(1 + below(env, GPU_SOURCES));
	if (below(env, 2))
		r->sources = 2;
	r->count = 1 + below(env, most[below(env, 4)]);
	if (floating(type) && below(env, 4) == 0)
		r->out = outs[below(env, 6)];
	if (floating(type) && below(env, 4) == 0)
		r->scale = 0.75;
	r->divisor = op == GPU_AVG ? 1 + below(env, 9) : 0;
	r->blocks = (uint32_t)below(env, 5);
	out = launch_type_size(r->out);
	b->word = (uint64_t *)(void *)(b->next += (0 - (uintptr_t)b->next) % 8);
	b->arrived = (uint32_t *)(b->word + 1);
	*b->word = 0;
	*b->arrived = 0;
	b->next += 16;
	for (uint32_t s = 0; s < r->sources; s++) {
		r->src[s] = b->src[s] = place(env, b, r->count * size, size);
		for (uint64_t i = 0; i < r->count; i++)
			fill_element(env, type, b->src[s] + i * size);
	}
	b->dst = place(env, b, r->count * out, out);
	b->dst2 = below(env, 3) ? NULL : place(env, b, r->count * out, out);
	if (r->out == type && below(env, 4) == 0) /* in place */
		b->dst = b->src[below(env, r->sources)];
	r->dst = b->dst;
	r->dst2 = b->dst2;
	b->next += GUARD;
}

static char before[1 << 20]; /* the arena as it was: sources, and what must stay */

/* Which bytes the call may change. */
static bool outside(const struct gpu_reduce *r, const struct buffers *b, const char *p)
{
	const size_t len = r->count * launch_type_size(r->out);

	if (p >= b->dst && p < b->dst + len)
		return false;
	if (b->dst2 && p >= b->dst2 && p < b->dst2 + len)
		return false;
	return p < (char *)b->word || p >= (char *)b->word + 8;
}

static bool check_results(struct check_env *env, const struct gpu_reduce *r,
			  const struct buffers *b, char *why)
{
	const size_t out = launch_type_size(r->out), len = (size_t)(b->next - env->arena);
	const void *src[GPU_SOURCES];

	for (uint32_t s = 0; s < r->sources; s++)
		src[s] = before + (b->src[s] - env->arena);
	for (uint64_t i = 0; i < r->count; i++) {
		const char *got = b->dst + i * out;

		if (floating(r->type) ? !check_float(r, i, src, got, why)
				      : !check_int(r, i, src, got, why))
			return false;
		if (b->dst2 && memcmp(got, b->dst2 + i * out, out) != 0) {
			snprintf(why, CHECK_WHY, "element %llu differs in dst2",
				 (unsigned long long)i);
			return false;
		}
	}
	for (size_t i = 0; i < len; i++) {
		if (env->arena[i] != before[i] && outside(r, b, env->arena + i)) {
			snprintf(why, CHECK_WHY, "a byte %td from dst was changed",
				 env->arena + i - b->dst);
			return false;
		}
	}
	if (*b->word != 77 || *b->arrived != 0) {
		snprintf(why, CHECK_WHY, "its word is %llu, want 77; %u arrived, want 0",
			 (unsigned long long)*b->word, *b->arrived);
		return false;
	}
	return true;
}

/* Everything but the buffers, up or down. */
static void fences(struct check_env *env, const struct gpu_reduce *r,
		   const struct buffers *b)
{
	const size_t size = launch_type_size(r->type), out = launch_type_size(r->out);

	if (!env->fence)
		return;
	env->fence(env, true, env->arena, env->len);
	env->fence(env, false, (char *)b->word, 16);
	for (uint32_t s = 0; s < r->sources; s++)
		env->fence(env, false, b->src[s], r->count * size);
	env->fence(env, false, b->dst, r->count * out);
	if (b->dst2)
		env->fence(env, false, b->dst2, r->count * out);
}

bool check_reduce(struct check_env *env, enum gpu_type type, enum gpu_op op, char *why)
{
	struct buffers b = {.next = env->arena};
	struct gpu_reduce r;
	struct kern_signal signal;
	struct launch l;
	bool good;

	choose(env, type, op, &r, &b);
	if ((size_t)(b.next - env->arena) > env->len ||
	    (size_t)(b.next - env->arena) > sizeof(before)) {
		snprintf(why, CHECK_WHY, "the test's arena is too small");
		return false;
	}
	signal = (struct kern_signal){.word = b.word, .value = 77, .arrived = b.arrived};
	if (launch_reduce(&l, &r, env->processors, &signal, why) < 0)
		return false;
	if (b.dst2)
		memset(b.dst2, 0xa5, r.count * launch_type_size(r.out));
	memcpy(before, env->arena, (size_t)(b.next - env->arena));
	fences(env, &r, &b);
	good = env->run(env, &l, sizeof(l.args.reduce));
	if (env->fence)
		env->fence(env, false, env->arena, env->len);
	if (!good) {
		snprintf(why, CHECK_WHY, "%s did not run", l.function);
		return false;
	}
	good = check_results(env, &r, &b, why);
	if (!good)
		describe(&r, &l, why);
	return good;
}

bool check_copy(struct check_env *env, char *why)
{
	const uint64_t len = below(env, below(env, 2) ? 100 : 40000);
	struct buffers b = {.next = env->arena + 16};
	uint64_t *word = (uint64_t *)(void *)env->arena;
	char *src = place(env, &b, len, 1), *dst = place(env, &b, len, 1);
	const struct kern_signal signal = {
		.word = word, .value = 5, .arrived = (uint32_t *)(word + 1), .add = 1};
	struct launch l;
	bool good;

	b.next += GUARD;
	word[0] = 3;
	word[1] = 0;
	for (uint64_t i = 0; i < len; i++)
		src[i] = (char)check_random(&env->rng);
	memcpy(before, env->arena, (size_t)(b.next - env->arena));
	launch_copy(&l, dst, src, len, env->processors, (uint32_t)below(env, 4), &signal);
	if (env->fence) {
		env->fence(env, true, env->arena, env->len);
		env->fence(env, false, env->arena, 16);
		env->fence(env, false, src, len);
		env->fence(env, false, dst, len);
	}
	good = env->run(env, &l, sizeof(l.args.copy));
	if (env->fence)
		env->fence(env, false, env->arena, env->len);
	memcpy(before + (dst - env->arena), src, len);
	good = good && word[0] == 8 && word[1] == 0 &&
	       memcmp(before + 16, env->arena + 16, (size_t)(b.next - env->arena - 16)) ==
		       0;
	if (!good)
		snprintf(why, CHECK_WHY,
			 "copy of %llu bytes from +%u to +%u, %u x %u threads; word %llu",
			 (unsigned long long)len, (unsigned)((uintptr_t)src % 16),
			 (unsigned)((uintptr_t)dst % 16), l.blocks, l.threads,
			 (unsigned long long)word[0]);
	return good;
}
