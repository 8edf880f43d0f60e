/* SPDX-License-Identifier: BSD-2-Clause */
/* See device.h. */
#include "config.h"

#include <stdlib.h>

#include "coll/api/device.h"
#include "coll/api/error.h"

/* The buffer with the kind that counts. */
static struct weft_buf buf_said(const struct weft_buf *buf, enum weft_mem_kind kind,
				int32_t device)
{
	struct weft_buf said = *buf;

	if (said.kind == WEFT_MEM_HOST) {
		said.kind = kind;
		said.device = device;
	}
	return said;
}

static enum weft_result find_one(const struct weft_comm *comm, const char *name,
				 const struct weft_buf *buf, int32_t *found, size_t *len)
{
	*found = -1;
	*len = 0;
	if (!buf)
		return WEFT_SUCCESS;
	if ((unsigned)buf->kind > WEFT_MEM_AUTO)
		return error_set(WEFT_ERR_ARG,
				 "%s.kind is %d, which is no kind of memory", name,
				 (int)buf->kind);
	*len = buf->count * weft_type_size(buf->type);
	return exec_find_memory(comm->ctx->exec, name, buf, found);
}

/* In place both are said to be in the same memory, or a copy would go astray. */
static enum weft_result find_apart(const struct weft_buf *src, const struct weft_buf *dst,
				   const struct exec_device *d)
{
	const uintptr_t s = (uintptr_t)src->addr, t = (uintptr_t)dst->addr;

	if (d->src == d->dst || !d->src_len || !d->dst_len || s + d->src_len <= t ||
	    t + d->dst_len <= s)
		return WEFT_SUCCESS;
	return error_set(
		WEFT_ERR_ARG,
		"src and dst are in place, but one is said to be memory of GPU %d "
		"and the other is not: give both kinds (src.kind and dst.kind, or "
		"weft_opts.src_kind and dst_kind)",
		d->src >= 0 ? d->src : d->dst);
}

enum weft_result device_find(const struct weft_comm *comm, const struct weft_buf *src,
			     const struct weft_buf *dst, bool one,
			     const struct weft_opts *opts, struct exec_device *device)
{
	struct weft_buf said[2];
	enum weft_result result;

	*device = (struct exec_device){.src = -1, .dst = -1};
	/* Almost always. */
	if ((!src || src->kind == WEFT_MEM_HOST) &&
	    (!dst || dst->kind == WEFT_MEM_HOST) &&
	    (!opts ||
	     (opts->src_kind == WEFT_MEM_HOST && opts->dst_kind == WEFT_MEM_HOST)))
		return WEFT_SUCCESS;
	if (src)
		said[0] = buf_said(src, opts ? opts->src_kind : WEFT_MEM_HOST,
				   opts ? opts->src_device : 0);
	if (dst)
		said[1] = buf_said(dst, opts ? opts->dst_kind : WEFT_MEM_HOST,
				   opts ? opts->dst_device : 0);
	if (one && src && dst && said[0].kind == WEFT_MEM_HOST)
		said[0] = buf_said(&said[0], said[1].kind, said[1].device);
	if (one && src && dst)
		said[1] = said[0];
	result = find_one(comm, "src", src ? &said[0] : NULL, &device->src,
			  &device->src_len);
	if (result == WEFT_SUCCESS)
		result = find_one(comm, "dst", dst ? &said[1] : NULL, &device->dst,
				  &device->dst_len);
	if (result == WEFT_SUCCESS && src && dst)
		result = find_apart(src, dst, device);
	device->on = device->src >= 0 || device->dst >= 0;
	return result;
}

struct device_stream device_stream(const struct weft_opts *opts,
				   const struct exec_device *device)
{
	if (!opts || opts->stream_kind == WEFT_STREAM_NONE)
		return (struct device_stream){.given = false};
	return (struct device_stream){.given = true,
				      .stream = opts->stream,
				      .device = device->src >= 0   ? device->src
						: device->dst >= 0 ? device->dst
								   : opts->src_device};
}

enum weft_result device_thread(struct weft_ctx *ctx)
{
	const struct progress_attr attr = {.thread = true,
					   .cpus = getenv("WEFT_PROGRESS_CPUS")};

	return ctx->progress ? WEFT_SUCCESS : progress_open(ctx, &attr, &ctx->progress);
}

enum weft_result device_pass(struct weft_ctx *ctx, const struct device_stream *stream,
			     struct exec_call *run)
{
	enum weft_result result;

	run->passage = NULL;
	if (!stream->given)
		return WEFT_SUCCESS;
	result = device_thread(ctx);
	return result == WEFT_SUCCESS ? exec_passage_open(ctx->exec, stream->device,
							  stream->stream, &run->passage)
				      : result;
}

void device_pass_back(struct exec_call *run)
{
	if (run->passage)
		exec_passage_close(run->passage);
	run->passage = NULL;
}
