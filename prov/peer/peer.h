/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peers of one endpoint: who is out there, how to reach them, which of them lives.
 *
 * A peer is an address. What answers there is an incarnation: a process that dies and
 * comes back at the same address is the same peer with a new incarnation. A peer has one
 * transmit link, chosen once per incarnation, so that everything sent to it stays in
 * order, and further links that it opened itself, on which packets only arrive.
 *
 * Owns dialling: refused dials are repeated with exponential back-off and jitter until a
 * deadline. Does no I/O but through struct wire_ops, and reads no clock but the caller's.
 * Called with the endpoint's lock held.
 */
#ifndef WEFT_PEER_PEER_H
#define WEFT_PEER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/addr.h"
#include "prov/wire/wire.h"
#include "util/list.h"

enum peer_state {
	PEER_IDLE,     /* known, nothing tried */
	PEER_DIALLING, /* a dial is under way */
	PEER_WAITING,  /* a dial was refused; the next comes at `due` */
	PEER_UP,       /* has a transmit link */
	PEER_ENDING,   /* a link of the epoch is gone; the others are read to their end */
	PEER_DOWN,     /* died or could not be reached; the next operation dials anew */
	PEER_STATES
};

/* How long the other links of an epoch that ends may live, ns. */
#define PEER_ENDING_MAX (1000 * 1000 * 1000ULL)

/* Links that a peer may have beside the transmit link; more are hung up. */
#define PEER_EXTRA_LINKS 6

/* The user's peer object begins with this. */
struct peer {
	struct list chain; /* peer_table.buckets */
	struct list timed; /* peer_table.timed: DIALLING, WAITING or ENDING */
	struct wire_addr addr;
	enum peer_state state;
	uint32_t epoch; /* counts incarnations, 0: never up */
	struct wire_link
		*link; /* transmit link in UP; in ENDING any one, to be read only */
	struct wire_link *dialled; /* not up yet */
	struct wire_link *extra[PEER_EXTRA_LINKS];
	uint32_t extra_epoch[PEER_EXTRA_LINKS]; /* that each came up in */
	uint64_t incarnation;			/* of the last epoch */
	uint64_t due;	   /* WAITING: next dial; DIALLING: give up; ENDING: the end */
	uint64_t deadline; /* when dialling is given up */
	uint32_t attempt;
	int end_err; /* ENDING: of the link that went first */
};

struct peer_ops {
	size_t size; /* of the user's object */
	/* False: no memory, it is forgotten again. */
	bool (*init)(void *arg, struct peer *p);
	/* What init took. */
	void (*fini)(void *arg, struct peer *p);
	/* The transmit link of a new epoch is there. */
	void (*up)(void *arg, struct peer *p);
	/* A link is gone and others of the epoch are not: nothing is to be sent any more,
	 * but what the peer sent before it went away still arrives and counts. down()
	 * follows. */
	void (*ending)(void *arg, struct peer *p);
	/* The epoch is over, or the peer can't be reached: nothing that was under way
	 * in either direction will finish. Packets that the peer had sent on its other
	 * links may still arrive. */
	void (*down)(void *arg, struct peer *p, int err);
	/* We hung it up: segments that were under way on it are never reported. */
	void (*hung_up)(void *arg, struct wire_link *link);
	uint64_t (*now)(void *arg); /* monotonic ns */
};

struct peer_table {
	const struct peer_ops *ops;
	void *arg;
	const struct wire_ops *wire;
	struct wire_ep *wep;
	uint64_t connect_timeout; /* ns */
	uint64_t random;	  /* jitter */
	struct list *buckets;
	uint32_t mask;
	uint32_t count;
	bool chores; /* timed or doomed isn't empty: peer_table_progress has to look */
	struct list timed;
	/* To hang up outside of upcalls; chained through the links, so that there is room
	 * for every one. */
	struct wire_link *doomed;
	uint32_t doomed_count;
	uint64_t transitions[PEER_STATES]; /* into each state */
};

int peer_table_init(struct peer_table *t, const struct peer_ops *ops, void *arg,
		    const struct wire_ops *wire, struct wire_ep *wep,
		    uint64_t connect_timeout, uint64_t seed);
/* Frees all peers; their links die with the wire endpoint. */
void peer_table_fini(struct peer_table *t);

struct peer *peer_find(struct peer_table *t, const struct wire_addr *addr);
/* Found or made; NULL: no memory. */
struct peer *peer_get(struct peer_table *t, const struct wire_addr *addr);
/* For a peer that nothing points to any more, and that has no link. */
void peer_free(struct peer_table *t, struct peer *p);
bool peer_has_links(const struct peer *p);

/* Is it a link of the epoch that runs? */
bool peer_link_is_current(const struct peer *p, const struct wire_link *link);

/* Makes a link to it if there is none. May end in ops->down at once. */
void peer_connect(struct peer_table *t, struct peer *p);
/* Gives a link up, and the epoch with it: the peer broke the protocol, or memory is
 * gone. */
void peer_drop(struct peer_table *t, struct wire_link *link, int err);

/* Outside of upcalls: dials that are due, links to hang up. */
int peer_table_progress(struct peer_table *t);
/* When the next dial is due; UINT64_MAX: none. */
uint64_t peer_table_due(const struct peer_table *t);

/* What the wire reports. */
void peer_link_up(struct peer_table *t, struct wire_link *link);
void peer_link_down(struct peer_table *t, struct wire_link *link, int err);

const char *peer_state_name(enum peer_state s);

#endif
