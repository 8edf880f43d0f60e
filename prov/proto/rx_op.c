/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives: posting, claiming, completing, cancelling. */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
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

static struct match_queue *rx_queue(struct receiver *rcv, const struct rx *rx)
{
	return &rcv->match[rx->flags & PROTO_TAGGED];
}

/* One more chunk; false: there may be none, or there is no memory. */
static bool rx_grow(struct receiver *rcv)
{
	if (pool_limit(&rcv->rx) >= rcv->rx_max || pool_grow(&rcv->rx)) {
		return false;
	}
	match_queue_reserve(&rcv->match[0], pool_limit(&rcv->rx));
	match_queue_reserve(&rcv->match[1], pool_limit(&rcv->rx));
	return true;
}

int rx_pool_init(struct receiver *rcv, uint32_t size)
{
	int ret = pool_init(&rcv->rx, sizeof(struct rx), ops_chunk(size));

	while (!ret && pool_limit(&rcv->rx) < size) {
		ret = rx_grow(rcv) ? 0 : -FI_ENOMEM;
	}
	return ret;
}

size_t rx_len(const struct rx *rx)
{
	size_t len = 0;

	for (uint32_t i = 0; i < rx->count; i++) {
		len += rx->iov[i].iov_len;
	}
	return len;
}

void rx_release(struct receiver *rcv, struct rx *rx)
{
	if (unlikely(rx->m.source)) {
		sender_put(&rcv->senders, (struct sender *)(uintptr_t)rx->m.source);
	}
	rx_set_state(rx, RX_FREE);
	pool_release(&rcv->rx, rx);
}

/* The next message's piece of a multi-receive buffer. */
static void multi_take(struct receiver *rcv, struct rx *rx, uint64_t len,
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
			match_recv_remove(rx_queue(rcv, rx), &rx->m);
		}
		rx_set_state(rx, RX_DRAINING);
	}
}

void rx_take(struct receiver *rcv, struct rx *rx, uint64_t len, struct rx_claim *claim)
{
	claim->context = rx->context;
	claim->flags = rx->flags;
	if (rx->flags & PROTO_MULTI) {
		multi_take(rcv, rx, len, claim);
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
		match_recv_remove(rx_queue(rcv, rx), &rx->m);
	}
	rx_release(rcv, rx);
}

/* Who tells of what concerns no message: any engine, as one receives for all. NULL:
 * nobody is there to tell. */
static struct proto_ep *teller(struct receiver *rcv)
{
	struct list *first = rcv->engines.next;

	return first == &rcv->engines ? NULL
				      : container_of(first, struct proto_ep, receives);
}

static void cancelled(struct receiver *rcv, const struct rx *rx)
{
	struct proto_ep *ep = teller(rcv);
	struct proto_done d = {
		.context = rx->context,
		.flags = FI_RECV | ((rx->flags & PROTO_TAGGED) ? FI_TAGGED : FI_MSG) |
			 ((rx->flags & PROTO_MULTI) ? FI_MULTI_RECV : 0),
		.tag = rx->m.tag,
		.source = FI_ADDR_NOTAVAIL,
		.report = true,
		.err = FI_ECANCELED};

	if (ep) {
		ep->up->rx_done(ep->arg, &d);
	}
}

/* Its last message can't say that the buffer is free again. */
static void multi_over(struct receiver *rcv, const struct rx *rx)
{
	struct proto_ep *ep = teller(rcv);
	struct proto_done d = {.context = rx->context,
			       .flags = FI_RECV | FI_MSG | FI_MULTI_RECV,
			       .source = FI_ADDR_NOTAVAIL,
			       .report = true};

	if (rx->cancelled) {
		cancelled(rcv, rx);
	} else if (ep) {
		ep->up->rx_done(ep->arg, &d);
	}
}

static void rx_let_go(struct receiver *rcv, struct rx *multi)
{
	if (--multi->pending == 0 && multi->state == RX_DRAINING) {
		multi_over(rcv, multi);
		rx_release(rcv, multi);
	}
}

