/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages leave: at once as an eager packet when nothing is in the way, else through the
 * peer's queue. Whole messages arrive. Order per peer is the order of packets on its
 * transmit link, whatever protocol each message uses.
 */
#include "config.h"

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
#include "prov/proto/ep.h"
#include "util/copy.h"
#include "util/prefetch.h"

_Static_assert(PROTO_TAGGED == PKT_F_TAGGED && PROTO_DATA == PKT_F_DATA,
	       "flags go into packets as they are");
#define MSG_PKT_FLAGS (PROTO_TAGGED | PROTO_DATA)

static ssize_t send_queued(struct proto_ep *ep, struct proto_peer *pp,
			   const struct proto_msg *m)
{
	struct tx *tx = proto_fence_holds(pp, m->flags) ? NULL : tx_alloc(ep, pp);
	int err;

	if (!tx) {
		return -FI_EAGAIN;
	}
	tx->flags = m->flags;
	tx->context = m->context;
	tx->tag = m->tag;
	tx->data = (m->flags & PROTO_DATA) ? m->data : 0;
	tx->rma_barrier = ep->order_msg_after_rma ? pp->rma_posted : 0;
	tx->atomic_barrier = ep->order_msg_after_rma ? pp->atomics_posted : 0;
	tx->x.inflight = 0;
	tx->x.err = 0;
	err = tx_take_iov(ep, tx, m->iov, m->count, m->len);
	if (unlikely(err)) {
		return err;
	}
	tx_set_state(tx, TX_QUEUED);
	list_push_back(&pp->msgs, &tx->node);
	proto_block(pp, BLOCK_QUEUE);
	if (proto_peer_is_up(pp)) {
		msgs_run(ep, pp);
		proto_activate(ep, pp);
	} else {
		peer_connect(&ep->peers, &pp->peer);
	}
	return 0;
}

ssize_t proto_send(struct proto_ep *ep, struct proto_peer *pp, const struct proto_msg *m)
{
	uint8_t flags = m->flags & MSG_PKT_FLAGS;
	size_t head = pkt_eager_head(flags);
	struct proto_done d;
	void *pkt, *at;
	int err = 0;

	if (unlikely(pp->blocked || m->len > pp->eager_max ||
		     pp->credit < credit_cost(m->len) ||
		     (m->flags & (PROTO_DELIVERY | PROTO_FENCE)))) {
		return send_queued(ep, pp, m);
	}
	pkt = link_reserve(pp->peer.link, head + m->len, WIRE_DATA);
	if (unlikely(!pkt)) {
		return send_queued(ep, pp, m);
	}
	at = pkt_put_eager(pkt, flags, m->len, m->tag, m->data, 0);
	if (likely(m->count == 1)) {
		if (likely(m->len)) { /* else there may be no memory */
			err = mem_copy(at, m->iov[0].iov_base, m->len);
		}
	} else {
		err = iov_gather(m->iov, m->count, 0, at, m->len);
	}
	if (unlikely(err)) {
		return err; /* what is reserved and not committed isn't there */
	}
	link_commit(pp->peer.link, pkt, head + m->len);
	pp->credit -= credit_cost(m->len);
	d.context = m->context;
	d.flags = FI_SEND | ((flags & PROTO_TAGGED) ? FI_TAGGED : FI_MSG);
	d.len = 0;
	d.buf = NULL;
	d.data = 0;
	d.tag = 0;
	d.source = FI_ADDR_NOTAVAIL;
	d.olen = 0;
	d.err = 0;
	d.report = m->flags & PROTO_REPORT;
	ep->up->tx_done(ep->arg, &d);
	return 0;
}

/* One queued message as an eager packet; false: no room now. */
static bool eager_send(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	bool ack = tx->flags & PROTO_DELIVERY;
	uint8_t flags = (tx->flags & MSG_PKT_FLAGS) | (ack ? PKT_F_ACK : 0);
	size_t len = tx->x.total, head = pkt_eager_head(flags);
	void *pkt = link_reserve(pp->peer.link, head + len, WIRE_DATA);
	void *at;
	int err;

	if (!pkt) {
		return false;
	}
	at = pkt_put_eager(pkt, flags, len, tx->tag, tx->data, pool_id(tx));
	err = iov_gather(tx->x.local, tx->x.local_count, 0, at, len);
	if (unlikely(err)) {
		tx_complete(ep, tx, err);
		return true;
	}
	link_commit(pp->peer.link, pkt, head + len);
	pp->credit -= credit_cost(len);
	if (!ack) {
		tx_complete(ep, tx, 0);
		return true;
	}
	list_remove(&tx->node);
	list_push_back(&pp->waiting, &tx->node);
	tx_set_state(tx, TX_WAIT_ACK);
	return true;
}

