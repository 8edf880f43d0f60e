/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large messages through bulk slots: a stream (rndv.c) whose pieces lie in memory that
 * both processes map, so that the sender fills the next one while the receiver empties
 * the last. Few slots are out at a time, and those that were used last: they stay in the
 * caches.
 *
 * Slots go back in order: TAKEN says how far the receiver has read, FIN that it reads no
 * more. A sender without slots sends DATA packets instead, so that it never waits for
 * what a third party holds.
 *
 * Both sides must be at it at the same time. Where the receiver could pull just as well
 * and nothing comes for a while (the sender computes, or has no processor), it pulls the
 * rest, and tries slots less often with this peer.
 */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/proto/bulk_copy.h"
#include "prov/proto/ep.h"

/* Bytes of one message before it is another one's turn. */
#define BULK_TURN (1u << 20)
/* A message is cut in so many pieces at least, so that both sides are at work, unless
 * they would be too small to be worth a packet. */
#define BULK_PIECES    4
#define BULK_PIECE_MIN (16u << 10)
/* Slots filled in a row, before packets are looked at again. */
#define BULK_BURST 4
/* How long a receiver waits for a piece that it could pull. */
#define BULK_PATIENCE_NS 100000
#define BULK_PENALTY_MAX 64

/* ---- sender ------------------------------------------------------------------------ */

void bulk_open(struct proto_peer *pp, struct tx *tx, bool granted)
{
	size_t slot = wire_link_base(pp->peer.link)->ops->caps.bulk;
	uint64_t piece = (tx->stream_len / BULK_PIECES + 4095) & ~(uint64_t)4095;

	if (piece < BULK_PIECE_MIN) {
		piece = BULK_PIECE_MIN;
	}
	tx->bulk.granted = granted && slot != 0;
	tx->bulk.first = 0;
	tx->bulk.count = 0;
	tx->bulk.turn_left = BULK_TURN;
	tx->bulk.chunk = (uint32_t)(piece < slot ? piece : slot);
}

void bulk_release(struct proto_ep *ep, struct tx *tx, uint64_t offset)
{
	struct bulk_out *b = &tx->bulk;

	while (b->count > 0 && b->end[b->first] <= offset) {
		ep->wire->bulk_put(ep->wep, b->slot[b->first]);
		b->first = (b->first + 1) % BULK_DEPTH;
		b->count--;
		tx->peer->bulk_out--;
		/* Somebody may have waited for a slot, and no event will tell. */
		ep->busy = true;
	}
}

enum sent { SENT_ONE, SENT_LAST, SENT_NONE };

/* The next piece. */
static enum sent chunk_send(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	struct bulk_out *b = &tx->bulk;
	uint64_t left = tx->stream_len - tx->stream_off;
	uint32_t len = left < b->chunk ? (uint32_t)left : b->chunk;
	uint32_t at = (b->first + b->count) % BULK_DEPTH;
	struct wire_bulk slot;
	void *pkt;

	pkt = link_reserve(pp->peer.link, sizeof(struct pkt_chunk), WIRE_DATA);
	if (!pkt) {
		return SENT_NONE;
	}
	if (ep->wire->bulk_get(ep->wep, &slot)) {
		/* With slots out, one comes back soon. */
		if (pp->bulk_out || !stream_packet(ep, pp, tx)) {
			return SENT_NONE;
		}
		return stream_is_over(pp, tx) ? SENT_LAST : SENT_ONE;
	}
	if (bulk_gather(tx->x.local, tx->x.local_count, tx->stream_off, slot.at, len)) {
		ep->wire->bulk_put(ep->wep, slot.slot);
		proto_give_up(ep, pp);
		return SENT_NONE;
	}
	link_commit(
		pp->peer.link, pkt,
		pkt_put_chunk(pkt, tx->rx_id, tx->stream_off, len, slot.slot, slot.turn));
	tx->stream_off += len;
	b->slot[at] = slot.slot;
	b->end[at] = tx->stream_off;
	b->count++;
	pp->bulk_out++;
	b->turn_left -= len < b->turn_left ? len : b->turn_left;
	return stream_is_over(pp, tx) ? SENT_LAST : SENT_ONE;
}

int bulks_run(struct proto_ep *ep, struct proto_peer *pp)
{
	int moved = 0;

	list_foreach_safe (n, next, &pp->bulks) {
		struct tx *tx = container_of(n, struct tx, node);
		enum sent sent = SENT_ONE;

		while (sent == SENT_ONE && tx->bulk.count < BULK_DEPTH &&
		       tx->bulk.turn_left) {
			if (pp->bulk_out >= BULK_WINDOW) {
				return moved;
			}
			if (moved == BULK_BURST) {
				ep->busy = true;
				return moved;
			}
			sent = chunk_send(ep, pp, tx);
			if (sent == SENT_NONE) {
				return moved;
			}
			moved++;
		}
		if (sent == SENT_ONE && !tx->bulk.turn_left) {
			tx->bulk.turn_left = BULK_TURN;
			list_remove(n);
			list_push_back(&pp->bulks, n);
			ep->busy = true;
		}
	}
	return moved;
}

