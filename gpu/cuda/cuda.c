/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening the backend: what devices there are and what they have, by asking the driver
 * only; nothing here takes a context. */
#include "gpu/cuda/cuda.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/image.h"

static void cuda_close(struct gpu *gpu)
{
	struct cuda *cuda = cuda_of(gpu);

	for (int i = 0; i < gpu->devices; i++) {
		cuda_device_fini(cuda, i);
		pthread_mutex_destroy(&cuda->dev[i].lock);
	}
	pthread_mutex_destroy(&cuda->lock);
	free(cuda->dev);
	free(gpu->device);
	free(cuda);
}

static int cuda_thread_init(struct gpu *gpu)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct cuda *cuda = cuda_of(gpu);
	CUresult rc = cuda->drv.thread_exchange_capture_mode(&mode);

	return rc == CUDA_SUCCESS ? 0 : cuda_fail(cuda, rc, "leaving captures to others");
}

static const struct gpu_ops ops = {
	.abi = GPU_ABI,
	.size = sizeof(struct gpu_ops),
	.close = cuda_close,
	.error = cuda_error,
	.thread_init = cuda_thread_init,
	.device_active = cuda_device_active,
	.device_use = cuda_device_use,
	.device_error = cuda_device_error,
	.query = cuda_query,
	.dmabuf_export = cuda_dmabuf_export,
	.ipc_export = cuda_ipc_export,
	.ipc_import = cuda_ipc_import,
	.ipc_release = cuda_ipc_release,
	.peer = cuda_peer,
	.flush = cuda_flush,
	.sync_memops = cuda_sync_memops,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.pinned_alloc = cuda_pinned_alloc,
	.pinned_free = cuda_pinned_free,
	.pinned_register = cuda_pinned_register,
	.pinned_unregister = cuda_pinned_unregister,
	.queue_open = cuda_queue_open,
	.queue_close = cuda_queue_close,
	.queue_sync = cuda_queue_sync,
	.queue_mark = cuda_queue_mark,
	.copy = cuda_copy,
	.copy2d = cuda_copy2d,
	.fill = cuda_fill,
	.reduce = cuda_queue_reduce,
	.queue_launch = cuda_queue_launch,
	.stream_open = cuda_stream_open,
	.stream_close = cuda_stream_close,
	.stream_words = cuda_stream_words,
	.stream_after = cuda_stream_after,
	.stream_call = cuda_stream_call,
	.stream_capture = cuda_stream_capture,
	.stream_keep = cuda_stream_keep,
	.stream_copy = cuda_stream_copy,
	.stream_reduce = cuda_stream_reduce,
	.stream_launch = cuda_stream_launch,
};

static int attribute(const struct cuda *cuda, CUdevice dev, int what)
{
	int value = 0;

	return cuda->drv.device_get_attribute(&value, what, dev) == CUDA_SUCCESS ? value
										 : 0;
}

/* From compute capability 9.0 on, writes of NICs arrive in order with what announces
 * them; before that they have to be flushed, by the driver where it can. */
static enum gpu_flush flush_of(const struct cuda *cuda, CUdevice dev, int major)
{
	const int order =
		attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
	const int options = attribute(
		cuda, dev, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);

	if (major >= 9 && order >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER)
		return GPU_FLUSH_NONE;
	if (cuda->drv.flush_rdma_writes &&
	    options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST)
		return GPU_FLUSH_DRIVER;
	return GPU_FLUSH_READ;
}

