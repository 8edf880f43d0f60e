/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory registration. A region is in the domain's key table while it is open, if anybody
 * else may use it. It may have counters that hear of its peers' reads and writes. */
#ifndef WEFT_FI_MR_H
#define WEFT_FI_MR_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#include "util/lock_note.h"

/* The domain's table of registration calls. */
extern struct fi_ops_mr wfi_mr_ops;

struct wfi_domain;
struct wfi_pollable;
struct wfi_quiesce;

/* All with the domain's lock held. Reads or writes by that key, for its counters, if it
 * has any. */
LOCK_HELD(lock_domain)
void wfi_mr_count(struct wfi_domain *d, uint64_t key, uint64_t count, bool read);

/* An endpoint comes or goes: waiting for a region's counter drives all of them.
 * -FI_ENOMEM: it is driven by none of them. */
LOCK_HELD(lock_domain) int wfi_mr_attach(struct wfi_domain *d, struct wfi_pollable *p);
LOCK_HELD(lock_domain) void wfi_mr_detach(struct wfi_domain *d, struct wfi_pollable *p);

/* An endpoint's wire was opened: it hears of every key that peers may use. What the wire
 * says of the first that it can't have; then it knows none. */
LOCK_HELD(lock_domain) int wfi_mr_introduce(struct wfi_domain *d, struct wfi_quiesce *q);

#endif