void rx_abandon(struct receiver *rcv, const struct rx_claim *claim)
{
	if (claim->multi) {
		rx_let_go(rcv, claim->multi);
	} else if (claim->flags & RX_FOREIGN) {
		rcv->ops->release(rcv->arg, claim->entry);
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
	if (ep->closing) {
		rx_abandon(ep->rcv, claim);
		return;
	}
	if (multi && --multi->pending == 0 && multi->state == RX_DRAINING) {
		release = true;
		if (!multi->cancelled) {
			d.flags |= FI_MULTI_RECV;
			d.report = true;
		}
	}
	ep->up->rx_done(ep->arg, &d);
	if (unlikely(claim->flags & RX_FOREIGN)) {
		ep->rcv->ops->release(ep->rcv->arg, claim->entry);
	}
	if (release) {
		if (multi->cancelled) {
			cancelled(ep->rcv, multi);
		}
		rx_release(ep->rcv, multi);
	}
}

/* Starts the message that rx takes from the unexpected ones. */
static void take_unexpected(struct receiver *rcv, struct rx *rx, struct arrival *a)
{
	struct proto_ep *ep = a->ep;

	receiver_forget(a);
	rx_take(rcv, rx, a->len, &a->claim);
	if (a->announced) {
		rndv_start(ep, a);
	} else {
		eager_matched(ep, a, &a->claim);
	}
}

ssize_t receiver_post(struct receiver *rcv, const struct proto_recv *r)
{
	struct match_queue *q = &rcv->match[r->flags & PROTO_TAGGED];
	struct sender *source = r->source ? sender_ident(r->source->sender) : NULL;
	struct rx *rx = pool_alloc(&rcv->rx);

	if (unlikely(!rx)) {
		rx = rx_grow(rcv) ? pool_alloc(&rcv->rx) : NULL;
		if (!rx) {
			return -FI_EAGAIN;
		}
	}
	rx_set_state(rx, RX_OPEN);
	rx->flags = rx_flags(rcv, r->flags);
	rx->usual = -1;
	rx->context = r->context;
	rx->m.source = source;
	rx->m.tag = r->tag;
	rx->m.ignore = r->ignore;
	rx->count = r->count;
	for (size_t i = 0; i < r->count; i++) {
		rx->iov[i] = r->iov[i];
	}
	if (r->count == 1 && (rx->flags & (PROTO_REPORT | PROTO_MULTI)) == PROTO_REPORT &&
	    !mem_is_device(r->iov[0].iov_base, r->iov[0].iov_len)) {
		rx->usual = (int64_t)r->iov[0].iov_len;
	}
	if (unlikely(source)) {
		sender_ref(source);
	}
	if (unlikely(r->flags & PROTO_MULTI)) {
		rx->used = 0;
		rx->pending = 0;
		rx->cancelled = false;
		rx->min_free = rcv->min_multi_recv;
	}
	if (unlikely(q->msg_count)) {
		struct match_msg *m;
		bool multi = r->flags & PROTO_MULTI;
		uint32_t gen = rx->obj.gen;

		while ((m = match_msg_find(q, &rx->m))) {
			take_unexpected(rcv, rx, container_of(m, struct arrival, m));
			if (!multi || rx->obj.gen != gen || rx->state != RX_OPEN) {
				return 0;
			}
		}
	}
	match_recv_add(q, &rx->m);
	rx_set_state(rx, RX_POSTED);
	return 0;
}

ssize_t proto_recv(struct proto_ep *ep, const struct proto_recv *r)
{
	return receiver_post(ep->rcv, r);
}

void rx_retarget(struct receiver *rcv, struct sender *from, struct sender *to)
{
	struct sender *before = sender_ident(from);

	if (before == to) {
		return;
	}
	/* Often nobody but its peer refers to it, so no receive does. */
	for (uint32_t i = 0; before->refs > 1 && i < pool_limit(&rcv->rx); i++) {
		struct rx *rx = pool_at(&rcv->rx, i);

		if (rx->state == RX_FREE || rx->m.source != before) {
			continue;
		}
		if (rx->state == RX_POSTED) {
			match_recv_retarget(rx_queue(rcv, rx), &rx->m, to);
		} else {
			rx->m.source = to;
		}
		sender_ref(to);
		sender_put(&rcv->senders, before); /* `from` holds it or is it */
	}
	sender_rename(&rcv->senders, from, to);
}

bool receiver_cancel(struct receiver *rcv, const void *context)
{
	struct rx *found = rx_index_find(rcv, context);

	if (!found) {
		return false;
	}
	match_recv_remove(rx_queue(rcv, found), &found->m);
	if ((found->flags & PROTO_MULTI) && found->pending) {
		found->cancelled = true;
		rx_set_state(found, RX_DRAINING);
		return true;
	}
	cancelled(rcv, found);
	rx_release(rcv, found);
	return true;
}

bool proto_cancel(struct proto_ep *ep, const void *context)
{
	return receiver_cancel(ep->rcv, context);
}
