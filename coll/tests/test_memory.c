/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of weft_mem_alloc: collectives in it and in parts of it, one registration for
 * all of them, freeing in use and twice, and a context that is closed with memory left.
 * Over Weft's own provider the memory is shared, over others it is ordinary.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/tests/ranks.h"
#include "util/tap.h"

#define RANKS 3
#define COUNT (1 << 18) /* elements of the largest call */

struct job {
	const char *provider;
};

static int wrong(struct ranks *r, const char *what, enum weft_result got)
{
	return ranks_say(r, "%s: result %d (%s)", what, (int)got, weft_error_detail());
}

/* Sums numbers of all ranks in parts of two allocations. */
static int sums(struct ranks *r, struct weft_comm *comm, int32_t *src, int32_t *dst)
{
	static const uint64_t counts[] = {1, 1000, 33333, COUNT};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const uint64_t n = counts[i], off = COUNT - n;
		enum weft_result result;

		for (uint64_t k = 0; k < n; k++)
			src[off + k] = (int32_t)(k * 7) + r->rank;
		memset(dst, 0xff, COUNT * sizeof(*dst));
		result = weft_allreduce(comm, src + off, dst + off, n, WEFT_INT32,
					WEFT_SUM, NULL);
		if (result != WEFT_SUCCESS)
			return wrong(r, "allreduce", result);
		for (uint64_t k = 0; k < n; k++)
			if (dst[off + k] != RANKS * (int32_t)(k * 7) + 3)
				return ranks_say(r, "element %llu of %llu is wrong",
						 (unsigned long long)k,
						 (unsigned long long)n);
		for (uint64_t k = 0; k < off; k++)
			if (dst[k] != -1)
				return ranks_say(r, "written outside of the part");
	}
	return RANKS_GOOD;
}

/* Freed while a request runs: refused, and good afterwards. */
static int busy(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm, void *src,
		void *dst)
{
	enum weft_result result;
	struct weft_req *req;

	result = weft_allreduce_start(comm, src, dst, COUNT, WEFT_INT32, WEFT_SUM, NULL,
				      &req);
	if (result != WEFT_SUCCESS)
		return wrong(r, "start", result);
	result = weft_mem_free(ctx, dst);
	if (result == WEFT_SUCCESS)
		return wrong(r, "free of memory in use", result);
	if (result != WEFT_ERR_BUSY)
		return wrong(r, "free of memory in use", result);
	result = weft_req_wait(req, WEFT_TIMEOUT_DEFAULT);
	return result == WEFT_SUCCESS ? RANKS_GOOD : wrong(r, "wait", result);
}

static int frees(struct ranks *r, struct weft_ctx *ctx, void *src, void *dst)
{
	if (weft_mem_free(ctx, (char *)src + 8) != WEFT_ERR_ARG)
		return ranks_say(r, "freed from the middle");
	for (int i = 0; i < 2; i++) {
		enum weft_result result = weft_mem_free(ctx, i ? dst : src);

		if (result != WEFT_SUCCESS)
			return wrong(r, "free", result);
		if (weft_mem_free(ctx, i ? dst : src) != WEFT_ERR_ARG)
			return ranks_say(r, "freed twice");
	}
	return RANKS_GOOD;
}

static int rounds(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_stats first = {.size = sizeof(first)}, last = {.size = sizeof(last)};
	void *src, *dst;

	if (weft_mem_alloc(ctx, 0, &src) != WEFT_ERR_ARG)
		return ranks_say(r, "no bytes were allocated");
	for (int round = 0; round < 3; round++) {
		enum weft_result result = weft_mem_alloc(ctx, COUNT * 4, &src);

		if (result == WEFT_SUCCESS)
			result = weft_mem_alloc(ctx, COUNT * 4, &dst);
		if (result != WEFT_SUCCESS)
			return wrong(r, "alloc", result);
		if (((int32_t *)dst)[COUNT - 1])
			return ranks_say(r, "not zeroed");
		if (sums(r, comm, src, dst) || weft_ctx_stats(ctx, &first) ||
		    sums(r, comm, src, dst) || weft_ctx_stats(ctx, &last))
			return RANKS_BAD;
		if (first.handles != last.handles)
			return ranks_say(r, "registered anew: %llu handles, then %llu",
					 (unsigned long long)first.handles,
					 (unsigned long long)last.handles);
		if (busy(r, ctx, comm, src, dst) ||
		    weft_barrier(comm, NULL) != WEFT_SUCCESS)
			return RANKS_BAD;
		if (round < 2 && frees(r, ctx, src, dst))
			return RANKS_BAD;
	}
	return RANKS_GOOD;
}

static int body(struct ranks *r)
{
	const struct job *job = r->arg;
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	enum weft_result result;
	int bad = ranks_open(r, job->provider, 20000000, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (rounds(r, ctx, comm))
		return RANKS_BAD;
	result = weft_comm_destroy(comm);
	if (result == WEFT_SUCCESS)
		result = weft_ctx_close(ctx); /* with memory left */
	return result == WEFT_SUCCESS ? RANKS_GOOD : wrong(r, "close", result);
}

int main(void)
{
	char names[8][32];
	int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		struct job job = {.provider = names[i]};
		int end[RANKS_MAX];
		bool good = ranks_run(RANKS, 60, body, &job, end);

		if (end[0] == RANKS_ABSENT)
			tap_skip(1, "no provider %s", names[i]);
		else
			tap_ok(good, "%s: collectives in memory of weft_mem_alloc",
			       names[i]);
	}
	return tap_done();
}
