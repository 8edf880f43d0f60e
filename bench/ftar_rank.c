/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank of bench/ftar: a fault-tolerant all-reduce, nobody failing, and the plain ring
 * in the same chunks, in turn, each after a barrier. A call takes as long as its slowest
 * rank. Rank 0 prints, for each size, the medians in microseconds and the median of the
 * ratios of neighbours.
 *
 * Usage: ftar_rank COORDINATOR CHUNK ROUNDS BYTES...
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/say.h"
#include "weft/weft.h"

enum { DEPTH = 4, ROUNDS_MAX = 1000, WARM = 2 };

static void need(enum weft_result result, const char *what)
{
	if (result != WEFT_SUCCESS)
		bench_die("%s: %s: %s", what, weft_strerror(result), weft_error_detail());
}

struct bench {
	struct weft_comm *comm;
	struct weft_ft *ft;
	uint64_t count, chunk; /* elements */
	float *src, *dst;
};

static void plain(struct bench *b)
{
	const uint64_t chunks = (b->count + b->chunk - 1) / b->chunk;
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_req *req[DEPTH];

	opts.algorithm = "ring";
	for (uint64_t k = 0; k < chunks + DEPTH; k++) {
		const uint64_t at = k * b->chunk;

		if (k >= DEPTH && k - DEPTH < chunks)
			need(weft_req_wait(req[k % DEPTH], 0), "wait");
		if (k < chunks)
			need(weft_allreduce_start(
				     b->comm, b->src + at, b->dst + at,
				     b->count - at < b->chunk ? b->count - at : b->chunk,
				     WEFT_FP32, WEFT_SUM, &opts, &req[k % DEPTH]),
			     "ring");
	}
}

static void tolerant(struct bench *b)
{
	need(weft_ft_allreduce(b->ft, b->src, b->dst, b->count, WEFT_FP32, WEFT_SUM, 0),
	     "fault-tolerant all-reduce");
}

/* Microseconds of the slowest rank. */
static double timed(struct bench *b, void (*run)(struct bench *b))
{
	uint64_t begin;
	double own, most;

	need(weft_barrier(b->comm, NULL), "barrier");
	begin = bench_now_ns();
	run(b);
	own = (double)(bench_now_ns() - begin) * 1e-3;
	need(weft_allreduce(b->comm, &own, &most, 1, WEFT_FP64, WEFT_MAX, NULL), "times");
	for (uint64_t i = 0; i < b->count; i += b->count / 7 + 1) {
		if (b->dst[i] != (float)weft_comm_size(b->comm))
			bench_die("element %llu of the sum is %g", (unsigned long long)i,
				  (double)b->dst[i]);
	}
	memset(b->dst, 0, b->count * sizeof(*b->dst));
	return most;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value, uint64_t count)
{
	qsort(value, count, sizeof(*value), ascending);
	return value[count / 2];
}

static void size_run(struct bench *b, uint64_t rounds)
{
	static double us[2][ROUNDS_MAX], ratio[ROUNDS_MAX];

	for (uint64_t i = 0; i < WARM; i++) {
		timed(b, plain);
		timed(b, tolerant);
	}
	for (uint64_t i = 0; i < rounds; i++) {
		/* What goes first changes, since machines do. */
		const bool turned = i % 2;

		us[turned][i] = timed(b, turned ? tolerant : plain);
		us[!turned][i] = timed(b, turned ? plain : tolerant);
		ratio[i] = us[1][i] / us[0][i];
	}
	if (weft_comm_rank(b->comm) == 0)
		printf("%llu %.1f %.1f %.4f\n",
		       (unsigned long long)(b->count * sizeof(float)),
		       median(us[0], rounds), median(us[1], rounds),
		       median(ratio, rounds));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct weft_ft_opts opts = WEFT_FT_OPTS_INIT;
	uint64_t chunk = 0, rounds = 0, bytes = 0;
	struct bench b = {0};
	struct weft_ctx *ctx;

	if (argc < 5 || !bench_number(argv[2], 4096, 1 << 30, &chunk) || chunk % 4096 ||
	    !bench_number(argv[3], 1, ROUNDS_MAX, &rounds))
		bench_die("usage: ftar_rank COORDINATOR CHUNK ROUNDS BYTES...");
	need(weft_ctx_open(NULL, &ctx), "open");
	need(weft_comm_create(ctx, NULL, &b.comm), "communicator");
	opts.coordinator = argv[1];
	opts.job = getenv("WEFT_BENCH_JOB");
	opts.chunk = chunk;
	need(weft_ft_open(&opts, &b.ft), "joining");
	b.chunk = chunk / sizeof(float);
	for (int i = 4; i < argc; i++) {
		if (!bench_number(argv[i], 4, UINT64_C(1) << 32, &bytes))
			bench_die("%s is no number of bytes", argv[i]);
		b.count = bytes / sizeof(float);
		b.src = malloc(b.count * sizeof(float));
		b.dst = calloc(b.count, sizeof(float));
		if (!b.src || !b.dst)
			bench_die("no memory for %llu bytes", (unsigned long long)bytes);
		for (uint64_t k = 0; k < b.count; k++)
			b.src[k] = 1;
		size_run(&b, rounds);
		free(b.src);
		free(b.dst);
	}
	need(weft_ft_leave(b.ft, 0), "leaving");
	need(weft_ft_close(b.ft), "closing");
	need(weft_comm_destroy(b.comm), "destroy");
	need(weft_ctx_close(ctx), "close");
	return 0;
}
