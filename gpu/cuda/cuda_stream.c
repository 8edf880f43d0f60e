/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of the application: what is put into them, and what is asked of them. */
#include <errno.h>
#include <string.h>

#include "gpu/cuda/cuda.h"
#include "gpu/cuda/cuda_reduce.h"

/* What the kernel weft_words takes, by value. */
struct words {
	struct gpu_word_op op[GPU_WORD_OPS];
};

int cuda_stream_open(struct gpu *gpu, int device, void **stream)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUstream s = NULL;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.stream_create(&s, CU_STREAM_NON_BLOCKING);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "opening a stream on GPU %d", device);
	*stream = s;
	return 0;
}

int cuda_stream_close(struct gpu *gpu, int device, void *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.stream_destroy(stream);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "closing a stream of GPU %d", device);
}

CUresult cuda_word_ops(struct cuda *cuda, CUstream stream, const struct gpu_word_op *ops,
		       uint32_t count)
{
	CUstreamBatchMemOpParams batch[GPU_WORD_OPS];

	memset(batch, 0, sizeof(batch));
	for (uint32_t i = 0; i < count; i++) {
		const bool write = ops[i].kind == GPU_WORD_WRITE;

		batch[i].value.operation = write ? CU_STREAM_MEM_OP_WRITE_VALUE_64
						 : CU_STREAM_MEM_OP_WAIT_VALUE_64;
		batch[i].value.address = cuda_ptr((void *)ops[i].word);
		batch[i].value.value64 = ops[i].value;
		batch[i].value.flags =
			write ? CU_STREAM_WRITE_VALUE_DEFAULT : CU_STREAM_WAIT_VALUE_GEQ;
	}
	return cuda->drv.stream_batch_mem_op(stream, count, batch, 0);
}

int cuda_word_kernel(struct cuda *cuda, int device, CUstream stream,
		     const struct gpu_word_op *ops, uint32_t count)
{
	/* While the device is prepared its lock is ours already. */
	const bool ready = atomic_load(&cuda->dev[device].ready);
	struct words words;
	void *args[] = {&words, &count};
	const struct gpu_launch launch = {
		.function = "weft_words",
		.grid = {1, 1, 1},
		.block = {1, 1, 1},
		.args = args,
	};

	memset(&words, 0, sizeof(words));
	memcpy(words.op, ops, count * sizeof(*ops));
	return ready ? cuda_launch(cuda, device, stream, &launch)
		     : cuda_launch_locked(cuda, device, stream, &launch);
}

int cuda_stream_words(struct gpu *gpu, int device, void *stream,
		      const struct gpu_word_op *ops, uint32_t count)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc = CUDA_SUCCESS;
	int ret;

	if (count == 0 || count > GPU_WORD_OPS)
		return cuda_refuse(-EINVAL, "%u steps of a stream: want 1 to %d", count,
				   GPU_WORD_OPS);
	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	switch (gpu->device[device].hold) {
	case GPU_HOLD_MEMOPS:
		rc = cuda_word_ops(cuda, stream, ops, count);
		break;
	case GPU_HOLD_KERNEL:
		ret = cuda_word_kernel(cuda, device, stream, ops, count);
		break;
	case GPU_HOLD_NONE:
		ret = cuda_refuse(-ENOSYS, "holding a stream of GPU %d: %s%s%s", device,
				  gpu->device[device].hold_why,
				  *gpu->kernels_why ? ": " : "", gpu->kernels_why);
		break;
	}
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "waits and writes on a stream of GPU %d",
				 device);
	return ret;
}

int cuda_stream_after(struct gpu *gpu, int device, void *stream, void *earlier)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUevent event = NULL;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.event_create(&event, CU_EVENT_DISABLE_TIMING);
	if (rc == CUDA_SUCCESS) {
		rc = cuda->drv.event_record(event, earlier);
		if (rc == CUDA_SUCCESS)
			rc = cuda->drv.stream_wait_event(stream, event, 0);
		/* It is gone when nothing waits for it any more. */
		cuda->drv.event_destroy(event);
	}
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "ordering two streams of GPU %d", device);
}

int cuda_stream_call(struct gpu *gpu, int device, void *stream, void (*fn)(void *arg),
		     void *arg)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.launch_host_func(stream, fn, arg);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "a call from a stream of GPU %d", device);
}

/* The context is current. */
static CUresult capture_of(struct cuda *cuda, CUstream stream, int *status, uint64_t *id,
			   CUgraph *graph)
{
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	*id = 0;
	*graph = NULL;
	return cuda->drv.stream_get_capture_info(stream, status, id, graph, NULL, NULL);
}

int cuda_stream_capture(struct gpu *gpu, int device, void *stream,
			enum gpu_capture *state, uint64_t *id)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUgraph graph;
	int status, ret;
	uint64_t seen;
	CUresult rc;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = capture_of(cuda, stream, &status, &seen, &graph);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc,
				 "asking whether a stream of GPU %d is captured", device);
	switch (status) {
	case CU_STREAM_CAPTURE_STATUS_NONE:
		*state = GPU_CAPTURE_NONE;
		break;
	case CU_STREAM_CAPTURE_STATUS_ACTIVE:
		*state = GPU_CAPTURE_ACTIVE;
		break;
	default:
		*state = GPU_CAPTURE_BROKEN;
		break;
	}
	*id = status == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : seen;
	return 0;
}

int cuda_stream_keep(struct gpu *gpu, int device, void *stream, void (*fn)(void *arg),
		     void *arg)
{
	struct cuda *cuda = cuda_of(gpu);
	CUuserObject object = NULL;
	struct cuda_scope scope;
	CUgraph graph;
	int status, ret;
	uint64_t id;
	CUresult rc;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = capture_of(cuda, stream, &status, &id, &graph);
	if (rc == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		rc = cuda->drv.user_object_create(&object, arg, fn, 1,
						  CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
		if (rc == CUDA_SUCCESS)
			rc = cuda->drv.graph_retain_user_object(
				graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
	}
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "tying something to a graph of GPU %d",
				 device);
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return cuda_refuse(
			-EINVAL,
			"tying something to a graph: the stream of GPU %d is not "
			"being captured",
			device);
	return 0;
}

int cuda_stream_copy(struct gpu *gpu, int device, void *stream, void *dst,
		     const void *src, uint64_t len)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	if (len == 0)
		return 0;
	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.memcpy_async(cuda_ptr(dst), cuda_ptr(src), len, stream);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "copying %llu bytes from %p to %p",
				   (unsigned long long)len, src, dst);
}

int cuda_stream_reduce(struct gpu *gpu, int device, void *stream,
		       const struct gpu_reduce *reduce)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	ret = cuda_reduce(cuda, device, stream, reduce);
	cuda_leave(cuda, &scope);
	return ret;
}

int cuda_stream_launch(struct gpu *gpu, int device, void *stream,
		       const struct gpu_launch *launch)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	ret = cuda_launch(cuda, device, stream, launch);
	cuda_leave(cuda, &scope);
	return ret;
}
