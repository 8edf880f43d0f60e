/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes come and go; what one lost is posted again. Rules C1 to C4, C6. */
#include "config.h"

#include "prov/dqplb/tx_int.h"

#include <errno.h>

static const char *const lane_state_name[TX_LANE_STATES] = {
	[TX_LANE_CLOSED] = "closed",   [TX_LANE_UP] = "up",
	[TX_LANE_DOWN] = "down",       [TX_LANE_DRAINED] = "drained",
	[TX_LANE_STOPPED] = "stopped", [TX_LANE_REPORTED] = "reported",
};

/* The one writer of a lane's state. */
static void lane_move(struct dqplb_tx *tx, uint32_t lane, enum tx_lane_state to)
{
	static const uint8_t from[TX_LANE_STATES] = {
		[TX_LANE_CLOSED] = 1 << TX_LANE_DRAINED | 1 << TX_LANE_STOPPED |
				   1 << TX_LANE_REPORTED,
		[TX_LANE_UP] = 1 << TX_LANE_CLOSED,
		[TX_LANE_DOWN] = 1 << TX_LANE_UP,
		[TX_LANE_DRAINED] = 1 << TX_LANE_DOWN,
		[TX_LANE_STOPPED] = 1 << TX_LANE_DRAINED,
		[TX_LANE_REPORTED] = 1 << TX_LANE_DOWN,
	};
	struct tx_lane *l = &tx->lane[lane];
	uint64_t bit = UINT64_C(1) << lane;

	if (!(from[to] >> l->state & 1))
		abort();
	l->state = (uint8_t)to;
	if (to == TX_LANE_UP)
		tx->ready |= bit;
	else
		tx->ready &= ~bit;
}

/* It ends. Whatever ended it may do so again after so many segments: the next incarnation
 * begins with fewer at a time, and with one where nothing got through, so that something
 * does however often lanes end. */
static void lane_end(struct dqplb_tx *tx, uint32_t lane)
{
	struct tx_lane *l = &tx->lane[lane];

	l->limit = l->passed && l->limit > 1 ? l->limit / 2 : 1;
	lane_move(tx, lane, TX_LANE_DOWN);
}

void queue_recount(struct dqplb_tx *tx, uint32_t queue)
{
	const struct tx_queue *q = &tx->queue[queue];

	if (q->used == q->granted)
		tx->credit &= ~q->lanes;
	else
		tx->credit |= q->lanes;
}

int dqplb_tx_lane_open(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation,
		       uint32_t queue, uint32_t rail)
{
	uint64_t bit;
	struct tx_lane *l;

	if (lane >= tx->lanes || rail >= DQPLB_LANES_MAX ||
	    (queue >= DQPLB_LANES_MAX && queue != DQPLB_QUEUE_NONE))
		return -EINVAL;
	l = &tx->lane[lane];
	if (l->state != TX_LANE_CLOSED || incarnation <= l->incarnation)
		return -EINVAL;
	bit = UINT64_C(1) << lane;
	l->incarnation = incarnation;
	l->passed = false;
	if (l->limit == 0)
		l->limit = tx->lane_segments;
	l->plain = queue == DQPLB_QUEUE_NONE;
	l->rail = (uint8_t)rail;
	if (rail == tx->home_rail)
		tx->home |= bit;
	lane_move(tx, lane, TX_LANE_UP);
	/* Without a queue there never is a credit. */
	if (l->plain)
		return 0;
	l->queue = (uint8_t)queue;
	tx->queue[queue].lanes |= bit;
	queue_recount(tx, queue);
	return 0;
}

static bool lane_is(const struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation)
{
	return lane < tx->lanes && tx->lane[lane].incarnation == incarnation &&
	       tx->lane[lane].state != TX_LANE_CLOSED;
}

int dqplb_tx_lane_down(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation)
{
	if (!lane_is(tx, lane, incarnation))
		return -EINVAL;
	/* The report may have come first. */
	if (tx->lane[lane].state == TX_LANE_UP)
		lane_end(tx, lane);
	return 0;
}

void dqplb_tx_lane_unproven(struct dqplb_tx *tx, uint32_t lane)
{
	if (lane >= tx->lanes)
		return;
	tx->lane[lane].passed = false;
	/* The peer's report ended it before this end knew. */
	if (tx->lane[lane].state != TX_LANE_UP)
		tx->lane[lane].limit = 1;
}

uint32_t dqplb_tx_rail_down(struct dqplb_tx *tx, uint32_t rail, uint64_t *lanes)
{
	uint32_t count = 0;

	*lanes = 0;
	for (uint32_t i = 0; i < tx->lanes; i++) {
		if (tx->lane[i].state != TX_LANE_UP || tx->lane[i].rail != rail)
			continue;
		lane_end(tx, i);
		*lanes |= UINT64_C(1) << i;
		count++;
	}
	return count;
}

/* Drained, and not reported. */
static bool lane_waits(const struct tx_lane *l)
{
	return l->state == TX_LANE_DRAINED || l->state == TX_LANE_STOPPED;
}

/* A numbered segment of a lane that both ends are through with. */
static void numbered_resolve(struct dqplb_tx *tx, uint32_t number, struct tx_slot *s)
{
	struct dqplb_xfer *x = s->xfer;

	if (s->state == SLOT_POSTED)
		x->in_flight--;
	if (bits_test(&tx->acked, number)) {
		slot_move(s, SLOT_FREE);
		xfer_settle(tx, x);
		return;
	}
	/* It used no receive. */
	tx->queue[tx->lane[s->lane].queue].used--;
	if (x->error) {
		slot_move(s, SLOT_GAP);
		xfer_settle(tx, x);
	} else {
		slot_move(s, SLOT_LOST);
		tx->lost++;
		x->lost++;
	}
}

