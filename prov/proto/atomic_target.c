/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations, the target's half (rule E4). A request is carried out when it
 * arrives: once, because the link delivers it once (rule B1). Its result leaves on the
 * link that it came on, at once or, where there is no room, from memory that is kept
 * until there is. How much of that a peer can ask for is bounded: it may have no more
 * requests unanswered than its window takes.
 *
 * Nothing that the request says is believed: pkt_parse has seen to types and lengths;
 * key, bounds and access are looked up in our own table, and that the memory is aligned
 * and is there at all is checked before the first element is touched.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
#include "prov/mem/keytab.h"
#include "prov/proto/atomic_op.h"
#include "prov/proto/ep.h"
#include "prov/proto/wire_atomic.h"

/* Where a request's elements are, in the order of its operands. */
struct places {
	uint32_t count;
	struct iovec iov[PKT_IOV_MAX * MEM_REGION_IOV];
};

/* Whole, aligned elements in memory that is there. */
static int piece_check(struct proto_ep *ep, const struct pkt_view *v,
		       const struct iovec *iov, bool write, uint32_t incarnation)
{
	uintptr_t at = (uintptr_t)iov->iov_base;

	if (at % atomic_type_align(v->type) || iov->iov_len % atomic_type_size(v->type)) {
		return -FI_EINVAL;
	}
	if (mem_is_device(iov->iov_base, iov->iov_len)) {
		return 0; /* the copies find out */
	}
	return mem_probe(&ep->probe, at, iov->iov_len, write, incarnation) ? 0
									   : -FI_EFAULT;
}

/* 0, or why the request can't be carried out. */
static int places_find(struct proto_ep *ep, const struct pkt_view *v, struct places *p)
{
	uint64_t access = atomic_op_access(v->mode, v->op);

	p->count = 0;
	if (!ep->keys || (ep->atomic_access & access) != access) {
		return -FI_EOPNOTSUPP;
	}
	for (uint32_t i = 0; i < v->count; i++) {
		uint32_t count, incarnation;
		struct iovec *iov = &p->iov[p->count];
		int ret = mem_keyview_find(ep->keys, v->keys[i], v->iov[i].addr,
					   v->iov[i].len, access, iov, &count,
					   &incarnation);

		if (ret) {
			return ret;
		}
		for (uint32_t k = 0; k < count && !ret; k++) {
			ret = piece_check(ep, v, &iov[k], access & FI_REMOTE_WRITE,
					  incarnation);
		}
		if (ret) {
			return ret;
		}
		p->count += count;
	}
	return 0;
}

/* Elements of a GPU are changed in memory of the host: no other of this process, of
 * whatever endpoint, may do so meanwhile. What kernels do at the time nobody sees. */
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

static int carry_out_copied(atomic_fn fn, const struct iovec *iov, const char *operand,
			    const char *compare, char *result, size_t count, bool write)
{
	char *copy = malloc(iov->iov_len);
	int err;

	if (!copy) {
		return -FI_ENOMEM;
	}
	pthread_mutex_lock(&device_lock);
	err = mem_copy(copy, iov->iov_base, iov->iov_len);
	if (!err) {
		fn(copy, operand, compare, result, count);
		err = write ? mem_copy(iov->iov_base, copy, iov->iov_len) : 0;
	}
	pthread_mutex_unlock(&device_lock);
	free(copy);
	return err;
}

/* result: v->len bytes, or NULL. Only memory of GPUs can fail. */
static int carry_out(const struct pkt_view *v, const struct places *p, void *result)
{
	atomic_fn fn = atomic_op_find(v->mode, v->op, v->type);
	bool write = atomic_op_access(v->mode, v->op) & FI_REMOTE_WRITE;
	size_t size = atomic_type_size(v->type), at = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < p->count; i++) {
		const struct iovec *iov = &p->iov[i];
		const char *operand = v->payload ? (const char *)v->payload + at : NULL;
		const char *compare = v->compare ? (const char *)v->compare + at : NULL;
		char *out = result ? (char *)result + at : NULL;

		if (unlikely(mem_is_device(iov->iov_base, iov->iov_len))) {
			err = carry_out_copied(fn, iov, operand, compare, out,
					       iov->iov_len / size, write);
		} else {
			fn(iov->iov_base, operand, compare, out, iov->iov_len / size);
		}
		at += iov->iov_len;
	}
	return err;
}

/* Room for a result that can't leave yet; NULL: the peer asked for more than it may, or
 * there is no memory. */
