/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: allocated, pinned, and what an address is. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/mock/mock_api.h"

/* Device addresses come out of one range of ours, so that one that is no longer mapped is
 * still known as a device's. Laid by hand: sanitizers need no notes of so much nothing.
 */
#define ARENA ((size_t)64 << 30)

static uintptr_t arena, arena_used;

/* Addresses that were given back, the last first: what is freed and allocated anew is at
 * the same address where it can be. */
struct hole {
	struct hole *next;
	uintptr_t addr;
	size_t len;
};

static struct hole *holes;

uintptr_t mock_va_get(size_t len)
{
	void *at;

	len = (len + MOCK_GRAIN - 1) / MOCK_GRAIN * MOCK_GRAIN;
	for (struct hole **h = &holes; *h; h = &(*h)->next) {
		struct hole *found = *h;
		const uintptr_t addr = found->addr;

		if (found->len != len)
			continue;
		*h = found->next;
		free(found);
		return addr;
	}
	if (!arena) {
		at = (void *)syscall(SYS_mmap, NULL, ARENA, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return 0;
		arena = (uintptr_t)at;
		arena_used = (MOCK_GRAIN - arena % MOCK_GRAIN) % MOCK_GRAIN;
	}
	if (arena_used + len > ARENA)
		return 0;
	arena_used += len;
	return arena + arena_used - len;
}

void mock_va_put(uintptr_t addr, size_t len)
{
	struct hole *hole = malloc(sizeof(*hole));

	if (!hole)
		return;
	hole->addr = addr;
	hole->len = (len + MOCK_GRAIN - 1) / MOCK_GRAIN * MOCK_GRAIN;
	hole->next = holes;
	holes = hole;
}

struct mock_phys *mock_phys_new(int fd, size_t len, int device)
{
	struct mock_phys *phys = calloc(1, sizeof(*phys));

	if (phys && fd < 0) {
		fd = memfd_create("weft-mock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd >= 0 && ftruncate(fd, (off_t)len) != 0) {
			close(fd);
			fd = -1;
		}
	}
	if (!phys || fd < 0) {
		free(phys);
		return NULL;
	}
	phys->fd = fd;
	phys->len = len;
	phys->device = device;
	phys->refs = 1;
	return phys;
}

void mock_phys_put(struct mock_phys *phys)
{
	if (--phys->refs > 0)
		return;
	close(phys->fd);
	free(phys);
}

struct mock_piece *mock_piece_new(uintptr_t addr, size_t len, enum mock_kind kind,
				  struct mock_phys *phys, int device)
{
	struct mock_piece *piece = calloc(1, sizeof(*piece));

	if (!piece)
		return NULL;
	if (phys && mmap((void *)addr, len,
			 kind == MOCK_MEM_DEVICE && !mock_knob(MOCK_HOST)
				 ? PROT_NONE
				 : PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, phys->fd, 0) == MAP_FAILED) {
		free(piece);
		return NULL;
	}
	piece->addr = addr;
	piece->len = len;
	piece->kind = kind;
	piece->phys = phys;
	piece->device = device;
	piece->access = true;
	piece->id = ++mock.last_id;
	piece->next = mock.pieces;
	mock.pieces = piece;
	return piece;
}

void mock_piece_end(struct mock_piece *piece)
{
	for (struct mock_piece **at = &mock.pieces; *at; at = &(*at)->next) {
		if (*at != piece)
			continue;
		*at = piece->next;
		break;
	}
	if (piece->phys) {
		/* Nothing is there any more, and nobody else gets the addresses. */
		syscall(SYS_mmap, piece->addr, piece->len, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		mock_phys_put(piece->phys);
	}
	free(piece);
}

struct mock_piece *mock_piece_at(uintptr_t addr)
{
	for (struct mock_piece *p = mock.pieces; p; p = p->next) {
		if (addr - p->addr < p->len)
			return p;
	}
	return NULL;
}

bool mock_reachable(uintptr_t addr, size_t len)
{
	bool good = true;

	pthread_mutex_lock(&mock.lock);
	while (good && len && arena && addr - arena < ARENA) {
		const struct mock_piece *p = mock_piece_at(addr);
		size_t n;

		good = p && p->access;
		n = good ? p->addr + p->len - addr : 0;
		/* Only mapped pieces continue each other. */
		good = good && (n >= len || p->mapped);
		n = n < len ? n : len;
		addr += n;
		len -= n;
	}
	pthread_mutex_unlock(&mock.lock);
	return good;
}

static CUresult unsafe_check(void)
{
	bool unsafe;

	pthread_mutex_lock(&mock.lock);
	unsafe = mock_unsafe();
	pthread_mutex_unlock(&mock.lock);
	return unsafe ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUresult alloc(CUdeviceptr *addr, size_t len, enum mock_kind kind)
{
	struct mock_piece *piece = NULL;
	struct mock_phys *phys;
	uintptr_t va = 0;
	int device;
	CUresult rc;

	rc = mock_current(&device);
	if (rc == CUDA_SUCCESS)
		rc = unsafe_check();
	if (rc != CUDA_SUCCESS)
		return rc;
	if (len == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (mock_fails(MOCK_FAIL_ALLOC) || len > ARENA)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mock_idle(device, "cuMemAlloc");
	pthread_mutex_lock(&mock.lock);
	phys = mock_phys_new(-1, (len + 4095) & ~(size_t)4095, device);
	if (phys) {
		phys->rdma = kind == MOCK_MEM_DEVICE;
		va = mock_va_get(phys->len);
	}
	if (va)
		piece = mock_piece_new(va, phys->len, kind, phys, device);
	if (va && !piece)
		mock_va_put(va, phys->len);
	if (phys && !piece)
		mock_phys_put(phys);
	pthread_mutex_unlock(&mock.lock);
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*addr = va;
	return CUDA_SUCCESS;
}

CUresult mock_mem_alloc(CUdeviceptr *addr, size_t len)
{
	return alloc(addr, len, MOCK_MEM_DEVICE);
}

CUresult mock_mem_alloc_managed(CUdeviceptr *addr, size_t len, unsigned flags)
{
	(void)flags;
	return alloc(addr, len, MOCK_MEM_MANAGED);
}

CUresult mock_mem_free(CUdeviceptr addr)
{
	CUresult rc = mock_ready();
	struct mock_piece *p;
	size_t len;

	if (rc == CUDA_SUCCESS)
		rc = unsafe_check();
	if (rc != CUDA_SUCCESS)
		return rc;
	mock_idle(-1, "cuMemFree");
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at(addr);
	if (!p || p->addr != addr || !p->phys || p->mapped || p->opened) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		len = p->len;
		mock_piece_end(p);
		mock_va_put(addr, len);
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_host_alloc(void **addr, size_t len, unsigned flags)
{
	struct mock_piece *piece;
	void *host;
	int device;
	CUresult rc;

	(void)flags;
	rc = mock_current(&device);
	if (rc == CUDA_SUCCESS)
		rc = unsafe_check();
	if (rc != CUDA_SUCCESS)
		return rc;
	mock_idle(-1, "cuMemHostAlloc");
	if (mock_fails(MOCK_FAIL_ALLOC) || posix_memalign(&host, 4096, len) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(host, 0xa5, len);
	pthread_mutex_lock(&mock.lock);
	piece = mock_piece_new((uintptr_t)host, len, MOCK_MEM_HOST, NULL, device);
	pthread_mutex_unlock(&mock.lock);
	if (!piece) {
		free(host);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*addr = host;
	return CUDA_SUCCESS;
}

/* Forgets pinned memory of that kind at an address. */
static CUresult forget(void *addr, enum mock_kind kind, CUresult other)
{
	CUresult rc = mock_ready();
	struct mock_piece *p;

	if (rc == CUDA_SUCCESS)
		rc = unsafe_check();
	if (rc != CUDA_SUCCESS)
		return rc;
	mock_idle(-1, kind == MOCK_MEM_HOST ? "cuMemFreeHost" : "cuMemHostUnregister");
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at((uintptr_t)addr);
	if (!p || p->addr != (uintptr_t)addr || p->kind != kind)
		rc = other;
	else
		mock_piece_end(p);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_free_host(void *addr)
{
	const CUresult rc = forget(addr, MOCK_MEM_HOST, CUDA_ERROR_INVALID_VALUE);

	if (rc == CUDA_SUCCESS)
		free(addr);
	return rc;
}

CUresult mock_mem_host_register(void *addr, size_t len, unsigned flags)
{
	struct mock_piece *piece = NULL;
	int device;
	CUresult rc;

	(void)flags;
	rc = mock_current(&device);
	if (rc == CUDA_SUCCESS)
		rc = unsafe_check();
	if (rc != CUDA_SUCCESS)
		return rc;
	if (!addr || len == 0)
		return CUDA_ERROR_INVALID_VALUE;
	mock_idle(-1, "cuMemHostRegister");
	mock_pause(MOCK_PIN_MS);
	if (mock_fails(MOCK_FAIL_PIN))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&mock.lock);
	if (mock_piece_at((uintptr_t)addr) || mock_piece_at((uintptr_t)addr + len - 1))
		rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else
		piece = mock_piece_new((uintptr_t)addr, len, MOCK_MEM_REGISTERED, NULL,
				       device);
	if (rc == CUDA_SUCCESS && !piece)
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_host_unregister(void *addr)
{
	return forget(addr, MOCK_MEM_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult mock_mem_host_get_device_pointer(CUdeviceptr *dev, void *host, unsigned flags)
{
	CUresult rc = mock_ready();

	(void)flags;
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	if (!mock_piece_at((uintptr_t)host))
		rc = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&mock.lock);
	if (rc == CUDA_SUCCESS)
		*dev = (CUdeviceptr)(uintptr_t)host;
	return rc;
}

/* One answer, of the width that the driver gives it. p may be NULL: an address that is
 * not known. Under the lock. */
static CUresult answer(int what, void *data, const struct mock_piece *p, CUdeviceptr addr)
{
	const bool device = p && p->phys;
	uintptr_t start = p ? p->addr : 0;
	size_t len = p ? p->len : 0;

	if (p && p->mapped)
		mock_reserved_range(p->addr, &start, &len);
	switch (what) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = !p	     ? 0
				    : device ? CU_MEMORYTYPE_DEVICE
					     : CU_MEMORYTYPE_HOST;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned char *)data = p && p->kind == MOCK_MEM_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = p ? p->device : -2;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = p ? addr : 0;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(uint64_t *)data = p ? p->id : 0;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(uint64_t *)data = start;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(uint64_t *)data = len;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned char *)data = p && p->kind == MOCK_MEM_DEVICE && !p->mapped &&
					 !p->opened && mock.knob[MOCK_IPC];
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)data = device && p->mapped && p->phys->exportable;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned char *)data = device && p->phys->rdma;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult mock_pointer_get_attributes(unsigned count, int *attributes, void **data,
				     CUdeviceptr addr)
{
	CUresult rc = mock_ready();

	pthread_mutex_lock(&mock.lock);
	for (unsigned i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = answer(attributes[i], data[i], mock_piece_at(addr), addr);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_pointer_set_attribute(const void *value, int what, CUdeviceptr addr)
{
	CUresult rc = mock_ready();
	struct mock_piece *p;

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at(addr);
	if (!value || what != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !p || !p->phys)
		rc = CUDA_ERROR_INVALID_VALUE;
	else if (p->mapped || !mock.knob[MOCK_SYNC_MEMOPS])
		rc = CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_mem_get_address_range(CUdeviceptr *base, size_t *len, CUdeviceptr addr)
{
	const struct mock_piece *p;
	CUresult rc;
	int device;

	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at(addr);
	if (!p || !p->phys) {
		rc = CUDA_ERROR_NOT_FOUND;
	} else {
		*base = p->addr;
		*len = p->len;
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}
