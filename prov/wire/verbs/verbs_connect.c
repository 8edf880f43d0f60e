/* SPDX-License-Identifier: BSD-2-Clause */
/* Dialling, answering, hearing the answer. Rules C1, C7, C8. */
#include "config.h"

#include "prov/wire/verbs/verbs_connect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rdma/fi_errno.h>

#include "prov/dqplb/profile.h"
#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_resume.h"
#include "prov/wire/verbs/verbs_stop.h"

/* Receives of a lane, and events that may wait here, at most. */
#define LANE_RECEIVES_MAX 256u
#define RECORDS		  1024u
/* Links that were given up half-made and wait for progress: no more are made meanwhile.
 */
#define LEFT_MAX 256u

void verbs_card_fill(struct verbs_ep *ep)
{
	const struct verbs_dev *dev = ep->dom->dev;
	struct verbs_card *card = &ep->card;
	uint32_t rkey[DQPLB_RAILS_MAX], most = LANE_RECEIVES_MAX;

	memset(card, 0, sizeof(*card));
	verbs_dev_card(dev, card);
	card->features |= VERBS_CARD_STOPS | VERBS_CARD_SPARES;
	if (prov_params()->numbered)
		card->features |= VERBS_CARD_NUMBERED;
	if (dev->native)
		card->features |= VERBS_CARD_ATOMICS;
	card->door = ep->base.addr;
	card->incarnation = ep->incarnation;
	card->packet = VERBS_PACKET;
	card->credits = VERBS_CREDITS; /* of each link its own */
	card->records = RECORDS;
	verbs_keys_root(ep->dom->keys, &card->table_addr, &card->table_len, rkey);
	for (uint32_t r = 0; r < dev->rails; r++) {
		card->rail[r].table_key = rkey[r];
		if (dev->rail[r].limits.qp_wr < most + VERBS_FLUSH_SENDS)
			most = dev->rail[r].limits.qp_wr - VERBS_FLUSH_SENDS;
	}
	ep->lane_sends = 0;
	for (unsigned d = 0; d < FABRIC_DISTANCES; d++) {
		const struct dqplb_profile *p = &dev->profiles.row[d];
		struct dqplb_tx_config config;

		dqplb_profile_tx(p, dev->rails, &config);
		card->row[d].lanes = (uint16_t)config.lanes;
		card->row[d].window = config.window;
		card->row[d].segments =
			config.lane_segments < most ? config.lane_segments : most;
		if (card->row[d].segments > ep->lane_sends)
			ep->lane_sends = card->row[d].segments;
	}
	card->receives = ep->lane_sends;
}

static struct verbs_link *link_alloc(struct verbs_ep *ep)
{
	struct verbs_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->base.ops = &verbs_wire_ops;
	link->base.ep = (struct wire_ep *)(void *)ep;
	link->base.caps = verbs_wire_ops.caps;
	link->base.slot = &link->slot;
	link->ep = ep;
	list_init(&link->dirty);
	list_init(&link->timed);
	list_init(&link->where);
	list_init(&link->member);
	list_init(&link->news);
	list_init(&link->ops);
	list_init(&link->ops_failed);
	list_init(&link->notices);
	verbs_flush_init(link);
	verbs_rkeys_init(link);
	verbs_chan_init(link);
	return link;
}

/* Nobody has heard of it yet. Whoever polls may know it by one of its queue pairs, so it
 * is freed by progress. Mutex. */
static void link_leave(struct verbs_link *link)
{
	struct verbs_ep *ep = link->ep;
	bool known = link->chan.qp && !verbs_qp_unheard(link->chan.qp);

	for (uint32_t i = 0; i < DQPLB_LANES_MAX; i++) {
		known = known || link->lane[i].qp;
		verbs_lane_leave(link, i);
	}
	verbs_spare_cut(link);
	if (link->chan.qp)
		verbs_qp_leave(ep, link->chan.qp);
	link->chan.qp = NULL;
	list_remove(&link->member);
	verbs_link_set_state(link, VERBS_LINK_DOWN);
	if (!known) {
		verbs_link_free(link);
		return;
	}
	list_push_back(&ep->left, &link->where);
	ep->left_count++;
	verbs_ep_ring(ep);
}

