/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kernel on a device against a reference in higher precision, on random data
 * (gpu/cuda/kernels/tests/check.h), and the instructions that convert fp8 and fp16
 * against util/num.h over all values. Usage: kernels FATBIN [--quick].
 */
#include <math.h>
#include <time.h>

#include "gpu/cuda/kernels/tests/check.h"
#include "gpu/on-gpu/dev.h"
#include "util/num.h"
#include "util/tap.h"

#define ARENA (1u << 20)

static char *on_device;

/* Pointers of the host's arena become those of the device's. */
static void *moved(struct check_env *env, const void *p)
{
	return p ? on_device + ((const char *)p - env->arena) : NULL;
}

static bool run(struct check_env *env, const struct launch *launch, size_t args_len)
{
	struct dev_kernel *kernel = dev_kernel(launch->function);
	struct launch l = *launch;
	void *args[] = {&l.args};
	struct kern_signal *signal = &l.args.reduce.signal;

	if (!kernel)
		return false;
	if (args_len == sizeof(l.args.copy)) {
		l.args.copy.dst = moved(env, l.args.copy.dst);
		l.args.copy.src = moved(env, l.args.copy.src);
		signal = &l.args.copy.signal;
	} else {
		l.args.reduce.dst = moved(env, l.args.reduce.dst);
		l.args.reduce.dst2 = moved(env, l.args.reduce.dst2);
		for (uint32_t s = 0; s < l.args.reduce.sources; s++)
			l.args.reduce.src[s] = moved(env, l.args.reduce.src[s]);
	}
	signal->word = moved(env, signal->word);
	signal->arrived = moved(env, signal->arrived);
	dev_copy(on_device, env->arena, ARENA);
	dev_launch(kernel, l.blocks, l.threads, args);
	dev_sync();
	dev_copy(env->arena, on_device, ARENA);
	return true;
}

static const char *const type_names[GPU_TYPE_COUNT] = {
	"int8",	  "uint8", "int16", "uint16",	"int32",    "uint32", "int64",
	"uint64", "fp16",  "bf16",  "fp8_e4m3", "fp8_e5m2", "fp32",   "fp64"};
static const char *const op_names[GPU_OP_COUNT] = {"sum", "prod", "min", "max",
						   "avg", "band", "bor", "bxor"};

static void test_references(struct check_env *env, int rounds)
{
	char why[CHECK_WHY] = "";

	for (int t = 0; t < GPU_TYPE_COUNT; t++) {
		for (int op = 0; op < GPU_OP_COUNT; op++) {
			bool good = true;
			int i;

			if (t >= GPU_FP16 && op >= GPU_BAND)
				continue;
			for (i = 0; i < rounds && good; i++)
				good = check_reduce(env, (enum gpu_type)t,
						    (enum gpu_op)op, why);
			if (!tap_ok(good, "%s of %s, %d random calls", op_names[op],
				    type_names[t], rounds))
				tap_diag("call %d: %s", i, why);
		}
	}
	for (int i = 0; i < 4 * rounds; i++) {
		if (!check_copy(env, why)) {
			tap_ok(false, "copies: %s", why);
			return;
		}
	}
	tap_ok(true, "copies, %d random calls", 4 * rounds);
}

/* ---- conversions: all values of the small type, and what lies between them ---- */

static float from(enum gpu_type t, uint16_t v)
{
	return t == GPU_FP16	   ? num_from_fp16(v)
	       : t == GPU_BF16	   ? num_from_bf16(v)
	       : t == GPU_FP8_E4M3 ? num_from_e4m3((uint8_t)v)
				   : num_from_e5m2((uint8_t)v);
}

static uint16_t to(enum gpu_type t, float f)
{
	return t == GPU_FP16	   ? num_to_fp16(f)
	       : t == GPU_BF16	   ? num_to_bf16(f)
	       : t == GPU_FP8_E4M3 ? num_to_e4m3(f)
				   : num_to_e5m2(f);
}

static void cast(enum gpu_type type, enum gpu_type out, const void *src, void *dst,
		 uint64_t count)
{
	struct gpu_reduce r = {.sources = 1,
			       .type = type,
			       .out = out,
			       .src = {src},
			       .dst = dst,
			       .count = count,
			       .scale = 1};
	char why[GPU_WHY_LEN];
	struct launch l;
	void *args[] = {&l.args};

	if (launch_reduce(&l, &r, 132, NULL, why) < 0)
		tap_bail("%s", why);
	dev_launch(dev_kernel(l.function), l.blocks, l.threads, args);
	dev_sync();
}

static void test_conversions(struct check_env *env)
{
	enum { FLOATS = 1 << 20 };
	static const enum gpu_type types[] = {GPU_FP16, GPU_BF16, GPU_FP8_E4M3,
					      GPU_FP8_E5M2};
	float *f = dev_pinned(FLOATS * sizeof(*f));
	uint16_t *h = dev_pinned(FLOATS * sizeof(*h));

	for (size_t k = 0; k < 4; k++) {
		const enum gpu_type t = types[k];
		const size_t size = launch_type_size(t);
		const uint32_t values = size == 1 ? 256 : 65536;
		uint32_t wrong = 0;

		for (uint32_t i = 0; i < values; i++) {
			const uint16_t v = (uint16_t)i;

			memcpy((char *)h + i * size, &v, size);
		}
		cast(t, GPU_FP32, h, f, values);
		for (uint32_t i = 0; i < values; i++) {
			const float want = from(t, (uint16_t)i);

			wrong += isnan(want) ? !isnan(f[i])
					     : num_bits32(f[i]) != num_bits32(want);
		}
		tap_is_int(wrong, 0, "all values of a small type into fp32");
		/* Any bits, near every value of the small type. */
		for (uint32_t i = 0; i < FLOATS; i++)
			f[i] = num_float(num_bits32(from(t, (uint16_t)(i % values))) +
					 (uint32_t)(check_random(&env->rng) >>
						    (32 + check_random(&env->rng) % 31)));
		cast(GPU_FP32, t, f, h, FLOATS);
		wrong = 0;
		for (uint32_t i = 0; i < FLOATS; i++) {
			const uint16_t want = to(t, f[i]);
			uint16_t got = 0;

			memcpy(&got, (char *)h + i * size, size);
			wrong +=
				isnan(from(t, want)) ? !isnan(from(t, got)) : got != want;
		}
		tap_is_int(wrong, 0, "a million values of fp32 into it");
	}
	dev_free(f);
	dev_free(h);
}

int main(int argc, char **argv)
{
	const bool quick = argc > 2 && strcmp(argv[2], "--quick") == 0;
	const char *text = getenv("WEFT_SEED");
	struct check_env env = {.len = ARENA,
				.run = run,
				.rng = text ? strtoull(text, NULL, 0)
					    : (uint64_t)time(NULL)};
	struct dev dev;

	if (argc < 2)
		tap_bail("usage: kernels FATBIN [--quick]");
	dev_open(&dev, argv[1]);
	tap_diag("WEFT_SEED=%llu", (unsigned long long)env.rng);
	env.arena = dev_pinned(ARENA);
	env.processors = 3;
	on_device = dev_alloc(ARENA);
	test_references(&env, quick ? 10 : 60);
	test_conversions(&env);
	dev_free(on_device);
	dev_free(env.arena);
	return tap_done();
}
