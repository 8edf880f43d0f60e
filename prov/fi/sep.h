/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scalable endpoint: one address, behind which each context of either direction is an
 * endpoint with a door of its own, which is named after the address and the context's
 * number. Receive context 0 is who answers at the address itself; what must be known
 * before the application opens it (the address) is kept by a hidden one.
 */
#ifndef WEFT_FI_SEP_H
#define WEFT_FI_SEP_H

#include "prov/fi/ep_int.h"
#include "util/lock_note.h"

int wfi_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
		 void *context);

/* ---- for the endpoint's calls */

int wfi_sep_tx(struct wfi_sep *sep, int index, struct fi_tx_attr *attr,
	       struct fid_ep **out, void *context);
int wfi_sep_rx(struct wfi_sep *sep, int index, struct fi_rx_attr *attr,
	       struct fid_ep **out, void *context);
/* The address is in the scalable endpoint's addr afterwards. */
LOCK_HELD(lock_domain) int wfi_sep_name(struct wfi_sep *sep);
LOCK_NOT_HELD(lock_domain)
int wfi_sep_setname(struct wfi_sep *sep, const struct wire_addr *wanted);

/* ---- for its contexts */

/* What door it is to open; it is open; the context is closed. */
LOCK_HELD(lock_domain) int wfi_sep_place(struct wfi_sep *sep, struct wfi_ep *ep);
LOCK_HELD(lock_domain) void wfi_sep_placed(struct wfi_sep *sep, const struct wfi_ep *ep);
LOCK_HELD(lock_domain) void wfi_sep_forget(struct wfi_sep *sep, struct wfi_ep *ep);
/* It is about to be enabled: from then on whoever waits for a transmit context drives the
 * receive context of the same number as well, and the other way round, as one endpoint
 * would. It goes. */
LOCK_HELD(lock_domain) int wfi_sep_pair(struct wfi_sep *sep, struct wfi_ep *ep);
LOCK_HELD(lock_domain) void wfi_sep_part(struct wfi_ep *ep);
/* It uses the vector that the scalable endpoint is bound to, if that is bound to one. */
LOCK_HELD(lock_domain) void wfi_sep_lend_av(struct wfi_sep *sep, struct wfi_ep *ep);

#endif