/* A remote event: the upper layer hears of it. */
static void on_arrived(void *arg, const struct dqplb_event *ev)
{
	struct verbs_link *link = arg;
	const struct wire_notice n = {.data = ev->data, .op = ev->op};

	/* A put that has its number for the sake of failover only. */
	if (n.data == 0 && n.op == 0)
		return;
	if (link->state == VERBS_LINK_UP)
		link->ep->events->arrived(link->ep->arg, (struct wire_link *)(void *)link,
					  &n, ev->len);
}

/* What the two ends agreed on, and what this one sends by. */
static void link_values_log(const struct verbs_link *link,
			    const struct dqplb_tx_config *tx)
{
	char text[WIRE_ADDR_TEXT_MAX];

	FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
		"link with %s, %s: %u lanes over %u rails, window %u, segments of up to "
		"%u bytes, %u on a lane, up to %llu bytes on the way, traffic class %u, "
		"placed %s\n",
		wire_addr_text(&link->peer.door, text),
		fabric_distance_name(link->terms.distance), link->lanes,
		link->ep->dom->dev->rails, tx->window, tx->max_segment, tx->lane_segments,
		(unsigned long long)tx->link_bytes, link->traffic_class,
		link->terms.features & VERBS_CARD_OOO ? "out of order" : "in order");
}

static int machines_open(struct verbs_link *link)
{
	const struct verbs_dev *dev = link->ep->dom->dev;
	const struct verbs_terms *t = &link->terms;
	const struct dqplb_profile *p = &dev->profiles.row[t->distance];
	unsigned mine = verbs_link_side(link), theirs = 1 - mine;
	struct dqplb_rx_config rx = {.window = t->window[theirs],
				     .records = t->records[theirs],
				     .event = on_arrived,
				     .arg = link};
	struct dqplb_tx_config tx;
	uint64_t quarter = p->link_bytes / 4;
	int ret;

	dqplb_profile_tx(p, dev->rails, &tx);
	link->lanes = t->lanes < DQPLB_LANES_MAX ? t->lanes : DQPLB_LANES_MAX;
	link->traffic_class = (uint8_t)p->traffic_class;
	/* And the one that is made at the door. */
	tx.lanes = link->lanes + (link->lanes < DQPLB_LANES_MAX);
	tx.window = t->window[mine];
	tx.records = t->records[mine];
	if (tx.lane_segments > t->segments[mine])
		tx.lane_segments = t->segments[mine];
	if (tx.lane_segments > link->ep->lane_sends)
		tx.lane_segments = link->ep->lane_sends;
	if (tx.turn > tx.window / 4)
		tx.turn = tx.window / 4;
	for (uint32_t r = 0; r < dev->rails; r++)
		if (dev->rail[r].limits.max_message &&
		    tx.max_segment > dev->rail[r].limits.max_message)
			tx.max_segment = (uint32_t)dev->rail[r].limits.max_message;
	link_values_log(link, &tx);
	link->flush.least = tx.max_segment;
	rx.ack_bytes = quarter < INT32_MAX ? (uint32_t)quarter : INT32_MAX;
	ret = dqplb_tx_open(&tx, &link->tx);
	if (ret == 0)
		ret = dqplb_rx_open(&rx, &link->rx);
	for (uint32_t i = 0; i < link->lanes && ret == 0; i++)
		ret = dqplb_rx_queue(link->rx, i, &link->lane[i].rq,
				     link->ep->card.receives);
	return ret == 0 ? 0 : -FI_ENOMEM;
}

/* Both cards are known. */
static int link_agreed(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	uint32_t credits = link->peer.credits;

	if (credits < VERBS_CTL_WINDOW_MIN)
		return -FI_EHOSTUNREACH;
	verbs_ctl_init(&c->ctl, credits < VERBS_CREDITS ? credits : VERBS_CREDITS,
		       c->grant);
	c->grow_at = c->grant;
	verbs_spare_init(link);
	return machines_open(link);
}

static void card_add_qp(struct verbs_card *card, const struct verbs_qp *qp)
{
	card->qp[card->qps++] = (struct verbs_card_qp){.lane = qp->lane,
						       .rail = qp->rail,
						       .incarnation = qp->incarnation,
						       .qpn = qp->ib->qp_num,
						       .psn = qp->psn};
}

