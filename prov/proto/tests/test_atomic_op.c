/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation on every datatype against a model that shares nothing with the table:
 * it calculates in wide integers, parts of complex numbers one by one. And threads that
 * change the same elements: what they did must add up.
 */
#include "config.h"

#include "prov/proto/atomic_op.h"

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>

#include "util/tap.h"

#define TYPES 16

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

enum class { INTEGER, REAL, COMPLEX };

static const struct type {
	const char *name;
	enum class class;
	uint32_t bytes;
	bool is_signed;
} types[TYPES] = {
	[FI_INT8] = {"int8", INTEGER, 1, true},
	[FI_UINT8] = {"uint8", INTEGER, 1, false},
	[FI_INT16] = {"int16", INTEGER, 2, true},
	[FI_UINT16] = {"uint16", INTEGER, 2, false},
	[FI_INT32] = {"int32", INTEGER, 4, true},
	[FI_UINT32] = {"uint32", INTEGER, 4, false},
	[FI_INT64] = {"int64", INTEGER, 8, true},
	[FI_UINT64] = {"uint64", INTEGER, 8, false},
	[FI_FLOAT] = {"float", REAL, sizeof(float), true},
	[FI_DOUBLE] = {"double", REAL, sizeof(double), true},
	[FI_FLOAT_COMPLEX] = {"float complex", COMPLEX, 2 * sizeof(float), true},
	[FI_DOUBLE_COMPLEX] = {"double complex", COMPLEX, 2 * sizeof(double), true},
	[FI_LONG_DOUBLE] = {"long double", REAL, sizeof(long double), true},
	[FI_LONG_DOUBLE_COMPLEX] = {"long double complex", COMPLEX,
				    2 * sizeof(long double), true},
#ifdef __SIZEOF_INT128__
	[FI_INT128] = {"int128", INTEGER, 16, true},
	[FI_UINT128] = {"uint128", INTEGER, 16, false},
#endif
};

static const struct op {
	const char *name;
	uint32_t modes;	       /* bits 1 << ATOMIC_... */
	enum class most_class; /* types up to this class have it */
} ops[FI_ATOMIC_OP_LAST] = {
	[FI_MIN] = {"MIN", 3, REAL},
	[FI_MAX] = {"MAX", 3, REAL},
	[FI_SUM] = {"SUM", 3, COMPLEX},
	[FI_PROD] = {"PROD", 3, COMPLEX},
	[FI_LOR] = {"LOR", 3, COMPLEX},
	[FI_LAND] = {"LAND", 3, COMPLEX},
	[FI_BOR] = {"BOR", 3, INTEGER},
	[FI_BAND] = {"BAND", 3, INTEGER},
	[FI_LXOR] = {"LXOR", 3, COMPLEX},
	[FI_BXOR] = {"BXOR", 3, INTEGER},
	[FI_ATOMIC_READ] = {"READ", 2, COMPLEX},
	[FI_ATOMIC_WRITE] = {"WRITE", 3, COMPLEX},
	[FI_CSWAP] = {"CSWAP", 4, COMPLEX},
	[FI_CSWAP_NE] = {"CSWAP_NE", 4, COMPLEX},
	[FI_CSWAP_LE] = {"CSWAP_LE", 4, REAL},
	[FI_CSWAP_LT] = {"CSWAP_LT", 4, REAL},
	[FI_CSWAP_GE] = {"CSWAP_GE", 4, REAL},
	[FI_CSWAP_GT] = {"CSWAP_GT", 4, REAL},
	[FI_MSWAP] = {"MSWAP", 4, INTEGER},
};

/* A value of any type: integers as their bits, the others as parts. */
struct value {
	unsigned __int128 bits;
	long double re, im;
};

/* Sign and order, whatever the width. */
static int compare_bits(const struct type *t, unsigned __int128 a, unsigned __int128 b)
{
	unsigned __int128 flip =
		t->is_signed ? (unsigned __int128)1 << (8 * t->bytes - 1) : 0;

	a ^= flip;
	b ^= flip;
	return a < b ? -1 : a > b;
}

/* -1, 0, 1, or 2: neither (not a number). Complex: 0 or 2. */
static int compare_values(const struct type *t, const struct value *a,
			  const struct value *b)
{
	if (t->class == INTEGER) {
		return compare_bits(t, a->bits, b->bits);
	}
	if (t->class == COMPLEX) {
		return a->re == b->re && a->im == b->im ? 0 : 2;
	}
	return a->re < b->re ? -1 : a->re > b->re ? 1 : a->re == b->re ? 0 : 2;
}

static bool truth(const struct type *t, const struct value *v)
{
	return t->class == INTEGER ? v->bits != 0
				   : v->re != 0 || (t->class == COMPLEX && v->im != 0);
}

