/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous: a message is announced by its header (RTS) and takes its place in the match
 * order with it. Once it has a receive, the receiver pulls the data straight between the
 * two user buffers where the link can name peer memory (caps.raw), or asks for it by CTS
 * and gets a stream of DATA packets, or of CHUNKs: pieces in bulk slots (bulk.c). While
 * the receiver pulls, the sender may push from the other end (joint.c). FIN
 * gives the sender its buffer back.
 */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/mem/regcache.h"
#include "prov/proto/ep.h"
#include "prov/proto/stage.h"

/* DATA packets of one stream in a row, before others get their turn. */
#define STREAM_BURST 8

void rndv_unlend(struct proto_ep *ep, struct xfer *x)
{
	while (x->lends > 0) {
		ep->wire->unlend(ep->wep, x->lent[--x->lends]);
	}
}

/* All pieces, or none. */
static bool pieces_lend(struct proto_ep *ep, struct proto_peer *pp, struct xfer *x)
{
	struct wire_link *link = pp->peer.link;

	while (x->lends < x->local_count) {
		const struct iovec *piece = &x->local[x->lends];
		uint64_t name = wire_link_base(link)->ops->lend(link, piece->iov_base,
								piece->iov_len);

		if (!name) {
			rndv_unlend(ep, x);
			return false;
		}
		x->lent[x->lends++] = name;
	}
	return true;
}

/* What the receiver needs to pull the message: its pieces, and where they must be
 * registered or lent, their names. Returns how many; 0: it has to be streamed. */
static uint32_t pieces_name(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx,
			    struct pkt_view_iov iov[PKT_IOV_MAX],
			    uint64_t names[PKT_IOV_MAX])
{
	const struct wire_caps *caps = &wire_link_base(pp->peer.link)->caps;
	struct xfer *x = &tx->x;

	if (!caps->raw || !x->total || iov_is_device(x->local, x->local_count) ||
	    (caps->local && xfer_hold(x, ep->regs)) ||
	    (caps->lends && !pieces_lend(ep, pp, x))) {
		return 0;
	}
	for (uint32_t i = 0; i < x->local_count; i++) {
		iov[i].addr = (uintptr_t)x->local[i].iov_base;
		iov[i].len = x->local[i].iov_len;
		names[i] = caps->local && x->reg[i]
				   ? ep->wire->mem_name(ep->wep, x->reg[i]->handle)
			   : i < x->lends ? x->lent[i]
					  : 0;
		if (caps->local && x->reg[i] && !names[i]) {
			return 0;
		}
	}
	return x->local_count;
}

bool rts_send(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	struct pkt_view_iov iov[PKT_IOV_MAX];
	uint64_t names[PKT_IOV_MAX];
	void *pkt = link_reserve(pp->peer.link, PKT_RTS_MAX, WIRE_DATA);
	uint32_t flags = tx->flags & (PROTO_TAGGED | PROTO_DATA), count;
	size_t len;

	if (!pkt) {
		return false;
	}
	count = pieces_name(ep, pp, tx, iov, names);
	flags |= count && (tx->x.regs || tx->x.lends) ? PKT_F_NAMED : 0;
	len = pkt_put_rts(pkt, (uint8_t)flags, tx->tag, tx->data, pool_id(tx),
			  tx->x.total, iov, names, count);
	link_commit(pp->peer.link, pkt, len);
	list_remove(&tx->node);
	list_push_back(&pp->waiting, &tx->node);
	tx_set_state(tx, TX_WAIT_CTS);
	return true;
}

void rts_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v)
{
	struct arrival *a;

	if (!peer_link_is_current(&pp->peer, link)) {
		return; /* its sender was told that it failed */
	}
	a = arrival_alloc(ep, pp, link);
	if (!a) {
		proto_violation(ep, link);
		return;
	}
	a->announced = true;
	a->flags = v->flags & (PROTO_TAGGED | PROTO_DATA);
	a->tag = v->tag;
	a->data = v->data;
	a->len = v->total;
	a->tx_id = v->id;
	a->x.remote_count = v->len;
	if ((wire_link_base(link)->caps.local || wire_link_base(link)->caps.lends) &&
	    !(v->flags & PKT_F_NAMED)) {
		a->x.remote_count = 0; /* memory without a name can't be reached */
	}
	for (uint32_t i = 0; i < v->len; i++) {
		a->x.remote[i].addr = v->iov[i].addr;
		a->x.remote[i].len = v->iov[i].len;
		a->x.remote[i].key = v->flags & PKT_F_NAMED ? v->keys[i] : 0;
	}
	if (receiver_take(ep, pp, v->flags & PKT_F_TAGGED, v->tag, a->len, &a->claim)) {
		rndv_start(ep, a);
		return;
	}
	arrival_set_state(a, ARRIVAL_UNEXPECTED);
	list_push_back(&pp->announced, &a->node);
	receiver_keep(a);
}