void verbs_card_make(const struct verbs_link *link, struct verbs_card *card, bool lanes)
{
	*card = link->ep->card;
	card->session = link->session;
	card->round = link->round;
	card->credits = link->chan.grant;
	card->heard = atomic_load(&link->chan.ctl.heard);
	card->qps = 0;
	card_add_qp(card, link->chan.qp);
	for (uint32_t i = 0; lanes && i < DQPLB_RAILS_MAX; i++)
		if (link->lane[i].qp)
			card_add_qp(card, link->lane[i].qp);
}

/* ---- dialling -----------------------------------------------------------------------
 */

static uint32_t rail_up(const struct verbs_dev *dev)
{
	for (uint32_t r = 0; r < dev->rails; r++)
		if (atomic_load_explicit(&dev->rail[r].up, memory_order_relaxed))
			return r;
	return 0;
}

/* The queue pairs that the card names. Mutex. */
static int dial_prepare(struct verbs_link *link)
{
	const struct verbs_dev *dev = link->ep->dom->dev;
	int ret = verbs_chan_open(link, rail_up(dev), &link->chan.qp);

	if (ret)
		return ret;
	for (uint32_t r = 0; r < dev->rails; r++)
		if (atomic_load_explicit(&dev->rail[r].up, memory_order_relaxed))
			ret = verbs_lane_prepare(link, r, r, 1);
	return ret;
}

int verbs_dial(struct wire_ep *wep, const struct wire_addr *to, void *peer_ctx,
	       struct wire_link **out)
{
	struct verbs_ep *ep = verbs_ep_of(wep);
	struct verbs_link *link;
	struct verbs_card card;
	int ret;

	link = link_alloc(ep);
	if (!link)
		return -FI_ENOMEM;
	link->dialler = true;
	link->base.peer = *to;
	link->base.peer_ctx = peer_ctx;
	if (getrandom(&link->session, sizeof(link->session), 0) < 0)
		link->session = verbs_now();
	link->session |= 1;
	pthread_mutex_lock(&ep->mutex);
	ret = dial_prepare(link);
	if (ret == 0) {
		verbs_card_make(link, &card, true);
		link->state = VERBS_LINK_DIALLING;
		list_push_back(&ep->links, &link->member);
		ret = verbs_door_dial(ep->door, to, &card, link, &link->call);
		verbs_helper_kick(ep->helper);
	}
	if (ret)
		link_leave(link);
	else
		*out = (struct wire_link *)(void *)link;
	pthread_mutex_unlock(&ep->mutex);
	return ret;
}

/* The lanes of the first cards: those that the answer has too. Mutex. */
static void answer_lanes(struct verbs_link *link)
{
	for (uint32_t i = 0; i < DQPLB_LANES_MAX; i++) {
		const struct verbs_card_qp *q = verbs_card_qp(&link->peer, (uint16_t)i);

		if (!link->lane[i].qp)
			continue;
		if (i < link->lanes && q && q->incarnation == link->lane[i].incarnation &&
		    verbs_lane_connect(link, i, q->rail, q->qpn, q->psn) == 0 &&
		    verbs_lane_listen(link, i) == 0)
			verbs_lane_up(link, i);
		else
			verbs_lane_refuse(link, i);
	}
	link->lanes_wanted = link->ep->dom->dev->rails;
	if (link->lanes_wanted > link->lanes)
		link->lanes_wanted = link->lanes;
}

static int answer_take(struct verbs_link *link, const struct verbs_door_event *ev)
{
	const struct verbs_card_qp *q;
	int ret;

	link->peer = *ev->card;
	link->terms = *ev->terms;
	q = verbs_card_qp(&link->peer, VERBS_LANE_CONTROL);
	if (!q || link->peer.session != link->session || link->peer.round != link->round)
		return -FI_EHOSTUNREACH;
	ret = link_agreed(link);
	if (ret == 0)
		ret = verbs_qp_connect(link->ep, link->chan.qp, &link->peer, q->rail,
				       q->qpn, q->psn, link->traffic_class);
	if (ret)
		return ret;
	answer_lanes(link);
	verbs_call_ready(link->call);
	return 0;
}

/* ---- answering ----------------------------------------------------------------------
 */

