/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint of the shared-memory wire: its door, its hub, its links and its helper
 * thread.
 *
 * Lock order: the caller's endpoint lock, then ep->mutex. The helper thread takes
 * ep->mutex only, never waits while it holds it, and never calls upwards.
 */
#ifndef WEFT_WIRE_SHM_SHM_EP_H
#define WEFT_WIRE_SHM_SHM_EP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/mem/fork.h"
#include "prov/mem/keytab.h"
#include "prov/mem/params.h"
#include "prov/wire/shm/shm_bulk.h"
#include "prov/wire/shm/shm_door.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/shm/shm_helper.h"
#include "prov/wire/shm/shm_hub.h"
#include "prov/wire/wire.h"
#include "util/list.h"
#include "util/lock_note.h"

struct shm_link;

struct shm_ep {
	struct wire_ep_base base; /* first */
	const struct wire_events *events;
	void *arg;
	uint64_t incarnation;
	bool no_imports;   /* wire_ep_attr */
	enum prov_cma cma; /* what the user wants of cross-memory attach */
	bool warned_user;  /* mutex: another user's process was told of */
	int pid;	   /* whose endpoint it is: not a forked child's */

	/* Endpoint lock. */
	struct shm_hub hub;
	struct shm_link **hot; /* links that progress looks at; NULL: left meanwhile */
	int hot_count;
	int hot_holes;
	int hot_next; /* where the next look begins */
	bool untidy;  /* hot has holes, or graveyard isn't empty */
	struct list graveyard;
	uint64_t look_next; /* monotonic ns: cold links are looked at; 0: had none yet */
	struct shm_bulk bulk; /* mem and fd never change */

	struct shm_door door;
	struct mem_keytab *keys;
	struct mem_arena *arena;      /* what peers may map; NULL: nothing */
	struct mem_keyview *own_keys; /* the helper thread serves by it */
	uint64_t cookie[2];	      /* peers read it to find out about attach */

	pthread_mutex_t mutex;
	struct shm_link **links; /* mutex: by index, SHM_HUB_BITS of them */
	uint32_t link_top;	 /* mutex: no link at this index or above */
	uint32_t link_generation;
	struct list news;	/* mutex: links that progress must hear about */
	_Atomic(bool) has_news; /* read without */
	struct shm_helper helper;
	struct mem_fork fork;
};

static inline struct shm_ep *shm_ep_of(struct wire_ep *ep)
{
	return (struct shm_ep *)(void *)ep;
}

LOCK_TAKE(lock_wire) static inline void shm_ep_lock(struct shm_ep *ep)
{
	pthread_mutex_lock(&ep->mutex);
}

LOCK_GIVE(lock_wire) static inline void shm_ep_unlock(struct shm_ep *ep)
{
	pthread_mutex_unlock(&ep->mutex);
}

/* Monotonic ns. */
uint64_t shm_now(void);

int shm_ep_open(const struct wire_ep_attr *attr, struct wire_ep **ep);
void shm_ep_close(struct wire_ep *ep);
int shm_progress(struct wire_ep *ep, int budget);
int shm_arm(struct wire_ep *ep);
int shm_fd(struct wire_ep *ep);
uint64_t shm_look_due(struct wire_ep *ep);
int shm_quiesce(struct wire_ep *ep, uint64_t key, uint64_t deadline_ns);

#endif
