/* SPDX-License-Identifier: BSD-2-Clause */
/* The control channel's second life. Rules B1, C5, C7. */
#include "config.h"

#include "prov/wire/verbs/verbs_resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_connect.h"
#include "prov/wire/verbs/verbs_poll.h"
#include "prov/wire/verbs/verbs_stop.h"

/* Between two attempts; between two words that ask for one. */
#define RESUME_PAUSE_NS UINT64_C(20000000)
#define RESUME_ASK_NS	UINT64_C(500000000)

/* Of a call that nobody answered: less is an answer. */
#define RESUME_ASLEEP_NS UINT64_C(1000000000)

enum resume_news {
	RESUME_HELLO = 1,
	RESUME_ANSWER = 2,
	RESUME_READY = 4,
	RESUME_LOST = 8
};

static void chan_qp_close(struct verbs_link *link)
{
	if (!link->chan.qp)
		return;
	pthread_mutex_lock(&link->ep->mutex);
	link->chan.qp->lost = true;
	verbs_qp_close(link->ep, link->chan.qp);
	pthread_mutex_unlock(&link->ep->mutex);
	link->chan.qp = NULL;
	verbs_atomics_cut(link);
}

/* How long a link may be without a channel on which anything gets through. */
static uint64_t patience(void)
{
	return prov_params()->connect_timeout_ms * UINT64_C(1000000);
}

/* The time that is left begins anew with everything that got through, and with a channel
 * that lived as long as that, though nothing had to be said on it. Else it goes on
 * running, however many channels are made: each of them may be worth nothing. */
static void time_give(struct verbs_link *link, uint64_t now)
{
	bool lived = !link->resuming && now - link->resume_back >= patience();

	if (link->chan.passed || lived || link->resumes == 0)
		link->resume_until = now + patience();
	link->chan.passed = false;
}

/* What came in on the queue pair before it ended is heard before it is destroyed, which
 * would discard it (rule C2): where channels end often and this end is slow that may be
 * all that ever gets through. False: the link is over now. */
static bool last_words(struct verbs_link *link)
{
	if (link->chan.qp)
		verbs_poll_now(link->ep);
	return link->state == VERBS_LINK_UP && !link->faulty;
}

/* The dialler is to call again. It is asked until it does: the connection may not be up
 * yet, or another one just then. */
static void resume_ask(struct verbs_link *link, uint64_t now)
{
	const struct verbs_msg m = {.op = VERBS_MSG_CALL, .incarnation = link->round};
	struct verbs_ep *ep = link->ep;
	int ret = -FI_EAGAIN;

	pthread_mutex_lock(&ep->mutex);
	if (link->call && !(link->terms.features & VERBS_CARD_SPARES)) {
		verbs_call_drop(link->call, -FI_ECONNREFUSED);
		link->call = NULL;
	} else if (link->call) {
		/* One that is over says so by itself. */
		ret = verbs_stop_say(link->call, &m);
	}
	verbs_helper_kick(ep->helper);
	pthread_mutex_unlock(&ep->mutex);
	link->resume_due = now + (ret ? RESUME_PAUSE_NS : RESUME_ASK_NS);
}

void verbs_resume_passed(struct verbs_link *link)
{
	if (link->resuming && !link->resume_refused)
		link->resume_until = verbs_now() + patience();
}

void verbs_resume_start(struct verbs_link *link)
{
	uint64_t now = verbs_now();
	char text[WIRE_ADDR_TEXT_MAX];
	bool worth;

	if (link->resuming || !last_words(link))
		return;
	worth = link->chan.passed;
	FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
		"link to %s: the control channel died; it is made anew\n",
		wire_addr_text(&link->base.peer, text));
	time_give(link, now);
	link->resuming = true;
	/* Not again and again where the rail of the other end is down. One on which
	 * something got through was worth making. */
	link->resume_due = !worth && now < link->resume_due + RESUME_PAUSE_NS
				   ? now + RESUME_PAUSE_NS
				   : now;
	link->resumes++;
	if (link->chan.qp)
		link->resume_rail = link->chan.qp->rail + 1u;
	chan_qp_close(link);
	verbs_rkeys_restart(link, false);
	if (!link->dialler)
		resume_ask(link, now);
	verbs_link_wake(link, link->resume_due);
	verbs_link_chore(link);
}

