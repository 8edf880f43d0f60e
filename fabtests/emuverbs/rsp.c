/* SPDX-License-Identifier: BSD-2-Clause */
/* The answering half: requests are carried out in their order, answers wait in a queue
 * until the connection takes them. */
#include "config.h"

#include "fabtests/emuverbs/rsp.h"

#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/cq.h"
#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/host.h"
#include "fabtests/emuverbs/late.h"
#include "fabtests/emuverbs/mr.h"
#include "fabtests/emuverbs/qp.h"

bool emu_rsp_init(struct emu_rsp *r, unsigned max_recv_sge)
{
	r->rwqe.sge = calloc(max_recv_sge ? max_recv_sge : 1, sizeof(*r->rwqe.sge));
	return r->rwqe.sge;
}

void emu_rsp_fini(struct emu_rsp *r)
{
	list_remove(&r->node);
	free(r->rwqe.sge);
	free(r->queue);
}

bool emu_rsp_reset(struct emu_rsp *r, unsigned max_reads)
{
	/* Between two reads one acknowledgement, of the last of many; on devices without
	 * order one for each of the window. */
	unsigned size = 2 * (max_reads + 2) + EMU_WINDOW;
	struct emu_answer *q = calloc(size, sizeof(*q));

	if (!q)
		return false;
	free(r->queue);
	list_remove(&r->node);
	r->queue = q;
	r->size = size;
	r->back = NULL;
	r->first = r->count = r->reading = 0;
	r->expect = 0;
	r->got = 0;
	memset(r->arrival, 0, sizeof(r->arrival));
	r->skip = r->heard = r->taken = false;
	return true;
}

/* An answer without a queue pair that could give it. */
static void say_gone(struct emu_conn *c, const struct emu_packet *p)
{
	struct emu_packet a = {
		.magic = EMU_PACKET_MAGIC,
		.kind = EMU_NAK,
		.code = EMU_NAK_GONE,
		.to = p->from,
		.from = p->to,
		.cookie = p->cookie,
		.number = p->number,
	};

	memcpy(a.to_address, p->from_address, 16);
	memcpy(a.from_address, p->to_address, 16);
	emu_conn_say(c, &a);
}

static void answer_packet(struct emu_qp *qp, const struct emu_answer *a,
			  struct emu_packet *p)
{
	*p = (struct emu_packet){
		.magic = EMU_PACKET_MAGIC,
		.kind = a->kind,
		.code = a->code,
		.flags = a->flags,
		.to = qp->attr.dest_qp_num,
		.from = emu_qp_ibv(qp)->qp_num,
		.cookie = qp->rsp.cookie,
		.number = a->number,
		.attempt = qp->rsp.skipped,
		.length = a->length,
		.offset = a->sent,
		.swap = a->old,
	};
	if (a->code == EMU_NAK_RNR)
		p->bytes = qp->attr.min_rnr_timer;
	memcpy(p->to_address, qp->peer_address, 16);
	memcpy(p->from_address, qp->own_address, 16);
}

void emu_rsp_end(struct emu_qp *qp)
{
	struct emu_rsp *r = &qp->rsp;
	struct emu_packet p;

	emu_late_place(qp, true);
	/* The first: the peer ends with it, and with all that follow it. */
	if (r->count > 0 && r->back) {
		struct emu_answer a = r->queue[r->first];

		a.kind = EMU_NAK;
		a.code = EMU_NAK_GONE;
		answer_packet(qp, &a, &p);
		p.offset = 0;
		emu_conn_say(r->back, &p);
	}
	list_remove(&r->node);
	r->count = 0;
	r->reading = 0;
	r->back = NULL;
}

void emu_rsp_lost(struct emu_conn *c)
{
	for (unsigned d = 0; d < emu.setup.devices; d++)
		for (unsigned i = 0; emu.dev[d].qp && i < EMU_INDEXES; i++) {
			struct emu_qp *qp = emu.dev[d].qp[i];

			if (!qp || qp->rsp.back != c)
				continue;
			qp->rsp.back = NULL;
			qp->rsp.count = 0;
			qp->rsp.reading = 0;
			list_remove(&qp->rsp.node);
		}
}

