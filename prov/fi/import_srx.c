/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared receive context of another provider; see import.h. The owner has the receives
 * and matches: it is asked about each message, keeps those that nobody waits for, and
 * calls when one of them gets its receive. Its locks come before the domain's: it may
 * hold them when it calls, and holds them where it makes progress.
 */
#include "config.h"

#include "prov/fi/import.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/fi/ep_int.h"
#include "prov/mem/params.h"

#ifdef HAVE_STRUCT_FI_PEER_MATCH_ATTR
#include <rdma/providers/fi_peer.h>

/* ---- what the owner calls */

/* What it says about a receive; more pieces than there may be are not used. */
static void recv_of(const struct fi_peer_rx_entry *e, struct proto_recv *r)
{
	*r = (struct proto_recv){
		.iov = e->iov,
		.count = e->count < PROTO_IOV_MAX ? e->count : PROTO_IOV_MAX,
		.context = e->context,
		.flags = (e->flags & FI_COMPLETION) ? PROTO_REPORT : 0,
	};
}

static int peer_start(struct fi_peer_rx_entry *e)
{
	struct arrival *a = e->peer_context;
	struct wfi_ep *ep;
	struct proto_recv r;

	if (!a) { /* its endpoint is closed */
		return -FI_EOPBADSTATE;
	}
	ep = matcher_engine_arg(a);
	recv_of(e, &r);
	wfi_domain_lock(ep->domain);
	matcher_start(a, &r);
	wfi_ep_posted(ep);
	wfi_domain_unlock(ep->domain);
	return 0;
}

static int peer_discard(struct fi_peer_rx_entry *e)
{
	struct arrival *a = e->peer_context;
	struct wfi_ep *ep;

	if (!a) {
		return 0;
	}
	ep = matcher_engine_arg(a);
	wfi_domain_lock(ep->domain);
	e->peer_context = NULL;
	matcher_discard(a);
	wfi_ep_posted(ep);
	wfi_domain_unlock(ep->domain);
	return 0;
}

static struct fi_ops_srx_peer peer_ops = {
	.size = sizeof(struct fi_ops_srx_peer),
	.start_msg = peer_start,
	.start_tag = peer_start,
	.discard_msg = peer_discard,
	.discard_tag = peer_discard,
};

static fi_addr_t peer_source(struct fi_peer_rx_entry *e)
{
	const struct arrival *a = e->peer_context;
	struct wfi_ep *ep;
	fi_addr_t source;

	if (!a) {
		return FI_ADDR_UNSPEC;
	}
	ep = matcher_engine_arg(a);
	wfi_domain_lock(ep->domain);
	source = matcher_source(a);
	wfi_domain_unlock(ep->domain);
	return source;
}

static bool has_all(const struct fi_ops_srx_owner *ops)
{
	return ops && ops->size >= sizeof(*ops) && ops->get_msg && ops->get_tag &&
	       ops->queue_msg && ops->queue_tag && ops->foreach_unspec_addr &&
	       ops->free_entry;
}

int wfi_import_srx(const void *context, struct fid_peer_srx **out)
{
	const struct fi_peer_srx_context *c = context;

	if (!wfi_import_can() || !c || c->size < sizeof(*c) || !c->srx ||
	    !has_all(c->srx->owner_ops)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"FI_PEER, shared receive context: %s\n",
			wfi_import_can() ? "the context must be a struct "
					   "fi_peer_srx_context whose object has all "
					   "operations"
					 : "Weft was built with another version of "
					   "libfabric than the one that runs");
		return -FI_EINVAL;
	}
	c->srx->peer_ops = &peer_ops;
	*out = c->srx;
	return 0;
}

void wfi_import_look_again(struct fid_peer_srx *owner)
{
	owner->owner_ops->foreach_unspec_addr(owner, peer_source);
}

/* ---- what the owner is asked */

static int srx_get(void *arg, const struct proto_found *m, struct proto_recv *r,
		   void **out)
{
	struct fid_peer_srx *owner = arg;
	const struct fi_ops_srx_owner *ops = owner->owner_ops;
	bool tagged = m->flags & PROTO_TAGGED;
	struct fi_peer_match_attr attr = {
		.addr = m->source, .msg_size = m->len, .tag = tagged ? m->tag : 0};
	struct fi_peer_rx_entry *e = NULL;
	int ret = (tagged ? ops->get_tag : ops->get_msg)(owner, &attr, &e);

	if (ret == -FI_ENOMEM || ret == -FI_EAGAIN) {
		return -FI_EAGAIN;
	}
	if ((ret && ret != -FI_ENOENT) || !e) {
		FI_WARN(&weft_provider, FI_LOG_EP_DATA,
			"the owner of the shared receive context takes no %s messages "
			"(%s): one is dropped\n",
			tagged ? "tagged" : "untagged", fi_strerror(-ret));
		return -FI_EINVAL;
	}
	if (!ret) {
		recv_of(e, r);
	}
	*out = e;
	return ret;
}

static int srx_queue(void *arg, void *entry, const struct proto_found *m,
		     struct arrival *name)
{
	const struct fi_ops_srx_owner *ops = ((struct fid_peer_srx *)arg)->owner_ops;
	struct fi_peer_rx_entry *e = entry;

	e->peer_context = name;
	if (m->flags & PROTO_DATA) {
		e->flags |= FI_REMOTE_CQ_DATA;
		e->cq_data = m->data;
	}
	return (m->flags & PROTO_TAGGED ? ops->queue_tag : ops->queue_msg)(e);
}

static void srx_forget(void *arg, void *entry)
{
	(void)arg;
	((struct fi_peer_rx_entry *)entry)->peer_context = NULL;
}

static void srx_release(void *arg, void *entry)
{
	((struct fid_peer_srx *)arg)->owner_ops->free_entry(entry);
}

const struct proto_matcher_ops wfi_import_matcher = {
	.get = srx_get,
	.queue = srx_queue,
	.forget = srx_forget,
	.release = srx_release,
};

#else /* nothing to import from: see import.c */

int wfi_import_srx(const void *context, struct fid_peer_srx **out)
{
	(void)context;
	(void)out;
	FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
		"FI_PEER: this libfabric has no peer interface of 2.0 or later\n");
	return -FI_EINVAL;
}

void wfi_import_look_again(struct fid_peer_srx *owner)
{
	(void)owner;
}

const struct proto_matcher_ops wfi_import_matcher;

#endif
