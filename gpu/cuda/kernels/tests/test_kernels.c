/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kernel, on the CPU, with random sources, addresses, counts and numbers of blocks:
 * against a reference in higher precision (check.h), and where two sources are combined
 * bit by bit against the host's reductions. WEFT_SEED repeats a run.
 */
#include <math.h>
#include <time.h>

#include "coll/exec/reduce.h"
#include "gpu/cuda/kernels/kern_cpu.h"
#include "gpu/cuda/kernels/tests/check.h"
#include "util/tap.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static char arena[1 << 20];

static bool run(struct check_env *env, const struct launch *l, size_t args_len)
{
	const struct kern_cpu *kernel = kern_cpu_find(l->function);

	(void)env;
	(void)args_len;
	if (kernel)
		kern_cpu_run(kernel, l->blocks, l->threads, &l->args);
	return kernel;
}

static void fence(struct check_env *env, bool up, char *from, size_t len)
{
	(void)env;
#if defined(__SANITIZE_ADDRESS__)
	if (up)
		ASAN_POISON_MEMORY_REGION(from, len);
	else
		ASAN_UNPOISON_MEMORY_REGION(from, len);
#else
	(void)up;
	(void)from;
	(void)len;
#endif
}

static void test_references(struct check_env *env)
{
	const int rounds = tap_short() ? 20 : 200;
	char why[CHECK_WHY] = "";

	for (int t = 0; t < GPU_TYPE_COUNT; t++) {
		for (int op = 0; op < GPU_OP_COUNT; op++) {
			const uint64_t seed = env->rng;
			bool good = true;

			if (!reduce_supported((enum weft_type)t, (enum weft_op)op))
				continue;
			for (int i = 0; i < rounds && good; i++)
				good = check_reduce(env, (enum gpu_type)t,
						    (enum gpu_op)op, why);
			if (!tap_ok(good, "%s of %s", weft_op_name((enum weft_op)op),
				    weft_type_name((enum weft_type)t)))
				tap_diag("%s; this part began with %llu", why,
					 (unsigned long long)seed);
		}
	}
	for (int i = 0; i < rounds * 4; i++) {
		if (!check_copy(env, why)) {
			tap_ok(false, "copies: %s", why);
			return;
		}
	}
	tap_ok(true, "copies");
}

/* Whether two elements are the same bits, NaN aside. */
static bool same(enum weft_type type, const char *a, const char *b)
{
	const size_t size = weft_type_size(type);

	if (memcmp(a, b, size) == 0)
		return true;
	return type >= WEFT_FP16 && isnan(check_value((enum gpu_type)type, a)) &&
	       isnan(check_value((enum gpu_type)type, b));
}

/* Two sources of any bits at all: all values of the small types, in time. */
static void test_host(struct check_env *env)
{
	enum { COUNT = 4096 };
	static uint64_t a[COUNT], b[COUNT], want[COUNT], got[COUNT];
	char why[GPU_WHY_LEN];

	for (int t = 0; t < WEFT_TYPE_COUNT; t++) {
		bool good = true;

		for (int round = 0; round < (tap_short() ? 3 : 30); round++) {
			for (int op = 0; op < WEFT_OP_COUNT; op++) {
				struct gpu_reduce r = {.sources = 2,
						       .type = (enum gpu_type)t,
						       .op = (enum gpu_op)op,
						       .out = (enum gpu_type)t,
						       .src = {a, b},
						       .dst = got,
						       .count = COUNT,
						       .divisor = 1,
						       .scale = 1,
						       .blocks = 1};
				struct launch l;

				if (!reduce_supported((enum weft_type)t,
						      (enum weft_op)op))
					continue;
				for (int i = 0; i < COUNT; i++) {
					a[i] = check_random(&env->rng);
					b[i] = check_random(&env->rng);
				}
				reduce_apply((enum weft_type)t, (enum weft_op)op, want, a,
					     b, COUNT);
				good = good && launch_reduce(&l, &r, 1, NULL, why) == 0 &&
				       run(env, &l, 0);
				for (size_t i = 0; i < COUNT && good; i++) {
					const size_t at =
						i * weft_type_size((enum weft_type)t);

					good = same((enum weft_type)t, (char *)want + at,
						    (char *)got + at);
				}
			}
		}
		tap_ok(good, "two sources of %s: what the host's reductions give",
		       weft_type_name((enum weft_type)t));
	}
}

