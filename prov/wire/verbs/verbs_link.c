/* SPDX-License-Identifier: BSD-2-Clause */
/* A link's life: what it does after polling, and how it ends. */
#include "config.h"

#include "prov/wire/verbs/verbs_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_connect.h"
#include "prov/wire/verbs/verbs_count.h"
#include "prov/wire/verbs/verbs_resume.h"
#include "prov/wire/verbs/verbs_rma.h"
#include "prov/wire/verbs/verbs_stop.h"

/* How long a goodbye, and what was sent before it, may take: longer than a queue pair
 * tries. */
#define LINK_BYE_NS UINT64_C(5000000000)

static const char *const state_name[VERBS_LINK_STATES] = {
	[VERBS_LINK_NEW] = "new",	    [VERBS_LINK_DIALLING] = "dialling",
	[VERBS_LINK_ANSWERED] = "answered", [VERBS_LINK_UP] = "up",
	[VERBS_LINK_CLOSING] = "closing",   [VERBS_LINK_DOWN] = "down",
};

void verbs_link_set_state(struct verbs_link *link, enum verbs_link_state to)
{
	static const uint8_t from[VERBS_LINK_STATES] = {
		[VERBS_LINK_DIALLING] = 1 << VERBS_LINK_NEW,
		[VERBS_LINK_ANSWERED] = 1 << VERBS_LINK_NEW,
		[VERBS_LINK_UP] = 1 << VERBS_LINK_DIALLING | 1 << VERBS_LINK_ANSWERED,
		[VERBS_LINK_CLOSING] = 1 << VERBS_LINK_UP,
		[VERBS_LINK_DOWN] = 1 << VERBS_LINK_NEW | 1 << VERBS_LINK_DIALLING |
				    1 << VERBS_LINK_ANSWERED | 1 << VERBS_LINK_UP |
				    1 << VERBS_LINK_CLOSING,
	};

	if (!(from[to] >> link->state & 1)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "link: %s after %s\n",
			state_name[to], state_name[link->state]);
		abort();
	}
	link->state = to;
	link->slot.room = -1;
	verbs_quick_stop(link);
}

void verbs_link_dirty(struct verbs_link *link)
{
	if (list_empty(&link->dirty))
		list_push_back(&link->ep->dirty, &link->dirty);
}

void verbs_link_chore(struct verbs_link *link)
{
	link->chores = true;
	link->stirred = STIRRED_TX | STIRRED_RX;
	verbs_link_dirty(link);
}

void verbs_link_wake(struct verbs_link *link, uint64_t due)
{
	if (list_empty(&link->timed)) {
		link->due = due;
		list_push_back(&link->ep->timed, &link->timed);
	} else if (due < link->due) {
		link->due = due;
	}
}

void verbs_link_fault(struct verbs_link *link, int err)
{
	if (link->faulty && !link->patient)
		return;
	link->faulty = true;
	link->patient = false;
	link->fault = err;
	verbs_quick_stop(link);
	verbs_link_dirty(link);
}

void verbs_link_end(struct verbs_link *link, int err)
{
	if (link->faulty)
		return;
	link->faulty = true;
	link->patient = true;
	link->fault = err;
	verbs_quick_stop(link);
	verbs_link_dirty(link);
}

/* ---- the end ------------------------------------------------------------------------
 */

/* Nothing of it touches memory any more; its call is over. Mutex. */
static void link_cut(struct verbs_link *link, bool chan, int err)
{
	bool lost = link->resuming;

	for (uint32_t i = 0; i < DQPLB_LANES_MAX; i++) {
		if (link->lane[i].qp && lost)
			link->lane[i].qp->lost = true;
		verbs_lane_cut(link, i);
	}
	verbs_spare_cut(link);
	if (!chan)
		return;
	if (link->chan.qp)
		verbs_qp_close(link->ep, link->chan.qp);
	link->chan.qp = NULL;
	if (link->call) {
		verbs_call_drop(link->call, err);
		verbs_helper_kick(link->ep->helper);
	}
	link->call = NULL;
	verbs_resume_drop(link, err);
	list_remove(&link->news);
	list_remove(&link->member);
}

static void link_bury(struct verbs_link *link)
{
	verbs_link_set_state(link, VERBS_LINK_DOWN);
	verbs_count_bury(link);
	list_remove(&link->dirty);
	list_remove(&link->timed);
	list_remove(&link->where);
	list_push_back(&link->ep->graves, &link->where);
}

