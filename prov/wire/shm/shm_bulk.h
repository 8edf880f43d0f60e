/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bulk slots: memory of an endpoint that all its peers map for reading, through which a
 * large message is copied by both sides at once. The owner fills a slot, says so in a
 * packet, and gets it back by another one: nothing here is shared but the bytes, and a
 * count per slot that tells a reader whether the slot was given away under its hands.
 */
#ifndef WEFT_WIRE_SHM_SHM_BULK_H
#define WEFT_WIRE_SHM_SHM_BULK_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/shm/shm_format.h"
#include "prov/wire/wire.h"

struct shm_link;

/* The owner's (endpoint lock). Free slots are a stack: the newest is still in the cache.
 */
struct shm_bulk {
	struct shm_bulk_mem *mem; /* NULL: refused, there are no slots */
	int fd;			  /* -1: the same */
	uint32_t free_count;
	uint8_t free[SHM_BULK_SLOTS];
	bool taken[SHM_BULK_SLOTS];
};

/* Memory that is refused is no error: then nothing moves in bulk. */
void shm_bulk_init(struct shm_bulk *bulk);
void shm_bulk_fini(struct shm_bulk *bulk);

/* Maps a peer's slots, from a descriptor that stays the caller's. -FI_EINVAL, -FI_ENOMEM.
 */
int shm_bulk_map(int fd, const struct shm_bulk_mem **mem);
void shm_bulk_unmap(const struct shm_bulk_mem *mem);

/* Wire functions. */
int shm_bulk_get(struct wire_ep *ep, struct wire_bulk *bulk);
void shm_bulk_put(struct wire_ep *ep, uint32_t slot);
const void *shm_bulk_peer(struct wire_link *link, uint32_t slot, size_t len);
bool shm_bulk_holds(struct wire_link *link, uint32_t slot, uint32_t turn);

#endif
