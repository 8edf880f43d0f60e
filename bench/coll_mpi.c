/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collectives of weft perf, over MPI, measured in the same way: every call after a
 * barrier, a call takes as long as its slowest rank, the median over the calls. Built by
 * bench/coll with the MPI's own compiler, not by make.
 *
 *   coll_mpi FIRST LAST BUDGET_MS [allv]
 *
 * Sizes from FIRST to LAST bytes by factors of 4, LAST included, as weft perf has them:
 * bytes per rank for all-gather, of the vector otherwise; fp32, sum. For each, rank 0
 * prints "operation bytes median_us p99_us calls". allv: those with counts, which are all
 * the same. MPI has no dynamic all-to-allv: its receivers must know counts, so that a
 * program first sends them by an MPI_Alltoall, as it does here.
 *
 * As with weft perf, each call has new data, and its result is looked at, outside of the
 * times: blocks of up to 4 KiB wholly, longer ones in evenly spread elements. Data that
 * stays the same would lie in the reader's cache already.
 */
#include "config.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	CALLS_LEAST = 3, /* these limits are weft perf's */
	CALLS_MOST = 1000,
	SIZES_MOST = 64,
	WHOLE_MOST = 4096, /* bytes of a block that are written anew each time, all */
	SAMPLES = 16,	   /* of longer ones; weft perf's, too */
};

#define LAST_MOST ((uint64_t)1 << 30)

struct bench {
	int rank, size;
	float *src, *dst;
	int *counts, *places; /* of blocks, by rank */
	int *got, *got_places;
	int64_t *times, *slowest;
	int64_t begin_ns, budget_ns;
	int left;	     /* measurements */
	volatile float seen; /* so that the looks are not left out */
};

