/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank of bench/startup: from the start of the job (WEFT_BENCH_BEGIN, nanoseconds of
 * the clock of the day) to the end of its first all-reduce. Rank 0 prints one line: the
 * slowest rank's milliseconds until its program ran, its context was open and the result
 * was there; and messages of a rank, the mean and the most.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/say.h"
#include "weft/weft.h"

static void need(enum weft_result result, const char *what)
{
	if (result != WEFT_SUCCESS)
		bench_die("%s: %s: %s", what, weft_strerror(result), weft_error_detail());
}

/* Milliseconds since the job began. */
static double since(uint64_t begin)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ((double)ts.tv_sec * 1e9 + (double)ts.tv_nsec - (double)begin) * 1e-6;
}

static double messages(struct weft_ctx *ctx)
{
	struct weft_stats s = {.size = sizeof(s)};

	need(weft_ctx_stats(ctx, &s), "counters");
	return (double)(s.msgs + s.puts + s.readys);
}

int main(void)
{
	const char *text = getenv("WEFT_BENCH_BEGIN");
	const uint64_t begin = text ? strtoull(text, NULL, 10) : 0;
	double own[4], most[4], mean;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	uint32_t one = 1, sum = 0;

	own[0] = since(begin);
	need(weft_ctx_open(NULL, &ctx), "open");
	own[1] = since(begin);
	need(weft_comm_create(ctx, NULL, &comm), "communicator");
	need(weft_allreduce(comm, &one, &sum, 1, WEFT_UINT32, WEFT_SUM, NULL),
	     "all-reduce");
	own[2] = since(begin);
	own[3] = messages(ctx);
	if (sum != (uint32_t)weft_comm_size(comm))
		bench_die("the sum is %u", sum);
	need(weft_allreduce(comm, own, most, 4, WEFT_FP64, WEFT_MAX, NULL), "times");
	need(weft_allreduce(comm, &own[3], &mean, 1, WEFT_FP64, WEFT_AVG, NULL), "mean");
	if (weft_comm_rank(comm) == 0)
		printf("%d %.1f %.1f %.1f %.2f %.0f\n", weft_comm_size(comm), most[0],
		       most[1], most[2], mean, most[3]);
	need(weft_comm_destroy(comm), "destroy");
	need(weft_ctx_close(ctx), "close");
	return 0;
}