/* ---- dialler ------------------------------------------------------------------------
 */

/* The next rail that is up. */
static uint32_t rail_next(struct verbs_link *link)
{
	const struct verbs_dev *dev = link->ep->dom->dev;

	for (uint32_t i = 0; i < dev->rails; i++) {
		uint32_t r = (link->resume_rail + i) % dev->rails;

		if (!atomic_load_explicit(&dev->rail[r].up, memory_order_relaxed))
			continue;
		link->resume_rail = r + 1;
		return r;
	}
	return UINT32_MAX;
}

static void resume_dial(struct verbs_link *link, uint64_t now)
{
	struct verbs_ep *ep = link->ep;
	uint32_t rail = rail_next(link);
	struct verbs_card card;
	int ret = -FI_ENODEV;

	link->resume_due = now + RESUME_PAUSE_NS;
	if (rail == UINT32_MAX)
		return;
	link->resume_dialled = now;
	chan_qp_close(link);
	pthread_mutex_lock(&ep->mutex);
	if (verbs_chan_open(link, rail, &link->chan.qp) == 0) {
		link->round++;
		verbs_card_make(link, &card, false);
		ret = verbs_door_dial(ep->door, &link->peer.door, &card, link,
				      &link->next_call);
		if (ret)
			link->next_call = NULL;
		verbs_helper_kick(ep->helper);
	}
	pthread_mutex_unlock(&ep->mutex);
	if (ret)
		chan_qp_close(link);
	link->resume_refused = link->resume_refused || ret;
}

static void gave_up(struct verbs_link *link, const char *why)
{
	char text[WIRE_ADDR_TEXT_MAX];

	FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
		"link to %s: its control channel can't be made anew: %s\n",
		wire_addr_text(&link->base.peer, text), why);
	link->base.why = why;
	verbs_link_end(link, -FI_ECONNRESET);
}

void verbs_resume_run(struct verbs_link *link, uint64_t now)
{
	if (!link->resuming || link->faulty)
		return;
	if (now >= link->resume_until) {
		gave_up(link, VERBS_WHY_RAILS);
		return;
	}
	if (link->dialler && !link->next_call && now >= link->resume_due)
		resume_dial(link, now);
	else if (!link->dialler && !link->chan.hold && now >= link->resume_due)
		resume_ask(link, now);
	if (!link->chan.hold && link->resume_due < link->resume_until)
		verbs_link_wake(link, link->resume_due);
	else
		verbs_link_wake(link, link->resume_until);
}

/* ---- both ---------------------------------------------------------------------------
 */

/* The new queue pair meets the peer's. */
static int chan_connect(struct verbs_link *link, const struct verbs_card *card)
{
	const struct verbs_card_qp *q = verbs_card_qp(card, VERBS_LANE_CONTROL);

	if (!q || card->session != link->session || card->round != link->round ||
	    card->incarnation != link->peer.incarnation ||
	    card->rails != link->peer.rails) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"a card for another link: session %llx, wanted %llx; round %u, "
			"wanted %u\n",
			(unsigned long long)card->session,
			(unsigned long long)link->session, card->round, link->round);
		return -EPROTO;
	}
	memcpy(link->peer.rail, card->rail, sizeof(link->peer.rail));
	/* What was acknowledged nowhere else. */
	if (card->heard > link->chan.ctl.una)
		link->chan.passed = true;
	if (verbs_chan_resume(link, card->heard)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"a card that heard %llu packets, of %llu that were sent and %llu "
			"that it said it heard\n",
			(unsigned long long)card->heard,
			(unsigned long long)link->chan.ctl.high,
			(unsigned long long)link->chan.ctl.una);
		return -EPROTO;
	}
	return verbs_qp_connect(link->ep, link->chan.qp, &link->peer, q->rail, q->qpn,
				q->psn, link->traffic_class);
}

