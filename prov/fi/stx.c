/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared transmit context; see stx.h. */
#include "config.h"

#include "prov/fi/stx.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/fi/domain.h"
#include "prov/fi/limits.h"
#include "prov/fi/nosys.h"
#include "prov/mem/params.h"

struct wfi_stx {
	struct fid_stx fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	atomic_int refs;
};

struct wfi_stx *wfi_stx_of(struct fid *fid)
{
	return fid && fid->fclass == FI_CLASS_STX_CTX ? (struct wfi_stx *)fid : NULL;
}

struct wfi_domain *wfi_stx_domain(struct wfi_stx *stx)
{
	return stx->domain;
}

void wfi_stx_get(struct wfi_stx *stx)
{
	atomic_fetch_add(&stx->refs, 1);
}

void wfi_stx_put(struct wfi_stx *stx)
{
	atomic_fetch_sub(&stx->refs, 1);
}

static int stx_close(struct fid *fid)
{
	struct wfi_stx *stx = (struct wfi_stx *)fid;

	if (wfi_domain_is_inherited(stx->domain))
		return 0;
	if (atomic_load(&stx->refs)) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"close: %d endpoints are still bound to this shared context\n",
			atomic_load(&stx->refs));
		return -FI_EBUSY;
	}
	wfi_domain_put(stx->domain);
	free(stx);
	return 0;
}

static struct fi_ops stx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

/* ---- nothing is done with it but binding it
 * ------------------------------------------ */

static ssize_t no_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	return -FI_ENOSYS;
}

static int no_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	(void)fid;
	(void)level;
	(void)name;
	(void)val;
	(void)len;
	return -FI_ENOPROTOOPT;
}

static int no_setopt(fid_t fid, int level, int name, const void *val, size_t len)
{
	(void)fid;
	(void)level;
	(void)name;
	(void)val;
	(void)len;
	return -FI_ENOPROTOOPT;
}

static int no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **out, void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)out;
	(void)context;
	return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **out, void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)out;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

static struct fi_ops_ep stx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
	.getopt = no_getopt,
	.setopt = no_setopt,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

/* ---- opening
 * ------------------------------------------------------------------------- */

/* What it asks of endpoints must be what they offer. */
static int stx_check(const struct fi_tx_attr *attr)
{
	if (attr->op_flags & ~WFI_TX_OP_FLAGS)
		return -FI_EBADFLAGS;
	if (attr->inject_size > WFI_INJECT_SIZE || attr->size > WFI_SIZE_MAX ||
	    attr->iov_limit > WFI_IOV_LIMIT || attr->rma_iov_limit > WFI_RMA_IOV_LIMIT ||
	    attr->msg_order & ~WFI_MSG_ORDER)
		return -FI_EINVAL;
	return 0;
}

int wfi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **fid,
		 void *context)
{
	struct wfi_stx *stx;
	int rc = attr ? stx_check(attr) : 0;

	if (rc)
		return rc;
	stx = calloc(1, sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	stx->domain = wfi_domain_of(domain);
	atomic_init(&stx->refs, 0);
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = &stx_fi_ops;
	stx->fid.ops = &stx_ops;
	wfi_domain_get(stx->domain);
	*fid = &stx->fid;
	return 0;
}
