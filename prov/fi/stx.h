/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared transmit context: endpoints name the same one, so that a device could give them
 * one queue. Here nothing is scarce that they would have to share; it is only held. */
#ifndef WEFT_FI_STX_H
#define WEFT_FI_STX_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

struct wfi_domain;
struct wfi_stx;

int wfi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		 void *context);
/* NULL when fid is none. */
struct wfi_stx *wfi_stx_of(struct fid *fid);
struct wfi_domain *wfi_stx_domain(struct wfi_stx *stx);

/* Held by the endpoints that are bound to it: closing gives -FI_EBUSY meanwhile. */
void wfi_stx_get(struct wfi_stx *stx);
void wfi_stx_put(struct wfi_stx *stx);

#endif
