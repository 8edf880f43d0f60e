/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hints can be met; one function for each part of struct fi_info. */
#include "config.h"

#include "prov/fi/info_match.h"

#include <stddef.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/domain.h"
#include "prov/fi/entry.h"
#include "prov/fi/fabric.h"
#include "prov/fi/import.h"
#include "prov/fi/info.h"
#include "prov/fi/limits.h"
#include "prov/fi/newer.h"
#include "prov/mem/device.h"
#include "prov/mem/params.h"
#include "util/fi_names.h"

#define CAPS_MSG (FI_MSG | FI_TAGGED)
#define CAPS_RMA (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A value beyond these would be echoed without being understood. 3 is 1.21's
 * FI_PROGRESS_CONTROL_UNIFIED, which demands less than FI_PROGRESS_MANUAL. */
#define THREADING_LAST FI_THREAD_ENDPOINT
#define PROGRESS_LAST  3

static int refuse_bits(const char *what, uint64_t asked, uint64_t have)
{
	FI_INFO(&weft_provider, FI_LOG_CORE,
		"hint %s: asked 0x%llx, of which 0x%llx is not supported\n", what,
		(unsigned long long)asked, (unsigned long long)(asked & ~have));
	return -FI_ENODATA;
}

static int refuse_value(const char *what, uint64_t asked, uint64_t most)
{
	FI_INFO(&weft_provider, FI_LOG_CORE,
		"hint %s: asked %llu, at most %llu is supported\n", what,
		(unsigned long long)asked, (unsigned long long)most);
	return -FI_ENODATA;
}

static int refuse_name(const char *what, const char *asked, const char *have)
{
	FI_INFO(&weft_provider, FI_LOG_CORE,
		"hint %s: asked \"%s\", this entry is \"%s\"\n", what, asked, have);
	return -FI_ENODATA;
}

/* A row of "at most" limits. */
struct limit {
	const char *what;
	uint64_t asked;
	uint64_t most;
};

static int match_limits(const struct limit *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].asked > rows[i].most)
			return refuse_value(rows[i].what, rows[i].asked, rows[i].most);
	}
	return 0;
}

/* Asked for in any of the three places. */
static bool wants_devices(const struct fi_info *hints)
{
	return hints && ((hints->caps | (hints->tx_attr ? hints->tx_attr->caps : 0) |
			  (hints->rx_attr ? hints->rx_attr->caps : 0)) &
			 FI_HMEM);
}

/* Memory of GPUs: whether there is one is asked, and the driver loaded, only for those
 * who want it. They must offer to register it. */
static int match_devices(uint32_t version, const struct fi_info *hints)
{
	int mode = hints->domain_attr ? hints->domain_attr->mr_mode : 0;

	if (!wants_devices(hints))
		return 0;
	if (version < FI_VERSION(1, 9) || !(hints->caps & FI_HMEM)) {
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"hint caps: FI_HMEM is asked for in hints->caps, of interface "
			"1.9 "
			"or later\n");
		return -FI_ENODATA;
	}
	if (!(mode & FI_MR_HMEM) || (mode & (FI_MR_BASIC | FI_MR_SCALABLE))) {
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"hint caps: FI_HMEM takes FI_MR_HMEM in domain_attr->mr_mode, "
			"which has 0x%x\n",
			(unsigned int)mode);
		return -FI_ENODATA;
	}
	if (!mem_device_open()) {
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"hint caps: FI_HMEM: there is no GPU: %s\n", mem_device_why());
		return -FI_ENODATA;
	}
	return 0;
}

uint64_t wfi_caps_all(bool remote)
{
	return WFI_TX_CAPS | WFI_RX_CAPS | FI_SHARED_AV | FI_AV_USER_ID | FI_LOCAL_COMM |
	       (remote ? FI_REMOTE_COMM : 0) | (wfi_import_can() ? FI_PEER : 0);
}

uint64_t wfi_caps_domain(bool remote)
{
	return FI_SHARED_AV | FI_LOCAL_COMM | (remote ? FI_REMOTE_COMM : 0);
}

uint64_t wfi_caps_grant(uint64_t asked, bool remote)
{
	uint64_t caps = asked;

	if (!caps)
		return wfi_caps_all(remote);
	if ((caps & CAPS_MSG) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & CAPS_RMA))
		caps |= CAPS_RMA;
	/* FI_SOURCE is not volunteered: finding the source costs each receive. */
	if ((caps & FI_MSG) && (caps & FI_RECV))
		caps |= FI_MULTI_RECV;
	return caps | FI_LOCAL_COMM | (remote ? FI_REMOTE_COMM : 0);
}

