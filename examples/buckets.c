/* SPDX-License-Identifier: BSD-2-Clause */
/* Training with data on every rank: gradients of layers become known from the last layer
 * to the first, and are averaged over the ranks while those of earlier layers are
 * computed. */
#include "check.h"

enum { LAYERS = 12, STEPS = 10 };

static const uint64_t width[LAYERS] = {64,    4096, 4096, 128, 9000, 300,
				       20000, 50,   4096, 700, 4096, 10};

/* A gradient that is easily averaged by hand; where the arithmetic of a network would be.
 */
static void backward(float *gradient, int layer, int step, int32_t rank)
{
	for (uint64_t i = 0; i < width[layer]; i++)
		gradient[i] = (float)(layer + step + 2 * rank);
}

int main(void)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_bucket_opts bucket_opts = WEFT_BUCKET_OPTS_INIT;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	struct weft_bucket *bucket;
	struct weft_buf piece[LAYERS];
	float *gradient[LAYERS];
	int32_t rank, size;
	int bad = 0;

	opts.progress = WEFT_PROGRESS_THREAD; /* it reduces while the program computes */
	check("open", weft_ctx_open(&opts, &ctx));
	check("communicator", weft_comm_create(ctx, NULL, &comm));
	rank = weft_comm_rank(comm);
	size = weft_comm_size(comm);

	/* In the order in which they become ready: piece 0 is the last layer. */
	for (int layer = 0; layer < LAYERS; layer++) {
		gradient[layer] = room(width[layer], sizeof(float));
		piece[LAYERS - 1 - layer] = (struct weft_buf){
			.addr = gradient[layer],
			.count = width[layer],
			.type = WEFT_FP32,
		};
	}
	bucket_opts.bytes = 65536;
	check("buckets",
	      weft_bucket_create(comm, piece, LAYERS, WEFT_AVG, &bucket_opts, &bucket));

	for (int step = 0; step < STEPS; step++) {
		for (int layer = LAYERS - 1; layer >= 0; layer--) {
			backward(gradient[layer], layer, step, rank);
			check("ready",
			      weft_bucket_ready(bucket, (uint32_t)(LAYERS - 1 - layer)));
		}
		check("wait", weft_bucket_wait(bucket));
		for (int layer = 0; layer < LAYERS; layer++)
			for (uint64_t i = 0; i < width[layer]; i++)
				bad += gradient[layer][i] !=
				       (float)(layer + step + size - 1);
	}
	if (rank == 0)
		printf("%d ranks, %d steps: %d layers in %u all-reduces each, %d values "
		       "wrong\n",
		       size, STEPS, LAYERS, weft_bucket_calls(bucket), bad);
	check("destroy buckets", weft_bucket_destroy(bucket));
	check("destroy", weft_comm_destroy(comm));
	check("close", weft_ctx_close(ctx));
	for (int layer = 0; layer < LAYERS; layer++)
		free(gradient[layer]);
	return bad != 0;
}
