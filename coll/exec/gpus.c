/* SPDX-License-Identifier: BSD-2-Clause */
/* See gpus.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/gpus.h"
#include "coll/exec/passage.h"

/* Types and operations go to the backend by their numbers. */
_Static_assert((int)GPU_FP64 == (int)WEFT_FP64 &&
		       (int)GPU_TYPE_COUNT == (int)WEFT_TYPE_COUNT,
	       "gpu.h has the types of weft.h");
_Static_assert((int)GPU_BXOR == (int)WEFT_BXOR && (int)GPU_OP_COUNT == (int)WEFT_OP_COUNT,
	       "gpu.h has the operations of weft.h");

/* Pinning costs time, and memory of many sizes would stay unused: powers of two. */
#define PINNED_MIN ((size_t)64 << 10)

static enum weft_result gpus_open(struct exec *x)
{
	struct gpus *gpus = calloc(1, sizeof(*gpus));

	if (!gpus)
		return error_set(WEFT_ERR_NOMEM, "no memory for the GPUs of a context");
	list_init(&gpus->idle);
	list_init(&gpus->gates);
	if (gpu_open(NULL, &gpus->gpu)) {
		free(gpus);
		return error_set(WEFT_ERR_NOMEM, "no memory for a GPU backend");
	}
	gpus->queues = calloc((size_t)gpus->gpu->devices + 1, sizeof(*gpus->queues));
	if (!gpus->queues) {
		gpu_close(gpus->gpu);
		free(gpus);
		return error_set(WEFT_ERR_NOMEM, "no memory for queues of GPUs");
	}
	x->gpus = gpus;
	return WEFT_SUCCESS;
}

enum weft_result gpus_get(struct exec *x, const char *what, struct gpus **gpus)
{
	if (!x->gpus) {
		enum weft_result result = gpus_open(x);

		if (result != WEFT_SUCCESS)
			return result;
	}
	*gpus = x->gpus;
	if (!what || x->gpus->gpu->devices)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_UNSUPPORTED, "%s, but this process has no GPU: %s",
			 what, x->gpus->gpu->why);
}

static void pinned_free(struct exec *x, struct pinned *p)
{
	struct gpu *gpu = x->gpus->gpu;

	/* What a provider still holds of it goes first. */
	if (p->block) {
		gpu_pinned_unregister(gpu, p->memory);
		block_free(&x->mem, p->memory);
	} else if (mem_forget(&x->mem, p->memory, p->size)) {
		gpu_pinned_free(gpu, p->memory);
	}
	free(p);
}

void gpus_close(struct exec *x)
{
	struct gpus *gpus = x->gpus;
	struct list *node;
	bool all;

	if (!gpus)
		return;
	for (int i = 0; i < gpus->gpu->devices; i++) {
		if (gpus->queues[i].in)
			gpu_queue_close(gpus->queues[i].in);
		if (gpus->queues[i].out)
			gpu_queue_close(gpus->queues[i].out);
	}
	while ((node = list_pop_front(&gpus->idle)))
		pinned_free(x, container_of(node, struct pinned, link));
	all = passages_close(gpus);
	/* A stream that may still look at a word of ours keeps the backend. */
	if (all)
		gpu_close(gpus->gpu);
	free(gpus->queues);
	free(gpus);
	x->gpus = NULL;
}

enum weft_result gpus_queues(struct exec *x, int32_t device, struct gpus_queues *queues)
{
	struct gpu *gpu = x->gpus->gpu;
	struct gpus_queues *q = &x->gpus->queues[device];
	int rc = 0;

	if (!q->in)
		rc = gpu_queue_open(gpu, device, &q->in);
	if (!rc && !q->out)
		rc = gpu_queue_open(gpu, device, &q->out);
	if (rc)
		return error_set(rc == -ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_DEVICE,
				 "no queue for copies on GPU %d: %s", device,
				 gpu_error(gpu));
	*queues = *q;
	return WEFT_SUCCESS;
}

/* Memory that providers register as a whole, and some share between processes, pinned;
 * else the driver's own. */
static int pinned_alloc(struct exec *x, struct pinned *p)
{
	struct gpu *gpu = x->gpus->gpu;
	void *addr;
	int rc = block_alloc(&x->mem, p->size, &addr);

	if (rc)
		return -ENOMEM;
	p->memory = addr;
	p->block = true;
	rc = gpu_pinned_register(gpu, addr, p->size);
	if (!rc)
		return 0;
	block_free(&x->mem, addr);
	if (rc != -ENOSYS)
		return rc;
	p->block = false;
	rc = gpu_pinned_alloc(gpu, p->size, &addr);
	p->memory = addr;
	return rc;
}

static enum weft_result pinned_fault(struct exec *x, size_t size, int rc)
{
	if (rc == -EBUSY)
		return error_set(
			WEFT_ERR_BUSY,
			"copies of device memory need %zu bytes of pinned memory, which "
			"cannot be had while a graph is captured (%s): make a call of "
			"that size before the capture",
			size, gpu_error(x->gpus->gpu));
	return error_set(WEFT_ERR_NOMEM,
			 "no %zu bytes of pinned memory for copies of device memory%s%s",
			 size, rc == -ENOMEM ? "" : ": ",
			 rc == -ENOMEM ? "" : gpu_error(x->gpus->gpu));
}

