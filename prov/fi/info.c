/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the answers of fi_getinfo; matching is in info_match.c, names in addr_resolve.c.
 */
#include "config.h"

#include "prov/fi/info.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/addr_resolve.h"
#include "prov/fi/entry.h"
#include "prov/fi/info_match.h"
#include "prov/fi/limits.h"
#include "prov/fi/nic.h"
#include "prov/mem/params.h"
#include "util/fi_names.h"

struct request {
	uint32_t version;
	const char *node;
	const char *service;
	uint64_t flags;
	const struct fi_info *hints; /* may be NULL */
	const struct wfi_entry *entry;
};

/* ---- addresses
 * ------------------------------------------------------------------------- */

/* The hints name an address of this family. */
static bool addr_from_hint(const void *sa, size_t len, sa_family_t family,
			   struct wire_addr *out)
{
	return wfi_addr_take(sa, len, out) && out->sa.sa_family == family;
}

/* The hints name an address, but of the other family: no answer in this one. */
static bool addr_is_other(const void *sa, size_t len, sa_family_t family)
{
	struct wire_addr addr;

	return wfi_addr_take(sa, len, &addr) && addr.sa.sa_family != family;
}

/* 1: there is one, 0: none was asked for, or -FI_ENODATA. */
static int request_dest(const struct request *r, sa_family_t family,
			struct wire_addr *out)
{
	bool named = (r->node || r->service) && !(r->flags & FI_SOURCE);
	int rc;

	if (named) {
		rc = wfi_addr_resolve(r->node, r->service, r->flags, family, out);
		return rc ? rc : 1;
	}
	if (!r->hints || !r->hints->dest_addr)
		return 0;
	if (addr_is_other(r->hints->dest_addr, r->hints->dest_addrlen, family))
		return -FI_ENODATA;
	return addr_from_hint(r->hints->dest_addr, r->hints->dest_addrlen, family, out);
}

static int source_asked(const struct request *r, sa_family_t family,
			struct wire_addr *out)
{
	int rc;

	if ((r->node || r->service) && (r->flags & FI_SOURCE)) {
		rc = wfi_addr_resolve(r->node, r->service, r->flags, family, out);
		return rc ? rc : 1;
	}
	if (!r->hints || !r->hints->src_addr)
		return 0;
	if (addr_is_other(r->hints->src_addr, r->hints->src_addrlen, family))
		return -FI_ENODATA;
	return addr_from_hint(r->hints->src_addr, r->hints->src_addrlen, family, out);
}

/* A source is always found: asked for, or towards the destination, or outward. */
static int request_source(const struct request *r, sa_family_t family,
			  const struct wire_addr *dest, struct wire_addr *out)
{
	struct wire_addr host;
	int rc = source_asked(r, family, out);

	if (rc < 0)
		return rc;
	if (rc && !wfi_addr_is_any(out)) {
		if (wfi_addr_is_local(out))
			return 0;
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"the source address is none of this host's\n");
		return -FI_ENODATA;
	}
	if (!(dest && wfi_addr_route(dest, &host)) && !wfi_addr_default(family, &host)) {
		FI_INFO(&weft_provider, FI_LOG_CORE, "this host has no %s address\n",
			family == AF_INET6 ? "IPv6" : "IPv4");
		return -FI_ENODATA;
	}
	wfi_addr_set_port(&host, rc ? wfi_addr_port(out) : 0);
	*out = host;
	return 0;
}

/* ---- attributes
 * ------------------------------------------------------------------------ */

static size_t or_default(size_t asked, size_t usual)
{
	return asked ? asked : usual;
}

static void fill_tx(const struct request *r, uint64_t caps, struct fi_tx_attr *tx)
{
	const struct fi_tx_attr *ask = r->hints ? r->hints->tx_attr : NULL;

	/* Rule E1: only the ordering that was asked for. Without hints: what there is. */
	tx->caps =
		caps & (WFI_TX_CAPS | FI_HMEM) & (ask && ask->caps ? ask->caps : ~0ull);
	tx->op_flags = ask ? ask->op_flags : 0;
	tx->msg_order = ask ? ask->msg_order : WFI_MSG_ORDER;
	tx->comp_order = FI_ORDER_NONE;
	tx->inject_size = WFI_INJECT_SIZE;
	tx->size = or_default(ask ? ask->size : 0, WFI_TX_SIZE);
	tx->iov_limit = WFI_IOV_LIMIT;
	tx->rma_iov_limit = caps & (FI_RMA | FI_ATOMIC) ? WFI_RMA_IOV_LIMIT : 0;
}

