/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queue: control events and their errors, in one order. It has a lock of its own
 * (innermost, see prov/LOCKING.md), since it belongs to the fabric. */
#ifndef WEFT_FI_EQ_H
#define WEFT_FI_EQ_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_eq.h>

#include "util/list.h"

struct wfi_eq;
struct wfi_fabric;

int wfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);
/* NULL when fid is no event queue. */
struct wfi_eq *wfi_eq_of(struct fid *fid);

/* Held by whoever is bound to it: closing gives -FI_EBUSY meanwhile. */
void wfi_eq_get(struct wfi_eq *eq);
void wfi_eq_put(struct wfi_eq *eq);

/* -FI_ENOMEM: the event is lost, and that was logged. */
int wfi_eq_report(struct wfi_eq *eq, uint32_t event, const void *buf, size_t len);
int wfi_eq_report_error(struct wfi_eq *eq, const struct fi_eq_err_entry *error);

/* The same in two steps, for a writer who holds a lock: the events appear, and whoever
 * waits is told, at the release, which needs no lock of ours held. */
int wfi_eq_hold_error(struct list *held, const struct fi_eq_err_entry *error);
void wfi_eq_release(struct wfi_eq *eq, struct list *held);

struct wfi_fabric *wfi_eq_fabric(struct wfi_eq *eq);

/* fi_trywait: -FI_EAGAIN while there is something to read. */
int wfi_eq_try(struct wfi_eq *eq);

#endif