enum weft_result pinned_get(struct exec *x, size_t size, struct pinned **pinned)
{
	struct pinned *p;
	size_t round = PINNED_MIN;
	int rc;

	list_foreach (pos, &x->gpus->idle) {
		p = container_of(pos, struct pinned, link);
		if (p->size < size)
			continue;
		list_remove(&p->link);
		*pinned = p;
		return WEFT_SUCCESS;
	}
	while (round < size && round <= SIZE_MAX / 2)
		round *= 2;
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(WEFT_ERR_NOMEM, "no memory for a buffer");
	list_init(&p->link);
	p->size = round;
	rc = round < size ? -ENOMEM : pinned_alloc(x, p);
	if (rc) {
		const enum weft_result result = pinned_fault(x, round, rc);

		free(p);
		return result;
	}
	*pinned = p;
	return WEFT_SUCCESS;
}

/* Short ones first, so that a call takes the shortest that is long enough. */
void pinned_put(struct exec *x, struct pinned *pinned)
{
	struct list *pos = x->gpus->idle.next;

	while (pos != &x->gpus->idle &&
	       container_of(pos, struct pinned, link)->size < pinned->size)
		pos = pos->next;
	list_push_back(pos, &pinned->link);
}

bool exec_thread_init(struct exec *x)
{
	return x->gpus && gpu_thread_init(x->gpus->gpu) == 0;
}

/* ---- whose memory is this ------------------------------------------------------------
 */

static const char *const kind_name[] = {
	[GPU_MEM_HOST] = "ordinary host memory",
	[GPU_MEM_PINNED] = "pinned host memory",
	[GPU_MEM_DEVICE] = "device memory",
	[GPU_MEM_MANAGED] = "managed memory",
};

/* All of the buffer is memory of the device that has its first byte. */
static enum weft_result memory_is_whole(struct exec *x, const char *name,
					const struct weft_buf *buf, size_t len,
					struct gpu_range range)
{
	struct gpu *gpu = x->gpus->gpu;
	const uint64_t begin = (uint64_t)(uintptr_t)buf->addr;
	const int device = range.device;

	while (range.base + range.len < begin + len) {
		const uint64_t at = range.base + range.len;
		const int rc = gpu_query(gpu, (const void *)(uintptr_t)at,
					 begin + len - at, &range);

		if (rc)
			return error_set(WEFT_ERR_DEVICE, "%s: whose memory it is: %s",
					 name, gpu_error(gpu));
		if (range.kind != GPU_MEM_DEVICE || range.device != device || !range.len)
			return error_set(WEFT_ERR_ARG,
					 "%s: of its %zu bytes only the first %llu are "
					 "memory of GPU "
					 "%d",
					 name, len, (unsigned long long)(at - begin),
					 device);
	}
	return WEFT_SUCCESS;
}

static enum weft_result memory_is(struct exec *x, const char *name,
				  const struct weft_buf *buf, size_t len,
				  const struct gpu_range *range, int32_t *found)
{
	const bool said = buf->kind == WEFT_MEM_CUDA;

	*found = -1;
	if (range->kind != GPU_MEM_DEVICE) {
		/* Managed memory is the host's, too. */
		if (!said || range->kind == GPU_MEM_MANAGED)
			return WEFT_SUCCESS;
		return error_set(WEFT_ERR_ARG,
				 "%s.kind is WEFT_MEM_CUDA, but %p is %s: give "
				 "WEFT_MEM_HOST, or WEFT_MEM_AUTO to have it found out",
				 name, buf->addr, kind_name[range->kind]);
	}
	if (said && range->device != buf->device)
		return error_set(WEFT_ERR_ARG,
				 "%s.device is %d, but %p is memory of GPU %d", name,
				 buf->device, buf->addr, range->device);
	*found = range->device;
	return memory_is_whole(x, name, buf, len, *range);
}

enum weft_result exec_find_memory(struct exec *x, const char *name,
				  const struct weft_buf *buf, int32_t *found)
{
	const size_t len = buf->count * weft_type_size(buf->type);
	struct gpu_range range;
	struct gpus *gpus;
	char what[64];
	enum weft_result result;

	*found = -1;
	if (buf->kind == WEFT_MEM_HOST)
		return WEFT_SUCCESS;
	snprintf(what, sizeof(what), "%s.kind is WEFT_MEM_CUDA", name);
	result = gpus_get(x, buf->kind == WEFT_MEM_CUDA ? what : NULL, &gpus);
	if (result != WEFT_SUCCESS || !len || !gpus->gpu->devices)
		return result;
	if (buf->kind == WEFT_MEM_CUDA &&
	    (buf->device < 0 || buf->device >= gpus->gpu->devices))
		return error_set(
			WEFT_ERR_ARG,
			"%s.device is %d: this process has %d GPUs, counted from "
			"0",
			name, buf->device, gpus->gpu->devices);
	if (gpu_query(gpus->gpu, buf->addr, len, &range))
		return error_set(WEFT_ERR_DEVICE, "%s: whose memory it is: %s", name,
				 gpu_error(gpus->gpu));
	return memory_is(x, name, buf, len, &range, found);
}