static struct value of_truth(const struct type *t, bool b)
{
	struct value v = {0};

	if (t->class == INTEGER) {
		v.bits = b;
	} else {
		v.re = b;
	}
	return v;
}

static struct value product(const struct type *t, const struct value *a,
			    const struct value *b)
{
	if (t->class == INTEGER) {
		return (struct value){.bits = a->bits * b->bits};
	}
	return (struct value){.re = a->re * b->re - a->im * b->im,
			      .im = a->re * b->im + a->im * b->re};
}

/* What is there afterwards. */
static struct value model(const struct type *t, uint32_t op, struct value now,
			  struct value arg, struct value cmp)
{
	int order = compare_values(t, &arg, &now);
	int cmp_order = compare_values(t, &cmp, &now);
	bool a = truth(t, &arg), n = truth(t, &now);

	switch (op) {
	case FI_MIN:
		return order == -1 ? arg : now;
	case FI_MAX:
		return order == 1 ? arg : now;
	case FI_SUM:
		return (struct value){now.bits + arg.bits, now.re + arg.re,
				      now.im + arg.im};
	case FI_PROD:
		return product(t, &now, &arg);
	case FI_LOR:
		return of_truth(t, a || n);
	case FI_LAND:
		return of_truth(t, a && n);
	case FI_LXOR:
		return of_truth(t, a != n);
	case FI_BOR:
		return (struct value){.bits = now.bits | arg.bits};
	case FI_BAND:
		return (struct value){.bits = now.bits & arg.bits};
	case FI_BXOR:
		return (struct value){.bits = now.bits ^ arg.bits};
	case FI_ATOMIC_READ:
		return now;
	case FI_ATOMIC_WRITE:
		return arg;
	case FI_CSWAP:
		return cmp_order == 0 ? arg : now;
	case FI_CSWAP_NE:
		return cmp_order != 0 ? arg : now;
	case FI_CSWAP_LE:
		return cmp_order == -1 || cmp_order == 0 ? arg : now;
	case FI_CSWAP_LT:
		return cmp_order == -1 ? arg : now;
	case FI_CSWAP_GE:
		return cmp_order == 1 || cmp_order == 0 ? arg : now;
	case FI_CSWAP_GT:
		return cmp_order == 1 ? arg : now;
	default: /* FI_MSWAP */
		return (struct value){.bits = (arg.bits & cmp.bits) |
					      (now.bits & ~cmp.bits)};
	}
}

/* ---- values as bytes */

static void put(uint32_t type, const struct value *v, void *at)
{
	float f[2] = {(float)v->re, (float)v->im};
	double d[2] = {(double)v->re, (double)v->im};
	long double l[2] = {v->re, v->im};

	switch (type) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(at, f, types[type].bytes);
		break;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(at, d, types[type].bytes);
		break;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(at, l, types[type].bytes);
		break;
	default: /* little-endian, as all of Weft's tests run */
		memcpy(at, &v->bits, types[type].bytes);
	}
}

static struct value get(uint32_t type, const void *at)
{
	struct value v = {0};
	float f[2] = {0};
	double d[2] = {0};
	long double l[2] = {0};

	switch (type) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(f, at, types[type].bytes);
		v.re = f[0], v.im = f[1];
		break;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(d, at, types[type].bytes);
		v.re = d[0], v.im = d[1];
		break;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(l, at, types[type].bytes);
		v.re = l[0], v.im = l[1];
		break;
	default:
		memcpy(&v.bits, at, types[type].bytes);
	}
	return v;
}

