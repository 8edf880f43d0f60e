/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA: one FIFO per peer. An operation starts when those before it are done, or, where
 * the link keeps segments of a lane in order (or no order was granted), when all their
 * segments are under way. They retire in order. The remote event of a write with data
 * leaves after its data is done, or with it where the link has notices: then the link
 * sees to it that the target hears of it once all is there.
 */
#include "config.h"

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"
#include "prov/proto/small.h"
#include "prov/proto/stage.h"

static bool event_send(struct proto_peer *pp, struct tx *tx)
{
	void *pkt = link_reserve(pp->peer.link, sizeof(struct pkt_event), WIRE_DATA);

	if (!pkt) {
		return false;
	}
	link_commit(pp->peer.link, pkt, pkt_put_event(pkt, tx->data, tx->x.total));
	return true;
}

/* What a link with notices says to the target of this operation together with its last
 * byte; 0: nothing. An event says how long the whole write is, a notice how long its one
 * piece. */
static uint32_t notice_of(const struct proto_peer *pp, const struct tx *tx)
{
	if (!wire_link_base(pp->peer.link)->caps.notify || !tx->x.put || tx->x.stage ||
	    !(tx->flags & PROTO_DATA) || tx->x.remote_count != 1 || tx->x.issued ||
	    tx->x.inflight || tx->x.total > WIRE_NOTIFY_MAX) {
		return 0;
	}
	return PKT_NOTICE_EVENT;
}

/* Moves what there is room for. How many segments were started; negative: a notice has no
 * room, which must not look like the end of an operation of no bytes. */
static int rma_move(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx,
		    size_t budget)
{
	uint32_t op = tx->notice ? 0 : notice_of(pp, tx);
	const struct wire_notice n = {
		.data = tx->data, .op = op, .ordered = ep->order_rma};

	if (!op) {
		return xfer_run(&tx->x, tx->link, ep->regs, budget);
	}
	if (!xfer_notify(&tx->x, tx->link, ep->regs, &n)) {
		return -1;
	}
	tx->notice = op;
	return 1;
}

/* It is done: its target's counters and its data. False: no room. */
static bool target_told(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	if (tx->wanted) {
		if (!counts_add(ep, pp, tx, tx->wanted)) {
			return false;
		}
		tx->wanted = 0;
	}
	return !(tx->flags & PROTO_DATA) || tx->notice || event_send(pp, tx);
}

/* One turn of one operation; true when the next one may have its turn. */
static bool rma_step(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx,
		     size_t *budget, int *moved)
{
	bool serial = ep->order_rma && !wire_link_base(pp->peer.link)->caps.ordered;

	if (pp->atomics_done < tx->atomic_barrier) { /* rule E2 */
		return false;
	}
	if (tx->state == TX_RMA) {
		size_t before = tx->x.issued;
		int n;

		tx->link = pp->peer.link;
		n = rma_move(ep, pp, tx, *budget);
		if (n < 0) {
			return false;
		}
		*moved += n;
		before = tx->x.issued - before;
		*budget -= before < *budget ? before : *budget;
		if (!xfer_is_over(&tx->x)) {
			ep->busy |= n > 0 && !xfer_is_issued(&tx->x);
			return xfer_is_issued(&tx->x) && !serial;
		}
		tx->wanted = tx->x.err ? 0 : counts_wanted(pp);
		tx_set_state(tx, tx->wanted || (!tx->x.err && !tx->notice &&
						(tx->flags & PROTO_DATA))
					 ? TX_EVENT
					 : TX_OVER);
	}
	if (tx->state == TX_EVENT) {
		if (!target_told(ep, pp, tx)) {
			return false;
		}
		tx_set_state(tx, TX_OVER);
	}
	return true;
}

