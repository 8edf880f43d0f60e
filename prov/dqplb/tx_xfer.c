/* SPDX-License-Identifier: BSD-2-Clause */
/* A transfer's life: turns, order, failure, the end. Rules A9, A10. */
#include "config.h"

#include "prov/dqplb/tx_int.h"

#define FROM(state) (1u << XFER_##state)

/* States in which a transfer is on a queue. */
#define QUEUED (FROM(TURN) | FROM(STALLED) | FROM(RECORD) | FROM(VOID) | FROM(FINISHED))

/* Its queue while it is in that state, NULL: none. */
static struct list *state_list(struct dqplb_tx *tx, const struct dqplb_xfer *x,
			       enum xfer_state state)
{
	switch (state) {
	case XFER_TURN:
		return &tx->turns[xfer_numbered(x)];
	case XFER_STALLED:
		return &tx->stalled;
	case XFER_RECORD:
		return &tx->records;
	case XFER_VOID:
		return &tx->voids;
	case XFER_FINISHED:
		return &tx->finished;
	default:
		return NULL;
	}
}

void xfer_move(struct dqplb_tx *tx, struct dqplb_xfer *x, enum xfer_state to)
{
	static const uint16_t from[XFER_STATES] = {
		[XFER_IDLE] = FROM(FINISHED),
		[XFER_HELD] = FROM(IDLE),
		[XFER_TURN] = FROM(IDLE) | FROM(HELD) | FROM(STALLED),
		[XFER_STALLED] = FROM(TURN),
		[XFER_RECORD] = FROM(TURN),
		[XFER_POSTED] = FROM(TURN) | FROM(RECORD) | FROM(VOID),
		[XFER_FAILED] = FROM(HELD) | FROM(TURN) | FROM(STALLED) | FROM(RECORD) |
				FROM(POSTED),
		[XFER_VOID] = FROM(FAILED),
		/* From the others at the link's end. */
		[XFER_FINISHED] = FROM(POSTED) | FROM(FAILED) | FROM(VOID) | FROM(HELD) |
				  FROM(TURN) | FROM(STALLED) | FROM(RECORD),
	};
	struct list *list = state_list(tx, x, to);

	if (__builtin_expect(!(from[to] >> x->state & 1), 0))
		abort();
	tx->queued += (QUEUED >> to & 1u) - (QUEUED >> x->state & 1u);
	x->state = (uint8_t)to;
	list_remove(&x->where);
	if (list)
		list_push_back(list, &x->where);
	if (to == XFER_FINISHED) {
		list_unlink(&x->order);
		tx->stats.finished++;
		tx->stats.failed += x->error != 0;
	}
}

void xfer_numbers_end(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	struct dqplb_xfer *first;

	list_unlink(&x->order);
	list_push_back(&tx->posted, &x->order);
	if (list_empty(&tx->started))
		return;
	first = container_of(tx->started.next, struct dqplb_xfer, order);
	if (first->state == XFER_HELD)
		xfer_move(tx, first, XFER_TURN);
}

void xfer_runs_forget(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < x->runs; i++) {
		struct dqplb_run run = x->run[i];
		int32_t gone = (int32_t)(tx->una - run.first);

		if (gone >= (int32_t)run.count)
			continue;
		if (gone > 0) {
			run.first += (uint32_t)gone;
			run.count -= (uint32_t)gone;
		}
		x->run[kept++] = run;
	}
	x->runs = kept;
}

void xfer_stalled_go(struct dqplb_tx *tx)
{
	while (!list_empty(&tx->stalled))
		xfer_move(tx, container_of(tx->stalled.next, struct dqplb_xfer, where),
			  XFER_TURN);
}

/* Whether all that is not acknowledged of it is lost for good. What a lane delivered is
 * waited for: it used a receive, or its lane ends and will say that it did not. */
static bool voidable(struct dqplb_tx *tx, const struct dqplb_xfer *x)
{
	bool gap = false;

	for (uint32_t i = 0; i < x->runs; i++)
		for (uint32_t k = 0; k < x->run[i].count; k++) {
			const struct tx_slot *s = tx_slot(tx, x->run[i].first + k);

			if (s->state == SLOT_SENT)
				return false;
			gap = gap || s->state == SLOT_GAP;
		}
	return gap;
}

void xfer_settle(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	if (x->in_flight || x->lost)
		return;
	if (x->state != XFER_POSTED && x->state != XFER_FAILED)
		return;
	if (x->unacked == 0) {
		xfer_move(tx, x, XFER_FINISHED);
		return;
	}
	if (x->state == XFER_FAILED) {
		xfer_runs_forget(tx, x);
		if (voidable(tx, x))
			xfer_move(tx, x, XFER_VOID);
	}
}

void xfer_settle_failed(struct dqplb_tx *tx)
{
	list_foreach_safe (node, tmp, &tx->posted) {
		struct dqplb_xfer *x = container_of(node, struct dqplb_xfer, order);

		if (x->state == XFER_FAILED)
			xfer_settle(tx, x);
	}
}

/* What is lost of it stays so. */
static void lost_forget(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	for (uint32_t i = 0; i < x->runs && x->lost; i++)
		for (uint32_t k = 0; k < x->run[i].count; k++) {
			struct tx_slot *s = tx_slot(tx, x->run[i].first + k);

			if (s->state != SLOT_LOST || s->xfer != x)
				continue;
			slot_move(s, SLOT_GAP);
			tx->lost--;
			x->lost--;
		}
	for (uint32_t i = 0; i < tx->plain_count && x->lost; i++) {
		struct tx_slot *s = &tx->plain[i];

		if (s->state != SLOT_LOST || s->xfer != x)
			continue;
		plain_free(tx, s);
		tx->plain_lost--;
		x->lost--;
	}
}

void xfer_fail(struct dqplb_tx *tx, struct dqplb_xfer *x, int error)
{
	if (x->error)
		return;
	x->error = error;
	xfer_runs_forget(tx, x);
	lost_forget(tx, x);
	if (xfer_numbered(x) && x->state != XFER_POSTED)
		xfer_numbers_end(tx, x);
	xfer_move(tx, x, XFER_FAILED);
}

bool xfer_void_next(struct dqplb_tx *tx, struct dqplb_post *post, struct dqplb_msg *m)
{
	struct dqplb_xfer *x = container_of(tx->voids.next, struct dqplb_xfer, where);

	xfer_runs_forget(tx, x);
	m->kind = DQPLB_MSG_VOID;
	m->gen = (uint8_t)tx->gen;
	m->flags = 0;
	m->number = 0;
	m->runs = x->runs;
	for (uint32_t i = 0; i < x->runs; i++)
		m->run[i] = (struct dqplb_run){x->run[i].first & DQPLB_SEQ_MASK,
					       x->run[i].count};
	/* Now it waits for what was voided, as others for what arrives. */
	xfer_move(tx, x, XFER_POSTED);
	xfer_settle(tx, x);
	if (m->runs == 0)
		return false;
	tx->stats.voids++;
	post->kind = DQPLB_POST_MSG;
	post->xfer = x;
	return true;
}
