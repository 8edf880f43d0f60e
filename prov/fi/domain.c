/* SPDX-License-Identifier: BSD-2-Clause */
/* Domain; see domain.h. */
#include "config.h"

#include "prov/fi/domain.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/atomic.h"
#include "prov/fi/av.h"
#include "prov/fi/cntr.h"
#include "prov/fi/count_ops.h"
#include "prov/fi/cq.h"
#include "prov/fi/ep.h"
#include "prov/fi/eq.h"
#include "prov/fi/fabric.h"
#include "prov/fi/info.h"
#include "prov/fi/limits.h"
#include "prov/fi/mem_ops.h"
#include "prov/fi/mr.h"
#include "prov/fi/nosys.h"
#include "prov/fi/poll_set.h"
#include "prov/fi/progress.h"
#include "prov/fi/raw_key.h"
#include "prov/fi/sep.h"
#include "prov/fi/srx.h"
#include "prov/fi/stx.h"
#include "prov/fi/work.h"
#include "prov/mem/device.h"
#include "prov/mem/params.h"
#include "util/fi_names.h"

/* ---- what isn't there
 * ------------------------------------------------------------------ */

static int no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			       struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain;
	(void)coll;
	(void)attr;
	(void)flags;
	return -FI_ENOSYS;
}

/* ---- operations
 * ------------------------------------------------------------------------ */

static int domain_endpoint2(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return wfi_ep_open(domain, info, ep, context);
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wfi_domain *d = (struct wfi_domain *)fid;
	struct wfi_eq *eq = wfi_eq_of(bfid);

	if (!eq)
		return -FI_EINVAL;
	/* Registration is done when the call returns: there is no event to send. */
	if (flags)
		return flags == FI_REG_MR ? -FI_ENOSYS : -FI_EBADFLAGS;
	if (d->eq)
		return -FI_EINVAL;
	wfi_eq_get(eq);
	d->eq = eq;
	return 0;
}

static void domain_release(struct wfi_domain *d)
{
	wfi_progress_close(d->progress);
	if (d->keys)
		mem_keytab_close(d->keys);
	if (d->arena)
		mem_arena_close(d->arena);
	if (d->eq)
		wfi_eq_put(d->eq);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static int domain_close(struct fid *fid)
{
	struct wfi_domain *d = (struct wfi_domain *)fid;
	int refs = atomic_load(&d->refs);

	if (wfi_domain_is_inherited(d))
		return 0;
	if (refs) {
		FI_INFO(&weft_provider, FI_LOG_DOMAIN,
			"close: %d objects of this domain are still open\n", refs);
		return -FI_EBUSY;
	}
	atomic_fetch_sub(&d->fabric->refs, 1);
	domain_release(d);
	return 0;
}

static int domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			   void *context)
{
	const bool counts = name && strcmp(name, WEFT_FI_COUNT_OPS) == 0;

	(void)fid;
	(void)context;
	if (!counts && (!name || strcmp(name, WEFT_FI_MEM_OPS) != 0))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = counts ? (void *)(uintptr_t)&wfi_count_ops
		      : (void *)(uintptr_t)&wfi_mem_ops;
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_MAP_RAW_MR:
		return wfi_raw_key_map(arg);
	case FI_UNMAP_KEY:
		return wfi_raw_key_unmap(arg);
	default:
		return wfi_work_control((struct wfi_domain *)fid, command, arg);
	}
}

static struct fi_ops domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = domain_control,
	.ops_open = domain_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = wfi_av_open,
	.cq_open = wfi_cq_open,
	.endpoint = wfi_ep_open,
	.scalable_ep = wfi_sep_open,
	.cntr_open = wfi_cntr_open,
	.poll_open = wfi_poll_open,
	.stx_ctx = wfi_stx_open,
	.srx_ctx = wfi_srx_open,
	.query_atomic = wfi_query_atomic,
	.query_collective = no_query_collective,
	.endpoint2 = domain_endpoint2,
};

bool wfi_domain_is(const struct fid_domain *fid)
{
	return fid->fid.fclass == FI_CLASS_DOMAIN && fid->ops == &domain_ops;
}

/* ---- opening
 * --------------------------------------------------------------------------- */

