/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Figures of the kernels, each beside its floor, which is measured in the same run.
 * Usage: figures FATBIN PROBES [--quick]. Rows of a table begin with '|'.
 */
#include <math.h>
#include <sched.h>

#include "gpu/cuda/kernels/launch.h"
#include "gpu/on-gpu/dev.h"
#include "util/tap.h"

#define MIB    (1024.0 * 1024.0)
#define WAIT_S 10.0 /* for anything that takes microseconds */
#define BIG    (256ull << 20)
#define SETS   3 /* of sources and result, more than caches hold */

static struct dev dev;
static bool quick;
static char *set_src[SETS][GPU_SOURCES], *set_dst[SETS];

/* Random numbers: constant data can run faster than any that matters. */
static void sets_init(void)
{
	enum { PIECE = 16 << 20 };
	uint32_t *random = dev_pinned(PIECE);
	uint32_t z = 1;

	for (size_t i = 0; i < PIECE / sizeof(*random); i++) {
		z = z * 1664525u + 1013904223u;
		random[i] = z ^ z >> 15;
	}
	for (int i = 0; i < SETS; i++) {
		set_dst[i] = dev_alloc(BIG);
		for (int k = 0; k < GPU_SOURCES; k++) {
			set_src[i][k] = dev_alloc(BIG + 64);
			for (size_t at = 0; at < BIG; at += PIECE)
				dev_copy(set_src[i][k] + at, random, PIECE);
		}
	}
	dev_free(random);
}

/* ---- bandwidth ---- */

static double copy_rate(void)
{
	double best[9];
	const int n = quick ? 3 : 9;

	for (int i = -1; i < n; i++) {
		dev_timer_start();
		dev_copy_start(set_dst[(i + 1) % SETS], set_src[(i + 1) % SETS][0], BIG);
		best[i < 0 ? 0 : i] = 2.0 * BIG / dev_timer_stop();
	}
	return dev_percentile(best, (size_t)n, 0.5);
}

/* Bytes per second, read and written, of one kind of call over results of BIG bytes. */
static double reduce_rate(const struct gpu_reduce *shape, uint32_t blocks_each,
			  uint64_t offset)
{
	const uint64_t bytes = BIG - 64;
	double rate[9];
	const int n = quick ? 3 : 9;

	for (int i = -1; i < n; i++) {
		struct gpu_reduce r = *shape;
		char why[GPU_WHY_LEN];
		struct launch l;
		void *args[] = {&l.args};
		double s;

		for (uint32_t k = 0; k < r.sources; k++)
			r.src[k] = set_src[(i + 1) % SETS][k] + (k ? offset : 0);
		r.dst = set_dst[(i + 1) % SETS];
		r.out = r.type;
		r.scale = 1;
		r.divisor = 1;
		r.count = bytes / launch_type_size(r.type);
		if (launch_reduce(&l, &r, dev.processors, NULL, why) < 0)
			tap_bail("%s", why);
		if (blocks_each)
			l.blocks = (uint32_t)dev.processors * blocks_each;
		dev_timer_start();
		dev_launch(dev_kernel(l.function), l.blocks, l.threads, args);
		s = dev_timer_stop();
		rate[i < 0 ? 0 : i] = (double)bytes * (r.sources + 1) / s;
	}
	return dev_percentile(rate, (size_t)n, 0.5);
}

static void row_rate(const char *what, double rate, double floor, const char *target)
{
	char got[64], of[64];

	snprintf(got, sizeof(got), "%.0f GB/s", rate * 1e-9);
	snprintf(of, sizeof(of), "%.0f GB/s (%.1f %%)", floor * 1e-9, 100 * rate / floor);
	dev_row(what, got, of, target);
}

