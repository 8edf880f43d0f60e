/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frequent operations, inline: messages of one piece that leave at once, plain
 * receives, and puts and gets of one piece that are done at once. For callers of engine.h
 * that want no call in between; what is inside the endpoint is none of their business all
 * the same. Endpoint lock held.
 *
 * Where one of these says no, nothing has happened, and the calls of engine.h find out
 * what to do.
 */
#ifndef WEFT_PROTO_SMALL_H
#define WEFT_PROTO_SMALL_H

#include "prov/proto/ep.h"
#include "util/copy.h"

/* Bytes in front of the payload; flags: of PROTO_TAGGED and PROTO_DATA. */
static inline size_t proto_small_head(uint32_t flags)
{
	return sizeof(struct pkt_eager) + (flags & PROTO_DATA ? sizeof(uint64_t) : 0);
}

/* The peer to which a message of len bytes can leave now, if it is small or, with any,
 * if it may leave as one packet: proto_small_write and proto_small_commit must follow,
 * with the same flags. NULL: no. */
static inline struct proto_peer *proto_small_open(struct proto_ep *ep, uint64_t fi_addr,
						  size_t len, uint32_t flags, bool any)
{
	struct proto_peer *pp = likely(fi_addr < ep->map_len) ? ep->map[fi_addr] : NULL;
	int64_t whole = (int64_t)(len + proto_small_head(flags));
	int64_t credit;

	/* Unsigned first: a length that is out of range is out of any. */
	if (unlikely(!pp || len > (any ? pp->eager_max : pp->small_max) ||
		     whole > pp->slot->room)) {
		return NULL;
	}
	credit = pp->credit - CREDIT_MSG - (int64_t)len;
	if (unlikely(credit < 0)) {
		return NULL;
	}
	pp->credit = credit;
	return pp;
}

/* data: with PROTO_DATA. From here on buf is the caller's. */
static inline void proto_small_write(struct proto_peer *pp, const void *buf, size_t len,
				     uint64_t tag, uint64_t data, uint32_t flags,
				     bool any)
{
	char *at = pp->slot->at;

	if (flags & PROTO_DATA) {
		pkt_put_plain_data(at, flags & PROTO_TAGGED, len, tag, data);
	} else {
		pkt_put_plain(at, flags, len, tag);
	}
	if (any) {
		copy_any(at + proto_small_head(flags), buf, len);
	} else {
		copy_small(at + proto_small_head(flags), buf, len);
	}
}

/* It leaves, and is complete: no tx_done follows. */
static inline void proto_small_commit(struct proto_peer *pp, size_t len, uint32_t flags)
{
	link_commit(pp->peer.link, pp->slot->at, len + proto_small_head(flags));
}

static inline void rx_fill(struct rx *rx, void *buf, size_t len, void *context,
			   uint32_t flags)
{
	rx->flags = flags | PROTO_REPORT;
	rx->context = context;
	rx->count = 1;
	rx->usual = (int64_t)len;
	rx->iov[0].iov_base = buf;
	rx->iov[0].iov_len = len;
}

/* A receive of one piece for one message with exactly this tag, from anybody,
 * that reports. flags: 0 or PROTO_TAGGED. */
static inline bool proto_small_recv(struct proto_ep *ep, void *buf, size_t len,
				    uint64_t tag, void *context, uint32_t flags)
{
	struct receiver *rcv = ep->rcv;
	struct match_queue *q = &rcv->match[flags & PROTO_TAGGED];
	struct rx *rx = (struct rx *)rcv->rx.free;

	/* No buffer is that long: a length that was negative. */
	if (unlikely(q->msg_count || !rx || (int64_t)len < 0)) {
		return false;
	}
	rx = pool_alloc(&rcv->rx);
	rx_fill(rx, buf, len, context, flags);
	match_recv_add_any(q, &rx->m, tag);
	rx_set_state(rx, RX_POSTED);
	return true;
}

/* The same from one source (NULL: from anybody), with bits of the tag that don't count.
 */
static inline bool proto_small_recv_special(struct proto_ep *ep, void *buf, size_t len,
					    struct proto_peer *source, uint64_t tag,
					    uint64_t ignore, void *context,
					    uint32_t flags)
{
	struct receiver *rcv = ep->rcv;
	struct match_queue *q = &rcv->match[flags & PROTO_TAGGED];
	struct rx *rx = (struct rx *)rcv->rx.free;

	if (unlikely(q->msg_count || !rx || (int64_t)len < 0)) {
		return false;
	}
	rx = pool_alloc(&rcv->rx);
	rx_fill(rx, buf, len, context, flags);
	rx->m.source = NULL;
	if (source) {
		struct sender *sender = sender_ident(source->sender);

		rx->m.source = sender;
		sender_ref(sender);
	}
	rx->m.tag = tag;
	rx->m.ignore = ignore;
	match_recv_add(q, &rx->m);
	rx_set_state(rx, RX_POSTED);
	return true;
}

