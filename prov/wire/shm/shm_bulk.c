/* SPDX-License-Identifier: BSD-2-Clause */
/* Bulk slots: the owner's stack of free ones, and a peer's mapping. */
#include "config.h"

#include "prov/wire/shm/shm_bulk.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/memfd.h"
#include "prov/mem/params.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"

void shm_bulk_init(struct shm_bulk *bulk)
{
	void *map;
	int ret;

	*bulk = (struct shm_bulk){.fd = -1};
	ret = mem_memfd_create("weft-bulk", SHM_BULK_SIZE, &bulk->fd, &map);
	if (ret) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"no bulk slots (%zu bytes): %s; large messages move by attach or "
			"in packets\n",
			SHM_BULK_SIZE, fi_strerror(-ret));
		bulk->fd = -1;
		return;
	}
	/* Peers only read; what one of them could write would be another one's message.
	 */
	mem_memfd_seal_writes(bulk->fd);
	bulk->mem = map;
	/* The lowest on top, so that few pages are ever touched. */
	for (uint32_t i = SHM_BULK_SLOTS; i-- > 0;)
		bulk->free[bulk->free_count++] = (uint8_t)i;
}

void shm_bulk_fini(struct shm_bulk *bulk)
{
	if (!bulk->mem)
		return;
	munmap(bulk->mem, SHM_BULK_SIZE);
	close(bulk->fd);
	*bulk = (struct shm_bulk){.fd = -1};
}

int shm_bulk_map(int fd, const struct shm_bulk_mem **mem)
{
	size_t size = SHM_BULK_SIZE;
	void *map;
	int ret = mem_memfd_map(fd, &size, false, &map);

	if (ret == 0)
		*mem = map;
	return ret;
}

void shm_bulk_unmap(const struct shm_bulk_mem *mem)
{
	if (mem)
		munmap((void *)(uintptr_t)mem, SHM_BULK_SIZE);
}

int shm_bulk_get(struct wire_ep *wep, struct wire_bulk *out)
{
	struct shm_bulk *bulk = &shm_ep_of(wep)->bulk;
	_Atomic(uint32_t) *turn;

	if (!bulk->mem)
		return -FI_ENOMEM;
	if (bulk->free_count == 0)
		return -FI_EAGAIN;
	out->slot = bulk->free[--bulk->free_count];
	bulk->taken[out->slot] = true;
	turn = &bulk->mem->turn[out->slot].count;
	out->turn = atomic_load_explicit(turn, memory_order_relaxed) + 1;
	out->at = bulk->mem->bytes[out->slot];
	/* Before any new byte: a reader that is late sees that it read too late. */
	atomic_store_explicit(turn, out->turn, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	return 0;
}

void shm_bulk_put(struct wire_ep *wep, uint32_t slot)
{
	struct shm_bulk *bulk = &shm_ep_of(wep)->bulk;

	assert(slot < SHM_BULK_SLOTS && bulk->taken[slot]);
	bulk->taken[slot] = false;
	bulk->free[bulk->free_count++] = (uint8_t)slot;
}

const void *shm_bulk_peer(struct wire_link *wlink, uint32_t slot, size_t len)
{
	const struct shm_link *link = (struct shm_link *)(void *)wlink;

	if (!link->peer_bulk || slot >= SHM_BULK_SLOTS || len > SHM_BULK_SLOT)
		return NULL;
	return link->peer_bulk->bytes[slot];
}

bool shm_bulk_holds(struct wire_link *wlink, uint32_t slot, uint32_t turn)
{
	const struct shm_link *link = (struct shm_link *)(void *)wlink;

	if (!link->peer_bulk || slot >= SHM_BULK_SLOTS)
		return false;
	/* After every byte that was read before. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&link->peer_bulk->turn[slot].count,
				    memory_order_relaxed) == turn;
}