static void plain_resolve(struct dqplb_tx *tx, struct tx_slot *s)
{
	struct dqplb_xfer *x = s->xfer;

	x->in_flight--;
	if (x->error) {
		plain_free(tx, s);
		xfer_settle(tx, x);
	} else {
		slot_move(s, SLOT_LOST);
		tx->plain_lost++;
		x->lost++;
	}
}

/* Plain segments of the lane; only reads, or whatever is left. */
static void plains_resolve(struct dqplb_tx *tx, uint32_t lane, bool reads)
{
	for (uint32_t i = 0; i < tx->plain_count; i++) {
		struct tx_slot *s = &tx->plain[i];

		if (s->state == SLOT_POSTED && s->lane == lane &&
		    (!reads || s->xfer->kind == DQPLB_READ))
			plain_resolve(tx, s);
	}
	tx->plain_lost_at = 0;
}

/* Drained here and reported by the peer: what the report lacks is lost (C3). */
static void lane_resolve(struct dqplb_tx *tx, uint32_t lane)
{
	struct tx_lane *l = &tx->lane[lane];
	uint64_t bit = UINT64_C(1) << lane;

	for (uint32_t n = tx->tail; n != tx->nxt; n++) {
		struct tx_slot *s = tx_slot(tx, n);

		if (s->lane == lane && (s->state == SLOT_POSTED || s->state == SLOT_SENT))
			numbered_resolve(tx, n, s);
	}
	plains_resolve(tx, lane, false);
	tx_tail(tx);
	tx->lost_at = tx->tail;
	tx->credit &= ~bit;
	tx->queue[l->queue].lanes &= ~bit;
	queue_recount(tx, l->queue);
	tx->home &= ~bit;
	lane_move(tx, lane, TX_LANE_CLOSED);
	xfer_settle_failed(tx);
}

int dqplb_tx_lane_drained(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation)
{
	struct tx_lane *l;

	if (!lane_is(tx, lane, incarnation) || lane_waits(&tx->lane[lane]))
		return -EINVAL;
	l = &tx->lane[lane];
	tx->bytes -= l->bytes;
	l->bytes = 0;
	l->segments = 0;
	if (l->state == TX_LANE_UP)
		lane_end(tx, lane);
	if (l->state == TX_LANE_REPORTED) {
		lane_resolve(tx, lane);
		return 0;
	}
	lane_move(tx, lane, TX_LANE_DRAINED);
	/* What they read into is written by this queue pair only. */
	plains_resolve(tx, lane, true);
	return 0;
}

int dqplb_tx_lane_stopped(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation)
{
	if (!lane_is(tx, lane, incarnation) || !dqplb_tx_lane_unstopped(tx, lane))
		return -EINVAL;
	lane_move(tx, lane, TX_LANE_STOPPED);
	plains_resolve(tx, lane, false);
	if (tx->lane[lane].plain)
		lane_resolve(tx, lane);
	return 0;
}

bool dqplb_tx_lane_unstopped(const struct dqplb_tx *tx, uint32_t lane)
{
	return lane < tx->lanes && tx->lane[lane].state == TX_LANE_DRAINED;
}

bool dqplb_tx_lane_quiet(const struct dqplb_tx *tx, uint32_t lane)
{
	return lane < tx->lanes && (tx->lane[lane].state == TX_LANE_STOPPED ||
				    tx->lane[lane].state == TX_LANE_CLOSED);
}

void lane_reported(struct dqplb_tx *tx, const struct dqplb_lane_name *name)
{
	/* An old one, told again. */
	if (!lane_is(tx, name->lane, name->incarnation))
		return;
	if (tx->lane[name->lane].state == TX_LANE_UP)
		lane_end(tx, name->lane);
	if (tx->lane[name->lane].state == TX_LANE_DOWN)
		lane_move(tx, name->lane, TX_LANE_REPORTED);
	else if (lane_waits(&tx->lane[name->lane]))
		lane_resolve(tx, name->lane);
}

bool dqplb_tx_lane_up(const struct dqplb_tx *tx, uint32_t lane)
{
	return lane < tx->lanes && tx->lane[lane].state == TX_LANE_UP;
}

bool dqplb_tx_lane_closed(const struct dqplb_tx *tx, uint32_t lane)
{
	return lane < tx->lanes && tx->lane[lane].state == TX_LANE_CLOSED;
}

const char *dqplb_tx_lane_state(const struct dqplb_tx *tx, uint32_t lane)
{
	return lane < tx->lanes ? lane_state_name[tx->lane[lane].state] : "none";
}

static void list_abort(struct dqplb_tx *tx, struct list *list, int error)
{
	while (!list_empty(list)) {
		struct dqplb_xfer *x = container_of(list->next, struct dqplb_xfer, order);

		if (!x->error)
			x->error = error;
		xfer_move(tx, x, XFER_FINISHED);
	}
}

int dqplb_tx_abort(struct dqplb_tx *tx, int error)
{
	for (uint32_t i = 0; i < tx->lanes; i++)
		if (tx->lane[i].state != TX_LANE_CLOSED && !lane_waits(&tx->lane[i]))
			return -EBUSY;
	if (error >= 0)
		return -EINVAL;
	tx->failed = true;
	tx->lost = 0;
	tx->plain_lost = 0;
	list_abort(tx, &tx->started, error);
	list_abort(tx, &tx->posted, error);
	list_abort(tx, &tx->plains, error);
	return 0;
}
