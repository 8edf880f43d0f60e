/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress: one thread of a domain that drives every pollable attached to any
 * of its queues and counters, asleep on their descriptors while there is nothing to do.
 * It exists only where FI_PROGRESS_AUTO was granted.
 */
#ifndef WEFT_FI_PROGRESS_H
#define WEFT_FI_PROGRESS_H

#include "prov/fi/domain.h"
#include "prov/fi/pollable.h"
#include "util/lock_note.h"

struct wfi_progress;

/* The domain's lock must be a real one by now. -FI_ENOMEM, -FI_EAGAIN. */
int wfi_progress_open(struct wfi_domain *domain, struct wfi_progress **progress);
/* Lock not held: joins the thread. */
LOCK_NOT_HELD(lock_domain) void wfi_progress_close(struct wfi_progress *progress);

/* Lock held; counted; progress may be NULL (nothing is done then). */
LOCK_HELD(lock_domain)
int wfi_progress_attach(struct wfi_progress *progress, struct wfi_pollable *p);
LOCK_HELD(lock_domain)
void wfi_progress_detach(struct wfi_progress *progress, struct wfi_pollable *p);

/* Lock held. The condition is told soon, without the lock; there is a thread. */
struct wfi_cond;
LOCK_HELD(lock_domain)
void wfi_progress_tell(struct wfi_progress *progress, struct wfi_cond *cond);

#endif
