/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts: opening, closing, counters. */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"
#include "coll/comm/stats.h"
#include "coll/exec/lines_mem.h"
#include "coll/exec/nodes.h"
#include "coll/trace/armed.h"
#include "coll/trace/recorder.h"

#define CTX_TIMEOUT_US INT64_C(60000000)

static enum weft_result ctx_opts_check(const struct weft_ctx_opts *opts)
{
	if (opts->size < offsetof(struct weft_ctx_opts, progress))
		return error_set(WEFT_ERR_ARG,
				 "weft_ctx_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_CTX_OPTS_INIT",
				 opts->size, offsetof(struct weft_ctx_opts, progress));
	if (opts->flags)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_ctx_opts.flags is 0x%llx, no flag is defined",
				 (unsigned long long)opts->flags);
	if (opts->timeout_us < WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_ctx_opts.timeout_us is %lld",
				 (long long)opts->timeout_us);
	if (opts->boot && (!opts->boot->allgather || opts->boot->size < 1 ||
			   opts->boot->rank < 0 || opts->boot->rank >= opts->boot->size))
		return error_set(WEFT_ERR_ARG, "weft_ctx_opts.boot has rank %d of %d%s",
				 opts->boot->rank, opts->boot->size,
				 opts->boot->allgather ? "" : " and no allgather");
	return WEFT_SUCCESS;
}

/* Nobody else has the context yet. */
LOCK_UNSEEN
static enum weft_result ctx_start(struct weft_ctx *ctx, const struct weft_ctx_opts *opts,
				  const struct net_attr *net,
				  const struct progress_attr *progress)
{
	struct boot_attr attr = {.callbacks = opts->boot, .timeout_us = ctx->timeout_us};
	enum weft_result result = boot_open(&attr, &ctx->boot);

	if (result != WEFT_SUCCESS)
		return result;
	result = exec_open(net, ctx->boot, ctx->timeout_us, &ctx->exec);
	if (result == WEFT_SUCCESS) {
		const char *folder = getenv("WEFT_TRACE");

		if (folder && *folder)
			result = armed_add(exec_trace(ctx->exec), folder);
		if (result == WEFT_SUCCESS)
			result = stats_open(ctx, &ctx->stats);
		if (result == WEFT_SUCCESS)
			result = progress_open(ctx, progress, &ctx->progress);
		if (result != WEFT_SUCCESS) {
			stats_close(ctx->stats);
			exec_close(ctx->exec);
		}
	}
	if (result != WEFT_SUCCESS)
		boot_close(ctx->boot);
	return result;
}

enum weft_result ctx_open(const struct weft_ctx_opts *opts, const struct net_attr *net,
			  struct weft_ctx **out)
{
	struct weft_ctx *ctx = calloc(1, sizeof(*ctx));
	struct progress_attr progress;
	struct net_attr attr = *net;
	enum lines_wish lines = LINES_AUTO;
	enum weft_result result;

	if (!ctx)
		return error_set(WEFT_ERR_NOMEM, "no memory for a context");
	ctx->timeout_us = opts->timeout_us ? opts->timeout_us : CTX_TIMEOUT_US;
	pthread_mutex_init(&ctx->lock, NULL);
	result = progress_read(opts, &progress);
	if (result == WEFT_SUCCESS)
		result = force_read(getenv("WEFT_ALGO"), ctx->force);
	if (result == WEFT_SUCCESS)
		result = nodes_read(getenv("WEFT_NODES"), &attr.node_ranks);
	if (result == WEFT_SUCCESS)
		result = lines_read(getenv("WEFT_LINES"), &lines);
	if (attr.lines == LINES_AUTO)
		attr.lines = (uint8_t)lines;
	if (result == WEFT_SUCCESS)
		result = tune_open(getenv("WEFT_TUNE"), &ctx->tune);
	attr.choices = ctx->tune ? ctx->tune->hash : 0;
	if (result == WEFT_SUCCESS)
		result = ctx_start(ctx, opts, &attr, &progress);
	if (result != WEFT_SUCCESS) {
		pthread_mutex_destroy(&ctx->lock);
		tune_close(ctx->tune);
		free(ctx);
		return result;
	}
	*out = ctx;
	return WEFT_SUCCESS;
}

enum weft_result weft_ctx_open(const struct weft_ctx_opts *opts, struct weft_ctx **ctx)
{
	struct weft_ctx_opts all = WEFT_CTX_OPTS_INIT;
	struct net_attr net = {0};
	enum weft_result result;

	error_clear();
	if (!ctx)
		return error_set(WEFT_ERR_ARG, "weft_ctx_open: ctx is NULL");
	if (opts) {
		result = ctx_opts_check(opts);
		if (result != WEFT_SUCCESS)
			return result;
		/* One built with an older, shorter struct has the rest by default. */
		memcpy(&all, opts, opts->size < sizeof(all) ? opts->size : sizeof(all));
	}
	net.provider = all.provider;
	net.domain = all.domain;
	return ctx_open(&all, &net, ctx);
}

