/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of devices, and of the host where devices reach it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/cuda.h"

#define PINNED_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)

static CUmemAllocationProp prop_of(const struct gpu_device *info, int ordinal)
{
	CUmemAllocationProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = ordinal;
	prop.allocFlags.gpuDirectRDMACapable = info->rdma;
	return prop;
}

CUresult cuda_map_access(struct cuda *cuda, int device, CUdeviceptr addr, size_t len,
			 bool others)
{
	CUmemAccessDesc desc[GPU_DEVICES];
	size_t count = 0;

	for (int i = 0; i < cuda->gpu.devices; i++) {
		int can = i == device;

		if (!can && others &&
		    cuda->drv.device_can_access_peer(&can, cuda->dev[i].dev,
						     cuda->dev[device].dev) !=
			    CUDA_SUCCESS)
			can = 0;
		if (!can)
			continue;
		desc[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		desc[count].location.id = cuda->dev[i].dev;
		desc[count++].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	}
	return cuda->drv.mem_set_access(addr, len, desc, count);
}

/* A piece of its own address range, mapped whole. */
static CUresult map_new(struct cuda *cuda, int device, uint64_t len,
			struct cuda_piece *piece)
{
	CUmemAllocationProp prop =
		prop_of(&cuda->gpu.device[device], cuda->dev[device].dev);
	const struct driver *drv = &cuda->drv;
	size_t grain = 0;
	CUresult rc;

	rc = drv->mem_get_granularity(&grain, &prop,
				      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	if (rc != CUDA_SUCCESS)
		return rc;
	piece->len = (len + grain - 1) / grain * grain;
	rc = drv->mem_create(&piece->handle, piece->len, &prop, 0);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = drv->mem_address_reserve(&piece->addr, piece->len, grain, 0, 0);
	if (rc != CUDA_SUCCESS) {
		drv->mem_release(piece->handle);
		return rc;
	}
	rc = drv->mem_map(piece->addr, piece->len, 0, piece->handle, 0);
	if (rc == CUDA_SUCCESS) {
		rc = cuda_map_access(cuda, device, piece->addr, piece->len, true);
		if (rc != CUDA_SUCCESS)
			drv->mem_unmap(piece->addr, piece->len);
	}
	if (rc != CUDA_SUCCESS) {
		drv->mem_address_free(piece->addr, piece->len);
		drv->mem_release(piece->handle);
	}
	return rc;
}

int cuda_alloc(struct gpu *gpu, int device, uint64_t len, void **addr)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	struct cuda_piece *piece;
	CUresult rc;
	int ret;

	if (len == 0 || len > UINT64_MAX / 2)
		return cuda_refuse(-EINVAL, "allocating %llu bytes of a GPU",
				   (unsigned long long)len);
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return cuda_refuse(-ENOMEM, "no host memory for a note of an allocation");
	ret = cuda_enter(cuda, device, &scope);
	if (ret) {
		free(piece);
		return ret;
	}
	if (gpu->device[device].vmm)
		rc = map_new(cuda, device, len, piece);
	else
		rc = cuda->drv.mem_alloc(&piece->addr, len);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS) {
		free(piece);
		return cuda_fail(cuda, rc, "allocating %llu bytes of GPU %d",
				 (unsigned long long)len, device);
	}
	pthread_mutex_lock(&cuda->lock);
	piece->next = cuda->pieces;
	cuda->pieces = piece;
	pthread_mutex_unlock(&cuda->lock);
	*addr = (void *)(uintptr_t)piece->addr;
	return 0;
}

static struct cuda_piece *piece_take(struct cuda *cuda, CUdeviceptr addr)
{
	struct cuda_piece **at, *piece = NULL;

	pthread_mutex_lock(&cuda->lock);
	for (at = &cuda->pieces; *at; at = &(*at)->next) {
		if ((*at)->addr != addr)
			continue;
		piece = *at;
		*at = piece->next;
		break;
	}
	pthread_mutex_unlock(&cuda->lock);
	return piece;
}

int cuda_free(struct gpu *gpu, void *addr)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
	struct cuda_piece *piece = piece_take(cuda, cuda_ptr(addr));
	const struct driver *drv = &cuda->drv;
	CUresult rc, next;

	if (!piece)
		return cuda_refuse(-EINVAL, "freeing %p, which gpu_alloc() did not give",
				   addr);
	drv->thread_exchange_capture_mode(&scope.mode);
	if (piece->len) {
		rc = drv->mem_unmap(piece->addr, piece->len);
		next = drv->mem_address_free(piece->addr, piece->len);
		rc = rc == CUDA_SUCCESS ? next : rc;
		next = drv->mem_release(piece->handle);
		rc = rc == CUDA_SUCCESS ? next : rc;
	} else {
		rc = drv->mem_free(piece->addr);
	}
	drv->thread_exchange_capture_mode(&scope.mode);
	free(piece);
	return rc == CUDA_SUCCESS ? 0 : cuda_fail(cuda, rc, "freeing %p", addr);
}

int cuda_pinned_alloc(struct gpu *gpu, uint64_t len, void **addr)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	void *host = NULL;
	CUresult rc;
	int ret;

	if (len == 0)
		return cuda_refuse(-EINVAL, "allocating 0 bytes of pinned memory");
	ret = cuda_enter(cuda, 0, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.mem_host_alloc(&host, len, PINNED_FLAGS);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "allocating %llu bytes of pinned memory",
				 (unsigned long long)len);
	memset(host, 0, len);
	*addr = host;
	return 0;
}

int cuda_pinned_free(struct gpu *gpu, void *addr)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, 0, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.mem_free_host(addr);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "freeing pinned memory at %p", addr);
}

int cuda_pinned_register(struct gpu *gpu, void *addr, uint64_t len)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUdeviceptr dev = 0;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, 0, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.mem_host_register(addr, len, PINNED_FLAGS);
	if (rc == CUDA_SUCCESS) {
		rc = cuda->drv.mem_host_get_device_pointer(&dev, addr, 0);
		if (rc != CUDA_SUCCESS || dev != cuda_ptr(addr))
			cuda->drv.mem_host_unregister(addr);
	}
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "pinning %llu bytes at %p",
				 (unsigned long long)len, addr);
	if (dev != cuda_ptr(addr))
		return cuda_refuse(
			-ENOSYS,
			"GPUs of this host see pinned memory at other addresses: "
			"use gpu_pinned_alloc()");
	return 0;
}

int cuda_pinned_unregister(struct gpu *gpu, void *addr)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, 0, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.mem_host_unregister(addr);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS ? 0 : cuda_fail(cuda, rc, "unpinning %p", addr);
}
