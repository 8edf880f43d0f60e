/* SPDX-License-Identifier: BSD-2-Clause */
/* See count_ops.h. What endpoints count under one name is added. */
#include "config.h"

#include "prov/fi/count_ops.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "prov/fi/domain.h"
#include "prov/mem/device.h"
#include "prov/wire/wire.h"

/* All names there are; more of them are left out. */
enum { COUNTS_MAX = 64 };

struct counts {
	struct weft_fi_count at[COUNTS_MAX];
	size_t count;
};

static void counts_add(struct counts *all, const struct wire_counter *c)
{
	for (size_t i = 0; i < all->count; i++) {
		if (strcmp(all->at[i].name, c->name) == 0) {
			all->at[i].value += c->value;
			return;
		}
	}
	if (all->count < COUNTS_MAX)
		all->at[all->count++] = (struct weft_fi_count){c->name, c->value};
}

static int count_domain(struct fid_domain *fid, const void *out, const size_t *count,
			struct wfi_domain **d)
{
	if (!fid || !count || (*count && !out) || !wfi_domain_is(fid))
		return -FI_EINVAL;
	*d = wfi_domain_of(fid);
	return wfi_domain_is_inherited(*d) ? -FI_EOPBADSTATE : 0;
}

static int count_read(struct fid_domain *fid, struct weft_fi_count *counts, size_t *count)
{
	struct wire_counter some[COUNTS_MAX];
	struct counts all = {.count = 0};
	struct wfi_domain *d;
	int rc = count_domain(fid, counts, count, &d);

	if (rc)
		return rc;
	wfi_domain_lock(d);
	list_foreach (pos, &d->eps) {
		struct wfi_quiesce *q = container_of(pos, struct wfi_quiesce, node);
		const uint32_t n = q->counters(q, some, COUNTS_MAX);

		for (uint32_t i = 0; i < n; i++)
			counts_add(&all, &some[i]);
	}
	wfi_domain_unlock(d);
	if (d->devices) {
		const uint32_t n = mem_device_counters(some, COUNTS_MAX);

		for (uint32_t i = 0; i < n; i++)
			counts_add(&all, &some[i]);
	}
	for (size_t i = 0; i < all.count && i < *count; i++)
		counts[i] = all.at[i];
	*count = all.count;
	return 0;
}

static int count_lanes(struct fid_domain *fid, struct weft_fi_lane *lanes, size_t *count)
{
	struct wfi_lanes all = {.at = lanes, .count = 0};
	struct wfi_domain *d;
	int rc = count_domain(fid, lanes, count, &d);

	if (rc)
		return rc;
	all.max = *count;
	wfi_domain_lock(d);
	list_foreach (pos, &d->eps) {
		struct wfi_quiesce *q = container_of(pos, struct wfi_quiesce, node);

		q->lanes(q, &all);
	}
	wfi_domain_unlock(d);
	*count = all.count;
	return 0;
}

const struct weft_fi_count_ops wfi_count_ops = {
	.size = sizeof(struct weft_fi_count_ops),
	.read = count_read,
	.lanes = count_lanes,
};
