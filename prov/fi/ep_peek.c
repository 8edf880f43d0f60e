/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_trecvmsg with FI_PEEK, FI_CLAIM or FI_DISCARD. What a peek finds is reported to the
 * completion queue, always, and to no counter: no receive was posted. The structure
 * fi_context of whoever claims a message keeps its name until it is received or dropped.
 */
#include "config.h"

#include <string.h>

#include "prov/fi/ep_int.h"
#include "prov/fi/srx.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

/* What is written into the application's struct fi_context. */
struct claim {
	uint64_t id;
	uint64_t serial; /* of the endpoint that it came to */
};
_Static_assert(sizeof(struct claim) <= sizeof(struct fi_context), "there is room for it");

static ssize_t refuse(const char *what)
{
	FI_WARN(&weft_provider, FI_LOG_EP_DATA, "fi_trecvmsg: %s\n", what);
	return -FI_EINVAL;
}

LOCK_HELD(lock_domain)
static void report_found(struct wfi_ep *ep, const struct proto_found *f, void *context)
{
	struct wfi_cq_entry e = {
		.op_context = context,
		.flags = FI_RECV | ((f->flags & PROTO_TAGGED) ? FI_TAGGED : FI_MSG) |
			 ((f->flags & PROTO_DATA) ? FI_REMOTE_CQ_DATA : 0),
		.len = f->len,
		.data = f->data,
		.tag = f->tag,
		.src = f->source};

	wfi_cq_write(ep->rx_cq, &e);
}

LOCK_HELD(lock_domain)
static void report_nothing(struct wfi_ep *ep, const struct proto_recv *r)
{
	struct wfi_cq_error e = {.entry = {.op_context = r->context,
					   .flags = FI_RECV | FI_TAGGED,
					   .tag = r->tag,
					   .src = FI_ADDR_NOTAVAIL},
				 .err = FI_ENOMSG};

	wfi_cq_write_error(ep->rx_cq, &e);
}

static void claim_keep(const struct wfi_ep *ep, uint64_t id, void *context)
{
	const struct claim claim = {.id = id, .serial = ep->serial};

	memcpy(context, &claim, sizeof(claim));
}

/* *ep becomes the endpoint that it came to. 0 names no message. */
LOCK_HELD(lock_domain) static uint64_t claim_take(struct wfi_ep **ep, void *context)
{
	static const struct claim none;
	struct claim claim;

	memcpy(&claim, context, sizeof(claim));
	if ((*ep)->is_srx) {
		*ep = wfi_srx_find((*ep)->is_srx, claim.serial);
	}
	if (!*ep || claim.serial != (*ep)->serial) {
		return 0;
	}
	memcpy(context, &none, sizeof(none));
	return claim.id;
}

LOCK_HELD(lock_domain)
static int look(struct wfi_ep *ep, const struct proto_recv *r, enum proto_peek what,
		struct proto_found *found)
{
	return ep->is_srx ? receiver_peek(wfi_srx_receiver(ep->is_srx), r, what, found)
			  : proto_peek(ep->proto, r, what, found);
}

/* Of a shared context: whose message it is, who has a queue to say that there is none. */
LOCK_HELD(lock_domain)
static struct wfi_ep *hearer(struct wfi_ep *ep, const struct proto_recv *r)
{
	struct proto_found found;

	if (!ep->is_srx) {
		return ep;
	}
	return look(ep, r, PROTO_PEEK_LOOK, &found) ? wfi_srx_teller(ep->is_srx)
						    : found.arg;
}

LOCK_HELD(lock_domain) static void push(struct wfi_ep *ep)
{
	if (ep->is_srx) {
		wfi_srx_push(ep->is_srx);
	} else {
		wfi_ep_push(ep);
	}
}

