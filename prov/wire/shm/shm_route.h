/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes: the regions of a peer that were used last, so that the next small put or get
 * costs no look-up in its key table and no list of pieces. Where its shared memory for
 * applications is mapped here they are load and store, else one system call.
 */
#ifndef WEFT_WIRE_SHM_SHM_ROUTE_H
#define WEFT_WIRE_SHM_SHM_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/mem/keytab.h"
#include "prov/wire/wire.h"

struct shm_link;

/* By key; a power of two. */
#define SHM_ROUTES 16

struct shm_route {
	struct mem_keyhit hit;
	uint8_t *map; /* all of the region, in this process; NULL: not mapped */
};
_Static_assert(sizeof(struct shm_route) == 64, "a cache line");

/* Wire functions. */
bool shm_put_now(struct wire_link *link, uint64_t key, uint64_t addr, const void *from,
		 size_t len);
bool shm_get_now(struct wire_link *link, uint64_t key, uint64_t addr, void *to,
		 size_t len);

#endif
