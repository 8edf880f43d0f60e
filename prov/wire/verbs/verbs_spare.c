/* SPDX-License-Identifier: BSD-2-Clause */
/* A lane made at the door; see verbs_spare.h. Rules C4, C5, C7, D6. */
#include "config.h"

#include "prov/wire/verbs/verbs_spare.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_bufs.h"
#include "prov/wire/verbs/verbs_door.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_resume.h"
#include "prov/wire/verbs/verbs_stop.h"

/* A peer that makes calls has lanes and channel back sooner. */
#define SPARE_PAUSE_NS UINT64_C(500000000)
/* For the peer's answer, then on another rail. */
#define SPARE_ANSWER_NS UINT64_C(2000000000)
#define SPARE_NAP_NS	UINT64_C(50000000)

/* Two reads of the key table and one that shows that it lives. */
#define SPARE_READS 3u

static bool can(const struct verbs_link *link)
{
	return (link->terms.features & VERBS_CARD_SPARES) &&
	       link->lanes < DQPLB_LANES_MAX;
}

uint32_t verbs_spare_lane(const struct verbs_link *link)
{
	return link->lanes;
}

void verbs_spare_init(struct verbs_link *link)
{
	struct verbs_spare *sp = &link->spare;

	memcpy(sp->peer, link->peer.rail, sizeof(sp->peer));
	sp->peers = link->peer.rails;
}

/* ---- this end -----------------------------------------------------------------------
 */

/* Nothing else can be posted on, or nothing else can be read by. */
static bool wanted(const struct verbs_link *link)
{
	if (link->resuming)
		return true;
	for (uint32_t i = 0; i < link->lanes; i++)
		if (dqplb_tx_lane_up(link->tx, i))
			return false;
	return true;
}

/* The next rail of ours that is up and meets one of the peer's. */
static uint32_t rail_next(struct verbs_link *link)
{
	const struct verbs_dev *dev = link->ep->dom->dev;
	struct verbs_spare *sp = &link->spare;

	for (uint32_t i = 0; i < dev->rails; i++) {
		uint32_t r = (sp->rail + i) % dev->rails, theirs;

		theirs = verbs_card_rail_for(&link->peer, &link->ep->card, r);
		if (theirs == UINT32_MAX || (link->peer_down >> theirs & 1) ||
		    !atomic_load_explicit(&dev->rail[r].up, memory_order_relaxed))
			continue;
		sp->rail = r + 1;
		return r;
	}
	return UINT32_MAX;
}

/* Its queue pair, and the word to the door. Mutex. */
static int ask(struct verbs_link *link, uint32_t rail)
{
	struct verbs_ep *ep = link->ep;
	uint32_t i = verbs_spare_lane(link);
	struct verbs_lane *l = &link->lane[i];
	const struct verbs_qp_attr attr = {.rail = rail,
					   .sends = ep->lane_sends + VERBS_FLUSH_SENDS +
						    SPARE_READS,
					   .receives = 1, /* never posted */
					   .sge = VERBS_SGE,
					   .lane = (uint16_t)i,
					   .incarnation = l->incarnation + 1,
					   .ooo = link->terms.features & VERBS_CARD_OOO};
	struct verbs_msg m = {.op = VERBS_MSG_SPARE,
			      .rail = (uint8_t)rail,
			      .lane = (uint16_t)i,
			      .incarnation = attr.incarnation,
			      .lid = ep->card.rail[rail].lid};
	int ret = link->call ? verbs_lane_make(link, i, &attr) : -FI_EAGAIN;

	if (ret)
		return ret;
	l->qp->scratch = verbs_buf_get(&ep->receives);
	m.qpn = l->qp->ib->qp_num;
	m.psn = l->qp->psn;
	memcpy(m.gid, ep->card.rail[rail].gid, sizeof(m.gid));
	ret = l->qp->scratch ? verbs_stop_say(link->call, &m) : -FI_ENOMEM;
	if (ret)
		verbs_lane_cut(link, i);
	return ret;
}

static uint64_t ask_run(struct verbs_link *link, uint64_t now)
{
	struct verbs_lane *l = &link->lane[verbs_spare_lane(link)];
	uint64_t from = link->spare.since + SPARE_PAUSE_NS;
	uint32_t rail;
	int ret;

	if (from < l->due)
		from = l->due;
	if (now < from)
		return from;
	rail = rail_next(link);
	if (rail == UINT32_MAX) {
		l->due = now + SPARE_NAP_NS;
		return l->due;
	}
	pthread_mutex_lock(&link->ep->mutex);
	link->spare.answered = false;
	ret = ask(link, rail);
	pthread_mutex_unlock(&link->ep->mutex);
	l->due = now + (ret ? SPARE_NAP_NS : SPARE_ANSWER_NS);
	return l->due;
}

