/* SPDX-License-Identifier: BSD-2-Clause */
/* Mapped pieces, and memory that other processes and NICs are given. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/mock/mock_api.h"
#include "gpu/mock/place.h"

/* Reserved addresses. */
struct range {
	struct range *next;
	uintptr_t addr;
	size_t len;
};

static struct range *ranges;

_Static_assert(sizeof(struct place) <= sizeof(CUipcMemHandle), "it fits");

/* Under the lock. */
static struct range *range_at(uintptr_t addr)
{
	for (struct range *r = ranges; r; r = r->next) {
		if (addr - r->addr < r->len)
			return r;
	}
	return NULL;
}

void mock_reserved_range(uintptr_t addr, uintptr_t *start, size_t *len)
{
	const struct range *r = range_at(addr);

	if (!r)
		return;
	*start = r->addr;
	*len = r->len;
}

static CUresult vmm_ready(void)
{
	const CUresult rc = mock_ready();
	bool there;

	pthread_mutex_lock(&mock.lock);
	there = mock.knob[MOCK_VMM];
	pthread_mutex_unlock(&mock.lock);
	return rc == CUDA_SUCCESS && !there ? CUDA_ERROR_NOT_SUPPORTED : rc;
}

CUresult mock_mem_get_granularity(size_t *granularity, const CUmemAllocationProp *prop,
				  int option)
{
	(void)prop;
	(void)option;
	*granularity = MOCK_GRAIN;
	return vmm_ready();
}

CUresult mock_mem_address_reserve(CUdeviceptr *addr, size_t len, size_t align,
				  CUdeviceptr hint, unsigned long long flags)
{
	CUresult rc = vmm_ready();
	struct range *r;
	uintptr_t va;

	(void)hint;
	if (rc != CUDA_SUCCESS)
		return rc;
	if (len == 0 || len % MOCK_GRAIN || align > MOCK_GRAIN || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = calloc(1, sizeof(*r));
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&mock.lock);
	va = mock_va_get(len);
	if (va) {
		r->addr = va;
		r->len = len;
		r->next = ranges;
		ranges = r;
		r = NULL;
	}
	pthread_mutex_unlock(&mock.lock);
	free(r);
	if (!va)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*addr = va;
	return CUDA_SUCCESS;
}

CUresult mock_mem_address_free(CUdeviceptr addr, size_t len)
{
	CUresult rc = vmm_ready();
	struct range **at, *r;

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	for (at = &ranges; *at && (*at)->addr != addr; at = &(*at)->next)
		;
	r = *at;
	if (!r || r->len != len) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		for (const struct mock_piece *p = mock.pieces; p; p = p->next)
			rc = p->addr - r->addr < r->len ? CUDA_ERROR_INVALID_VALUE : rc;
	}
	if (rc == CUDA_SUCCESS) {
		*at = r->next;
		mock_va_put(r->addr, r->len);
		free(r);
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_create(CUmemGenericAllocationHandle *handle, size_t len,
			 const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult rc = vmm_ready();
	struct mock_phys *phys;

	if (rc != CUDA_SUCCESS)
		return rc;
	if (len == 0 || len % MOCK_GRAIN || flags ||
	    prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (mock_fails(MOCK_FAIL_ALLOC))
		return CUDA_ERROR_OUT_OF_MEMORY;
	phys = mock_phys_new(-1, len, prop->location.id);
	if (!phys)
		return CUDA_ERROR_OUT_OF_MEMORY;
	phys->rdma = prop->allocFlags.gpuDirectRDMACapable;
	phys->exportable =
		prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)phys;
	return CUDA_SUCCESS;
}

static struct mock_phys *phys_of(CUmemGenericAllocationHandle handle)
{
	return (struct mock_phys *)(uintptr_t)handle;
}

CUresult mock_mem_release(CUmemGenericAllocationHandle handle)
{
	pthread_mutex_lock(&mock.lock);
	mock_phys_put(phys_of(handle));
	pthread_mutex_unlock(&mock.lock);
	return vmm_ready();
}

CUresult mock_mem_map(CUdeviceptr addr, size_t len, size_t offset,
		      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct mock_phys *phys = phys_of(handle);
	CUresult rc = vmm_ready();
	struct mock_piece *piece;
	const struct range *r;

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	r = range_at(addr);
	if (!r || len == 0 || len != phys->len || addr + len > r->addr + r->len ||
	    offset || flags || addr % MOCK_GRAIN || mock_piece_at(addr) ||
	    mock_piece_at(addr + len - 1)) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		piece = mock_piece_new(addr, len, MOCK_MEM_DEVICE, phys, phys->device);
		rc = piece ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (piece) {
			phys->refs++;
			piece->mapped = true;
			piece->access = false;
		}
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

/* All pieces of a range: what fn does with each. Under the lock. */
static CUresult each(CUdeviceptr addr, size_t len, bool end)
{
	while (len) {
		struct mock_piece *p = mock_piece_at(addr);

		if (!p || !p->mapped || p->addr != addr || p->len > len)
			return CUDA_ERROR_INVALID_VALUE;
		addr += p->len;
		len -= p->len;
		if (end)
			mock_piece_end(p);
		else
			p->access = true;
	}
	return CUDA_SUCCESS;
}

CUresult mock_mem_unmap(CUdeviceptr addr, size_t len)
{
	CUresult rc = vmm_ready();

	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS)
		rc = each(addr, len, true);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_set_access(CUdeviceptr addr, size_t len, const CUmemAccessDesc *desc,
			     size_t count)
{
	CUresult rc = vmm_ready();

	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS)
		rc = each(addr, len, false);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_retain_handle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult rc = vmm_ready();
	struct mock_piece *p;

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at((uintptr_t)addr);
	if (!p || !p->mapped) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		p->phys->refs++;
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)p->phys;
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_export(void *shareable, CUmemGenericAllocationHandle handle, int type,
			 unsigned long long flags)
{
	struct mock_phys *phys = phys_of(handle);
	const CUresult rc = vmm_ready();
	int fd;

	if (rc != CUDA_SUCCESS)
		return rc;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags ||
	    !phys->exportable)
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl(phys->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)shareable = fd;
	return CUDA_SUCCESS;
}