/* It can be used in both directions; or it died meanwhile (answerer), which
 * verbs_link_run looks at. */
static void chan_back(struct verbs_link *link)
{
	link->resuming = false;
	link->resume_refused = false;
	link->resume_back = verbs_now();
	link->chan.hold = false;
	dqplb_rx_resend(link->rx);
	verbs_rkeys_restart(link, false);
	verbs_atomics_run(link);
	verbs_stop_again(link);
	verbs_link_chore(link);
}

/* The new call takes the place of the old one. Mutex. */
static void call_swap(struct verbs_link *link)
{
	if (link->call)
		verbs_call_drop(link->call, -FI_ECONNREFUSED);
	link->call = link->next_call;
	link->next_call = NULL;
}

static void answer_heard(struct verbs_link *link, const struct verbs_card *card)
{
	int ret = chan_connect(link, card);

	if (ret == -EPROTO) {
		verbs_link_fault(link, ret);
		return;
	}
	pthread_mutex_lock(&link->ep->mutex);
	/* Whose call is over meanwhile has not got a channel. */
	if (ret == 0 && !link->next_call)
		ret = -FI_ECONNREFUSED;
	if (ret == 0) {
		verbs_call_ready(link->next_call);
		call_swap(link);
	} else if (link->next_call) {
		verbs_call_drop(link->next_call, -FI_ECONNREFUSED);
		link->next_call = NULL;
	}
	verbs_helper_kick(link->ep->helper);
	pthread_mutex_unlock(&link->ep->mutex);
	if (ret) {
		chan_qp_close(link);
		return;
	}
	/* What was said of the one before. */
	link->chan.broken = false;
	chan_back(link);
}

static void hello_heard(struct verbs_link *link, const struct verbs_card *hello)
{
	struct verbs_ep *ep = link->ep;
	const struct verbs_card_qp *q = verbs_card_qp(hello, VERBS_LANE_CONTROL);
	uint32_t rail = UINT32_MAX;
	struct verbs_terms terms;
	struct verbs_card card;
	int ret = -FI_EHOSTUNREACH;

	if (q)
		rail = verbs_card_rail_for(&ep->card, hello, q->rail);
	time_give(link, verbs_now());
	if (!link->resuming) {
		/* This end had not noticed. */
		link->resuming = true;
		link->resumes++;
	}
	chan_qp_close(link);
	link->chan.broken = false;
	link->chan.hold = true;
	verbs_link_wake(link, link->resume_until);
	pthread_mutex_lock(&ep->mutex);
	/* The caller may have given up meanwhile, and called again: that call is answered
	 * for its own card. */
	if (link->next_news & RESUME_HELLO) {
		pthread_mutex_unlock(&ep->mutex);
		return;
	}
	if (rail != UINT32_MAX && link->next_call)
		ret = verbs_chan_open(link, rail, &link->chan.qp);
	link->round = hello->round;
	if (ret == 0)
		ret = chan_connect(link, hello);
	if (ret == 0) {
		verbs_card_make(link, &card, false);
		ret = verbs_call_answer(link->next_call, &card, link, &terms);
		link->next_answered = ret == 0;
	}
	if (ret && link->next_call) {
		verbs_call_drop(link->next_call, -FI_ECONNREFUSED);
		link->next_call = NULL;
	}
	verbs_helper_kick(ep->helper);
	pthread_mutex_unlock(&ep->mutex);
	if (ret)
		chan_qp_close(link);
	if (ret == -EPROTO)
		verbs_link_fault(link, ret);
}

void verbs_resume_heard(struct verbs_link *link)
{
	struct verbs_ep *ep = link->ep;

	if (!link->chan.hold)
		return;
	pthread_mutex_lock(&ep->mutex);
	/* The dialler may have called again already, which is still to be answered: what
	 * was heard came by the call before. */
	if (link->next_call && link->next_answered)
		call_swap(link);
	link->next_news &= (uint8_t)~RESUME_READY;
	pthread_mutex_unlock(&ep->mutex);
	chan_back(link);
}

