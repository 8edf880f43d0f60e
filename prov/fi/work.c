/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits for a counter; see work.h. */
#include "config.h"

#include "prov/fi/work.h"

#include <stdlib.h>

#include "prov/fi/cq.h"
#include "prov/fi/ep_int.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

enum work_state {
	WORK_WAITING, /* wfi_cntr's list, by threshold, then by age */
	WORK_READY,   /* wfi_domain.ready, in the order of becoming so */
	WORK_POSTED,  /* deferred: the engine has it; on no list */
};

enum work_kind { WORK_SEND, WORK_RECV, WORK_RMA, WORK_CNTR };

struct work {
	struct list node;
	struct list all; /* wfi_domain.works */
	enum work_state state;
	enum work_kind kind;
	struct wfi_ep *ep; /* NULL: WORK_CNTR */
	struct wfi_cntr *cntr;
	uint64_t threshold;
	/* Of the deferred queue: whom it completes, NULL: nobody; what it is called. */
	struct wfi_cntr *completion;
	const struct fi_deferred_work *name; /* NULL: a triggered operation */
	bool report;			     /* deferred: its success is reported */
	void *context;
	fi_addr_t addr;
	union {
		struct proto_msg msg;
		struct proto_recv recv;
		struct proto_rma rma;
		struct {
			struct wfi_cntr *cntr;
			uint64_t value;
			bool set;
		} count;
	} op;
	struct iovec iov[PROTO_IOV_MAX];
	struct proto_rma_iov remote[WFI_RMA_IOV_LIMIT];
};

/* ---- making
 * ---------------------------------------------------------------------------- */

static struct work *work_alloc(enum work_kind kind, struct wfi_ep *ep, fi_addr_t addr)
{
	struct work *w = calloc(1, sizeof(*w));

	if (w) {
		w->kind = kind;
		w->ep = ep ? wfi_ep_root(ep) : NULL;
		w->addr = addr;
		list_init(&w->node);
		list_init(&w->all);
	}
	return w;
}

static const struct iovec *keep_iov(struct work *w, const struct iovec *iov, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		w->iov[i] = iov[i];
	}
	return w->iov;
}

static struct work *make_send(struct wfi_ep *ep, const struct proto_msg *m,
			      fi_addr_t dest)
{
	struct work *w = work_alloc(WORK_SEND, ep, dest);

	if (w) {
		w->op.msg = *m;
		w->op.msg.iov = keep_iov(w, m->iov, m->count);
		w->op.msg.flags &= ~WFI_TRIGGER;
		w->context = m->context;
	}
	return w;
}

static struct work *make_recv(struct wfi_ep *ep, const struct proto_recv *r,
			      fi_addr_t source)
{
	struct work *w = work_alloc(WORK_RECV, ep, source);

	if (w) {
		w->op.recv = *r;
		w->op.recv.iov = keep_iov(w, r->iov, r->count);
		w->op.recv.flags &= ~WFI_TRIGGER;
		w->context = r->context;
	}
	return w;
}

static struct work *make_rma(struct wfi_ep *ep, const struct proto_rma *r,
			     fi_addr_t target)
{
	struct work *w = work_alloc(WORK_RMA, ep, target);

	if (w) {
		w->op.rma = *r;
		w->op.rma.iov = keep_iov(w, r->iov, r->count);
		for (size_t i = 0; i < r->remote_count; i++) {
			w->remote[i] = r->remote[i];
		}
		w->op.rma.remote = w->remote;
		w->op.rma.flags &= ~WFI_TRIGGER;
		w->context = r->context;
	}
	return w;
}

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
	default:
		wfi_cntr_change(w->op.count.cntr, w->op.count.set, w->op.count.value);
		return 0;
	}
}