static bool progress_is_auto(const struct fi_domain_attr *attr)
{
	return attr->data_progress == FI_PROGRESS_AUTO ||
	       attr->control_progress == FI_PROGRESS_AUTO;
}

static void domain_take_attr(struct wfi_domain *d, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	d->threading = attr->threading ? attr->threading : FI_THREAD_SAFE;
	/* Only FI_THREAD_DOMAIN leaves all locking to the application: the others let
	 * two threads work on two endpoints, which share what is behind them here. */
	d->lock_needed = d->threading != FI_THREAD_DOMAIN || progress_is_auto(attr);
	d->mr_mode = attr->mr_mode; /* what getinfo left, or what the caller added */
	d->mr_virt_addr =
		attr->mr_mode == FI_MR_BASIC || (attr->mr_mode & FI_MR_VIRT_ADDR);
	d->mr_prov_key = attr->mr_mode == FI_MR_BASIC || (attr->mr_mode & FI_MR_PROV_KEY);
	d->addr_format = info->addr_format;
}

static int domain_check(const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	if (!attr)
		return -FI_EINVAL;
	if ((attr->mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE)) &&
	    attr->mr_mode != FI_MR_BASIC && attr->mr_mode != FI_MR_SCALABLE) {
		FI_INFO(&weft_provider, FI_LOG_DOMAIN,
			"mr_mode 0x%x: FI_MR_BASIC and FI_MR_SCALABLE stand alone\n",
			(unsigned int)attr->mr_mode);
		return -FI_EINVAL;
	}
	return 0;
}

/* The entry of that name, or the best. */
static int entry_choose(const char *name, struct wfi_entry *out)
{
	struct wfi_entry all[WFI_ENTRIES_MAX];
	size_t n = wfi_entries(name, all);

	for (size_t i = 0; i < n; i++) {
		if (!name || wfi_entry_is(&all[i], name)) {
			*out = all[i];
			return 0;
		}
	}
	FI_INFO(&weft_provider, FI_LOG_DOMAIN,
		"domain \"%s\" was asked for, there is %s%s%s: ask fi_getinfo again\n",
		name ? name : "", n ? "\"" : "", n ? all[0].name : "none",
		n > 1 ? "\" and others"
		: n   ? "\""
		      : "");
	return -FI_EINVAL;
}

int wfi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context)
{
	struct wfi_entry entry;
	struct wfi_domain *d;
	int rc = domain_check(info);

	if (!rc)
		rc = entry_choose(info->domain_attr->name, &entry);
	if (rc)
		return rc;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	list_init(&d->eps);
	list_init(&d->sleeping);
	list_init(&d->counted);
	list_init(&d->keyed);
	list_init(&d->works);
	list_init(&d->ready);
	atomic_init(&d->refs, 0);
	d->born = mem_fork_generation();
	d->entry = entry;
	d->native =
		entry.wire->atomic && prov_params()->verbs_atomics == PROV_ATOMICS_NATIVE;
	d->devices = (info->caps & FI_HMEM) && mem_device_open();
	d->fabric = wfi_fabric_of(fabric);
	d->api_version = fabric->api_version;
	domain_take_attr(d, info);
	rc = mem_keytab_open(WFI_MR_CNT, &d->keys);
	if (rc)
		FI_WARN(&weft_provider, FI_LOG_DOMAIN, "no key table for %d keys: %s\n",
			WFI_MR_CNT, fi_strerror(-rc));
	else if (info->caps & FI_RMA_EVENT) /* before peers can hear of a key */
		mem_keytab_want(d->keys, MEM_EVENTS_EP);
	if (!rc)
		rc = mem_arena_open(&d->arena);
	if (!rc && progress_is_auto(info->domain_attr))
		rc = wfi_progress_open(d, &d->progress);
	if (rc) {
		domain_release(d);
		return rc;
	}
	d->fid.fid.fclass = FI_CLASS_DOMAIN;
	d->fid.fid.context = context;
	d->fid.fid.ops = &domain_fi_ops;
	d->fid.ops = &domain_ops;
	d->fid.mr = &wfi_mr_ops;
	atomic_fetch_add(&d->fabric->refs, 1);
	*domain = &d->fid;
	return 0;
}
