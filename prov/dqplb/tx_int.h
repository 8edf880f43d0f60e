/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transmitter's state: tx.c (what is posted), tx_xfer.c (a transfer's life), tx_ack.c
 * (what the peer says), tx_lane.c (lanes come and go) and tx_quick.h. Nobody else
 * includes it.
 *
 * una <= nxt: numbers before una are acknowledged, those before nxt given out. tail <=
 * una: numbers before tail are also no longer in flight, so that their slots are free;
 * nxt never runs a window ahead of it.
 */
#ifndef WEFT_DQPLB_TX_INT_H
#define WEFT_DQPLB_TX_INT_H

#include <assert.h>
#include <stdlib.h>

#include "prov/dqplb/bits.h"
#include "prov/dqplb/tx.h"

enum xfer_state {
	XFER_IDLE,     /* the caller's */
	XFER_HELD,     /* ordered, others before it still give out numbers */
	XFER_TURN,     /* has segments to post */
	XFER_STALLED,  /* likewise, but can't remember more runs of numbers */
	XFER_RECORD,   /* its record is due */
	XFER_POSTED,   /* everything was posted */
	XFER_FAILED,   /* something of it is in flight or on a lane that ended */
	XFER_VOID,     /* its numbers are to be voided */
	XFER_FINISHED, /* to be taken */
	XFER_STATES
};

enum slot_state {
	SLOT_FREE,
	SLOT_POSTED, /* in flight on its lane, or flushed there and not resolved */
	SLOT_SENT,   /* its lane is done with it; numbered, not acknowledged */
	SLOT_LOST,   /* to be posted again */
	SLOT_GAP,    /* lost, and its transfer failed: to be voided */
	SLOT_STATES
};

#define SLOT_RECORD  UINT32_MAX /* piece: the record */
#define SLOT_NO_LANE 0xffu

/* A segment that was posted, or a record. Numbered ones: number n is slot n modulo the
 * window. */
struct tx_slot {
	struct dqplb_xfer *xfer;
	uint32_t piece; /* plain ones while they are free: the next such */
	uint8_t lane;
	uint8_t state;
	uint16_t use; /* plain ones: how often, modulo 2^16 */
};

enum tx_lane_state {
	TX_LANE_CLOSED,
	TX_LANE_UP,
	TX_LANE_DOWN,	  /* not drained, not reported */
	TX_LANE_DRAINED,  /* waits for the report */
	TX_LANE_STOPPED,  /* likewise; nothing of it can be written any more */
	TX_LANE_REPORTED, /* waits to be drained */
	TX_LANE_STATES
};

struct tx_lane {
	uint64_t bytes; /* in flight */
	uint32_t segments;
	uint32_t limit; /* of segments: less after a loss, one more with each that is done
			 */
	uint32_t incarnation;
	uint8_t state;
	uint8_t queue;
	uint8_t rail;
	bool passed; /* one of this incarnation was done */
	bool plain;  /* DQPLB_QUEUE_NONE */
};

/* One of the peer's receive queues. */
struct tx_queue {
	uint32_t granted; /* as the peer counts: since the link came up, modulo 2^32 */
	uint32_t used;
	uint64_t lanes; /* that it feeds */
};

struct dqplb_tx {
	uint32_t una;
	uint32_t nxt;
	uint32_t tail;
	uint32_t mask;
	uint32_t gen;
	uint32_t max_segment;
	uint32_t turn;
	uint32_t records_out;
	uint32_t records_max;
	uint32_t lane_segments;
	uint32_t small;
	uint32_t cursor; /* lane after the last one used, modulo DQPLB_LANES_MAX */
	uint64_t ready;	 /* lanes that are up and below their limits */
	uint64_t credit; /* lanes whose queue has receives for us */
	uint64_t home;	 /* lanes of the home rail */
	uint64_t lane_bytes;
	uint64_t link_bytes;
	uint64_t bytes; /* in flight */
	struct tx_slot *slot;
	struct dqplb_bits acked; /* of tail to nxt */
	struct list turns[2];	 /* plain, numbered */
	bool plain_next;	 /* whose turn it is where both can */
	bool failed;
	uint32_t lost;		/* numbered slots in that state, */
	uint32_t lost_at;	/* none of them before this one */
	uint32_t plain_lost;	/* plain slots in that state, */
	uint32_t plain_lost_at; /* none of them before this one */
	uint32_t plain_free;	/* first of that list */
	uint32_t plain_count;
	uint32_t queued; /* transfers that are on a list of those below */
	struct tx_slot *plain;
	struct list stalled;
	struct list records;
	struct list voids;
	struct list finished;
	struct list started; /* numbered, in order, that may still give out numbers */
	struct list posted;  /* numbered, that don't any more */
	struct list plains;
	struct dqplb_tx_stats stats;
	uint32_t home_rail;
	uint32_t lanes;
	struct tx_lane lane[DQPLB_LANES_MAX];
	struct tx_queue queue[DQPLB_LANES_MAX];
};

#define TX_NONE UINT32_MAX /* no plain slot */

static inline struct tx_slot *tx_slot(const struct dqplb_tx *tx, uint32_t number)
{
	return &tx->slot[number & tx->mask];
}

