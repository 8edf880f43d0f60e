/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits for a counter; see work.h. */
#include "config.h"

#include <stdlib.h>

#include "prov/fi/cq.h"
#include "prov/fi/work_int.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

/* ---- life
 * ------------------------------------------------------------------------------ */

LOCK_HELD(lock_domain) static int hold(struct work *w, struct wfi_cntr *cntr)
{
	int rc;

	if (!cntr) {
		return 0;
	}
	/* Waiting for the counter must drive what it waits for. */
	rc = w->ep ? wfi_cntr_attach(cntr, &w->ep->pollable) : 0;
	if (!rc) {
		wfi_cntr_hold(cntr, true);
	}
	return rc;
}

LOCK_HELD(lock_domain) static void release(struct work *w, struct wfi_cntr *cntr)
{
	if (!cntr) {
		return;
	}
	wfi_cntr_hold(cntr, false);
	if (w->ep) {
		wfi_cntr_detach(cntr, &w->ep->pollable);
	}
}

/* Endpoints look only where there is something. */
static void ready_update(struct wfi_domain *d)
{
	bool ready = !list_empty(&d->ready);

	if (ready == d->works_ready) {
		return;
	}
	d->works_ready = ready;
	list_foreach (n, &d->eps) {
		struct wfi_quiesce *q = container_of(n, struct wfi_quiesce, node);
		struct wfi_ep *ep = container_of(q, struct wfi_ep, quiesce);

		ep->plain = ep->enabled && !ready;
	}
}

/* Waiting for a counter that other counters change drives all endpoints: any of them may
 * be what counts. */
LOCK_HELD(lock_domain) static void count_detach(struct work *w, const struct list *until)
{
	struct wfi_domain *d = wfi_cntr_domain(w->op.count.cntr);

	for (struct list *n = d->eps.next; n != until; n = n->next) {
		wfi_cntr_detach(w->op.count.cntr,
				container_of(n, struct wfi_quiesce, node)->pollable);
	}
}

LOCK_HELD(lock_domain) static int count_hold(struct work *w)
{
	struct wfi_domain *d = wfi_cntr_domain(w->op.count.cntr);

	list_foreach (n, &d->eps) {
		int rc = wfi_cntr_attach(
			w->op.count.cntr,
			container_of(n, struct wfi_quiesce, node)->pollable);

		if (rc) {
			count_detach(w, n);
			return rc;
		}
	}
	wfi_cntr_hold(w->op.count.cntr, true);
	return 0;
}

LOCK_HELD(lock_domain) static void count_release(struct work *w)
{
	count_detach(w, &wfi_cntr_domain(w->op.count.cntr)->eps);
	wfi_cntr_hold(w->op.count.cntr, false);
}

LOCK_HELD(lock_domain) static void work_free(struct wfi_domain *d, struct work *w)
{
	release(w, w->cntr);
	release(w, w->completion);
	if (w->kind == WORK_CNTR) {
		count_release(w);
	}
	list_remove(&w->node);
	list_remove(&w->all);
	ready_update(d);
	free(w);
}

LOCK_HELD(lock_domain) static void make_ready(struct wfi_domain *d, struct work *w)
{
	list_remove(&w->node);
	list_push_back(&d->ready, &w->node);
	w->state = WORK_READY;
	ready_update(d);
	/* Whoever sleeps is to do it. */
	wfi_domain_wake(d);
}

void wfi_work_reached(struct wfi_domain *d, struct list *works, uint64_t count)
{
	while (!list_empty(works)) {
		struct work *w = container_of(works->next, struct work, node);

		if (w->threshold > count) {
			return;
		}
		make_ready(d, w);
	}
}

/* Behind those with the same threshold. */
static void wait_enter(struct work *w)
{
	struct list *works = wfi_cntr_works(w->cntr);
	struct list *at = works->prev;

	while (at != works &&
	       container_of(at, struct work, node)->threshold > w->threshold) {
		at = at->prev;
	}
	list_insert_after(at, &w->node);
	w->state = WORK_WAITING;
}

/* Takes w over. */
LOCK_HELD(lock_domain) static int submit(struct wfi_domain *d, struct work *w)
{
	int rc = hold(w, w->cntr);

	if (rc) {
		free(w);
		return rc;
	}
	rc = w->kind == WORK_CNTR ? count_hold(w) : hold(w, w->completion);
	if (rc) {
		release(w, w->cntr);
		free(w);
		return rc;
	}
	list_push_back(&d->works, &w->all);
	wait_enter(w);
	wfi_work_reached(d, wfi_cntr_works(w->cntr), wfi_cntr_sum(w->cntr));
	wfi_work_run(d);
	return 0;
}

/* ---- posting
 * --------------------------------------------------------------------------- */