static void fill_rx(const struct request *r, uint64_t caps, struct fi_rx_attr *rx)
{
	const struct fi_rx_attr *ask = r->hints ? r->hints->rx_attr : NULL;

	rx->caps =
		caps & (WFI_RX_CAPS | FI_HMEM) & (ask && ask->caps ? ask->caps : ~0ull);
	rx->op_flags = ask ? ask->op_flags : 0;
	rx->msg_order = ask ? ask->msg_order : WFI_MSG_ORDER;
	rx->comp_order = FI_ORDER_NONE;
	rx->total_buffered_recv = 0;
	rx->size = or_default(ask ? ask->size : 0, WFI_RX_SIZE);
	rx->iov_limit = WFI_IOV_LIMIT;
}

/* How many contexts, or that one is shared: as it was asked for, else one. */
static size_t ctx_cnt(size_t asked)
{
	return asked ? asked : 1;
}

static void fill_ep(uint64_t order, const struct fi_ep_attr *ask, struct fi_ep_attr *ep)
{
	ep->type = FI_EP_RDM;
	ep->protocol = WFI_PROTO;
	ep->protocol_version = WFI_PROTO_VERSION;
	ep->max_msg_size = WFI_MAX_MSG_SIZE;
	if (order & (FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW))
		ep->max_order_raw_size = WFI_MAX_MSG_SIZE;
	if (order & (FI_ORDER_WAR | FI_ORDER_RMA_WAR | FI_ORDER_ATOMIC_WAR))
		ep->max_order_war_size = WFI_MAX_MSG_SIZE;
	if (order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW))
		ep->max_order_waw_size = WFI_MAX_MSG_SIZE;
	/* Alternating bits: all 64 are the application's. */
	ep->mem_tag_format = 0xaaaaaaaaaaaaaaaaull;
	ep->tx_ctx_cnt = ctx_cnt(ask ? ask->tx_ctx_cnt : 0);
	ep->rx_ctx_cnt = ctx_cnt(ask ? ask->rx_ctx_cnt : 0);
}

/* Whatever the application demands, of what was matched, is given: so it is echoed. */
static void fill_domain(const struct request *r, struct fi_domain_attr *d)
{
	static const struct fi_domain_attr nothing;
	const struct fi_domain_attr *ask =
		r->hints && r->hints->domain_attr ? r->hints->domain_attr : &nothing;

	d->domain = ask->domain;
	d->threading = ask->threading ? ask->threading : FI_THREAD_SAFE;
	d->control_progress =
		ask->control_progress ? ask->control_progress : FI_PROGRESS_MANUAL;
	d->data_progress = ask->data_progress ? ask->data_progress : FI_PROGRESS_MANUAL;
	d->resource_mgmt = ask->resource_mgmt ? ask->resource_mgmt : FI_RM_ENABLED;
	d->av_type = ask->av_type ? ask->av_type : FI_AV_TABLE;
	d->mr_mode = wfi_mr_mode_grant(r->version, r->hints);
	d->mr_key_size = WFI_MR_KEY_SIZE;
	d->cq_data_size = WFI_CQ_DATA_SIZE;
	d->cq_cnt = WFI_CQ_CNT;
	d->ep_cnt = WFI_EP_CNT;
	d->tx_ctx_cnt = WFI_EP_CNT;
	d->rx_ctx_cnt = WFI_EP_CNT;
	d->max_ep_tx_ctx = r->entry->single ? 1 : WFI_SEP_CTX;
	d->max_ep_rx_ctx = r->entry->single ? 1 : WFI_SEP_CTX;
	d->max_ep_stx_ctx = WFI_STX_CNT;
	d->max_ep_srx_ctx = WFI_SRX_CNT;
	d->cntr_cnt = WFI_CNTR_CNT;
	d->mr_iov_limit = WFI_MR_IOV_LIMIT;
	d->mr_cnt = WFI_MR_CNT;
	d->caps = wfi_caps_domain(r->entry->remote);
}

