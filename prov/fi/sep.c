/* SPDX-License-Identifier: BSD-2-Clause */
/* Scalable endpoint; see sep.h. */
#include "config.h"

#include "prov/fi/sep.h"

#include <stdlib.h>

#include "prov/fi/addr_resolve.h"
#include "prov/fi/nosys.h"
#include "prov/mem/params.h"

struct wfi_sep {
	struct wfi_ep ep; /* first: what the application has; addr: once it is known */
	struct fi_info *info;
	bool named; /* the address is known, and doors may have been named after it */
	size_t tx_count, rx_count;
	struct wfi_ep *tx[WFI_SEP_CTX];
	struct wfi_ep *rx[WFI_SEP_CTX];
	bool home_hidden; /* rx[0] is not the application's yet */
};

_Static_assert(WFI_SEP_CTX <= PROTO_CONTEXTS_MAX, "a number for each");

/* ---- names
 * ----------------------------------------------------------------------------- */

int wfi_sep_name(struct wfi_sep *sep)
{
	if (sep->named) {
		return 0;
	}
	if (!sep->rx[0]) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"scalable endpoint: it has no address: its receive context 0 was "
			"closed before there was one; open that again\n");
		return -FI_EOPBADSTATE;
	}
	return wfi_ep_door(sep->rx[0]);
}

int wfi_sep_setname(struct wfi_sep *sep, const struct wire_addr *wanted)
{
	int ret = 0;

	wfi_domain_lock(sep->ep.domain);
	if (sep->named || !sep->rx[0]) {
		ret = -FI_EOPBADSTATE;
	} else {
		sep->rx[0]->addr = *wanted;
		sep->rx[0]->addr_any = wfi_addr_is_default(wanted);
	}
	wfi_domain_unlock(sep->ep.domain);
	return ret;
}

int wfi_sep_place(struct wfi_sep *sep, struct wfi_ep *ep)
{
	uint16_t context = ep->addr.context;
	int ret;

	if (!context && !sep->named) {
		return 0; /* wherever it was asked to be */
	}
	ret = wfi_sep_name(sep);
	if (ret) {
		return ret;
	}
	ep->addr = sep->ep.addr;
	ep->addr.context = context;
	ep->addr_any = sep->ep.addr_any;
	return 0;
}

void wfi_sep_placed(struct wfi_sep *sep, const struct wfi_ep *ep)
{
	if (!ep->addr.context) {
		sep->ep.addr = ep->addr;
		sep->ep.addr_any = ep->addr_any;
		sep->named = true;
	}
}

/* ---- contexts
 * -------------------------------------------------------------------------- */

void wfi_sep_lend_av(struct wfi_sep *sep, struct wfi_ep *ep)
{
	if (sep->ep.av) {
		ep->av = sep->ep.av;
		wfi_av_attach(ep->av, &ep->av_user);
	}
}

static struct wfi_ep *other_half(const struct wfi_sep *sep, const struct wfi_ep *ep)
{
	uint32_t index = ep->addr.context & ~PROTO_CONTEXT_TX;

	return ep->addr.context & PROTO_CONTEXT_TX ? sep->rx[index] : sep->tx[index];
}

int wfi_sep_pair(struct wfi_sep *sep, struct wfi_ep *ep)
{
	struct wfi_ep *other = other_half(sep, ep);
	int rc;

	if (ep->pair || !other || !other->enabled) {
		return 0;
	}
	rc = wfi_ep_drive(ep, &other->pollable);
	if (rc) {
		return rc;
	}
	rc = wfi_ep_drive(other, &ep->pollable);
	if (rc) {
		wfi_ep_leave(ep, &other->pollable);
		return rc;
	}
	ep->pair = other;
	other->pair = ep;
	return 0;
}

void wfi_sep_part(struct wfi_ep *ep)
{
	struct wfi_ep *other = ep->pair;

	if (other) {
		wfi_ep_leave(ep, &other->pollable);
		wfi_ep_leave(other, &ep->pollable);
		other->pair = NULL;
		ep->pair = NULL;
	}
}

void wfi_sep_forget(struct wfi_sep *sep, struct wfi_ep *ep)
{
	for (size_t i = 0; i < WFI_SEP_CTX; i++) {
		sep->tx[i] = sep->tx[i] == ep ? NULL : sep->tx[i];
		sep->rx[i] = sep->rx[i] == ep ? NULL : sep->rx[i];
	}
}

