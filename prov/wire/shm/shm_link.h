/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: a connection to one peer endpoint, with its state, its two packet rings and
 * what it needs for RMA.
 *
 * Threads: the endpoint's lock (held by the caller of every wire function) guards
 * everything but the fields marked "mutex", which ep->mutex guards and the helper thread
 * uses as well.
 */
#ifndef WEFT_WIRE_SHM_SHM_LINK_H
#define WEFT_WIRE_SHM_SHM_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/mem/keytab.h"
#include "prov/wire/shm/shm_device.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/shm/shm_handshake.h"
#include "prov/wire/shm/shm_hub.h"
#include "prov/wire/shm/shm_ring.h"
#include "prov/wire/shm/shm_route.h"
#include "prov/wire/shm/shm_service.h"
#include "prov/wire/shm/shm_share.h"
#include "prov/wire/wire.h"
#include "util/list.h"
#include "util/lock_note.h"

struct shm_ep;

enum shm_link_state {
	SHM_LINK_NEW,
	SHM_LINK_DIALLING, /* hello sent, answer awaited */
	SHM_LINK_ACCEPTED, /* answer sent, link_up not reported yet */
	SHM_LINK_UP,
	SHM_LINK_DRAINING, /* the peer is gone; what it sent before is still delivered */
	SHM_LINK_DOWN,	   /* over; freed by the next progress */
	SHM_LINK_LIMBO,	   /* over on our side, the peer has not let go yet (rule D4) */
	SHM_LINK_STATES
};

struct shm_link {
	struct wire_link_base base; /* first */
	struct shm_ep *ep;

	/* What a poll looks at. */
	struct shm_ring_rx rx;
	enum shm_link_state state;
	uint32_t idle; /* polls in a row that found nothing */
	int hot_at;    /* index in ep->hot, -1: cold */
	struct shm_ring_tx tx;
	struct shm_hub_peer peer_hub;

	/* RMA. */
	struct mem_keyview *keys;	   /* the peer's */
	struct shm_hazard *hazard_mine;	   /* we write it */
	int pid;			   /* the peer's process, by the kernel's word */
	bool cma;			   /* its memory can be reached */
	struct shm_service_tx *service_tx; /* we ask; NULL until needed */
	const struct shm_bulk_mem *peer_bulk; /* its bulk slots; NULL: none */
	struct list grave;		      /* in ep->graveyard: DOWN, to be freed */

	struct shm_share share; /* the peer's shared memory for applications */
	struct shm_import imports[SHM_IMPORTS]; /* memory of its GPUs */
	uint64_t import_uses;			/* so far */
	uint32_t joint_used; /* bit per joint cell of ours that is in use */
	uint32_t joint_turn;
	struct shm_route routes[SHM_ROUTES]; /* to regions that were used last */

	/* Mutex. */
	uint32_t index;	     /* in ep->links; the bit in our hub */
	uint32_t generation; /* tells it from an earlier link of this index */
	unsigned side;	     /* 0: dialler, 1: acceptor */
	int sock;
	int process; /* pidfd of the peer's process; -1: its own, or not to be had */
	_Atomic(bool) gone; /* the peer's end of the socket is closed, or its process
			     * is dead; also read without */
	struct shm_pair_mem *pair;
	int pair_fd;
	struct shm_hazard *hazard_peer; /* the peer writes it */
	uint64_t answer_by; /* DIALLING: monotonic ns; 0: answered, or no matter */
	struct shm_service_rx service_rx; /* the peer asks */
	bool limbo;			  /* state is LIMBO: only the end is awaited */
	struct mem_keyuser left;	  /* after the endpoint's end */
	struct list news;		  /* in ep->news, or on its own */
	bool news_up;
	int news_err; /* 0, or why it ended */
};

/* Takes an index and a structure. Mutex held. -FI_ENOMEM. */
LOCK_HELD(lock_wire)
int shm_link_alloc(struct shm_ep *ep, unsigned side, struct shm_link **link);
/* Gives everything back at once: the peer is gone, or never got anything. Mutex held. */
LOCK_HELD(lock_wire) void shm_link_free(struct shm_link *link);

/* As shm_link_free, but for the endpoint's end: as long as the peer may be at work by a
 * key, what tells of that is left to the key table (rule D4). */
LOCK_HELD(lock_wire) void shm_link_leave(struct shm_link *link);

/* The only place where a state changes. */
void shm_link_set_state(struct shm_link *link, enum shm_link_state state);

/* Uses what the handshake brought: memory is taken over. -FI_EACCES: the user insists on
 * cross-memory attach, and it is refused. Mutex held. */
LOCK_HELD(lock_wire)
int shm_link_attach(struct shm_link *link, const struct shm_parcel *parcel,
		    struct shm_peer_memory *mem);

/* News for progress. Mutex held. */
LOCK_HELD(lock_wire) void shm_link_tell_up(struct shm_link *link);
LOCK_HELD(lock_wire) void shm_link_tell_end(struct shm_link *link, int err);

/* Endpoint lock held, mutex not. */

/* One look at a hot link. Returns how many things happened; the link may be over then. */
LOCK_NOT_HELD(lock_wire) int shm_link_poll(struct shm_link *link, int quota);
void shm_link_heat(struct shm_link *link);
/* Publishes what was taken from the ring. */
void shm_link_flush(struct shm_link *link);
/* Ends the link: segments fail, link_down is reported, memory is let go of. */
LOCK_NOT_HELD(lock_wire) void shm_link_finish(struct shm_link *link, int err);
/* After the link is DOWN: no upcalls; freed by the next progress. */
void shm_link_let_go(struct shm_link *link);
LOCK_NOT_HELD(lock_wire) void shm_link_reap(struct shm_ep *ep);
/* Why the peer ended it: orderly or not. */
int shm_link_end_reason(const struct shm_link *link);

/* Wire functions. */
void shm_hangup(struct wire_link *link);
void *shm_pkt_reserve(struct wire_link *link, size_t len, enum wire_class cls);
void shm_pkt_commit(struct wire_link *link, void *pkt, size_t len);

#endif
