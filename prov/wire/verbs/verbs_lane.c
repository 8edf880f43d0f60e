/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes come and go. Rules C1 to C4, C6 to C8. */
#include "config.h"

#include "prov/wire/verbs/verbs_lane.h"

#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_poll.h"
#include "prov/wire/verbs/verbs_spare.h"
#include "prov/wire/verbs/verbs_stop.h"

/* A lane whose queue pair doesn't flush is ended by destroying it. */
#define LANE_DRAIN_NS UINT64_C(5000000000)
/* Between ends and openings of a lane that keeps failing: doubled each time. */
#define LANE_PAUSE_NS	  UINT64_C(10000000)
#define LANE_PAUSE_SHIFTS 6u

#define OWE(op) (uint8_t)(1u << (op))

static const char *const lane_why[] = {
	[VERBS_LANE_PATH] = "its path failed",
	[VERBS_LANE_FAULT] = "an operation was refused",
	[VERBS_LANE_TOLD] = "the peer says so",
	[VERBS_LANE_DONE] = "it isn't needed any more",
};

static const char *const lane_state_name[VERBS_LANE_STATES] = {
	[VERBS_LANE_CLOSED] = "closed",
	[VERBS_LANE_OPENING] = "opening",
	[VERBS_LANE_UP] = "up",
	[VERBS_LANE_DRAINING] = "draining",
};

const char *verbs_lane_state_name(enum verbs_lane_state state)
{
	return lane_state_name[state];
}

/* The one writer of a lane's state. */
static void lane_move(struct verbs_link *link, uint32_t i, enum verbs_lane_state to)
{
	static const uint8_t from[VERBS_LANE_STATES] = {
		[VERBS_LANE_CLOSED] = 1 << VERBS_LANE_OPENING | 1 << VERBS_LANE_UP |
				      1 << VERBS_LANE_DRAINING,
		[VERBS_LANE_OPENING] = 1 << VERBS_LANE_CLOSED,
		[VERBS_LANE_UP] = 1 << VERBS_LANE_OPENING,
		[VERBS_LANE_DRAINING] = 1 << VERBS_LANE_OPENING | 1 << VERBS_LANE_UP,
	};
	struct verbs_lane *l = &link->lane[i];

	if (!(from[to] >> l->state & 1))
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "lane %u: %s after %s\n", i,
			lane_state_name[to], lane_state_name[l->state]);
	l->state = to;
}

int verbs_lane_make(struct verbs_link *link, uint32_t i, const struct verbs_qp_attr *attr)
{
	struct verbs_lane *l = &link->lane[i];
	int ret;

	l->incarnation = attr->incarnation;
	l->behind = 0;
	l->rail = (uint8_t)attr->rail;
	ret = verbs_qp_open(link->ep, link, attr, &l->qp);
	if (ret)
		l->qp = NULL;
	else
		lane_move(link, i, VERBS_LANE_OPENING);
	return ret;
}

int verbs_lane_prepare(struct verbs_link *link, uint32_t i, uint32_t rail,
		       uint32_t incarnation)
{
	struct verbs_ep *ep = link->ep;
	struct verbs_lane *l = &link->lane[i];
	const struct verbs_qp_attr attr = {
		.rail = rail,
		.sends = ep->lane_sends + VERBS_FLUSH_SENDS,
		.receives = ep->card.receives,
		.sge = VERBS_SGE,
		.lane = (uint16_t)i,
		.incarnation = incarnation,
		/* The first ones are made before both
		 * ends know: alike on both. */
		.ooo = link->state == VERBS_LINK_UP &&
		       (link->terms.features & VERBS_CARD_OOO)};
	int ret = verbs_lane_make(link, i, &attr);

	if (ret)
		return ret;
	ret = verbs_qp_receive(l->qp, attr.receives);
	if (ret) {
		verbs_qp_leave(ep, l->qp);
		l->qp = NULL;
		lane_move(link, i, VERBS_LANE_CLOSED);
	}
	return ret;
}

int verbs_lane_connect(struct verbs_link *link, uint32_t i, uint32_t peer_rail,
		       uint32_t qpn, uint32_t psn)
{
	struct verbs_lane *l = &link->lane[i];

	l->peer_rail = (uint8_t)peer_rail;
	return verbs_qp_connect(link->ep, l->qp, &link->peer, peer_rail, qpn, psn,
				link->traffic_class);
}

