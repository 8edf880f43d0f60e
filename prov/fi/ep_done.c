/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of the engine, on their way to queues and counters. Domain lock held. */
#include "config.h"

#include <stdio.h>

#include "prov/fi/cq_int.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/mr.h"
#include "prov/fi/work.h"
#include "util/lock_note.h"

static inline struct wfi_cq_entry entry_of(const struct proto_done *d)
{
	return (struct wfi_cq_entry){.op_context = d->context,
				     .flags = d->flags,
				     .len = d->len,
				     .buf = d->buf,
				     .data = d->data,
				     .tag = d->tag,
				     .src = d->source};
}

/* As the engine has it, into a queue. */
void wfi_ep_report(struct wfi_cq *cq, const struct proto_done *d)
{
	struct wfi_cq_error e = {.entry = entry_of(d),
				 .olen = d->olen,
				 .err = d->err,
				 .prov_errno = d->err};

	if (d->err) {
		wfi_cq_write_error(cq, &e);
	} else {
		wfi_cq_write(cq, &e.entry);
	}
}

LOCK_HELD(lock_domain)
static void write_error(const struct wfi_ep *ep, struct wfi_cq *cq,
			const struct proto_done *d)
{
	const struct proto_blame *blame = ep->proto ? proto_ep_blame(ep->proto) : NULL;
	struct wfi_cq_error e = {.entry = entry_of(d),
				 .olen = d->olen,
				 .err = d->err,
				 .prov_errno = d->err};
	char peer[WIRE_ADDR_TEXT_MAX], text[WFI_FAULT_TEXT];

	if (!cq) {
		return;
	}
	if (blame && blame->peer) {
		snprintf(text, sizeof(text), "%s: %s%s%s",
			 wire_addr_text(blame->peer, peer), fi_strerror(d->err),
			 blame->why ? ": " : "", blame->why ? blame->why : "");
		e.text = text;
	}
	wfi_cq_write_error(cq, &e);
}

/* The counter of an operation, from its direction flag. */
static inline struct wfi_cntr *cntr_of(const struct wfi_ep *ep, uint64_t flags)
{
	if (flags & FI_SEND) {
		return ep->cntrs[EP_CNTR_SEND];
	}
	return ep->cntrs[(flags & FI_WRITE) ? EP_CNTR_WRITE : EP_CNTR_READ];
}

LOCK_HELD(lock_domain) static void tx_done(void *arg, const struct proto_done *d)
{
	struct wfi_ep *ep = arg;
	struct wfi_cntr *cntr = cntr_of(ep, d->flags);

	if (__builtin_expect(!list_empty(&ep->domain->works), 0) &&
	    wfi_work_done(ep, d)) {
		return;
	}

	if (__builtin_expect(d->err, 0)) {
		write_error(ep, ep->tx_cq, d);
		wfi_cntr_inc_error(cntr);
		return;
	}
	if (d->report) {
		struct wfi_cq_entry e = entry_of(d);

		wfi_cq_write(ep->tx_cq, &e);
	}
	if (cntr) {
		wfi_cntr_inc(cntr);
	}
}

/* As usual: nothing is done about it but to report it. */
LOCK_HELD(lock_domain) static void put_ok(void *arg, void *context, bool report)
{
	struct wfi_ep *ep = arg;
	struct wfi_cq *cq = ep->tx_cq;
	struct wfi_cq_entry *e;

	if (__builtin_expect(!report || ep->cntrs[EP_CNTR_WRITE] ||
				     !list_empty(&ep->domain->works) ||
				     !wfi_cq_has_room(cq),
			     0)) {
		const struct proto_done d = {.context = context,
					     .flags = FI_RMA | FI_WRITE,
					     .source = FI_ADDR_NOTAVAIL,
					     .report = report};

		tx_done(arg, &d);
		return;
	}
	e = &cq->ring[cq->tail & cq->mask];
	e->op_context = context;
	e->flags = FI_RMA | FI_WRITE;
	e->len = 0;
	e->buf = NULL;
	e->data = 0;
	e->tag = 0;
	e->src = FI_ADDR_NOTAVAIL;
	wfi_cq_push(cq);
}

LOCK_HELD(lock_domain) static void rx_done(void *arg, const struct proto_done *d)
{
	struct wfi_ep *ep = arg;
	struct wfi_cntr *cntr = ep->cntrs[EP_CNTR_RECV];

	if (__builtin_expect(!list_empty(&ep->domain->works), 0) &&
	    wfi_work_done(ep, d)) {
		return;
	}
	if (__builtin_expect(d->err, 0)) {
		write_error(ep, ep->rx_cq, d);
		wfi_cntr_inc_error(cntr);
		return;
	}
	if (d->report && ep->rx_cq) {
		struct wfi_cq_entry e = entry_of(d);

		wfi_cq_write(ep->rx_cq, &e);
	}
	if (cntr) {
		wfi_cntr_inc(cntr);
	}
}

/* A receive that was posted for several endpoints doesn't know what this one reports. */
LOCK_HELD(lock_domain) static void rx_done_shared(void *arg, const struct proto_done *d)
{
	const struct wfi_ep *ep = arg;
	struct proto_done told = *d;

	told.report |= !ep->rx_selective;
	rx_done(arg, &told);
}

