/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and voids: which numbers are a transfer, and what its event says (A8, A10).
 *
 * A record claims those of its numbers that have not arrived; each that arrives counts
 * down. So the work for a transfer follows what is missing when its record comes, at most
 * once for each number, and what a link can be made to remember is the window's claims
 * and the entries.
 */
#include "config.h"

#include "prov/dqplb/rx_int.h"

#include <errno.h>
#include <stdlib.h>

void rx_entries_init(struct dqplb_rx *rx)
{
	for (uint32_t i = 0; i < rx->entries; i++)
		rx->entry[i].next = (uint16_t)(i + 1);
	rx->entry_free = 0;
}

/* The one writer of an entry's state. */
static void entry_move(struct rx_entry *e, enum rx_entry_state to)
{
	static const uint8_t from[RX_ENTRY_STATES] = {
		[RX_ENTRY_FREE] = 1 << RX_ENTRY_WAIT | 1 << RX_ENTRY_DEAD,
		[RX_ENTRY_WAIT] = 1 << RX_ENTRY_FREE,
		[RX_ENTRY_DEAD] = 1 << RX_ENTRY_WAIT | 1 << RX_ENTRY_DEAD,
	};

	if (!(from[to] >> e->state & 1))
		abort();
	e->state = (uint8_t)to;
}

static void entry_end(struct dqplb_rx *rx, struct rx_entry *e)
{
	if (e->state == RX_ENTRY_WAIT) {
		const struct dqplb_event ev = {
			.data = e->data, .len = e->len, .op = e->op, .number = e->number};

		rx->stats.events++;
		rx->due = true;
		rx->event(rx->arg, &ev);
	}
	entry_move(e, RX_ENTRY_FREE);
	e->next = rx->entry_free;
	rx->entry_free = (uint16_t)(e - rx->entry);
}

void rx_entry_hit(struct dqplb_rx *rx, uint32_t claim)
{
	struct rx_entry *e = &rx->entry[claim - 1];

	if (--e->missing == 0 && !e->ordered)
		entry_end(rx, e);
}

void rx_entry_turn(struct dqplb_rx *rx, uint32_t claim)
{
	entry_end(rx, &rx->entry[claim - 1]);
}

/* Claims the run's missing numbers for entry `claim` - 1. False: a number lies outside
 * the window, or not before `own`, or is another transfer's. */
static bool run_claim(struct dqplb_rx *rx, const struct dqplb_run *run, uint32_t own,
		      uint32_t claim)
{
	uint32_t first = dqplb_seq_widen(rx->cum, run->first);

	/* Of a record that is still to come: within a window before it. */
	if (own - first > rx->mask || own - (first + run->count - 1) - 1 > rx->mask)
		return false;
	for (uint32_t n = first; n != first + run->count; n++) {
		if ((int32_t)(n - rx->cum) < 0 || bits_test(&rx->arrived, n))
			continue;
		if (rx->claim[n & rx->mask])
			return false;
		rx->claim[n & rx->mask] = claim;
		rx->entry[claim - 1].missing++;
	}
	return true;
}

static int record_take(struct dqplb_rx *rx, const struct dqplb_msg *m, uint32_t own)
{
	uint16_t at = rx->entry_free;
	struct rx_entry *e = &rx->entry[at];

	if (at == rx->entries || rx->claim[own & rx->mask])
		return rx_fail(rx);
	rx->entry_free = e->next;
	entry_move(e, RX_ENTRY_WAIT);
	e->data = m->data;
	e->len = m->len;
	e->op = m->op;
	e->number = m->number;
	e->missing = 0;
	e->ordered = (m->flags & DQPLB_MSG_F_ORDERED) != 0;
	for (uint32_t i = 0; i < m->runs; i++)
		if (!run_claim(rx, &m->run[i], own, at + 1u))
			return rx_fail(rx);
	if (e->ordered) {
		rx->claim[own & rx->mask] = at + 1u;
		bits_set(&rx->ordered, own);
	} else if (e->missing == 0) {
		entry_end(rx, e);
	}
	rx_arrive(rx, own);
	return 0;
}

static int record(struct dqplb_rx *rx, const struct dqplb_msg *m)
{
	uint32_t own = dqplb_seq_widen(rx->cum, m->number);

	if ((int32_t)(own - rx->cum) < 0 ||
	    (own - rx->cum <= rx->mask && bits_test(&rx->arrived, own))) {
		rx->stats.duplicates++;
		return 0;
	}
	if (own - rx->cum > rx->mask)
		return rx_fail(rx);
	return record_take(rx, m, own);
}

/* Numbers of a transfer that failed: they count as arrived. Whose record is here is dead:
 * all that it misses is in the same void, or in the next. */
static int run_void(struct dqplb_rx *rx, const struct dqplb_run *run)
{
	uint32_t first = dqplb_seq_widen(rx->cum, run->first);

	for (uint32_t n = first; n != first + run->count; n++) {
		uint32_t claim;

		if ((int32_t)(n - rx->cum) < 0)
			continue;
		if (n - rx->cum > rx->mask)
			return rx_fail(rx);
		if (bits_test(&rx->arrived, n))
			continue;
		claim = rx->claim[n & rx->mask];
		if (claim)
			entry_move(&rx->entry[claim - 1], RX_ENTRY_DEAD);
		rx->stats.voided++;
		rx_arrive(rx, n);
	}
	rx->due = true;
	return 0;
}

int dqplb_rx_msg(struct dqplb_rx *rx, const struct dqplb_msg *m)
{
	int rc = 0;

	if (rx->failed)
		return -EPROTO;
	if (m->kind != DQPLB_MSG_RECORD && m->kind != DQPLB_MSG_VOID)
		return -EINVAL;
	if (m->gen != rx->gen) {
		rx->stats.stale++;
		return 0;
	}
	if (m->kind == DQPLB_MSG_RECORD)
		return record(rx, m);
	for (uint32_t i = 0; i < m->runs && rc == 0; i++)
		rc = run_void(rx, &m->run[i]);
	return rc;
}
