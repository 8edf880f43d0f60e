/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of GPUs that applications have registered, and how its bytes get to where the
 * host can touch them. The one place of the provider that knows gpu/ (fi/ asks for
 * nothing but what is here): a driver is looked for when somebody first wants FI_HMEM,
 * and no call of it is made for memory of the host.
 *
 * Which addresses are a device's is known from the registrations alone: one load says
 * that there are none, else a search tree is asked. So memory of a device that was not
 * registered is taken for the host's, as FI_MR_HMEM says it may be.
 *
 * Registrations come from the cache of gpu/reg.h, by the driver's ids of each piece, and
 * outlive their region there: a descriptor of each is kept open, for endpoints that open
 * later.
 *
 * From any thread. Copies of one process are done one after the other, under a lock that
 * is taken below all others.
 */
#ifndef WEFT_MEM_DEVICE_H
#define WEFT_MEM_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "prov/mem/keytab.h"

/* Looks for a GPU, once for the process; false: there is none, or it can't be used, and
 * mem_device_why says why (a sentence; static, or until the next call). A forked child of
 * a process that has found one has none. */
bool mem_device_open(void);
const char *mem_device_why(void);

struct mem_device; /* memory that is registered */

/*
 * Registers [addr, addr + len), all of it memory of that GPU, in one piece or several.
 * What is wrong is logged. -FI_EINVAL: memory of the host, or of another GPU; -FI_ENODEV:
 * no such GPU; -FI_ENOMEM, -FI_EIO. That no NIC can reach it is no error: it then goes
 * through memory of the host.
 */
int mem_device_add(const void *addr, size_t len, int device, struct mem_device **out);
/* Nobody uses it any more. */
void mem_device_drop(struct mem_device *mem);
/* As a DMA buffer, that begins with the registered range; the descriptor stays the
 * registration's. False: it has none. */
bool mem_device_dmabuf(const struct mem_device *mem, struct mem_dmabuf *dmabuf);
/* How NICs reach it: "dma-buf", "staged", ...; and why not better, or "". */
const char *mem_device_path(const struct mem_device *mem, const char **why);

/*
 * Memory of a GPU in another process of this host. `name` is what it takes to reach one
 * piece (an allocation, or a mapped piece) from there: plain bytes, not trusted by who
 * gets them. Exporting may give a descriptor as well (*fd, the caller's; -1: none), which
 * then goes with the name. -FI_EINVAL, -FI_ENOSYS: not of a kind that can be reached.
 */
#define MEM_DEVICE_NAME 144

struct mem_device_name {
	uint64_t base, len; /* of the piece, in its owner */
	unsigned char bytes[MEM_DEVICE_NAME];
};

int mem_device_export(const void *addr, struct mem_device_name *name, int *fd);

/* Maps such a piece: its owner's `base` is at mem_device_at then, which mem_copy takes as
 * memory of a GPU. It stays mapped, whatever its owner does, until it is dropped. fd
 * stays the caller's. -FI_EINVAL: nonsense; -FI_EACCES: not to be reached from here. */
int mem_device_import(const struct mem_device_name *name, int fd,
		      struct mem_device **out);
void *mem_device_at(const struct mem_device *mem);
void mem_device_release(struct mem_device *mem);

/* Registrations and imports that are open in this process. */
extern _Atomic(uint32_t) mem_device_count;

/* For those below. */
bool mem_device_meets(const void *addr, size_t len);
int mem_device_copy(void *to, const void *from, size_t len);

/* Whether any of [addr, addr + len) is a device's. */
static inline bool mem_is_device(const void *addr, size_t len)
{
	return __builtin_expect(
		       atomic_load_explicit(&mem_device_count, memory_order_relaxed) != 0,
		       0) &&
	       mem_device_meets(addr, len);
}

/*
 * memcpy, of memory of either kind: the bytes are there on return. 0; -FI_EFAULT: memory
 * of a device that is not registered to its end, or was freed under its registration;
 * -FI_EIO: the device failed, or didn't copy within 10 s. Then some of it may be there.
 */
static inline int mem_copy(void *to, const void *from, size_t len)
{
	if (__builtin_expect(
		    atomic_load_explicit(&mem_device_count, memory_order_relaxed) != 0,
		    0))
		return mem_device_copy(to, from, len);
	memcpy(to, from, len);
	return 0;
}

/* Memory of the host that devices copy from and to by themselves, of whole pages; NULL:
 * there is none. Between it and a device mem_copy needs no other memory in between, where
 * it is told. */
void *mem_pinned_alloc(size_t len);
void mem_pinned_free(void *at);
/* mem_copy, where the side that is not a device's is pinned. */
int mem_pinned_copy(void *to, const void *from, size_t len);

/* What was registered so far: numbers with a name, as struct wire_counter has them. */
struct wire_counter;
uint32_t mem_device_counters(struct wire_counter *at, uint32_t max);

#endif
