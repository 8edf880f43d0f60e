/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes that are stopped at the door; see verbs_stop.h. Rules C1, C4, D6. */
#include "config.h"

#include "prov/wire/verbs/verbs_stop.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_frame.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_resume.h"
#include "prov/wire/verbs/verbs_spare.h"

/* A peer that makes calls reports sooner, which says more: it isn't asked. Nor is one
 * while the connection with its door is not there. */
#define STOP_PAUSE_NS UINT64_C(500000000)

_Static_assert(sizeof(struct verbs_msg_bytes) <= VERBS_WORD_MAX, "a word");

int verbs_stop_say(struct verbs_call *call, const struct verbs_msg *m)
{
	uint8_t word[sizeof(struct verbs_msg_bytes)];

	verbs_msg_write(word, m);
	return verbs_call_say(call, word, sizeof(word));
}

static int say(struct verbs_call *call, enum verbs_msg_op op, uint32_t lane,
	       uint32_t incarnation)
{
	const struct verbs_msg m = {
		.op = op, .lane = (uint16_t)lane, .incarnation = incarnation};

	return verbs_stop_say(call, &m);
}

void verbs_stop_want(struct verbs_link *link, uint32_t lane)
{
	if (!(link->terms.features & VERBS_CARD_STOPS) ||
	    !dqplb_tx_lane_unstopped(link->tx, lane))
		return;
	/* Nobody reports the one that was made at the door. */
	if (lane == verbs_spare_lane(link))
		link->stops_due = 0;
	else if (link->stops == 0)
		link->stops_due = verbs_now() + STOP_PAUSE_NS;
	link->stops |= UINT64_C(1) << lane;
}

void verbs_stop_again(struct verbs_link *link)
{
	for (uint32_t i = 0; i <= link->lanes && i < DQPLB_LANES_MAX; i++)
		verbs_stop_want(link, i);
}

/* Of what was reported meanwhile nothing is to be asked. */
static void stops_prune(struct verbs_link *link)
{
	for (uint64_t left = link->stops; left; left &= left - 1)
		if (!dqplb_tx_lane_unstopped(link->tx, (uint32_t)__builtin_ctzll(left)))
			link->stops &= ~(left & -left);
}

uint64_t verbs_stop_run(struct verbs_link *link, uint64_t now)
{
	stops_prune(link);
	if (link->stops == 0)
		return UINT64_MAX;
	if (now < link->stops_due)
		return link->stops_due;
	pthread_mutex_lock(&link->ep->mutex);
	for (uint64_t left = link->stops; left && link->call; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);

		if (say(link->call, VERBS_MSG_STOP, lane, link->lane[lane].incarnation) ==
		    0)
			link->stops &= ~(left & -left);
	}
	pthread_mutex_unlock(&link->ep->mutex);
	link->stops_due = now + STOP_PAUSE_NS;
	return link->stops ? link->stops_due : UINT64_MAX;
}

bool verbs_stop_news(struct verbs_link *link)
{
	uint32_t incarnation[DQPLB_LANES_MAX];
	uint64_t lanes;
	bool any = false;

	pthread_mutex_lock(&link->ep->mutex);
	lanes = link->stopped;
	if (lanes)
		memcpy(incarnation, link->stopped_incarnation, sizeof(incarnation));
	link->stopped = 0;
	pthread_mutex_unlock(&link->ep->mutex);
	if (link->state != VERBS_LINK_UP)
		return false;
	for (; lanes; lanes &= lanes - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(lanes);

		/* Else it was reported before, or nobody asked. */
		if (dqplb_tx_lane_stopped(link->tx, lane, incarnation[lane]))
			continue;
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"lane %u.%u was stopped at the peer's door: plain puts of it are "
			"sent again on others\n",
			lane, incarnation[lane]);
		link->lane_stats.stopped++;
		any = true;
	}
	if (any)
		verbs_link_chore(link);
	return any;
}

/* The peer is through with its queue pair of it. One that isn't there any more, or was
 * never made, writes nothing. */
static void stop_asked(struct verbs_link *link, struct verbs_call *call,
		       const struct verbs_msg *m)
{
	struct verbs_qp *qp = link->lane[m->lane].qp;

	if (m->lane == verbs_spare_lane(link)) {
		verbs_spare_stop(link, m->incarnation);
		(void)say(call, VERBS_MSG_STOPPED, m->lane, m->incarnation);
		return;
	}
	/* Where its device doesn't do that there is nothing to be said: the peer goes on
	 * waiting for the report. */
	if (qp && qp->incarnation == m->incarnation && !verbs_qp_stop(link->ep, qp))
		return;
	(void)say(call, VERBS_MSG_STOPPED, m->lane, m->incarnation);
}

static void stopped_heard(struct verbs_link *link, const struct verbs_msg *m)
{
	link->stopped |= UINT64_C(1) << m->lane;
	link->stopped_incarnation[m->lane] = m->incarnation;
	verbs_ep_news(link->ep, link);
}

void verbs_stop_word(struct verbs_link *link, const struct verbs_door_event *ev)
{
	struct verbs_msg m = {.op = VERBS_MSG_OPS};

	if (verbs_msg_read(ev->word, ev->word_len, &m) || m.lane >= DQPLB_LANES_MAX)
		m.op = VERBS_MSG_OPS;
	switch (m.op) {
	case VERBS_MSG_STOP:
		stop_asked(link, ev->call, &m);
		return;
	case VERBS_MSG_STOPPED:
		stopped_heard(link, &m);
		return;
	case VERBS_MSG_SPARE:
		verbs_spare_asked(link, ev->call, &m);
		return;
	case VERBS_MSG_SPARED:
		verbs_spare_answered(link, &m);
		return;
	case VERBS_MSG_CALL:
		verbs_resume_asked(link, m.incarnation);
		return;
	case VERBS_MSG_RAIL:
		verbs_port_word(link, &m);
		return;
	default:
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"a word of a peer at the door that none of ours says: %zu "
			"bytes, not heeded\n",
			ev->word_len);
	}
}
