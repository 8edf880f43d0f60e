/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of another provider that Weft tells what happens (FI_PEER, fi_peer(3)): here
 * the "owner" has what the application sees, and Weft is its peer. The interface changes
 * between versions of libfabric, so it is there only where Weft was built with the
 * headers of the libfabric that runs; elsewhere FI_PEER is refused. The owner's functions
 * lock what is theirs; they are called with the domain's lock held unless it says so.
 */
#ifndef WEFT_FI_IMPORT_H
#define WEFT_FI_IMPORT_H

#include <stdbool.h>

struct fid_peer_cntr;
struct fid_peer_cq;
struct fid_peer_srx;
struct proto_matcher_ops;
struct wfi_cq_entry;
struct wfi_cq_error;

/* FI_PEER can be honoured. */
bool wfi_import_can(void);

/* context: as the application that owns it gave it to fi_cq_open, fi_cntr_open,
 * fi_srx_context. -FI_EINVAL: it isn't what it should be, or wfi_import_can says no. Says
 * so. */
int wfi_import_cq(const void *context, struct fid_peer_cq **out);
int wfi_import_cntr(const void *context, struct fid_peer_cntr **out);
/* From here on the owner may call. */
int wfi_import_srx(const void *context, struct fid_peer_srx **out);

/* False: the owner doesn't take it now. */
bool wfi_import_write(struct fid_peer_cq *owner, const struct wfi_cq_entry *entry);
bool wfi_import_write_error(struct fid_peer_cq *owner, const struct wfi_cq_error *error);

void wfi_import_inc(struct fid_peer_cntr *owner);
void wfi_import_inc_error(struct fid_peer_cntr *owner);

/* Its argument is a struct fid_peer_srx. */
extern const struct proto_matcher_ops wfi_import_matcher;
/* Domain lock not held. Messages that wait there may have senders that are known now. */
void wfi_import_look_again(struct fid_peer_srx *owner);

#endif