/* prov_name, versions: libfabric fills them in. */
static int fill_names(struct fi_info *info, const char *domain)
{
	info->fabric_attr->name = strdup(WFI_FABRIC_NAME);
	info->domain_attr->name = strdup(domain);
	return info->fabric_attr->name && info->domain_attr->name ? 0 : -FI_ENOMEM;
}

static int fill_addr(const struct wire_addr *addr, void **out, size_t *len)
{
	size_t need =
		addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);

	*out = malloc(need);
	if (!*out)
		return -FI_ENOMEM;
	memcpy(*out, addr, need);
	*len = need;
	return 0;
}

static int info_fill(const struct request *r, sa_family_t family,
		     const struct wire_addr *source, const struct wire_addr *dest,
		     struct fi_info *info)
{
	int rc;

	info->caps = wfi_caps_grant(r->hints ? r->hints->caps : 0, r->entry->remote);
	if (r->entry->single)
		info->caps &= ~FI_NAMED_RX_CTX;
	info->addr_format = family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	fill_tx(r, info->caps, info->tx_attr);
	fill_rx(r, info->caps, info->rx_attr);
	fill_ep(info->tx_attr->msg_order | info->rx_attr->msg_order,
		r->hints ? r->hints->ep_attr : NULL, info->ep_attr);
	fill_domain(r, info->domain_attr);
	if (r->hints && r->hints->fabric_attr)
		info->fabric_attr->fabric = r->hints->fabric_attr->fabric;
	rc = fill_names(info, r->entry->name);
	if (!rc)
		rc = wfi_nic_make(r->entry, &info->nic);
	if (!rc)
		rc = fill_addr(source, &info->src_addr, &info->src_addrlen);
	if (!rc && dest)
		rc = fill_addr(dest, &info->dest_addr, &info->dest_addrlen);
	return rc;
}

/* One entry for one family, appended at *tail. */
static int info_family(const struct request *r, sa_family_t family, struct fi_info **tail)
{
	struct wire_addr source, dest;
	struct fi_info *info;
	int with_dest, rc;

	if (!wfi_info_family(r->hints, family))
		return -FI_ENODATA;
	with_dest = request_dest(r, family, &dest);
	if (with_dest < 0)
		return with_dest;
	rc = request_source(r, family, with_dest ? &dest : NULL, &source);
	if (rc)
		return rc;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	rc = info_fill(r, family, &source, with_dest ? &dest : NULL, info);
	if (rc) {
		fi_freeinfo(info);
		return rc;
	}
	*tail = info;
	return 0;
}

static int info_names_only(const struct wfi_entry *entry, struct fi_info **out)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return -FI_ENOMEM;
	if (fill_names(info, entry->name)) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	*out = info;
	return 0;
}

/* What one entry has for each family, appended at *tail, which moves. -FI_ENODATA:
 * nothing. */
static int info_entry(const struct request *r, struct fi_info ***tail)
{
	/* IPv4 first: "localhost" is often both, and a door that nobody gave a host
	 * speaks IPv4. */
	static const sa_family_t families[] = {AF_INET, AF_INET6};
	int found = -FI_ENODATA;
	int rc = wfi_info_match(r->version, r->hints, r->entry);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		rc = info_family(r, families[i], *tail);
		if (!rc) {
			*tail = &(**tail)->next;
			found = 0;
		} else if (rc != -FI_ENODATA) {
			return rc;
		}
	}
	return found;
}

int wfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **out)
{
	struct request r = {
		.version = version,
		.node = node,
		.service = service,
		.flags = flags,
		.hints = hints,
	};
	struct wfi_entry entries[WFI_ENTRIES_MAX];
	size_t count = wfi_entries(
		hints && hints->domain_attr ? hints->domain_attr->name : NULL, entries);
	struct fi_info *list = NULL;
	struct fi_info **tail = &list;

	if (count && (flags & FI_PROV_ATTR_ONLY))
		return info_names_only(&entries[0], out);
	for (size_t i = 0; i < count; i++) {
		int rc;

		r.entry = &entries[i];
		rc = info_entry(&r, &tail);
		if (rc && rc != -FI_ENODATA) {
			fi_freeinfo(list);
			return rc;
		}
	}
	if (!list)
		return -FI_ENODATA;
	*out = list;
	return 0;
}
