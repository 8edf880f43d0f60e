/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector, map and table alike: an fi_addr_t is a dense index. Endpoints keep
 * their peers in arrays by that index and are told when an index dies or appears.
 */
#ifndef WEFT_FI_AV_H
#define WEFT_FI_AV_H

#include <stdint.h>

#include <rdma/fi_domain.h>

#include "prov/wire/addr.h"
#include "util/list.h"
#include "util/lock_note.h"

struct fid_peer_srx;
struct wfi_av;
struct wfi_domain;

int wfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);
struct wfi_av *wfi_av_of(struct fid *fid);
struct wfi_domain *wfi_av_domain(struct wfi_av *av);

/* Domain lock held. NULL for an index that was not inserted or was removed. The pointer
 * is good until the next insert. */
LOCK_HELD(lock_domain)
const struct wire_addr *wfi_av_addr(struct wfi_av *av, fi_addr_t fi_addr);

/* What fi_rx_addr put together: the handle itself, and the number of a receive context; 0
 * where the vector reserves no bits for it. */
fi_addr_t wfi_av_split(const struct wfi_av *av, fi_addr_t fi_addr, uint32_t *context);

/* What completions say about messages from there: the fi_addr, or what the application
 * calls it (FI_AV_USER_ID). */
LOCK_HELD(lock_domain) fi_addr_t wfi_av_told(struct wfi_av *av, fi_addr_t fi_addr);

/* Constant time. The lowest fi_addr of that address, or FI_ADDR_NOTAVAIL. */
LOCK_HELD(lock_domain)
fi_addr_t wfi_av_find(struct wfi_av *av, const struct wire_addr *addr);

/* Indices are below this. */
size_t wfi_av_limit(const struct wfi_av *av);

/* An endpoint bound to the vector. Callbacks come with the domain lock held, inserted
 * after the entry is there, removed before it is gone. */
struct wfi_av_user {
	struct list node;
	void (*inserted)(struct wfi_av_user *u, fi_addr_t fi_addr);
	void (*removed)(struct wfi_av_user *u, fi_addr_t fi_addr);
	void (*renamed)(struct wfi_av_user *u,
			fi_addr_t fi_addr); /* wfi_av_told differs */
	/* Told after a call that inserted something, without the lock (import.h); or
	 * NULL. */
	struct fid_peer_srx *owner;
};
LOCK_HELD(lock_domain) void wfi_av_attach(struct wfi_av *av, struct wfi_av_user *u);
LOCK_HELD(lock_domain) void wfi_av_detach(struct wfi_av *av, struct wfi_av_user *u);

#endif
