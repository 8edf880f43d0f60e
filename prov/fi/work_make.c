/* SPDX-License-Identifier: BSD-2-Clause */
/* How work that waits is made; see work_int.h. */
#include "config.h"

#include <stdlib.h>

#include "prov/fi/work_int.h"
#include "prov/mem/params.h"
#include "prov/proto/atomic_op.h"
#include "prov/proto/xfer.h"

/* ---- making
 * ---------------------------------------------------------------------------- */

/* kept: bytes of what is injected. */
static struct work *work_alloc(enum work_kind kind, struct wfi_ep *ep, fi_addr_t addr,
			       size_t kept)
{
	struct work *w = calloc(1, sizeof(*w) + kept);

	if (w) {
		w->kind = kind;
		w->ep = ep ? wfi_ep_root(ep) : NULL;
		w->addr = addr;
		list_init(&w->node);
		list_init(&w->all);
	}
	return w;
}

static const struct iovec *keep_iov(struct iovec *to, const struct iovec *iov,
				    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		to[i] = iov[i];
	}
	return to;
}

/* The bytes, to `at`; one piece in the end. NULL: they can't be had. */
static const struct iovec *keep_bytes(struct iovec *to, const struct iovec *iov,
				      size_t count, char *at, size_t len)
{
	if (iov_gather(iov, (uint32_t)count, 0, at, len)) {
		return NULL;
	}
	*to = (struct iovec){at, len};
	return to;
}

static const struct proto_rma_iov *keep_remote(struct work *w,
					       const struct proto_rma_iov *remote,
					       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		w->remote[i] = remote[i];
	}
	return w->remote;
}

struct work *wfi_work_make_send(struct wfi_ep *ep, const struct proto_msg *m,
				fi_addr_t dest)
{
	bool inject = m->flags & PROTO_INJECT;
	struct work *w = work_alloc(WORK_SEND, ep, dest, inject ? m->len : 0);

	if (!w) {
		return NULL;
	}
	w->op.msg = *m;
	w->op.msg.flags &= ~WFI_TRIGGER;
	w->context = m->context;
	if (inject) {
		w->op.msg.iov = keep_bytes(w->iov, m->iov, m->count, w->kept, m->len);
		w->op.msg.count = 1;
		if (!w->op.msg.iov) {
			free(w);
			return NULL;
		}
	} else {
		w->op.msg.iov = keep_iov(w->iov, m->iov, m->count);
	}
	return w;
}

struct work *wfi_work_make_recv(struct wfi_ep *ep, const struct proto_recv *r,
				fi_addr_t source)
{
	struct work *w = work_alloc(WORK_RECV, ep, source, 0);

	if (w) {
		w->op.recv = *r;
		w->op.recv.iov = keep_iov(w->iov, r->iov, r->count);
		w->op.recv.flags &= ~WFI_TRIGGER;
		w->context = r->context;
	}
	return w;
}

struct work *wfi_work_make_rma(struct wfi_ep *ep, const struct proto_rma *r,
			       fi_addr_t target)
{
	bool inject = r->flags & PROTO_INJECT;
	struct work *w = work_alloc(WORK_RMA, ep, target, inject ? r->len : 0);

	if (!w) {
		return NULL;
	}
	w->op.rma = *r;
	w->op.rma.remote = keep_remote(w, r->remote, r->remote_count);
	w->op.rma.flags &= ~WFI_TRIGGER;
	w->context = r->context;
	if (inject) {
		w->op.rma.iov = keep_bytes(w->iov, r->iov, r->count, w->kept, r->len);
		w->op.rma.count = 1;
		if (!w->op.rma.iov) {
			free(w);
			return NULL;
		}
	} else {
		w->op.rma.iov = keep_iov(w->iov, r->iov, r->count);
	}
	return w;
}

struct work *wfi_work_make_atomic(struct wfi_ep *ep, const struct proto_atomic *a,
				  fi_addr_t target)
{
	size_t operands = atomic_op_operands(a->mode, a->op);
	bool inject = a->flags & PROTO_INJECT;
	struct work *w =
		work_alloc(WORK_ATOMIC, ep, target, inject ? operands * a->len : 0);

	if (!w) {
		return NULL;
	}
	w->op.atomic = *a;
	w->op.atomic.remote = keep_remote(w, a->remote, a->remote_count);
	w->op.atomic.result = keep_iov(w->result, a->result, a->result_count);
	w->op.atomic.flags &= ~WFI_TRIGGER;
	w->context = a->context;
	if (!inject) {
		w->op.atomic.iov = keep_iov(w->iov, a->iov, a->count);
		w->op.atomic.compare = keep_iov(w->compare, a->compare, a->compare_count);
		return w;
	}
	if (operands > 0) {
		w->op.atomic.iov = keep_bytes(w->iov, a->iov, a->count, w->kept, a->len);
		w->op.atomic.count = 1;
	}
	if (operands > 1) {
		w->op.atomic.compare =
			keep_bytes(w->compare, a->compare, a->compare_count,
				   w->kept + a->len, a->len);
		w->op.atomic.compare_count = 1;
	}
	if ((operands > 0 && !w->op.atomic.iov) ||
	    (operands > 1 && !w->op.atomic.compare)) {
		free(w);
		return NULL;
	}
	return w;
}

static struct work *make_count(struct wfi_cntr *cntr, uint64_t value, bool set)
{
	struct work *w = work_alloc(WORK_CNTR, NULL, FI_ADDR_UNSPEC, 0);