LOCK_HELD(lock_domain) static ssize_t post(struct work *w)
{
	switch (w->kind) {
	case WORK_SEND:
		return wfi_ep_send_locked(w->ep, &w->op.msg, w->addr);
	case WORK_RECV:
		return wfi_ep_recv_locked(w->ep, &w->op.recv, w->addr);
	case WORK_RMA:
		return wfi_ep_rma_locked(w->ep, &w->op.rma, w->addr);
	case WORK_ATOMIC:
		return wfi_ep_atomic_locked(w->ep, &w->op.atomic, w->addr);
	default:
		wfi_cntr_change(w->op.count.cntr, w->op.count.set, w->op.count.value);
		return 0;
	}
}

/* The flags of its completion. */
static uint64_t what_of(const struct work *w)
{
	switch (w->kind) {
	case WORK_SEND:
		return FI_SEND | (w->op.msg.flags & PROTO_TAGGED ? FI_TAGGED : FI_MSG);
	case WORK_RECV:
		return FI_RECV | (w->op.recv.flags & PROTO_TAGGED ? FI_TAGGED : FI_MSG);
	case WORK_RMA:
		return FI_RMA | (w->op.rma.flags & PROTO_WRITE ? FI_WRITE : FI_READ);
	case WORK_ATOMIC:
		return FI_ATOMIC |
		       (w->op.atomic.flags & PROTO_WRITE ? FI_WRITE : FI_READ);
	default:
		return 0;
	}
}

/* It can't be posted at all: that is how it ends. */
LOCK_HELD(lock_domain)
static void end_in_error(struct wfi_domain *d, struct work *w, int err)
{
	struct wfi_cq *cq = w->kind == WORK_RECV ? w->ep->rx_cq : w->ep->tx_cq;
	struct wfi_cq_error e = {.entry = {.op_context = w->context,
					   .flags = what_of(w),
					   .src = FI_ADDR_NOTAVAIL},
				 .err = err};

	if (cq) {
		wfi_cq_write_error(cq, &e);
	}
	wfi_cntr_inc_error(w->completion);
	work_free(d, w);
}

void wfi_work_run_slow(struct wfi_domain *d)
{
	struct list *n;

	if (d->works_running) { /* what it posts may make progress */
		return;
	}
	d->works_running = true;
	while (!list_empty(&d->ready)) {
		struct work *w = container_of(d->ready.next, struct work, node);
		bool waits = w->name && w->kind != WORK_CNTR;
		ssize_t ret;

		/* It may be complete before the call returns. */
		w->state = WORK_POSTED;
		list_remove(&w->node);
		n = &w->node;
		ret = post(w);
		if (ret == 0) {
			if (!waits) {
				work_free(d, w);
			}
			continue;
		}
		if (ret != -FI_EAGAIN) {
			end_in_error(d, w, (int)-ret);
			continue;
		}
		w->state = WORK_READY;
		list_push_front(&d->ready, n);
		break;
	}
	ready_update(d);
	d->works_running = false;
}

/* ---- triggered operations
 * -------------------------------------------------------------- */

LOCK_HELD(lock_domain) static ssize_t trigger(struct wfi_ep *ep, struct work *w)
{
	const struct fi_triggered_context *t;
	struct wfi_cntr *cntr;

	if (!w) {
		return -FI_ENOMEM;
	}
	t = w->context;
	cntr = t && t->event_type == FI_TRIGGER_THRESHOLD && t->trigger.threshold.cntr
		       ? wfi_cntr_with_value(&t->trigger.threshold.cntr->fid)
		       : NULL;
	if (!cntr || wfi_cntr_domain(cntr) != ep->domain) {
		FI_WARN(&weft_provider, FI_LOG_EP_DATA,
			"FI_TRIGGER: the context must be a struct fi_triggered_context "
			"with FI_TRIGGER_THRESHOLD and a counter of this domain\n");
		free(w);
		return -FI_EINVAL;
	}
	w->cntr = cntr;
	w->threshold = t->trigger.threshold.threshold;
	return submit(ep->domain, w);
}

/* len: of what is injected. */
static ssize_t refuse_state(const struct wfi_ep *ep, bool can, size_t len)
{
	if (!ep->enabled) {
		return -FI_EOPBADSTATE;
	}
	if (!(ep->caps & FI_TRIGGER) || !can) {
		return -FI_EOPNOTSUPP;
	}
	return len > ep->inject_size ? -FI_EINVAL : 0;
}

ssize_t wfi_work_send(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest)
{
	ssize_t ret =
		refuse_state(ep, ep->can_send, m->flags & PROTO_INJECT ? m->len : 0);

	return ret ? ret : trigger(ep, wfi_work_make_send(ep, m, dest));
}

ssize_t wfi_work_recv(struct wfi_ep *ep, const struct proto_recv *r, fi_addr_t source)
{
	ssize_t ret = refuse_state(ep, ep->can_recv, 0);

	return ret ? ret : trigger(ep, wfi_work_make_recv(ep, r, source));
}

