/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small promises to a sender: CTS, FIN and ACK. Each is sent at once, or kept with the
 * arrival that it is about until the link has room; none is ever dropped while the peer
 * lives. They use the control class, whose room data cannot take (rule B3).
 */
#include "config.h"

#include <assert.h>

#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"

/* Sends what the state of a says; false: no room. */
static bool pay(struct proto_ep *ep, struct arrival *a)
{
	struct wire_link *link = a->peer->peer.link;
	void *pkt = link_reserve(link, sizeof(struct pkt_cts), WIRE_CONTROL);
	size_t len;

	if (!pkt) {
		return false;
	}
	list_remove(&a->node);
	if (a->state == ARRIVAL_OWES_CTS) {
		len = pkt_put_cts(pkt, a->bulk ? PKT_F_BULK : 0, a->tx_id, pool_id(a),
				  a->want);
		link_commit(link, pkt, len);
		arrival_set_state(a, ARRIVAL_STREAM);
		list_push_back(&a->peer->streams_in, &a->node);
		if (a->can_pull) {
			bulk_watch(ep, a);
		}
		return true;
	}
	assert(a->state == ARRIVAL_OWES_FIN || a->state == ARRIVAL_OWES_ACK);
	if (a->state == ARRIVAL_OWES_FIN) {
		len = pkt_put_fin(pkt, a->tx_id, a->fin_err);
	} else {
		len = pkt_put_ack(pkt, a->tx_id);
	}
	link_commit(link, pkt, len);
	arrival_release(ep, a);
	return true;
}

void owe(struct proto_ep *ep, struct arrival *a)
{
	struct proto_peer *pp = a->peer;

	if (!proto_peer_is_up(pp) || a->epoch != pp->peer.epoch) {
		if (a->state == ARRIVAL_OWES_CTS) {
			arrival_complete(ep, a, -FI_ECONNRESET);
		}
		arrival_release(ep, a);
		return;
	}
	if (list_empty(&pp->owed) && pay(ep, a)) {
		return;
	}
	list_push_back(&pp->owed, &a->node);
	proto_activate(ep, pp);
}

int owed_run(struct proto_ep *ep, struct proto_peer *pp)
{
	int paid = 0;

	while (!list_empty(&pp->owed)) {
		if (!pay(ep, container_of(pp->owed.next, struct arrival, node))) {
			break;
		}
		paid++;
	}
	if (unlikely(pp->bulk_in.owes_taken)) {
		paid += taken_run(pp);
	}
	if (pp->credit_owed) {
		paid += credit_return(ep, pp);
	}
	return paid;
}

void ack_send(struct proto_ep *ep, struct proto_peer *pp, uint64_t tx_id)
{
	struct arrival *a;

	if (!proto_peer_is_up(pp)) {
		return;
	}
	a = arrival_alloc(ep, pp, pp->peer.link);
	if (!a) {
		proto_violation(ep, pp->peer.link);
		return;
	}
	a->tx_id = tx_id;
	arrival_set_state(a, ARRIVAL_OWES_ACK);
	owe(ep, a);
}

void ack_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v)
{
	struct tx *tx = tx_find(ep, pp, v->id);

	(void)link;
	if (tx && tx->state == TX_WAIT_ACK) {
		tx_complete(ep, tx, 0);
	}
}
