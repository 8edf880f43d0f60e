/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive context; see srx.h. */
#include "config.h"

#include "prov/fi/srx.h"

#include <stdlib.h>

#include "prov/fi/import.h"
#include "prov/fi/nosys.h"
#include "prov/mem/params.h"

struct wfi_srx {
	struct wfi_ep ep; /* first: what the application has */
	struct receiver *rcv;
	struct list eps;	    /* struct wfi_ep.sharing: those that are enabled */
	struct wfi_av *av;	    /* theirs; NULL: there are none */
	unsigned int refs;	    /* endpoints that are bound to it */
	bool caps_given;	    /* it was said whether sources are looked at */
	struct fid_peer_srx *owner; /* whose receives it stands for (import.h), or NULL */
};

struct wfi_srx *wfi_srx_of(struct fid *fid)
{
	return fid && fid->fclass == FI_CLASS_SRX_CTX ? wfi_ep_of(fid)->is_srx : NULL;
}

struct wfi_domain *wfi_srx_domain(struct wfi_srx *srx)
{
	return srx->ep.domain;
}

struct receiver *wfi_srx_receiver(struct wfi_srx *srx)
{
	return srx->rcv;
}

/* ---- endpoints
 * -------------------------------------------------------------------------- */

void wfi_srx_get(struct wfi_srx *srx)
{
	srx->refs++;
}

void wfi_srx_put(struct wfi_srx *srx)
{
	srx->refs--;
}

int wfi_srx_join(struct wfi_srx *srx, struct wfi_ep *ep)
{
	if (srx->av && srx->av != ep->av) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"endpoint: enable: others receive through the same shared "
			"context and have another address vector: all must have one\n");
		return -FI_EINVAL;
	}
	if (list_empty(&ep->sharing)) { /* else this is a second try */
		list_push_back(&srx->eps, &ep->sharing);
	}
	srx->av = ep->av;
	if (!srx->caps_given) {
		srx->ep.directed |= ep->directed;
	}
	if (ep->rx_selective) {
		receiver_set_selective(srx->rcv);
	}
	ep->av_user.owner = srx->owner;
	proto_share(ep->proto, srx->rcv);
	ep->can_recv = false; /* not by itself */
	return 0;
}

void wfi_srx_leave(struct wfi_srx *srx, struct wfi_ep *ep)
{
	list_remove(&ep->sharing);
	if (list_empty(&srx->eps)) {
		srx->av = NULL;
	}
}

struct wfi_ep *wfi_srx_teller(struct wfi_srx *srx)
{
	list_foreach (n, &srx->eps) {
		struct wfi_ep *ep = container_of(n, struct wfi_ep, sharing);

		if (ep->enabled && ep->rx_cq) {
			return ep;
		}
	}
	return NULL;
}

struct wfi_ep *wfi_srx_find(struct wfi_srx *srx, uint64_t serial)
{
	list_foreach (n, &srx->eps) {
		struct wfi_ep *ep = container_of(n, struct wfi_ep, sharing);

		if (ep->serial == serial) {
			return ep;
		}
	}
	return NULL;
}

void wfi_srx_push(struct wfi_srx *srx)
{
	list_foreach (n, &srx->eps) {
		struct wfi_ep *ep = container_of(n, struct wfi_ep, sharing);

		if (ep->enabled) {
			wfi_ep_push(ep);
		}
	}
}

void wfi_srx_posted(struct wfi_srx *srx)
{
	list_foreach (n, &srx->eps) {
		struct wfi_ep *ep = container_of(n, struct wfi_ep, sharing);

		if (ep->enabled) {
			wfi_ep_posted(ep);
		}
	}
}

/* ---- posting
 * ---------------------------------------------------------------------------- */

int wfi_srx_source(struct wfi_srx *srx, fi_addr_t source, struct proto_peer **out)
{
	*out = NULL;
	if (!srx->ep.directed || source == FI_ADDR_UNSPEC) {
		return 0;
	}
	list_foreach (n, &srx->eps) {
		struct wfi_ep *ep = container_of(n, struct wfi_ep, sharing);

		if (ep->enabled) {
			*out = wfi_ep_peer(ep, source);
			return *out ? 0 : -FI_EINVAL;
		}
	}
	FI_WARN(&weft_provider, FI_LOG_EP_DATA,
		"receive from one source: no endpoint of this shared context is enabled "
		"whose address vector says who that is\n");
	return -FI_EOPBADSTATE;
}

