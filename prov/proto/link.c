/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers come and go: what starts when a link is there, and what ends with it. */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"
#include "prov/proto/stage.h"
#include "util/copy.h"

static bool on_init(void *arg, struct peer *p)
{
	struct proto_ep *ep = arg;
	struct proto_peer *pp = proto_peer_of(p);

	proto_block(pp, BLOCK_DOWN);
	pp->ident = pp;
	pp->sender = sender_get(&ep->rcv->senders, &p->addr);
	if (!pp->sender) {
		return false;
	}
	ep->contexts += p->addr.context != 0;
	proto_peer_index_set(ep, pp, ep->up->source(ep->arg, &p->addr));
	list_init(&pp->msgs);
	list_init(&pp->waiting);
	list_init(&pp->streams);
	list_init(&pp->bulks);
	list_init(&pp->helps);
	list_init(&pp->rma);
	list_init(&pp->atomics);
	list_init(&pp->results);
	list_init(&pp->pulls);
	list_init(&pp->streams_in);
	list_init(&pp->owed);
	list_init(&pp->announced);
	list_init(&pp->active);
	list_init(&pp->reap);
	return true;
}

static void on_fini(void *arg, struct peer *p)
{
	struct proto_ep *ep = arg;

	sender_put(&ep->rcv->senders, proto_peer_of(p)->sender);
}

static void ident_leave(struct proto_peer *pp)
{
	if (pp->ident->alias == pp) {
		pp->ident->alias = NULL;
	}
}

/* The door that answered has another name than the one that was dialled: there may be a
 * second peer for the same endpoint, with links that it opened itself. Matching knows
 * only that one. Without memory for it nothing changes. */
static void identify(struct proto_ep *ep, struct proto_peer *pp,
		     const struct wire_addr *door)
{
	struct proto_peer *to = proto_peer_of(peer_get(&ep->peers, door));

	if (!to || to == pp->ident) {
		return;
	}
	if (pp->ident != pp) {
		ident_leave(pp);
		proto_peer_unref(ep, pp->ident);
	}
	rx_retarget(ep->rcv, pp->sender, to->sender);
	pp->ident = to;
	to->alias = pp;
	proto_peer_ref(to);
	if (to->index == FI_ADDR_NOTAVAIL) {
		proto_peer_index_set(ep, to, pp->index);
	}
}

static void on_up(void *arg, struct peer *p)
{
	struct proto_ep *ep = arg;
	struct proto_peer *pp = proto_peer_of(p);
	const struct wire_caps *caps = &wire_link_base(p->link)->caps;
	size_t most = caps->max_packet - PKT_EAGER_HEAD_MAX;

	pp->eager_max = ep->eager_size < most ? ep->eager_size : most;
	pp->small_max = pp->eager_max < COPY_SMALL_MAX ? pp->eager_max : COPY_SMALL_MAX;
	/* What others are ordered behind is done when it is in memory, which wants more.
	 */
	pp->soon_max =
		link_ops(p->link)->put_soon && !ep->order_after_put ? caps->inlined : 0;
	if (!wire_addr_equal(&p->addr, &wire_link_base(p->link)->peer)) {
		identify(ep, pp, &wire_link_base(p->link)->peer);
	}
	credit_open(ep, pp);
	bulk_in_reset(pp);
	pp->joint_broken = false;
	pp->counts.rows = 0;
	proto_unblock(pp, BLOCK_DOWN);
	proto_activate(ep, pp);
}

/* Nothing is sent or pulled any more, nothing has failed yet. */
static void on_ending(void *arg, struct peer *p)
{
	(void)arg;
	proto_block(proto_peer_of(p), BLOCK_DOWN);
	proto_peer_of(p)->eager_max = 0;
	proto_peer_of(p)->soon_max = 0;
}

static void fail_txs(struct proto_ep *ep, struct list *txs, int err)
{
	list_foreach_safe (n, next, txs) {
		tx_fail(ep, container_of(n, struct tx, node), err);
	}
}

static void fail_arrivals(struct proto_ep *ep, struct list *arrivals, int err)
{
	list_foreach_safe (n, next, arrivals) {
		struct arrival *a = container_of(n, struct arrival, node);

		if (a->state == ARRIVAL_OWES_FIN || a->state == ARRIVAL_OWES_ACK) {
			arrival_release(ep, a);
		} else {
			rndv_fail(ep, a, err);
		}
	}
}

/* Announced messages that no receive was posted for can't be had any more. */
static void forget_announced(struct proto_ep *ep, struct proto_peer *pp)
{
	list_foreach_safe (n, next, &pp->announced) {
		struct arrival *a = container_of(n, struct arrival, node);

		receiver_forget(a);
		arrival_release(ep, a);
	}
}