/* It isn't there any more, or never was: nothing was posted on it. */
static void give_up(struct verbs_link *link, uint64_t due)
{
	uint32_t i = verbs_spare_lane(link);

	pthread_mutex_lock(&link->ep->mutex);
	verbs_lane_cut(link, i);
	pthread_mutex_unlock(&link->ep->mutex);
	link->lane[i].due = due;
}

/* While the channel is not there nothing else says whether anything gets through. */
static uint64_t probe_run(struct verbs_link *link, uint64_t now)
{
	struct verbs_spare *sp = &link->spare;
	const struct verbs_mr *mr = link->ep->dom->bin;
	struct verbs_qp *qp = verbs_spare_qp(link, 1);
	struct ibv_sge sge = {.addr = mr->start, .length = sizeof(uint64_t)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};

	if (!link->resuming)
		return UINT64_MAX;
	if (now < sp->probe)
		return sp->probe;
	sp->probe = now + SPARE_PAUSE_NS;
	if (!qp || sp->probing)
		return sp->probe;
	sge.lkey = mr->lkey[qp->rail];
	wr.wr.rdma.remote_addr = link->peer.table_addr;
	wr.wr.rdma.rkey = link->peer.rail[qp->peer_rail].table_key;
	sp->probing =
		verbs_lane_post_own(link, verbs_spare_lane(link), &wr, VERBS_SPARE_PROBE);
	return sp->probe;
}

uint64_t verbs_spare_run(struct verbs_link *link, uint64_t now)
{
	uint32_t i = verbs_spare_lane(link);
	struct verbs_spare *sp = &link->spare;
	struct verbs_lane *l;

	if (!can(link))
		return UINT64_MAX;
	l = &link->lane[i];
	if (l->state == VERBS_LANE_DRAINING)
		return verbs_lane_drain(link, i, now);
	if (!wanted(link)) {
		sp->since = 0;
		if (l->state == VERBS_LANE_UP)
			verbs_lane_down(link, i, VERBS_LANE_DONE);
		else if (l->state == VERBS_LANE_OPENING)
			give_up(link, now);
		return UINT64_MAX;
	}
	if (sp->since == 0)
		sp->since = now;
	switch (l->state) {
	case VERBS_LANE_CLOSED:
		/* Else the peer's end isn't known to be gone: then this is a chore. */
		return dqplb_tx_lane_closed(link->tx, i) ? ask_run(link, now)
							 : UINT64_MAX;
	case VERBS_LANE_OPENING:
		if (now < l->due)
			return l->due;
		give_up(link, now);
		return ask_run(link, now);
	default:
		return probe_run(link, now);
	}
}

bool verbs_spare_news(struct verbs_link *link)
{
	uint32_t i = verbs_spare_lane(link);
	struct verbs_spare *sp = &link->spare;
	struct verbs_lane *l = &link->lane[i];
	struct verbs_msg m;
	bool any;

	pthread_mutex_lock(&link->ep->mutex);
	any = sp->answered;
	m = sp->answer;
	sp->answered = false;
	pthread_mutex_unlock(&link->ep->mutex);
	if (!any || link->state != VERBS_LINK_UP || !can(link) ||
	    l->state != VERBS_LANE_OPENING || m.incarnation != l->incarnation)
		return false;
	if (m.qpn == 0 || m.rail >= link->peer.rails ||
	    verbs_lane_connect(link, i, m.rail, m.qpn, m.psn)) {
		give_up(link, verbs_now() + SPARE_NAP_NS);
	} else {
		verbs_lane_up(link, i);
		sp->opened++;
		sp->probe = 0;
		sp->probing = false;
		verbs_rkeys_run(link);
	}
	verbs_link_chore(link);
	return true;
}

struct verbs_qp *verbs_spare_qp(const struct verbs_link *link, uint32_t room)
{
	const struct verbs_lane *l = &link->lane[verbs_spare_lane(link)];

	return can(link) && l->state == VERBS_LANE_UP && l->qp->state == VERBS_QP_READY &&
			       verbs_qp_sq_room(l->qp) >= room
		       ? l->qp
		       : NULL;
}

