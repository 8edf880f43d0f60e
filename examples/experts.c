/* SPDX-License-Identifier: BSD-2-Clause */
/* A mixture of experts: each rank is one. Tokens go to the expert that a router chose for
 * them, and come back to where they were; how many go where is known only at run time. */
#include "check.h"

enum { TOKENS = 8, WIDTH = 16 };

/* Which expert a token goes to; where a router would be. */
static int32_t choose(int32_t rank, int token, int32_t size)
{
	return (rank + token * token) % size;
}

/* What an expert makes of a token. */
static float worked(float value, int32_t expert)
{
	return 2 * value + (float)expert;
}

/* Counts, the tokens for each expert in turn, and the same as places: what comes back
 * from expert e, k-th, goes to back[e * TOKENS + k]. */
static void route(int32_t rank, int32_t size, uint64_t *counts, uint64_t *list,
		  uint64_t *back)
{
	uint64_t n = 0;

	for (int32_t expert = 0; expert < size; expert++) {
		counts[expert] = 0;
		for (int token = 0; token < TOKENS; token++) {
			if (choose(rank, token, size) != expert)
				continue;
			back[expert * TOKENS + (int)counts[expert]++] = (uint64_t)token;
			list[n++] = (uint64_t)token;
		}
		if (counts[expert] < TOKENS)
			back[expert * TOKENS + (int)counts[expert]] = WEFT_BLOCK_NONE;
	}
}

int main(void)
{
	struct weft_dynamic dispatch = WEFT_DYNAMIC_INIT, combine = WEFT_DYNAMIC_INIT;
	struct weft_counts sent = {0}, returned = {0};
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	float token[TOKENS][WIDTH], result[TOKENS][WIDTH], *inbox;
	uint64_t *counts, *came, *places, *back, *again, list[TOKENS];
	int32_t rank, size;
	int bad = 0;

	check("open", weft_ctx_open(NULL, &ctx));
	check("communicator", weft_comm_create(ctx, NULL, &comm));
	rank = weft_comm_rank(comm);
	size = weft_comm_size(comm);
	inbox = room((size_t)size * TOKENS * WIDTH, sizeof(*inbox));
	counts = room((size_t)size, sizeof(*counts));
	came = room((size_t)size, sizeof(*came));
	again = room((size_t)size, sizeof(*again));
	places = room((size_t)size, sizeof(*places));
	back = room((size_t)size * TOKENS, sizeof(*back));
	for (int i = 0; i < TOKENS * WIDTH; i++)
		token[i / WIDTH][i % WIDTH] = (float)(rank * 1000 + i);
	route(rank, size, counts, list, back);

	/* Out: tokens by their numbers, where they lie. In: those of rank r from block
	 * r * TOKENS on, and how many there are in came[r]. */
	sent.counts = counts;
	dispatch.max_count = TOKENS;
	dispatch.block = WIDTH;
	dispatch.send_blocks = list;
	dispatch.recv_counts = came;
	check("dispatch",
	      weft_alltoallv_dynamic(comm, token, (uint64_t)TOKENS * WIDTH, &sent, inbox,
				     (uint64_t)size * TOKENS * WIDTH, &dispatch,
				     WEFT_FP32, NULL));
	for (int32_t from = 0; from < size; from++) {
		float *first = inbox + (size_t)from * TOKENS * WIDTH;

		for (uint64_t i = 0; i < came[from] * WIDTH; i++)
			first[i] = worked(first[i], rank);
		places[from] = (uint64_t)from * TOKENS;
	}

	/* And back: from where they came in, to the places that they had. */
	returned.counts = came;
	returned.displacements = places;
	combine.max_count = TOKENS;
	combine.block = WIDTH;
	combine.recv_blocks = back;
	combine.recv_counts = again;
	check("combine",
	      weft_alltoallv_dynamic(comm, inbox, (uint64_t)size * TOKENS * WIDTH,
				     &returned, result, (uint64_t)TOKENS * WIDTH,
				     &combine, WEFT_FP32, NULL));
	for (int i = 0; i < TOKENS * WIDTH; i++)
		bad += result[i / WIDTH][i % WIDTH] !=
		       worked((float)(rank * 1000 + i), choose(rank, i / WIDTH, size));

	check("sum of errors",
	      weft_allreduce(comm, &bad, &bad, 1, WEFT_INT32, WEFT_SUM, NULL));
	if (rank == 0) {
		printf("%d ranks, %d tokens each; for the experts from rank 0:", size,
		       TOKENS);
		for (int32_t i = 0; i < size; i++)
			printf(" %d", (int)counts[i]);
		printf("; %d values wrong\n", bad);
	}
	check("destroy", weft_comm_destroy(comm));
	check("close", weft_ctx_close(ctx));
	free(inbox);
	free(counts);
	free(came);
	free(again);
	free(places);
	free(back);
	return bad != 0;
}