void rndv_finish(struct proto_ep *ep, struct arrival *a, int err)
{
	list_remove(&a->node);
	arrival_complete(ep, a, err);
	a->fin_err = -err;
	arrival_set_state(a, ARRIVAL_OWES_FIN);
	owe(ep, a);
}

static void ask_for_stream(struct proto_ep *ep, struct arrival *a)
{
	list_remove(&a->node);
	a->arrived = 0;
	a->bulk = wire_link_base(a->peer->peer.link)->caps.bulk != 0;
	arrival_set_state(a, ARRIVAL_OWES_CTS);
	owe(ep, a);
}

/* Refused, but not for what the memory is: the stream may do better. */
static bool is_refusal(int err)
{
	return err == -FI_EACCES || err == -FI_EPERM || err == -FI_ENOSYS ||
	       err == -FI_EOPNOTSUPP || err == -FI_ENOKEY;
}

/* Streamed from the start, or on, if this was to be the rest of a stream (whose pieces
 * then still come: none was dropped). */
static void pull_refused(struct proto_ep *ep, struct arrival *a)
{
	a->can_pull = false;
	if (!a->bulk) {
		ask_for_stream(ep, a);
		return;
	}
	list_remove(&a->node);
	arrival_set_state(a, ARRIVAL_STREAM);
	list_push_back(&a->peer->streams_in, &a->node);
}

/* One turn of a pull; true when it has left ARRIVAL_PULL. */
static bool pull_step(struct proto_ep *ep, struct arrival *a, int *moved)
{
	int n;

	if (a->joint) {
		*moved += joint_pull(ep, a);
		if (a->joint) {
			return false;
		}
		/* Over, or the rest is this side's alone. */
	}
	n = xfer_run(&a->x, a->pull_link, ep->regs, XFER_STEP);
	*moved += n;
	if (!xfer_is_over(&a->x)) {
		ep->busy |= n > 0;
		return false;
	}
	if (a->x.err && (a->x.unheld || is_refusal(a->x.err)) && !a->lost) {
		pull_refused(ep, a);
	} else {
		rndv_finish(ep, a, a->x.err);
	}
	return true;
}

/* Pulls what is behind `offset`. */
static void pull_start(struct proto_ep *ep, struct arrival *a, uint64_t offset)
{
	struct xfer *x = &a->x;
	int moved = 0;

	arrival_set_state(a, ARRIVAL_PULL);
	/* Not by another one of the two that simultaneous dials make: where this one is
	 * gone, its sender was told that the message failed, and has the memory back. */
	a->pull_link = a->link;
	x->owner = XFER_ARRIVAL;
	x->put = false;
	x->raw = true;
	x->placed = false;
	x->local_count = a->claim.count;
	for (uint32_t i = 0; i < a->claim.count; i++) {
		x->local[i] = a->claim.iov[i];
	}
	x->total = a->want;
	x->stage = iov_is_device(x->local, x->local_count) ? ep->stage : NULL;
	x->waiting = NULL;
	xfer_seek(x, offset);
	/* Not begun here: others that were announced are offered first, so that the
	 * sender never waits for the next one. */
	if ((offset == 0 && !x->stage && joint_offer(ep, a)) ||
	    !pull_step(ep, a, &moved)) {
		list_push_back(&a->peer->pulls, &a->node);
		proto_activate(ep, a->peer);
	}
}

void rndv_start(struct proto_ep *ep, struct arrival *a)
{
	struct proto_peer *pp = a->peer;

	list_remove(&a->node);
	if (!proto_peer_is_up(pp) || a->epoch != pp->peer.epoch) {
		rndv_fail(ep, a, -FI_ECONNRESET);
		return;
	}
	a->want = a->len < a->claim.room ? a->len : a->claim.room;
	if (a->want == 0) {
		rndv_finish(ep, a, 0);
	} else if (a->x.remote_count && wire_link_base(a->link)->caps.raw) {
		a->can_pull = bulk_is_better(ep, pp, a->want);
		if (a->can_pull) {
			ask_for_stream(ep, a);
		} else {
			pull_start(ep, a, 0);
		}
	} else {
		ask_for_stream(ep, a);
	}
}

void rndv_discard(struct proto_ep *ep, struct arrival *a)
{
	list_remove(&a->node);
	a->fin_err = 0;
	arrival_set_state(a, ARRIVAL_OWES_FIN);
	owe(ep, a);
}

void rndv_take_over(struct proto_ep *ep, struct arrival *a)
{
	list_remove(&a->node);
	bulk_unwatch(a);
	pull_start(ep, a, a->arrived);
}

void rndv_fail(struct proto_ep *ep, struct arrival *a, int err)
{
	list_remove(&a->node);
	if (a->state == ARRIVAL_STREAM) {
		bulk_unwatch(a);
	}
	/* Rule D3: the buffer is still being written. */
	if (a->x.inflight || (a->joint && !joint_abandon(ep, a))) {
		if (!a->x.err) {
			a->x.err = err;
		}
		arrival_set_state(a, ARRIVAL_ORPHAN);
		list_push_back(&ep->orphan_arrivals, &a->node);
		return;
	}
	arrival_complete(ep, a, err);
	if (a->state == ARRIVAL_FREE) { /* matched on arrival, never had a state */
		arrival_set_state(a, ARRIVAL_OWES_FIN);
	}
	arrival_release(ep, a);
}

