/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of GPUs; see device.h. Copies are in device_copy.c. */
#include "config.h"

#include "prov/mem/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "gpu/gpu.h"
#include "gpu/itree.h"
#include "gpu/reg.h"
#include "prov/mem/device_int.h"
#include "prov/mem/fork.h"
#include "prov/mem/params.h"
#include "prov/wire/wire.h"

/* Registrations that are kept without a region. Each may hold a descriptor. */
#define KEEP_COUNT 64
#define KEEP_BYTES UINT64_MAX

/* What a cached registration is. */
struct made {
	int fd;		 /* of a DMA buffer; -1: none */
	uint64_t offset; /* of the registration's first byte in it */
};

/* A region's part in one. */
struct mem_device {
	struct itree_node node;
	const struct reg_entry *entry; /* NULL: imported */
	int device;
	struct gpu_range first; /* the piece with its first byte */
};

_Atomic(uint32_t) mem_device_count;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static uint32_t opened_by; /* mem_fork_generation */
static struct gpu *gpu;
static struct reg *reg;
static pthread_rwlock_t tree_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct itree tree;
static _Atomic(uint64_t) imports, exports;

/* ---- the GPU */

static int made_open(void *arg, uint64_t addr, uint64_t len,
		     const struct gpu_range *first, struct reg_made *out)
{
	struct made *made = malloc(sizeof(*made));
	struct gpu_dmabuf buf;

	(void)arg;
	if (!made)
		return -ENOMEM;
	made->fd = -1;
	made->offset = 0;
	out->path = REG_PATH_STAGED;
	out->why[0] = 0;
	out->handle = made;
	/* Best effort: gpu.h says of whom it is asked for nothing. */
	gpu_sync_memops(gpu, (void *)(uintptr_t)addr);
	if (!gpu->device[first->device].dmabuf) {
		snprintf(out->why, sizeof(out->why),
			 "the driver makes no DMA buffers of GPU %d", first->device);
	} else if (gpu_dmabuf_export(gpu, (void *)(uintptr_t)addr, len, &buf) != 0) {
		snprintf(out->why, sizeof(out->why), "%s", gpu_error(gpu));
	} else {
		made->fd = buf.fd;
		made->offset = buf.offset;
		out->path = REG_PATH_DMABUF;
	}
	return 0;
}

static void made_close(void *arg, struct reg_made *out)
{
	struct made *made = out->handle;

	(void)arg;
	if (made->fd >= 0)
		close(made->fd);
	free(made);
}

static void open_once(void)
{
	static const struct reg_ops ops = {.make = made_open, .end = made_close};
	const struct reg_limits limits = {.entries = KEEP_COUNT, .bytes = KEEP_BYTES};
	int ret = gpu_open(NULL, &gpu);

	opened = true;
	opened_by = mem_fork_generation();
	if (ret || !gpu->devices)
		return;
	ret = reg_open(gpu, &ops, NULL, 0, &limits, &reg);
	if (ret) {
		FI_WARN(&weft_provider, FI_LOG_CORE,
			"GPU: no cache of registrations: %s\n", fi_strerror(-ret));
		reg = NULL;
	}
}

/* A child has nothing of its parent's GPU: for it all memory is the host's. */
static void forked(struct mem_fork *f)
{
	(void)f;
	atomic_store(&mem_device_count, 0);
}

bool mem_device_open(void)
{
	static struct mem_fork part = {.lock = &open_lock, .child = forked};
	bool good, first;

	pthread_mutex_lock(&open_lock);
	first = !opened;
	if (first)
		open_once();
	good = reg && opened_by == mem_fork_generation();
	pthread_mutex_unlock(&open_lock);
	if (first)
		mem_fork_enter(&part);
	return good;
}

const char *mem_device_why(void)
{
	if (!gpu)
		return "no memory to look for one";
	if (!gpu->devices)
		return gpu->why;
	if (opened_by != mem_fork_generation())
		return "this process was forked by one that used it: execute a program";
	return reg ? "" : "no thread for its registrations";
}

struct gpu *mem_device_gpu(void)
{
	return gpu;
}

/* ---- registrations */

static int refuse(const void *addr, size_t len, int device, const char *found)
{
	FI_WARN(&weft_provider, FI_LOG_MR,
		"registration of %zu bytes at %p as memory of GPU %d: %s\n", len, addr,
		device, found);
	return -FI_EINVAL;
}

