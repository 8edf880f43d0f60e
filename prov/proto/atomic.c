/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations, the initiator's half: one FIFO per peer. An operation leaves as one
 * request or, if it is long, as several, and is over when all of them were answered: it
 * was carried out then, whatever level of completion was asked for.
 *
 * Requests and answers keep their order on the link, so nothing more is needed among
 * atomics, and messages only wait until the requests before them have left. Where order
 * between atomics and RMA was granted, each waits until the other is over (rule E2).
 */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/atomic_op.h"
#include "prov/proto/ep.h"
#include "prov/proto/wire_atomic.h"

/* Bytes of the longest request, in whole elements of any type. */
static uint32_t chunk_most(const struct proto_peer *pp, const struct atomic_out *out)
{
	size_t most =
		wire_link_base(pp->peer.link)->caps.max_packet - PKT_ATOMIC_HEAD_MAX;

	most /= out->operands > 1 ? out->operands : 1;
	most = most < ATOMIC_CHUNK_MAX ? most : ATOMIC_CHUNK_MAX;
	return (uint32_t)(most - most % ATOMIC_ELEM_MAX);
}

/* The target memory of the next `len` bytes. */
static void remote_slice(const struct tx *tx, size_t offset, size_t len,
			 struct pkt_view *v)
{
	v->count = 0;
	for (uint32_t i = 0; len > 0 && i < tx->x.remote_count; i++) {
		const struct xfer_remote *r = &tx->x.remote[i];
		size_t here;

		if (offset >= r->len) {
			offset -= r->len;
			continue;
		}
		here = r->len - offset < len ? r->len - offset : len;
		v->iov[v->count].addr = r->addr + offset;
		v->iov[v->count].len = here;
		v->keys[v->count] = r->key;
		v->count++;
		len -= here;
		offset = 0;
	}
}

/* What a request says of its operation, and of `len` bytes of it. */
static void request_describe(const struct tx *tx, size_t len, struct pkt_view *v)
{
	const struct atomic_out *out = tx->out;

	v->len = (uint32_t)len;
	v->flags = ((tx->flags & PROTO_DATA) ? PKT_F_DATA : 0) |
		   (len < tx->x.total - out->sent ? PKT_F_MORE : 0);
	v->id = pool_id(tx);
	v->data = (tx->flags & PROTO_DATA) ? tx->data : 0;
	v->total = tx->x.total;
	v->mode = out->mode;
	v->op = out->op;
	v->type = out->type;
	remote_slice(tx, out->sent, len, v);
}

/* Before the first request of several: all of them or none. False: not now. */
static bool check_send(struct proto_peer *pp, struct tx *tx)
{
	struct pkt_view v;
	void *pkt;

	if (pp->atomics_cost + atomic_cost(0) > ATOMIC_WINDOW) {
		return false;
	}
	pkt = link_reserve(pp->peer.link, PKT_ATOMIC_HEAD_MAX, WIRE_DATA);
	if (!pkt) {
		return false;
	}
	request_describe(tx, tx->x.total, &v);
	v.flags |= PKT_F_CHECK | PKT_F_MORE;
	link_commit(pp->peer.link, pkt, pkt_put_atomic(pkt, &v));
	pp->atomics_cost += atomic_cost(0);
	tx->out->check_sent = true;
	return true;
}

/* The next request of tx; false: not now. */
static bool request_send(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	struct atomic_out *out = tx->out;
	size_t left = tx->x.total - out->sent;
	struct pkt_view v;
	size_t size;
	char *pkt;

	if (out->sent == 0) {
		out->chunk = chunk_most(pp, out);
		if (left > out->chunk && !out->check_sent) {
			return check_send(pp, tx);
		}
	}
	left = left < out->chunk ? left : out->chunk;
	if (pp->atomics_cost + atomic_cost(left) > ATOMIC_WINDOW) {
		return false;
	}
	request_describe(tx, left, &v);
	size = sizeof(struct pkt_atomic) + v.count * sizeof(struct pkt_atomic_iov) +
	       (size_t)out->operands * v.len;
	pkt = link_reserve(pp->peer.link, size, WIRE_DATA);
	if (!pkt) {
		return false;
	}
	left = pkt_put_atomic(pkt, &v);
	if ((out->operands > 0 &&
	     iov_gather(tx->x.local, tx->x.local_count, out->sent, pkt + left, v.len)) ||
	    (out->operands > 1 && iov_gather(out->compare, out->compare_count, out->sent,
					     pkt + left + v.len, v.len))) {
		proto_give_up(ep, pp);
		return false;
	}
	link_commit(pp->peer.link, pkt, size);
	out->sent += v.len;
	pp->atomics_cost += atomic_cost(v.len);
	return true;
}

