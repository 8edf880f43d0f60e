/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's state: rx.c (numbers, lanes, acknowledgements) and rx_record.c (what a
 * transfer's numbers are). Nobody else includes it. */
#ifndef WEFT_DQPLB_RX_INT_H
#define WEFT_DQPLB_RX_INT_H

#include "prov/dqplb/bits.h"
#include "prov/dqplb/rx.h"

enum rx_lane_state {
	RX_LANE_CLOSED,
	RX_LANE_UP,
	RX_LANE_DRAINED, /* a report of it is due */
	RX_LANE_STATES
};

struct rx_lane {
	uint32_t incarnation;
	uint8_t state;
	uint8_t queue;
};

struct rx_queue {
	struct dqplb_rq *rq; /* NULL: not in use */
	uint32_t target;
	uint32_t granted;  /* since open, modulo 2^32 */
	uint32_t consumed; /* likewise; granted - consumed is what the peer may use */
	uint32_t told;	   /* `granted` of the last message */
	uint32_t since;	   /* consumed since the last message */
};

/*
 * What a slot of the window is to the record that claims it, and for ordered events that
 * wait what to say: 0: nothing; an entry + 1; or RX_FAST and the length of a fast one.
 */
#define RX_FAST 0x80000000u

enum rx_entry_state {
	RX_ENTRY_FREE,
	RX_ENTRY_WAIT, /* raised when whole (and in order, where it is ordered) */
	RX_ENTRY_DEAD, /* voided: freed at that time instead */
	RX_ENTRY_STATES
};

/* A record whose event waits. */
struct rx_entry {
	uint64_t data;
	uint64_t len;
	uint32_t op;
	uint32_t number;  /* the record's, 24 bits */
	uint32_t missing; /* numbers that are claimed and have not arrived */
	uint16_t next;	  /* free list */
	uint8_t state;
	bool ordered;
};

struct dqplb_rx {
	uint32_t cum; /* every number before it has arrived */
	uint32_t mask;
	uint32_t gen;
	bool failed;
	bool due;
	bool resend;
	struct dqplb_bits arrived; /* of cum and up */
	struct dqplb_bits ordered; /* slots whose event waits for cum */
	uint32_t *claim;	   /* of each slot; see RX_FAST */
	uint32_t high;		   /* behind the highest number that arrived */
	uint32_t since;		   /* numbers since the last message */
	uint32_t ack_every;
	uint32_t bytes; /* since the last message */
	uint32_t ack_bytes;
	void (*event)(void *arg, const struct dqplb_event *ev);
	void *arg;
	struct dqplb_rx_stats stats;
	uint64_t lanes_drained; /* bit of each lane in that state */
	uint64_t queues_short;	/* bit of each queue that has less than its target */
	uint32_t queues;	/* highest in use + 1 */
	uint32_t entries;
	uint16_t entry_free; /* first of the free list, entries: none */
	struct rx_entry *entry;
	struct rx_lane lane[DQPLB_LANES_MAX];
	struct rx_queue queue[DQPLB_LANES_MAX];
};

/* The link is over. Returns -EPROTO. */
int rx_fail(struct dqplb_rx *rx);

/* A number of the window that was not there is there now: its claim, the event that it
 * completes, and the window are looked after. Anything but the fast path. */
void rx_arrive(struct dqplb_rx *rx, uint32_t number);

/* A number of entry e + 1 == claim arrived. */
void rx_entry_hit(struct dqplb_rx *rx, uint32_t claim);
/* Its turn in order has come: raise it, unless it is dead. */
void rx_entry_turn(struct dqplb_rx *rx, uint32_t claim);
void rx_entries_init(struct dqplb_rx *rx);

#endif