static void on_down(void *arg, struct peer *p, int err)
{
	struct proto_ep *ep = arg;
	struct proto_peer *pp = proto_peer_of(p);

	/* Closed first, so that nothing that completes below starts anything. */
	pp->blocked = 0; /* whatever it was, the queues go */
	proto_block(pp, BLOCK_DOWN);
	pp->eager_max = 0;
	pp->small_max = 0;
	pp->soon_max = 0;
	credit_close(ep, pp);
	pp->counts.rows = 0;
	list_remove(&pp->active);
	fail_txs(ep, &pp->rma, err);
	pp->rma_done = pp->rma_posted;
	atomics_fail(ep, pp, err);
	results_drop(ep, pp);
	fail_txs(ep, &pp->waiting, err);
	fail_txs(ep, &pp->streams, err);
	fail_txs(ep, &pp->bulks, err);
	fail_txs(ep, &pp->helps, err);
	fail_txs(ep, &pp->msgs, err);
	fail_arrivals(ep, &pp->pulls, err);
	fail_arrivals(ep, &pp->streams_in, err);
	fail_arrivals(ep, &pp->owed, err);
	forget_announced(ep, pp);
	if (pp->refs == 0) {
		proto_peer_reap(ep, pp);
	}
}

static void orphan_done(struct proto_ep *ep, struct xfer *x)
{
	if (x->owner == XFER_TX) {
		tx_complete(ep, container_of(x, struct tx, x), x->err);
	} else {
		struct arrival *a = container_of(x, struct arrival, x);

		arrival_complete(ep, a, x->err);
		arrival_release(ep, a);
	}
}

static void on_hung_up(void *arg, struct wire_link *link)
{
	struct proto_ep *ep = arg;

	list_foreach_safe (n, next, &ep->orphan_txs) {
		struct tx *tx = container_of(n, struct tx, node);

		if (tx->link == link) {
			orphan_done(ep, &tx->x);
		}
	}
	list_foreach_safe (n, next, &ep->orphan_arrivals) {
		struct arrival *a = container_of(n, struct arrival, node);

		if (a->pull_link == link && !a->joint) {
			orphan_done(ep, &a->x);
		}
	}
}

static uint64_t on_now(void *arg)
{
	struct proto_ep *ep = arg;

	return ep->up->now(ep->arg);
}

const struct peer_ops proto_peer_ops = {
	.size = sizeof(struct proto_peer),
	.init = on_init,
	.fini = on_fini,
	.up = on_up,
	.ending = on_ending,
	.down = on_down,
	.hung_up = on_hung_up,
	.now = on_now,
};

void proto_segment_done(void *arg, struct wire_link *link, void *cookie, int err)
{
	struct proto_ep *ep = arg;
	struct xfer *x = cookie;
	struct proto_peer *pp;
	bool orphan;

	(void)link;
	if (unlikely(*(const uint8_t *)cookie == XFER_STAGED)) {
		x = stage_done(cookie, &err);
	}
	xfer_segment_done(x, err);
	if (x->owner == XFER_TX) {
		struct tx *tx = container_of(x, struct tx, x);

		pp = tx->peer;
		orphan = tx->state == TX_ORPHAN;
	} else {
		struct arrival *a = container_of(x, struct arrival, x);

		pp = a->peer;
		orphan = a->state == ARRIVAL_ORPHAN;
	}
	if (!orphan) {
		if (x->owner == XFER_ARRIVAL ||
		    !rma_done_now(ep, pp, container_of(x, struct tx, x))) {
			proto_activate(ep, pp);
		}
	} else if (x->inflight == 0) {
		orphan_done(ep, x);
	}
}

/* Whatever is not as usual finds its end the usual way. */
void proto_put_over(void *arg, struct wire_link *link, void *cookie)
{
	struct proto_ep *ep = arg;
	struct tx *tx = container_of((struct xfer *)cookie, struct tx, x);
	struct proto_peer *pp = tx->peer;
	uint32_t flags = tx->flags;

	if (unlikely(pp->rma.next != &tx->node || tx->state != TX_RMA || tx->x.err ||
		     ep->closing)) {
		proto_segment_done(arg, link, cookie, 0);
		return;
	}
	pp->rma_done++;
	list_unlink(&tx->node);
	if (likely(list_empty(&pp->rma))) {
		proto_unblock(pp, BLOCK_RMA);
	} else if (!rma_next_waits(pp)) {
		proto_activate(ep, pp);
	}
	ep->injected -= !!(flags & PROTO_INJECT);
	tx_set_state(tx, TX_FREE);
	pool_release(&ep->tx, tx);
	ep->up->put_ok(ep->arg, tx->context, flags & PROTO_REPORT);
}

static bool is_useless(const struct proto_peer *pp)
{
	return pp->refs == 0 && list_empty(&pp->msgs) && list_empty(&pp->waiting) &&
	       list_empty(&pp->streams) && list_empty(&pp->bulks) &&
	       list_empty(&pp->helps) && list_empty(&pp->rma) &&
	       list_empty(&pp->atomics) &&
	       (pp->peer.state == PEER_IDLE || pp->peer.state == PEER_DOWN) &&
	       !peer_has_links(&pp->peer);
}

void proto_reap(struct proto_ep *ep)
{
	struct list *n;

	while ((n = list_pop_front(&ep->reap))) {
		struct proto_peer *pp = container_of(n, struct proto_peer, reap);

		if (is_useless(pp)) {
			list_remove(&pp->active);
			if (pp->ident != pp) {
				ident_leave(pp);
				proto_peer_unref(ep, pp->ident);
			}
			peer_free(&ep->peers, &pp->peer);
		}
	}
}
