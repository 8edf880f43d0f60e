/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose memory it is, and how NICs reach it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cuda/cuda.h"

/* What the driver says of an address, each as wide as the widest answer. */
struct answers {
	uint64_t kind, managed, ordinal, id, start, size, ipc, handles, rdma;
};

static CUresult ask(struct cuda *cuda, CUdeviceptr addr, struct answers *a)
{
	int what[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_BUFFER_ID,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
		CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
		CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
	};
	void *data[] = {&a->kind, &a->managed, &a->ordinal, &a->id,  &a->start,
			&a->size, &a->ipc,     &a->handles, &a->rdma};

	memset(a, 0, sizeof(*a));
	return cuda->drv.pointer_get_attributes(sizeof(what) / sizeof(what[0]), what,
						data, addr);
}

/* The piece that has addr: what is mapped there in one go. */
static int piece(struct cuda *cuda, CUdeviceptr addr, struct gpu_range *r)
{
	struct cuda_scope scope;
	CUdeviceptr base = 0;
	size_t len = 0;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, r->device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.mem_get_address_range(&base, &len, addr);
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "asking for the allocation around 0x%llx",
				 addr);
	r->base = base;
	r->len = len;
	return 0;
}

int cuda_query(struct gpu *gpu, const void *addr, uint64_t len, struct gpu_range *range)
{
	const uint64_t at = cuda_ptr(addr);
	struct cuda *cuda = cuda_of(gpu);
	struct gpu_range r = {.kind = GPU_MEM_HOST, .device = -1, .base = at, .len = len};
	struct answers a;
	CUresult rc;
	int ret;

	rc = ask(cuda, at, &a);
	if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_INVALID_VALUE)
		return cuda_fail(cuda, rc, "asking whose memory 0x%llx is",
				 (unsigned long long)at);
	if (rc == CUDA_SUCCESS && (uint32_t)a.kind == CU_MEMORYTYPE_DEVICE) {
		r.kind = a.managed & 1 ? GPU_MEM_MANAGED : GPU_MEM_DEVICE;
	} else if (rc == CUDA_SUCCESS && (uint32_t)a.kind == CU_MEMORYTYPE_HOST) {
		r.kind = a.managed & 1 ? GPU_MEM_MANAGED : GPU_MEM_PINNED;
	}
	if (r.kind == GPU_MEM_PINNED || r.kind == GPU_MEM_MANAGED) {
		r.base = a.start ? a.start : at;
		r.len = a.size ? a.size : len;
	} else if (r.kind == GPU_MEM_DEVICE) {
		r.device = (int)(int32_t)a.ordinal;
		if (r.device < 0 || r.device >= gpu->devices)
			return cuda_refuse(
				-ENODEV, "0x%llx is memory of GPU %d, and there are %d",
				(unsigned long long)at, r.device, gpu->devices);
		ret = piece(cuda, at, &r);
		if (ret)
			return ret;
		r.ipc = a.ipc & 1;
		r.fd = a.handles & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		r.rdma = a.rdma & 1;
	}
	r.id = r.kind == GPU_MEM_HOST ? 0 : a.id;
	r.reserved_base = r.kind == GPU_MEM_DEVICE && a.start ? a.start : r.base;
	r.reserved_len = r.kind == GPU_MEM_DEVICE && a.size ? a.size : r.len;
	r.vmm = r.kind == GPU_MEM_DEVICE && !r.ipc;
	r.whole = at >= r.base && len <= r.len && at - r.base <= r.len - len;
	*range = r;
	return 0;
}

