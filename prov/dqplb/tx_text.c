/* SPDX-License-Identifier: BSD-2-Clause */
/* The transmitter in words; see text.h. */
#include "config.h"

#include <stdio.h>

#include "prov/dqplb/text.h"
#include "prov/dqplb/tx_int.h"

static uint32_t list_count(const struct list *list)
{
	uint32_t n = 0;

	for (const struct list *at = list->next; at != list; at = at->next)
		n++;
	return n;
}

void dqplb_tx_text(const struct dqplb_tx *tx, char text[DQPLB_TEXT])
{
	snprintf(
		text, DQPLB_TEXT,
		"numbers %u acknowledged, %u given out, %u lost; plain segments lost %u; "
		"transfers %u to post, %u stalled, %u records, %u voids; %llu bytes in "
		"flight, lanes ready 0x%llx, with receives 0x%llx",
		tx->una, tx->nxt, tx->lost, tx->plain_lost,
		list_count(&tx->turns[0]) + list_count(&tx->turns[1]),
		list_count(&tx->stalled), list_count(&tx->records),
		list_count(&tx->voids), (unsigned long long)tx->bytes,
		(unsigned long long)tx->ready, (unsigned long long)tx->credit);
}

void dqplb_tx_lane_text(const struct dqplb_tx *tx, uint32_t lane, char text[DQPLB_TEXT])
{
	const struct tx_lane *l = &tx->lane[lane];
	const struct tx_queue *q = &tx->queue[l->queue];

	snprintf(text, DQPLB_TEXT,
		 "sender %s, %u of %u segments, %llu bytes, receives used %u of %u",
		 dqplb_tx_lane_state(tx, lane), l->segments, l->limit,
		 (unsigned long long)l->bytes, q->used, q->granted);
}

uint64_t dqplb_tx_progress(const struct dqplb_tx *tx)
{
	return tx->stats.finished + tx->una + (tx->stats.segments - tx->stats.again);
}