int rma_run(struct proto_ep *ep, struct proto_peer *pp)
{
	size_t budget = XFER_STEP;
	int moved = 0;

	list_foreach (n, &pp->rma) {
		if (!rma_step(ep, pp, container_of(n, struct tx, node), &budget,
			      &moved)) {
			break;
		}
		if (budget == 0) {
			ep->busy = true;
			break;
		}
	}
	while (!list_empty(&pp->rma)) {
		struct tx *tx = container_of(pp->rma.next, struct tx, node);

		if (tx->state != TX_OVER) {
			return moved;
		}
		pp->rma_done++;
		moved++;
		tx_complete(ep, tx, tx->x.err);
	}
	proto_unblock(pp, BLOCK_RMA);
	return moved;
}

/* It goes as far as it can now, and on with progress. */
static void rma_begin(struct proto_ep *ep, struct proto_peer *pp)
{
	rma_run(ep, pp);
	if (!list_empty(&pp->rma)) {
		proto_activate(ep, pp);
	}
}

void rma_refused(struct proto_ep *ep, struct tx *tx)
{
	tx->x.local_off = 0;
	tx->x.remote_off = 0;
	tx->x.issued = 0;
	tx->x.inflight = 0;
	rma_begin(ep, tx->peer);
}

ssize_t proto_rma(struct proto_ep *ep, struct proto_peer *pp, const struct proto_rma *r)
{
	struct tx *tx = proto_fence_holds(pp, r->flags) ? NULL : tx_alloc(ep, pp);
	struct xfer *x;
	int err;

	if (!tx) {
		return -FI_EAGAIN;
	}
	tx->flags = r->flags;
	tx->context = r->context;
	tx->data = r->data;
	tx->atomic_barrier = ep->order_atomic ? pp->atomics_posted : 0;
	tx->notice = 0;
	x = &tx->x;
	x->owner = XFER_TX;
	x->put = r->flags & PROTO_WRITE;
	x->raw = false;
	/* What comes behind it in order starts when it is done: in memory (rule E2). */
	x->placed = (r->flags & PROTO_DELIVERY) || ep->order_after_put;
	x->local_at = 0;
	x->remote_at = 0;
	x->local_off = 0;
	x->remote_off = 0;
	x->issued = 0;
	x->inflight = 0;
	x->err = 0;
	x->remote_count = r->remote_count;
	for (size_t i = 0; i < r->remote_count; i++) {
		x->remote[i].addr = r->remote[i].addr;
		x->remote[i].len = r->remote[i].len;
		x->remote[i].key = r->remote[i].key;
	}
	err = tx_take_iov(ep, tx, r->iov, r->count, r->len);
	if (unlikely(err)) {
		return err;
	}
	if (unlikely(ep->stage && iov_is_device(x->local, x->local_count))) {
		x->stage = ep->stage;
		x->waiting = NULL;
	}
	tx_set_state(tx, TX_RMA);
	pp->rma_posted++;
	list_push_back(&pp->rma, &tx->node);
	if (ep->order_msg_after_rma) {
		proto_block(pp, BLOCK_RMA);
	}
	if (proto_peer_is_up(pp)) {
		rma_begin(ep, pp);
	} else {
		peer_connect(&ep->peers, &pp->peer);
	}
	return 0;
}

bool rma_done_now(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	if (tx->state != TX_RMA || pp->rma.next != &tx->node || !xfer_is_over(&tx->x) ||
	    tx->x.err || (tx->flags & PROTO_DATA && !tx->notice) || counts_wanted(pp)) {
		return false;
	}
	pp->rma_done++;
	tx_complete_rma(ep, tx);
	if (list_empty(&pp->rma)) {
		proto_unblock(pp, BLOCK_RMA);
		return true;
	}
	/* Who waits for its end, or is over itself, wants a turn. */
	return rma_next_waits(pp);
}

void event_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v)
{
	struct proto_done d = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			       .len = v->total,
			       .data = v->data,
			       .source = pp->source,
			       .report = true};

	(void)link;
	ep->up->remote_done(ep->arg, &d);
}
