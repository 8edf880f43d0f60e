/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain writes of one segment, of few bytes, that nothing is in front of, inline. They
 * are their caller's to keep account of as long as nothing goes wrong: only their places
 * on lanes are counted, so that a slot is there for each that has to be kept. Nothing is
 * quick before what was lost is posted again, which holds slots without places. What is
 * inside the transmitter is none of the caller's business all the same.
 */
#ifndef WEFT_DQPLB_TX_QUICK_H
#define WEFT_DQPLB_TX_QUICK_H

#include "prov/dqplb/tx_int.h"

#define DQPLB_NO_LANE UINT32_MAX

/* The lane that it is to be posted on, where it counts as in flight from now on.
 * DQPLB_NO_LANE: something is in front, or no lane has room, and nothing has changed;
 * dqplb_tx_start will do. */
static inline __attribute__((always_inline)) uint32_t dqplb_tx_quick(struct dqplb_tx *tx,
								     uint32_t len)
{
	uint64_t mask = tx_lanes_open(tx, false);
	struct tx_lane *l;
	uint32_t lane;

	if (__builtin_expect(mask == 0 || tx_waits(tx) || len > tx->max_segment, 0))
		return DQPLB_NO_LANE;
	lane = tx_lane_choose(tx, mask, len);
	l = &tx->lane[lane];
	if (__builtin_expect(++l->segments >= l->limit, 0))
		tx->ready &= ~(UINT64_C(1) << lane);
	tx->stats.segments++;
	return lane;
}

/* Its lane said that it is done. Returns what dqplb_tx_waits does. */
static inline __attribute__((always_inline)) bool dqplb_tx_quick_done(struct dqplb_tx *tx,
								      uint32_t lane)
{
	struct tx_lane *l = &tx->lane[lane];

	l->passed = true;
	if (__builtin_expect(l->limit < tx->lane_segments, 0))
		l->limit++;
	l->segments--;
	if (__builtin_expect(!(tx->ready >> lane & 1), 0))
		tx_lane_refill(tx, l, lane);
	tx->stats.finished++;
	return tx_waits(tx);
}

/* Its lane has something else to say, or ends: before the transmitter hears of that, it
 * becomes a transfer, x with its len filled in, as if it had been started and posted
 * there. Returns the cookie. */
uint64_t dqplb_tx_quick_keep(struct dqplb_tx *tx, struct dqplb_xfer *x, uint32_t lane);

#endif