static struct arrival *result_keep(struct proto_ep *ep, struct proto_peer *pp,
				   struct wire_link *link, const struct pkt_view *v,
				   uint32_t len)
{
	struct arrival *a;

	if (pp->results_kept + atomic_cost(len) > ATOMIC_WINDOW + ATOMIC_CHUNK_MAX) {
		return NULL;
	}
	a = arrival_alloc(ep, pp, link);
	if (!a) {
		return NULL;
	}
	arrival_set_state(a, ARRIVAL_OWES_RESULT);
	a->tx_id = v->id;
	a->len = len;
	a->fin_err = 0;
	if (len) {
		a->payload = payload_alloc(&ep->payloads, len, &a->size_class);
		if (!a->payload) {
			arrival_release(ep, a);
			return NULL;
		}
	}
	pp->results_kept += atomic_cost(len);
	list_push_back(&pp->results, &a->node);
	proto_activate(ep, pp);
	return a;
}

/* Carries the request out (unless err says why not) and answers; false: it can't be
 * answered, and was not carried out. */
static bool answer(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v, const struct places *p, int err)
{
	bool check = v->flags & PKT_F_CHECK;
	uint32_t len = err || check || v->mode == ATOMIC_BASE ? 0 : v->len;
	size_t head = sizeof(struct pkt_result);
	struct arrival *a;
	char *pkt = NULL;

	if (list_empty(&pp->results)) {
		pkt = link_reserve(link, head + len, WIRE_DATA);
	}
	if (likely(pkt)) {
		if (!err && !check) {
			err = carry_out(v, p, len ? pkt + head : NULL);
			len = err ? 0 : len;
		}
		pkt_put_result(pkt, v->id, -err, len);
		link_commit(link, pkt, head + len);
		return true;
	}
	a = result_keep(ep, pp, link, v, len);
	if (!a) {
		return false;
	}
	if (!err && !check) {
		err = carry_out(v, p, a->payload);
		if (err && len) { /* it leaves, and counts, without a result */
			pp->results_kept -= atomic_cost(len) - atomic_cost(0);
			a->len = 0;
		}
	}
	a->fin_err = -err;
	return true;
}

/* The operation's last request was carried out. The endpoint's counter hears of it, and
 * those of the regions that this request was about. */
static void report(struct proto_ep *ep, struct proto_peer *pp, const struct pkt_view *v)
{
	struct proto_done d = {
		.flags = FI_ATOMIC |
			 (v->mode == ATOMIC_BASE ? FI_REMOTE_WRITE : FI_REMOTE_READ) |
			 ((v->flags & PKT_F_DATA) ? FI_REMOTE_CQ_DATA : 0),
		.len = v->total,
		.data = v->data,
		.source = pp->source,
		.report = v->flags & PKT_F_DATA};

	ep->up->remote_done(ep->arg, &d);
	for (uint32_t i = 0; ep->up->remote_count && i < v->count; i++) {
		bool first = true;

		for (uint32_t k = 0; k < i; k++) {
			first &= v->keys[k] != v->keys[i];
		}
		if (first) {
			ep->up->remote_count(ep->arg, v->keys[i], 1,
					     v->mode != ATOMIC_BASE, false, true);
		}
	}
}

void atomic_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		    const struct pkt_view *v)
{
	struct places p;
	int err = places_find(ep, v, &p);

	if (v->flags & PKT_F_CHECK) {
		pp->refused_id = err ? v->id : 0;
		pp->refused_err = err;
	} else if (!err && pp->refused_id == v->id) {
		err = pp->refused_err;
	}
	if (!proto_peer_is_up(pp) || !peer_link_is_current(&pp->peer, link)) {
		/* Sent before its sender's epoch ended: there is nobody to answer. */
		if (!err && !(v->flags & PKT_F_CHECK)) {
			(void)carry_out(v, &p, NULL); /* nobody hears of it */
		}
	} else if (!answer(ep, pp, link, v, &p, err)) {
		proto_violation(ep, link);
		return;
	}
	if (!err && !(v->flags & PKT_F_MORE)) {
		report(ep, pp, v);
	}
}

int results_run(struct proto_ep *ep, struct proto_peer *pp)
{
	size_t head = sizeof(struct pkt_result);
	int sent = 0;

	while (!list_empty(&pp->results)) {
		struct arrival *a = container_of(pp->results.next, struct arrival, node);
		char *pkt = link_reserve(a->link, head + a->len, WIRE_DATA);

		if (!pkt) {
			break;
		}
		pkt_put_result(pkt, a->tx_id, a->fin_err, a->len);
		if (a->len) {
			memcpy(pkt + head, a->payload, a->len);
		}
		link_commit(a->link, pkt, head + a->len);
		pp->results_kept -= atomic_cost(a->len);
		arrival_release(ep, a);
		sent++;
	}
	return sent;
}

void results_drop(struct proto_ep *ep, struct proto_peer *pp)
{
	list_foreach_safe (n, next, &pp->results) {
		arrival_release(ep, container_of(n, struct arrival, node));
	}
	pp->results_kept = 0;
}
