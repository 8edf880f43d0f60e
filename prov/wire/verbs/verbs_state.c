/* SPDX-License-Identifier: BSD-2-Clause */
/* A link's state in the log; see verbs_state.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_state.h"

#include "prov/dqplb/text.h"
#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"

#define WATCH_NS UINT64_C(1000000000)

#define SAY(...) FI_WARN(&weft_provider, FI_LOG_EP_CTRL, __VA_ARGS__)

static const char *const qp_state_name[VERBS_QP_STATES] = {
	[VERBS_QP_NEW] = "new",
	[VERBS_QP_READY] = "ready",
	[VERBS_QP_ERROR] = "in error",
};

static unsigned list_count(const struct list *list)
{
	unsigned n = 0;

	for (const struct list *at = list->next; at != list; at = at->next)
		n++;
	return n;
}

static void link_say(const struct verbs_link *link, uint64_t stood_ns)
{
	const struct verbs_flush *f = &link->flush;
	char peer[WIRE_ADDR_TEXT_MAX], tx[DQPLB_TEXT], rx[DQPLB_TEXT];

	wire_addr_text(&link->base.peer, peer);
	SAY("link to %s stands still: nothing that is under way ended for %llu s: %u "
	    "transfers, %u behind which a read waits, %u that are read behind, %u keys "
	    "that are fetched\n",
	    peer, (unsigned long long)(stood_ns / 1000000000u), list_count(&link->ops),
	    list_count(&f->waiting), list_count(&f->behind),
	    list_count(&link->rkeys.fetches));
	dqplb_tx_text(link->tx, tx);
	dqplb_rx_text(link->rx, rx);
	SAY("link to %s: %s, lanes %u of %u wanted; reads left on 0x%llx, to be posted "
	    "on "
	    "0x%llx, lanes that end 0x%llx; sender: %s; receiver: %s\n",
	    peer, link->dialler ? "dialler" : "answerer", link->lanes_wanted, link->lanes,
	    (unsigned long long)f->left, (unsigned long long)f->unposted,
	    (unsigned long long)f->dying, tx, rx);
}

static void chan_say(const struct verbs_link *link)
{
	const struct verbs_chan *c = &link->chan;
	const struct verbs_qp *qp = c->qp;

	SAY("control channel on %s: queue pair %s, %u requests not answered for%s%s%s%s; "
	    "packets %llu acknowledged, %llu sent, %llu to send; heard %llu, told %llu; "
	    "windows %u and %u\n",
	    qp ? link->ep->dom->dev->rail[qp->rail].name : "none",
	    qp ? qp_state_name[qp->state] : "closed", qp ? qp->sq_head - qp->sq_tail : 0,
	    c->broken ? ", broken" : "",
	    c->hold ? ", held until the dialler is heard" : "",
	    link->resuming ? ", being made anew" : "",
	    link->call ? "" : ", without a call", (unsigned long long)c->ctl.una,
	    (unsigned long long)c->ctl.sent, (unsigned long long)c->ctl.nxt,
	    (unsigned long long)c->ctl.heard, (unsigned long long)c->ctl.told,
	    c->ctl.window, c->ctl.grant);
}

static void rails_say(const struct verbs_link *link)
{
	const struct verbs_dev *dev = link->ep->dom->dev;

	for (uint32_t r = 0; r < dev->rails; r++)
		SAY("rail %s is %s%s%s\n", dev->rail[r].name,
		    dev->rail[r].up ? "up" : "down",
		    dev->rail[r].up == link->ep->rail[r].was_up ? ""
								: ", which links don't "
								  "know",
		    link->rails_owed >> r & 1 ? ", which the peer wasn't told" : "");
	if (link->peer_down)
		SAY("rails of the peer's that are down: 0x%x\n", link->peer_down);
}

static void lane_say(const struct verbs_link *link, uint32_t i, uint64_t now)
{
	const struct verbs_lane *l = &link->lane[i];
	const struct verbs_qp *qp = l->qp;
	char tx[DQPLB_TEXT], rx[DQPLB_TEXT];

	dqplb_tx_lane_text(link->tx, i, tx);
	dqplb_rx_lane_text(link->rx, i, rx);
	SAY("lane %u.%u on %s, the peer's rail %u: %s%s; queue pair %s, %u requests not "
	    "answered for, %u receives; %s; %s; %u faults, to be said 0x%x, due in %llu "
	    "ms\n",
	    i, l->incarnation, link->ep->dom->dev->rail[l->rail].name, l->peer_rail,
	    verbs_lane_state_name(l->state), l->never ? ", where rails don't meet" : "",
	    qp ? qp_state_name[qp->state] : "closed", qp ? qp->sq_head - qp->sq_tail : 0,
	    qp ? qp->receives : 0, tx, rx, l->faults, l->owe,
	    l->due > now ? (unsigned long long)((l->due - now) / 1000000u) : 0);
}

void verbs_state_say(const struct verbs_link *link, uint64_t stood_ns)
{
	uint64_t now = verbs_now();

	link_say(link, stood_ns);
	chan_say(link);
	rails_say(link);
	for (uint32_t i = 0; i <= link->lanes && i < DQPLB_LANES_MAX; i++)
		lane_say(link, i, now);
}