/* 0, or the driver's error. */
static CUresult describe(struct cuda *cuda, int ordinal)
{
	struct gpu_device *info = &cuda->gpu.device[ordinal];
	const struct driver *drv = &cuda->drv;
	CUdevice dev;
	size_t bytes;
	CUuuid uuid;
	CUresult rc;

	rc = drv->device_get(&dev, ordinal);
	if (rc == CUDA_SUCCESS)
		rc = drv->device_get_name(info->name, sizeof(info->name), dev);
	if (rc == CUDA_SUCCESS)
		rc = drv->device_get_uuid(&uuid, dev);
	if (rc == CUDA_SUCCESS)
		rc = drv->device_total_mem(&bytes, dev);
	if (rc == CUDA_SUCCESS)
		rc = drv->device_get_pci_bus_id(info->pci, sizeof(info->pci), dev);
	if (rc != CUDA_SUCCESS)
		return rc;
	cuda->dev[ordinal].dev = dev;
	for (char *c = info->pci; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	memcpy(info->uuid, uuid.bytes, sizeof(info->uuid));
	info->memory = bytes;
	info->major = attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	info->minor = attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	info->blocks = attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	info->copy_engine =
		attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT) > 0;
	info->rdma =
		attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED) &&
		attribute(cuda, dev,
			  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
	info->dmabuf = drv->mem_get_range_handle &&
		       attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
	info->vmm =
		attribute(cuda, dev,
			  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
		attribute(
			cuda, dev,
			CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
	info->ipc = true;
	info->hold =
		attribute(cuda, dev, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
			? GPU_HOLD_MEMOPS
			: GPU_HOLD_KERNEL;
	info->flush = flush_of(cuda, dev, info->major);
	info->kernels = cuda_image_count > 0 || getenv("WEFT_GPU_KERNELS");
	return CUDA_SUCCESS;
}

/* Room for the devices; false: there is no memory. */
static bool room(struct cuda *cuda, int count)
{
	cuda->gpu.device = calloc((size_t)count, sizeof(*cuda->gpu.device));
	cuda->dev = calloc((size_t)count, sizeof(*cuda->dev));
	if (!cuda->gpu.device || !cuda->dev)
		return false;
	for (int i = 0; i < count; i++)
		pthread_mutex_init(&cuda->dev[i].lock, NULL);
	cuda->gpu.devices = count;
	return true;
}

static int find_devices(struct cuda *cuda, char *why)
{
	CUresult rc;
	int count;

	rc = cuda->drv.device_get_count(&count);
	if (rc != CUDA_SUCCESS || count <= 0) {
		snprintf(why, GPU_WHY_LEN,
			 "the CUDA driver sees no GPU. Look at nvidia-smi and at "
			 "CUDA_VISIBLE_DEVICES.");
		return -ENODEV;
	}
	if (!room(cuda, count < GPU_DEVICES ? count : GPU_DEVICES)) {
		snprintf(why, GPU_WHY_LEN, "no host memory for notes of %d GPUs", count);
		return -ENOMEM;
	}
	for (int i = 0; i < cuda->gpu.devices; i++) {
		rc = describe(cuda, i);
		if (rc == CUDA_SUCCESS)
			continue;
		cuda_fail(cuda, rc, "asking what GPU %d is", i);
		snprintf(why, GPU_WHY_LEN, "%.*s", GPU_WHY_LEN - 1,
			 cuda_error(&cuda->gpu));
		return -ENODEV;
	}
	return 0;
}

__attribute__((visibility("default"))) gpu_backend_open_fn weft_gpu_backend;

int weft_gpu_backend(uint32_t abi, struct gpu **gpu, char *why)
{
	struct cuda *cuda;
	int ret;

	if (abi != GPU_ABI) {
		snprintf(why, GPU_WHY_LEN,
			 "libweft-gpu.so has interface %d, and %u is wanted: they are of "
			 "two "
			 "versions of Weft",
			 GPU_ABI, abi);
		return -ENODEV;
	}
	cuda = calloc(1, sizeof(*cuda));
	if (!cuda) {
		snprintf(why, GPU_WHY_LEN, "no host memory");
		return -ENOMEM;
	}
	pthread_mutex_init(&cuda->lock, NULL);
	cuda->gpu.ops = &ops;
	cuda->gpu.name = "cuda";
	cuda->start = cuda_ipc_start();
	ret = driver_load(&cuda->drv, why);
	if (ret == 0)
		ret = find_devices(cuda, why);
	if (ret) {
		cuda_close(&cuda->gpu);
		return ret;
	}
	snprintf(cuda->gpu.why, sizeof(cuda->gpu.why), "CUDA driver %d.%d",
		 cuda->drv.version / 1000, cuda->drv.version % 1000 / 10);
	if (!cuda->gpu.device[0].kernels)
		snprintf(cuda->gpu.kernels_why, sizeof(cuda->gpu.kernels_why),
			 "this build has no device code: configure found no compiler for "
			 "it");
	*gpu = &cuda->gpu;
	return 0;
}
