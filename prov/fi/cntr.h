/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter: success and error counts, waiters, and the pollables that reading it drives.
 */
#ifndef WEFT_FI_CNTR_H
#define WEFT_FI_CNTR_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "prov/fi/pollable.h"
#include "util/list.h"
#include "util/lock_note.h"

struct wfi_cntr;
struct wfi_domain;

int wfi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr, void *context);
struct wfi_cntr *wfi_cntr_of(struct fid *fid);
/* The same of one that has a value; NULL for one that stands for its owner's (FI_PEER):
 * nothing can wait for that one, or set it. */
struct wfi_cntr *wfi_cntr_with_value(struct fid *fid);
struct wfi_domain *wfi_cntr_domain(struct wfi_cntr *cntr);

/* fi_trywait: -FI_EAGAIN while the counts differ from those last read. */
int wfi_cntr_try(struct wfi_cntr *cntr);

/* Domain lock held. fi_poll: progresses; true when a count changed since the last time,
 * other than by the application's own calls. */
LOCK_HELD(lock_domain) bool wfi_cntr_poll(struct wfi_cntr *cntr);
/* Domain lock held. While somebody holds it, it can't be closed. Counted. */
LOCK_HELD(lock_domain) void wfi_cntr_hold(struct wfi_cntr *cntr, bool on);

/* Domain lock held; NULL is ignored. Wakes waiters. */
LOCK_HELD(lock_domain) void wfi_cntr_inc(struct wfi_cntr *cntr);
LOCK_HELD(lock_domain) void wfi_cntr_add(struct wfi_cntr *cntr, uint64_t count);
LOCK_HELD(lock_domain) void wfi_cntr_inc_error(struct wfi_cntr *cntr);

/* Domain lock held. What fi_cntr_set and fi_cntr_add do. */
LOCK_HELD(lock_domain)
void wfi_cntr_change(struct wfi_cntr *cntr, bool set, uint64_t value);

/* Domain lock held. Work that waits for it (work.h), and what it waits for: successes and
 * errors together. */
struct list *wfi_cntr_works(struct wfi_cntr *cntr);
uint64_t wfi_cntr_sum(const struct wfi_cntr *cntr);

LOCK_HELD(lock_domain) int wfi_cntr_attach(struct wfi_cntr *cntr, struct wfi_pollable *p);
LOCK_HELD(lock_domain)
void wfi_cntr_detach(struct wfi_cntr *cntr, struct wfi_pollable *p);

#endif