static void refused(struct gpu_reduce r, const char *text, const char *what)
{
	char why[GPU_WHY_LEN] = "";
	struct launch l;
	const int ret = launch_reduce(&l, &r, 1, NULL, why);

	if (!tap_ok(ret < 0 && strstr(why, text), "refused: %s", what))
		tap_diag("returned %d: %s", ret, why);
}

static void test_refusals(void)
{
	static char m[64] __attribute__((aligned(16)));
	const struct gpu_reduce good = {.sources = 2,
					.type = GPU_FP32,
					.out = GPU_FP32,
					.src = {m, m},
					.dst = m,
					.count = 4,
					.scale = 1};
	struct gpu_reduce r = good;
	char why[GPU_WHY_LEN];
	struct launch l;

	tap_ok(launch_reduce(&l, &good, 132, NULL, why) == 0, "what is right is not");
	r.type = GPU_TYPE_COUNT;
	refused(r, "types are 0 to 13", "a type that there is not");
	r = good, r.op = GPU_OP_COUNT;
	refused(r, "operations 0 to 7", "an operation that there is not");
	r = good, r.sources = 9;
	refused(r, "1 to 8", "nine sources");
	r = good, r.sources = 0;
	refused(r, "1 to 8", "no source");
	r = good, r.op = GPU_AVG;
	refused(r, "divisor 0", "an average of nobody");
	r = good, r.op = GPU_BXOR;
	refused(r, "of integers only", "bits of fp32");
	r = good, r.out = GPU_INT32;
	refused(r, "floating types are converted", "fp32 stored as int32");
	r = good, r.type = r.out = GPU_INT32, r.scale = 2;
	refused(r, "floating types are scaled", "int32 that is scaled");
	r = good, r.src[1] = m + 2;
	refused(r, "not aligned to 4", "a source off its alignment");
	r = good, r.dst = NULL;
	refused(r, "the result", "no result");
}

static void test_blocks(void)
{
	struct gpu_reduce r = {.sources = 2,
			       .type = GPU_FP32,
			       .out = GPU_FP32,
			       .src = {arena, arena},
			       .dst = arena,
			       .scale = 1};
	char why[GPU_WHY_LEN];
	struct launch l;

	r.count = 2;
	launch_reduce(&l, &r, 132, NULL, why);
	tap_ok(l.blocks == 1 && l.threads == 32, "two elements: a warp");
	r.count = 1 << 26;
	launch_reduce(&l, &r, 132, NULL, why);
	tap_ok(l.blocks == 132 * LAUNCH_FULL && l.threads == KERN_THREADS,
	       "256 MiB: the whole device");
	r.blocks = 3;
	launch_reduce(&l, &r, 132, NULL, why);
	tap_ok(l.blocks == 3, "not more blocks than asked for");
	tap_ok(launch_blocks(1, 2, 132) == 1 &&
		       launch_blocks(1e15, 2, 132) == 132 * LAUNCH_FULL,
	       "at least one block, at most all");
	tap_ok(launch_blocks(50e9, 2, 132) == (uint32_t)ceil(150e9 / LAUNCH_BLOCK_RATE),
	       "a rate of 50 GB/s moves 150 GB/s");
}

static void test_words(void)
{
	uint64_t a = 0, b = 7;
	struct kern_words w = {.op = {{.kind = KERN_WRITE, .word = &a, .value = 5},
				      {.kind = KERN_WAIT, .word = &b, .value = 7},
				      {.kind = KERN_WRITE, .word = &b, .value = 0}}};

	kern_cpu_words(&w, 3);
	tap_ok(a == 5 && b == 0, "steps on words, in order");
	b = 1; /* has gone round: 1 - (2^64 - 1) is 2 */
	w.op[1].value = UINT64_MAX;
	kern_cpu_words(&w, 2);
	tap_ok(b == 1, "waits are modular");
}

int main(void)
{
	const char *text = getenv("WEFT_SEED");
	struct check_env env = {.arena = arena,
				.len = sizeof(arena),
				.processors = 3,
				.run = run,
				.fence = fence,
				.rng = text ? strtoull(text, NULL, 0)
					    : (uint64_t)time(NULL)};

	tap_diag("WEFT_SEED=%llu", (unsigned long long)env.rng);
	for (size_t i = 0; i + 1 < launch_symbol_count; i++) {
		if (!kern_cpu_find(launch_symbols[i]))
			tap_ok(false, "no kernel %s", launch_symbols[i]);
	}
	test_references(&env);
	test_host(&env);
	test_refusals();
	test_blocks();
	test_words();
	return tap_done();
}