static bool part_equal(long double a, long double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool equal(uint32_t type, struct value a, struct value b)
{
	const struct type *t = &types[type];

	if (t->class == INTEGER) {
		unsigned __int128 mask = ~(unsigned __int128)0 >> (128 - 8 * t->bytes);

		return ((a.bits ^ b.bits) & mask) == 0;
	}
	return part_equal(a.re, b.re) && (t->class == REAL || part_equal(a.im, b.im));
}

/* Small whole numbers, so that all that is calculated is exact; often equal ones, zero,
 * now and then something that isn't a number. Integers: any bits as well. */
static struct value random_value(uint32_t type, bool nan)
{
	const struct type *t = &types[type];
	struct value v = {0};

	if (t->class == INTEGER) {
		unsigned __int128 mask = ~(unsigned __int128)0 >> (128 - 8 * t->bytes);

		v.bits = (unsigned __int128)next_random() << 64 | next_random();
		if (next_random() % 2) {
			v.bits = (unsigned __int128)(next_random() % 5) - 2;
		}
		v.bits &= mask;
		return v;
	}
	v.re = (long double)(next_random() % 7) - 3;
	v.im = t->class == COMPLEX ? (long double)(next_random() % 5) - 2 : 0;
	if (nan && next_random() % 8 == 0) {
		v.re = next_random() % 2 ? NAN : next_random() % 2 ? INFINITY : -INFINITY;
	}
	return v;
}

/* ---- one operation on one type */

#define COUNT 5

/* Many arrays; operands and results anywhere, the memory before and behind untouched. */
static bool try_op(uint32_t mode, uint32_t op, uint32_t type)
{
	atomic_fn fn = atomic_op_find(mode, op, type);
	uint32_t bytes = types[type].bytes;
	_Alignas(32) char at[(COUNT + 2) * ATOMIC_ELEM_MAX];
	char arg[COUNT * ATOMIC_ELEM_MAX + 1], cmp[sizeof(arg)], result[sizeof(arg) + 1];
	/* Products of what isn't a number are the compiler's business, in each part. */
	bool nan = op != FI_PROD && op != FI_SUM;
	bool good = true;

	for (int round = 0; round < 200 && good; round++) {
		struct value now[COUNT], a[COUNT], c[COUNT];
		char *first = at + bytes;

		memset(at, 0x5a, sizeof(at));
		memset(result, 0x5a, sizeof(result));
		for (int i = 0; i < COUNT; i++) {
			now[i] = random_value(type, nan);
			a[i] = random_value(type, nan);
			c[i] = next_random() % 3 ? random_value(type, nan) : now[i];
			put(type, &now[i], first + (size_t)i * bytes);
			put(type, &a[i], arg + 1 + (size_t)i * bytes);
			put(type, &c[i], cmp + 1 + (size_t)i * bytes);
		}
		fn(first, op == FI_ATOMIC_READ ? NULL : arg + 1,
		   mode == ATOMIC_COMPARE ? cmp + 1 : NULL,
		   mode == ATOMIC_BASE ? NULL : result + 1, COUNT);
		for (int i = 0; i < COUNT; i++) {
			size_t off = (size_t)i * bytes;

			good &= equal(type, get(type, first + off),
				      model(&types[type], op, now[i], a[i], c[i]));
			good &= mode == ATOMIC_BASE ||
				equal(type, get(type, result + 1 + off), now[i]);
		}
		for (uint32_t i = 0; i < bytes; i++) {
			good &= at[i] == 0x5a && first[COUNT * bytes + i] == 0x5a;
		}
		good &= result[0] == 0x5a && result[1 + COUNT * bytes] == 0x5a;
	}
	return good;
}

static void test_every(void)
{
	for (uint32_t type = 0; type < TYPES; type++) {
		int tried = 0;
		bool good = atomic_type_size(type) == types[type].bytes;

		if (types[type].bytes == 0) {
			continue;
		}
		for (uint32_t mode = 0; mode < ATOMIC_MODES; mode++) {
			for (uint32_t op = 0; op < FI_ATOMIC_OP_LAST; op++) {
				bool has = ops[op].modes >> mode & 1 &&
					   types[type].class <= ops[op].most_class;

				if (has != (atomic_op_find(mode, op, type) != NULL)) {
					tap_diag("%s: %s, call %u: %s", types[type].name,
						 ops[op].name, mode,
						 has ? "missing" : "too much");
					good = false;
				} else if (has && !try_op(mode, op, type)) {
					tap_diag("%s: %s, call %u: wrong",
						 types[type].name, ops[op].name, mode);
					good = false;
				}
				tried += has;
			}
		}
		tap_ok(good, "%s: %d operations as the model has them", types[type].name,
		       tried);
	}
}

static void test_unknown(void)
{
	bool good = true;

	for (int i = 0; i < 100000; i++) {
		uint32_t mode = (uint32_t)(next_random() % 5);
		uint32_t op = FI_ATOMIC_OP_LAST +
			      (uint32_t)(next_random() % 2 ? i % 300 : i << 8);
		uint32_t type = (uint32_t)next_random();

		good &= !atomic_op_find(mode, op, FI_UINT64);
		good &= type < TYPES ||
			(!atomic_op_find(mode, FI_SUM, type) && !atomic_type_size(type) &&
			 !atomic_type_align(type));
	}
	tap_ok(good, "numbers that name nothing find nothing");
	tap_is_int((int64_t)atomic_op_access(ATOMIC_BASE, FI_SUM), FI_REMOTE_WRITE,
		   "a sum writes");
	tap_is_int((int64_t)atomic_op_access(ATOMIC_FETCH, FI_ATOMIC_READ),
		   FI_REMOTE_READ, "a read reads");
	tap_is_int((int64_t)atomic_op_access(ATOMIC_FETCH, FI_ATOMIC_WRITE),
		   FI_REMOTE_READ | FI_REMOTE_WRITE, "a swap does both");
	tap_is_int((int64_t)atomic_op_access(ATOMIC_COMPARE, FI_CSWAP),
		   FI_REMOTE_READ | FI_REMOTE_WRITE, "so does a comparison");
}

/* What changes nothing doesn't store: memory that can't be written may be read. */
static void test_read_only(void)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char result[4 * ATOMIC_ELEM_MAX];
	bool good = true;

	for (uint32_t type = 0; type < TYPES; type++) {
		atomic_fn fn = atomic_op_find(ATOMIC_FETCH, FI_ATOMIC_READ, type);

		if (fn) {
			memset(result, 1, sizeof(result));
			fn(page, NULL, NULL, result, 4);
			good &= result[0] == 0 && result[4 * types[type].bytes - 1] == 0;
		}
	}
	tap_ok(good, "reading needs no right to write");
	munmap(page, 4096);
}