int msgs_run(struct proto_ep *ep, struct proto_peer *pp)
{
	int sent = 0;

	while (!list_empty(&pp->msgs)) {
		struct tx *tx = container_of(pp->msgs.next, struct tx, node);
		bool left;

		if (pp->rma_done < tx->rma_barrier ||
		    pp->atomics_sent < tx->atomic_barrier) { /* rule E2 */
			return sent;
		}
		if (tx->x.total <= pp->eager_max &&
		    pp->credit >= credit_cost(tx->x.total)) {
			left = eager_send(ep, pp, tx);
		} else {
			left = rts_send(ep, pp, tx);
		}
		if (!left) {
			return sent;
		}
		sent++;
	}
	proto_unblock(pp, BLOCK_QUEUE);
	return sent;
}

/* No receive yet: kept, within what the peer was granted. */
static void eager_unexpected(struct proto_ep *ep, struct proto_peer *pp,
			     struct wire_link *link, const struct pkt_view *v)
{
	bool late = !peer_link_is_current(&pp->peer, link);
	uint32_t cost = credit_cost(v->len);
	struct arrival *a;

	/* Credits that crossed the end of an epoch may make a sender think it has a
	 * little more than its window; twice the largest is no such accident. */
	if (late ? pp->late + cost > LATE_MAX : pp->stored + cost > 2 * CREDIT_MAX) {
		proto_violation(ep, link);
		return;
	}
	a = arrival_alloc(ep, pp, link);
	if (!a) {
		proto_violation(ep, link);
		return;
	}
	if (late) {
		a->epoch = 0; /* sent before the epoch ended: no credit, no answer */
	}
	arrival_set_state(a, ARRIVAL_UNEXPECTED);
	a->announced = false;
	a->flags =
		(v->flags & MSG_PKT_FLAGS) | ((v->flags & PKT_F_ACK) ? ARRIVAL_ACK : 0);
	a->tag = v->tag;
	a->data = (v->flags & PKT_F_DATA) ? v->data : 0;
	a->tx_id = (v->flags & PKT_F_ACK) ? v->id : 0;
	a->len = v->len;
	if (v->len) {
		a->payload = payload_alloc(&ep->payloads, v->len, &a->size_class);
		if (!a->payload) {
			arrival_release(ep, a);
			proto_violation(ep, link);
			return;
		}
		memcpy(a->payload, v->payload, v->len);
	}
	if (late) {
		pp->late += cost;
	} else {
		pp->stored += cost;
	}
	receiver_keep(a);
}

static void eager_place(struct proto_ep *ep, struct proto_peer *pp,
			const struct rx_claim *claim, const struct pkt_view *v)
{
	struct rx_result r = {.len = v->len,
			      .tag = v->tag,
			      .data = (v->flags & PKT_F_DATA) ? v->data : 0,
			      .flags = v->flags & MSG_PKT_FLAGS,
			      .source = pp->source};

	r.err = iov_scatter(claim->iov, claim->count, 0, v->payload,
			    v->len < claim->room ? v->len : claim->room);
	rx_finish(ep, claim, &r);
}

void eager_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v)
{
	struct rx_claim claim;

	if (unlikely(!receiver_take(ep, pp, v->flags & PKT_F_TAGGED, v->tag, v->len,
				    &claim))) {
		eager_unexpected(ep, pp, link, v);
		return;
	}
	eager_place(ep, pp, &claim, v);
	credit_consume(ep, pp, credit_cost(v->len));
	if (unlikely(v->flags & PKT_F_ACK)) {
		ack_send(ep, pp, v->id);
	}
}

static __attribute__((noinline)) void eager_report_credit(struct proto_ep *ep,
							  struct proto_peer *pp,
							  void *context, uint64_t flags,
							  size_t len, uint64_t tag)
{
	credit_return(ep, pp);
	ep->up->rx_ok(ep->arg, context, flags, len, tag, pp->source);
}

/* The bytes are in a receive of one piece that reports; the end of the call is the
 * report. */
static __attribute__((noinline)) void eager_finish(struct proto_ep *ep,
						   struct proto_peer *pp, struct rx *rx,
						   size_t len, uint64_t tag)
{
	uint64_t flags = FI_RECV | (rx->flags & PROTO_TAGGED ? FI_TAGGED : FI_MSG);
	uint32_t consumed = pp->consumed + credit_cost(len);

	list_unlink(&rx->m.node);
	rx_set_state(rx, RX_FREE);
	pool_release(&ep->rcv->rx, rx); /* it keeps its content until it is taken again */
	pp->consumed = consumed;
	if (unlikely(consumed >= pp->return_at)) {
		eager_report_credit(ep, pp, rx->context, flags, len, tag);
	} else {
		ep->up->rx_ok(ep->arg, rx->context, flags, len, tag, pp->source);
	}
}