/* By the peer's device. False: not now. */
static bool native_send(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx)
{
	struct wire_link *link = pp->peer.link;
	struct atomic_out *out = tx->out;
	struct wire_atomic a = {.addr = tx->x.remote[0].addr,
				.key = tx->x.remote[0].key,
				.compare = out->mode == ATOMIC_COMPARE,
				.cookie = pool_id(tx)};

	if (iov_gather(tx->x.local, tx->x.local_count, 0, (char *)&a.operand,
		       sizeof(a.operand)) ||
	    (a.compare && iov_gather(out->compare, out->compare_count, 0,
				     (char *)&a.expect, sizeof(a.expect)))) {
		proto_give_up(ep, pp);
		return false;
	}
	if (link_ops(link)->atomic(link, &a)) {
		return false;
	}
	out->sent = tx->x.total;
	list_remove(&tx->node);
	list_push_back(&pp->waiting, &tx->node);
	tx_set_state(tx, TX_WAIT_RESULT);
	return true;
}

void proto_atomic_done(void *arg, struct wire_link *link, uint64_t cookie, uint64_t was,
		       int err)
{
	struct proto_peer *pp = wire_link_base(link)->peer_ctx;
	struct proto_ep *ep = arg;
	struct tx *tx = pp ? tx_find(ep, pp, cookie) : NULL;

	if (!tx || tx->state != TX_WAIT_RESULT) { /* of an epoch that ended */
		return;
	}
	pp = tx->peer;
	if (!err && tx->out->mode != ATOMIC_BASE) {
		err = iov_scatter(tx->out->result, tx->out->result_count, 0,
				  (const char *)&was, sizeof(was));
	}
	/* Messages may follow when it is done, and not when it has left (rule E2). */
	pp->atomics_sent++;
	pp->atomics_done++;
	if (pp->atomics_sent == pp->atomics_posted && proto_peer_is_up(pp)) {
		proto_unblock(pp, BLOCK_ATOMIC);
	}
	if (proto_peer_is_up(pp)) {
		proto_activate(ep, pp);
	}
	tx_complete(ep, tx, err);
}

/* Nothing more of it will be sent. */
static void all_sent(struct proto_peer *pp, struct tx *tx)
{
	list_remove(&tx->node);
	list_push_back(&pp->waiting, &tx->node);
	tx_set_state(tx, TX_WAIT_RESULT);
	pp->atomics_sent++;
}

int atomics_run(struct proto_ep *ep, struct proto_peer *pp)
{
	bool native = wire_link_base(pp->peer.link)->caps.atomic;
	int sent = 0;

	while (!list_empty(&pp->atomics)) {
		struct tx *tx = container_of(pp->atomics.next, struct tx, node);

		if (pp->rma_done < tx->rma_barrier ||
		    !(native ? native_send(ep, pp, tx) : request_send(ep, pp, tx))) {
			return sent;
		}
		if (!native && tx->out->sent == tx->x.total) {
			all_sent(pp, tx);
		}
		sent++;
	}
	if (pp->atomics_sent == pp->atomics_posted) {
		proto_unblock(pp, BLOCK_ATOMIC);
	}
	return sent;
}

static void take_pieces(struct iovec *to, uint8_t *to_count, const struct iovec *from,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		to[i] = from[i];
	}
	*to_count = (uint8_t)count;
}

/* Not 0: what is injected can't be had. */
static int take_memory(struct proto_ep *ep, struct tx *tx, const struct proto_atomic *a)
{
	struct atomic_out *out = tx->out;
	int err = 0;

	tx->x.total = a->len;
	tx->x.remote_count = a->remote_count;
	for (size_t i = 0; i < a->remote_count; i++) {
		tx->x.remote[i].addr = a->remote[i].addr;
		tx->x.remote[i].len = a->remote[i].len;
		tx->x.remote[i].key = a->remote[i].key;
	}
	take_pieces(out->result, &out->result_count, a->result, a->result_count);
	if (!(a->flags & PROTO_INJECT)) {
		take_pieces(tx->x.local, &tx->x.local_count, a->iov, a->count);
		take_pieces(out->compare, &out->compare_count, a->compare,
			    a->compare_count);
		return 0;
	}
	/* Both fit: the caller of proto_atomic has seen to that. */
	tx->x.local[0].iov_base = tx->bounce;
	tx->x.local[0].iov_len = a->len;
	tx->x.local_count = 1;
	out->compare[0].iov_base = (char *)tx->x.local[0].iov_base + a->len;
	out->compare[0].iov_len = a->len;
	out->compare_count = 1;
	if (out->operands > 0) {
		err = iov_gather(a->iov, a->count, 0, tx->x.local[0].iov_base, a->len);
	}
	if (!err && out->operands > 1) {
		err = iov_gather(a->compare, a->compare_count, 0,
				 out->compare[0].iov_base, a->len);
	}
	ep->injected += !err;
	return err;
}

