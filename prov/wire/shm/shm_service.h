/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keyed RMA where cross-memory attach is refused (rule D6): the initiator puts chunks
 * into shared slots, and the helper thread of the target, which needs no libfabric call
 * there, copies them to or from registered memory.
 */
#ifndef WEFT_WIRE_SHM_SHM_SERVICE_H
#define WEFT_WIRE_SHM_SHM_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/shm/shm_format.h"
#include "prov/wire/wire.h"
#include "util/list.h"
#include "util/lock_note.h"

struct shm_link;
struct shm_service_tx;

/* ---- initiator (endpoint lock) ------------------------------------------------------
 */

/* As wire_ops.put and .get: 0, -FI_EAGAIN, -FI_EINVAL, -FI_ENOMEM. */
int shm_service_ask(struct shm_link *link, const struct wire_segment *seg,
		    enum shm_service_op op);
/* Whether segments are under way. */
bool shm_service_busy(const struct shm_link *link);
/* Whether an answer is there. */
bool shm_service_ready(const struct shm_link *link);
/* Takes answers and asks on; returns how many segments were finished (and reported). */
int shm_service_collect(struct shm_link *link);
/* Reports all that is under way as failed. */
void shm_service_fail(struct shm_link *link, int err);
void shm_service_tx_free(struct shm_service_tx *tx);

/* ---- target (helper thread, ep->mutex) ----------------------------------------------
 */

struct shm_service_rx {
	struct list node; /* in the helper's list while it looks; else on its own */
	uint64_t served;  /* chunks */
	uint32_t idle;	  /* looks in a row that found nothing */
};

/* Serves one chunk; true when there was one. */
LOCK_HELD(lock_wire) bool shm_service_serve(struct shm_link *link);
/* Stops looking; false when something came just now. */
LOCK_HELD(lock_wire) bool shm_service_rest(struct shm_link *link);

#endif
