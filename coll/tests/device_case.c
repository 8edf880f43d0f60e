/* SPDX-License-Identifier: BSD-2-Clause */
/* See device_case.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/tests/device_case.h"

#define GUARD_BYTES 64 /* behind each buffer, as run_case.c has them */
#define COPY_NS	    UINT64_C(30000000000)

const char *device_gpu_guarded(void)
{
	static char path[4096];
	const char *top = getenv("WEFT_TOP_BUILDDIR");

	snprintf(path, sizeof(path), "%s/coll/tests/.libs/libguarded-gpu.so",
		 top ? top : ".");
	return path;
}

int device_gpu_open(struct ranks *r, struct device_case_gpu *g)
{
	memset(g, 0, sizeof(*g));
	if (!getenv("WEFT_GPU_LIB"))
		setenv("WEFT_GPU_LIB", device_gpu_guarded(), 1);
	if (gpu_open(NULL, &g->gpu))
		return ranks_say(r, "gpu_open: no memory");
	if (!g->gpu->devices) {
		ranks_say(r, "no GPU: %s", g->gpu->why);
		gpu_close(g->gpu);
		return RANKS_ABSENT;
	}
	for (int i = 0; i < 2; i++) {
		const int device = i < g->gpu->devices ? i : 0;

		if (gpu_queue_open(g->gpu, device, &g->queue[i]))
			return ranks_say(r, "queue: %s", gpu_error(g->gpu));
	}
	return RANKS_GOOD;
}

void device_gpu_close(struct device_case_gpu *g)
{
	for (int i = 0; i < 2; i++)
		gpu_queue_close(g->queue[i]);
	gpu_close(g->gpu);
}

static bool copy(struct device_case_gpu *g, int device, void *dst, const void *src,
		 size_t len)
{
	struct gpu_queue *queue = g->queue[device];

	return !gpu_copy(queue, dst, src, len) && !gpu_queue_mark(queue) &&
	       !gpu_queue_sync(queue, COPY_NS);
}

/* What the host's buffer which has, guard and all. */
static size_t memory_len(const struct device_bufs *b, int which)
{
	return (which ? b->host.dst_len : b->host.src_len) + GUARD_BYTES;
}

static bool push(struct device_case_gpu *g, struct device_bufs *b)
{
	for (int i = 0; i < 2; i++) {
		if (b->memory[i] && !copy(g, b->device[i], b->memory[i],
					  b->host.memory[i], memory_len(b, i)))
			return false;
	}
	return true;
}

/* The place in device memory of one in the host's. */
static void *moved(const struct device_bufs *b, const void *at)
{
	for (int i = 0; i < 2; i++) {
		const size_t off = (size_t)((uintptr_t)at - (uintptr_t)b->host.memory[i]);

		if (b->host.memory[i] && b->memory[i] && off <= memory_len(b, i))
			return (char *)b->memory[i] + off;
	}
	return (void *)(uintptr_t)at;
}

bool device_bufs_open(struct device_case_gpu *g, struct device_bufs *b,
		      const struct ref_case *c, const struct ranks *r,
		      enum device_where where, int src_device, int dst_device)
{
	memset(b, 0, sizeof(*b));
	if (!case_bufs_open(&b->host, c, r))
		return false;
	b->device[0] = src_device;
	/* Where there is one, it is both. */
	b->device[1] = dst_device < g->gpu->devices ? dst_device : 0;
	for (int i = 0; i < 2; i++) {
		/* In place there is one memory. */
		const bool both = !b->host.memory[!i];

		if (!b->host.memory[i] || !((both ? DEVICE_BOTH : 1 << i) & (int)where))
			continue;
		if (gpu_alloc(g->gpu, b->device[i], memory_len(b, i), &b->memory[i]))
			return false;
	}
	b->used = b->host;
	b->used.src = moved(b, b->host.src);
	b->used.dst = moved(b, b->host.dst);
	return push(g, b);
}

void device_bufs_close(struct device_case_gpu *g, struct device_bufs *b)
{
	for (int i = 0; i < 2; i++) {
		if (b->memory[i])
			gpu_free(g->gpu, b->memory[i]);
	}
	case_bufs_close(&b->host);
}

bool device_bufs_refill(struct device_case_gpu *g, struct device_bufs *b,
			const struct ref_case *c, const struct ranks *r)
{
	case_bufs_refill(&b->host, c, r);
	return push(g, b);
}

static void buf_say(const struct device_bufs *b, bool found, struct weft_buf *buf)
{
	for (int i = 0; i < 2; i++) {
		const size_t off =
			(size_t)((uintptr_t)buf->addr - (uintptr_t)b->memory[i]);

		if (!b->memory[i] || off >= memory_len(b, i))
			continue;
		buf->kind = found ? WEFT_MEM_AUTO : WEFT_MEM_CUDA;
		buf->device = found ? -1 : b->device[i];
	}
}

void device_bufs_say(const struct device_bufs *b, bool found, struct weft_call *call)
{
	buf_say(b, found, &call->src);
	buf_say(b, found, &call->dst);
}

int device_check(struct device_case_gpu *g, struct ranks *r, const struct ref_case *c,
		 struct device_bufs *b)
{
	for (int i = 0; i < 2; i++) {
		if (b->memory[i] && !copy(g, b->device[i], b->host.memory[i],
					  b->memory[i], memory_len(b, i)))
			return ranks_say(r, "copying back: %s", gpu_error(g->gpu));
	}
	return case_check(r, c, &b->host);
}