static inline bool xfer_numbered(const struct dqplb_xfer *x)
{
	return x->kind == DQPLB_NUMBERED;
}

/* The one writer of a slot's state. */
static inline void slot_move(struct tx_slot *s, enum slot_state to)
{
	static const uint8_t from[SLOT_STATES] = {
		[SLOT_FREE] = 1 << SLOT_POSTED | 1 << SLOT_SENT | 1 << SLOT_LOST |
			      1 << SLOT_GAP,
		[SLOT_POSTED] = 1 << SLOT_FREE | 1 << SLOT_LOST,
		[SLOT_SENT] = 1 << SLOT_FREE | 1 << SLOT_POSTED,
		[SLOT_LOST] = 1 << SLOT_POSTED | 1 << SLOT_SENT,
		[SLOT_GAP] = 1 << SLOT_POSTED | 1 << SLOT_SENT | 1 << SLOT_LOST,
	};

	if (__builtin_expect(!(from[to] >> s->state & 1), 0))
		abort();
	s->state = (uint8_t)to;
}

/* Bytes of a transfer's segment. */
static inline uint32_t xfer_piece_len(const struct dqplb_tx *tx,
				      const struct dqplb_xfer *x, uint32_t piece)
{
	return piece + 1 < x->pieces
		       ? tx->max_segment
		       : (uint32_t)(x->len - (uint64_t)piece * tx->max_segment);
}

/* Slots that are free at the tail leave the window. */
static inline void tx_tail(struct dqplb_tx *tx)
{
	while (tx->tail != tx->una && tx_slot(tx, tx->tail)->state == SLOT_FREE) {
		bits_clear(&tx->acked, tx->tail);
		tx->tail++;
	}
}

/* Something waits to be posted, or said, or taken. */
static inline bool tx_waits(const struct dqplb_tx *tx)
{
	return tx->lost | tx->plain_lost | tx->queued;
}

/* The lane for so many bytes, of those in the mask, which is not empty. */
static inline uint32_t tx_lane_choose(struct dqplb_tx *tx, uint64_t mask, uint32_t len)
{
	uint64_t after;
	uint32_t lane;

	if (len <= tx->small && (mask & tx->home))
		mask &= tx->home;
	after = mask & (UINT64_MAX << tx->cursor);
	lane = (uint32_t)__builtin_ctzll(after ? after : mask);
	tx->cursor = (lane + 1) % DQPLB_LANES_MAX;
	return lane;
}

/* Lanes that take a segment now. */
static inline uint64_t tx_lanes_open(const struct dqplb_tx *tx, bool numbered)
{
	if (tx->bytes >= tx->link_bytes)
		return 0;
	return numbered ? tx->ready & tx->credit : tx->ready;
}

/* One segment less is in flight there. */
static inline void tx_lane_refill(struct dqplb_tx *tx, const struct tx_lane *l,
				  uint32_t lane)
{
	if (l->state == TX_LANE_UP && l->segments < l->limit && l->bytes < tx->lane_bytes)
		tx->ready |= UINT64_C(1) << lane;
}

/* A plain transfer of one segment that was posted before it became one: as by xfer_move,
 * for whom nothing is on any queue. */
static inline void xfer_begin_posted(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	list_init(&x->where);
	list_push_back(&tx->plains, &x->order);
	x->state = XFER_POSTED;
}

/* A plain transfer whose last segment is over, and which is taken in the call. */
static inline void xfer_end_posted(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	list_unlink(&x->order);
	x->state = XFER_IDLE;
	tx->stats.finished++;
}

/* tx_xfer.c: the other writer of a transfer's state, and what follows from its counters.
 */
void xfer_move(struct dqplb_tx *tx, struct dqplb_xfer *x, enum xfer_state to);
/* It gives out no more numbers: whoever waited for that may go. */
void xfer_numbers_end(struct dqplb_tx *tx, struct dqplb_xfer *x);
/* Finishes it, or has it voided, when nothing is in the way. */
void xfer_settle(struct dqplb_tx *tx, struct dqplb_xfer *x);
/* The same for all that failed: a lane is gone. */
void xfer_settle_failed(struct dqplb_tx *tx);
/* Stops it: nothing of it is posted any more. */
void xfer_fail(struct dqplb_tx *tx, struct dqplb_xfer *x, int error);
/* The void that is due, of the first of tx.voids. */
bool xfer_void_next(struct dqplb_tx *tx, struct dqplb_post *post, struct dqplb_msg *m);
/* Forgets runs that were acknowledged. */
void xfer_runs_forget(struct dqplb_tx *tx, struct dqplb_xfer *x);
/* Transfers that had too many runs try again. */
void xfer_stalled_go(struct dqplb_tx *tx);
/* A plain slot is not used any more. */
static inline void plain_free(struct dqplb_tx *tx, struct tx_slot *s)
{
	slot_move(s, SLOT_FREE);
	s->piece = tx->plain_free;
	tx->plain_free = (uint32_t)(s - tx->plain);
}

/* tx_lane.c */
/* Whether the peer's queue has receives for its lanes. */
void queue_recount(struct dqplb_tx *tx, uint32_t queue);
/* The lane was reported by the peer. */
void lane_reported(struct dqplb_tx *tx, const struct dqplb_lane_name *name);

#endif
