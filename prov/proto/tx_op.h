/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation of the transmit side that could not be finished in the call: a message
 * that waits (for a link, for room, for the receiver) or an RMA. Comes from a pool, of
 * tx_attr.size at first; lives on one list of its peer.
 */
#ifndef WEFT_PROTO_TX_OP_H
#define WEFT_PROTO_TX_OP_H

#include <assert.h>
#include <stdint.h>

#include "prov/proto/engine.h"
#include "prov/proto/pool.h"
#include "prov/proto/xfer.h"
#include "util/list.h"

enum tx_state {
	TX_FREE,
	TX_QUEUED,	/* message: proto_peer.msgs */
	TX_WAIT_ACK,	/* eager, wants to know about delivery: proto_peer.waiting */
	TX_WAIT_CTS,	/* announced; CTS or FIN comes: proto_peer.waiting */
	TX_HELP,	/* announced; pushes what the receiver leaves: proto_peer.helps */
	TX_STREAM,	/* sends DATA: proto_peer.streams; or CHUNKs: proto_peer.bulks */
	TX_WAIT_FIN,	/* all DATA sent: proto_peer.waiting */
	TX_RMA,		/* proto_peer.rma */
	TX_EVENT,	/* RMA done, its remote event isn't sent: proto_peer.rma */
	TX_OVER,	/* RMA done, waits for earlier ones to retire: proto_peer.rma */
	TX_ATOMIC,	/* not all requests sent: proto_peer.atomics */
	TX_WAIT_RESULT, /* all sent: proto_peer.waiting */
	TX_ORPHAN, /* its link is gone, segments are still under way: ep.orphan_txs */
	TX_STATES
};

/* Slots that one message fills before the first is read. */
#define BULK_DEPTH 4

/* The slots that a streaming message has out, oldest first; a ring. */
struct bulk_out {
	bool granted; /* the receiver reads slots */
	uint8_t first;
	uint8_t count;
	uint32_t turn_left; /* bytes before it is another message's turn */
	uint32_t chunk;	    /* bytes of a slot that are used */
	uint32_t slot[BULK_DEPTH];
	uint64_t end[BULK_DEPTH]; /* offset behind each slot's bytes */
};

/* The sender's part in a message that the receiver pulls. */
struct help {
	struct wire_joint j;
	uint32_t piece; /* bytes */
	uint64_t want;	/* bytes of the message that move */
};

struct tx {
	struct pool_obj obj;
	struct list node;
	enum tx_state state;
	uint32_t flags; /* PROTO_* */
	struct proto_peer *peer;
	struct wire_link *link; /* the one that x's segments are on, or TX_HELP's */
	void *context;
	char *bounce;		/* inject_size bytes, for what is injected */
	struct atomic_out *out; /* NULL: no atomics are posted */
	uint64_t tag;
	uint64_t data;
	uint32_t notice; /* RMA: what its target hears with the put (PKT_NOTICE_*); 0:
			  * nothing, it is told afterwards */
	uint32_t wanted; /* TX_EVENT: counters that must still hear of it, MEM_EVENTS_* */
	uint64_t rma_barrier; /* message, atomic: may leave when peer.rma_done is there */
	/* Message: when peer.atomics_sent is there; RMA: when atomics_done is. */
	uint64_t atomic_barrier;
	uint64_t rx_id; /* TX_STREAM: the receiver's arrival */
	uint64_t stream_off;
	uint64_t stream_len;
	struct bulk_out bulk; /* TX_STREAM, TX_WAIT_FIN; else empty */
	struct help help;     /* TX_HELP */
	struct xfer x; /* RMA; of a message only local and total, and what TX_HELP pushes
			*/
};

/* What an atomic operation needs beside a struct tx, whose x has operands (local) and
 * target memory (remote). Each tx has one where there are atomics at all, elsewhere, so
 * that the others don't carry it. */
struct atomic_out {
	uint8_t mode, op, type;
	uint8_t operands; /* arrays of them: 0, 1 or 2 */
	uint8_t compare_count;
	uint8_t result_count;
	uint32_t chunk;			 /* bytes of each request but the last */
	bool check_sent, check_answered; /* that of an operation of several requests */
	size_t sent;	 /* bytes that requests are under way for, or were answered */
	size_t answered; /* of these */
	int err;	 /* 0 or the first -fi_errno */
	struct iovec compare[PROTO_IOV_MAX];
	struct iovec result[PROTO_IOV_MAX];
};

#define TX_TO(state) (1u << (state))

/* The only writer of tx->state. */
static inline void tx_set_state(struct tx *tx, enum tx_state to)
{
	static const uint32_t next[TX_STATES] = {
		[TX_FREE] = TX_TO(TX_QUEUED) | TX_TO(TX_RMA) | TX_TO(TX_ATOMIC),
		[TX_QUEUED] = TX_TO(TX_WAIT_ACK) | TX_TO(TX_WAIT_CTS) | TX_TO(TX_FREE),
		[TX_WAIT_ACK] = TX_TO(TX_FREE),
		[TX_WAIT_CTS] = TX_TO(TX_HELP) | TX_TO(TX_STREAM) | TX_TO(TX_FREE),
		[TX_HELP] = TX_TO(TX_WAIT_CTS) | TX_TO(TX_STREAM) | TX_TO(TX_FREE),
		[TX_STREAM] = TX_TO(TX_WAIT_FIN) | TX_TO(TX_FREE),
		[TX_WAIT_FIN] = TX_TO(TX_FREE),
		[TX_RMA] = TX_TO(TX_EVENT) | TX_TO(TX_OVER) | TX_TO(TX_ORPHAN) |
			   TX_TO(TX_FREE),
		[TX_EVENT] = TX_TO(TX_OVER) | TX_TO(TX_FREE),
		[TX_OVER] = TX_TO(TX_FREE),
		[TX_ATOMIC] = TX_TO(TX_WAIT_RESULT) | TX_TO(TX_FREE),
		[TX_WAIT_RESULT] = TX_TO(TX_FREE),
		[TX_ORPHAN] = TX_TO(TX_FREE),
	};

	assert(next[tx->state] & TX_TO(to));
	tx->state = to;
}
const char *tx_state_name(enum tx_state s);

/* Makes the pool, with tx_size operations; extras_fini frees what pool_fini doesn't.
 * -FI_ENOMEM. */
int tx_pool_init(struct proto_ep *ep);
void tx_extras_fini(struct proto_ep *ep);
/* In TX_FREE, on no list, nothing filled in; NULL: all that there may be are in use, or
 * there is no memory. */
struct tx *tx_alloc(struct proto_ep *ep, struct proto_peer *pp);
/* Takes the caller's pieces; copies the bytes for PROTO_INJECT. Not 0: they can't be had
 * (mem_copy), and tx was given back. */
int tx_take_iov(struct proto_ep *ep, struct tx *tx, const struct iovec *iov, size_t count,
		size_t len);
/* Reports, unlinks and frees. err: 0 or -fi_errno. */
void tx_complete(struct proto_ep *ep, struct tx *tx, int err);
/* The same for one in TX_RMA that went well. */
void tx_complete_rma(struct proto_ep *ep, struct tx *tx);
/* Its link is gone: completes, or waits as an orphan for segments under way. */
void tx_fail(struct proto_ep *ep, struct tx *tx, int err);
/* The operation of this peer, by whichever of its names, that id names, in any state but
 * TX_FREE. What follows concerns tx->peer: a peer answers on a transmit link of its own,
 * which may be another name's. */
struct tx *tx_find(struct proto_ep *ep, struct proto_peer *pp, uint64_t id);

#endif