static void lost(struct verbs_link *link, int err)
{
	if (!link->resuming || !link->dialler)
		return;
	/* Who sleeps says nothing until the call ends by its deadline. */
	link->resume_refused = verbs_now() - link->resume_dialled < RESUME_ASLEEP_NS;
	chan_qp_close(link);
	if (err == -FI_EHOSTUNREACH || err == -FI_EACCES)
		gave_up(link, "the peer doesn't know it any more");
	else
		verbs_link_chore(link);
}

int verbs_resume_news(struct verbs_link *link)
{
	struct verbs_ep *ep = link->ep;
	struct verbs_card *card;
	uint8_t news;
	bool called;
	int err;

	pthread_mutex_lock(&ep->mutex);
	called = link->next_news & RESUME_HELLO;
	pthread_mutex_unlock(&ep->mutex);
	if (called && link->state == VERBS_LINK_UP)
		last_words(link);
	pthread_mutex_lock(&ep->mutex);
	news = link->next_news;
	card = link->next_card;
	err = link->next_err;
	link->next_news = 0;
	link->next_card = NULL;
	pthread_mutex_unlock(&ep->mutex);
	if (!news)
		return 0;
	if (link->state == VERBS_LINK_UP && !link->faulty) {
		if ((news & RESUME_HELLO) && card)
			hello_heard(link, card);
		if ((news & RESUME_ANSWER) && card)
			answer_heard(link, card);
		if (news & RESUME_READY)
			verbs_resume_heard(link);
		if (news & RESUME_LOST)
			lost(link, err);
	}
	free(card);
	return 1;
}

/* ---- door ---------------------------------------------------------------------------
 */

static void card_keep(struct verbs_link *link, const struct verbs_card *card)
{
	if (!link->next_card)
		link->next_card = malloc(sizeof(*card));
	if (link->next_card)
		*link->next_card = *card;
}

static struct verbs_link *session_find(struct verbs_ep *ep, const struct verbs_card *card)
{
	list_foreach (n, &ep->links) {
		struct verbs_link *link = container_of(n, struct verbs_link, member);

		if (!link->dialler && link->session == card->session &&
		    link->peer.incarnation == card->incarnation)
			return link;
	}
	return NULL;
}

bool verbs_resume_hello(struct verbs_ep *ep, struct verbs_call *call,
			const struct verbs_card *card)
{
	struct verbs_link *link = session_find(ep, card);

	if (!link)
		return false;
	/* An earlier attempt was given up by who calls. */
	if (link->next_call)
		verbs_call_drop(link->next_call, -FI_ECONNREFUSED);
	link->next_call = call;
	link->next_answered = false;
	verbs_call_set_arg(call, link);
	card_keep(link, card);
	link->next_news = RESUME_HELLO;
	verbs_ep_news(ep, link);
	return true;
}

void verbs_resume_asked(struct verbs_link *link, uint32_t round)
{
	/* Else it is being made, or is there again. */
	if (!link->dialler || round != link->round)
		return;
	link->recalled = true;
	verbs_ep_news(link->ep, link);
}

void verbs_resume_event(struct verbs_link *link, const struct verbs_door_event *ev)
{
	switch (ev->kind) {
	case VERBS_CALL_ANSWER:
		card_keep(link, ev->card);
		link->next_news = RESUME_ANSWER;
		break;
	case VERBS_CALL_READY:
		link->next_news |= RESUME_READY;
		break;
	default:
		link->next_call = NULL;
		link->next_news = RESUME_LOST;
		link->next_err = ev->err;
		break;
	}
	verbs_ep_news(link->ep, link);
}

void verbs_resume_drop(struct verbs_link *link, int err)
{
	/* The peer may take it for the link's already. */
	if (link->next_call)
		verbs_call_drop(link->next_call, err);
	link->next_call = NULL;
	free(link->next_card);
	link->next_card = NULL;
}