enum weft_result weft_ctx_close(struct weft_ctx *ctx)
{
	struct progress *progress;
	enum weft_result result;
	struct stats *stats;

	error_clear();
	if (!ctx)
		return error_set(WEFT_ERR_ARG, "weft_ctx_close: ctx is NULL");
	ctx_lock(ctx);
	if (ctx->comms)
		result = error_set(WEFT_ERR_BUSY,
				   "weft_ctx_close: %d communicators exist, destroy them "
				   "first",
				   ctx->comms);
	else
		result = WEFT_SUCCESS;
	progress = ctx->progress;
	stats = ctx->stats;
	if (result == WEFT_SUCCESS) {
		ctx->progress = NULL;
		ctx->stats = NULL;
	}
	ctx_unlock(ctx);
	if (result != WEFT_SUCCESS)
		return result;
	progress_close(progress);
	stats_close(stats);
	ctx_lock(ctx);
	result = exec_close(ctx->exec);
	ctx_unlock(ctx);
	if (result != WEFT_SUCCESS)
		return result;
	boot_close(ctx->boot);
	if (ctx->boot_end)
		ctx->boot_end(ctx->boot_arg);
	pthread_mutex_destroy(&ctx->lock);
	tune_close(ctx->tune);
	free(ctx);
	return WEFT_SUCCESS;
}

enum weft_result weft_ctx_stats(struct weft_ctx *ctx, struct weft_stats *stats)
{
	struct weft_stats now;

	error_clear();
	if (!ctx || !stats)
		return error_set(WEFT_ERR_ARG, "weft_ctx_stats: %s is NULL",
				 ctx ? "stats" : "ctx");
	if (stats->size < offsetof(struct weft_stats, calls) + sizeof(stats->calls))
		return error_set(WEFT_ERR_ARG,
				 "weft_ctx_stats: stats->size is %zu, set it to "
				 "sizeof(struct weft_stats)",
				 stats->size);
	ctx_lock(ctx);
	now = *exec_stats(ctx->exec);
	ctx_unlock(ctx);
	/* A caller built with an older, shorter struct gets what it knows. */
	now.size = stats->size;
	memcpy(stats, &now, stats->size < sizeof(now) ? stats->size : sizeof(now));
	return WEFT_SUCCESS;
}

enum weft_result weft_trace_dump(struct weft_ctx *ctx, const char *path)
{
	int rc;

	error_clear();
	if (!ctx || !path || !*path)
		return error_set(WEFT_ERR_ARG, "weft_trace_dump: %s",
				 !ctx	 ? "ctx is NULL"
				 : !path ? "path is NULL"
					 : "path is empty");
	ctx_lock(ctx);
	rc = recorder_dump(exec_trace(ctx->exec), TRACE_ASKED, 0, path);
	ctx_unlock(ctx);
	if (rc)
		return error_set(WEFT_ERR_ARG, "weft_trace_dump: %.300s: %s", path,
				 strerror(-rc));
	return WEFT_SUCCESS;
}

enum weft_result weft_mem_alloc(struct weft_ctx *ctx, size_t len, void **addr)
{
	enum weft_result result;
	void *at;

	error_clear();
	if (!ctx || !addr)
		return error_set(WEFT_ERR_ARG, "weft_mem_alloc: %s is NULL",
				 ctx ? "addr" : "ctx");
	ctx_lock(ctx);
	result = exec_mem_alloc(ctx->exec, len, &at);
	ctx_unlock(ctx);
	if (result == WEFT_SUCCESS)
		*addr = at;
	return result;
}

enum weft_result weft_gpu_prepare(struct weft_ctx *ctx, int32_t device, uint64_t bytes,
				  uint32_t buffers)
{
	enum weft_result result;

	error_clear();
	if (!ctx)
		return error_set(WEFT_ERR_ARG, "weft_gpu_prepare: ctx is NULL");
	if (bytes > PTRDIFF_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_gpu_prepare: %llu bytes are more than memory can "
				 "hold",
				 (unsigned long long)bytes);
	ctx_lock(ctx);
	result = exec_gpu_prepare(ctx->exec, device, bytes, bytes ? buffers : 0);
	ctx_unlock(ctx);
	return result;
}

enum weft_result weft_mem_free(struct weft_ctx *ctx, void *addr)
{
	enum weft_result result;

	error_clear();
	if (!ctx || !addr)
		return error_set(WEFT_ERR_ARG, "weft_mem_free: %s is NULL",
				 ctx ? "addr" : "ctx");
	ctx_lock(ctx);
	result = exec_mem_free(ctx->exec, addr);
	ctx_unlock(ctx);
	return result;
}
