/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits bound unexpected payload (rule B2). A sender may have a window of eager cost at
 * the receiver; matching a message consumes it, and consumed cost goes back in credit
 * packets. Without credit a message is announced by its header and waits in its sender's
 * memory. Windows begin small and double while the endpoint's total allows it, so that
 * what an endpoint must be ready to keep is unexpected_max and CREDIT_FIRST per peer.
 */
#include "config.h"

#include "prov/proto/ep.h"

static void window_set(struct proto_peer *pp, uint32_t window)
{
	pp->window = window;
	pp->return_at = window / 4;
}

void credit_open(struct proto_ep *ep, struct proto_peer *pp)
{
	pp->credit = CREDIT_FIRST;
	window_set(pp, CREDIT_FIRST);
	pp->consumed = 0;
	pp->stored = 0;
	pp->credit_owed = false;
	ep->granted += pp->window;
}

void credit_close(struct proto_ep *ep, struct proto_peer *pp)
{
	ep->granted -= pp->window;
	window_set(pp, 0);
	pp->credit = 0;
	pp->consumed = 0;
	pp->stored = 0;
	pp->credit_owed = false;
}

int credit_return(struct proto_ep *ep, struct proto_peer *pp)
{
	uint32_t more = 0;
	void *pkt;

	if (!proto_peer_is_up(pp)) {
		return 0;
	}
	pkt = link_reserve(pp->peer.link, sizeof(struct pkt_credit), WIRE_CONTROL);
	if (!pkt) {
		pp->credit_owed = true;
		proto_activate(ep, pp);
		return 0;
	}
	if (pp->window < CREDIT_MAX && ep->granted + pp->window <= ep->unexpected_max) {
		more = pp->window;
		ep->granted += more;
		window_set(pp, pp->window + more);
	}
	link_commit(pp->peer.link, pkt, pkt_put_credit(pkt, pp->consumed + more));
	pp->consumed = 0;
	pp->credit_owed = false;
	return 1;
}

void credit_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		    const struct pkt_view *v)
{
	struct proto_peer *other = pp->ident == pp ? pp->alias : pp->ident;

	(void)ep;
	(void)link;
	/* Of one endpoint that is known by two names, it doesn't say for which. */
	if (other && proto_peer_is_up(other) && other->credit < pp->credit) {
		pp = other;
	}
	pp->credit += v->len;
	if (pp->credit > CREDIT_MAX) { /* a late one from an earlier epoch, or a lie */
		pp->credit = CREDIT_MAX;
	}
}
