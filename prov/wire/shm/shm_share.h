/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments of a peer's shared memory for applications, mapped here so that put and get
 * are load and store. Whoever first needs a segment asks for it on the link's socket; the
 * owner's helper thread answers with the descriptor, and the asker's helper thread maps
 * it. Until then, and where it can't be mapped, attach or service carry the bytes.
 */
#ifndef WEFT_WIRE_SHM_SHM_SHARE_H
#define WEFT_WIRE_SHM_SHM_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/mem/arena.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/wire.h"

struct mem_place;
struct shm_link;

/* A peer's segment. `map` is set last and once (helper thread), then both stay. */
struct shm_segment {
	_Atomic(uint8_t *) map;
	size_t size;
};

struct shm_share {
	struct shm_segment segments[MEM_ARENA_SEGMENTS];
	/* Endpoint lock: uses of each that found it missing. */
	uint32_t missed[MEM_ARENA_SEGMENTS];
};

/* Endpoint lock: copies the segment if all of the place is mapped here; else false, and
 * what is missing was asked for. */
bool shm_share_copy(struct shm_link *link, const struct mem_place *place,
		    const struct wire_segment *seg, bool write);

/* Helper thread, mutex held: a message on the link's socket, with the descriptor that
 * came along (-1: none), which is taken over. */
void shm_share_message(struct shm_link *link, const struct shm_share_msg *msg, int fd);
/* Nobody uses them any more. */
void shm_share_fini(struct shm_share *share);

#endif