static int match_caps(const struct fi_info *hints, bool remote)
{
	uint64_t all = wfi_caps_all(remote) | FI_HMEM; /* of that, match_devices knows */

	if (hints->caps & ~all) {
		if (hints->caps & FI_REMOTE_COMM & ~all)
			FI_INFO(&weft_provider, FI_LOG_CORE,
				"FI_REMOTE_COMM: shared memory alone reaches only peers "
				"on this host; FI_WEFT_CLAIM_REMOTE=1 announces it all "
				"the same\n");
		return refuse_bits("caps", hints->caps, all);
	}
	return 0;
}

static int match_tx(const struct fi_tx_attr *tx, bool remote)
{
	const struct limit limits[] = {
		{"tx_attr->inject_size", tx->inject_size, WFI_INJECT_SIZE},
		{"tx_attr->size", tx->size, WFI_SIZE_MAX},
		{"tx_attr->iov_limit", tx->iov_limit, WFI_IOV_LIMIT},
		{"tx_attr->rma_iov_limit", tx->rma_iov_limit, WFI_RMA_IOV_LIMIT},
		{"tx_attr->comp_order", tx->comp_order, FI_ORDER_NONE},
	};

	if (tx->caps & ~(wfi_caps_all(remote) | FI_HMEM))
		return refuse_bits("tx_attr->caps", tx->caps,
				   wfi_caps_all(remote) | FI_HMEM);
	if (tx->op_flags & ~WFI_TX_OP_FLAGS)
		return refuse_bits("tx_attr->op_flags", tx->op_flags, WFI_TX_OP_FLAGS);
	if (tx->msg_order & ~WFI_MSG_ORDER)
		return refuse_bits("tx_attr->msg_order", tx->msg_order, WFI_MSG_ORDER);
	return match_limits(limits, sizeof(limits) / sizeof(limits[0]));
}

static int match_rx(const struct fi_rx_attr *rx, bool remote)
{
	const struct limit limits[] = {
		{"rx_attr->size", rx->size, WFI_SIZE_MAX},
		{"rx_attr->iov_limit", rx->iov_limit, WFI_IOV_LIMIT},
		{"rx_attr->comp_order", rx->comp_order, FI_ORDER_NONE},
		{"rx_attr->total_buffered_recv", rx->total_buffered_recv, 0},
	};

	if (rx->caps & ~(wfi_caps_all(remote) | FI_HMEM))
		return refuse_bits("rx_attr->caps", rx->caps,
				   wfi_caps_all(remote) | FI_HMEM);
	if (rx->op_flags & ~WFI_RX_OP_FLAGS)
		return refuse_bits("rx_attr->op_flags", rx->op_flags, WFI_RX_OP_FLAGS);
	if (rx->msg_order & ~WFI_MSG_ORDER)
		return refuse_bits("rx_attr->msg_order", rx->msg_order, WFI_MSG_ORDER);
	return match_limits(limits, sizeof(limits) / sizeof(limits[0]));
}

static int match_ep(const struct fi_ep_attr *ep)
{
	const struct limit limits[] = {
		{"ep_attr->max_msg_size", ep->max_msg_size, WFI_MAX_MSG_SIZE},
		{"ep_attr->max_order_raw_size", ep->max_order_raw_size, WFI_MAX_MSG_SIZE},
		{"ep_attr->max_order_war_size", ep->max_order_war_size, WFI_MAX_MSG_SIZE},
		{"ep_attr->max_order_waw_size", ep->max_order_waw_size, WFI_MAX_MSG_SIZE},
		{"ep_attr->tx_ctx_cnt",
		 ep->tx_ctx_cnt == FI_SHARED_CONTEXT ? 1 : ep->tx_ctx_cnt, WFI_SEP_CTX},
		{"ep_attr->rx_ctx_cnt",
		 ep->rx_ctx_cnt == FI_SHARED_CONTEXT ? 1 : ep->rx_ctx_cnt, WFI_SEP_CTX},
		{"ep_attr->auth_key_size", ep->auth_key_size, 0},
	};

	/* The other types must stay quiet: utility providers would stack on them. */
	if (ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM)
		return refuse_value("ep_attr->type (only FI_EP_RDM)", (uint64_t)ep->type,
				    FI_EP_RDM);
	if (ep->protocol && ep->protocol != WFI_PROTO)
		return refuse_value("ep_attr->protocol (other than Weft's)", ep->protocol,
				    WFI_PROTO);
	if (ep->protocol && ep->protocol_version > WFI_PROTO_VERSION)
		return refuse_value("ep_attr->protocol_version", ep->protocol_version,
				    WFI_PROTO_VERSION);
	return match_limits(limits, sizeof(limits) / sizeof(limits[0]));
}