CUresult mock_mem_import(CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
	const int given = (int)(intptr_t)shareable;
	const CUresult rc = vmm_ready();
	struct mock_phys *phys;
	struct stat st;
	int fd;

	if (rc != CUDA_SUCCESS)
		return rc;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    fcntl(given, F_GET_SEALS) < 0 || fstat(given, &st) != 0 || st.st_size <= 0 ||
	    st.st_size % MOCK_GRAIN)
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
	phys = fd < 0 ? NULL : mock_phys_new(fd, (size_t)st.st_size, 0);
	if (!phys) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)phys;
	return CUDA_SUCCESS;
}

/* Under the lock. */
static struct place place_of(const struct mock_piece *p)
{
	struct stat st = {.st_ino = 0};

	fstat(p->phys->fd, &st);
	return (struct place){
		.magic = PLACE_MAGIC,
		.pid = (uint64_t)getpid(),
		.fd = (uint64_t)p->phys->fd,
		.inode = st.st_ino,
		.len = p->len,
		.device = (uint64_t)p->device,
	};
}

CUresult mock_ipc_get_mem_handle(CUipcMemHandle *handle, CUdeviceptr addr)
{
	const struct mock_piece *p;
	struct place place;
	CUresult rc;
	int device;

	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at(addr);
	if (!p || p->kind != MOCK_MEM_DEVICE || p->mapped || p->opened ||
	    !mock.knob[MOCK_IPC]) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		place = place_of(p);
		memset(handle, 0, sizeof(*handle));
		memcpy(handle, &place, sizeof(place));
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

/* The file behind a handle of another process; -1: it is gone, or never was. */
static int place_open(const struct place *place)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%llu/fd/%llu", (unsigned long long)place->pid,
		 (unsigned long long)place->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_ino == place->inode &&
	    (uint64_t)st.st_size == place->len)
		return fd;
	close(fd);
	return -1;
}

CUresult mock_ipc_open_mem_handle(CUdeviceptr *addr, CUipcMemHandle handle,
				  unsigned flags)
{
	struct mock_piece *piece = NULL;
	struct mock_phys *phys;
	struct place place;
	uintptr_t va = 0;
	int device, fd;
	CUresult rc;

	(void)flags;
	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	memcpy(&place, &handle, sizeof(place));
	if (place.magic != PLACE_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (place.pid == (uint64_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	fd = place_open(&place);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mock.lock);
	phys = mock_phys_new(fd, place.len, (int)place.device);
	if (phys)
		va = mock_va_get(place.len);
	if (va)
		piece = mock_piece_new(va, place.len, MOCK_MEM_DEVICE, phys,
				       phys->device);
	if (piece)
		piece->opened = true;
	else if (phys)
		mock_phys_put(phys);
	else
		close(fd);
	pthread_mutex_unlock(&mock.lock);
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*addr = va;
	return CUDA_SUCCESS;
}

CUresult mock_ipc_close_mem_handle(CUdeviceptr addr)
{
	CUresult rc = mock_ready();
	struct mock_piece *p;
	size_t len;

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at(addr);
	if (!p || p->addr != addr || !p->opened) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		len = p->len;
		mock_piece_end(p);
		mock_va_put(addr, len);
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

/* Writes where each piece of a range is into a file. Under the lock. */
static CUresult list_places(int fd, CUdeviceptr addr, size_t len)
{
	int device = -1;

	while (len) {
		const struct mock_piece *p = mock_piece_at(addr);
		struct place place;

		if (!p || p->kind != MOCK_MEM_DEVICE || !p->phys->rdma ||
		    (device >= 0 && p->device != device))
			return CUDA_ERROR_INVALID_VALUE;
		device = p->device;
		place = place_of(p);
		place.offset = addr - p->addr;
		place.len = p->addr + p->len - addr < len ? p->addr + p->len - addr : len;
		if (write(fd, &place, sizeof(place)) != (ssize_t)sizeof(place))
			return CUDA_ERROR_OUT_OF_MEMORY;
		addr += place.len;
		len -= place.len;
	}
	return CUDA_SUCCESS;
}

CUresult mock_mem_get_range_handle(void *handle, CUdeviceptr addr, size_t len, int type,
				   unsigned long long flags)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	bool known, pcie;
	int device, fd;
	CUresult rc;

	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	mock_pause(MOCK_EXPORT_MS);
	pthread_mutex_lock(&mock.lock);
	known = mock.knob[MOCK_DMABUF];
	pcie = mock.knob[MOCK_PCIE];
	pthread_mutex_unlock(&mock.lock);
	if (!known)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || len == 0 || addr % page ||
	    len % page || flags > CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags && !pcie)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (mock_fails(MOCK_FAIL_EXPORT))
		return CUDA_ERROR_UNKNOWN;
	fd = memfd_create("weft-mock-dmabuf", MFD_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&mock.lock);
	rc = list_places(fd, addr, len);
	pthread_mutex_unlock(&mock.lock);
	if (rc != CUDA_SUCCESS)
		close(fd);
	else
		*(int *)handle = fd;
	return rc;
}
