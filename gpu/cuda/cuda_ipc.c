/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of other processes of this host. Opening a handle costs the driver close to a
 * millisecond, so that imports of one piece share one mapping. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cuda/cuda.h"

/* One mapping, and how often it was asked for. */
struct cuda_import {
	struct cuda_import *next;
	struct gpu_ipc ipc; /* what was imported; handle[] left out */
	int device;
	CUdeviceptr base;
	bool own; /* exported by this process: nothing was mapped */
	CUmemGenericAllocationHandle handle;
	uint32_t count;
};

_Static_assert(sizeof(CUipcMemHandle) == GPU_IPC_LEN, "a handle fits");

uint64_t cuda_ipc_start(void)
{
	unsigned long long start = 0;
	char text[1024];
	const char *at;
	FILE *f;

	f = fopen("/proc/self/stat", "re");
	if (!f)
		return 0;
	/* The name of the program, in parentheses, may have anything in it. Field 22. */
	at = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	fclose(f);
	return start;
}

/* The context is current. */
static CUresult export_fd(struct cuda *cuda, uint64_t base, int *fd)
{
	CUmemGenericAllocationHandle handle;
	CUresult rc;

	rc = cuda->drv.mem_retain_handle(&handle, (void *)(uintptr_t)base);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cuda->drv.mem_export(fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				  0);
	cuda->drv.mem_release(handle);
	return rc;
}

int cuda_ipc_export(struct gpu *gpu, const void *addr, struct gpu_ipc *ipc, int *fd)
{
	struct cuda *cuda = cuda_of(gpu);
	struct gpu_ipc out = {.kind = GPU_IPC_HANDLE};
	struct cuda_scope scope;
	CUipcMemHandle handle;
	struct gpu_range r;
	CUresult rc;
	int ret, got = -1;

	ret = cuda_query(gpu, addr, 1, &r);
	if (ret)
		return ret;
	if (r.kind != GPU_MEM_DEVICE)
		return cuda_refuse(
			-EINVAL,
			"exporting %p to another process: this is no device memory",
			addr);
	if (!r.fd && !r.ipc)
		return cuda_refuse(
			-ENOSYS,
			"exporting %p to another process: whoever allocated it did "
			"not ask for handles of any kind that can be passed on",
			addr);
	ret = cuda_enter(cuda, r.device, &scope);
	if (ret)
		return ret;
	if (r.ipc) {
		rc = cuda->drv.ipc_get_mem_handle(&handle, r.base);
		memcpy(out.handle, &handle, sizeof(out.handle));
	} else {
		out.kind = GPU_IPC_FD;
		rc = export_fd(cuda, r.base, &got);
	}
	cuda_leave(cuda, &scope);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc, "exporting %p to another process", addr);
	out.pid = (uint32_t)getpid();
	out.start = cuda->start;
	out.base = r.base;
	out.len = r.len;
	out.id = r.id;
	memcpy(out.uuid, gpu->device[r.device].uuid, GPU_UUID_LEN);
	*ipc = out;
	*fd = got;
	return 0;
}

/* The device whose memory it is, or what is wrong with what came from elsewhere. */
static int validate(struct gpu *gpu, const struct gpu_ipc *ipc, int fd)
{
	if (ipc->kind != GPU_IPC_HANDLE && ipc->kind != GPU_IPC_FD)
		return cuda_refuse(-EINVAL,
				   "memory of another process: no kind %u of export",
				   ipc->kind);
	if (ipc->base == 0 || ipc->len == 0 || ipc->base + ipc->len < ipc->base)
		return cuda_refuse(
			-EINVAL,
			"memory of another process: %llu bytes at 0x%llx are none",
			(unsigned long long)ipc->len, (unsigned long long)ipc->base);
	if ((ipc->kind == GPU_IPC_FD) != (fd >= 0))
		return cuda_refuse(
			-EINVAL,
			"memory of another process: a descriptor must come with "
			"kind %u, and with no other; got %d with kind %u",
			GPU_IPC_FD, fd, ipc->kind);
	for (int i = 0; i < gpu->devices; i++) {
		if (memcmp(gpu->device[i].uuid, ipc->uuid, GPU_UUID_LEN) == 0)
			return i;
	}
	return cuda_refuse(
		-ENODEV,
		"memory of another process is on a GPU that this process does not "
		"see. Give both the same CUDA_VISIBLE_DEVICES.");
}

static bool same(const struct cuda_import *im, const struct gpu_ipc *ipc, int device)
{
	return im->device == device && im->ipc.pid == ipc->pid &&
	       im->ipc.start == ipc->start && im->ipc.id == ipc->id &&
	       im->ipc.base == ipc->base && im->ipc.len == ipc->len &&
	       im->ipc.kind == ipc->kind;
}