static void bandwidth(void)
{
	static const struct {
		const char *name;
		enum gpu_type type;
		enum gpu_op op;
		uint32_t sources;
	} kinds[] = {
		{"fp32 sum of 2", GPU_FP32, GPU_SUM, 2},
		{"bf16 sum of 2", GPU_BF16, GPU_SUM, 2},
		{"fp16 sum of 2", GPU_FP16, GPU_SUM, 2},
		{"fp8_e4m3 sum of 2", GPU_FP8_E4M3, GPU_SUM, 2},
		{"fp8_e5m2 sum of 2", GPU_FP8_E5M2, GPU_SUM, 2},
		{"fp64 sum of 2", GPU_FP64, GPU_SUM, 2},
		{"int32 sum of 2", GPU_INT32, GPU_SUM, 2},
		{"int8 max of 2", GPU_INT8, GPU_MAX, 2},
		{"uint64 bxor of 2", GPU_UINT64, GPU_BXOR, 2},
		{"bf16 max of 2", GPU_BF16, GPU_MAX, 2},
		{"fp32 sum of 4", GPU_FP32, GPU_SUM, 4},
		{"fp32 sum of 8", GPU_FP32, GPU_SUM, 8},
		{"bf16 avg of 8", GPU_BF16, GPU_AVG, 8},
	};
	const double floor = copy_rate();
	char what[96];

	tap_diag("device copy: %.0f GB/s, read and written", floor * 1e-9);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct gpu_reduce r = {.sources = kinds[i].sources,
					     .type = kinds[i].type,
					     .op = kinds[i].op};
		const double rate = reduce_rate(&r, 0, 0);

		snprintf(what, sizeof(what), "reduce, %s, 256 MiB", kinds[i].name);
		row_rate(what, rate, floor, "90 % of a copy");
		if (i == 0)
			tap_ok(rate >= 0.9 * floor,
			       "a reduction has 90 %% of a copy's bandwidth");
		for (uint32_t e = 1; e <= 4 && !quick && i < 4; e++)
			tap_diag("%s, %u blocks a multiprocessor: %.0f GB/s",
				 kinds[i].name, e, reduce_rate(&r, e, 0) * 1e-9);
		if (i < 4) {
			snprintf(what, sizeof(what),
				 "reduce, %s, second source off by an element",
				 kinds[i].name);
			row_rate(what, reduce_rate(&r, 0, launch_type_size(r.type)),
				 floor, "");
		}
	}
}

static void few_blocks(void)
{
	static const uint32_t blocks[] = {1, 2, 3, 4, 6, 8, 16, 32};
	struct gpu_reduce r = {.sources = 2, .type = GPU_FP32, .op = GPU_SUM};
	uint32_t enough = 0;
	char got[64];

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		double rate;

		r.blocks = blocks[i];
		rate = reduce_rate(&r, 0, 0);
		tap_diag("fp32 sum of 2 by %u blocks: %.0f GB/s, %.1f a block", blocks[i],
			 rate * 1e-9, rate * 1e-9 / blocks[i]);
		if (!enough && rate >= 150e9)
			enough = blocks[i];
	}
	snprintf(got, sizeof(got), "%u blocks of %d", enough, KERN_THREADS);
	dev_row("reduce at 150 GB/s (read and written)", got, "", "few");
	tap_ok(enough && enough <= 4, "at most four blocks sustain 150 GB/s");
	r.blocks = launch_blocks(50e9, 2, dev.processors);
	tap_ok(reduce_rate(&r, 0, 0) >= 150e9,
	       "as many blocks as launch_blocks() says (%u) sustain it", r.blocks);
}

/* ---- words between CPU and device ---- */

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint64_t *word, uint64_t v)
{
	__atomic_store_n(word, v, __ATOMIC_RELEASE);
}

static bool until(const uint64_t *word, uint64_t value)
{
	const double end = dev_now() + WAIT_S;

	while (load(word) < value) {
		if (dev_now() > end)
			return false;
	}
	return true;
}

struct times {
	double *v;
	size_t n;
};

static void row_times(const char *what, struct times t, double floor_med, double floor_99,
		      const char *target)
{
	const double med = dev_percentile(t.v, t.n, 0.5) * 1e6;
	const double p99 = dev_percentile(t.v, t.n, 0.99) * 1e6;
	char got[64], of[64] = "";

	snprintf(got, sizeof(got), "%.2f us, p99 %.2f", med, p99);
	if (floor_med > 0)
		snprintf(of, sizeof(of), "%.2f us, p99 %.2f", floor_med, floor_99);
	dev_row(what, got, of, target);
}

