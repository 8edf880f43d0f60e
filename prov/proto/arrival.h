/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that has arrived and can't be finished at once: it waits for a receive
 * (unexpected), for its data (pulled or streamed), or for room to tell the sender.
 *
 * Headers must always reach the matcher (rule B2), so this pool grows, outside of
 * upcalls: progress takes nothing from the wire that it has no arrival for. What a peer
 * can make us keep is bounded by its eager window and by its transmit operations.
 */
#ifndef WEFT_PROTO_ARRIVAL_H
#define WEFT_PROTO_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/proto/match.h"
#include "prov/proto/pool.h"
#include "prov/proto/rx_op.h"
#include "prov/proto/xfer.h"
#include "util/list.h"

enum arrival_state {
	ARRIVAL_FREE,
	ARRIVAL_UNEXPECTED,  /* in the match queue; announced ones also on
				proto_peer.announced */
	ARRIVAL_CLAIMED,     /* on no list: whoever claimed it names it by its id */
	ARRIVAL_PULL,	     /* proto_peer.pulls, from the start or where a stream left
				off */
	ARRIVAL_OWES_CTS,    /* proto_peer.owed */
	ARRIVAL_STREAM,	     /* proto_peer.streams_in */
	ARRIVAL_OWES_FIN,    /* received; proto_peer.owed */
	ARRIVAL_OWES_ACK,    /* received; proto_peer.owed */
	ARRIVAL_OWES_RESULT, /* of an atomic operation; proto_peer.results */
	ARRIVAL_ORPHAN, /* its link is gone, segments are under way: ep.orphan_arrivals */
	ARRIVAL_STATES
};

struct arrival {
	struct pool_obj obj;
	struct match_msg m;
	struct list node;
	enum arrival_state state;
	uint32_t flags;		 /* PROTO_TAGGED, PROTO_DATA, ARRIVAL_ACK */
	bool announced;		 /* came by RTS */
	uint8_t size_class;	 /* of payload */
	uint32_t epoch;		 /* of the peer, when it arrived */
	struct proto_ep *ep;	 /* the engine that it came to */
	struct proto_peer *peer; /* holds a reference */
	struct wire_link *link;	 /* where it came from */
	struct wire_link *pull_link;
	uint64_t tag;
	uint64_t data;
	uint64_t len;
	uint64_t tx_id;	  /* the sender's */
	uint64_t want;	  /* bytes that move: the shorter of message and room */
	uint64_t arrived; /* ARRIVAL_STREAM */
	bool bulk;	  /* CTS: the sender may use slots */
	bool can_pull;	  /* ARRIVAL_STREAM: the rest may be pulled instead */
	bool owes_taken;  /* ARRIVAL_STREAM: a TAKEN found no room */
	bool lost;	  /* ARRIVAL_PULL: pieces that came meanwhile were dropped */
	bool joint;	  /* ARRIVAL_PULL, ARRIVAL_ORPHAN: the sender takes part */
	bool joint_met;	  /* all pieces are taken */
	uint32_t piece;	  /* joint: bytes */
	struct wire_joint j;
	uint32_t fin_err; /* ARRIVAL_OWES_FIN, _RESULT: positive fi_errno or 0 */
	void *payload;	  /* unexpected eager, result: from the payload store */
	struct rx_claim claim;
	struct xfer x; /* ARRIVAL_PULL; remote pieces are filled in on arrival */
};

#define ARRIVAL_ACK 0x10000u /* the sender wants PKT_ACK */

void arrival_set_state(struct arrival *a, enum arrival_state to);
const char *arrival_state_name(enum arrival_state s);

/* NULL where progress did not make sure of one, and when the peer has far more here than
 * an honest one can. Takes a reference on the peer. */
struct arrival *arrival_alloc(struct proto_ep *ep, struct proto_peer *pp,
			      struct wire_link *link);
/* Unlinks and frees. */
void arrival_release(struct proto_ep *ep, struct arrival *a);
/* Completes the claimed receive; the arrival lives on. err: 0 or -fi_errno. */
void arrival_complete(struct proto_ep *ep, struct arrival *a, int err);

/* ---- payload of unexpected eager messages: blocks in powers of two, cut from slabs that
 * are kept until the endpoint closes. Bounded by the credits that were granted. */

#define PAYLOAD_CLASS_MIN 6 /* 64 bytes */
#define PAYLOAD_CLASSES	  16

struct payload_store {
	void *free[PAYLOAD_CLASSES]; /* first word: next */
	void *slabs;		     /* first word: next */
};

void payload_store_fini(struct payload_store *s);
/* NULL: no memory. */
void *payload_alloc(struct payload_store *s, size_t len, uint8_t *size_class);
void payload_release(struct payload_store *s, void *p, uint8_t size_class);

#endif
