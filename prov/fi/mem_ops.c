/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory operations of a domain; see weft/weft_fi.h. An allocation counts as an object of
 * the domain. */
#include "config.h"

#include "prov/fi/mem_ops.h"

#include <rdma/fi_errno.h>

#include "prov/fi/domain.h"
#include "prov/mem/arena.h"
#include "prov/mem/params.h"

static int mem_alloc(struct fid_domain *fid, size_t len, uint64_t flags, void **addr)
{
	struct wfi_domain *d;
	int ret;

	if (!fid || !addr || !wfi_domain_is(fid))
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	d = wfi_domain_of(fid);
	if (wfi_domain_is_inherited(d))
		return -FI_EOPBADSTATE;
	ret = mem_arena_alloc(d->arena, len, addr);
	if (ret) {
		FI_INFO(&weft_provider, FI_LOG_DOMAIN, "%zu bytes of shared memory: %s\n",
			len, fi_strerror(-ret));
		return ret;
	}
	wfi_domain_get(d);
	return 0;
}

static int mem_free(struct fid_domain *fid, void *addr)
{
	struct wfi_domain *d;
	int ret;

	if (!fid || !wfi_domain_is(fid))
		return -FI_EINVAL;
	d = wfi_domain_of(fid);
	/* The pages are the parent's as well. */
	if (wfi_domain_is_inherited(d))
		return 0;
	ret = mem_arena_free(d->arena, addr);
	if (ret)
		return ret;
	wfi_domain_put(d);
	return 0;
}

const struct weft_fi_mem_ops wfi_mem_ops = {
	.size = sizeof(struct weft_fi_mem_ops),
	.alloc = mem_alloc,
	.free = mem_free,
};