static int range_check(const void *addr, size_t len, int device, struct gpu_range *r)
{
	char found[64];

	if (device < 0 || device >= gpu->devices) {
		FI_WARN(&weft_provider, FI_LOG_MR,
			"registration for GPU %d: this process has %d, counted from 0\n",
			device, gpu->devices);
		return -FI_ENODEV;
	}
	if (len == 0 || (uintptr_t)addr + len - 1 < (uintptr_t)addr)
		return refuse(addr, len, device, "that is no range of memory");
	if (gpu_query(gpu, addr, len, r) != 0)
		return refuse(addr, len, device, gpu_error(gpu));
	if (r->kind != GPU_MEM_DEVICE)
		return refuse(addr, len, device,
			      "it is the host's: register it with FI_HMEM_SYSTEM");
	if (r->device != device) {
		snprintf(found, sizeof(found), "it is of GPU %d: say so in device.cuda",
			 r->device);
		return refuse(addr, len, device, found);
	}
	return 0;
}

static void enter(struct mem_device *mem)
{
	pthread_rwlock_wrlock(&tree_lock);
	itree_add(&tree, &mem->node);
	pthread_rwlock_unlock(&tree_lock);
	atomic_fetch_add(&mem_device_count, 1);
}

static void leave(struct mem_device *mem)
{
	pthread_rwlock_wrlock(&tree_lock);
	itree_take(&tree, &mem->node);
	pthread_rwlock_unlock(&tree_lock);
	atomic_fetch_sub(&mem_device_count, 1);
}

int mem_device_add(const void *addr, size_t len, int device, struct mem_device **out)
{
	struct mem_device *mem;
	struct gpu_range r;
	const char *why, *path;
	int ret;

	if (!mem_device_open())
		return -FI_ENODEV;
	ret = range_check(addr, len, device, &r);
	if (ret)
		return ret;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -FI_ENOMEM;
	ret = reg_get(reg, addr, len, 0, false, &mem->entry);
	if (ret) {
		free(mem);
		return ret == -EINVAL
			       ? refuse(addr, len, device,
					"not all of it is mapped memory of this GPU")
			       : (ret == -ENOMEM ? -FI_ENOMEM : -FI_EIO);
	}
	mem->device = device;
	mem->first = r;
	mem->node.start = (uintptr_t)addr;
	mem->node.end = (uintptr_t)addr + len;
	enter(mem);
	path = mem_device_path(mem, &why);
	FI_INFO(&weft_provider, FI_LOG_MR, "%zu bytes at %p of GPU %d: %s%s%s\n", len,
		addr, device, path, *why ? ": " : "", why);
	*out = mem;
	return 0;
}

void mem_device_drop(struct mem_device *mem)
{
	leave(mem);
	reg_put(reg, mem->entry);
	free(mem);
}

bool mem_device_dmabuf(const struct mem_device *mem, struct mem_dmabuf *dmabuf)
{
	const struct made *made = mem->entry->made.handle;

	if (made->fd < 0)
		return false;
	dmabuf->fd = made->fd;
	dmabuf->offset = made->offset + (mem->node.start - mem->entry->addr);
	return true;
}

const char *mem_device_path(const struct mem_device *mem, const char **why)
{
	*why = mem->entry->made.why;
	return reg_path_name(mem->entry->made.path);
}

/* ---- other processes of this host */

_Static_assert(sizeof(struct gpu_ipc) <= MEM_DEVICE_NAME, "it fits");

int mem_device_export(const void *addr, struct mem_device_name *name, int *fd)
{
	struct gpu_ipc ipc;
	int ret = gpu_ipc_export(gpu, addr, &ipc, fd);

	if (ret) {
		FI_INFO(&weft_provider, FI_LOG_MR, "for processes of this host: %s\n",
			gpu_error(gpu));
		return ret == -EINVAL ? -FI_EINVAL : -FI_ENOSYS;
	}
	*name = (struct mem_device_name){.base = ipc.base, .len = ipc.len};
	memcpy(name->bytes, &ipc, sizeof(ipc));
	atomic_fetch_add(&exports, 1);
	return 0;
}

/* The GPU that has it, or another one where that isn't seen here, which then says no. */
static int device_of(const struct gpu_ipc *ipc)
{
	for (int i = 0; i < gpu->devices; i++)
		if (memcmp(gpu->device[i].uuid, ipc->uuid, GPU_UUID_LEN) == 0)
			return i;
	return 0;
}

