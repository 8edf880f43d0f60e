/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer's receiver says: numbers that it consumed, receives that it grants, lanes
 * that are quiet. Rules A6, A7, A9, C3. */
#include "config.h"

#include "prov/dqplb/tx_int.h"

#include <errno.h>

static void number_ack(struct dqplb_tx *tx, uint32_t number)
{
	struct tx_slot *s = tx_slot(tx, number);
	struct dqplb_xfer *x = s->xfer;

	if (bits_test(&tx->acked, number))
		return;
	bits_set(&tx->acked, number);
	x->unacked--;
	if (s->state == SLOT_LOST) {
		tx->lost--;
		x->lost--;
	}
	/* In flight still: its lane says when it is through with the memory. */
	if (s->state != SLOT_POSTED)
		slot_move(s, SLOT_FREE);
	xfer_settle(tx, x);
}

/* Everything before cum. */
static void cum_take(struct dqplb_tx *tx, uint32_t cum)
{
	if ((int32_t)(cum - tx->una) <= 0)
		return;
	while (tx->una != cum) {
		const struct tx_slot *s = tx_slot(tx, tx->una);

		if (s->piece == SLOT_RECORD)
			tx->records_out--;
		number_ack(tx, tx->una);
		tx->una++;
		tx_tail(tx);
	}
	xfer_stalled_go(tx);
}

/* Numbers of a bitmap that begins at cum. False: one was never given out. */
static bool words_take(struct dqplb_tx *tx, const struct dqplb_msg *m, uint32_t cum)
{
	for (uint32_t i = 0; i < m->words; i++) {
		uint32_t base = cum + i * 64;
		uint64_t w = m->word[i];

		/* While one number is late, each message says again what is known. */
		if ((int32_t)(base - tx->una) >= 0)
			w &= ~bits_get64(&tx->acked, base);
		for (; w; w &= w - 1) {
			uint32_t n = base + (uint32_t)__builtin_ctzll(w);

			if ((int32_t)(n - tx->nxt) >= 0)
				return false;
			if ((int32_t)(n - tx->una) >= 0)
				number_ack(tx, n);
		}
	}
	return true;
}

static bool grants_take(struct dqplb_tx *tx, const struct dqplb_msg *m)
{
	for (uint32_t i = 0; i < m->grants; i++) {
		struct tx_queue *q = &tx->queue[m->grant[i].queue];

		/* An older message says less. */
		if ((int32_t)(m->grant[i].granted - q->granted) <= 0)
			continue;
		if (m->grant[i].granted - q->used > DQPLB_GRANT_MAX)
			return false;
		q->granted = m->grant[i].granted;
		queue_recount(tx, m->grant[i].queue);
	}
	return true;
}

int dqplb_tx_msg(struct dqplb_tx *tx, const struct dqplb_msg *m)
{
	uint32_t cum = dqplb_seq_widen(tx->una, m->number);

	if (m->kind != DQPLB_MSG_ACK && m->kind != DQPLB_MSG_REPORT)
		return -EINVAL;
	if (tx->failed || m->gen != tx->gen)
		return 0;
	if ((int32_t)(cum - tx->nxt) > 0)
		return -EPROTO;
	cum_take(tx, cum);
	if (!words_take(tx, m, cum) || !grants_take(tx, m))
		return -EPROTO;
	/* Only now: what the report has is not posted again. */
	for (uint32_t i = 0; i < m->lanes; i++)
		lane_reported(tx, &m->lane[i]);
	return 0;
}
