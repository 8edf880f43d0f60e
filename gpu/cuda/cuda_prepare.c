/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts: a device is prepared when it is first needed, and entered by each call. */
#include <errno.h>
#include <string.h>

#include "gpu/cuda/cuda.h"

static void scope_begin(struct cuda *cuda, CUcontext ctx, struct cuda_scope *scope)
{
	scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	scope->before = NULL;
	scope->now = ctx;
	cuda->drv.thread_exchange_capture_mode(&scope->mode);
	cuda->drv.ctx_get_current(&scope->before);
}

static CUresult scope_set(struct cuda *cuda, const struct cuda_scope *scope)
{
	if (scope->before == scope->now)
		return CUDA_SUCCESS;
	return cuda->drv.ctx_set_current(scope->now);
}

void cuda_leave(struct cuda *cuda, const struct cuda_scope *scope)
{
	int mode = scope->mode;

	if (scope->before != scope->now)
		cuda->drv.ctx_set_current(scope->before);
	cuda->drv.thread_exchange_capture_mode(&mode);
}

static void probe(struct cuda *cuda, int device)
{
	cuda_kernels_load(cuda, device);
	cuda->gpu.device[device].kernels = cuda->dev[device].module != NULL;
	cuda->gpu.device[device].hold = cuda_hold_choose(cuda, device);
}

/* Under the device's lock. */
static int prepare(struct cuda *cuda, int device)
{
	struct cuda_device *dev = &cuda->dev[device];
	struct cuda_scope scope;
	CUresult rc;

	rc = cuda->drv.primary_ctx_retain(&dev->ctx, dev->dev);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "making the context of GPU %d", device);
	scope_begin(cuda, dev->ctx, &scope);
	rc = scope_set(cuda, &scope);
	if (rc == CUDA_SUCCESS)
		rc = cuda->drv.stream_create(&dev->scratch, CU_STREAM_NON_BLOCKING);
	if (rc == CUDA_SUCCESS)
		probe(cuda, device);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS) {
		cuda->drv.primary_ctx_release(dev->dev);
		return cuda_fail(cuda, rc, "preparing GPU %d", device);
	}
	atomic_store_explicit(&dev->ready, true, memory_order_release);
	return 0;
}

bool cuda_device_active(struct gpu *gpu, int device)
{
	struct cuda *cuda = cuda_of(gpu);
	unsigned flags;
	int active = 0;

	if (device < 0 || device >= gpu->devices)
		return false;
	return cuda->drv.primary_ctx_get_state(cuda->dev[device].dev, &flags, &active) ==
		       CUDA_SUCCESS &&
	       active;
}

int cuda_device_use(struct gpu *gpu, int device)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_device *dev;
	int ret = 0;

	if (device < 0 || device >= gpu->devices)
		return cuda_refuse(-ENODEV, "there is no GPU %d, there are %d", device,
				   gpu->devices);
	dev = &cuda->dev[device];
	if (atomic_load_explicit(&dev->ready, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&dev->lock);
	if (!atomic_load_explicit(&dev->ready, memory_order_relaxed))
		ret = prepare(cuda, device);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

void cuda_device_fini(struct cuda *cuda, int device)
{
	struct cuda_device *dev = &cuda->dev[device];
	struct cuda_scope scope;

	if (!atomic_load(&dev->ready))
		return;
	if (cuda_enter(cuda, device, &scope) == 0) {
		cuda->drv.stream_destroy(dev->scratch);
		cuda_kernels_unload(cuda, device);
		cuda_leave(cuda, &scope);
	}
	cuda->drv.primary_ctx_release(dev->dev);
	atomic_store(&dev->ready, false);
}

int cuda_enter(struct cuda *cuda, int device, struct cuda_scope *scope)
{
	int ret = cuda_device_use(&cuda->gpu, device);
	CUresult rc;

	if (ret)
		return ret;
	scope_begin(cuda, cuda->dev[device].ctx, scope);
	rc = scope_set(cuda, scope);
	if (rc == CUDA_SUCCESS)
		return 0;
	cuda_leave(cuda, scope);
	return cuda_fail(cuda, rc, "making the context of GPU %d current", device);
}