/* It can't be posted at all: that is how it ends. */
LOCK_HELD(lock_domain)
static void end_in_error(struct wfi_domain *d, struct work *w, int err)
{
	static const uint64_t what[] = {
		[WORK_SEND] = FI_SEND, [WORK_RECV] = FI_RECV, [WORK_RMA] = FI_RMA};
	struct wfi_cq *cq = w->kind == WORK_RECV ? w->ep->rx_cq : w->ep->tx_cq;
	struct wfi_cq_error e = {.entry = {.op_context = w->context,
					   .flags = what[w->kind],
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
		       ? wfi_cntr_of(&t->trigger.threshold.cntr->fid)
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

static ssize_t refuse_state(const struct wfi_ep *ep, bool can, uint32_t flags)
{
	if (!ep->enabled) {
		return -FI_EOPBADSTATE;
	}
	if (!(ep->caps & FI_TRIGGER) || !can) {
		return -FI_EOPNOTSUPP;
	}
	/* Its buffer would have to be kept. */
	return flags & PROTO_INJECT ? -FI_EINVAL : 0;
}

ssize_t wfi_work_send(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest)
{
	ssize_t ret = refuse_state(ep, ep->can_send, m->flags);

	return ret ? ret : trigger(ep, make_send(ep, m, dest));
}

ssize_t wfi_work_recv(struct wfi_ep *ep, const struct proto_recv *r, fi_addr_t source)
{
	ssize_t ret = refuse_state(ep, ep->can_recv, 0);

	return ret ? ret : trigger(ep, make_recv(ep, r, source));
}

ssize_t wfi_work_rma(struct wfi_ep *ep, const struct proto_rma *r, fi_addr_t target)
{
	ssize_t ret = refuse_state(ep, ep->can_rma, r->flags);

	return ret ? ret : trigger(ep, make_rma(ep, r, target));
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

/* The engine gives w back as the context, and reports nothing by itself. */
static struct work *deferred(struct work *w, uint64_t flags)
{
	if (!w) {
		return NULL;
	}
	w->report = flags & FI_COMPLETION;
	switch (w->kind) {
	case WORK_SEND:
		w->op.msg.context = w;
		w->op.msg.flags &= ~PROTO_REPORT;
		break;
	case WORK_RECV:
		w->op.recv.context = w;
		w->op.recv.flags &= ~PROTO_REPORT;
		break;
	default:
		w->op.rma.context = w;
		w->op.rma.flags &= ~PROTO_REPORT;
	}
	return w;
}

#define WORK_TX_FLAGS (WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)

static int take_msg(const struct fi_op_msg *op, bool send, struct work **out)
{
	struct wfi_ep *ep = wfi_ep_of_ep(op->ep);
	const struct fi_msg *msg = &op->msg;
	struct proto_msg m = {.iov = msg->msg_iov,
			      .count = msg->iov_count,
			      .data = msg->data,
			      .context = msg->context,
			      .flags = wfi_ep_tx_bits(ep, op->flags)};
	struct proto_recv r = {
		.iov = msg->msg_iov, .count = msg->iov_count, .context = msg->context};

	if (op->flags & ~(send ? WORK_TX_FLAGS : FI_COMPLETION | FI_MORE) ||
	    (m.flags & PROTO_INJECT) || !wfi_iov_sum(m.iov, m.count, &m.len)) {
		return -FI_EINVAL;
	}
	*out = deferred(send ? make_send(ep, &m, msg->addr)
			     : make_recv(ep, &r, msg->addr),
			op->flags);
	return *out ? 0 : -FI_ENOMEM;
}

static int take_tagged(const struct fi_op_tagged *op, bool send, struct work **out)
{
	struct wfi_ep *ep = wfi_ep_of_ep(op->ep);
	const struct fi_msg_tagged *msg = &op->msg;
	struct proto_msg m = {.iov = msg->msg_iov,
			      .count = msg->iov_count,
			      .tag = msg->tag,
			      .data = msg->data,
			      .context = msg->context,
			      .flags = wfi_ep_tx_bits(ep, op->flags) | PROTO_TAGGED};
	struct proto_recv r = {.iov = msg->msg_iov,
			       .count = msg->iov_count,
			       .tag = msg->tag,
			       .ignore = msg->ignore,
			       .context = msg->context,
			       .flags = PROTO_TAGGED};

	if (op->flags & ~(send ? WORK_TX_FLAGS : FI_COMPLETION | FI_MORE) ||
	    (m.flags & PROTO_INJECT) || !wfi_iov_sum(m.iov, m.count, &m.len)) {
		return -FI_EINVAL;
	}
	*out = deferred(send ? make_send(ep, &m, msg->addr)
			     : make_recv(ep, &r, msg->addr),
			op->flags);
	return *out ? 0 : -FI_ENOMEM;
}

static int take_rma(const struct fi_op_rma *op, bool write, struct work **out)
{
	struct proto_rma_iov remote[WFI_RMA_IOV_LIMIT];
	struct wfi_ep *ep = wfi_ep_of_ep(op->ep);
	uint32_t bits = wfi_ep_tx_bits(ep, op->flags);
	struct proto_rma r;
	int rc;

	if (op->flags & ~WORK_TX_FLAGS || (bits & PROTO_INJECT)) {
		return -FI_EINVAL;
	}
	rc = wfi_rma_of_msg(&op->msg,
			    write ? bits | PROTO_WRITE : bits & ~(uint32_t)PROTO_DATA,
			    remote, &r);
	if (rc) {
		return rc;
	}
	*out = deferred(make_rma(ep, &r, op->msg.addr), op->flags);
	return *out ? 0 : -FI_ENOMEM;
}

static int take_cntr(const struct wfi_domain *d, const struct fi_op_cntr *op, bool set,
		     struct work **out)
{
	struct wfi_cntr *cntr = op->cntr ? wfi_cntr_of(&op->cntr->fid) : NULL;
	struct work *w;

	if (!cntr || wfi_cntr_domain(cntr) != d) {
		return -FI_EINVAL;
	}
	w = work_alloc(WORK_CNTR, NULL, FI_ADDR_UNSPEC);
	if (!w) {
		return -FI_ENOMEM;
	}
	w->op.count.cntr = cntr;
	w->op.count.value = op->value;
	w->op.count.set = set;
	*out = w;
	return 0;
}

static int take(struct wfi_domain *d, const struct fi_deferred_work *work,
		struct work **out)
{
	switch (work->op_type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		return take_msg(work->op.msg, work->op_type == FI_OP_SEND, out);
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		return take_tagged(work->op.tagged, work->op_type == FI_OP_TSEND, out);
	case FI_OP_READ:
	case FI_OP_WRITE:
		return take_rma(work->op.rma, work->op_type == FI_OP_WRITE, out);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		/* The counter is what it completes. */
		if (work->completion_cntr) {
			return -FI_EINVAL;
		}
		return take_cntr(d, work->op.cntr, work->op_type == FI_OP_CNTR_SET, out);
	default:
		FI_INFO(&weft_provider, FI_LOG_DOMAIN,
			"FI_QUEUE_WORK: operation %d can't be deferred\n", work->op_type);
		return -FI_ENOSYS;
	}
}

/* Whose operation it is; NULL: no endpoint. */
static const struct fid_ep *ep_of_work(const struct fi_deferred_work *work)
{
	switch (work->op_type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		return work->op.msg->ep;
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		return work->op.tagged->ep;
	case FI_OP_READ:
	case FI_OP_WRITE:
		return work->op.rma->ep;
	default:
		return NULL;
	}
}

static bool is_good_ep(const struct wfi_domain *d, const struct fid_ep *fid)
{
	const struct wfi_ep *ep = container_of(fid, struct wfi_ep, fid);

	return fid->fid.fclass == FI_CLASS_EP && ep->domain == d && ep->enabled;
}

LOCK_HELD(lock_domain)
static int queue(struct wfi_domain *d, const struct fi_deferred_work *work)
{
	struct wfi_cntr *cntr =
		work->triggering_cntr ? wfi_cntr_of(&work->triggering_cntr->fid) : NULL;
	struct wfi_cntr *completion =
		work->completion_cntr ? wfi_cntr_of(&work->completion_cntr->fid) : NULL;
	const struct fid_ep *ep;
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
	ep = ep_of_work(work);
	if (ep && !is_good_ep(d, ep)) {
		return -FI_EINVAL;
	}
	rc = take(d, work, &w);
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
	case FI_FLUSH_WORK:
		cancel(d, NULL, arg ? wfi_cntr_of(arg) : NULL);
		break;
	default:
		rc = -FI_ENOSYS;
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
