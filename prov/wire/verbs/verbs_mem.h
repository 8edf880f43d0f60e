/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the endpoints of one domain share: its rails, memory registered with all of them,
 * and the table by which peers find it. Found by the domain's key table
 * (wire_ep_attr.keys). Any thread: guarded by a mutex of its own, taken last and alone.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_MEM_H
#define WEFT_WIRE_VERBS_VERBS_MEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/mem/keytab.h"
#include "prov/wire/verbs/verbs_dev.h"
#include "prov/wire/verbs/verbs_keys.h"
#include "util/list.h"

/* Memory that is known to all rails. */
struct verbs_mr {
	struct list node; /* of those that belong to a key */
	uintptr_t start;
	size_t len;
	uint64_t name;	       /* 0: none. Guarded by the domain's mutex */
	struct verbs_mr *told; /* likewise: what peers read by that name */
	uint32_t lkey[DQPLB_RAILS_MAX];
	uint32_t rkey[DQPLB_RAILS_MAX];
	struct ibv_mr *mr[DQPLB_RAILS_MAX]; /* NULL: that of an earlier rail */
};

struct verbs_dom {
	struct list node; /* of all domains */
	const struct mem_keytab *owner;
	uint32_t generation;	  /* of the process that opened it (prov/mem/fork.h) */
	struct mem_keyview *view; /* of it: which counters want to hear of accesses */
	uint32_t refs;
	struct verbs_dev *dev;
	pthread_mutex_t mutex;
	struct verbs_keys *keys;
	struct verbs_mr *bin; /* a page: reads whose bytes don't matter go there */
	struct list *regs;    /* regions of the application, hashed by key */
	uint64_t next_name;
	uint32_t next_incarnation;
};

/* The domain's state, made when it is the first endpoint. As verbs_dev_open, which says
 * why in words. */
int verbs_dom_get(struct mem_keytab *owner, struct verbs_dom **dom,
		  struct verbs_error *error);
void verbs_dom_put(struct verbs_dom *dom);

/* What is written may become visible in any order: not where anything is polled for. */
#define VERBS_MR_RELAXED 1u
/* Only read and written, not sent from or received into: where no more can be locked, a
 * device may fetch its pages as it needs them (on-demand paging). */
#define VERBS_MR_DEMAND 2u

/* Registers with every rail. access: IBV_ACCESS_*, flags: VERBS_MR_*. All memory (from
 * NULL on, SIZE_MAX bytes) where every device can. -FI_ENOMEM, -FI_EFAULT, -FI_EIO,
 * -FI_EOPNOTSUPP: all memory, and a device can't. */
int verbs_mr_add(struct verbs_dom *dom, void *start, size_t len, int access,
		 unsigned flags, struct verbs_mr **mr);
void verbs_mr_drop(struct verbs_dom *dom, struct verbs_mr *mr);

/* The wire's calls. */
int verbs_dom_mem_add(struct verbs_dom *dom, void *start, size_t len,
		      struct verbs_mr **mr);
/* The name by which peers read it from now on; none can before. 0: there is no memory. */
uint64_t verbs_dom_mem_name(struct verbs_dom *dom, struct verbs_mr *mr);
void verbs_dom_mem_drop(struct verbs_dom *dom, struct verbs_mr *mr);
int verbs_dom_key_add(struct verbs_dom *dom, uint64_t key,
		      const struct mem_region *region);
void verbs_dom_key_drop(struct verbs_dom *dom, uint64_t key);

#endif