static void hello_lanes(struct verbs_link *link)
{
	for (uint32_t k = 0; k < link->peer.qps; k++) {
		const struct verbs_card_qp *q = &link->peer.qp[k];
		uint32_t rail;

		if (q->lane >= link->lanes || link->lane[q->lane].qp)
			continue;
		rail = verbs_card_rail_for(&link->ep->card, &link->peer, q->rail);
		if (rail == UINT32_MAX ||
		    verbs_lane_prepare(link, q->lane, rail, q->incarnation))
			continue;
		if (verbs_lane_connect(link, q->lane, q->rail, q->qpn, q->psn) ||
		    verbs_lane_listen(link, q->lane))
			verbs_lane_leave(link, q->lane);
		if (q->lane + 1u > link->lanes_wanted)
			link->lanes_wanted = q->lane + 1u;
	}
	link->lanes_said = link->lanes_wanted;
}

static int hello_take(struct verbs_link *link, struct verbs_call *call,
		      const struct verbs_card *hello)
{
	const struct verbs_card_qp *q;
	struct verbs_terms terms;
	struct verbs_card card;
	uint32_t rail;
	int ret;

	link->peer = *hello;
	link->session = hello->session;
	link->round = hello->round;
	q = verbs_card_qp(&link->peer, VERBS_LANE_CONTROL);
	rail = q ? verbs_card_rail_for(&link->ep->card, &link->peer, q->rail)
		 : UINT32_MAX;
	if (rail == UINT32_MAX)
		return -FI_EHOSTUNREACH;
	ret = verbs_chan_open(link, rail, &link->chan.qp);
	if (ret)
		return ret;
	verbs_card_make(link, &card, true);
	if (verbs_card_agree(hello, &card, &link->terms))
		return -FI_EHOSTUNREACH;
	ret = link_agreed(link);
	if (ret == 0)
		ret = verbs_qp_connect(link->ep, link->chan.qp, &link->peer, q->rail,
				       q->qpn, q->psn, link->traffic_class);
	if (ret)
		return ret;
	hello_lanes(link);
	verbs_card_make(link, &card, true);
	link->state = VERBS_LINK_ANSWERED;
	link->call = call;
	list_push_back(&link->ep->links, &link->member);
	return verbs_call_answer(call, &card, link, &terms);
}

void verbs_link_hello(struct verbs_ep *ep, struct verbs_call *call,
		      const struct verbs_card *card)
{
	struct verbs_link *link = NULL;
	int ret = -FI_ENOMEM;

	if (card->round > 0) {
		/* Or of a link that is over here. */
		if (!verbs_resume_hello(ep, call, card))
			verbs_call_drop(call, -FI_EHOSTUNREACH);
		return;
	}
	if (ep->left_count < LEFT_MAX)
		link = link_alloc(ep);
	if (link)
		ret = hello_take(link, call, card);
	if (ret == 0)
		return;
	if (link)
		link_leave(link);
	verbs_call_drop(call, ret == -FI_EHOSTUNREACH ? ret : -FI_ECONNREFUSED);
}

void verbs_link_event(struct verbs_link *link, const struct verbs_door_event *ev)
{
	int ret;

	if (ev->kind == VERBS_CALL_WORD) {
		verbs_stop_word(link, ev);
		return;
	}
	if (ev->call == link->next_call) {
		verbs_resume_event(link, ev);
		return;
	}
	if (ev->call != link->call)
		return;
	switch (ev->kind) {
	case VERBS_CALL_ANSWER:
		ret = answer_take(link, ev);
		if (ret == 0) {
			link->news_up = true;
			break;
		}
		verbs_call_drop(link->call,
				ret == -FI_EHOSTUNREACH ? ret : -FI_ECONNREFUSED);
		link->call = NULL;
		link->news_down = true;
		link->news_err = ret;
		break;
	case VERBS_CALL_READY:
		link->news_up = true;
		break;
	case VERBS_CALL_DOWN:
		link->call = NULL;
		/* The channel before the one that is being made: no news. */
		if (link->next_call && ev->err == -FI_ECONNREFUSED)
			return;
		link->news_down = true;
		link->news_err = ev->err;
		break;
	default:
		return;
	}
	verbs_ep_news(link->ep, link);
}