void verbs_link_count(const struct verbs_link *link, struct verbs_link_counts *c)
{
	const struct dqplb_tx_stats *tx;

	memset(c, 0, sizeof(*c));
	if (!link->tx)
		return;
	tx = dqplb_tx_stats(link->tx);
	c->packets = link->chan.ctl.nxt;
	c->replays = link->chan.ctl.replays;
	c->duplicates = link->chan.ctl.duplicates;
	c->segments = tx->segments;
	c->again = tx->again + link->flush.anew;
	c->opened = link->lane_stats.opened;
	c->retired = link->lane_stats.retired;
	c->rebuilt = link->lane_stats.rebuilt;
	c->silent = link->lane_stats.silent;
	c->resumes = link->resumes;
	c->stops = link->lane_stats.stopped;
	c->spares = link->spare.opened;
	c->waits = link->chan.waits;
	c->flushes = link->flush.rounds + link->flush.with;
	memcpy(c->bytes, link->rail_bytes, sizeof(c->bytes));
	for (uint32_t i = 0; i < link->lanes; i++)
		if (link->lane[i].qp)
			c->bytes[link->lane[i].qp->rail] += link->lane[i].qp->bytes;
}

static void link_log(const struct verbs_link *link)
{
	char text[WIRE_ADDR_TEXT_MAX];
	struct verbs_link_counts c;

	if (!link->tx)
		return;
	verbs_link_count(link, &c);
	FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
		"link to %s: packets=%llu replays=%llu duplicates=%llu segments=%llu "
		"again=%llu opened=%llu retired=%llu rebuilt=%llu resumes=%llu "
		"waits=%llu flushes=%llu stops=%llu spares=%llu silent=%llu\n",
		wire_addr_text(&link->base.peer, text), (unsigned long long)c.packets,
		(unsigned long long)c.replays, (unsigned long long)c.duplicates,
		(unsigned long long)c.segments, (unsigned long long)c.again,
		(unsigned long long)c.opened, (unsigned long long)c.retired,
		(unsigned long long)c.rebuilt, (unsigned long long)c.resumes,
		(unsigned long long)c.waits, (unsigned long long)c.flushes,
		(unsigned long long)c.stops, (unsigned long long)c.spares,
		(unsigned long long)c.silent);
	for (uint32_t r = 0; r < link->ep->dom->dev->rails; r++)
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL, "link to %s: %llu bytes on %s\n",
			text, (unsigned long long)c.bytes[r],
			link->ep->dom->dev->rail[r].name);
}

void verbs_link_finish(struct verbs_link *link, int err)
{
	struct verbs_ep *ep = link->ep;
	bool told = link->state == VERBS_LINK_UP || link->state == VERBS_LINK_DIALLING;
	char text[WIRE_ADDR_TEXT_MAX];

	pthread_mutex_lock(&ep->mutex);
	link_cut(link, true, err == -FI_ESHUTDOWN ? err : -FI_ECONNRESET);
	pthread_mutex_unlock(&ep->mutex);
	if (link->state == VERBS_LINK_UP) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL, "link to %s ends: %s\n",
			wire_addr_text(&link->base.peer, text), fi_strerror(-err));
		link_log(link);
	}
	link_bury(link);
	verbs_ops_fail(link, err, told);
	if (told)
		ep->events->link_down(ep->arg, (struct wire_link *)(void *)link, err);
}

void verbs_link_free(struct verbs_link *link)
{
	list_remove(&link->where);
	verbs_rkeys_fini(link);
	verbs_chan_fini(link);
	if (link->tx)
		dqplb_tx_close(link->tx);
	if (link->rx)
		dqplb_rx_close(link->rx);
	free(link);
}

static void bye_say(struct verbs_link *link)
{
	if (link->chan.bye_sent || !verbs_chan_reserve(link, VERBS_CTL_OWN))
		return;
	verbs_chan_commit(link, VERBS_CTL_BYE, 0);
}

void verbs_link_close(struct verbs_link *link)
{
	struct verbs_ep *ep = link->ep;
	bool up = link->state == VERBS_LINK_UP;

	pthread_mutex_lock(&ep->mutex);
	link_cut(link, !up, 0);
	pthread_mutex_unlock(&ep->mutex);
	if (!up) {
		link_bury(link);
		verbs_ops_fail(link, -FI_ECONNRESET, false);
		return;
	}
	link_log(link);
	verbs_link_set_state(link, VERBS_LINK_CLOSING);
	list_remove(&link->dirty);
	list_remove(&link->timed);
	list_push_back(&ep->closing, &link->where);
	link->due = verbs_now() + LINK_BYE_NS;
	verbs_ops_fail(link, -FI_ECONNRESET, false);
	bye_say(link);
}