void taken_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v)
{
	struct tx *tx = tx_find(ep, pp, v->id);

	if (!tx || (tx->state != TX_STREAM && tx->state != TX_WAIT_FIN)) {
		return; /* failed meanwhile */
	}
	if (v->offset > tx->stream_off) {
		proto_violation(ep, link);
		return;
	}
	bulk_release(ep, tx, v->offset);
	proto_activate(ep, tx->peer);
}

/* ---- receiver ---------------------------------------------------------------------- */

void bulk_in_reset(struct proto_peer *pp)
{
	pp->bulk_in = (struct bulk_in){0};
}

bool bulk_is_better(struct proto_ep *ep, struct proto_peer *pp, uint64_t len)
{
	struct bulk_in *b = &pp->bulk_in;

	if (wire_link_base(pp->peer.link)->caps.bulk == 0 || len < ep->bulk_size) {
		return false;
	}
	if (b->skip) {
		b->skip--;
		return false;
	}
	return true;
}

void bulk_watch(struct proto_ep *ep, struct arrival *a)
{
	a->peer->bulk_in.watched++;
	a->peer->bulk_in.seen = true; /* the time begins now */
	proto_activate(ep, a->peer);
}

void bulk_unwatch(struct arrival *a)
{
	if (a->can_pull) {
		a->can_pull = false;
		a->peer->bulk_in.watched--;
	}
}

/* False: no room. */
static bool taken_send(struct proto_peer *pp, struct arrival *a)
{
	void *pkt = link_reserve(pp->peer.link, sizeof(struct pkt_taken), WIRE_CONTROL);

	a->owes_taken = !pkt;
	if (!pkt) {
		return false;
	}
	link_commit(pp->peer.link, pkt, pkt_put_taken(pkt, a->tx_id, a->arrived));
	return true;
}

int taken_run(struct proto_peer *pp)
{
	int sent = 0;

	pp->bulk_in.owes_taken = false;
	list_foreach (n, &pp->streams_in) {
		struct arrival *a = container_of(n, struct arrival, node);

		if (!a->owes_taken) {
			continue;
		}
		if (!taken_send(pp, a)) {
			pp->bulk_in.owes_taken = true;
			break;
		}
		sent++;
	}
	return sent;
}

void chunk_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v)
{
	struct arrival *a = pool_find(&ep->arrivals, v->id);
	struct wire_link *from = pp->peer.link; /* all links have the same slots */
	const void *at;
	int err;

	if (!a || a->peer != pp || a->state != ARRIVAL_STREAM) {
		if (a && a->peer == pp && a->state == ARRIVAL_PULL) {
			a->lost = true;
		}
		return; /* failed meanwhile, or taken over */
	}
	if (!a->bulk || v->offset != a->arrived || v->len > a->want - a->arrived ||
	    !(at = link_ops(from)->bulk_peer(from, v->slot, v->len))) {
		proto_violation(ep, link);
		return;
	}
	err = bulk_scatter(a->claim.iov, a->claim.count, v->offset, at, v->len);
	if (!link_ops(from)->bulk_holds(from, v->slot, v->turn)) {
		proto_violation(ep, link);
		return;
	}
	if (unlikely(err)) {
		rndv_not_placed(ep, a, err);
		return;
	}
	if (a->arrived + v->len == a->want) {
		pp->bulk_in.penalty /= 2;
		rndv_placed(ep, a, v->len);
		return;
	}
	rndv_placed(ep, a, v->len);
	if (!taken_send(pp, a)) {
		pp->bulk_in.owes_taken = true;
		proto_activate(ep, pp);
	}
}

/* The oldest message that could be pulled. */
static struct arrival *oldest_watched(struct proto_peer *pp)
{
	list_foreach (n, &pp->streams_in) {
		struct arrival *a = container_of(n, struct arrival, node);

		if (a->can_pull) {
			return a;
		}
	}
	return NULL;
}

int bulks_in_run(struct proto_ep *ep, struct proto_peer *pp)
{
	struct bulk_in *b = &pp->bulk_in;
	struct arrival *a;
	uint64_t now;

	if (likely(!b->watched)) {
		return 0;
	}
	ep->busy = true; /* nothing but the clock tells when it is enough */
	if (b->seen) {
		b->seen = false;
		b->since = 0;
		return 0;
	}
	now = ep->up->now(ep->arg);
	if (b->since == 0) {
		b->since = now;
		return 0;
	}
	a = now - b->since < BULK_PATIENCE_NS ? NULL : oldest_watched(pp);
	if (!a) {
		return 0;
	}
	b->penalty =
		b->penalty < BULK_PENALTY_MAX / 2 ? 2 * b->penalty + 1 : BULK_PENALTY_MAX;
	b->skip = b->penalty;
	rndv_take_over(ep, a);
	return 1;
}
