/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint: enable, names, options, cancel. */
#include "config.h"

#include <string.h>

#include "prov/fi/addr_resolve.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/ep_option.h"
#include "prov/fi/sep.h"
#include "prov/fi/srx.h"
#include "prov/fi/work.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

uint32_t wfi_ep_tx_bits(const struct wfi_ep *ep, uint64_t flags)
{
	uint32_t bits = 0;

	if (ep->tx_cq && (!ep->tx_selective || (flags & FI_COMPLETION))) {
		bits |= PROTO_REPORT;
	}
	bits |= (flags & FI_INJECT) ? PROTO_INJECT : 0;
	bits |= (flags & FI_REMOTE_CQ_DATA) ? PROTO_DATA : 0;
	bits |= (flags & FI_FENCE) ? PROTO_FENCE : 0;
	/* Delivery says more than a match. */
	bits |= (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) ? PROTO_DELIVERY : 0;
	bits |= (flags & FI_TRIGGER) ? WFI_TRIGGER : 0;
	return bits;
}

uint32_t wfi_ep_rx_bits(const struct wfi_ep *ep, uint64_t flags)
{
	uint32_t bits = 0;

	if (ep->is_srx) { /* what that means is known when a message comes */
		bits |= PROTO_REPORT | ((flags & FI_COMPLETION) ? PROTO_ASKED : 0);
	} else if (ep->rx_cq && (!ep->rx_selective || (flags & FI_COMPLETION))) {
		bits |= PROTO_REPORT;
	}
	bits |= (flags & FI_MULTI_RECV) ? PROTO_MULTI : 0;
	bits |= (flags & FI_TRIGGER) ? WFI_TRIGGER : 0;
	return bits;
}

static int refuse_enable(const char *what, int err)
{
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "endpoint: enable: %s\n", what);
	return err;
}

LOCK_HELD(lock_domain) static int enable_locked(struct wfi_ep *ep)
{
	int ret;

	if (ep->enabled || ep->is_srx) {
		return 0;
	}
	if (ep->sep && !ep->av) {
		wfi_sep_lend_av(ep->sep, ep);
	}
	if (!ep->av) {
		return refuse_enable("no address vector is bound", -FI_ENOAV);
	}
	if (ep->is_sep) { /* its contexts are enabled one by one */
		return 0;
	}
	if (ep->tx_shared && !ep->stx) {
		return refuse_enable("FI_SHARED_CONTEXT was asked for, and no shared "
				     "transmit context is bound",
				     -FI_EOPBADSTATE);
	}
	if (ep->rx_shared && !ep->srx) {
		return refuse_enable("FI_SHARED_CONTEXT was asked for, and no shared "
				     "receive context is bound",
				     -FI_EOPBADSTATE);
	}
	if ((ep->can_send || ep->can_rma || ep->atomic_caps) && !ep->tx_cq &&
	    !ep->cntrs[EP_CNTR_SEND] && !ep->cntrs[EP_CNTR_READ] &&
	    !ep->cntrs[EP_CNTR_WRITE]) {
		return refuse_enable("neither completion queue nor counter is bound for "
				     "FI_TRANSMIT",
				     -FI_ENOCQ);
	}
	if (ep->can_recv && !ep->rx_cq && !ep->cntrs[EP_CNTR_RECV]) {
		return refuse_enable("neither completion queue nor counter is bound for "
				     "FI_RECV",
				     -FI_ENOCQ);
	}
	ret = wfi_ep_door(ep);
	if (ret) {
		return ret;
	}
	/* Who doesn't receive takes none of the others' receives. */
	if (ep->srx && ep->can_recv) {
		ret = wfi_srx_join(ep->srx, ep);
		if (ret) {
			return ret;
		}
	}
	ret = ep->sep ? wfi_sep_pair(ep->sep, ep) : 0;
	if (ret) {
		return ret;
	}
	ret = proto_enable(ep->proto);
	if (ret) {
		return ret;
	}
	ep->tx_bits = wfi_ep_tx_bits(ep, ep->tx_op_flags);
	ep->rx_bits = wfi_ep_rx_bits(ep, ep->rx_op_flags);
	proto_set_up(ep->proto, &(ep->srx ? wfi_ep_up_shared
					  : wfi_ep_up)[ep->cntrs[EP_CNTR_RECV] != NULL]);
	ep->enabled = true;
	ep->plain = !ep->domain->works_ready;
	wfi_ep_fast_select(ep);
	wfi_ep_alias_sync(ep);
	wfi_domain_rearm(ep->domain, &ep->pollable);
	return 0;
}

uint64_t wfi_ep_default_flags(const struct wfi_ep *ep, uint64_t side)
{
	return (side == FI_TRANSMIT ? WFI_TX_OP_FLAGS : WFI_RX_OP_FLAGS) |
	       (ep->caps & FI_TRIGGER);
}

/* *flags says by FI_TRANSMIT or FI_RECV which side is meant. */
LOCK_HELD(lock_domain) static int ops_flag(struct wfi_ep *ep, uint64_t *flags, bool set)
{
	uint64_t side = *flags & (FI_TRANSMIT | FI_RECV);
	uint64_t value = *flags & ~(FI_TRANSMIT | FI_RECV);

	if (side != FI_TRANSMIT && side != FI_RECV) {
		return -FI_EINVAL;
	}
	if (!set) {
		*flags = side == FI_TRANSMIT ? ep->tx_op_flags : ep->rx_op_flags;
		return 0;
	}
	if (value & ~wfi_ep_default_flags(ep, side)) {
		return -FI_EBADFLAGS;
	}
	if (side == FI_TRANSMIT) {
		ep->tx_op_flags = value;
		ep->tx_bits = wfi_ep_tx_bits(ep, value);
	} else {
		ep->rx_op_flags = value;
		ep->rx_bits = wfi_ep_rx_bits(ep, value);
	}
	if (ep->enabled) {
		wfi_ep_fast_select(ep);
	}
	return 0;
}

