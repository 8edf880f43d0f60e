/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabric; see fabric.h. */
#include "config.h"

#include "prov/fi/fabric.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/cntr.h"
#include "prov/fi/cq.h"
#include "prov/fi/domain.h"
#include "prov/fi/eq.h"
#include "prov/fi/info.h"
#include "prov/fi/nosys.h"
#include "prov/fi/wait_set.h"
#include "prov/mem/params.h"

static int fabric_close(struct fid *fid)
{
	struct wfi_fabric *f = (struct wfi_fabric *)fid;
	int refs = atomic_load(&f->refs);

	if (wfi_fabric_is_inherited(f))
		return 0;
	if (refs) {
		FI_INFO(&weft_provider, FI_LOG_FABRIC,
			"close: %d domains, event queues and wait sets are still open\n",
			refs);
		return -FI_EBUSY;
	}
	free(f);
	return 0;
}

static int fabric_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			     struct fid_pep **pep, void *context)
{
	(void)fabric;
	(void)info;
	(void)pep;
	(void)context;
	return -FI_ENOSYS;
}

static int wait_set_try(struct fid *fid, const struct wfi_fabric *fabric)
{
	struct wfi_wait_set *set = wfi_wait_set_of((struct fid_wait *)fid, fabric);

	return set ? wfi_wait_set_try(set) : -FI_EINVAL;
}

static int fid_try(struct fid *fid, const struct wfi_fabric *fabric)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return wfi_cq_try(wfi_cq_of(fid));
	case FI_CLASS_CNTR:
		return wfi_cntr_try(wfi_cntr_of(fid));
	case FI_CLASS_EQ:
		return wfi_eq_try(wfi_eq_of(fid));
	case FI_CLASS_WAIT:
		return wait_set_try(fid, fabric);
	default:
		FI_INFO(&weft_provider, FI_LOG_FABRIC,
			"fi_trywait: class %zu is no queue, counter or wait set\n",
			fid->fclass);
		return -FI_EINVAL;
	}
}

static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	for (int i = 0; i < count; i++) {
		int rc = fid_try(fids[i], wfi_fabric_of(fabric));

		if (rc)
			return rc;
	}
	return 0;
}

static int fabric_domain2(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_domain **domain, uint64_t flags, void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return wfi_domain_open(fabric, info, domain, context);
}

static struct fi_ops fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = wfi_domain_open,
	.passive_ep = fabric_passive_ep,
	.eq_open = wfi_eq_open,
	.wait_open = wfi_wait_set_open,
	.trywait = fabric_trywait,
	.domain2 = fabric_domain2,
};

bool wfi_fabric_is(const struct fid_fabric *fid)
{
	return fid->fid.fclass == FI_CLASS_FABRIC && fid->ops == &fabric_ops;
}

int wfi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context)
{
	struct wfi_fabric *f;

	if (attr->name && strcmp(attr->name, WFI_FABRIC_NAME) != 0) {
		FI_INFO(&weft_provider, FI_LOG_FABRIC,
			"fabric \"%s\" was asked for, there is only \"%s\"\n", attr->name,
			WFI_FABRIC_NAME);
		return -FI_ENODATA;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	atomic_init(&f->refs, 0);
	f->born = mem_fork_generation();
	f->fid.fid.fclass = FI_CLASS_FABRIC;
	f->fid.fid.context = context;
	f->fid.fid.ops = &fabric_fi_ops;
	f->fid.ops = &fabric_ops;
	f->fid.api_version = attr->api_version;
	*fabric = &f->fid;
	return 0;
}