bool verbs_spare_read(struct verbs_link *link, unsigned at, uint64_t addr, uint32_t rkey,
		      size_t len, bool signal)
{
	struct verbs_qp *qp = verbs_spare_qp(link, 1);
	struct ibv_sge sge = {.length = (uint32_t)len};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .send_flags = signal ? IBV_SEND_SIGNALED : 0,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = addr, .rkey = rkey}};

	if (!qp)
		return false;
	sge.addr = (uintptr_t)qp->scratch->bytes + at * VERBS_CHAN_READ_MAX;
	sge.lkey = qp->scratch->lkey[qp->rail];
	return verbs_lane_post_own(link, verbs_spare_lane(link), &wr,
				   signal ? VERBS_SPARE_KEYS : VERBS_FLUSH_IDLE);
}

const void *verbs_spare_read_at(const struct verbs_link *link, unsigned at)
{
	return link->lane[verbs_spare_lane(link)].qp->scratch->bytes +
	       at * VERBS_CHAN_READ_MAX;
}

void verbs_spare_done(struct verbs_link *link, uint64_t cookie)
{
	verbs_resume_passed(link);
	if (cookie == VERBS_SPARE_PROBE)
		link->spare.probing = false;
	else
		verbs_rkeys_read(link, true);
}

void verbs_spare_gone(struct verbs_link *link)
{
	link->spare.probing = false;
	verbs_rkeys_restart(link, true);
}

void verbs_spare_answered(struct verbs_link *link, const struct verbs_msg *m)
{
	link->spare.answer = *m;
	link->spare.answered = true;
	verbs_ep_news(link->ep, link);
}

/* ---- the other end ------------------------------------------------------------------
 */

/* Nothing is written by it from the return on. Nothing was posted on it, so nobody who
 * polls knows it. */
static void guest_end(struct verbs_link *link)
{
	struct verbs_qp *qp = link->spare.guest;

	link->spare.guest = NULL;
	if (!qp)
		return;
	verbs_qp_error(link->ep, qp);
	/* The door's thread waits for no driver. */
	qp->lost = true;
	verbs_qp_destroy(link->ep, qp);
}

void verbs_spare_cut(struct verbs_link *link)
{
	link->spare.closed = true;
	guest_end(link);
}

void verbs_spare_stop(struct verbs_link *link, uint32_t incarnation)
{
	if (link->spare.guest && link->spare.guest->incarnation == incarnation)
		guest_end(link);
}

static int guest_make(struct verbs_link *link, const struct verbs_msg *m, uint32_t *rail)
{
	struct verbs_spare *sp = &link->spare;
	struct verbs_ep *ep = link->ep;
	struct verbs_qp_attr attr = {.sends = 1,
				     .receives = 1,
				     .sge = 1,
				     .lane = m->lane,
				     .incarnation = m->incarnation,
				     .ooo = link->terms.features & VERBS_CARD_OOO};
	struct verbs_card peer = {.rails = sp->peers};
	int ret;

	memcpy(peer.rail, sp->peer, sizeof(peer.rail));
	if (!verbs_card_rail_move(&peer.rail[m->rail], m->lid, m->gid))
		return -FI_EINVAL;
	*rail = verbs_card_rail_for(&ep->card, &peer, m->rail);
	if (*rail == UINT32_MAX)
		return -FI_EHOSTUNREACH;
	attr.rail = *rail;
	ret = verbs_qp_open(ep, link, &attr, &sp->guest);
	if (ret) {
		sp->guest = NULL;
		return ret;
	}
	ret = verbs_qp_connect(ep, sp->guest, &peer, m->rail, m->qpn, m->psn,
			       link->traffic_class);
	if (ret)
		guest_end(link);
	return ret;
}

void verbs_spare_asked(struct verbs_link *link, struct verbs_call *call,
		       const struct verbs_msg *m)
{
	struct verbs_msg answer = {
		.op = VERBS_MSG_SPARED, .lane = m->lane, .incarnation = m->incarnation};
	uint32_t rail;

	if (link->spare.closed || !can(link) || m->lane != verbs_spare_lane(link) ||
	    m->rail >= link->spare.peers)
		return;
	/* One that the peer gave up: it waits for that word no longer. */
	guest_end(link);
	if (guest_make(link, m, &rail) == 0) {
		answer.rail = (uint8_t)rail;
		answer.qpn = link->spare.guest->ib->qp_num;
		answer.psn = link->spare.guest->psn;
	}
	(void)verbs_stop_say(call, &answer);
}