int cuda_dmabuf_export(struct gpu *gpu, const void *addr, uint64_t len,
		       struct gpu_dmabuf *buf)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t at = cuda_ptr(addr), start = at & ~(page - 1);
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	struct gpu_range r;
	uint64_t end;
	CUresult rc;
	int ret, fd = -1;

	if (len == 0 || at + len < at || at + len > UINT64_MAX - page)
		return cuda_refuse(-EINVAL, "exporting 0x%llx, %llu bytes: no such range",
				   (unsigned long long)at, (unsigned long long)len);
	end = (at + len + page - 1) & ~(page - 1);
	ret = cuda_query(gpu, addr, len, &r);
	if (ret)
		return ret;
	if (r.kind != GPU_MEM_DEVICE)
		return cuda_refuse(-EINVAL,
				   "exporting 0x%llx: this is no device memory, which a "
				   "DMA buffer is made of. Register it as host memory.",
				   (unsigned long long)at);
	if (!cuda->drv.mem_get_range_handle || !gpu->device[r.device].dmabuf)
		return cuda_refuse(
			-ENOSYS,
			"GPU %d exports no DMA buffers: driver %d.%d, its kernel "
			"modules or the kernel do not have them",
			r.device, cuda->drv.version / 1000,
			cuda->drv.version % 1000 / 10);
	ret = cuda_enter(cuda, r.device, &scope);
	if (ret)
		return ret;
	buf->pcie = true;
	rc = cuda->drv.mem_get_range_handle(&fd, start, end - start,
					    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
					    CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
	if (rc != CUDA_SUCCESS) {
		buf->pcie = false;
		rc = cuda->drv.mem_get_range_handle(
			&fd, start, end - start, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	}
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(
			cuda, rc, "exporting 0x%llx, %llu bytes, as a DMA buffer",
			(unsigned long long)start, (unsigned long long)(end - start));
	buf->fd = fd;
	buf->base = start;
	buf->offset = at - start;
	buf->len = end - start;
	return 0;
}

int cuda_sync_memops(struct gpu *gpu, const void *addr)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	struct gpu_range r;
	unsigned on = 1;
	CUresult rc;
	int ret;

	ret = cuda_query(gpu, addr, 1, &r);
	if (ret)
		return ret;
	if (r.kind != GPU_MEM_DEVICE)
		return cuda_refuse(-EINVAL, "0x%llx is no device memory",
				   (unsigned long long)cuda_ptr(addr));
	ret = cuda_enter(cuda, r.device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.pointer_set_attribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
					     cuda_ptr(addr));
	cuda_leave(cuda, &scope);
	if (rc == CUDA_SUCCESS)
		return 0;
	ret = cuda_fail(cuda, rc, "asking for finished copies at 0x%llx",
			(unsigned long long)cuda_ptr(addr));
	return ret == -EINVAL ? -ENOSYS : ret;
}

int cuda_peer(struct gpu *gpu, int device, int other)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	struct cuda_device *dev;
	CUresult rc;
	int can = 0;
	int ret;

	ret = cuda_device_use(gpu, other);
	if (ret == 0)
		ret = cuda_enter(cuda, device, &scope);
	if (ret || device == other) {
		if (ret == 0)
			cuda_leave(cuda, &scope);
		return ret;
	}
	dev = &cuda->dev[device];
	pthread_mutex_lock(&dev->lock);
	rc = dev->peers >> other & 1 ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
				     : cuda->drv.device_can_access_peer(
					       &can, dev->dev, cuda->dev[other].dev);
	if (rc == CUDA_SUCCESS)
		rc = can ? cuda->drv.ctx_enable_peer_access(cuda->dev[other].ctx, 0)
			 : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	/* The application may have enabled it before us. */
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		dev->peers |= 1ULL << other;
	pthread_mutex_unlock(&dev->lock);
	cuda_leave(cuda, &scope);
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		return 0;
	return cuda_fail(cuda, rc, "letting GPU %d reach the memory of GPU %d", device,
			 other);
}

int cuda_flush(struct gpu *gpu, int device)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	if (device < 0 || device >= gpu->devices)
		return cuda_refuse(-ENODEV, "there is no GPU %d, there are %d", device,
				   gpu->devices);
	if (gpu->device[device].flush == GPU_FLUSH_NONE)
		return 0;
	if (gpu->device[device].flush == GPU_FLUSH_READ)
		return cuda_refuse(
			-ENOSYS,
			"GPU %d flushes nothing at the driver's word: let the NIC "
			"read what it wrote",
			device);
	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.flush_rdma_writes(
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "flushing what NICs wrote to GPU %d",
				   device);
}

int cuda_device_error(struct gpu *gpu, int device)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	rc = cuda->drv.stream_query(cuda->dev[device].scratch);
	cuda_leave(cuda, &scope);
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_NOT_READY)
		return 0;
	cuda_fail(cuda, rc, "GPU %d has failed, and does nothing more in this process",
		  device);
	return -EIO;
}