int verbs_lane_listen(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];
	uint32_t out = dqplb_rx_outstanding(link->rx, i);
	uint32_t receives = link->ep->card.receives;

	/* What was granted and not used is among those of the new queue pair. */
	l->rq.free = receives > out ? receives - out : 0;
	if (dqplb_rx_lane_open(link->rx, i, l->incarnation, i))
		return -EPROTO;
	l->receiving = true;
	return 0;
}

void verbs_lane_up(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];

	if (l->state != VERBS_LANE_OPENING)
		return;
	if (dqplb_tx_lane_open(link->tx, i, l->incarnation,
			       i == verbs_spare_lane(link) ? DQPLB_QUEUE_NONE : i,
			       l->rail)) {
		verbs_link_fault(link, -EPROTO);
		return;
	}
	link->flush.dying &= ~(UINT64_C(1) << i);
	lane_move(link, i, VERBS_LANE_UP);
	link->lane_stats.opened++;
	verbs_flush_lane_up(link, i);
}

/* ---- the end ------------------------------------------------------------------------
 */

/* What its queue pair did stays with it, and with the rail. */
static void lane_sum(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];

	l->requests += l->qp->requests;
	l->bytes += l->qp->bytes;
	link->rail_bytes[l->qp->rail] += l->qp->bytes;
}

static void lane_retired(struct verbs_link *link, uint32_t i)
{
	link->lane[i].retired++;
	link->lane_stats.retired++;
}

static void lane_close(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];

	pthread_mutex_lock(&link->ep->mutex);
	lane_sum(link, i);
	verbs_qp_close(link->ep, l->qp);
	l->qp = NULL;
	pthread_mutex_unlock(&link->ep->mutex);
	l->rq.free = 0;
	if (l->receiving)
		dqplb_rx_lane_drained(link->rx, i, l->incarnation);
	l->receiving = false;
	/* Once more: of what was polled since it ended. */
	verbs_flush_lane_gone(link, i);
	/* Where it never was up, the transmitter doesn't know it. */
	dqplb_tx_lane_drained(link->tx, i, l->incarnation);
	verbs_stop_want(link, i);
	lane_move(link, i, VERBS_LANE_CLOSED);
	verbs_link_chore(link);
}

void verbs_lane_down(struct verbs_link *link, uint32_t i, enum verbs_lane_why why)
{
	struct verbs_lane *l = &link->lane[i];

	if (l->state != VERBS_LANE_UP && l->state != VERBS_LANE_OPENING)
		return;
	FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
		"lane %u.%u on %s ends: %s; in flight is sent again on others\n", i,
		l->incarnation, link->ep->dom->dev->rail[l->rail].name, lane_why[why]);
	if (why == VERBS_LANE_FAULT)
		link->lane_stats.rebuilt++;
	else if (why != VERBS_LANE_DONE)
		lane_retired(link, i);
	/* Perhaps all of its rail is down: then none is opened there in vain. */
	if (why == VERBS_LANE_PATH)
		verbs_poll_async(link->ep);
	/* One on which something got through was worth opening. */
	if (why == VERBS_LANE_FAULT || l->qp->passed)
		l->faults = 0;
	l->faults++;
	/* What is owed of its opening doesn't matter any more. */
	l->owe = why == VERBS_LANE_TOLD || i == verbs_spare_lane(link)
			 ? 0
			 : OWE(VERBS_MSG_DOWN);
	verbs_quick_keep(link, l->qp);
	verbs_flush_lane_gone(link, i);
	if (i == verbs_spare_lane(link))
		verbs_spare_gone(link);
	dqplb_tx_lane_down(link->tx, i, l->incarnation);
	lane_move(link, i, VERBS_LANE_DRAINING);
	verbs_qp_error(link->ep, l->qp);
	l->qp->lost = why == VERBS_LANE_PATH || why == VERBS_LANE_TOLD;
	l->due = verbs_now() + LANE_DRAIN_NS;
	verbs_link_wake(link, l->due);
	verbs_lane_settle(link, i);
	verbs_link_chore(link);
}

/* One that failed before waits before it is opened again. */
static uint64_t lane_pause(const struct verbs_lane *l)
{
	return l->faults < 2 ? 0
			     : LANE_PAUSE_NS << (l->faults < LANE_PAUSE_SHIFTS
							 ? l->faults
							 : LANE_PAUSE_SHIFTS);
}

