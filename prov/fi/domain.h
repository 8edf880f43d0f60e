/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Domain: the unit of locking and of registration. Everything opened on a domain (av, cq,
 * cntr, ep, mr) shares its lock; see prov/LOCKING.md.
 */
#ifndef WEFT_FI_DOMAIN_H
#define WEFT_FI_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "prov/fi/entry.h"
#include "prov/mem/arena.h"
#include "prov/mem/fork.h"
#include "prov/mem/keytab.h"
#include "util/list.h"
#include "util/lock_note.h"

struct wfi_eq;
struct wfi_fabric;
struct wfi_progress;

struct wfi_lanes;
struct wire_counter;

struct wfi_domain {
	struct fid_domain fid; /* first: libfabric casts */
	struct wfi_fabric *fabric;
	atomic_int refs; /* objects opened on it; fi_close gives -FI_EBUSY above 0 */
	uint32_t api_version;
	enum fi_threading threading;
	int mr_mode;	   /* FI_MR_*: what registering and using a key takes */
	bool mr_virt_addr; /* remote addresses are virtual addresses */
	bool mr_prov_key;  /* keys are the table's choice */
	bool lock_needed;  /* false where the threading level spares it */
	pthread_mutex_t lock;
	struct mem_keytab *keys;
	struct mem_arena *arena; /* memory of WEFT_FI_MEM_OPS */
	struct list eps;      /* struct wfi_ep.domain_node: quiesced when an MR closes */
	struct list sleeping; /* struct wfi_wait.node: somebody sleeps on it */
	struct list counted;  /* struct wfi_mr.node: regions with counters */
	struct list keyed; /* struct wfi_mr.keyed: regions that wires know by their key */
	struct list works; /* struct work.all: work.c */
	struct list ready; /* of them: those to be posted */
	bool works_ready;  /* there are some */
	bool works_running;	       /* somebody posts them just now */
	struct wfi_progress *progress; /* NULL: manual progress */
	struct wfi_eq *eq;	       /* bound; NULL: none */
	uint32_t addr_format;	       /* of addresses inserted into its vectors */
	uint32_t born;		/* mem_fork_generation of the process that opened it */
	struct wfi_entry entry; /* what moves the bytes */
	bool devices;		/* FI_HMEM: memory of GPUs may be registered */
	bool native;		/* atomics are carried out by devices alone (E4) */
};

/* A child got it by fork. Closing anything of it there does nothing: it is the parent's,
 * its thread isn't there, and its locks may be held by threads that aren't either. */
static inline bool wfi_domain_is_inherited(const struct wfi_domain *d)
{
	return d->born != mem_fork_generation();
}

LOCK_TAKE(lock_domain) static inline void wfi_domain_lock(struct wfi_domain *d)
{
	if (d->lock_needed)
		pthread_mutex_lock(&d->lock);
}

LOCK_GIVE(lock_domain) static inline void wfi_domain_unlock(struct wfi_domain *d)
{
	if (d->lock_needed)
		pthread_mutex_unlock(&d->lock);
}

static inline struct wfi_domain *wfi_domain_of(struct fid_domain *fid)
{
	return (struct wfi_domain *)fid;
}

int wfi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);

/* Opened here (a hook in front of it makes it somebody else's). */
bool wfi_domain_is(const struct fid_domain *fid);

/* Objects on the domain count themselves. */
static inline void wfi_domain_get(struct wfi_domain *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
}

static inline void wfi_domain_put(struct wfi_domain *d)
{
	atomic_fetch_sub_explicit(&d->refs, 1, memory_order_release);
}

/* One row of domain->eps: how fi_mr reaches the wires without knowing endpoints. All
 * as in wire.h; of an endpoint whose door isn't open yet they do nothing. NULL: the
 * wire wants to hear of no keys. */
struct wfi_quiesce {
	struct list node;
	struct wfi_pollable *pollable; /* who drives the wire */
	int (*quiesce)(struct wfi_quiesce *q, uint64_t key, uint64_t deadline_ns);
	int (*key_add)(struct wfi_quiesce *q, uint64_t key,
		       const struct mem_region *region);
	void (*key_drop)(struct wfi_quiesce *q, uint64_t key);
	uint32_t (*counters)(struct wfi_quiesce *q, struct wire_counter *at,
			     uint32_t max);
	void (*lanes)(struct wfi_quiesce *q, struct wfi_lanes *to);
};

#endif