/* The context is current. */
static CUresult map_fd(struct cuda *cuda, int device, int fd, struct cuda_import *im)
{
	const struct driver *drv = &cuda->drv;
	CUresult rc;

	rc = drv->mem_import(&im->handle, (void *)(intptr_t)fd,
			     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = drv->mem_address_reserve(&im->base, im->ipc.len, 0, 0, 0);
	if (rc != CUDA_SUCCESS) {
		drv->mem_release(im->handle);
		return rc;
	}
	rc = drv->mem_map(im->base, im->ipc.len, 0, im->handle, 0);
	if (rc == CUDA_SUCCESS) {
		rc = cuda_map_access(cuda, device, im->base, im->ipc.len, false);
		if (rc != CUDA_SUCCESS)
			drv->mem_unmap(im->base, im->ipc.len);
	}
	if (rc != CUDA_SUCCESS) {
		drv->mem_address_free(im->base, im->ipc.len);
		drv->mem_release(im->handle);
	}
	return rc;
}

/* Whether this process has exported it: the driver opens no handle of its own process. */
static bool own(struct cuda *cuda, const struct gpu_ipc *ipc)
{
	struct gpu_range r;

	return ipc->pid == (uint32_t)getpid() && ipc->start == cuda->start &&
	       cuda_query(&cuda->gpu, (void *)(uintptr_t)ipc->base, ipc->len, &r) == 0 &&
	       r.id == ipc->id;
}

static int map(struct cuda *cuda, int device, const struct gpu_ipc *ipc, int fd,
	       struct cuda_import *im)
{
	struct cuda_scope scope;
	CUipcMemHandle handle;
	CUresult rc;
	int ret;

	im->base = ipc->base;
	if (im->own)
		return 0;
	ret = cuda_enter(cuda, device, &scope);
	if (ret)
		return ret;
	if (ipc->kind == GPU_IPC_FD) {
		rc = map_fd(cuda, device, fd, im);
	} else {
		memcpy(&handle, ipc->handle, sizeof(handle));
		rc = cuda->drv.ipc_open_mem_handle(&im->base, handle,
						   CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	}
	cuda_leave(cuda, &scope);
	return rc == CUDA_SUCCESS
		       ? 0
		       : cuda_fail(cuda, rc, "mapping %llu bytes of process %u on GPU %d",
				   (unsigned long long)ipc->len, ipc->pid, device);
}

int cuda_ipc_import(struct gpu *gpu, int device, const struct gpu_ipc *ipc, int fd,
		    void **base)
{
	const int owner = validate(gpu, ipc, fd);
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_import *im;
	bool mine;
	int ret;

	if (owner < 0)
		return owner;
	ret = cuda_peer(gpu, device, owner);
	if (ret)
		return ret;
	mine = own(cuda, ipc);
	/* Held while it is mapped: two that import the same must not both map it. */
	pthread_mutex_lock(&cuda->lock);
	for (im = cuda->imports; im && !same(im, ipc, device); im = im->next)
		;
	if (!im) {
		im = calloc(1, sizeof(*im));
		ret = im ? 0
			 : cuda_refuse(-ENOMEM, "no host memory for a note of an import");
		if (im) {
			im->ipc = *ipc;
			im->device = device;
			im->own = mine;
			ret = map(cuda, device, ipc, fd, im);
		}
		if (ret) {
			free(im);
			pthread_mutex_unlock(&cuda->lock);
			return ret;
		}
		im->next = cuda->imports;
		cuda->imports = im;
	}
	im->count++;
	*base = (void *)(uintptr_t)im->base;
	pthread_mutex_unlock(&cuda->lock);
	return 0;
}

/* The context is current. */
static CUresult unmap(struct cuda *cuda, struct cuda_import *im)
{
	CUresult rc, next;

	if (im->own)
		return CUDA_SUCCESS;
	if (im->ipc.kind == GPU_IPC_HANDLE)
		return cuda->drv.ipc_close_mem_handle(im->base);
	rc = cuda->drv.mem_unmap(im->base, im->ipc.len);
	next = cuda->drv.mem_address_free(im->base, im->ipc.len);
	rc = rc == CUDA_SUCCESS ? next : rc;
	next = cuda->drv.mem_release(im->handle);
	return rc == CUDA_SUCCESS ? next : rc;
}

int cuda_ipc_release(struct gpu *gpu, void *base)
{
	struct cuda *cuda = cuda_of(gpu);
	struct cuda_import **at, *im;
	struct cuda_scope scope;
	CUresult rc;
	int ret;

	pthread_mutex_lock(&cuda->lock);
	for (at = &cuda->imports; *at && (*at)->base != cuda_ptr(base); at = &(*at)->next)
		;
	im = *at;
	if (im && --im->count == 0)
		*at = im->next;
	else if (im)
		at = NULL; /* others have it still */
	pthread_mutex_unlock(&cuda->lock);
	if (!im)
		return cuda_refuse(-EINVAL, "releasing %p, which nobody imported", base);
	if (!at)
		return 0;
	ret = cuda_enter(cuda, im->device, &scope);
	if (ret == 0) {
		rc = unmap(cuda, im);
		cuda_leave(cuda, &scope);
		if (rc != CUDA_SUCCESS)
			ret = cuda_fail(cuda, rc, "unmapping memory of process %u",
					im->ipc.pid);
	}
	free(im);
	return ret;
}