void verbs_lane_settle(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];

	if (l->state != VERBS_LANE_DRAINING || !verbs_qp_is_quiet(l->qp))
		return;
	lane_close(link, i);
	l->due = verbs_now() + lane_pause(l);
}

static void lane_end(struct verbs_link *link, uint32_t i,
		     void (*give)(struct verbs_ep *ep, struct verbs_qp *qp))
{
	struct verbs_lane *l = &link->lane[i];

	if (!l->qp)
		return;
	verbs_quick_keep(link, l->qp);
	lane_sum(link, i);
	give(link->ep, l->qp);
	l->qp = NULL;
	l->receiving = false;
	if (link->tx) {
		dqplb_tx_lane_down(link->tx, i, l->incarnation);
		dqplb_tx_lane_drained(link->tx, i, l->incarnation);
	}
	lane_move(link, i, VERBS_LANE_CLOSED);
}

void verbs_lane_cut(struct verbs_link *link, uint32_t i)
{
	lane_end(link, i, verbs_qp_close);
}

void verbs_lane_leave(struct verbs_link *link, uint32_t i)
{
	lane_end(link, i, verbs_qp_leave);
}

void verbs_lane_refuse(struct verbs_link *link, uint32_t i)
{
	verbs_lane_leave(link, i);
	if (i < link->lanes)
		link->lane[i].owe = OWE(VERBS_MSG_DOWN);
}

void verbs_lanes_reported(struct verbs_link *link)
{
	for (uint32_t i = 0; i < link->lanes; i++)
		if (link->lane[i].state == VERBS_LANE_UP &&
		    !dqplb_tx_lane_up(link->tx, i))
			verbs_lane_down(link, i, VERBS_LANE_TOLD);
	/* What was reported may be opened again, also where nothing else goes on. */
	verbs_link_chore(link);
}

/* With the one that is made at the door. */
static uint32_t lanes_all(const struct verbs_link *link)
{
	return link->lanes < DQPLB_LANES_MAX ? link->lanes + 1 : link->lanes;
}

void verbs_lanes_rail_down(struct verbs_link *link, uint32_t rail, bool peer)
{
	for (uint32_t i = 0; i < lanes_all(link); i++) {
		const struct verbs_lane *l = &link->lane[i];

		if ((peer ? l->peer_rail : l->rail) == rail)
			verbs_lane_down(link, i, VERBS_LANE_PATH);
	}
}

void verbs_lanes_rail_up(struct verbs_link *link, uint32_t rail, bool peer)
{
	for (uint32_t i = 0; i < link->lanes; i++) {
		struct verbs_lane *l = &link->lane[i];

		if (l->state != VERBS_LANE_CLOSED)
			continue;
		if ((peer ? l->peer_rail : i % link->ep->dom->dev->rails) != rail)
			continue;
		l->faults = 0;
		l->due = 0;
	}
}

/* ---- opening ------------------------------------------------------------------------
 */

void verbs_lanes_want(struct verbs_link *link)
{
	if (link->lanes_wanted == link->lanes)
		return;
	link->lanes_wanted = link->lanes;
	verbs_link_chore(link);
}

/* Whether both machines are through with what the lane was before. */
static bool lane_is_free(const struct verbs_link *link, uint32_t i)
{
	return link->lane[i].state == VERBS_LANE_CLOSED &&
	       dqplb_tx_lane_closed(link->tx, i) && dqplb_rx_lane_closed(link->rx, i);
}

static void lane_dial(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];
	const struct verbs_dev *dev = link->ep->dom->dev;
	uint32_t rail = i % dev->rails, peer_rail;
	int ret;

	if (!atomic_load_explicit(&dev->rail[rail].up, memory_order_relaxed))
		return;
	peer_rail = verbs_card_rail_for(&link->peer, &link->ep->card, rail);
	if (peer_rail == UINT32_MAX) {
		l->never = true;
		return;
	}
	/* It says when that is over. */
	if (link->peer_down >> peer_rail & 1)
		return;
	pthread_mutex_lock(&link->ep->mutex);
	ret = verbs_lane_prepare(link, i, rail, l->incarnation + 1);
	pthread_mutex_unlock(&link->ep->mutex);
	if (ret) {
		l->faults++;
		l->due = verbs_now() + (LANE_PAUSE_NS << LANE_PAUSE_SHIFTS);
		return;
	}
	l->owe = OWE(VERBS_MSG_OPEN);
}