/* The ring must grow, or a counter counts. */
LOCK_HELD(lock_domain)
static __attribute__((noinline)) void rx_ok_slow(void *arg, void *context, uint64_t flags,
						 size_t len, uint64_t tag,
						 uint64_t source)
{
	struct proto_done d = {.context = context,
			       .flags = flags,
			       .len = len,
			       .tag = tag,
			       .source = source,
			       .report = true};

	rx_done(arg, &d);
}

LOCK_HELD(lock_domain)
static void rx_ok(void *arg, void *context, uint64_t flags, size_t len, uint64_t tag,
		  uint64_t source)
{
	struct wfi_ep *ep = arg;
	struct wfi_cq *cq = ep->rx_cq;
	struct wfi_cq_entry *e;

	if (!wfi_cq_has_room(cq)) {
		rx_ok_slow(ep, context, flags, len, tag, source);
		return;
	}
	e = &cq->ring[cq->tail & cq->mask];
	e->op_context = context;
	e->flags = flags;
	e->len = len;
	e->buf = NULL;
	e->data = 0;
	e->tag = tag;
	e->src = source;
	wfi_cq_push(cq);
}

LOCK_HELD(lock_domain)
static void rx_ok_data(void *arg, void *context, uint64_t flags, size_t len, uint64_t tag,
		       uint64_t source, uint64_t data)
{
	struct wfi_ep *ep = arg;
	struct wfi_cq *cq = ep->rx_cq;
	struct proto_done d;

	if (__builtin_expect(!cq || ep->cntrs[EP_CNTR_RECV] || !wfi_cq_has_room(cq), 0)) {
		d = (struct proto_done){.context = context,
					.flags = flags,
					.len = len,
					.data = data,
					.tag = tag,
					.source = source,
					.report = true};
		rx_done(arg, &d);
		return;
	}
	cq->ring[cq->tail & cq->mask] = (struct wfi_cq_entry){.op_context = context,
							      .flags = flags,
							      .len = len,
							      .data = data,
							      .tag = tag,
							      .src = source};
	wfi_cq_push(cq);
}

/* Plain RMA leaves no trace here; a write with data is an event of the receive side.
 * Atomics are carried out here, so that they are counted. */
LOCK_HELD(lock_domain) static void remote_done(void *arg, const struct proto_done *d)
{
	struct wfi_ep *ep = arg;

	if (d->report && ep->rx_cq) {
		struct wfi_cq_entry e = entry_of(d);

		wfi_cq_write(ep->rx_cq, &e);
	}
	wfi_cntr_inc(ep->cntrs[(d->flags & FI_REMOTE_READ) ? EP_CNTR_REMOTE_READ
							   : EP_CNTR_REMOTE_WRITE]);
}

/* Accesses of peers that had no data to tell by. */
LOCK_HELD(lock_domain)
static void remote_count(void *arg, uint64_t key, uint32_t count, bool read, bool for_ep,
			 bool for_region)
{
	struct wfi_ep *ep = arg;

	if (for_ep) {
		wfi_cntr_add(ep->cntrs[read ? EP_CNTR_REMOTE_READ : EP_CNTR_REMOTE_WRITE],
			     count);
	}
	if (for_region) {
		wfi_mr_count(ep->domain, key, count, read);
	}
}

LOCK_HELD(lock_domain) static uint64_t source(void *arg, const struct wire_addr *addr)
{
	struct wfi_ep *ep = arg;
	struct wire_addr base = *addr;

	base.context = 0; /* whichever it sends by */
	return ep->av ? wfi_av_find(ep->av, &base) : FI_ADDR_NOTAVAIL;
}

LOCK_HELD(lock_domain) static uint64_t told(void *arg, uint64_t index)
{
	return wfi_av_told(((struct wfi_ep *)arg)->av, index);
}

static uint64_t now(void *arg)
{
	(void)arg;
	return wfi_now_ns();
}

/* By whether receives are counted. */
const struct proto_up wfi_ep_up[2] = {
	{.tx_done = tx_done,
	 .put_ok = put_ok,
	 .rx_done = rx_done,
	 .rx_ok = rx_ok,
	 .rx_ok_data = rx_ok_data,
	 .remote_done = remote_done,
	 .remote_count = remote_count,
	 .source = source,
	 .told = told,
	 .now = now},
	{.tx_done = tx_done,
	 .put_ok = put_ok,
	 .rx_done = rx_done,
	 .rx_ok = rx_ok_slow,
	 .rx_ok_data = rx_ok_data,
	 .remote_done = remote_done,
	 .remote_count = remote_count,
	 .source = source,
	 .told = told,
	 .now = now},
};

const struct proto_up wfi_ep_up_shared[2] = {
	{.tx_done = tx_done,
	 .put_ok = put_ok,
	 .rx_done = rx_done_shared,
	 .rx_ok = rx_ok,
	 .rx_ok_data = rx_ok_data,
	 .remote_done = remote_done,
	 .remote_count = remote_count,
	 .source = source,
	 .told = told,
	 .now = now},
	{.tx_done = tx_done,
	 .put_ok = put_ok,
	 .rx_done = rx_done_shared,
	 .rx_ok = rx_ok_slow,
	 .rx_ok_data = rx_ok_data,
	 .remote_done = remote_done,
	 .remote_count = remote_count,
	 .source = source,
	 .told = told,
	 .now = now},
};