static struct emu_answer *answer_last(struct emu_rsp *r)
{
	return r->count ? &r->queue[(r->first + r->count - 1) % r->size] : NULL;
}

static void answer(struct emu_qp *qp, const struct emu_answer *a)
{
	struct emu_rsp *r = &qp->rsp;
	struct emu_answer *last = answer_last(r);

	if (a->kind == EMU_ACK && !(a->flags & EMU_ONLY) && last && last->kind == EMU_ACK)
		last->number = a->number;
	else if (r->count < r->size)
		r->queue[(r->first + r->count++) % r->size] = *a;
	if (list_empty(&r->node))
		list_push_back(&r->back->rsps, &r->node);
}

static void refuse(struct emu_qp *qp, const struct emu_packet *p, enum emu_nak code)
{
	answer(qp, &(struct emu_answer){
			   .kind = EMU_NAK, .code = (uint8_t)code, .number = p->number});
}

/* The requester's fault: both ends are in error. */
static void refuse_end(struct emu_qp *qp, const struct emu_packet *p, enum emu_nak code)
{
	refuse(qp, p, code);
	if (code == EMU_NAK_ACCESS)
		emu_event_qp(qp, IBV_EVENT_QP_ACCESS_ERR);
	else if (code == EMU_NAK_REQUEST)
		emu_event_qp(qp, IBV_EVENT_QP_REQ_ERR);
	emu_qp_error(qp, true);
}

/* No receive: everything of this attempt is passed over from here on. */
static void refuse_wait(struct emu_qp *qp, const struct emu_packet *p)
{
	struct emu_rsp *r = &qp->rsp;

	r->skip = true;
	r->skipped = p->attempt;
	r->got = 0;
	for (unsigned i = 0; i < EMU_WINDOW; i++)
		r->arrival[i].got = 0;
	refuse(qp, p, EMU_NAK_RNR);
}

