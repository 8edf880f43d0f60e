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
#include <string.h>

#include "prov/mem/arena.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/wire.h"
#include "util/copy.h"
#include "util/lock_note.h"

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

/* Endpoint lock: where the len bytes of a word are here; NULL: not mapped yet, then it
 * was asked for, or a lie. Stays as long as the link. */
uint8_t *shm_share_find(struct shm_link *link, uint64_t word, size_t len);

/* Of 2 and 4 bytes, and whatever else is short. */
void shm_share_move_short(uint8_t *shared, uint8_t *local, size_t len, bool write);

/* Load or store of bytes that both processes see. A word of 8, 4 or 2 bytes at an address
 * that is a multiple of its size moves in one piece: targets poll for it. */
static inline void shm_share_move(uint8_t *shared, uint8_t *local, size_t len, bool write)
{
	uint8_t *to = write ? shared : local;
	const uint8_t *from = write ? local : shared;
	uint64_t word;

	if (__builtin_expect(len == 8, 1)) {
		/* The compiler makes one load and one store of it. */
		memcpy(&word, from, sizeof(word));
		__asm__("" : "+r"(word));
		memcpy(to, &word, sizeof(word));
	} else if (len < 8) {
		shm_share_move_short(shared, local, len, write);
	} else if (len <= COPY_SMALL_MAX) {
		copy_small(to, from, len);
	} else {
		memcpy(to, from, len);
	}
	/* Before whatever tells the target, or this process, that it is done. */
	atomic_thread_fence(memory_order_acq_rel);
}

/* Endpoint lock: copies the segment if all of the place is mapped here; else false, and
 * what is missing was asked for. */
bool shm_share_copy(struct shm_link *link, const struct mem_place *place,
		    const struct wire_segment *seg, bool write);

/* Helper thread, mutex held: a message on the link's socket, with the descriptor that
 * came along (-1: none), which is taken over. */
LOCK_HELD(lock_wire)
void shm_share_message(struct shm_link *link, const struct shm_share_msg *msg, int fd);
/* A message on a link's socket, with a descriptor or -1. Never blocks; one that can't be
 * sent is lost. */
void shm_share_send(int sock, const void *msg, size_t len, int fd);
/* Nobody uses them any more. */
void shm_share_fini(struct shm_share *share);

#endif
