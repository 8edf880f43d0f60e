/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/null/null.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char text[2 * GPU_WHY_LEN];

static int refuse(struct gpu *gpu, const char *what)
{
	snprintf(text, sizeof(text), "%s needs a GPU, and there is none: %s", what,
		 gpu->why);
	return -ENODEV;
}

static void null_close(struct gpu *gpu)
{
	free(gpu);
}

static const char *null_error(struct gpu *gpu)
{
	(void)gpu;
	return text;
}

static int null_thread_init(struct gpu *gpu)
{
	(void)gpu;
	return 0;
}

static bool null_device_active(struct gpu *gpu, int device)
{
	(void)gpu;
	(void)device;
	return false;
}

static int null_device(struct gpu *gpu, int device)
{
	(void)device;
	return refuse(gpu, "a call for a device");
}

static int null_query(struct gpu *gpu, const void *addr, uint64_t len,
		      struct gpu_range *range)
{
	(void)gpu;
	*range = (struct gpu_range){
		.kind = GPU_MEM_HOST,
		.device = -1,
		.base = (uint64_t)(uintptr_t)addr,
		.len = len,
		.reserved_base = (uint64_t)(uintptr_t)addr,
		.reserved_len = len,
		.whole = true,
	};
	return 0;
}

static int null_dmabuf_export(struct gpu *gpu, const void *addr, uint64_t len,
			      struct gpu_dmabuf *buf)
{
	(void)addr;
	(void)len;
	(void)buf;
	return refuse(gpu, "exporting a DMA buffer");
}

static int null_ipc_export(struct gpu *gpu, const void *addr, struct gpu_ipc *ipc,
			   int *fd)
{
	(void)addr;
	(void)ipc;
	(void)fd;
	return refuse(gpu, "exporting device memory");
}

static int null_ipc_import(struct gpu *gpu, int device, const struct gpu_ipc *ipc, int fd,
			   void **base)
{
	(void)device;
	(void)ipc;
	(void)fd;
	(void)base;
	return refuse(gpu, "mapping device memory of another process");
}

static int null_addr(struct gpu *gpu, void *addr)
{
	(void)addr;
	return refuse(gpu, "a call for device or pinned memory");
}

static int null_sync_memops(struct gpu *gpu, const void *addr)
{
	(void)addr;
	return refuse(gpu, "ordering copies of device memory");
}

static int null_peer(struct gpu *gpu, int device, int other)
{
	(void)device;
	(void)other;
	return refuse(gpu, "reaching another device's memory");
}

static int null_alloc(struct gpu *gpu, int device, uint64_t len, void **addr)
{
	(void)device;
	(void)len;
	(void)addr;
	return refuse(gpu, "allocating device memory");
}

static int null_pinned_alloc(struct gpu *gpu, uint64_t len, void **addr)
{
	(void)len;
	(void)addr;
	return refuse(gpu, "allocating pinned memory");
}

static int null_pinned_register(struct gpu *gpu, void *addr, uint64_t len)
{
	(void)addr;
	(void)len;
	return refuse(gpu, "pinning memory");
}

static int null_queue_open(struct gpu *gpu, int device, struct gpu_queue **queue)
{
	(void)device;
	(void)queue;
	return refuse(gpu, "opening a queue");
}

/* Nobody has a queue of this backend: queue_open() gives none. */
static int null_queue(struct gpu_queue *queue)
{
	return refuse(queue->gpu, "a queue");
}

static int null_queue_sync(struct gpu_queue *queue, uint64_t timeout_ns)
{
	(void)timeout_ns;
	return null_queue(queue);
}

static int null_copy(struct gpu_queue *queue, void *dst, const void *src, uint64_t len)
{
	(void)dst;
	(void)src;
	(void)len;
	return null_queue(queue);
}

static int null_copy2d(struct gpu_queue *queue, const struct gpu_copy2d *copy)
{
	(void)copy;
	return null_queue(queue);
}

