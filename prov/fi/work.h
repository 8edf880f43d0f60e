/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that waits for a counter: triggered operations (FI_TRIGGER) and the deferred work
 * queue of a domain (fi_trigger(3)). A counter that reaches a threshold only marks work
 * as ready, since whoever counts may be in the middle of an engine; it is posted by the
 * next progress, or when the call that counted ends.
 *
 * Everything is called with the domain's lock held unless it says otherwise.
 */
#ifndef WEFT_FI_WORK_H
#define WEFT_FI_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fi_trigger.h>

#include "prov/fi/domain.h"
#include "prov/proto/engine.h"
#include "util/list.h"
#include "util/lock_note.h"

struct wfi_cntr;
struct wfi_ep;

/* In the flags of an operation: it waits for the counter that its context names. Above
 * all that the engine knows. */
#define WFI_TRIGGER 0x80000000u

/* A triggered operation: fi_triggered_context as its context; completes as any other. */
LOCK_HELD(lock_domain)
ssize_t wfi_work_send(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest);
LOCK_HELD(lock_domain)
ssize_t wfi_work_recv(struct wfi_ep *ep, const struct proto_recv *r, fi_addr_t source);
LOCK_HELD(lock_domain)
ssize_t wfi_work_rma(struct wfi_ep *ep, const struct proto_rma *r, fi_addr_t target);
/* Of one that the caller would post otherwise. */
LOCK_HELD(lock_domain)
ssize_t wfi_work_atomic(struct wfi_ep *ep, const struct proto_atomic *a,
			fi_addr_t target);

/* fi_control of a domain: FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK. Lock not held. */
int wfi_work_control(struct wfi_domain *d, int command, void *arg);

/* A completion of the engine; true: it was for deferred work, and has been dealt with. */
LOCK_HELD(lock_domain)
bool wfi_work_done(struct wfi_ep *ep, const struct proto_done *done);

/* The counter changed: what it reached becomes ready. works: its list. */
LOCK_HELD(lock_domain)
void wfi_work_reached(struct wfi_domain *d, struct list *works, uint64_t count);

/* Posts what is ready; not from inside an engine. */
LOCK_HELD(lock_domain) void wfi_work_run_slow(struct wfi_domain *d);
LOCK_HELD(lock_domain) static inline void wfi_work_run(struct wfi_domain *d)
{
	if (__builtin_expect(d->works_ready, 0))
		wfi_work_run_slow(d);
}

/* An endpoint is opened. -FI_ENOMEM. */
LOCK_HELD(lock_domain) int wfi_work_attach(struct wfi_ep *ep);
/* The endpoint closes: nothing of it happens any more. */
LOCK_HELD(lock_domain) void wfi_work_forget(struct wfi_ep *ep);

#endif
