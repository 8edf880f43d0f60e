/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives: posting, claiming, completing, cancelling. */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"

static const char *const state_names[] = {
	[RX_FREE] = "free",
	[RX_OPEN] = "open",
	[RX_POSTED] = "posted",
	[RX_DRAINING] = "draining",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == RX_STATES, "names");

const char *rx_state_name(enum rx_state s)
{
	return s < RX_STATES ? state_names[s] : "?";
}

static struct match_queue *rx_queue(struct proto_ep *ep, const struct rx *rx)
{
	return &ep->match[rx->flags & PROTO_TAGGED];
}

size_t rx_len(const struct rx *rx)
{
	size_t len = 0;

	for (uint32_t i = 0; i < rx->count; i++) {
		len += rx->iov[i].iov_len;
	}
	return len;
}

void rx_release(struct proto_ep *ep, struct rx *rx)
{
	if (unlikely(rx->m.source)) {
		proto_peer_unref(ep, (struct proto_peer *)(uintptr_t)rx->m.source);
	}
	rx_set_state(rx, RX_FREE);
	pool_release(&ep->rx, rx);
}

/* The next message's piece of a multi-receive buffer. */
static void multi_take(struct proto_ep *ep, struct rx *rx, uint64_t len,
		       struct rx_claim *claim)
{
	size_t left = rx_len(rx) - rx->used;

	claim->multi = rx;
	claim->buf = (char *)rx->iov[0].iov_base + rx->used;
	claim->room = left;
	claim->count = 1;
	claim->iov[0] = (struct iovec){claim->buf, left};
	rx->used += len < left ? len : left;
	rx->pending++;
	left = rx_len(rx) - rx->used;
	if (left == 0 || left < rx->min_free) {
		if (rx->state == RX_POSTED) {
			match_recv_remove(rx_queue(ep, rx), &rx->m);
		}
		rx_set_state(rx, RX_DRAINING);
	}
}

void rx_take(struct proto_ep *ep, struct rx *rx, uint64_t len, struct rx_claim *claim)
{
	claim->context = rx->context;
	claim->flags = rx->flags;
	if (rx->flags & PROTO_MULTI) {
		multi_take(ep, rx, len, claim);
		return;
	}
	claim->multi = NULL;
	claim->buf = NULL;
	claim->room = rx_len(rx);
	claim->count = rx->count;
	for (uint32_t i = 0; i < rx->count; i++) {
		claim->iov[i] = rx->iov[i];
	}
	if (rx->state == RX_POSTED) {
		match_recv_remove(rx_queue(ep, rx), &rx->m);
	}
	rx_release(ep, rx);
}

static void cancelled(struct proto_ep *ep, const struct rx *rx)
{
	struct proto_done d = {
		.context = rx->context,
		.flags = FI_RECV | ((rx->flags & PROTO_TAGGED) ? FI_TAGGED : FI_MSG) |
			 ((rx->flags & PROTO_MULTI) ? FI_MULTI_RECV : 0),
		.tag = rx->m.tag,
		.source = FI_ADDR_NOTAVAIL,
		.report = true,
		.err = FI_ECANCELED};

	if (!ep->closing) {
		ep->up->rx_done(ep->arg, &d);
	}
}

void rx_finish(struct proto_ep *ep, const struct rx_claim *claim,
	       const struct rx_result *r)
{
	struct proto_done d = {.context = claim->context,
			       .flags = FI_RECV |
					((r->flags & PROTO_TAGGED) ? FI_TAGGED : FI_MSG) |
					((r->flags & PROTO_DATA) ? FI_REMOTE_CQ_DATA : 0),
			       .len = r->len,
			       .buf = claim->buf,
			       .data = r->data,
			       .tag = r->tag,
			       .source = r->source,
			       .err = -r->err,
			       .report = r->err || (claim->flags & PROTO_REPORT)};
	struct rx *multi = claim->multi;
	bool release = false;

	if (r->err) {
		d.len = 0;
	} else if (r->len > claim->room) {
		d.len = claim->room;
		d.olen = r->len - claim->room;
		d.err = FI_ETRUNC;
		d.report = true;
	}
	if (multi && --multi->pending == 0 && multi->state == RX_DRAINING) {
		release = true;
		if (!multi->cancelled) {
			d.flags |= FI_MULTI_RECV;
			d.report = true;
		}
	}
	if (!ep->closing) {
		ep->up->rx_done(ep->arg, &d);
	}
	if (release) {
		if (multi->cancelled) {
			cancelled(ep, multi);
		}
		rx_release(ep, multi);
	}
}