/* The next receive; false: there is none. */
static bool take(struct emu_qp *qp)
{
	struct emu_rq *q = emu_qp_rq(qp);
	struct emu_srq *srq;
	const struct emu_rwqe *w;
	struct emu_rwqe *mine = &qp->rsp.rwqe;

	if (q->posted == 0)
		return false;
	w = &q->ring[q->head];
	mine->id = w->id;
	mine->sges = w->sges;
	memcpy(mine->sge, w->sge, w->sges * sizeof(*w->sge));
	q->head = (q->head + 1) % q->size;
	q->posted--;
	qp->rsp.taken = true;
	if (!emu_qp_ibv(qp)->srq)
		return true;
	srq = emu_srq_of(emu_qp_ibv(qp)->srq);
	if (srq->limit > 0 && q->posted < srq->limit) {
		srq->limit = 0;
		emu_event_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	return true;
}

void emu_rsp_received(struct emu_qp *qp, enum ibv_wc_status status,
		      enum ibv_wc_opcode opcode, const struct emu_packet *p)
{
	struct emu_cqe e = {.qp = qp, .rq = emu_qp_rq(qp)};

	qp->rsp.taken = false;
	e.wc.wr_id = qp->rsp.rwqe.id;
	e.wc.status = status;
	e.wc.opcode = opcode;
	e.wc.vendor_err = status;
	e.wc.qp_num = emu_qp_ibv(qp)->qp_num;
	if (p) {
		e.wc.src_qp = p->from;
		e.wc.byte_len = (uint32_t)p->length;
		if (p->flags & EMU_IMMEDIATE) {
			e.wc.wc_flags = IBV_WC_WITH_IMM;
			e.wc.imm_data = p->immediate;
		}
	}
	emu_cq_push(emu_qp_ibv(qp)->recv_cq, &e, p && p->flags & EMU_SOLICITED);
}

static struct emu_arrival *arrival(struct emu_qp *qp, uint32_t number)
{
	return &qp->rsp.arrival[number % EMU_WINDOW];
}

/* Of a device without order: those that are done from the oldest on make room; one that
 * was to be refused is, when all before it is done. */
static void advance(struct emu_qp *qp)
{
	struct emu_rsp *r = &qp->rsp;
	struct emu_arrival *a = arrival(qp, r->expect);

	for (; a->done; a = arrival(qp, r->expect)) {
		memset(a, 0, sizeof(*a));
		r->expect++;
	}
	if (a->refused) {
		struct emu_packet p = {.number = r->expect};

		a->refused = false;
		refuse_end(qp, &p, a->code);
	}
}

/* A read or an atomic is as good as done: its answer will be given. */
static void carried_out(struct emu_qp *qp, const struct emu_packet *p)
{
	qp->rsp.got = 0;
	if (!qp->mixed) {
		qp->rsp.expect++;
		return;
	}
	arrival(qp, p->number)->done = true;
	advance(qp);
}

static void finish(struct emu_qp *qp, const struct emu_packet *p)
{
	answer(qp, &(struct emu_answer){.kind = EMU_ACK,
					.flags = qp->mixed ? EMU_ONLY : 0,
					.number = p->number});
	carried_out(qp, p);
}

static bool allowed(struct emu_qp *qp, unsigned access)
{
	return qp->attr.qp_access_flags & access;
}

static void refuse_in_turn(struct emu_qp *qp, const struct emu_packet *p,
			   enum emu_nak code)
{
	struct emu_arrival *a = arrival(qp, p->number);

	if (!qp->mixed || p->number == qp->rsp.expect) {
		refuse_end(qp, p, code);
		return;
	}
	a->refused = true;
	a->code = (uint8_t)code;
}

/* What will be heard of at once is behind all that was written before. */
static bool written(struct emu_qp *qp, const struct emu_packet *p, char *at,
		    const uint8_t *payload)
{
	bool relaxed = emu_mr_relaxed(qp->pd, p->key);

	if ((qp->dev->set->late || relaxed) && !(p->flags & EMU_IMMEDIATE))
		return emu_late_hold(qp, p, payload, relaxed);
	return emu_mr_copy(at + p->offset, payload, p->bytes);
}

static void write_arrives(struct emu_qp *qp, const struct emu_packet *p,
			  const uint8_t *payload)
{
	uint64_t *got = qp->mixed ? &arrival(qp, p->number)->got : &qp->rsp.got;
	void *at;

	if (!allowed(qp, IBV_ACCESS_REMOTE_WRITE)) {
		refuse_in_turn(qp, p, EMU_NAK_REQUEST);
		return;
	}
	if (p->length > 0) {
		/* The whole of it, each time: a key may end in the middle. */
		at = emu_mr_find(qp->pd, p->key, p->remote, p->length,
				 IBV_ACCESS_REMOTE_WRITE);
		if (!at || !written(qp, p, at, payload)) {
			refuse_in_turn(qp, p, EMU_NAK_ACCESS);
			return;
		}
	}
	*got += p->bytes;
	if (*got < p->length)
		return;
	/* Who polls for something may as well wait for this. */
	emu_host_busy();
	if (p->flags & EMU_IMMEDIATE) {
		if (!take(qp)) {
			refuse_wait(qp, p);
			return;
		}
		emu_rsp_received(qp, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, p);
	}
	finish(qp, p);
}

/* The receive is not what it should be: it, and the sender, hear so. */
static void send_fails(struct emu_qp *qp, const struct emu_packet *p,
		       enum ibv_wc_status status, enum emu_nak code)
{
	emu_rsp_received(qp, status, IBV_WC_RECV, p);
	refuse(qp, p, code);
	emu_qp_error(qp, true);
}

static void send_arrives(struct emu_qp *qp, const struct emu_packet *p,
			 const uint8_t *payload)
{
	struct emu_rsp *r = &qp->rsp;

	if (p->offset == 0) {
		if (!take(qp)) {
			refuse_wait(qp, p);
			return;
		}
		if (p->length > emu_sge_sum(r->rwqe.sge, (int)r->rwqe.sges)) {
			send_fails(qp, p, IBV_WC_LOC_LEN_ERR, EMU_NAK_REQUEST);
			return;
		}
	}
	if (!emu_mr_scatter(qp->pd, r->rwqe.sge, r->rwqe.sges, p->offset, payload,
			    p->bytes)) {
		send_fails(qp, p, IBV_WC_LOC_PROT_ERR, EMU_NAK_LOCAL);
		return;
	}
	r->got += p->bytes;
	if (r->got < p->length)
		return;
	emu_rsp_received(qp, IBV_WC_SUCCESS, IBV_WC_RECV, p);
	finish(qp, p);
}

static void read_arrives(struct emu_qp *qp, const struct emu_packet *p)
{
	struct emu_rsp *r = &qp->rsp;

	if (!allowed(qp, IBV_ACCESS_REMOTE_READ) ||
	    r->reading >= qp->attr.max_dest_rd_atomic) {
		refuse_end(qp, p, EMU_NAK_REQUEST);
		return;
	}
	if (p->length > 0 &&
	    !emu_mr_find(qp->pd, p->key, p->remote, p->length, IBV_ACCESS_REMOTE_READ)) {
		refuse_end(qp, p, EMU_NAK_ACCESS);
		return;
	}
	r->reading++;
	answer(qp, &(struct emu_answer){.kind = EMU_DATA,
					.number = p->number,
					.key = p->key,
					.remote = p->remote,
					.length = p->length});
	carried_out(qp, p);
}

static void atomic_arrives(struct emu_qp *qp, const struct emu_packet *p)
{
	struct emu_rsp *r = &qp->rsp;
	uint64_t *at, old;

	if (!allowed(qp, IBV_ACCESS_REMOTE_ATOMIC) || !qp->dev->set->atomics ||
	    p->remote % 8 || r->reading >= qp->attr.max_dest_rd_atomic) {
		refuse_end(qp, p, EMU_NAK_REQUEST);
		return;
	}
	at = emu_mr_find(qp->pd, p->key, p->remote, 8, IBV_ACCESS_REMOTE_ATOMIC);
	if (!at || (uintptr_t)at % 8 || !emu_mr_there(at, 8)) {
		refuse_end(qp, p, EMU_NAK_ACCESS);
		return;
	}
	if (p->kind == EMU_ADD) {
		old = __atomic_fetch_add(at, p->compare, __ATOMIC_ACQ_REL);
	} else {
		old = p->compare;
		__atomic_compare_exchange_n(at, &old, p->swap, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	}
	r->reading++;
	r->expect++;
	answer(qp,
	       &(struct emu_answer){.kind = EMU_OLD, .number = p->number, .old = old});
}

/* Whether it is for this queue pair as it is now, and may come in. */
static bool expected(struct emu_qp *qp, const struct emu_packet *p)
{
	enum ibv_qp_state s = emu_qp_state(qp);

	return (s == IBV_QPS_RTR || s == IBV_QPS_RTS || s == IBV_QPS_SQD) &&
	       !qp->dev->down && !qp->dev->fatal && qp->attr.dest_qp_num == p->from &&
	       memcmp(qp->peer_address, p->from_address, 16) == 0 &&
	       p->psn == qp->attr.rq_psn &&
	       p->pkey == emu_dev_pkey(qp->dev, qp->attr.pkey_index) &&
	       (!qp->rsp.heard || qp->rsp.cookie == p->cookie);
}

/* Whether it is the next part of the next message; out of order, a part of one of the
 * window that is neither done nor refused. Only writes are beside others. */
static bool in_place(struct emu_qp *qp, const struct emu_packet *p)
{
	struct emu_rsp *r = &qp->rsp;
	const struct emu_arrival *a = arrival(qp, p->number);

	if (!(p->flags & EMU_UNORDERED) == qp->mixed)
		return false;
	if (!qp->mixed)
		return p->number == r->expect && p->offset == r->got;
	if (p->kind != EMU_WRITE)
		return p->number == r->expect &&
		       (p->kind != EMU_SEND || p->offset == r->got);
	/* All before the oldest were answered, by this queue pair if it is the right one.
	 */
	return p->number - r->expect < EMU_WINDOW && !a->done &&
	       r->expect - p->oldest <= EMU_WINDOW;
}

static void carry_out(struct emu_qp *qp, const struct emu_packet *p,
		      const uint8_t *payload)
{
	bool heard = p->kind == EMU_SEND || (p->flags & EMU_IMMEDIATE);

	if (p->kind != EMU_WRITE || heard)
		emu_late_place(qp, heard);
	switch (p->kind) {
	case EMU_WRITE:
		write_arrives(qp, p, payload);
		break;
	case EMU_SEND:
		send_arrives(qp, p, payload);
		break;
	case EMU_READ:
		read_arrives(qp, p);
		break;
	default:
		atomic_arrives(qp, p);
		break;
	}
}

void emu_rsp_request(struct emu_conn *c, const struct emu_packet *p,
		     const uint8_t *payload)
{
	struct emu_qp *qp = emu_qp_find(p->to_address, p->to);
	struct emu_rsp *r;

	if (!qp || !expected(qp, p)) {
		/* What it has to say already comes first, and ends the peer. */
		if (!qp || qp->rsp.count == 0 || qp->rsp.cookie != p->cookie)
			say_gone(c, p);
		return;
	}
	r = &qp->rsp;
	r->back = c;
	r->cookie = p->cookie;
	if (!r->heard && emu_qp_state(qp) == IBV_QPS_RTR)
		emu_event_qp(qp, IBV_EVENT_COMM_EST);
	r->heard = true;
	if (r->skip && p->attempt == r->skipped)
		return;
	r->skip = false;
	if (!in_place(qp, p))
		refuse(qp, p, EMU_NAK_GONE);
	else if (p->mtu != qp->attr.path_mtu)
		refuse_end(qp, p, EMU_NAK_REQUEST);
	else if (p->flags & EMU_REFUSE)
		refuse_in_turn(qp, p, EMU_NAK_ACCESS);
	else if (!arrival(qp, p->number)->refused)
		carry_out(qp, p, payload);
}

/* A part of what is read, if its key is still good. */
static enum emu_sent data_emit(struct emu_qp *qp, struct emu_answer *a,
			       struct emu_packet *p)
{
	uint64_t len = a->length - a->sent;
	struct iovec iov = {NULL, 0};
	enum emu_sent sent;
	char *at = NULL;

	if (len > EMU_CHUNK)
		len = EMU_CHUNK;
	if (a->length > 0)
		at = emu_mr_find(qp->pd, a->key, a->remote, a->length,
				 IBV_ACCESS_REMOTE_READ);
	if (a->length > 0 && !at)
		return EMU_SENT_FAULT;
	p->bytes = (uint32_t)len;
	if (len > 0)
		iov = (struct iovec){at + a->sent, len};
	sent = emu_conn_send(qp->rsp.back, p, &iov, len > 0);
	if (sent == EMU_SENT_MORE)
		a->sent += len;
	return sent;
}

/* A read's key ended while it was answered. */
static enum emu_sent data_fails(struct emu_qp *qp)
{
	struct emu_rsp *r = &qp->rsp;
	struct emu_packet p = {.number = r->queue[r->first].number};

	r->count = 0;
	r->reading = 0;
	refuse_end(qp, &p, EMU_NAK_ACCESS);
	return EMU_SENT_MORE;
}

enum emu_sent emu_rsp_emit(struct list *node)
{
	struct emu_qp *qp = container_of(node, struct emu_qp, rsp.node);
	struct emu_rsp *r = &qp->rsp;
	struct emu_answer *a;
	enum emu_sent sent;
	struct emu_packet p;

	if (r->count == 0)
		return EMU_SENT_IDLE;
	a = &r->queue[r->first];
	answer_packet(qp, a, &p);
	if (a->kind == EMU_DATA)
		sent = data_emit(qp, a, &p);
	else
		sent = emu_conn_send(r->back, &p, NULL, 0);
	if (sent == EMU_SENT_FAULT)
		return data_fails(qp);
	if (sent != EMU_SENT_MORE)
		return sent;
	if (a->kind == EMU_DATA && a->sent < a->length)
		return EMU_SENT_MORE;
	if (a->kind == EMU_DATA || a->kind == EMU_OLD)
		r->reading--;
	r->first = (r->first + 1) % r->size;
	r->count--;
	return r->count ? EMU_SENT_MORE : EMU_SENT_IDLE;
}