static int null_fill(struct gpu_queue *queue, void *dst, uint8_t byte, uint64_t len)
{
	(void)dst;
	(void)byte;
	(void)len;
	return null_queue(queue);
}

static int null_reduce(struct gpu_queue *queue, const struct gpu_reduce *reduce)
{
	(void)reduce;
	return null_queue(queue);
}

static int null_queue_launch(struct gpu_queue *queue, const struct gpu_launch *launch)
{
	(void)launch;
	return null_queue(queue);
}

static int null_stream_open(struct gpu *gpu, int device, void **stream)
{
	(void)device;
	(void)stream;
	return refuse(gpu, "opening a stream");
}

static int null_stream(struct gpu *gpu, int device, void *stream)
{
	(void)device;
	(void)stream;
	return refuse(gpu, "a stream");
}

static int null_stream_words(struct gpu *gpu, int device, void *stream,
			     const struct gpu_word_op *ops, uint32_t count)
{
	(void)ops;
	(void)count;
	return null_stream(gpu, device, stream);
}

static int null_stream_after(struct gpu *gpu, int device, void *stream, void *earlier)
{
	(void)earlier;
	return null_stream(gpu, device, stream);
}

static int null_stream_call(struct gpu *gpu, int device, void *stream,
			    void (*fn)(void *arg), void *arg)
{
	(void)fn;
	(void)arg;
	return null_stream(gpu, device, stream);
}

static int null_stream_capture(struct gpu *gpu, int device, void *stream,
			       enum gpu_capture *state, uint64_t *id)
{
	(void)state;
	(void)id;
	return null_stream(gpu, device, stream);
}

static int null_stream_copy(struct gpu *gpu, int device, void *stream, void *dst,
			    const void *src, uint64_t len)
{
	(void)dst;
	(void)src;
	(void)len;
	return null_stream(gpu, device, stream);
}

static int null_stream_reduce(struct gpu *gpu, int device, void *stream,
			      const struct gpu_reduce *reduce)
{
	(void)reduce;
	return null_stream(gpu, device, stream);
}

static int null_stream_launch(struct gpu *gpu, int device, void *stream,
			      const struct gpu_launch *launch)
{
	(void)launch;
	return null_stream(gpu, device, stream);
}

static const struct gpu_ops ops = {
	.abi = GPU_ABI,
	.size = sizeof(struct gpu_ops),
	.close = null_close,
	.error = null_error,
	.thread_init = null_thread_init,
	.device_active = null_device_active,
	.device_use = null_device,
	.device_error = null_device,
	.query = null_query,
	.dmabuf_export = null_dmabuf_export,
	.ipc_export = null_ipc_export,
	.ipc_import = null_ipc_import,
	.ipc_release = null_addr,
	.peer = null_peer,
	.flush = null_device,
	.sync_memops = null_sync_memops,
	.alloc = null_alloc,
	.free = null_addr,
	.pinned_alloc = null_pinned_alloc,
	.pinned_free = null_addr,
	.pinned_register = null_pinned_register,
	.pinned_unregister = null_addr,
	.queue_open = null_queue_open,
	.queue_close = null_queue,
	.queue_sync = null_queue_sync,
	.queue_mark = null_queue,
	.copy = null_copy,
	.copy2d = null_copy2d,
	.fill = null_fill,
	.reduce = null_reduce,
	.queue_launch = null_queue_launch,
	.stream_open = null_stream_open,
	.stream_close = null_stream,
	.stream_words = null_stream_words,
	.stream_after = null_stream_after,
	.stream_call = null_stream_call,
	.stream_capture = null_stream_capture,
	.stream_keep = null_stream_call,
	.stream_copy = null_stream_copy,
	.stream_reduce = null_stream_reduce,
	.stream_launch = null_stream_launch,
};

struct gpu *null_open(const char *why)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return NULL;
	gpu->ops = &ops;
	gpu->name = "null";
	snprintf(gpu->why, sizeof(gpu->why), "%s", why);
	snprintf(gpu->kernels_why, sizeof(gpu->kernels_why), "there is no GPU");
	return gpu;
}
