/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive context: buffers are posted here, and used by whichever of the endpoints
 * bound to it gets the message; its queue and counter hear of it. It begins with a struct
 * wfi_ep that can do nothing, so that all that an application may call on it ends well.
 */
#ifndef WEFT_FI_SRX_H
#define WEFT_FI_SRX_H

#include "prov/fi/ep_int.h"
#include "util/lock_note.h"

int wfi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		 void *context);
/* NULL when fid is none. */
struct wfi_srx *wfi_srx_of(struct fid *fid);
struct wfi_domain *wfi_srx_domain(struct wfi_srx *srx);
struct receiver *wfi_srx_receiver(struct wfi_srx *srx);

/* Held by the endpoints that are bound to it: closing gives -FI_EBUSY meanwhile. */
LOCK_HELD(lock_domain) void wfi_srx_get(struct wfi_srx *srx);
LOCK_HELD(lock_domain) void wfi_srx_put(struct wfi_srx *srx);
/* An endpoint whose door is open is about to be enabled; it goes. */
LOCK_HELD(lock_domain) int wfi_srx_join(struct wfi_srx *srx, struct wfi_ep *ep);
LOCK_HELD(lock_domain) void wfi_srx_leave(struct wfi_srx *srx, struct wfi_ep *ep);

/* r->source is filled in here. */
LOCK_HELD(lock_domain)
ssize_t wfi_srx_recv(struct wfi_srx *srx, struct proto_recv *r, fi_addr_t source);

/* ---- for ep_peek.c */

/* An endpoint that has a queue for what concerns no message; NULL: none. */
LOCK_HELD(lock_domain) struct wfi_ep *wfi_srx_teller(struct wfi_srx *srx);
/* The one with that serial number; NULL: it is none of these, or gone. */
LOCK_HELD(lock_domain) struct wfi_ep *wfi_srx_find(struct wfi_srx *srx, uint64_t serial);
/* Whom a receive is for: *out, NULL: anybody. */
LOCK_HELD(lock_domain)
int wfi_srx_source(struct wfi_srx *srx, fi_addr_t source, struct proto_peer **out);
/* Progress, and what a post must do after it. */
LOCK_HELD(lock_domain) void wfi_srx_push(struct wfi_srx *srx);
LOCK_HELD(lock_domain) void wfi_srx_posted(struct wfi_srx *srx);

#endif