/* The messages that a lane owes, in the order of the bits. False: no room. */
static bool lane_say(struct verbs_link *link, uint32_t i)
{
	struct verbs_lane *l = &link->lane[i];

	while (l->owe) {
		struct verbs_msg m = {.op = (enum verbs_msg_op)__builtin_ctz(l->owe),
				      .lane = (uint16_t)i,
				      .rail = l->rail,
				      .incarnation = l->incarnation};
		void *at = verbs_chan_reserve(link, VERBS_CTL_OWN);

		if (!at)
			return false;
		if (m.op == VERBS_MSG_REFUSED)
			m.incarnation = l->refused;
		if (l->qp) {
			m.qpn = l->qp->ib->qp_num;
			m.psn = l->qp->psn;
		}
		verbs_msg_write(at, &m);
		l->owe &= (uint8_t)(l->owe - 1);
		verbs_chan_commit(link, VERBS_CTL_LANE, sizeof(struct verbs_msg_bytes));
	}
	return true;
}

static void want_say(struct verbs_link *link)
{
	const struct verbs_msg m = {.op = VERBS_MSG_WANT,
				    .lane = (uint16_t)link->lanes_wanted};
	void *at;

	if (link->dialler || link->lanes_said >= link->lanes_wanted)
		return;
	at = verbs_chan_reserve(link, VERBS_CTL_OWN);
	if (!at)
		return;
	verbs_msg_write(at, &m);
	link->lanes_said = link->lanes_wanted;
	verbs_chan_commit(link, VERBS_CTL_LANE, sizeof(struct verbs_msg_bytes));
}

uint64_t verbs_lane_drain(struct verbs_link *link, uint32_t i, uint64_t now)
{
	struct verbs_lane *l = &link->lane[i];

	if (l->due > now)
		return l->due;
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
		"lane %u.%u on %s doesn't flush: its queue pair is destroyed\n", i,
		l->incarnation, link->ep->dom->dev->rail[l->rail].name);
	lane_close(link, i);
	l->due = now + (LANE_PAUSE_NS << LANE_PAUSE_SHIFTS);
	return UINT64_MAX;
}

/* One lane's turn; what is due of it. */
static uint64_t lane_run(struct verbs_link *link, uint32_t i, uint64_t now)
{
	struct verbs_lane *l = &link->lane[i];

	if (l->state == VERBS_LANE_DRAINING &&
	    verbs_lane_drain(link, i, now) != UINT64_MAX)
		return l->due;
	if (link->dialler && i < link->lanes_wanted && !l->never && !l->owe &&
	    lane_is_free(link, i)) {
		if (l->due > now)
			return l->due;
		lane_dial(link, i);
	}
	lane_say(link, i);
	return l->state == VERBS_LANE_CLOSED && l->due > now ? l->due : UINT64_MAX;
}

uint64_t verbs_lanes_run(struct verbs_link *link, uint64_t now)
{
	uint64_t due = verbs_stop_run(link, now), spare = verbs_spare_run(link, now);

	if (spare < due)
		due = spare;
	for (uint32_t i = 0; i < link->lanes; i++) {
		uint64_t d = lane_run(link, i, now);

		if (d < due)
			due = d;
	}
	want_say(link);
	return due;
}

bool verbs_lanes_owe(const struct verbs_link *link)
{
	if (!link->dialler && link->lanes_said < link->lanes_wanted)
		return true;
	for (uint32_t i = 0; i < link->lanes; i++)
		if (link->lane[i].owe)
			return true;
	return false;
}

/* ---- what the peer says -------------------------------------------------------------
 */

/* Answerer: the dialler's queue pair of the lane can receive. */
static int take_open(struct verbs_link *link, const struct verbs_msg *m)
{
	struct verbs_lane *l = &link->lane[m->lane];
	const struct verbs_card *mine = &link->ep->card;
	uint32_t rail;
	int ret = -FI_EIO;

	if (link->dialler || m->rail >= link->peer.rails ||
	    m->incarnation <= l->incarnation)
		return -EPROTO;
	l->refused = m->incarnation;
	if (!lane_is_free(link, m->lane)) {
		/* The dialler gave the one before up early; ours still drains. */
		l->owe |= OWE(VERBS_MSG_REFUSED);
		return 0;
	}
	if (link->lanes_wanted < m->lane + 1u)
		link->lanes_wanted = m->lane + 1u;
	rail = verbs_card_rail_for(mine, &link->peer, m->rail);
	l->incarnation = m->incarnation;
	if (rail != UINT32_MAX) {
		pthread_mutex_lock(&link->ep->mutex);
		ret = verbs_lane_prepare(link, m->lane, rail, m->incarnation);
		if (ret == 0)
			ret = verbs_lane_connect(link, m->lane, m->rail, m->qpn, m->psn);
		if (ret)
			verbs_lane_cut(link, m->lane);
		pthread_mutex_unlock(&link->ep->mutex);
	}
	if (ret == 0)
		ret = verbs_lane_listen(link, m->lane);
	l->owe = ret ? OWE(VERBS_MSG_REFUSED) : OWE(VERBS_MSG_OPENED);
	return 0;
}