	if (w) {
		w->op.count.cntr = cntr;
		w->op.count.value = value;
		w->op.count.set = set;
	}
	return w;
}

/* ---- the deferred queue
 * ----------------------------------------------------------------------------- */

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
	case WORK_ATOMIC:
		w->op.atomic.context = w;
		w->op.atomic.flags &= ~PROTO_REPORT;
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
	    !wfi_iov_sum(m.iov, m.count, &m.len) ||
	    ((m.flags & PROTO_INJECT) && m.len > ep->inject_size)) {
		return -FI_EINVAL;
	}
	*out = deferred(send ? wfi_work_make_send(ep, &m, msg->addr)
			     : wfi_work_make_recv(ep, &r, msg->addr),
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
	    !wfi_iov_sum(m.iov, m.count, &m.len) ||
	    ((m.flags & PROTO_INJECT) && m.len > ep->inject_size)) {
		return -FI_EINVAL;
	}
	*out = deferred(send ? wfi_work_make_send(ep, &m, msg->addr)
			     : wfi_work_make_recv(ep, &r, msg->addr),
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

	if (op->flags & ~WORK_TX_FLAGS) {
		return -FI_EINVAL;
	}
	/* A read has nothing to give away. */
	bits = write ? bits | PROTO_WRITE : bits & ~(PROTO_DATA | PROTO_INJECT);
	rc = wfi_rma_of_msg(&op->msg, bits, remote, &r);
	if (rc) {
		return rc;
	}
	if ((bits & PROTO_INJECT) && r.len > ep->inject_size) {
		return -FI_EINVAL;
	}
	*out = deferred(wfi_work_make_rma(ep, &r, op->msg.addr), op->flags);
	return *out ? 0 : -FI_ENOMEM;
}

static int take_atomic(const struct fi_deferred_work *work, struct work **out)
{
	/* The three structures begin alike. */
	const struct fi_op_atomic *op = work->op.atomic;
	const struct fi_op_fetch_atomic *fetch = work->op.fetch_atomic;
	const struct fi_op_compare_atomic *compare = work->op.compare_atomic;
	uint64_t flags = work->op_type == FI_OP_ATOMIC	       ? op->flags
			 : work->op_type == FI_OP_FETCH_ATOMIC ? fetch->flags
							       : compare->flags;
	uint32_t mode = (uint32_t)(work->op_type - FI_OP_ATOMIC);
	struct wfi_ep *ep = wfi_ep_of_ep(op->ep);
	struct wfi_atomic_call c;
	int rc;

	if (flags & ~WORK_TX_FLAGS) {
		return -FI_EINVAL;
	}
	rc = wfi_atomic_of_msg(&c, mode, &op->msg,
			       mode == ATOMIC_BASE ? NULL : &fetch->fetch,
			       mode == ATOMIC_COMPARE ? &compare->compare : NULL,
			       wfi_ep_tx_bits(ep, flags));
	if (!rc) {
		rc = wfi_ep_atomic_check(ep, &c.a);
	}
	if (rc) {
		return rc;
	}
	*out = deferred(wfi_work_make_atomic(ep, &c.a, op->msg.addr), flags);
	return *out ? 0 : -FI_ENOMEM;
}

static int take_cntr(const struct wfi_domain *d, const struct fi_op_cntr *op, bool set,
		     struct work **out)
{
	struct wfi_cntr *cntr = op->cntr ? wfi_cntr_with_value(&op->cntr->fid) : NULL;

	if (!cntr || wfi_cntr_domain(cntr) != d) {
		return -FI_EINVAL;
	}
	*out = make_count(cntr, op->value, set);
	return *out ? 0 : -FI_ENOMEM;
}

_Static_assert(FI_OP_FETCH_ATOMIC - FI_OP_ATOMIC == ATOMIC_FETCH &&
		       FI_OP_COMPARE_ATOMIC - FI_OP_ATOMIC == ATOMIC_COMPARE,
	       "the order of families");
_Static_assert(offsetof(struct fi_op_atomic, msg) ==
			       offsetof(struct fi_op_fetch_atomic, msg) &&
		       offsetof(struct fi_op_atomic, msg) ==
			       offsetof(struct fi_op_compare_atomic, msg) &&
		       offsetof(struct fi_op_fetch_atomic, fetch) ==
			       offsetof(struct fi_op_compare_atomic, fetch),
	       "the three structures begin alike");

static bool is_good_ep(const struct wfi_domain *d, const struct fid_ep *fid)
{
	const struct wfi_ep *ep = container_of(fid, struct wfi_ep, fid);

	return fid &&
	       (fid->fid.fclass == FI_CLASS_EP || fid->fid.fclass == FI_CLASS_TX_CTX ||
		fid->fid.fclass == FI_CLASS_RX_CTX) &&
	       ep->domain == d && ep->enabled;
}

int wfi_work_take(struct wfi_domain *d, const struct fi_deferred_work *work,
		  struct work **out)
{
	if (work->op_type <= FI_OP_COMPARE_ATOMIC &&
	    !is_good_ep(d, work->op.msg->ep)) { /* the first member of all */
		return -FI_EINVAL;
	}
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
	case FI_OP_ATOMIC:
	case FI_OP_FETCH_ATOMIC:
	case FI_OP_COMPARE_ATOMIC:
		return take_atomic(work, out);
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