LOCK_HELD(lock_domain)
static ssize_t peek(struct wfi_ep *ep, const struct proto_recv *r, uint64_t flags)
{
	enum proto_peek what = (flags & FI_CLAIM)     ? PROTO_PEEK_CLAIM
			       : (flags & FI_DISCARD) ? PROTO_PEEK_DISCARD
						      : PROTO_PEEK_LOOK;
	struct proto_found found;
	struct wfi_ep *to;

	if (look(ep, r, PROTO_PEEK_LOOK, &found)) { /* it may be on the wire */
		push(ep);
	}
	to = hearer(ep, r);
	if (!to || !to->rx_cq) { /* nowhere to say what was found */
		return -FI_ENOCQ;
	}
	if (wfi_cq_full(to->rx_cq)) {
		return -FI_EAGAIN;
	}
	if (look(ep, r, what, &found)) {
		report_nothing(to, r);
		return 0;
	}
	if (what == PROTO_PEEK_CLAIM) {
		claim_keep(to, found.id, r->context);
	}
	report_found(to, &found, r->context);
	return 0;
}

LOCK_HELD(lock_domain)
static ssize_t claimed(struct wfi_ep *ep, const struct proto_recv *r, uint64_t flags)
{
	struct wfi_ep *to = ep;
	uint64_t id = claim_take(&to, r->context);
	struct proto_found found;
	int ret = -FI_EINVAL;

	if (!id) {
		/* refused below */
	} else if (!(flags & FI_DISCARD)) {
		ret = proto_recv_claimed(to->proto, r, id);
	} else {
		ret = proto_discard_claimed(to->proto, id, &found);
		if (!ret) {
			report_found(to, &found, r->context);
		}
	}
	return ret ? refuse("FI_CLAIM: this context holds no message that was claimed "
			    "with FI_PEEK | FI_CLAIM on this endpoint")
		   : 0;
}

LOCK_HELD(lock_domain)
static ssize_t peek_shared(struct wfi_ep *ep, struct proto_recv *r, fi_addr_t source,
			   uint64_t flags)
{
	ssize_t ret = 0;

	r->source = NULL;
	if (flags & FI_PEEK) {
		ret = wfi_srx_source(ep->is_srx, source, &r->source);
	}
	if (!ret) {
		ret = flags & FI_PEEK ? peek(ep, r, flags) : claimed(ep, r, flags);
	}
	wfi_srx_posted(ep->is_srx);
	return ret;
}

LOCK_HELD(lock_domain)
static ssize_t peek_locked(struct wfi_ep *ep, struct proto_recv *r, fi_addr_t source,
			   uint64_t flags)
{
	ssize_t ret;

	if (ep->is_srx) {
		return peek_shared(ep, r, source, flags);
	}
	if (!ep->enabled) {
		return -FI_EOPBADSTATE;
	}
	if (!ep->can_recv) {
		return -FI_EOPNOTSUPP;
	}
	if (!ep->rx_cq) { /* nowhere to say what was found */
		return -FI_ENOCQ;
	}
	if (wfi_cq_full(ep->rx_cq)) {
		return -FI_EAGAIN;
	}
	r->source = NULL;
	if ((flags & FI_PEEK) && ep->directed && source != FI_ADDR_UNSPEC) {
		r->source = wfi_ep_peer(ep, source);
		if (!r->source) {
			return -FI_EINVAL;
		}
	}
	ret = flags & FI_PEEK ? peek(ep, r, flags) : claimed(ep, r, flags);
	wfi_ep_posted(ep);
	return ret;
}

ssize_t wfi_ep_peek(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	const uint64_t which = flags & (FI_PEEK | FI_CLAIM | FI_DISCARD);
	bool takes = which == FI_CLAIM;
	struct proto_recv r = {.iov = takes ? msg->msg_iov : NULL,
			       .count = takes ? msg->iov_count : 0,
			       .tag = msg->tag,
			       .ignore = msg->ignore,
			       .context = msg->context,
			       .flags = wfi_ep_rx_bits(ep, flags) | PROTO_TAGGED};
	ssize_t ret;
	size_t len;

	if (which == FI_DISCARD || which == (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
		return refuse("FI_DISCARD goes with FI_PEEK or with FI_CLAIM");
	}
	if ((which & FI_CLAIM) && !msg->context) {
		return refuse("FI_CLAIM needs a struct fi_context as context");
	}
	if (!wfi_iov_sum(r.iov, r.count, &len)) {
		return -FI_EINVAL;
	}
	wfi_domain_lock(ep->domain);
	ret = peek_locked(ep, &r, msg->addr, flags);
	wfi_domain_unlock(ep->domain);
	return ret;
}
