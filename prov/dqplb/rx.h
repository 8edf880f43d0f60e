/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver of one link: which numbers arrived, which transfers are whole, what to
 * acknowledge. Pure: it is told what happened and calls back for events only; it makes no
 * system call, reads no clock, and allocates nothing after dqplb_rx_open. One caller at a
 * time.
 *
 * Order of calls: immediates and messages as they come; after a batch of them, and before
 * going idle, dqplb_rx_due, and dqplb_rx_ack as often as it says so.
 *
 * Errors: -EPROTO: the peer broke a rule, or the wire reported what can't be. The link
 * has to be reset; every later call returns -EPROTO too, and no event is raised any more.
 *
 * Units: lengths in bytes, numbers as in imm.h.
 */
#ifndef WEFT_DQPLB_RX_H
#define WEFT_DQPLB_RX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/dqplb/msg.h"
#include "prov/dqplb/rq.h"

struct dqplb_rx;

/* A remote event: all of a transfer has arrived, and for an ordered one also every number
 * before its last. */
struct dqplb_event {
	uint64_t data;	 /* as the sender gave it; 0 for a fast one */
	uint64_t len;	 /* bytes of the transfer */
	uint32_t op;	 /* as the sender gave it; 0 for a fast one */
	bool fast;	 /* it was one segment, and came without a record */
	uint32_t number; /* of that segment, or of the record; 24 bits */
};

struct dqplb_rx_config {
	uint32_t window;  /* numbers: that of the peer's transmitter */
	uint32_t records; /* events that can wait: at least the peer's limit */
	uint32_t gen;	  /* of the number space */
	uint32_t first;	  /* number: 0; tests begin near the wrap */
	uint32_t
		ack_bytes; /* an acknowledgement is due after so many; 0: no such limit */
	/* Must not call back into the same rx. */
	void (*event)(void *arg, const struct dqplb_event *ev);
	void *arg;
};

struct dqplb_rx_stats {
	uint64_t numbers;    /* arrived, records included */
	uint64_t duplicates; /* seen before, dropped */
	uint64_t stale;	     /* of another generation or a lane that is gone, dropped */
	uint64_t voided;
	uint64_t events;
	uint64_t acks;
	uint64_t reports;
};

/* 0, -EINVAL (configuration), -ENOMEM. */
int dqplb_rx_open(const struct dqplb_rx_config *config, struct dqplb_rx **rx);
/* Gives grants that were not used back to their queues. */
void dqplb_rx_close(struct dqplb_rx *rx);

/* Bytes that an open takes, all in one piece. */
size_t dqplb_rx_size(uint32_t window, uint32_t records);

/*
 * Queue number `queue` of this link is fed from rq, which belongs to the caller and
 * outlives rx; the peer is granted up to `target` receives at a time, once they are
 * posted. Grants can't be taken back: whoever shares a queue among links posts at least
 * the sum of their targets, or links wait. Each queue once, before the lanes that use it.
 * -EINVAL: out of range, or a second time.
 */
int dqplb_rx_queue(struct dqplb_rx *rx, uint32_t queue, struct dqplb_rq *rq,
		   uint32_t target);

/*
 * A lane can receive. When it is not its first time, the queue pair is a new one with a
 * higher incarnation; where the lane has a queue of its own, as many receives were posted
 * as were granted and not used (dqplb_rx_outstanding). -EINVAL: out of range, open
 * already, no such queue, or not higher.
 */
int dqplb_rx_lane_open(struct dqplb_rx *rx, uint32_t lane, uint32_t incarnation,
		       uint32_t queue);
/* Receives of the queue that the peer may still use. */
uint32_t dqplb_rx_outstanding(const struct dqplb_rx *rx, uint32_t queue);

/*
 * The lane's queue pair is in the error state, every completion of it was polled and
 * reported here, and none will come (rule C2). A report is due then. -EINVAL: no such
 * lane is open.
 */
int dqplb_rx_lane_drained(struct dqplb_rx *rx, uint32_t lane, uint32_t incarnation);

/* It is not open, and its report was written. */
bool dqplb_rx_lane_closed(const struct dqplb_rx *rx, uint32_t lane);

/*
 * An immediate was received on the lane: one receive of its queue was used, and `len`
 * bytes were written. 0; -EPROTO. What is dropped (stats.duplicates, stats.stale) is no
 * error.
 */
int dqplb_rx_imm(struct dqplb_rx *rx, uint32_t lane, uint32_t incarnation, uint32_t imm,
		 uint32_t len);

/* RECORD or VOID, as dqplb_msg_parse made it. 0, -EPROTO; -EINVAL: another kind. */
int dqplb_rx_msg(struct dqplb_rx *rx, const struct dqplb_msg *m);

/* Whether a message should leave: now, or, with `idle`, before whoever asks goes idle. */
bool dqplb_rx_due(const struct dqplb_rx *rx, bool idle);

/*
 * Writes the message that is due: a REPORT when lanes are quiet, else an ACK; also when
 * none is due. Returns its length; 0: `room` is too small (dqplb_msg_max is enough),
 * nothing has changed.
 */
size_t dqplb_rx_ack(struct dqplb_rx *rx, void *bytes, size_t room);

/* The control channel was lost and is there again: acknowledgements may have been lost
 * with it. The next message says everything. */
void dqplb_rx_resend(struct dqplb_rx *rx);

const struct dqplb_rx_stats *dqplb_rx_stats(const struct dqplb_rx *rx);

#endif
