/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_ep_alias: the same endpoint under another handle, with flags of its own for
 * operations without flags. An alias is a copy of what an operation looks at, which never
 * changes once the endpoint is enabled; everything else is done to the endpoint itself.
 */
#include "config.h"

#include <stdlib.h>

#include "prov/fi/ep_int.h"
#include "prov/fi/nosys.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

LOCK_HELD(lock_domain) static void copy(struct wfi_ep *alias, const struct wfi_ep *ep)
{
	const struct fid_ep fid = alias->fid;
	uint64_t tx = alias->tx_op_flags, rx = alias->rx_op_flags;
	struct list node = alias->alias;

	*alias = *ep;
	alias->fid = fid;
	alias->tx_op_flags = tx;
	alias->rx_op_flags = rx;
	alias->of = (struct wfi_ep *)(uintptr_t)ep;
	alias->alias = node;
	list_init(&alias->aliases);
	list_init(&alias->av_user.node);
	list_init(&alias->quiesce.node);
	list_init(&alias->sharing);
	alias->tx_bits = wfi_ep_tx_bits(alias, tx);
	alias->rx_bits = wfi_ep_rx_bits(alias, rx);
	if (alias->enabled) {
		wfi_ep_fast_select(alias);
	}
}

void wfi_ep_alias_sync(struct wfi_ep *ep)
{
	list_foreach (n, &ep->aliases) {
		copy(container_of(n, struct wfi_ep, alias), ep);
	}
}

static int alias_close(struct fid *fid)
{
	struct wfi_ep *alias = wfi_ep_of(fid);
	struct wfi_domain *d = alias->domain;

	if (wfi_domain_is_inherited(d))
		return 0;
	wfi_domain_lock(d);
	list_remove(&alias->alias);
	wfi_domain_unlock(d);
	free(alias);
	return 0;
}

static struct fi_ops alias_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = alias_close,
	.bind = wfi_ep_bind,
	.control = wfi_ep_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

int wfi_ep_alias_open(struct wfi_ep *ep, struct fi_alias *arg)
{
	uint64_t side = arg->flags & (FI_TRANSMIT | FI_RECV);
	uint64_t value = arg->flags & ~(FI_TRANSMIT | FI_RECV);
	struct wfi_ep *root = wfi_ep_root(ep), *alias;

	if (!arg->fid || (side != FI_TRANSMIT && side != FI_RECV)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"fi_ep_alias: flags for one side, FI_TRANSMIT or FI_RECV\n");
		return -FI_EINVAL;
	}
	if (value & ~wfi_ep_default_flags(ep, side)) {
		return -FI_EBADFLAGS;
	}
	alias = calloc(1, sizeof(*alias));
	if (!alias) {
		return -FI_ENOMEM;
	}
	alias->fid = root->fid;
	alias->fid.fid.ops = &alias_fi_ops;
	alias->tx_op_flags = side == FI_TRANSMIT ? value : ep->tx_op_flags;
	alias->rx_op_flags = side == FI_RECV ? value : ep->rx_op_flags;
	list_init(&alias->alias);
	copy(alias, root);
	list_push_back(&root->aliases, &alias->alias);
	*arg->fid = &alias->fid.fid;
	return 0;
}
