/* SPDX-License-Identifier: BSD-2-Clause */
/* The sum of an array over all ranks: by a call that waits, by one that goes on while the
 * program computes, and by one that is made once and started often. */
#include "check.h"

enum { COUNT = 100000, ROUNDS = 5 };

/* Elements of sum that are not what ranks 0 to size - 1 make together. */
static int wrong(const float *sum, int32_t size, int round)
{
	int n = 0;

	for (int i = 0; i < COUNT; i++) {
		float want = (float)(size * (i % 100 + round) + size * (size - 1) / 2);

		n += sum[i] != want;
	}
	return n;
}

static void fill(float *mine, int32_t rank, int round)
{
	for (int i = 0; i < COUNT; i++)
		mine[i] = (float)(i % 100 + round + rank);
}

int main(void)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	struct weft_req *req;
	float *mine = room(COUNT, sizeof(*mine)), *sum = room(COUNT, sizeof(*sum));
	double work = 0;
	int32_t rank, size;
	int bad;

	opts.progress = WEFT_PROGRESS_THREAD;
	check("open", weft_ctx_open(&opts, &ctx));
	check("communicator", weft_comm_create(ctx, NULL, &comm));
	rank = weft_comm_rank(comm);
	size = weft_comm_size(comm);

	fill(mine, rank, 0);
	check("all-reduce",
	      weft_allreduce(comm, mine, sum, COUNT, WEFT_FP32, WEFT_SUM, NULL));
	bad = wrong(sum, size, 0);

	fill(mine, rank, 1);
	check("start", weft_allreduce_start(comm, mine, sum, COUNT, WEFT_FP32, WEFT_SUM,
					    NULL, &req));
	for (int i = 1; i < 100000; i++) /* neither mine nor sum may be touched here */
		work += 1.0 / i;
	check("wait", weft_req_wait(req, WEFT_TIMEOUT_DEFAULT));
	bad += wrong(sum, size, 1);

	check("init", weft_allreduce_init(comm, mine, sum, COUNT, WEFT_FP32, WEFT_SUM,
					  NULL, &req));
	for (int round = 0; round < ROUNDS; round++) {
		fill(mine, rank, round);
		check("start again", weft_req_start(req));
		check("wait", weft_req_wait(req, WEFT_TIMEOUT_DEFAULT));
		bad += wrong(sum, size, round);
	}
	check("free", weft_req_free(req));

	if (rank == 0 && work > 0)
		printf("%d ranks, %d sums, %d wrong\n", size, ROUNDS + 2, bad);
	check("destroy", weft_comm_destroy(comm));
	check("close", weft_ctx_close(ctx));
	free(mine);
	free(sum);
	return bad != 0;
}
