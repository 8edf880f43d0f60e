/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues: a stream of our own, and a word that says how far it has come. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/cuda/cuda.h"

#define NAP_FIRST 10000 /* ns between two questions, doubled up to the last */
#define NAP_LAST  1000000

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int cuda_drain(struct cuda *cuda, CUstream stream, uint64_t timeout_ns)
{
	const uint64_t start = now_ns();
	uint64_t nap = NAP_FIRST;
	CUresult rc;

	while ((rc = cuda->drv.stream_query(stream)) == CUDA_ERROR_NOT_READY) {
		if (now_ns() - start >= timeout_ns)
			return cuda_refuse(-ETIMEDOUT,
					   "a queue was not done within %llu us",
					   (unsigned long long)(timeout_ns / 1000));
		nanosleep(&(struct timespec){.tv_nsec = (long)nap}, NULL);
		nap = nap * 2 < NAP_LAST ? nap * 2 : NAP_LAST;
	}
	return rc == CUDA_SUCCESS ? 0 : cuda_fail(cuda, rc, "work of a queue");
}

int cuda_queue_open(struct gpu *gpu, int device, struct gpu_queue **queue)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUstream stream = NULL;
	struct gpu_queue *q;
	void *word = NULL;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.mem_host_alloc(&word, sizeof(uint64_t),
				      CU_MEMHOSTALLOC_PORTABLE |
					      CU_MEMHOSTALLOC_DEVICEMAP);
	if (rc == CUDA_SUCCESS) {
		rc = cuda->drv.stream_create(&stream, CU_STREAM_NON_BLOCKING);
		if (rc != CUDA_SUCCESS)
			cuda->drv.mem_free_host(word);
	}
	q = rc == CUDA_SUCCESS ? calloc(1, sizeof(*q)) : NULL;
	if (rc == CUDA_SUCCESS && !q) {
		cuda->drv.stream_destroy(stream);
		cuda->drv.mem_free_host(word);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "opening a queue on GPU %d", device);
	memset(word, 0, sizeof(uint64_t));
	q->gpu = gpu;
	q->device = device;
	q->stream = stream;
	q->done = word;
	*queue = q;
	return 0;
}

int cuda_queue_close(struct gpu_queue *queue)
{
	struct cuda *cuda = cuda_of(queue->gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, queue->device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.stream_synchronize(queue->stream);
	cuda->drv.stream_destroy(queue->stream);
	cuda->drv.mem_free_host((void *)queue->done);
	cuda_leave(cuda, &scope);
	free(queue);
	return rc == CUDA_SUCCESS ? 0
				  : cuda_fail(cuda, rc, "work of a queue that is closed");
}

int cuda_queue_sync(struct gpu_queue *queue, uint64_t timeout_ns)
{
	struct cuda *cuda = cuda_of(queue->gpu);
	struct cuda_scope scope;
	int ret;

	ret = cuda_enter(cuda, queue->device, &scope);
	if (ret)
		return ret;
	ret = cuda_drain(cuda, queue->stream, timeout_ns);
	cuda_leave(cuda, &scope);
	return ret;
}

/* Where the driver writes no words: by its thread, late but right. */
static void mark_by_host(void *arg)
{
	struct gpu_queue *queue = arg;

	atomic_fetch_add_explicit(queue->done, 1, memory_order_release);
}

int cuda_queue_mark(struct gpu_queue *queue)
{
	struct cuda *cuda = cuda_of(queue->gpu);
	const struct gpu_word_op op = {
		.kind = GPU_WORD_WRITE, .word = queue->done, .value = queue->issued + 1};
	CUresult rc = CUDA_SUCCESS;
	struct cuda_scope scope;
	int ret;

	ret = cuda_enter(cuda, queue->device, &scope);
	if (ret)
		return ret;
	if (cuda->dev[queue->device].memops)
		rc = cuda->drv.stream_write_value64(queue->stream,
						    cuda_ptr((void *)op.word), op.value,
						    CU_STREAM_WRITE_VALUE_DEFAULT);
	else if (queue->gpu->device[queue->device].hold == GPU_HOLD_KERNEL)
		ret = cuda_word_kernel(cuda, queue->device, queue->stream, &op, 1);
	else
		rc = cuda->drv.launch_host_func(queue->stream, mark_by_host, queue);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		ret = cuda_fail(cuda, rc, "marking a queue of GPU %d", queue->device);
	if (ret == 0)
		queue->issued = op.value;
	return ret;
}

int cuda_copy(struct gpu_queue *queue, void *dst, const void *src, uint64_t len)
{
	return cuda_stream_copy(queue->gpu, queue->device, queue->stream, dst, src, len);
}

int cuda_copy2d(struct gpu_queue *queue, const struct gpu_copy2d *copy)
{
	struct cuda *cuda = cuda_of(queue->gpu);
	struct cuda_scope scope;
	CUDA_MEMCPY2D c;
	CUresult rc;
	int ret;

	if (copy->dst_pitch < copy->width || copy->src_pitch < copy->width)
		return cuda_refuse(
			-EINVAL,
			"a copy of rows of %llu bytes that are %llu and %llu apart",
			(unsigned long long)copy->width,
			(unsigned long long)copy->src_pitch,
			(unsigned long long)copy->dst_pitch);
	if (copy->width == 0 || copy->rows == 0)
		return 0;
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = cuda_ptr(copy->src);
	c.dstDevice = cuda_ptr(copy->dst);
	c.srcPitch = copy->src_pitch;
	c.dstPitch = copy->dst_pitch;
	c.WidthInBytes = copy->width;
	c.Height = copy->rows;
	ret = cuda_enter(cuda, queue->device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.memcpy_2d_async(&c, queue->stream);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS ? 0
				  : cuda_fail(cuda, rc, "copying %llu rows of %llu bytes",
					      (unsigned long long)copy->rows,
					      (unsigned long long)copy->width);
}

int cuda_fill(struct gpu_queue *queue, void *dst, uint8_t byte, uint64_t len)
{
	struct cuda *cuda = cuda_of(queue->gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	if (len == 0)
		return 0;
	ret = cuda_enter(cuda, queue->device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.memset_d8_async(cuda_ptr(dst), byte, len, queue->stream);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS ? 0
				  : cuda_fail(cuda, rc, "filling %llu bytes at %p",
					      (unsigned long long)len, dst);
}

int cuda_queue_reduce(struct gpu_queue *queue, const struct gpu_reduce *reduce)
{
	return cuda_stream_reduce(queue->gpu, queue->device, queue->stream, reduce);
}

int cuda_queue_launch(struct gpu_queue *queue, const struct gpu_launch *launch)
{
	return cuda_stream_launch(queue->gpu, queue->device, queue->stream, launch);
}