ssize_t proto_atomic(struct proto_ep *ep, struct proto_peer *pp,
		     const struct proto_atomic *a)
{
	struct tx *tx = proto_fence_holds(pp, a->flags) ? NULL : tx_alloc(ep, pp);
	struct atomic_out *out;
	int err;

	if (!tx) {
		return -FI_EAGAIN;
	}
	out = tx->out;
	tx->flags = a->flags;
	tx->context = a->context;
	tx->data = a->data;
	tx->rma_barrier = ep->order_atomic ? pp->rma_posted : 0;
	tx->x.inflight = 0;
	tx->x.err = 0;
	out->mode = a->mode;
	out->op = a->op;
	out->type = a->type;
	out->operands = (uint8_t)atomic_op_operands(a->mode, a->op);
	out->check_sent = false;
	out->check_answered = false;
	out->sent = 0;
	out->answered = 0;
	out->err = 0;
	err = take_memory(ep, tx, a);
	if (unlikely(err)) {
		pool_release(&ep->tx, tx);
		return err;
	}
	tx_set_state(tx, TX_ATOMIC);
	pp->atomics_posted++;
	list_push_back(&pp->atomics, &tx->node);
	if (proto_peer_is_up(pp)) {
		atomics_run(ep, pp);
	} else {
		peer_connect(&ep->peers, &pp->peer);
	}
	if (pp->atomics_sent != pp->atomics_posted && ep->order_msg_after_rma) {
		proto_block(pp, BLOCK_ATOMIC);
	}
	if (!list_empty(&pp->atomics) && proto_peer_is_up(pp)) {
		proto_activate(ep, pp);
	}
	return 0;
}

/* What the target refuses ends the operation there: the rest stays unsent. */
static void refused(struct proto_peer *pp, struct tx *tx, struct atomic_out *out, int err)
{
	if (!out->err) {
		out->err = -err;
	}
	tx->x.total = out->sent;
	if (tx->state == TX_ATOMIC) {
		all_sent(pp, tx);
	}
}

void result_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		    const struct pkt_view *v)
{
	struct tx *tx = tx_find(ep, pp, v->id);
	struct atomic_out *out;
	size_t len, want;
	int err;

	if (!tx) { /* of an epoch that ended */
		return;
	}
	pp = tx->peer;
	out = tx->out;
	if ((tx->state != TX_ATOMIC && tx->state != TX_WAIT_RESULT) || !out ||
	    (out->answered == out->sent && out->check_sent == out->check_answered)) {
		proto_violation(ep, link);
		return;
	}
	len = out->sent - out->answered;
	len = len < out->chunk ? len : out->chunk;
	if (out->check_sent != out->check_answered) { /* its answer comes first */
		out->check_answered = true;
		len = 0;
	}
	want = out->mode == ATOMIC_BASE || v->total ? 0 : len;
	if (v->len != want) {
		proto_violation(ep, link);
		return;
	}
	err = iov_scatter(out->result, out->result_count, out->answered, v->payload,
			  want);
	if (unlikely(err) && !out->err) {
		out->err = err; /* carried out all the same */
	}
	out->answered += len;
	pp->atomics_cost -= atomic_cost(len);
	if (unlikely(v->total)) {
		refused(pp, tx, out, (int)v->total);
	}
	if (out->answered == tx->x.total && tx->state == TX_WAIT_RESULT) {
		pp->atomics_done++;
		tx_complete(ep, tx, out->err);
	}
}

void atomics_fail(struct proto_ep *ep, struct proto_peer *pp, int err)
{
	list_foreach_safe (n, next, &pp->atomics) {
		tx_fail(ep, container_of(n, struct tx, node), err);
	}
	/* Those that wait for an answer fail with everything that waits. */
	pp->atomics_sent = pp->atomics_posted;
	pp->atomics_done = pp->atomics_posted;
	pp->atomics_cost = 0;
}