/* word[0], [16], [32]: each alone in its line. */
static bool pong(struct times *t, uint64_t *word)
{
	struct dev_kernel *k = dev_kernel("probe_pong");
	uint64_t *ping = word, *answer = word + 16, rounds = t->n;
	void *args[] = {&ping, &answer, &rounds};

	store(ping, 0);
	store(answer, 0);
	dev_launch(k, 1, 1, args);
	for (uint64_t i = 1; i <= rounds; i++) {
		const double start = dev_now();

		store(ping, i);
		if (!until(answer, i))
			return false;
		t->v[i - 1] = dev_now() - start;
	}
	dev_sync();
	return true;
}

enum how { BY_KERNEL, BY_TWO_KERNELS, BY_DRIVER };

static bool put_gate(enum how how, uint64_t *word, uint64_t i)
{
	struct kern_words first = {
		.op = {{.kind = KERN_WRITE, .word = word, .value = i},
		       {.kind = KERN_WAIT, .word = word + 16, .value = i},
		       {.kind = KERN_WRITE, .word = word + 32, .value = i}}};
	struct kern_words next = {.op = {first.op[2]}};
	uint32_t n = how == BY_KERNEL ? 3 : 2, one = 1;
	void *args[] = {&first, &n}, *after[] = {&next, &one};

	if (how == BY_DRIVER)
		return dev_write_start(word, i) && dev_wait_start(word + 16, i) &&
		       dev_write_start(word + 32, i);
	dev_launch(dev_kernel("weft_words"), 1, 32, args);
	if (how == BY_TWO_KERNELS)
		dev_launch(dev_kernel("weft_words"), 1, 32, after);
	return true;
}

/* A stream that comes to a gate, is let go after a while, and says so. */
static bool gate(enum how how, struct times *t, uint64_t *word)
{
	for (int i = 0; i < 48; i++)
		store(word + i, 0);
	for (uint64_t i = 1; i <= t->n; i++) {
		double start;

		if (!put_gate(how, word, i) || !until(word, i))
			return false;
		for (start = dev_now(); dev_now() < start + 5e-6;)
			;
		start = dev_now();
		store(word + 16, i);
		if (!until(word + 32, i))
			return false;
		t->v[i - 1] = dev_now() - start;
	}
	dev_sync();
	return true;
}

static void holds(void)
{
	static const char *const names[] = {
		"hold and release: kernel, to its last word",
		"hold and release: kernel, to the next kernel's word",
		"hold and release: the driver's memory wait and write"};
	struct times t = {.n = quick ? 1000 : 10000};
	uint64_t *word = dev_pinned(4096);
	double med, p99, best = INFINITY;

	t.v = calloc(t.n, sizeof(*t.v));
	if (!t.v || !pong(&t, word) || !pong(&t, word)) {
		tap_ok(false, "a kernel and the CPU answer each other");
		return;
	}
	row_times("flag, CPU to kernel and back", t, 0, 0, "");
	med = dev_percentile(t.v, t.n, 0.5) * 1e6;
	p99 = dev_percentile(t.v, t.n, 0.99) * 1e6;
	for (int how = BY_KERNEL; how <= BY_DRIVER; how++) {
		if (!gate((enum how)how, &t, word)) {
			tap_ok(how == BY_DRIVER, "%s", names[how]);
			dev_row(names[how], "not there", "", "");
			continue;
		}
		row_times(names[how], t, med, p99, "floor + 0.5 us");
		best = fmin(best, dev_percentile(t.v, t.n, 0.5) * 1e6);
	}
	tap_ok(best <= med + 0.5,
	       "a stream goes on within 0.5 us of the floor: %.2f, %.2f", best, med);
	free(t.v);
	dev_free(word);
}

int main(int argc, char **argv)
{
	quick = argc > 3 && strcmp(argv[3], "--quick") == 0;
	if (argc < 3)
		tap_bail("usage: figures FATBIN PROBES [--quick]");
	dev_open(&dev, argv[1]);
	dev_load(argv[2]);
	tap_diag("%s, %d multiprocessors, compute capability %d.%d", dev.name,
		 dev.processors, dev.major, dev.minor);
	sets_init();
	bandwidth();
	few_blocks();
	holds();
	return tap_done();
}
