/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels that put and signal: two ranks are two blocks of one launch. Device-side calls as
 * an application writes them.
 */
#include "weft/weft_device.cuh"

#if defined(__clang__)
#define __global__ __attribute__((global))
#endif

#define LIMIT 10000000000ull /* ns */

static __device__ uint32_t thread_of(void)
{
	uint32_t v;

	asm("mov.u32 %0, %%tid.x;" : "=r"(v));
	return v;
}

static __device__ uint32_t block_of(void)
{
	uint32_t v;

	asm("mov.u32 %0, %%ctaid.x;" : "=r"(v));
	return v;
}

static __device__ uint32_t blocks_of(void)
{
	uint32_t v;

	asm("mov.u32 %0, %%nctaid.x;" : "=r"(v));
	return v;
}

/* The pattern of a rank, of a round. */
static __device__ uint8_t byte_of(uint32_t rank, uint32_t round, uint32_t i)
{
	return (uint8_t)(i * 13 + round * 5 + rank * 101 + 3);
}

/* Which bytes differ: counted into wrong by whoever finds one. */
static __device__ int differ(struct weft_dev_group g, const uint8_t *p, uint32_t len,
			     uint32_t rank, uint32_t round)
{
	int wrong = 0;

	for (uint32_t i = g.lane; i < len; i += g.lanes)
		wrong += p[i] != byte_of(rank, round, i);
	return wrong;
}

/* Every call, by a thread, a warp or a block a rank. bad[rank]: the number of the first
 * step that went wrong. */
static __device__ int calls(const struct weft_dev_ctx *ctx, const struct weft_dev_win *win,
			    uint32_t round, uint32_t scope)
{
	const struct weft_dev_group g = weft_dev_group(scope);
	const uint32_t rank = ctx->rank, peer = rank ^ 1, len = 1000 + round * 37;
	const struct weft_dev_win *mine = &win[0], *theirs = &win[1];
	struct weft_dev_action action = {1, 0, 0}, counted = {0, 0, 1};
	uint8_t *a = (uint8_t *)mine->base, *b = (uint8_t *)theirs->base;
	const uint32_t at = 1 + round;

	for (uint32_t i = g.lane; i < len; i += g.lanes)
		a[at + i] = byte_of(rank, round, i);
	if (weft_dev_put(ctx, peer, theirs, at, mine, at, len, action, LIMIT, scope))
		return 1;
	if (weft_dev_signal_wait(ctx, 0, round + 1, LIMIT, scope))
		return 2;
	if (differ(g, b + at, len, peer, round))
		return 3;
	if (weft_dev_counter_wait(ctx, 0, round + 1, LIMIT, scope))
		return 4;
	action.signal = 1, action.add = 5, action.counter = WEFT_DEV_NO_COUNTER;
	if (weft_dev_put_value(ctx, peer, theirs, 4096, 0x1122334455667788ull + round + rank,
			       8, action, LIMIT, scope) ||
	    weft_dev_signal_wait(ctx, 1, 5ull * (round + 1), LIMIT, scope))
		return 5;
	if (*(const uint64_t *)(const void *)(b + 4096) !=
	    0x1122334455667788ull + round + peer)
		return 6;
	if (weft_dev_get(ctx, peer, theirs, 8192 + at, mine, at, len, counted, LIMIT,
			 scope) ||
	    weft_dev_flush(ctx, LIMIT, scope) ||
	    weft_dev_counter_wait(ctx, 1, round + 1, LIMIT, scope))
		return 7;
	if (differ(g, b + 8192 + at, len, peer, round))
		return 8;
	if (weft_dev_signal_wait(ctx, 2, 1, 1000, scope) != WEFT_DEV_TIMEOUT)
		return 9;
	if (weft_dev_put(ctx, 2, theirs, 0, mine, 0, 8, weft_dev_none(), LIMIT, scope) !=
	    WEFT_DEV_REFUSED)
		return 10;
	return weft_dev_barrier(ctx, LIMIT, scope) ? 11 : 0;
}

/* ctx[2], win[2][2]: by rank. */
extern "C" __global__ void device_calls(const struct weft_dev_ctx *ctx,
					const struct weft_dev_win *win, uint32_t rounds,
					uint32_t scope, int *bad)
{
	const uint32_t rank = block_of();

	if (scope == WEFT_DEV_THREAD && thread_of())
		return;
	for (uint32_t k = 0; k < rounds; k++) {
		const int step = calls(&ctx[rank], &win[2 * rank], k, scope);

		if (step) {
			bad[rank] = step;
			return;
		}
	}
}

/* bytes and a signal there and back: ns of each round. */
extern "C" __global__ void device_pingpong(const struct weft_dev_ctx *ctx,
					   const struct weft_dev_win *win, uint32_t rounds,
					   uint64_t bytes, uint64_t *ns, int *bad)
{
	const uint32_t rank = block_of();
	const struct weft_dev_ctx *c = &ctx[rank];
	const struct weft_dev_win *w = &win[2 * rank];
	const uint64_t before = weft_dev_signal_read(c, 0);

	for (uint32_t k = 1; k <= rounds; k++) {
		const uint64_t start = weft_dev_clock();
		int status = 0;

		if (rank == 1)
			status = weft_dev_signal_wait(c, 0, before + k, LIMIT, WEFT_DEV_THREAD);
		if (status == 0)
			status = weft_dev_put(c, rank ^ 1, &w[1], 0, &w[0], 0, bytes,
					      weft_dev_inc(0), LIMIT, WEFT_DEV_THREAD);
		if (status == 0 && rank == 0)
			status = weft_dev_signal_wait(c, 0, before + k, LIMIT, WEFT_DEV_THREAD);
		if (status) {
			bad[rank] = status;
			return;
		}
		if (rank == 0)
			ns[k - 1] = weft_dev_clock() - start;
	}
}

/* Descriptors as fast as all threads put them in. */
extern "C" __global__ void device_pour(const struct weft_dev_ctx *ctx,
				       const struct weft_dev_win *win, uint32_t each,
				       int *bad)
{
	for (uint32_t k = 0; k < each; k++) {
		const int status = weft_dev_put_value(&ctx[0], 1, &win[1], 0, k, 8,
						      weft_dev_none(), LIMIT,
						      WEFT_DEV_THREAD);
		if (status) {
			bad[0] = status;
			return;
		}
	}
}

/* Direct puts: every block its own part of the window. */
extern "C" __global__ void device_stream(const struct weft_dev_ctx *ctx,
					 const struct weft_dev_win *win, uint64_t bytes,
					 uint32_t rounds, uint32_t scope, int *bad)
{
	const uint64_t part = win[0].len / blocks_of() / 4096 * 4096;
	const uint64_t at = part * block_of();

	for (uint32_t k = 0; k < rounds; k++) {
		const uint64_t off = at + (uint64_t)k * bytes % (part - bytes + 1) / 16 * 16;
		const int status = weft_dev_put(&ctx[0], 1, &win[1], off, &win[0], off, bytes,
						weft_dev_inc(0), LIMIT, scope);
		if (status) {
			bad[0] = status;
			return;
		}
	}
}