ssize_t wfi_srx_recv(struct wfi_srx *srx, struct proto_recv *r, fi_addr_t source)
{
	ssize_t ret = srx->owner ? -FI_ENOSYS : wfi_srx_source(srx, source, &r->source);

	if (ret) {
		return ret;
	}
	ret = receiver_post(srx->rcv, r);
	if (ret == -FI_EAGAIN) {
		wfi_srx_push(srx);
	}
	wfi_srx_posted(srx);
	return ret;
}

/* ---- life
 * ------------------------------------------------------------------------------- */

static int srx_close(struct fid *fid)
{
	struct wfi_srx *srx = wfi_srx_of(fid);
	struct wfi_domain *d = srx->ep.domain;
	bool busy;

	if (wfi_domain_is_inherited(d)) {
		return 0;
	}
	wfi_domain_lock(d);
	busy = srx->refs || !list_empty(&srx->ep.aliases);
	if (!busy) {
		receiver_close(srx->rcv);
	}
	wfi_domain_unlock(d);
	if (busy) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"close: %u endpoints are still bound to this shared context, or "
			"it has aliases\n",
			srx->refs);
		return -FI_EBUSY;
	}
	wfi_domain_put(d);
	free(srx);
	return 0;
}

static struct fi_ops srx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = wfi_no_bind,
	.control = wfi_ep_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

/* What it asks of endpoints must be what they offer. */
static int srx_check(const struct fi_rx_attr *attr)
{
	if (attr->op_flags & ~(WFI_RX_OP_FLAGS | FI_PEER)) {
		return -FI_EBADFLAGS;
	}
	if (attr->size > WFI_SIZE_MAX || attr->iov_limit > WFI_IOV_LIMIT ||
	    attr->total_buffered_recv || attr->msg_order & ~WFI_MSG_ORDER) {
		return -FI_EINVAL;
	}
	return 0;
}

/* A thread of the domain would ask the owner without its locks. */
static int srx_import(const struct wfi_domain *d, void *context,
		      struct fid_peer_srx **owner)
{
	if (d->progress) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"FI_PEER, shared receive context: the domain makes progress by "
			"itself: open it with FI_PROGRESS_MANUAL\n");
		return -FI_EINVAL;
	}
	return wfi_import_srx(context, owner);
}

int wfi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **fid,
		 void *context)
{
	static const struct fi_rx_attr nothing;
	struct wfi_domain *d = wfi_domain_of(domain);
	struct fid_peer_srx *owner = NULL;
	struct wfi_srx *srx;
	int rc;

	if (!attr) {
		attr = (struct fi_rx_attr *)&nothing;
	}
	if (wfi_domain_is_inherited(d)) {
		return -FI_EOPBADSTATE;
	}
	rc = srx_check(attr);
	if (!rc && (attr->op_flags & FI_PEER)) {
		rc = srx_import(d, context, &owner);
	}
	if (rc) {
		return rc;
	}
	srx = (struct wfi_srx *)wfi_ep_alloc(sizeof(*srx), d, FI_CLASS_SRX_CTX, context);
	if (!srx) {
		return -FI_ENOMEM;
	}
	srx->ep.rx_size = attr->size ? attr->size : WFI_RX_SIZE;
	if (owner) {
		rc = receiver_open_matched(&wfi_import_matcher, owner, &srx->rcv);
	} else {
		rc = receiver_open((uint32_t)srx->ep.rx_size, &srx->rcv);
	}
	if (rc) {
		free(srx);
		return rc;
	}
	list_init(&srx->eps);
	srx->ep.is_srx = srx;
	srx->owner = owner;
	srx->ep.fid.fid.ops = &srx_fi_ops;
	srx->ep.fid.cm = &wfi_ep_ops_no_cm;
	srx->ep.caps = attr->caps;
	srx->caps_given = attr->caps != 0;
	srx->ep.directed = attr->caps & FI_DIRECTED_RECV;
	srx->ep.rx_op_flags = attr->op_flags & ~FI_PEER;
	srx->ep.rx_bits = wfi_ep_rx_bits(&srx->ep, srx->ep.rx_op_flags);
	wfi_domain_lock(d);
	receiver_set_min_multi_recv(srx->rcv, srx->ep.min_multi_recv);
	wfi_domain_unlock(d);
	wfi_domain_get(d);
	*fid = &srx->ep.fid;
	return 0;
}