int pulls_run(struct proto_ep *ep, struct proto_peer *pp)
{
	int moved = 0;

	list_foreach_safe (n, next, &pp->pulls) {
		pull_step(ep, container_of(n, struct arrival, node), &moved);
	}
	return moved;
}

void cts_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v)
{
	struct tx *tx = tx_find(ep, pp, v->id);

	if (!tx || (tx->state != TX_WAIT_CTS && tx->state != TX_HELP)) {
		return; /* failed meanwhile */
	}
	if (v->total > tx->x.total) {
		proto_violation(ep, link);
		return;
	}
	pp = tx->peer;
	tx->rx_id = v->rx_id;
	tx->stream_off = 0;
	tx->stream_len = v->total;
	list_remove(&tx->node);
	bulk_open(pp, tx, v->flags & PKT_F_BULK);
	list_push_back(tx->bulk.granted ? &pp->bulks : &pp->streams, &tx->node);
	tx_set_state(tx, TX_STREAM);
	proto_activate(ep, pp);
}

bool stream_packet(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	size_t most =
		wire_link_base(pp->peer.link)->caps.max_packet - sizeof(struct pkt_data);
	uint64_t left = tx->stream_len - tx->stream_off;
	size_t len = left < most ? left : most, head;
	char *pkt = link_reserve(pp->peer.link, sizeof(struct pkt_data) + len, WIRE_DATA);

	if (!pkt) {
		return false;
	}
	head = pkt_put_data(pkt, tx->rx_id, tx->stream_off, len);
	if (iov_gather(tx->x.local, tx->x.local_count, tx->stream_off, pkt + head, len)) {
		proto_give_up(ep, pp);
		return false;
	}
	link_commit(pp->peer.link, pkt, head + len);
	tx->stream_off += len;
	return true;
}

bool stream_is_over(struct proto_peer *pp, struct tx *tx)
{
	if (tx->stream_off != tx->stream_len) {
		return false;
	}
	list_remove(&tx->node);
	list_push_back(&pp->waiting, &tx->node);
	tx_set_state(tx, TX_WAIT_FIN);
	return true;
}

/* A burst of one stream; -1: no room on the link, 0: all of it was sent. */
static int stream_step(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	for (int sent = 0; sent < STREAM_BURST; sent++) {
		if (!stream_packet(ep, pp, tx)) {
			return -1;
		}
		if (stream_is_over(pp, tx)) {
			return 0;
		}
	}
	ep->busy = true;
	return 1;
}

int streams_run(struct proto_ep *ep, struct proto_peer *pp)
{
	int moved = 0;

	list_foreach_safe (n, next, &pp->streams) {
		struct tx *tx = container_of(n, struct tx, node);
		uint64_t before = tx->stream_off;
		int ret = stream_step(ep, pp, tx);

		moved += ret >= 0 || tx->stream_off != before;
		if (ret != 0) { /* the next pass begins with the others */
			list_remove(n);
			list_push_back(&pp->streams, n);
		}
		if (ret < 0) {
			break;
		}
	}
	return moved;
}

void data_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		  const struct pkt_view *v)
{
	struct arrival *a = pool_find(&ep->arrivals, v->id);
	int err;

	if (!a || a->peer != pp || a->state != ARRIVAL_STREAM) {
		if (a && a->peer == pp && a->state == ARRIVAL_PULL) {
			a->lost = true;
		}
		return; /* failed meanwhile, or taken over */
	}
	if (v->offset != a->arrived || v->len > a->want - a->arrived) {
		proto_violation(ep, link);
		return;
	}
	err = iov_scatter(a->claim.iov, a->claim.count, v->offset, v->payload, v->len);
	if (unlikely(err)) {
		rndv_not_placed(ep, a, err);
		return;
	}
	rndv_placed(ep, a, v->len);
}

void rndv_not_placed(struct proto_ep *ep, struct arrival *a, int err)
{
	bulk_unwatch(a);
	rndv_finish(ep, a, err);
}

void rndv_placed(struct proto_ep *ep, struct arrival *a, size_t len)
{
	a->arrived += len;
	a->peer->bulk_in.seen = true;
	if (a->arrived == a->want) {
		bulk_unwatch(a);
		rndv_finish(ep, a, 0);
	}
}

void fin_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v)
{
	struct tx *tx = tx_find(ep, pp, v->id);

	(void)link;
	if (tx && (tx->state == TX_WAIT_CTS || tx->state == TX_HELP ||
		   tx->state == TX_STREAM || tx->state == TX_WAIT_FIN)) {
		tx_complete(ep, tx, -(int)v->len);
	}
}