int mem_device_import(const struct mem_device_name *name, int fd, struct mem_device **out)
{
	struct mem_device *mem;
	struct gpu_ipc ipc;
	void *base;
	int ret;

	memcpy(&ipc, name->bytes, sizeof(ipc));
	if (ipc.base != name->base || ipc.len != name->len)
		return -FI_EINVAL;
	if (!mem_device_open())
		return -FI_EACCES;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -FI_ENOMEM;
	mem->device = device_of(&ipc);
	ret = gpu_ipc_import(gpu, mem->device, &ipc, fd, &base);
	if (!ret && gpu_query(gpu, base, ipc.len, &mem->first) != 0) {
		gpu_ipc_release(gpu, base);
		ret = -EIO;
	}
	if (ret) {
		FI_INFO(&weft_provider, FI_LOG_MR, "memory of another process: %s\n",
			gpu_error(gpu));
		free(mem);
		return ret == -EINVAL ? -FI_EINVAL : -FI_EACCES;
	}
	mem->device = mem->first.device >= 0 ? mem->first.device : mem->device;
	mem->node.start = (uintptr_t)base;
	mem->node.end = (uintptr_t)base + ipc.len;
	enter(mem);
	atomic_fetch_add(&imports, 1);
	*out = mem;
	return 0;
}

void *mem_device_at(const struct mem_device *mem)
{
	return (void *)(uintptr_t)mem->node.start;
}

void mem_device_release(struct mem_device *mem)
{
	leave(mem);
	gpu_ipc_release(gpu, mem_device_at(mem));
	free(mem);
}

/* ---- what is where */

bool mem_device_meets(const void *addr, size_t len)
{
	const uint64_t at = (uintptr_t)addr;
	bool meets;

	if (len == 0)
		return false;
	pthread_rwlock_rdlock(&tree_lock);
	meets = itree_meet(&tree, at, at + len, NULL) != NULL;
	pthread_rwlock_unlock(&tree_lock);
	return meets;
}

/* The piece that was registered is still the one that is there. */
static bool is_fresh(const struct mem_device *mem, const void *addr, size_t len)
{
	struct gpu_range now;

	if (gpu_query(gpu, addr, len, &now) != 0 || now.kind != GPU_MEM_DEVICE ||
	    now.device != mem->device)
		return false;
	return now.base != mem->first.base || now.id == mem->first.id;
}

int mem_device_find(const void *addr, size_t len)
{
	const uint64_t at = (uintptr_t)addr;
	struct itree_node *node;
	int device = MEM_DEVICE_NONE;

	pthread_rwlock_rdlock(&tree_lock);
	node = itree_cover(&tree, at, at + len);
	if (node) {
		const struct mem_device *mem =
			container_of(node, struct mem_device, node);

		device = is_fresh(mem, addr, len) ? mem->device : -FI_EFAULT;
	} else if (itree_meet(&tree, at, at + len, NULL)) {
		device = -FI_EFAULT;
	}
	pthread_rwlock_unlock(&tree_lock);
	return device;
}

/* ---- numbers */

/* Registrations of those buckets: bucket i ends at 2^i us. */
static uint64_t took(const struct reg_stats *s, unsigned from, unsigned to)
{
	uint64_t sum = 0;

	for (unsigned i = from; i < to; i++)
		sum += s->took[i];
	return sum;
}

uint32_t mem_device_counters(struct wire_counter *at, uint32_t max)
{
	struct reg_stats s;
	uint32_t n = 0;

	if (!reg)
		return 0;
	reg_stats_get(reg, &s);
	const struct wire_counter all[] = {
		{"hmem.registered", s.misses},
		{"hmem.found", s.hits},
		{"hmem.changed", s.stale},
		{"hmem.evicted", s.evicted},
		{"hmem.failed", s.failed},
		{"hmem.dmabuf", s.paths[REG_PATH_DMABUF]},
		{"hmem.staged", s.paths[REG_PATH_STAGED]},
		{"hmem.exported", atomic_load(&exports)},
		{"hmem.imported", atomic_load(&imports)},
		{"hmem.under_128us", took(&s, 0, 8)},
		{"hmem.under_1ms", took(&s, 8, 11)},
		{"hmem.under_16ms", took(&s, 11, 15)},
		{"hmem.longer", took(&s, 15, REG_BUCKETS)},
	};

	for (; n < sizeof(all) / sizeof(all[0]) && n < max; n++)
		at[n] = all[n];
	return n;
}