ssize_t wfi_work_rma(struct wfi_ep *ep, const struct proto_rma *r, fi_addr_t target)
{
	ssize_t ret = refuse_state(ep, ep->can_rma, r->flags & PROTO_INJECT ? r->len : 0);

	return ret ? ret : trigger(ep, wfi_work_make_rma(ep, r, target));
}

ssize_t wfi_work_atomic(struct wfi_ep *ep, const struct proto_atomic *a, fi_addr_t target)
{
	ssize_t ret = refuse_state(ep, true, 0); /* the caller has looked at the rest */

	return ret ? ret : trigger(ep, wfi_work_make_atomic(ep, a, target));
}

/* ---- the deferred work queue
 * ----------------------------------------------------------- */

bool wfi_work_done(struct wfi_ep *ep, const struct proto_done *done)
{
	bool rx = done->flags & FI_RECV;
	struct wfi_cq *cq = rx ? ep->rx_cq : ep->tx_cq;

	list_foreach (n, &ep->domain->works) {
		struct work *w = container_of(n, struct work, all);
		struct proto_done d = *done;

		if (w != done->context || w->state != WORK_POSTED) {
			continue;
		}
		d.context = w->context;
		d.report = w->report || d.err;
		if (cq && d.report) {
			wfi_ep_report(cq, &d);
		}
		if (d.err) {
			wfi_cntr_inc_error(w->completion);
		} else {
			wfi_cntr_inc(w->completion);
		}
		work_free(ep->domain, w);
		return true;
	}
	return false;
}

LOCK_HELD(lock_domain)
static int queue(struct wfi_domain *d, const struct fi_deferred_work *work)
{
	struct wfi_cntr *cntr = work->triggering_cntr
					? wfi_cntr_with_value(&work->triggering_cntr->fid)
					: NULL;
	struct wfi_cntr *completion =
		work->completion_cntr ? wfi_cntr_of(&work->completion_cntr->fid) : NULL;
	struct work *w = NULL;
	int rc;

	if (!cntr || wfi_cntr_domain(cntr) != d ||
	    (work->completion_cntr &&
	     (!completion || wfi_cntr_domain(completion) != d))) {
		FI_WARN(&weft_provider, FI_LOG_DOMAIN,
			"FI_QUEUE_WORK: a triggering counter of this domain is needed\n");
		return -FI_EINVAL;
	}
	if (!work->op.msg) {
		return -FI_EINVAL;
	}
	rc = wfi_work_take(d, work, &w);
	if (rc) {
		return rc;
	}
	w->name = work;
	w->cntr = cntr;
	w->completion = completion;
	w->threshold = work->threshold;
	return submit(d, w);
}

/* Not those that the engine has. NULL: any name, any counter. */
LOCK_HELD(lock_domain)
static int cancel(struct wfi_domain *d, const struct fi_deferred_work *name,
		  const struct wfi_cntr *cntr)
{
	int found = 0;

	list_foreach_safe (n, next, &d->works) {
		struct work *w = container_of(n, struct work, all);

		if (!w->name || w->state == WORK_POSTED || (name && w->name != name) ||
		    (cntr && w->cntr != cntr)) {
			continue;
		}
		work_free(d, w);
		found++;
	}
	return found;
}

int wfi_work_control(struct wfi_domain *d, int command, void *arg)
{
	int rc = 0;

	if (command != FI_QUEUE_WORK && command != FI_CANCEL_WORK &&
	    command != FI_FLUSH_WORK) {
		return -FI_ENOSYS;
	}
	if (!arg && command != FI_FLUSH_WORK) {
		return -FI_EINVAL;
	}
	wfi_domain_lock(d);
	switch (command) {
	case FI_QUEUE_WORK:
		rc = queue(d, arg);
		break;
	case FI_CANCEL_WORK:
		rc = cancel(d, arg, NULL) ? 0 : -FI_ENOENT;
		break;
	default:
		cancel(d, NULL, arg ? wfi_cntr_of(arg) : NULL);
	}
	wfi_domain_unlock(d);
	return rc;
}

int wfi_work_attach(struct wfi_ep *ep)
{
	list_foreach (n, &ep->domain->works) {
		struct work *w = container_of(n, struct work, all);
		int rc = w->kind == WORK_CNTR
				 ? wfi_cntr_attach(w->op.count.cntr, &ep->pollable)
				 : 0;

		if (rc) {
			while ((n = n->prev) != &ep->domain->works) {
				w = container_of(n, struct work, all);
				if (w->kind == WORK_CNTR)
					wfi_cntr_detach(w->op.count.cntr, &ep->pollable);
			}
			return rc;
		}
	}
	return 0;
}

void wfi_work_forget(struct wfi_ep *ep)
{
	list_foreach_safe (n, next, &ep->domain->works) {
		struct work *w = container_of(n, struct work, all);

		if (w->ep == ep) {
			work_free(ep->domain, w);
		} else if (w->kind == WORK_CNTR) {
			wfi_cntr_detach(w->op.count.cntr, &ep->pollable);
		}
	}
}