/* A context sends or receives; what it can't do needs next to no room. */
static struct wfi_ep *context_make(struct wfi_sep *sep, bool tx, size_t index,
				   const struct fi_info *info, int *err)
{
	struct wfi_ep *ep = wfi_ep_alloc(sizeof(*ep), sep->ep.domain,
					 tx ? FI_CLASS_TX_CTX : FI_CLASS_RX_CTX, NULL);

	*err = ep ? wfi_ep_make(ep, info) : -FI_ENOMEM;
	if (*err) {
		free(ep);
		return NULL;
	}
	ep->sep = sep;
	ep->addr.context = (uint16_t)(tx ? PROTO_CONTEXT_TX + index : index);
	ep->tx_shared = false;
	ep->rx_shared = false;
	if (tx) {
		ep->can_recv = false;
		ep->atomic_access = 0;
	} else {
		ep->can_send = false;
		ep->can_rma = false;
		ep->atomic_caps = 0;
	}
	ep->min_multi_recv = sep->ep.min_multi_recv;
	return ep;
}

static int index_check(const struct wfi_sep *sep, bool tx, int index)
{
	size_t count = tx ? sep->tx_count : sep->rx_count;

	if (index < 0 || (size_t)index >= count) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"%s context %d was asked for: the scalable endpoint was opened "
			"with %zu of them\n",
			tx ? "transmit" : "receive", index, count);
		return -FI_EINVAL;
	}
	return 0;
}

static int is_open(bool tx, size_t index)
{
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
		"%s context %zu of the scalable endpoint is open already\n",
		tx ? "transmit" : "receive", index);
	return -FI_EBUSY;
}

/* The hidden one, now that the application wants it; NULL: it isn't that. */
LOCK_HELD(lock_domain)
static struct wfi_ep *home_take(struct wfi_sep *sep, const struct fi_info *info)
{
	struct wfi_ep *ep = sep->home_hidden ? sep->rx[0] : NULL;

	if (ep) {
		sep->home_hidden = false;
		ep->rx_op_flags = info->rx_attr->op_flags;
		ep->min_multi_recv = sep->ep.min_multi_recv;
	}
	return ep;
}

static int context_open(struct wfi_sep *sep, bool tx, size_t index,
			const struct fi_info *info, struct fid_ep **out, void *context)
{
	struct wfi_ep **at = tx ? &sep->tx[index] : &sep->rx[index], *ep = NULL;
	struct wfi_domain *d = sep->ep.domain;
	bool busy;
	int rc;

	wfi_domain_lock(d);
	if (!tx && !index) {
		ep = home_take(sep, info);
	}
	busy = !ep && *at;
	wfi_domain_unlock(d);
	if (busy) {
		return is_open(tx, index);
	}
	if (!ep) {
		ep = context_make(sep, tx, index, info, &rc);
		if (!ep) {
			return rc;
		}
		wfi_domain_lock(d);
		busy = *at;
		*at = busy ? *at : ep;
		wfi_domain_unlock(d);
		if (busy) { /* by another thread, just now */
			ep->fid.fid.ops->close(&ep->fid.fid);
			return is_open(tx, index);
		}
	}
	ep->fid.fid.context = context;
	*out = &ep->fid;
	return 0;
}

static int tx_check(const struct wfi_sep *sep, const struct fi_tx_attr *attr)
{
	if (attr->op_flags & ~WFI_TX_OP_FLAGS) {
		return -FI_EBADFLAGS;
	}
	if (attr->caps & ~sep->info->caps || attr->inject_size > WFI_INJECT_SIZE ||
	    attr->size > WFI_SIZE_MAX || attr->iov_limit > WFI_IOV_LIMIT ||
	    attr->rma_iov_limit > WFI_RMA_IOV_LIMIT || attr->msg_order & ~WFI_MSG_ORDER) {
		return -FI_EINVAL;
	}
	return 0;
}

static int rx_check(const struct wfi_sep *sep, const struct fi_rx_attr *attr)
{
	if (attr->op_flags & ~WFI_RX_OP_FLAGS) {
		return -FI_EBADFLAGS;
	}
	if (attr->caps & ~sep->info->caps || attr->total_buffered_recv ||
	    attr->size > WFI_SIZE_MAX || attr->iov_limit > WFI_IOV_LIMIT ||
	    attr->msg_order & ~WFI_MSG_ORDER) {
		return -FI_EINVAL;
	}
	return 0;
}

int wfi_sep_tx(struct wfi_sep *sep, int index, struct fi_tx_attr *attr,
	       struct fid_ep **out, void *context)
{
	struct fi_info *info;
	int rc = index_check(sep, true, index);

	if (!rc && attr) {
		rc = tx_check(sep, attr);
	}
	if (rc) {
		return rc;
	}
	info = fi_dupinfo(sep->info);
	if (!info) {
		return -FI_ENOMEM;
	}
	if (attr) {
		info->tx_attr->op_flags = attr->op_flags;
		info->tx_attr->msg_order |= attr->msg_order;
		info->tx_attr->caps = attr->caps ? attr->caps : info->tx_attr->caps;
		info->tx_attr->size = attr->size ? attr->size : info->tx_attr->size;
		*attr = *info->tx_attr;
	}
	info->rx_attr->size = 1;
	rc = context_open(sep, true, (size_t)index, info, out, context);
	fi_freeinfo(info);
	return rc;
}