struct operation {
	const char *name;
	int sized;
	int (*call)(struct bench *b, int count);
	int gives_all, takes_all; /* a block for each rank, or of each */
	int one_buffer;		  /* what is given lies where it is taken */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int at_sample(int count, int k)
{
	return (int)((int64_t)(count - 1) * k / (SAMPLES - 1));
}

static void block_fill(float *block, int count, float value)
{
	if ((size_t)count * sizeof(float) > WHOLE_MOST) {
		for (int k = 0; k < SAMPLES; k++)
			block[at_sample(count, k)] = value + (float)k;
		return;
	}
	for (int i = 0; i < count; i++)
		block[i] = value + (float)i;
}

/* New data, and a result that is none. */
static void data_prepare(struct bench *b, const struct operation *op, int count,
			 int round)
{
	for (int r = 0; r < (op->takes_all ? b->size : 1); r++)
		block_fill(b->dst + (size_t)r * (size_t)count, count, -1.0F);
	for (int r = 0; r < (op->gives_all ? b->size : 1) && !op->one_buffer; r++)
		block_fill(b->src + (size_t)r * (size_t)count, count, (float)round);
	if (op->one_buffer && b->rank == 0)
		block_fill(b->dst, count, (float)round);
}

/* All of it, once for each measurement, as weft perf has it: a page that nobody has
 * written is the kernel's one page of zeros, which who reads it has in its cache. */
static void data_write(struct bench *b, const struct operation *op, int count)
{
	const size_t gives = (size_t)count * (size_t)(op->gives_all ? b->size : 1);
	const size_t takes = (size_t)count * (size_t)(op->takes_all ? b->size : 1);

	for (size_t i = 0; i < gives; i++)
		b->src[i] = (float)(i % 251);
	for (size_t i = 0; i < takes; i++)
		b->dst[i] = (float)(i % 241);
}

static float data_look(const struct bench *b, const struct operation *op, int count)
{
	const int whole = (size_t)count * sizeof(float) <= WHOLE_MOST;
	float sum = 0;

	for (int r = 0; r < (op->takes_all ? b->size : 1); r++) {
		const float *block = b->dst + (size_t)r * (size_t)count;

		for (int k = 0; k < (whole ? count : SAMPLES); k++)
			sum += block[whole ? k : at_sample(count, k)];
	}
	return sum;
}

static int barrier_call(struct bench *b, int count)
{
	(void)b, (void)count;
	return MPI_Barrier(MPI_COMM_WORLD);
}

static int broadcast_call(struct bench *b, int count)
{
	return MPI_Bcast(b->dst, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static int allgather_call(struct bench *b, int count)
{
	return MPI_Allgather(b->src, count, MPI_FLOAT, b->dst, count, MPI_FLOAT,
			     MPI_COMM_WORLD);
}

static int allreduce_call(struct bench *b, int count)
{
	return MPI_Allreduce(b->src, b->dst, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int reduce_scatter_call(struct bench *b, int count)
{
	return MPI_Reduce_scatter_block(b->src, b->dst, count, MPI_FLOAT, MPI_SUM,
					MPI_COMM_WORLD);
}

static int alltoall_call(struct bench *b, int count)
{
	return MPI_Alltoall(b->src, count, MPI_FLOAT, b->dst, count, MPI_FLOAT,
			    MPI_COMM_WORLD);
}

static int reduce_call(struct bench *b, int count)
{
	return MPI_Reduce(b->src, b->dst, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static int gather_call(struct bench *b, int count)
{
	return MPI_Gather(b->src, count, MPI_FLOAT, b->dst, count, MPI_FLOAT, 0,
			  MPI_COMM_WORLD);
}

static int scatter_call(struct bench *b, int count)
{
	return MPI_Scatter(b->src, count, MPI_FLOAT, b->dst, count, MPI_FLOAT, 0,
			   MPI_COMM_WORLD);
}

static int allgatherv_call(struct bench *b, int count)
{
	return MPI_Allgatherv(b->src, count, MPI_FLOAT, b->dst, b->counts, b->places,
			      MPI_FLOAT, MPI_COMM_WORLD);
}

static int reduce_scatterv_call(struct bench *b, int count)
{
	(void)count;
	return MPI_Reduce_scatter(b->src, b->dst, b->counts, MPI_FLOAT, MPI_SUM,
				  MPI_COMM_WORLD);
}

static int alltoallv_call(struct bench *b, int count)
{
	(void)count;
	return MPI_Alltoallv(b->src, b->counts, b->places, MPI_FLOAT, b->dst, b->counts,
			     b->places, MPI_FLOAT, MPI_COMM_WORLD);
}

static int alltoallv_dynamic_call(struct bench *b, int count)
{
	int rc = MPI_Alltoall(b->counts, 1, MPI_INT, b->got, 1, MPI_INT, MPI_COMM_WORLD);

	for (int r = 0, at = 0; r < b->size && rc == MPI_SUCCESS; at += count, r++)
		b->got_places[r] = at;
	if (rc != MPI_SUCCESS)
		return rc;
	return MPI_Alltoallv(b->src, b->counts, b->places, MPI_FLOAT, b->dst, b->got,
			     b->got_places, MPI_FLOAT, MPI_COMM_WORLD);
}

static int gatherv_call(struct bench *b, int count)
{
	return MPI_Gatherv(b->src, count, MPI_FLOAT, b->dst, b->counts, b->places,
			   MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static int scatterv_call(struct bench *b, int count)
{
	return MPI_Scatterv(b->src, b->counts, b->places, MPI_FLOAT, b->dst, count,
			    MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static const struct operation operation_table[] = {
	{"barrier", 0, barrier_call, 0, 0, 0},
	{"broadcast", 1, broadcast_call, 0, 0, 1},
	{"allgather", 1, allgather_call, 0, 1, 0},
	{"allreduce", 1, allreduce_call, 0, 0, 0},
	{"reduce_scatter", 1, reduce_scatter_call, 1, 0, 0},
	{"alltoall", 1, alltoall_call, 1, 1, 0},
	{"reduce", 1, reduce_call, 0, 0, 0},
	{"gather", 1, gather_call, 0, 1, 0},
	{"scatter", 1, scatter_call, 1, 0, 0},
	{NULL, 0, NULL, 0, 0, 0},
};

static const struct operation counted_table[] = {
	{"allgatherv", 1, allgatherv_call, 0, 1, 0},
	{"reduce_scatterv", 1, reduce_scatterv_call, 1, 0, 0},
	{"alltoallv", 1, alltoallv_call, 1, 1, 0},
	{"alltoallv_dynamic", 1, alltoallv_dynamic_call, 1, 1, 0},
	{"gatherv", 1, gatherv_call, 0, 1, 0},
	{"scatterv", 1, scatterv_call, 1, 0, 0},
	{NULL, 0, NULL, 0, 0, 0},
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* How many calls come next, by what those so far have taken; rank 0 decides. */
static int batch_agree(struct bench *b, int done, int64_t took, int64_t budget)
{
	int64_t n = CALLS_MOST - done;
	int batch;

	if (done == 0)
		n = CALLS_LEAST;
	else if (took >= budget)
		n = 0;
	else if (n > (budget - took) * done / (took + 1))
		n = (budget - took) * done / (took + 1);
	if (done > 0 && n > done)
		n = done;
	batch = (int)n;
	(void)b;
	MPI_Bcast(&batch, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return batch;
}

static void measure(struct bench *b, const struct operation *op, int count)
{
	int64_t begin = now_ns(), call_begin;
	int64_t budget = (b->budget_ns - (begin - b->begin_ns)) / b->left--;
	int done = 0, batch;

	for (int r = 0; r < b->size; r++) {
		b->counts[r] = count;
		b->places[r] = r * count;
	}
	data_write(b, op, count);
	op->call(b, count); /* connections and buffers of the library */
	while ((batch = batch_agree(b, done, now_ns() - begin, budget)) > 0) {
		for (int end = done + batch; done < end; done++) {
			if (op->sized)
				data_prepare(b, op, count, done);
			MPI_Barrier(MPI_COMM_WORLD);
			call_begin = now_ns();
			op->call(b, count);
			b->times[done] = now_ns() - call_begin;
			if (op->sized)
				b->seen += data_look(b, op, count);
		}
	}
	MPI_Reduce(b->times, b->slowest, done, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (b->rank != 0)
		return;
	qsort(b->slowest, (size_t)done, sizeof(b->slowest[0]), by_value);
	printf("%s %llu %.4f %.4f %d\n", op->name,
	       (unsigned long long)count * sizeof(float),
	       (double)(b->slowest[(done - 1) / 2] + b->slowest[done / 2]) / 2e3,
	       (double)b->slowest[(done * 99 + 99) / 100 - 1] / 1e3, done);
	fflush(stdout);
}

/* Element counts, none twice; returns how many. */
static int counts_make(uint64_t first, uint64_t last, int counts[SIZES_MOST])
{
	int n = 0;

	counts[n++] = (int)((first + sizeof(float) - 1) / sizeof(float));
	for (uint64_t bytes = first * 4; bytes < last * 4; bytes *= 4) {
		int count = (int)((bytes < last ? bytes : last) / sizeof(float));

		if (count > counts[n - 1] && n < SIZES_MOST)
			counts[n++] = count;
	}
	return n;
}

static int number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && *value > 0 &&
	       *value <= most;
}

static void operations_measure(struct bench *b, const struct operation *table,
			       const int *counts, int sizes)
{
	for (const struct operation *op = table; op->name; op++)
		b->left += op->sized ? sizes : 1;
	for (const struct operation *op = table; op->name; op++)
		for (int s = 0; s < (op->sized ? sizes : 1); s++)
			measure(b, op, op->sized ? counts[s] : 0);
}

int main(int argc, char **argv)
{
	const int counted = argc == 5 && strcmp(argv[4], "allv") == 0;
	uint64_t first, last, ms;
	int counts[SIZES_MOST], sizes;
	struct bench b = {0};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.size);
	if ((argc != 4 && !counted) || !number(argv[1], LAST_MOST, &first) ||
	    !number(argv[2], LAST_MOST, &last) || !number(argv[3], 3600000, &ms)) {
		fprintf(stderr, "usage: coll_mpi FIRST LAST BUDGET_MS [allv]\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	b.src = calloc((size_t)b.size, last + sizeof(float));
	b.dst = calloc((size_t)b.size, last + sizeof(float));
	b.times = calloc(CALLS_MOST, sizeof(*b.times));
	b.slowest = calloc(CALLS_MOST, sizeof(*b.slowest));
	b.counts = calloc((size_t)b.size * 4, sizeof(*b.counts));
	if (!b.src || !b.dst || !b.times || !b.slowest || !b.counts) {
		fprintf(stderr, "coll_mpi: no memory for %d x %llu bytes\n", 2 * b.size,
			(unsigned long long)last);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	b.places = b.counts + b.size;
	b.got = b.places + b.size;
	b.got_places = b.got + b.size;
	sizes = counts_make(first, last, counts);
	b.begin_ns = now_ns();
	b.budget_ns = (int64_t)ms * 1000000;
	operations_measure(&b, counted ? counted_table : operation_table, counts, sizes);
	free(b.counts);
	free(b.src);
	free(b.dst);
	free(b.times);
	free(b.slowest);
	MPI_Finalize();
	return 0;
}