int wfi_ep_control(struct fid *fid, int command, void *arg)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int ret;

	wfi_domain_lock(ep->domain);
	switch (command) {
	case FI_ENABLE:
		ret = enable_locked(wfi_ep_root(ep));
		break;
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		ret = arg ? ops_flag(ep, arg, command == FI_SETOPSFLAG) : -FI_EINVAL;
		break;
	case FI_ALIAS:
		ret = arg ? wfi_ep_alias_open(ep, arg) : -FI_EINVAL;
		break;
	default:
		ret = -FI_ENOSYS;
	}
	wfi_domain_unlock(ep->domain);
	return ret;
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct wfi_ep *ep = wfi_ep_of(fid);

	wfi_domain_lock(ep->domain);
	if (ep->is_srx) {
		receiver_cancel(wfi_srx_receiver(ep->is_srx), context);
	} else if (ep->enabled) {
		proto_cancel(ep->proto, context);
	}
	wfi_domain_unlock(ep->domain);
	return 0;
}

static int ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	struct wfi_ep *ep = wfi_ep_root(wfi_ep_of(fid));
	int rc;

	wfi_domain_lock(ep->domain);
	rc = wfi_ep_option_get(ep, level, name, val, len);
	wfi_domain_unlock(ep->domain);
	return rc;
}

static int ep_setopt(fid_t fid, int level, int name, const void *val, size_t len)
{
	struct wfi_ep *ep = wfi_ep_root(wfi_ep_of(fid));
	int rc;

	wfi_domain_lock(ep->domain);
	rc = wfi_ep_option_set(ep, level, name, val, len);
	wfi_domain_unlock(ep->domain);
	return rc;
}

static int ep_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **out, void *context)
{
	struct wfi_sep *of = wfi_ep_of_ep(sep)->is_sep;

	return of ? wfi_sep_tx(of, index, attr, out, context) : -FI_ENOSYS;
}

static int ep_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **out, void *context)
{
	struct wfi_sep *of = wfi_ep_of_ep(sep)->is_sep;

	return of ? wfi_sep_rx(of, index, attr, out, context) : -FI_ENOSYS;
}

/* At least so many can be posted now, whatever they are. */
static ssize_t size_left(struct fid_ep *fid, bool tx)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	ssize_t left = -FI_EOPBADSTATE;

	wfi_domain_lock(ep->domain);
	if (ep->is_srx && !tx) {
		left = (ssize_t)receiver_left(wfi_srx_receiver(ep->is_srx));
	} else if (ep->enabled) {
		left = (ssize_t)(tx ? proto_tx_left(ep->proto)
				    : proto_rx_left(ep->proto));
	}
	wfi_domain_unlock(ep->domain);
	return left;
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
	return size_left(fid, false);
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	return size_left(fid, true);
}

struct fi_ops_ep wfi_ep_ops_ep = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_tx_ctx,
	.rx_ctx = ep_rx_ctx,
	.rx_size_left = rx_size_left,
	.tx_size_left = tx_size_left,
};

/* ---- names */

static int ep_setname(fid_t fid, void *addr, size_t len)
{
	struct wfi_ep *ep = wfi_ep_root(wfi_ep_of(fid));
	struct wire_addr wanted;
	int ret = 0;

	if (!addr || !wire_addr_from_sockaddr(&wanted, addr, (socklen_t)len)) {
		return -FI_EINVAL;
	}
	if (ep->is_sep) {
		return wfi_sep_setname(ep->is_sep, &wanted);
	}
	wfi_domain_lock(ep->domain);
	if (ep->proto ||
	    ep->addr.context) { /* the door is open and its name may be known to others */
		ret = -FI_EOPBADSTATE;
	} else {
		ep->addr = wanted;
		ep->addr_any = wfi_addr_is_default(&wanted);
	}
	wfi_domain_unlock(ep->domain);
	return ret;
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct wfi_ep *ep = wfi_ep_root(wfi_ep_of(fid));
	size_t have, need;
	int ret;

	if (!len || (!addr && *len)) {
		return -FI_EINVAL;
	}
	wfi_domain_lock(ep->domain);
	ret = ep->is_sep ? wfi_sep_name(ep->is_sep) : wfi_ep_door(ep);
	wfi_domain_unlock(ep->domain);
	if (ret) {
		return ret;
	}
	have = *len;
	need = wire_addr_len(&ep->addr);
	if (have) {
		memcpy(addr, &ep->addr.sa, have < need ? have : need);
	}
	*len = need;
	return have < need ? -FI_ETOOSMALL : 0;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *len)
{
	(void)ep;
	(void)addr;
	(void)len;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len)
{
	(void)ep;
	(void)addr;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	(void)ep;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep;
	(void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		   struct fid_mc **mc, void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}

struct fi_ops_cm wfi_ep_ops_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

static int no_setname(fid_t fid, void *addr, size_t len)
{
	(void)fid;
	(void)addr;
	(void)len;
	return -FI_ENOSYS;
}

static int no_getname(fid_t fid, void *addr, size_t *len)
{
	(void)fid;
	(void)addr;
	(void)len;
	return -FI_ENOSYS;
}

struct fi_ops_cm wfi_ep_ops_no_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = no_setname,
	.getname = no_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};
