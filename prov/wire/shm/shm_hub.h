/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hub of an endpoint: which of its links have something that it isn't looking for,
 * and whether it sleeps. One page that all its peers map, plus a datagram socket that
 * wakes a sleeper.
 *
 * A socket and not an eventfd: sending on it can be made non-blocking for each call,
 * while a peer could make an eventfd that we were handed block us.
 */
#ifndef WEFT_WIRE_SHM_SHM_HUB_H
#define WEFT_WIRE_SHM_SHM_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/shm/shm_format.h"

/* The owner's. */
struct shm_hub {
	struct shm_hub_mem *mem;
	int mem_fd;
	int wake_rx; /* readable: somebody woke us */
	int wake_tx; /* what peers get a copy of */
	bool armed;
	uint32_t sleeps;    /* number of the last one */
	unsigned wakes_due; /* wake-ups that were sent and not received yet */
};

/* -FI_ENOMEM, -FI_EMFILE. */
int shm_hub_init(struct shm_hub *hub);
void shm_hub_fini(struct shm_hub *hub);

/* Announces sleep; the caller then looks at everything once more. */
void shm_hub_arm(struct shm_hub *hub);
/* Awake again: takes the announcement and the wake-ups back. slept: the announcement
 * stood long enough for somebody to wait on the socket. */
void shm_hub_disarm(struct shm_hub *hub, bool slept);
/* Own threads: wake the endpoint if it sleeps. */
void shm_hub_wake_own(struct shm_hub *hub);

/* Another endpoint's hub, as one of its links sees it. */
struct shm_hub_peer {
	struct shm_hub_mem *mem;
	int wake;     /* owned */
	uint32_t bit; /* our link's name over there */
};

/* Says that the peer should look at the link, and wakes it if it sleeps. */
void shm_hub_ring(const struct shm_hub_peer *peer);

#endif