/* Starts the message that rx takes from the unexpected ones. */
static void take_unexpected(struct proto_ep *ep, struct rx *rx, struct arrival *a)
{
	match_msg_remove(rx_queue(ep, rx), &a->m);
	rx_take(ep, rx, a->len, &a->claim);
	if (a->announced) {
		rndv_start(ep, a);
	} else {
		eager_matched(ep, a, &a->claim);
	}
}

ssize_t proto_recv(struct proto_ep *ep, const struct proto_recv *r)
{
	struct match_queue *q = &ep->match[r->flags & PROTO_TAGGED];
	struct rx *rx = pool_alloc(&ep->rx);

	if (unlikely(!rx)) {
		return -FI_EAGAIN;
	}
	rx_set_state(rx, RX_OPEN);
	rx->flags = r->flags;
	rx->usual = -1;
	rx->context = r->context;
	rx->m.source = r->source ? r->source->ident : NULL;
	rx->m.tag = r->tag;
	rx->m.ignore = r->ignore;
	rx->count = r->count;
	for (size_t i = 0; i < r->count; i++) {
		rx->iov[i] = r->iov[i];
	}
	if (r->count == 1 && (r->flags & (PROTO_REPORT | PROTO_MULTI)) == PROTO_REPORT) {
		rx->usual = (int64_t)r->iov[0].iov_len;
	}
	if (unlikely(r->source)) {
		proto_peer_ref(r->source->ident);
	}
	if (unlikely(r->flags & PROTO_MULTI)) {
		rx->used = 0;
		rx->pending = 0;
		rx->cancelled = false;
		rx->min_free = ep->min_multi_recv;
	}
	if (unlikely(q->msg_count)) {
		struct match_msg *m;
		bool multi = r->flags & PROTO_MULTI;
		uint32_t gen = rx->obj.gen;

		while ((m = match_msg_find(q, &rx->m))) {
			take_unexpected(ep, rx, container_of(m, struct arrival, m));
			if (!multi || rx->obj.gen != gen || rx->state != RX_OPEN) {
				return 0;
			}
		}
	}
	match_recv_add(q, &rx->m);
	rx_set_state(rx, RX_POSTED);
	return 0;
}

void rx_retarget(struct proto_ep *ep, struct proto_peer *from, struct proto_peer *to)
{
	for (uint32_t i = 0; i < pool_limit(&ep->rx); i++) {
		struct rx *rx = pool_at(&ep->rx, i);

		if (rx->state == RX_FREE || rx->m.source != from) {
			continue;
		}
		if (rx->state == RX_POSTED) {
			match_recv_retarget(rx_queue(ep, rx), &rx->m, to);
		} else {
			rx->m.source = to;
		}
		proto_peer_ref(to);
		proto_peer_unref(ep, from);
	}
}

bool proto_cancel(struct proto_ep *ep, const void *context)
{
	struct rx *found = NULL;

	for (uint32_t i = 0; i < pool_limit(&ep->rx); i++) {
		struct rx *rx = pool_at(&ep->rx, i);

		if (rx->state == RX_POSTED && rx->context == context &&
		    (!found || rx->m.stamp < found->m.stamp)) {
			found = rx;
		}
	}
	if (!found) {
		return false;
	}
	match_recv_remove(rx_queue(ep, found), &found->m);
	if ((found->flags & PROTO_MULTI) && found->pending) {
		found->cancelled = true;
		rx_set_state(found, RX_DRAINING);
		return true;
	}
	cancelled(ep, found);
	rx_release(ep, found);
	return true;
}