bool verbs_link_gone(struct verbs_link *link, uint64_t now)
{
	bye_say(link);
	if (!link->chan.bye_done && !link->chan.broken && !link->faulty &&
	    now < link->due) {
		verbs_chan_flush(link);
		return false;
	}
	pthread_mutex_lock(&link->ep->mutex);
	link_cut(link, true, -FI_ESHUTDOWN);
	pthread_mutex_unlock(&link->ep->mutex);
	link_bury(link);
	return true;
}

void verbs_hangup(struct wire_link *wlink)
{
	struct verbs_link *link = verbs_link_of(wlink);

	if (link->state != VERBS_LINK_DOWN && link->state != VERBS_LINK_CLOSING)
		verbs_link_close(link);
}

uint32_t verbs_link_events(struct wire_link *link)
{
	return verbs_link_of(link)->events;
}

/* ---- after polling ------------------------------------------------------------------
 */

/* What the receiver has to say; room for the channel's own is never taken by others. */
static void acks_say(struct verbs_link *link, bool idle)
{
	uint64_t reports = dqplb_rx_stats(link->rx)->reports;

	while (dqplb_rx_due(link->rx, idle)) {
		void *at = verbs_chan_reserve(link, VERBS_CTL_OWN);
		size_t len = at ? dqplb_rx_ack(link->rx, at, VERBS_PACKET) : 0;

		if (len == 0)
			break;
		verbs_chan_commit(link, VERBS_CTL_DQPLB, len);
	}
	/* A lane that was reported may be opened again. */
	if (dqplb_rx_stats(link->rx)->reports != reports)
		link->chores = true;
}

void verbs_link_rail(struct verbs_link *link, uint32_t rail, bool moved)
{
	if (link->state != VERBS_LINK_UP)
		return;
	link->rails_turned |= 1u << rail;
	if (moved)
		link->rails_moved |= 1u << rail;
	verbs_link_chore(link);
}

static bool rail_is_up(const struct verbs_link *link, uint32_t rail)
{
	return atomic_load_explicit(&link->ep->dom->dev->rail[rail].up,
				    memory_order_relaxed);
}

/* What lay on a rail that went or moved ends, what may lie on one that is up is tried
 * again. */
static void rails_take(struct verbs_link *link)
{
	for (uint32_t left = link->rails_turned; left; left &= left - 1) {
		uint32_t r = (uint32_t)__builtin_ctz(left);
		bool up = rail_is_up(link, r);

		if (!up || (link->rails_moved >> r & 1)) {
			verbs_lanes_rail_down(link, r, false);
			if (link->chan.qp && link->chan.qp->rail == r)
				link->chan.broken = true;
		}
		if (up)
			verbs_lanes_rail_up(link, r, false);
	}
	link->rails_owed |= link->rails_turned;
	link->rails_turned = 0;
	link->rails_moved = 0;
}

static void rails_say(struct verbs_link *link)
{
	for (; link->rails_owed; link->rails_owed &= link->rails_owed - 1) {
		uint32_t r = (uint32_t)__builtin_ctz(link->rails_owed);
		struct verbs_msg m = {.op = VERBS_MSG_RAIL,
				      .rail = (uint8_t)r,
				      .lane = rail_is_up(link, r),
				      .lid = link->ep->card.rail[r].lid};
		void *at = verbs_chan_reserve(link, VERBS_CTL_OWN);

		if (!at)
			return;
		memcpy(m.gid, link->ep->card.rail[r].gid, sizeof(m.gid));
		verbs_msg_write(at, &m);
		verbs_chan_commit(link, VERBS_CTL_LANE, sizeof(struct verbs_msg_bytes));
	}
}

static void chores_do(struct verbs_link *link)
{
	uint64_t due;

	link->chores = false;
	verbs_watch_link(link);
	rails_take(link);
	rails_say(link);
	verbs_resume_run(link, verbs_now());
	due = verbs_lanes_run(link, verbs_now());
	if (due != UINT64_MAX)
		verbs_link_wake(link, due);
	link->owing = link->rails_owed || verbs_lanes_owe(link);
}

/* Room comes with what the peer acknowledges, which is no chore by itself. */
static bool chores_due(const struct verbs_link *link)
{
	return link->chores ||
	       (link->owing && verbs_ctl_room(&link->chan.ctl, VERBS_CTL_OWN));
}

/* Posts and says what dqplb has. With room left for a message, and nothing more to come
 * just now, there is nothing more until something moves. */