/* The peer for a put or get of len bytes that may be tried now; NULL: none. Nothing that
 * order could keep it behind (rule E2) is under way to such a peer. */
static inline struct proto_peer *proto_now_open(struct proto_ep *ep, uint64_t fi_addr,
						size_t len)
{
	struct proto_peer *pp = likely(fi_addr < ep->map_len) ? ep->map[fi_addr] : NULL;

	if (unlikely(!pp || !proto_peer_is_up(pp) || !list_empty(&pp->rma) ||
		     (pp->atomics_done != pp->atomics_posted && ep->order_atomic) ||
		     len - 1 >= XFER_STEP || !link_ops(pp->peer.link)->put_now)) {
		return NULL;
	}
	return pp;
}

/* True: it is done and complete, no tx_done follows. */
static inline bool proto_now_put(struct proto_peer *pp, uint64_t key, uint64_t addr,
				 const void *from, size_t len)
{
	return link_ops(pp->peer.link)->put_now(pp->peer.link, key, addr, from, len);
}

static inline bool proto_now_get(struct proto_peer *pp, uint64_t key, uint64_t addr,
				 void *to, size_t len)
{
	return link_ops(pp->peer.link)->get_now(pp->peer.link, key, addr, to, len);
}

/* The peer to which a put of len bytes may be tried that its link takes at once, though
 * it isn't done then, if it may leave just now; NULL: none. */
static inline struct proto_peer *proto_soon_open(struct proto_ep *ep, uint64_t fi_addr,
						 size_t len)
{
	struct proto_peer *pp = likely(fi_addr < ep->map_len) ? ep->map[fi_addr] : NULL;

	if (!pp || len - 1 >= pp->soon_max ||
	    (ep->order_atomic && pp->atomics_done != pp->atomics_posted) ||
	    (!list_empty(&pp->rma) && !rma_may_join(ep, pp))) {
		return NULL;
	}
	return pp;
}

/* True: posted, put_ok or tx_done follows; false: no operation is left. flags: 0,
 * PROTO_REPORT or PROTO_INJECT. All that the caller gave is used up before the call of
 * the link, so that nothing of it must be kept over that. */
LOCK_HELD(lock_domain)
static inline __attribute__((always_inline)) bool proto_soon_put(
	struct proto_ep *ep, struct proto_peer *pp, uint64_t key, uint64_t addr,
	const void *from, size_t len, void *context, uint32_t flags)
{
	struct wire_link *link = pp->peer.link;
	struct tx *tx = pool_alloc(&ep->tx);

	if (unlikely(!tx)) {
		return false;
	}
	if (flags & PROTO_INJECT) {
		copy_any(tx->bounce, from, len);
		from = tx->bounce;
		ep->injected++;
	}
	tx->peer = pp;
	tx->bulk.count = 0;
	tx->flags = flags | PROTO_WRITE;
	tx->context = context;
	tx->link = link;
	tx->atomic_barrier = 0;
	tx->notice = tx->wanted = 0;
	tx->x.owner = XFER_TX;
	tx->x.put = true;
	tx->x.raw = tx->x.placed = false;
	tx->x.local_count = tx->x.remote_count = 1;
	tx->x.local_at = tx->x.remote_at = 0;
	tx->x.local[0] = (struct iovec){(void *)(uintptr_t)from, len};
	tx->x.remote[0] = (struct xfer_remote){.addr = addr, .len = len, .key = key};
	tx->x.total = tx->x.issued = len;
	tx->x.inflight = 1;
	tx->x.err = 0;
	tx_set_state(tx, TX_RMA);
	pp->rma_posted++;
	list_push_back(&pp->rma, &tx->node);
	if (ep->order_msg_after_rma) {
		proto_block(pp, BLOCK_RMA);
	}
	if (unlikely(!link_ops(link)->put_soon(link, key, addr, from, len, &tx->x))) {
		rma_refused(ep, tx);
	}
	return true;
}

/* Whether the remote event of a put can leave behind it; asked before the put. */
static inline bool proto_now_has_room(const struct proto_peer *pp)
{
	return pp->slot->room >= (int64_t)sizeof(struct pkt_event);
}

static inline void proto_now_event(struct proto_peer *pp, uint64_t data, size_t len)
{
	void *at = pp->slot->at;

	link_commit(pp->peer.link, at, pkt_put_event(at, data, len));
}

#endif