int wfi_sep_rx(struct wfi_sep *sep, int index, struct fi_rx_attr *attr,
	       struct fid_ep **out, void *context)
{
	struct fi_info *info;
	int rc = index_check(sep, false, index);

	if (!rc && attr) {
		rc = rx_check(sep, attr);
	}
	if (rc) {
		return rc;
	}
	info = fi_dupinfo(sep->info);
	if (!info) {
		return -FI_ENOMEM;
	}
	if (attr) {
		info->rx_attr->op_flags = attr->op_flags;
		info->rx_attr->msg_order |= attr->msg_order;
		info->rx_attr->caps = attr->caps ? attr->caps : info->rx_attr->caps;
		info->rx_attr->size = attr->size ? attr->size : info->rx_attr->size;
		*attr = *info->rx_attr;
	}
	info->tx_attr->size = 1;
	rc = context_open(sep, false, (size_t)index, info, out, context);
	fi_freeinfo(info);
	return rc;
}

/* ---- life
 * ------------------------------------------------------------------------------- */

LOCK_HELD(lock_domain) static size_t contexts_open(const struct wfi_sep *sep)
{
	size_t open = 0;

	for (size_t i = 0; i < WFI_SEP_CTX; i++) {
		open += (sep->tx[i] != NULL) + (sep->rx[i] != NULL);
	}
	return open - (sep->rx[0] && sep->home_hidden);
}

static int sep_close(struct fid *fid)
{
	struct wfi_sep *sep = wfi_ep_of(fid)->is_sep;
	struct wfi_domain *d = sep->ep.domain;
	struct wfi_ep *home;
	size_t open;
	bool aliases;

	if (wfi_domain_is_inherited(d)) {
		return 0;
	}
	wfi_domain_lock(d);
	open = contexts_open(sep);
	aliases = !list_empty(&sep->ep.aliases);
	home = sep->rx[0];
	if (!open && !aliases) {
		wfi_ep_unbind_all(&sep->ep);
	}
	wfi_domain_unlock(d);
	if (open || aliases) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"close: %zu contexts of this scalable endpoint are still open, "
			"or it has aliases\n",
			open);
		return -FI_EBUSY;
	}
	if (home) {
		home->fid.fid.ops->close(&home->fid.fid);
	}
	wfi_domain_put(d);
	fi_freeinfo(sep->info);
	free(sep);
	return 0;
}

static struct fi_ops sep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = sep_close,
	.bind = wfi_ep_bind,
	.control = wfi_ep_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

/* FI_SHARED_CONTEXT is the largest size_t. */
static int sep_check(const struct wfi_domain *d, const struct fi_info *info)
{
	int rc = wfi_ep_check(d, info);

	if (rc) {
		return rc;
	}
	if (info->ep_attr->tx_ctx_cnt > WFI_SEP_CTX ||
	    info->ep_attr->rx_ctx_cnt > WFI_SEP_CTX || !info->tx_attr || !info->rx_attr) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"scalable endpoint: %zu transmit and %zu receive contexts were "
			"asked for, at most %d of each are there, and none is shared\n",
			info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt,
			WFI_SEP_CTX);
		return -FI_EINVAL;
	}
	return 0;
}

int wfi_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		 void *context)
{
	struct wfi_domain *d = wfi_domain_of(domain);
	struct wfi_sep *sep;
	int rc = sep_check(d, info);

	if (rc) {
		return rc;
	}
	sep = (struct wfi_sep *)wfi_ep_alloc(sizeof(*sep), d, FI_CLASS_SEP, context);
	if (!sep) {
		return -FI_ENOMEM;
	}
	sep->info = fi_dupinfo(info);
	sep->tx_count = info->ep_attr->tx_ctx_cnt;
	sep->rx_count = info->ep_attr->rx_ctx_cnt;
	sep->rx[0] = sep->info ? context_make(sep, false, 0, info, &rc) : NULL;
	if (!sep->rx[0]) {
		fi_freeinfo(sep->info);
		free(sep);
		return rc ? rc : -FI_ENOMEM;
	}
	sep->home_hidden = true;
	sep->ep.is_sep = sep;
	sep->ep.fid.fid.ops = &sep_fi_ops;
	sep->ep.tx_op_flags = info->tx_attr->op_flags;
	sep->ep.rx_op_flags = info->rx_attr->op_flags;
	sep->ep.caps = info->caps;
	wfi_domain_get(d);
	*out = &sep->ep.fid;
	return 0;
}
