/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of GPUs of a peer, mapped here, so that put and get are one copy by a GPU.
 * Whoever first needs a piece of a region asks for it on the link's socket; the owner's
 * helper thread answers, and the asker's maps it. Until then, and where it can't be
 * mapped, the owner's helper thread carries the bytes (shm_service.h).
 */
#ifndef WEFT_WIRE_SHM_SHM_DEVICE_H
#define WEFT_WIRE_SHM_SHM_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/shm/shm_format.h"
#include "prov/wire/wire.h"
#include "util/lock_note.h"

#define SHM_IMPORTS 16 /* pieces of one peer that are mapped at a time */

struct mem_device;
struct mem_place;
struct shm_link;

/* FREE -> ASKED by who makes calls; ASKED -> READY, REFUSED by the helper thread; these
 * two -> FREE by who makes calls. Whoever may change the state owns the rest. */
enum shm_import_state {
	SHM_IMPORT_FREE,
	SHM_IMPORT_ASKED,
	SHM_IMPORT_READY,
	SHM_IMPORT_REFUSED
};

struct shm_import {
	_Atomic(uint32_t) state; /* enum shm_import_state */
	uint32_t incarnation;
	uint64_t key;
	uint64_t addr;		/* that was asked for */
	uint32_t missed;	/* uses that found it ASKED */
	uint64_t used;		/* when, by shm_link.import_uses */
	struct mem_device *mem; /* READY */
	uint64_t base, len;	/* READY: in its owner */
};

/* Endpoint lock, and the key in the hazard: all of the segment by copies of a GPU; 1, or
 * an error of mem_copy. -FI_EPERM: not all of it is mapped here (yet: it was asked for).
 */
int shm_device_copy(struct shm_link *link, const struct mem_place *place,
		    const struct wire_segment *seg, bool write);

/* wire_ops.move_device. */
int shm_move_device(struct wire_link *link, const struct wire_segment *seg, bool write);

/* Helper thread, mutex held: a message on the link's socket; takes fd over. */
LOCK_HELD(lock_wire)
void shm_device_message(struct shm_link *link, const struct shm_device_msg *msg, int fd);
/* Nobody uses them any more. */
void shm_device_fini(struct shm_import imports[SHM_IMPORTS]);

#endif
