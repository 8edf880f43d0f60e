/* SPDX-License-Identifier: BSD-2-Clause */
/* A vector that other processes have as well: its table follows the shared rows, looked
 * at when something is asked for that the table doesn't know, or is changed here. */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/fi/av_int.h"
#include "prov/mem/params.h"

int wfi_av_share(struct wfi_av *av, struct fi_av_attr *attr)
{
	int rc =
		av_share_open(attr->name, attr->flags & FI_READ, attr->count, &av->share);

	if (rc) {
		FI_INFO(&weft_provider, FI_LOG_AV, "the shared vector \"%s\": %s\n",
			attr->name, fi_strerror(-rc));
		return rc;
	}
	/* Handles are the same whatever it is. */
	if (!attr->map_addr)
		attr->map_addr = (void *)(uintptr_t)av_share_handles(av->share);
	return 0;
}

LOCK_HELD(lock_domain)
static int row_came(struct wfi_av *av, uint32_t index, const struct wire_addr *addr)
{
	int rc = av_table_place(&av->table, addr, index);

	if (rc)
		return rc;
	if (av->ids_later)
		av->table.rows[index].user_id = FI_ADDR_NOTAVAIL;
	list_foreach (pos, &av->users) {
		struct wfi_av_user *u = container_of(pos, struct wfi_av_user, node);

		u->inserted(u, index);
	}
	return 0;
}

LOCK_HELD(lock_domain) static void row_went(struct wfi_av *av, uint32_t index)
{
	list_foreach (pos, &av->users) {
		struct wfi_av_user *u = container_of(pos, struct wfi_av_user, node);

		u->removed(u, index);
	}
	av_table_remove(&av->table, index);
}

void wfi_av_sync(struct wfi_av *av)
{
	uint32_t changes = av_share_changes(av->share);
	uint32_t limit = av_share_limit(av->share);

	if (changes == av->seen)
		return;
	av->seen = changes;
	for (uint32_t i = 0; i < limit; i++) {
		bool here = av_table_addr(&av->table, i) != NULL;
		struct wire_addr addr;
		enum av_share_state state = av_share_row(av->share, i, &addr);

		if (state == AV_SHARE_USED && !here &&
		    row_came(av, i, &addr) == -FI_ENOMEM)
			av->seen = changes - 1; /* the next call looks again */
		else if (state == AV_SHARE_GONE && here)
			row_went(av, i);
	}
}

int wfi_av_share_insert(struct wfi_av *av, const struct wire_addr *addr, uint32_t *index)
{
	int rc = av_share_add(av->share, addr, index);

	if (rc)
		return rc;
	/* No memory; or somebody counted rows back that are here. Then it isn't there for
	 * the others either. */
	rc = av_table_place(&av->table, addr, *index);
	if (rc)
		av_share_remove(av->share, *index);
	return rc;
}