/* The first receive that takes it, whatever it asks for, if the straight way is made for
 * it. */
static struct rx *eager_special_find(struct proto_ep *ep, struct proto_peer *pp,
				     const struct pkt_plain *p)
{
	struct match_queue *q = &ep->rcv->match[p->tagged];
	struct match_recv *m = q->special ? NULL : match_recv_first(q, p->tag);
	struct rx *rx;

	if (!m) {
		m = match_recv_find(q, sender_ident(pp->sender), p->tag);
	}
	if (unlikely(!m)) {
		return NULL;
	}
	rx = container_of(m, struct rx, m);
	return p->len <= rx->usual ? rx : NULL;
}

/* Not small, or with data, or into a receive from one source or with bits that don't
 * count. All else goes the general way. */
static __attribute__((noinline)) void eager_special(struct proto_ep *ep,
						    struct wire_link *link,
						    const void *pkt, size_t len)
{
	struct proto_peer *pp = wire_link_base(link)->peer_ctx;
	struct rx *rx = NULL;
	uint64_t data = 0, flags = FI_RECV;
	struct pkt_plain p;
	void *context;

	/* All of it is on its way from the sender's cache while its receive is looked
	 * for. */
	if (unlikely(len > COPY_SMALL_MAX)) {
		prefetch_read_all(pkt, len);
	}
	if (likely(pp && !ep->closing)) {
		bool good = pkt_parse_plain_data(pkt, len, &p, &data);

		if (good) {
			flags |= FI_REMOTE_CQ_DATA;
		} else {
			good = pkt_parse_plain(pkt, len, &p);
		}
		if (good) {
			rx = eager_special_find(ep, pp, &p);
		}
	}
	if (unlikely(!rx)) {
		proto_packet(ep, link, pkt, len);
		return;
	}
	copy_any(rx->iov[0].iov_base, p.payload, p.len);
	context = rx->context;
	match_recv_remove(&ep->rcv->match[p.tagged], &rx->m);
	rx_release(ep->rcv, rx);
	credit_consume(ep, pp, credit_cost(p.len));
	flags |= p.tagged ? FI_TAGGED : FI_MSG;
	ep->up->rx_ok_data(ep->arg, context, flags, p.len, p.tag, pp->source, data);
}

/* In two halves, none of which has to keep anything over a call. */
void eager_packet(void *arg, struct wire_link *link, const void *pkt, size_t len)
{
	struct proto_ep *ep = arg;
	struct proto_peer *pp = wire_link_base(link)->peer_ctx;
	struct match_recv *m;
	struct pkt_plain p;
	struct rx *rx;

	if (unlikely(!pp || ep->closing || !pkt_parse_plain(pkt, len, &p) ||
		     p.len > COPY_SMALL_MAX)) {
		eager_special(ep, link, pkt, len);
		return;
	}
	m = match_recv_first(&ep->rcv->match[p.tagged], p.tag);
	if (likely(m)) {
		rx = container_of(m, struct rx, m);
		if (likely(p.len <= rx->usual)) {
			copy_small(rx->iov[0].iov_base, p.payload, p.len);
			eager_finish(ep, pp, rx, p.len, p.tag);
			return;
		}
	}
	/* len once more from what was parsed: nothing must be kept for this case. */
	eager_special(ep, link, pkt, p.len + sizeof(struct pkt_eager));
}

/* Its payload is no longer needed. */
static void eager_forget(struct proto_ep *ep, struct arrival *a)
{
	if (a->payload) {
		payload_release(&ep->payloads, a->payload, a->size_class);
		a->payload = NULL;
	}
}

/* What the sender gets for a message that was kept. */
static void eager_settle(struct proto_ep *ep, struct arrival *a)
{
	struct proto_peer *pp = a->peer;
	uint32_t cost = credit_cost(a->len);

	if (a->epoch != pp->peer.epoch) { /* that sender is gone */
		pp->late -= a->epoch ? 0 : cost;
		arrival_release(ep, a);
		return;
	}
	pp->stored -= cost;
	if (a->flags & ARRIVAL_ACK) {
		arrival_set_state(a, ARRIVAL_OWES_ACK);
		owe(ep, a);
	} else {
		arrival_release(ep, a);
	}
	if (proto_peer_is_up(pp)) {
		credit_consume(ep, pp, cost);
	}
}

void eager_matched(struct proto_ep *ep, struct arrival *a, struct rx_claim *claim)
{
	int err = iov_scatter(claim->iov, claim->count, 0, a->payload,
			      a->len < claim->room ? a->len : claim->room);

	eager_forget(ep, a);
	arrival_complete(ep, a, err);
	eager_settle(ep, a);
}

void eager_discard(struct proto_ep *ep, struct arrival *a)
{
	eager_forget(ep, a);
	eager_settle(ep, a);
}
