/* SPDX-License-Identifier: BSD-2-Clause */
/* The address vector's inside, shared by its own files: av.c (life, insert, remove) and
 * av_names.c (names and text). */
#ifndef WEFT_FI_AV_INT_H
#define WEFT_FI_AV_INT_H

#include "prov/fi/av.h"
#include "prov/fi/av_share.h"
#include "prov/fi/av_table.h"
#include "prov/fi/domain.h"
#include "prov/fi/eq.h"
#include "util/list.h"
#include "util/lock_note.h"

struct wfi_av {
	struct fid_av fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	struct av_table table;
	struct list users;	/* struct wfi_av_user.node */
	struct av_share *share; /* named: `table` is a copy of that; NULL: ours alone */
	uint32_t seen;		/* av_share_changes of the last look */
	struct wfi_eq *eq;	/* bound; NULL: none */
	enum fi_av_type type;
	int context_bits; /* upper bits of handles that fi_rx_addr fills in */
	bool ids_later;	  /* opened with FI_AV_USER_ID: nobody is told before an id is set
			   */
	bool async;	  /* opened with FI_EVENT: results go to the event queue */
};

/* One call's results: how they are reported depends on the vector and the flags. */
struct wfi_av_batch {
	struct wfi_av *av;
	fi_addr_t *fi_addr; /* where the caller wants them; may be NULL */
	uint64_t flags;
	void *context; /* the caller's; with FI_SYNC_ERR an array of int */
	size_t at;     /* next element */
	size_t good;
	struct list held; /* errors for the event queue, reported at the end */
};

/* 0, or why the call as a whole is refused. */
int wfi_av_batch_begin(struct wfi_av_batch *b, struct wfi_av *av, fi_addr_t *fi_addr,
		       uint64_t flags, void *context);
/* Domain lock held. addr NULL: this element is no address; err says why (> 0). */
LOCK_HELD(lock_domain)
void wfi_av_batch_add(struct wfi_av_batch *b, const struct wire_addr *addr, int err);
/* What the call returns. Lock not held. */
LOCK_NOT_HELD(lock_domain) int wfi_av_batch_end(struct wfi_av_batch *b);

/* ---- av_mirror.c: a vector that other processes have as well */

/* As attr says; attr->map_addr is filled in. */
int wfi_av_share(struct wfi_av *av, struct fi_av_attr *attr);
/* What others inserted and removed since the last time is so here. */
LOCK_HELD(lock_domain) void wfi_av_sync(struct wfi_av *av);
/* An address from here, for all. 0, -FI_ENOMEM, or -FI_EINVAL: the shared rows say that
 * one is free which isn't. */
LOCK_HELD(lock_domain)
int wfi_av_share_insert(struct wfi_av *av, const struct wire_addr *addr, uint32_t *index);

/* The vector's calls that take or give names. */
int wfi_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
		     fi_addr_t *fi_addr, uint64_t flags, void *context);
int wfi_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
		     const char *service, size_t svccnt, fi_addr_t *fi_addr,
		     uint64_t flags, void *context);
const char *wfi_av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len);

#endif