/* BASIC and SCALABLE stand alone; before 1.5 there is nothing else. */
static int match_mr_mode(uint32_t version, int mode)
{
	bool old = mode == FI_MR_UNSPEC || mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;

	if (old)
		return 0;
	if (version < FI_VERSION(1, 5))
		return refuse_bits("domain_attr->mr_mode (before 1.5: BASIC or SCALABLE)",
				   (uint32_t)mode, FI_MR_BASIC | FI_MR_SCALABLE);
	if (mode & (FI_MR_BASIC | FI_MR_SCALABLE))
		return refuse_bits(
			"domain_attr->mr_mode (BASIC and SCALABLE stand alone)",
			(uint32_t)mode, ~(uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE));
	return 0;
}

/* What is demanded without need, of those that can reach memory at all. */
static int mr_mode_demanded(uint64_t caps)
{
	static const int modes[] = {
		[PROV_MR_NOTHING] = 0,
		[PROV_MR_RAW] = FI_MR_RAW,
		[PROV_MR_RMA_EVENT] = FI_MR_RMA_EVENT,
		[PROV_MR_ENDPOINT] = FI_MR_ENDPOINT,
		[PROV_MR_ALL] = FI_MR_RAW | FI_MR_RMA_EVENT | FI_MR_ENDPOINT,
	};
	int mode = modes[prov_params()->mr_demand];

	if (!(caps & (FI_RMA | FI_ATOMIC)))
		return 0;
	return caps & FI_RMA_EVENT ? mode : mode & ~FI_MR_RMA_EVENT;
}

static int match_mr_demand(const struct fi_info *hints)
{
	uint64_t caps = hints->caps ? hints->caps : wfi_caps_all(false);
	int demanded = mr_mode_demanded(caps), offered = hints->domain_attr->mr_mode;

	if (demanded & ~offered) {
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"hint domain_attr->mr_mode: 0x%x is offered, FI_WEFT_MR_DEMAND "
			"demands 0x%x\n",
			(unsigned int)offered, (unsigned int)demanded);
		return -FI_ENODATA;
	}
	return 0;
}

static int match_domain_new(uint32_t version, const struct fi_domain_attr *d)
{
	if (version < FI_VERSION(2, 0))
		return 0;
	if (newer_max_ep_auth_key(d))
		return refuse_value("domain_attr->max_ep_auth_key",
				    newer_max_ep_auth_key(d), 0);
	if (newer_max_group_id(d))
		return refuse_value("domain_attr->max_group_id", newer_max_group_id(d),
				    0);
	return 0;
}

static int match_domain(uint32_t version, const struct fi_domain_attr *d,
			const struct wfi_entry *entry)
{
	uint64_t caps = wfi_caps_domain(entry->remote);
	const struct limit limits[] = {
		{"domain_attr->threading", d->threading, THREADING_LAST},
		{"domain_attr->control_progress", d->control_progress, PROGRESS_LAST},
		{"domain_attr->data_progress", d->data_progress, PROGRESS_LAST},
		{"domain_attr->resource_mgmt", d->resource_mgmt, FI_RM_ENABLED},
		{"domain_attr->av_type", d->av_type, FI_AV_TABLE},
		{"domain_attr->mr_key_size", d->mr_key_size, WFI_MR_KEY_SIZE},
		{"domain_attr->cq_data_size", d->cq_data_size, WFI_CQ_DATA_SIZE},
		{"domain_attr->cq_cnt", d->cq_cnt, WFI_CQ_CNT},
		{"domain_attr->cntr_cnt", d->cntr_cnt, WFI_CNTR_CNT},
		{"domain_attr->ep_cnt", d->ep_cnt, WFI_EP_CNT},
		{"domain_attr->max_ep_tx_ctx", d->max_ep_tx_ctx, WFI_SEP_CTX},
		{"domain_attr->max_ep_rx_ctx", d->max_ep_rx_ctx, WFI_SEP_CTX},
		{"domain_attr->max_ep_stx_ctx", d->max_ep_stx_ctx, WFI_STX_CNT},
		{"domain_attr->max_ep_srx_ctx", d->max_ep_srx_ctx, WFI_SRX_CNT},
		{"domain_attr->mr_iov_limit", d->mr_iov_limit, WFI_MR_IOV_LIMIT},
		{"domain_attr->mr_cnt", d->mr_cnt, WFI_MR_CNT},
		{"domain_attr->max_err_data", d->max_err_data, 0},
		{"domain_attr->auth_key_size", d->auth_key_size, 0},
	};
	int rc;

	if (d->domain && !wfi_domain_is(d->domain))
		return refuse_name("domain_attr->domain", "a domain of somebody else",
				   entry->name);
	if (d->domain && strcmp(wfi_domain_of(d->domain)->entry.name, entry->name) != 0)
		return refuse_name("domain_attr->domain",
				   wfi_domain_of(d->domain)->entry.name, entry->name);
	if (d->name && !wfi_entry_is(entry, d->name))
		return refuse_name("domain_attr->name", d->name, entry->name);
	if (d->caps & ~caps)
		return refuse_bits("domain_attr->caps", d->caps, caps);
	rc = match_limits(limits, sizeof(limits) / sizeof(limits[0]));
	if (!rc)
		rc = match_mr_mode(version, d->mr_mode);
	if (!rc)
		rc = match_domain_new(version, d);
	return rc;
}

