/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoint's inside, shared by its own files: ep.c (life), ep_bind.c (what it is
 * bound to), ep_control.c (control, names), ep_option.c (options), ep_msg.c, ep_tagged.c,
 * ep_peek.c, ep_rma.c, ep_atomic.c (operations), ep_fast.c, ep_fast_more.c, ep_fast_rma.c
 * (the frequent ones), ep_done.c (completions), ep_nosys.c (what isn't there).
 */
#ifndef WEFT_FI_EP_INT_H
#define WEFT_FI_EP_INT_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "prov/fi/av.h"
#include "prov/fi/cntr.h"
#include "prov/fi/cq.h"
#include "prov/fi/domain.h"
#include "prov/fi/ep.h"
#include "prov/fi/limits.h"
#include "prov/fi/pollable.h"
#include "prov/fi/wait.h"
#include "prov/proto/engine.h"
#include "util/lock_note.h"

struct wfi_eq;
struct wfi_sep;
struct wfi_srx;
struct wfi_stx;

/* Counters by what they count. */
enum wfi_ep_cntr {
	EP_CNTR_SEND,
	EP_CNTR_RECV,
	EP_CNTR_READ,
	EP_CNTR_WRITE,
	EP_CNTR_REMOTE_READ,
	EP_CNTR_REMOTE_WRITE,
	EP_CNTRS
};

struct wfi_ep {
	struct fid_ep fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	struct proto_ep *proto; /* NULL until the door is open */
	struct wfi_cq *tx_cq;
	struct wfi_cq *rx_cq;
	bool enabled;
	bool plain;    /* enabled, and no work is ready: progress is the engine's only */
	bool can_send; /* by capabilities: messages out, messages in, RMA out */
	bool can_recv;
	bool can_rma;
	uint64_t atomic_caps;	/* FI_ATOMIC: which of FI_READ, FI_WRITE; else 0 */
	uint64_t atomic_access; /* the same of FI_REMOTE_READ, FI_REMOTE_WRITE */
	bool directed;		/* FI_DIRECTED_RECV was granted */
	bool tx_selective;	/* success is reported with FI_COMPLETION only */
	bool rx_selective;
	uint32_t tx_bits; /* PROTO_* for calls without flags */
	uint32_t rx_bits;
	size_t inject_size;
	struct wfi_cntr *cntrs[EP_CNTRS];
	struct wfi_av *av;
	struct wfi_eq *eq;
	struct wfi_stx *stx; /* NULL: none */
	struct wfi_srx *srx; /* receives through that one; NULL: by itself */
	struct list sharing; /* wfi_srx.eps */
	bool tx_shared;	     /* one was announced: FI_SHARED_CONTEXT */
	bool rx_shared;
	struct wfi_sep *sep;	/* it is one of that endpoint's contexts; NULL: of none */
	struct wfi_ep *pair;	/* its other direction, once both are enabled */
	struct wfi_sep *is_sep; /* it is that scalable endpoint */
	struct wfi_srx *is_srx; /* it is none, but that shared receive context */
	uint64_t serial;	/* no other of this process has or had it */
	struct wfi_pollable pollable;
	struct wfi_quiesce quiesce;
	struct wfi_av_user av_user;
	uint64_t tx_op_flags;
	uint64_t rx_op_flags;
	uint64_t caps;
	uint64_t msg_order;
	size_t tx_size;
	size_t rx_size;
	size_t min_multi_recv;
	bool devices; /* FI_HMEM: buffers may be memory of GPUs */
	int hmem_p2p; /* FI_HMEM_P2P_*: what was asked for */
	bool no_cuda; /* likewise */
	/* What the application says to be the most that it will use, one more; 0: it said
	 * nothing (ep_option.c). */
	struct {
		size_t msg, tagged, rma, atomic;
		size_t inject_msg, inject_tagged, inject_rma, inject_atomic;
	} limits;
	struct wire_addr addr; /* of the door, wanted or had */
	bool addr_any;
	struct wfi_ep *of;   /* an alias of that endpoint; NULL: it is one itself */
	struct list alias;   /* of it: wfi_ep.aliases */
	struct list aliases; /* struct wfi_ep.alias */
	uint64_t due_told;   /* sleepers know of this */
	struct fi_ops_msg fast_msg; /* what fid points to from enable on */
	struct fi_ops_tagged fast_tagged;
	struct fi_ops_rma fast_rma;
};

static inline struct wfi_ep *wfi_ep_of(struct fid *fid)
{
	return container_of(fid, struct wfi_ep, fid.fid);
}

static inline struct wfi_ep *wfi_ep_of_ep(struct fid_ep *fid)
{
	return container_of(fid, struct wfi_ep, fid);
}

/* The endpoint behind an alias. */
static inline struct wfi_ep *wfi_ep_root(struct wfi_ep *ep)
{
	return ep->of ? ep->of : ep;
}

/* ---- ep_alias.c */

/* What may be the flags of operations without flags, on that side. */
uint64_t wfi_ep_default_flags(const struct wfi_ep *ep, uint64_t side);
/* FI_ALIAS. Lock held. */
LOCK_HELD(lock_domain) int wfi_ep_alias_open(struct wfi_ep *ep, struct fi_alias *arg);
/* The endpoint was enabled: so are its aliases. Lock held. */
LOCK_HELD(lock_domain) void wfi_ep_alias_sync(struct wfi_ep *ep);

/* ---- ep.c */

/* What every kind begins as: it can do nothing and nothing knows it. size: of an object
 * that begins with one. NULL: no memory. */
struct wfi_ep *wfi_ep_alloc(size_t size, struct wfi_domain *d, size_t fclass,
			    void *context);
/* Whether such an endpoint can be opened here. */
int wfi_ep_check(const struct wfi_domain *d, const struct fi_info *info);
/* It becomes what info says, and the domain knows it. 0, or as wfi_ep_open: then it is
 * the caller's to free. */
int wfi_ep_make(struct wfi_ep *ep, const struct fi_info *info);

/* Opens the door if it isn't open. */
LOCK_HELD(lock_domain) int wfi_ep_door(struct wfi_ep *ep);

/* ---- ep_bind.c */

int wfi_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
LOCK_HELD(lock_domain) void wfi_ep_unbind_all(struct wfi_ep *ep);
/* All that ep is bound to drives p as well, and no more. -FI_ENOMEM. */
LOCK_HELD(lock_domain) int wfi_ep_drive(struct wfi_ep *ep, struct wfi_pollable *p);
LOCK_HELD(lock_domain) void wfi_ep_leave(struct wfi_ep *ep, struct wfi_pollable *p);

/* ---- ep_control.c */

int wfi_ep_control(struct fid *fid, int command, void *arg);
extern struct fi_ops_ep wfi_ep_ops_ep;
extern struct fi_ops_cm wfi_ep_ops_cm;
extern struct fi_ops_cm wfi_ep_ops_no_cm; /* -FI_ENOSYS all */

/* ---- ep_done.c */

LOCK_HELD(lock_domain) void wfi_ep_report(struct wfi_cq *cq, const struct proto_done *d);

/* By whether receives are counted. */
extern const struct proto_up wfi_ep_up[2];
/* Of those that receive through a shared context. */
extern const struct proto_up wfi_ep_up_shared[2];

/* ---- ep_fast.c */

/* Lock held. The calls for an endpoint that is enabled, or got other flags. */
LOCK_HELD(lock_domain) void wfi_ep_fast_select(struct wfi_ep *ep);

/* ---- ep_fast_more.c */

/* For endpoints that report all sends or none; fall back to the general calls. */
extern const struct wfi_ep_more_tagged {
	typeof(((struct fi_ops_tagged *)0)->send) send;
	typeof(((struct fi_ops_tagged *)0)->senddata) senddata;
	typeof(((struct fi_ops_tagged *)0)->inject) inject;
	typeof(((struct fi_ops_tagged *)0)->injectdata) injectdata;
} wfi_ep_more_tagged;
extern const struct wfi_ep_more_msg {
	typeof(((struct fi_ops_msg *)0)->send) send;
	typeof(((struct fi_ops_msg *)0)->inject) inject;
} wfi_ep_more_msg;

/* ---- ep_fast_rma.c */

/* Part of wfi_ep_fast_select. */
void wfi_ep_fast_select_rma(struct wfi_ep *ep);

/* ---- operations */

extern struct fi_ops_msg wfi_ep_ops_msg;
extern struct fi_ops_tagged wfi_ep_ops_tagged;
extern struct fi_ops_rma wfi_ep_ops_rma;
extern struct fi_ops_atomic wfi_ep_ops_atomic;
extern struct fi_ops_collective wfi_ep_ops_collective; /* -FI_ENOSYS all */

/* What flags given with an operation (or as op_flags) mean to the engine. */
uint32_t wfi_ep_tx_bits(const struct wfi_ep *ep, uint64_t flags);
uint32_t wfi_ep_rx_bits(const struct wfi_ep *ep, uint64_t flags);

/* Lock held. First use of an address; NULL when it isn't in the vector. */
LOCK_HELD(lock_domain)
struct proto_peer *wfi_ep_peer_slow(struct wfi_ep *ep, fi_addr_t fi_addr);

LOCK_HELD(lock_domain)
static inline struct proto_peer *wfi_ep_peer(struct wfi_ep *ep, fi_addr_t fi_addr)
{
	struct proto_peer *pp = proto_mapped(ep->proto, fi_addr);

	return __builtin_expect(pp != NULL, 1) ? pp : wfi_ep_peer_slow(ep, fi_addr);
}

/* Lock held, after each post: what it left to do must not wait for somebody who sleeps.
 */
LOCK_HELD(lock_domain) void wfi_ep_posted_slow(struct wfi_ep *ep);

LOCK_HELD(lock_domain) static inline void wfi_ep_posted(struct wfi_ep *ep)
{
	if (__builtin_expect(!list_empty(&ep->domain->sleeping), 0)) {
		wfi_ep_posted_slow(ep);
	}
}

/* Lock held. A post that found no room makes some (manual progress). */
LOCK_HELD(lock_domain) void wfi_ep_push(struct wfi_ep *ep);

/* Check and post, with the lock held; flags: PROTO_*. */
LOCK_HELD(lock_domain)
ssize_t wfi_ep_send_locked(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest);
LOCK_HELD(lock_domain)
ssize_t wfi_ep_recv_locked(struct wfi_ep *ep, struct proto_recv *r, fi_addr_t source);
LOCK_HELD(lock_domain)
ssize_t wfi_ep_rma_locked(struct wfi_ep *ep, const struct proto_rma *r, fi_addr_t target);

LOCK_HELD(lock_domain)
ssize_t wfi_ep_atomic_locked(struct wfi_ep *ep, const struct proto_atomic *a,
			     fi_addr_t target);

/* 0 when that endpoint may post it. */
int wfi_ep_atomic_check(const struct wfi_ep *ep, const struct proto_atomic *a);

/* -FI_EINVAL, or r and its remote pieces (at most WFI_RMA_IOV_LIMIT). */
int wfi_rma_of_msg(const struct fi_msg_rma *msg, uint32_t bits,
		   struct proto_rma_iov *remote, struct proto_rma *r);

/* An atomic operation, as the engine wants it; `a` points to the rest. */
struct wfi_atomic_call {
	struct proto_atomic a;
	size_t size; /* of an element */
	struct iovec iov[WFI_IOV_LIMIT];
	struct iovec compare[WFI_IOV_LIMIT];
	struct iovec result[WFI_IOV_LIMIT];
	struct proto_rma_iov remote[WFI_RMA_IOV_LIMIT];
};

/* 0, -FI_EOPNOTSUPP, -FI_EINVAL, -FI_EMSGSIZE. mode: enum atomic_mode, which says whether
 * the two others are looked at. */
int wfi_atomic_of_msg(struct wfi_atomic_call *c, uint32_t mode,
		      const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
		      const struct fi_msg_compare *compare, uint32_t bits);

/* Takes the lock, checks, posts. m->flags: PROTO_*, WFI_TRIGGER. */
ssize_t wfi_ep_send(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest);
ssize_t wfi_ep_recv(struct wfi_ep *ep, struct proto_recv *r, fi_addr_t source);

/* fi_trecvmsg with FI_PEEK, FI_CLAIM or FI_DISCARD. */
ssize_t wfi_ep_peek(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);

/* Sum of the pieces; false: too many of them or too long. */
bool wfi_iov_sum(const struct iovec *iov, size_t count, size_t *len);

#endif