static void machines_run(struct verbs_link *link, bool idle)
{
	if (link->stirred & STIRRED_TX)
		verbs_lanes_post(link);
	if (link->stirred & STIRRED_RX)
		acks_say(link, idle);
	if (idle && verbs_ctl_room(&link->chan.ctl, VERBS_CTL_OWN))
		link->stirred = 0;
}

int verbs_link_run(struct verbs_link *link, bool idle)
{
	int count = 0;

	if (link->state != VERBS_LINK_UP)
		return 0;
	if (link->stirred & STIRRED_TX)
		count = verbs_ops_reap(link);
	if (link->state == VERBS_LINK_UP)
		count += verbs_flush_run(link);
	if (link->state != VERBS_LINK_UP)
		return count;
	if (link->chan.broken && !link->faulty)
		verbs_resume_start(link);
	if (link->state != VERBS_LINK_UP)
		return count;
	if (link->faulty && (idle || !link->patient)) {
		verbs_link_finish(link,
				  link->fault == -EPROTO ? -FI_ECONNRESET : link->fault);
		return count + 1;
	}
	if (chores_due(link))
		chores_do(link);
	if (link->stirred)
		machines_run(link, idle);
	if (link->chores)
		chores_do(link);
	verbs_chan_flush(link);
	return count;
}

bool verbs_link_heard(struct verbs_link *link)
{
	struct verbs_ep *ep = link->ep;
	bool left;

	if (link->state != VERBS_LINK_DIALLING && link->state != VERBS_LINK_ANSWERED)
		return false;
	/* What the helper thread made of it is ours from here on; or it gave it up. */
	pthread_mutex_lock(&ep->mutex);
	link->news_up = false;
	left = link->state == VERBS_LINK_DOWN;
	pthread_mutex_unlock(&ep->mutex);
	if (left)
		return false;
	link->base.peer = link->peer.door;
	link->base.peer_incarnation = link->peer.incarnation;
	link->base.caps.inlined = verbs_qp_inlined(ep);
	link->base.caps.atomic =
		ep->dom->dev->native && (link->peer.features & VERBS_CARD_ATOMICS);
	if (verbs_link_numbers(link))
		link->base.caps.passive = false;
	link->base.caps.max_packet =
		link->terms.packet < VERBS_PACKET ? link->terms.packet : VERBS_PACKET;
	if (!link->dialler)
		for (uint32_t i = 0; i < link->lanes; i++)
			verbs_lane_up(link, i);
	verbs_link_set_state(link, VERBS_LINK_UP);
	verbs_chan_up(link);
	for (uint32_t i = 0; i < link->lanes; i++)
		if (link->lane[i].qp && link->lane[i].qp->spoilt)
			verbs_lane_down(link, i, VERBS_LANE_PATH);
	verbs_link_chore(link);
	ep->events->link_up(ep->arg, (struct wire_link *)(void *)link);
	return true;
}

int verbs_link_news(struct verbs_link *link)
{
	struct verbs_ep *ep = link->ep;
	bool up, down, recalled;
	int err;

	pthread_mutex_lock(&ep->mutex);
	up = link->news_up;
	down = link->news_down;
	err = link->news_err;
	link->news_up = link->news_down = false;
	recalled = link->recalled;
	link->recalled = false;
	pthread_mutex_unlock(&ep->mutex);
	if (up)
		verbs_link_heard(link);
	if (recalled && link->state == VERBS_LINK_UP && !link->resuming) {
		link->chan.broken = true;
		verbs_link_chore(link);
	}
	up = verbs_resume_news(link) || up;
	up = verbs_stop_news(link) || up;
	up = verbs_port_news(link) || up;
	up = verbs_spare_news(link) || up;
	if (!down || link->state == VERBS_LINK_DOWN)
		return up;
	if (link->state == VERBS_LINK_UP && err == -FI_ECONNREFUSED) {
		/* The peer's end of the control channel died, and it can't call. */
		link->chan.broken = link->chan.broken || link->dialler;
		verbs_link_chore(link);
	} else if (link->state == VERBS_LINK_UP) {
		/* The peer gave it up first. */
		if (err != -FI_ESHUTDOWN)
			link->base.why = link->resuming || link->chan.broken
						 ? VERBS_WHY_RAILS
						 : VERBS_WHY_CUT;
		verbs_link_end(link, err == -FI_ESHUTDOWN ? err : -FI_ECONNRESET);
	} else if (link->state == VERBS_LINK_CLOSING) {
		link->faulty = true;
	} else {
		verbs_link_finish(link, err);
	}
	return 1;
}