static int match_fabric(const struct fi_fabric_attr *f)
{
	if (f->fabric && !wfi_fabric_is(f->fabric))
		return refuse_name("fabric_attr->fabric", "a fabric of somebody else",
				   WFI_FABRIC_NAME);
	if (f->name && strcmp(f->name, WFI_FABRIC_NAME) != 0)
		return refuse_name("fabric_attr->name", f->name, WFI_FABRIC_NAME);
	if (f->prov_version > weft_provider.version)
		return refuse_value("fabric_attr->prov_version", f->prov_version,
				    weft_provider.version);
	return 0;
}

/* Where endpoints have one context. */
static int match_single(const struct fi_info *hints)
{
	const struct fi_ep_attr *ep = hints->ep_attr;
	const struct fi_domain_attr *d = hints->domain_attr;
	uint64_t caps = hints->caps | (hints->tx_attr ? hints->tx_attr->caps : 0);
	const struct limit limits[] = {
		{"ep_attr->tx_ctx_cnt",
		 ep && ep->tx_ctx_cnt != FI_SHARED_CONTEXT ? ep->tx_ctx_cnt : 0, 1},
		{"ep_attr->rx_ctx_cnt",
		 ep && ep->rx_ctx_cnt != FI_SHARED_CONTEXT ? ep->rx_ctx_cnt : 0, 1},
		{"domain_attr->max_ep_tx_ctx", d ? d->max_ep_tx_ctx : 0, 1},
		{"domain_attr->max_ep_rx_ctx", d ? d->max_ep_rx_ctx : 0, 1},
	};

	if (caps & FI_NAMED_RX_CTX)
		return refuse_bits("caps (FI_NAMED_RX_CTX: this wire has no contexts)",
				   caps, ~FI_NAMED_RX_CTX);
	return match_limits(limits, sizeof(limits) / sizeof(limits[0]));
}

int wfi_info_match(uint32_t version, const struct fi_info *hints,
		   const struct wfi_entry *entry)
{
	bool remote = entry->remote;
	int rc = 0;

	if (!hints)
		return 0;
	if (hints->ep_attr)
		rc = match_ep(hints->ep_attr);
	if (!rc)
		rc = match_caps(hints, remote);
	if (!rc && entry->single)
		rc = match_single(hints);
	if (!rc && hints->tx_attr)
		rc = match_tx(hints->tx_attr, remote);
	if (!rc && hints->rx_attr)
		rc = match_rx(hints->rx_attr, remote);
	if (!rc && hints->domain_attr)
		rc = match_domain(version, hints->domain_attr, entry);
	if (!rc && hints->domain_attr)
		rc = match_mr_demand(hints);
	if (!rc && hints->fabric_attr)
		rc = match_fabric(hints->fabric_attr);
	if (!rc)
		rc = match_devices(version, hints);
	if (!rc && !wfi_info_family(hints, AF_INET) && !wfi_info_family(hints, AF_INET6))
		rc = refuse_value("addr_format (only FI_SOCKADDR, _IN, _IN6)",
				  hints->addr_format, FI_SOCKADDR_IN6);
	return rc;
}

int wfi_mr_mode_grant(uint32_t version, const struct fi_info *hints)
{
	int mode =
		hints && hints->domain_attr ? hints->domain_attr->mr_mode : FI_MR_UNSPEC;

	if (mode == FI_MR_BASIC || mode == FI_MR_SCALABLE)
		return mode;
	if (version < FI_VERSION(1, 5))
		return FI_MR_SCALABLE;
	/* What is returned is what the application has to do (fi_domain(3)), and no wire
	 * here needs anything of it, unless somebody wants that. */
	return mr_mode_demanded(hints && hints->caps ? hints->caps
						     : wfi_caps_all(false)) |
	       (wants_devices(hints) ? FI_MR_HMEM : 0);
}

bool wfi_info_family(const struct fi_info *hints, sa_family_t family)
{
	uint32_t format = hints ? hints->addr_format : FI_FORMAT_UNSPEC;

	if (format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR)
		return true;
	return format == (family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN);
}