/* Dialler: so can the answerer's. */
static int take_opened(struct verbs_link *link, const struct verbs_msg *m)
{
	struct verbs_lane *l = &link->lane[m->lane];

	if (!link->dialler || m->rail >= link->peer.rails)
		return -EPROTO;
	if (l->state != VERBS_LANE_OPENING || m->incarnation != l->incarnation)
		return 0; /* ours is gone meanwhile, which was said */
	if (verbs_lane_connect(link, m->lane, m->rail, m->qpn, m->psn) ||
	    verbs_lane_listen(link, m->lane)) {
		verbs_lane_down(link, m->lane, VERBS_LANE_PATH);
		return 0;
	}
	l->owe = OWE(VERBS_MSG_READY);
	lane_say(link, m->lane);
	verbs_lane_up(link, m->lane);
	return 0;
}

/* Answerer: the dialler's can send as well. Of a dialler's own a peer can't say so: its
 * queue pair may not be connected yet. */
static int take_ready(struct verbs_link *link, const struct verbs_msg *m)
{
	if (link->dialler)
		return -EPROTO;
	if (m->incarnation == link->lane[m->lane].incarnation)
		verbs_lane_up(link, m->lane);
	return 0;
}

static int take_refused(struct verbs_link *link, const struct verbs_msg *m)
{
	struct verbs_lane *l = &link->lane[m->lane];

	if (!link->dialler)
		return -EPROTO;
	if (l->state != VERBS_LANE_OPENING || m->incarnation != l->incarnation)
		return 0;
	pthread_mutex_lock(&link->ep->mutex);
	verbs_lane_cut(link, m->lane);
	pthread_mutex_unlock(&link->ep->mutex);
	/* Short where it may only not have known yet where we are. */
	l->faults = l->faults < 2 ? 2 : l->faults + 1;
	l->due = verbs_now() + lane_pause(l);
	return 0;
}

static int take_down(struct verbs_link *link, const struct verbs_msg *m)
{
	if (m->incarnation == link->lane[m->lane].incarnation)
		verbs_lane_down(link, m->lane, VERBS_LANE_TOLD);
	return 0;
}

int verbs_lanes_peer_rail(struct verbs_link *link, const struct verbs_msg *m)
{
	bool reached;

	if (m->rail >= link->peer.rails || m->lane > 1)
		return -EPROTO;
	/* A port that is down may have lost what it was reached by. */
	reached = verbs_card_rail_move(&link->peer.rail[m->rail], m->lid, m->gid);
	if (m->lane == 0 || !reached) {
		link->peer_down |= 1u << m->rail;
		verbs_lanes_rail_down(link, m->rail, true);
		return 0;
	}
	link->peer_down &= ~(1u << m->rail);
	verbs_lanes_rail_up(link, m->rail, true);
	return 0;
}

int verbs_lanes_msg(struct verbs_link *link, const void *bytes, size_t len)
{
	struct verbs_msg m;
	int ret = verbs_msg_read(bytes, len, &m);

	verbs_link_chore(link);
	if (ret || (m.op < VERBS_MSG_WANT && m.lane >= link->lanes))
		return -EPROTO;
	switch (m.op) {
	case VERBS_MSG_OPEN:
		return take_open(link, &m);
	case VERBS_MSG_OPENED:
		return take_opened(link, &m);
	case VERBS_MSG_READY:
		return take_ready(link, &m);
	case VERBS_MSG_REFUSED:
		return take_refused(link, &m);
	case VERBS_MSG_DOWN:
		return take_down(link, &m);
	case VERBS_MSG_WANT:
		if (m.lane > link->lanes_wanted && m.lane <= link->lanes)
			link->lanes_wanted = m.lane;
		return 0;
	case VERBS_MSG_RAIL:
		return verbs_lanes_peer_rail(link, &m);
	default:
		return -EPROTO;
	}
}