/* ---- threads on the same elements */

#define THREADS 4
#define ROUNDS	5000

static struct hammer {
	_Alignas(32) char sum[ATOMIC_ELEM_MAX];
	_Alignas(32) char swapped[ATOMIC_ELEM_MAX];
	uint32_t type;
} hammer;

/* One thread: adds 1, by SUM and by comparing and swapping until it works. */
static void *hammer_run(void *arg)
{
	struct hammer *h = arg;
	atomic_fn add = atomic_op_find(ATOMIC_FETCH, FI_SUM, h->type);
	atomic_fn swap = atomic_op_find(ATOMIC_COMPARE, FI_CSWAP, h->type);
	struct value one = {1, 1, 0};
	char unit[ATOMIC_ELEM_MAX] = {0}, was[ATOMIC_ELEM_MAX] = {0};

	put(h->type, &one, unit);
	for (int i = 0; i < ROUNDS; i++) {
		struct value seen = {0}, next;

		add(h->sum, unit, NULL, was, 1);
		for (;;) {
			char to[ATOMIC_ELEM_MAX] = {0}, from[ATOMIC_ELEM_MAX] = {0};

			next = (struct value){seen.bits + 1, seen.re + 1, seen.im};
			put(h->type, &seen, from);
			put(h->type, &next, to);
			swap(h->swapped, to, from, was, 1);
			if (equal(h->type, get(h->type, was), seen)) {
				break;
			}
			seen = get(h->type, was);
		}
	}
	return NULL;
}

static void test_threads(void)
{
	for (uint32_t type = 0; type < TYPES; type++) {
		struct value want = {THREADS * ROUNDS, THREADS * ROUNDS, 0};
		pthread_t threads[THREADS];

		if (types[type].bytes == 0) {
			continue;
		}
		memset(&hammer, 0, sizeof(hammer));
		hammer.type = type;
		for (int i = 0; i < THREADS; i++) {
			if (pthread_create(&threads[i], NULL, hammer_run, &hammer)) {
				tap_bail("no thread");
			}
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
		}
		tap_ok(equal(type, get(type, hammer.sum), want) &&
			       equal(type, get(type, hammer.swapped), want),
		       "%s: %d threads, nothing got lost", types[type].name, THREADS);
	}
}

/* ---- forks */

static atomic_bool fork_over;

static void *wide_run(void *arg)
{
	_Alignas(32) static char many[1000 * sizeof(long double)];
	static char ones[sizeof(many)];
	atomic_fn add = atomic_op_find(ATOMIC_BASE, FI_SUM, FI_LONG_DOUBLE);

	(void)arg;
	while (!atomic_load(&fork_over)) {
		add(many, ones, NULL, NULL, 1000);
	}
	return NULL;
}

/* In a child that was forked in the middle of somebody's array. */
static int wide_child(void)
{
	_Alignas(32) char at[sizeof(long double)] = {0}, one[sizeof(at)] = {0};

	alarm(280);
	atomic_op_find(ATOMIC_BASE, FI_SUM, FI_LONG_DOUBLE)(at, one, NULL, NULL, 1);
	return 0;
}

static void test_fork(void)
{
	pthread_t thread;
	bool good = true;

	if (pthread_create(&thread, NULL, wide_run, NULL)) {
		tap_bail("no thread");
	}
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0) {
			_exit(wide_child());
		}
		good &= pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
	}
	atomic_store(&fork_over, true);
	pthread_join(thread, NULL);
	tap_ok(good, "a child of a fork finds no lock taken");
}

int main(void)
{
	test_every();
	test_unknown();
	test_read_only();
	test_threads();
	test_fork();
	return tap_done();
}
