/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint is bound to: queues, counters, address vector, event queue. */
#include "config.h"

#include "prov/fi/ep_int.h"
#include "prov/fi/eq.h"
#include "prov/fi/srx.h"
#include "prov/fi/stx.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

static int refuse(const char *what, int err)
{
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "endpoint: bind: %s\n", what);
	return err;
}

LOCK_HELD(lock_domain)
static int bind_cq(struct wfi_ep *ep, struct wfi_cq *cq, uint64_t flags)
{
	int ret;

	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))) {
		return refuse("a completion queue takes FI_TRANSMIT and/or FI_RECV, and "
			      "FI_SELECTIVE_COMPLETION",
			      -FI_EBADFLAGS);
	}
	if (wfi_cq_domain(cq) != ep->domain) {
		return refuse("the completion queue is of another domain", -FI_EINVAL);
	}
	if (((flags & FI_TRANSMIT) && ep->tx_cq) || ((flags & FI_RECV) && ep->rx_cq)) {
		return refuse("that direction has a completion queue already",
			      -FI_EINVAL);
	}
	if (flags & FI_TRANSMIT) {
		ret = wfi_cq_attach(cq, &ep->pollable);
		if (ret) {
			return ret;
		}
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	if (flags & FI_RECV) {
		ret = wfi_cq_attach(cq, &ep->pollable);
		if (ret) {
			return ret;
		}
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	return 0;
}

static const uint64_t cntr_flags[EP_CNTRS] = {
	[EP_CNTR_SEND] = FI_SEND,
	[EP_CNTR_RECV] = FI_RECV,
	[EP_CNTR_READ] = FI_READ,
	[EP_CNTR_WRITE] = FI_WRITE,
	[EP_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	[EP_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

LOCK_HELD(lock_domain)
static int bind_cntr(struct wfi_ep *ep, struct wfi_cntr *cntr, uint64_t flags)
{
	uint64_t all = 0;

	for (int i = 0; i < EP_CNTRS; i++) {
		all |= cntr_flags[i];
		if ((flags & cntr_flags[i]) && ep->cntrs[i]) {
			return refuse("that direction has a counter already", -FI_EINVAL);
		}
	}
	if (!flags || (flags & ~all)) {
		return refuse("a counter takes FI_SEND, FI_RECV, FI_READ, FI_WRITE, "
			      "FI_REMOTE_READ, FI_REMOTE_WRITE",
			      -FI_EBADFLAGS);
	}
	if (wfi_cntr_domain(cntr) != ep->domain) {
		return refuse("the counter is of another domain", -FI_EINVAL);
	}
	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) {
		mem_keytab_want(ep->domain->keys, MEM_EVENTS_EP);
	}
	for (int i = 0; i < EP_CNTRS; i++) {
		int ret;

		if (!(flags & cntr_flags[i])) {
			continue;
		}
		ret = wfi_cntr_attach(cntr, &ep->pollable);
		if (ret) {
			return ret;
		}
		ep->cntrs[i] = cntr;
	}
	return 0;
}

LOCK_HELD(lock_domain) static int bind_av(struct wfi_ep *ep, struct wfi_av *av)
{
	if (ep->av) {
		return refuse("it has an address vector already", -FI_EINVAL);
	}
	if (wfi_av_domain(av) != ep->domain) {
		return refuse("the address vector is of another domain", -FI_EINVAL);
	}
	ep->av = av;
	wfi_av_attach(av, &ep->av_user);
	return 0;
}

static int bind_eq(struct wfi_ep *ep, struct wfi_eq *eq)
{
	if (ep->eq) {
		return refuse("it has an event queue already", -FI_EINVAL);
	}
	wfi_eq_get(eq);
	ep->eq = eq;
	return 0;
}

static int bind_stx(struct wfi_ep *ep, struct wfi_stx *stx)
{
	if (ep->stx) {
		return refuse("it has a shared transmit context already", -FI_EINVAL);
	}
	if (wfi_stx_domain(stx) != ep->domain) {
		return refuse("the shared transmit context is of another domain",
			      -FI_EINVAL);
	}
	wfi_stx_get(stx);
	ep->stx = stx;
	return 0;
}

LOCK_HELD(lock_domain) static int bind_srx(struct wfi_ep *ep, struct wfi_srx *srx)
{
	if (ep->srx) {
		return refuse("it has a shared receive context already", -FI_EINVAL);
	}
	if (wfi_srx_domain(srx) != ep->domain) {
		return refuse("the shared receive context is of another domain",
			      -FI_EINVAL);
	}
	wfi_srx_get(srx);
	ep->srx = srx;
	return 0;
}

LOCK_HELD(lock_domain)
static int bind_locked(struct wfi_ep *ep, struct fid *bfid, uint64_t flags)
{
	if (ep->is_srx) { /* an alias of one; by itself it has no bind */
		return refuse("nothing is bound to a shared receive context", -FI_ENOSYS);
	}
	if (ep->enabled) {
		return refuse("it is enabled: bind before fi_enable", -FI_EOPBADSTATE);
	}
	if (ep->is_sep && bfid->fclass != FI_CLASS_AV && bfid->fclass != FI_CLASS_EQ) {
		return refuse("queues and counters are bound to the contexts of a "
			      "scalable endpoint",
			      -FI_EINVAL);
	}
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, wfi_cq_of(bfid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, wfi_cntr_of(bfid), flags);
	case FI_CLASS_AV:
		return bind_av(ep, wfi_av_of(bfid));
	case FI_CLASS_EQ:
		return bind_eq(ep, wfi_eq_of(bfid));
	case FI_CLASS_STX_CTX:
		return bind_stx(ep, wfi_stx_of(bfid));
	case FI_CLASS_SRX_CTX:
		return bind_srx(ep, wfi_srx_of(bfid));
	default:
		return refuse("only queues, counters, address vectors and shared "
			      "contexts",
			      -FI_EINVAL);
	}
}

int wfi_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_root(wfi_ep_of(fid));
	int ret;

	if (!bfid) {
		return -FI_EINVAL;
	}
	wfi_domain_lock(ep->domain);
	ret = bind_locked(ep, bfid, flags);
	wfi_domain_unlock(ep->domain);
	return ret;
}

void wfi_ep_unbind_all(struct wfi_ep *ep)
{
	if (ep->tx_cq) {
		wfi_cq_detach(ep->tx_cq, &ep->pollable);
	}
	if (ep->rx_cq) {
		wfi_cq_detach(ep->rx_cq, &ep->pollable);
	}
	for (int i = 0; i < EP_CNTRS; i++) {
		if (ep->cntrs[i]) {
			wfi_cntr_detach(ep->cntrs[i], &ep->pollable);
		}
	}
	if (ep->av) {
		wfi_av_detach(ep->av, &ep->av_user);
	}
	if (ep->eq) {
		wfi_eq_put(ep->eq);
	}
	if (ep->stx) {
		wfi_stx_put(ep->stx);
	}
	if (ep->srx) {
		wfi_srx_leave(ep->srx, ep);
		wfi_srx_put(ep->srx);
	}
}

/* Of its counters and queues number i, counters first. */
LOCK_HELD(lock_domain)
static int queue_attach(struct wfi_ep *ep, int i, struct wfi_pollable *p)
{
	struct wfi_cq *cq = i == EP_CNTRS ? ep->tx_cq : ep->rx_cq;

	if (i < EP_CNTRS) {
		return ep->cntrs[i] ? wfi_cntr_attach(ep->cntrs[i], p) : 0;
	}
	return cq ? wfi_cq_attach(cq, p) : 0;
}

LOCK_HELD(lock_domain)
static void queues_detach(struct wfi_ep *ep, int count, struct wfi_pollable *p)
{
	for (int i = 0; i < count; i++) {
		struct wfi_cq *cq = i == EP_CNTRS ? ep->tx_cq : ep->rx_cq;

		if (i < EP_CNTRS && ep->cntrs[i]) {
			wfi_cntr_detach(ep->cntrs[i], p);
		} else if (i >= EP_CNTRS && cq) {
			wfi_cq_detach(cq, p);
		}
	}
}

int wfi_ep_drive(struct wfi_ep *ep, struct wfi_pollable *p)
{
	for (int i = 0; i < EP_CNTRS + 2; i++) {
		int rc = queue_attach(ep, i, p);

		if (rc) {
			queues_detach(ep, i, p);
			return rc;
		}
	}
	return 0;
}

void wfi_ep_leave(struct wfi_ep *ep, struct wfi_pollable *p)
{
	queues_detach(ep, EP_CNTRS + 2, p);
}
