/* SPDX-License-Identifier: BSD-2-Clause */
/* The asking half: what was posted is sent, answers complete it in the order posted. */
#include "config.h"

#include "fabtests/emuverbs/req.h"

#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/cq.h"
#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/mr.h"
#include "fabtests/emuverbs/post.h"
#include "fabtests/emuverbs/qp.h"

#define SGE_MAX 256
/* Of a device that places out of order: more to be mixed. */
#define CHUNK_MIXED 16384u
#define HOLD	    200000u /* ns */

static struct list timed = {&timed, &timed};
/* Nothing is held back until then any more (ns). */
static uint64_t hastened;

bool emu_req_init(struct emu_req *r, const struct ibv_qp_cap *cap)
{
	size_t n = cap->max_send_wr ? cap->max_send_wr : 1, sges = cap->max_send_sge;

	r->ring = calloc(n, sizeof(*r->ring));
	r->sge = calloc(n * (sges ? sges : 1), sizeof(*r->sge));
	r->data = calloc(n, cap->max_inline_data ? cap->max_inline_data : 1);
	if (!r->ring || !r->sge || !r->data)
		return false;
	for (size_t i = 0; i < n; i++) {
		r->ring[i].sge = r->sge + i * sges;
		r->ring[i].data = r->data + i * cap->max_inline_data;
	}
	return true;
}

void emu_req_fini(struct emu_req *r)
{
	list_remove(&r->node);
	free(r->ring);
	free(r->sge);
	free(r->data);
}

void emu_req_reset(struct emu_req *r)
{
	list_remove(&r->node);
	r->conn = NULL;
	r->una = r->next = r->tail = 0;
	r->used = r->since = r->reading = 0;
	r->attempt = 0;
	r->until = 0;
	r->cookie = ++emu.cookies;
}

struct emu_swqe *emu_req_at(struct emu_qp *qp, uint32_t number)
{
	return &qp->req.ring[number % qp->init.cap.max_send_wr];
}

bool emu_req_busy(const struct emu_qp *qp)
{
	return qp->req.una != qp->req.tail;
}

static bool reads(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool writes(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool immediate(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM;
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

/* The oldest leaves, with a completion where one is due. */
static void leave(struct emu_qp *qp, enum ibv_wc_status status)
{
	struct emu_req *r = &qp->req;
	struct emu_swqe *w = emu_req_at(qp, r->una);
	struct emu_cqe e = {.qp = qp};

	r->una++;
	r->since++;
	if (status == IBV_WC_SUCCESS && !w->signaled)
		return;
	e.wc.wr_id = w->id;
	e.wc.status = status;
	e.wc.opcode = wc_opcode(w->opcode);
	e.wc.vendor_err = status;
	e.wc.byte_len = reads(w->opcode) ? (uint32_t)w->length : 0;
	e.wc.qp_num = emu_qp_ibv(qp)->qp_num;
	e.sq_places = r->since;
	r->since = 0;
	emu_cq_push(emu_qp_ibv(qp)->send_cq, &e, false);
}

void emu_req_flush(struct emu_qp *qp)
{
	struct emu_req *r = &qp->req;

	list_remove(&r->node);
	list_remove(&qp->timed);
	r->until = 0;
	r->reading = 0;
	while (r->una != r->tail)
		leave(qp, IBV_WC_WR_FLUSH_ERR);
	r->next = r->tail;
}

void emu_req_fail(struct emu_qp *qp, enum ibv_wc_status status)
{
	if (emu_req_busy(qp) && emu_qp_state(qp) != IBV_QPS_ERR)
		leave(qp, status);
	emu_qp_error(qp, false);
}

/* Faults of segments take effect when all before them is complete. */
static void faults(struct emu_qp *qp)
{
	struct emu_swqe *w;

	if (!emu_req_busy(qp))
		return;
	w = emu_req_at(qp, qp->req.una);
	if (w->bad)
		emu_req_fail(qp, IBV_WC_LOC_PROT_ERR);
	else if (w->fault == EMU_LOSE_ROUTE && w->gone)
		emu_req_fail(qp, IBV_WC_LOC_QP_OP_ERR);
	else if ((w->fault == EMU_LOSE_SEGMENT && w->gone) ||
		 ((w->fault == EMU_LOSE_ACK || w->fault == EMU_LOSE_IMMEDIATE) &&
		  w->done))
		emu_req_fail(qp, IBV_WC_RETRY_EXC_ERR);
}

static void complete(struct emu_qp *qp)
{
	struct emu_req *r = &qp->req;

	while (emu_qp_state(qp) != IBV_QPS_ERR && r->una != r->tail) {
		struct emu_swqe *w = emu_req_at(qp, r->una);

		if (!w->done || w->bad || (w->fault >= 0 && w->fault != EMU_DENY))
			break;
		leave(qp, IBV_WC_SUCCESS);
	}
	faults(qp);
	if (emu_qp_state(qp) == IBV_QPS_SQD && qp->attr.sq_draining &&
	    r->una == r->next) {
		qp->attr.sq_draining = 0;
		if (qp->attr.en_sqd_async_notify)
			emu_event_qp(qp, IBV_EVENT_SQ_DRAINED);
	}
	emu_req_kick(qp);
}

/* Whether the next message has to wait for something: a fence for reads, reads for others
 * that the peer has room for, all for one that was lost. */
static bool waits(struct emu_qp *qp, const struct emu_swqe *w)
{
	struct emu_req *r = &qp->req;
	const struct emu_swqe *before;

	if (w->sent > 0)
		return false;
	if (emu_qp_state(qp) == IBV_QPS_SQD)
		return true;
	if (w->fence && r->reading > 0)
		return true;
	if (reads(w->opcode) && r->reading >= qp->attr.max_rd_atomic)
		return true;
	if (r->next == r->una)
		return false;
	before = emu_req_at(qp, r->next - 1);
	return before->bad || (before->fault >= 0 && before->fault != EMU_DENY);
}

void emu_req_kick(struct emu_qp *qp)
{
	struct emu_req *r = &qp->req;
	enum ibv_qp_state state = emu_qp_state(qp);

	if ((state != IBV_QPS_RTS && state != IBV_QPS_SQD) || r->una == r->tail ||
	    r->until || !list_empty(&r->node))
		return;
	if (!qp->mixed && (r->next == r->tail || waits(qp, emu_req_at(qp, r->next))))
		return;
	if (!r->conn || qp->dev->down || qp->dev->fatal) {
		emu_req_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	list_push_back(&r->conn->reqs, &r->node);
}

/* Pieces of what is to be sent; -1: a key does not fit. */
static int gather(struct emu_qp *qp, const struct emu_swqe *w, uint64_t offset,
		  uint64_t len, struct iovec *iov)
{
	int n = 0;

	if (w->inlined) {
		iov[0] = (struct iovec){w->data + offset, len};
		return 1;
	}
	for (unsigned i = 0; i < w->sges && len > 0; i++) {
		uint64_t part = w->sge[i].length;
		void *at;

		if (offset >= part) {
			offset -= part;
			continue;
		}
		part -= offset;
		if (part > len)
			part = len;
		at = emu_mr_find(qp->pd, w->sge[i].lkey, w->sge[i].addr + offset, part,
				 0);
		if (!at)
			return -1;
		iov[n++] = (struct iovec){at, part};
		offset = 0;
		len -= part;
	}
	return n;
}

static void packet_fill(struct emu_qp *qp, const struct emu_swqe *w, uint32_t number,
			struct emu_packet *p)
{
	*p = (struct emu_packet){
		.magic = EMU_PACKET_MAGIC,
		.mtu = (uint8_t)qp->attr.path_mtu,
		.to = qp->attr.dest_qp_num,
		.from = emu_qp_ibv(qp)->qp_num,
		.cookie = qp->req.cookie,
		.attempt = qp->req.attempt,
		.number = number,
		.oldest = qp->req.una,
		.psn = qp->attr.sq_psn,
		.key = w->key,
		.pkey = emu_dev_pkey(qp->dev, qp->attr.pkey_index),
		.remote = w->remote,
		.offset = w->sent,
		.length = w->length,
		.compare = w->compare,
		.swap = w->swap,
	};
	memcpy(p->to_address, qp->peer_address, 16);
	memcpy(p->from_address, qp->own_address, 16);
	switch (w->opcode) {
	case IBV_WR_RDMA_READ:
		p->kind = EMU_READ;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		p->kind = EMU_SWAP;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		p->kind = EMU_ADD;
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		p->kind = EMU_WRITE;
		break;
	default:
		p->kind = EMU_SEND;
		break;
	}
	if (qp->mixed)
		p->flags = EMU_UNORDERED;
	if (immediate(w->opcode) && w->fault != EMU_LOSE_IMMEDIATE) {
		p->flags |= EMU_IMMEDIATE;
		p->immediate = w->immediate;
	}
	if (w->solicited)
		p->flags |= EMU_SOLICITED;
	if (w->fault == EMU_DENY)
		p->flags |= EMU_REFUSE;
}

/* One packet of a message; *whole: it was its last. */
static enum emu_sent send_part(struct emu_qp *qp, struct emu_swqe *w, uint32_t number,
			       bool *whole)
{
	struct iovec iov[SGE_MAX];
	struct emu_packet p;
	enum emu_sent sent;
	uint64_t len = 0;
	int pieces = 0;

	packet_fill(qp, w, number, &p);
	if (!reads(w->opcode)) {
		uint64_t most = qp->mixed ? CHUNK_MIXED : EMU_CHUNK;

		len = w->length - w->sent;
		if (len > most)
			len = most;
		if (w->backwards)
			p.offset = w->length - w->sent - len;
		p.bytes = (uint32_t)len;
		pieces = gather(qp, w, p.offset, len, iov);
		if (pieces < 0)
			return EMU_SENT_FAULT;
	}
	sent = emu_conn_send(qp->req.conn, &p, iov, (unsigned)pieces);
	if (sent != EMU_SENT_MORE)
		return sent;
	w->sent += len;
	*whole = reads(w->opcode) || w->sent == w->length;
	return EMU_SENT_MORE;
}

/* The message's own memory is not what it should be: those before it complete first. */
static enum emu_sent local_fault(struct emu_qp *qp, struct emu_swqe *w)
{
	w->bad = w->gone = true;
	faults(qp);
	return EMU_SENT_IDLE;
}

/* One in eight lets others go first; one in two goes backwards. */
void emu_req_mix(struct emu_qp *qp, struct emu_swqe *w)
{
	struct emu_req *r = &qp->req;

	w->backwards = writes(w->opcode) && emu_random(2);
	if (writes(w->opcode) && emu_random(8) == 0)
		w->hold = emu_now() + HOLD;
	/* What waits for the time of one that is held back need not. */
	if (r->until && r->until <= emu_now() + HOLD) {
		list_remove(&qp->timed);
		r->until = 0;
	}
}

/* One packet of message `number`. */
static enum emu_sent emit(struct emu_qp *qp, uint32_t number)
{
	struct emu_req *r = &qp->req;
	struct emu_swqe *w = emu_req_at(qp, number);
	enum emu_sent sent;
	bool whole = false;

	if (w->fault == EMU_LOSE_SEGMENT || w->fault == EMU_LOSE_ROUTE) {
		w->gone = true;
		faults(qp);
		return EMU_SENT_IDLE;
	}
	sent = send_part(qp, w, number, &whole);
	if (sent == EMU_SENT_FAULT)
		return local_fault(qp, w);
	if (sent == EMU_SENT_MORE && whole) {
		w->gone = true;
		r->reading += reads(w->opcode);
	}
	return sent;
}

static enum emu_sent emit_ordered(struct emu_qp *qp)
{
	struct emu_req *r = &qp->req;
	enum emu_sent sent;

	if (r->next == r->tail || waits(qp, emu_req_at(qp, r->next)))
		return EMU_SENT_IDLE;
	sent = emit(qp, r->next);
	while (r->next != r->tail && emu_req_at(qp, r->next)->gone)
		r->next++;
	return sent == EMU_SENT_MORE && r->next == r->tail ? EMU_SENT_IDLE : sent;
}

/* Whether a message may be on its way beside those before it, of which some are not
 * `all_done`: a write beside writes, and beside reads (which must not mind: who minds
 * says fence). */
static bool beside(struct emu_qp *qp, const struct emu_swqe *w, bool all_done,
		   bool only_writes)
{
	if (w->sent > 0)
		return true;
	if (emu_qp_state(qp) == IBV_QPS_SQD || (w->fence && qp->req.reading > 0))
		return false;
	if (!writes(w->opcode))
		return all_done;
	return all_done || only_writes;
}

/* Those of the window that may have a packet sent now; *soon: when one that is held back
 * may. */
static unsigned choices(struct emu_qp *qp, uint32_t *choice, uint64_t *soon)
{
	struct emu_req *r = &qp->req;
	bool all_done = true, only_writes = true;
	uint64_t now = emu_now();
	unsigned n = 0;

	if (now < hastened)
		now = hastened;
	for (uint32_t i = r->una; i != r->tail && i - r->una < EMU_WINDOW; i++) {
		struct emu_swqe *w = emu_req_at(qp, i);

		if (!w->gone && beside(qp, w, all_done, only_writes)) {
			if (w->hold <= now)
				choice[n++] = i;
			else if (w->hold < *soon)
				*soon = w->hold;
		}
		all_done = all_done && w->done;
		only_writes = only_writes && (w->done || writes(w->opcode) ||
					      (w->opcode == IBV_WR_RDMA_READ && w->gone));
		if (w->bad || (w->fault >= 0 && w->fault != EMU_DENY))
			break;
	}
	return n;
}

static enum emu_sent emit_mixed(struct emu_qp *qp)
{
	uint32_t choice[EMU_WINDOW];
	uint64_t soon = UINT64_MAX;
	unsigned n = choices(qp, choice, &soon);
	struct emu_req *r = &qp->req;

	if (n > 0) {
		enum emu_sent sent = emit(qp, choice[emu_random(n)]);

		while (r->next != r->tail && emu_req_at(qp, r->next)->gone)
			r->next++;
		return sent;
	}
	if (soon != UINT64_MAX)
		emu_req_hold(qp, soon);
	return EMU_SENT_IDLE;
}

enum emu_sent emu_req_emit(struct list *node)
{
	struct emu_qp *qp = container_of(node, struct emu_qp, req.node);

	if (qp->req.until)
		return EMU_SENT_IDLE;
	return qp->mixed ? emit_mixed(qp) : emit_ordered(qp);
}

static void data_arrives(struct emu_qp *qp, const struct emu_packet *p,
			 const uint8_t *payload)
{
	struct emu_swqe *w = emu_req_at(qp, p->number);

	if (w->opcode != IBV_WR_RDMA_READ || w->done || p->offset != w->got ||
	    p->length != w->length)
		return;
	if (!emu_mr_scatter(qp->pd, w->sge, w->sges, p->offset, payload, p->bytes)) {
		/* Whatever was before it was answered before it. */
		emu_req_fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	w->got += p->bytes;
	if (w->got == w->length) {
		w->done = true;
		qp->req.reading--;
		complete(qp);
	}
}

static void old_arrives(struct emu_qp *qp, const struct emu_packet *p)
{
	struct emu_swqe *w = emu_req_at(qp, p->number);

	if (!reads(w->opcode) || w->opcode == IBV_WR_RDMA_READ || w->done)
		return;
	if (!emu_mr_scatter(qp->pd, w->sge, w->sges, 0, (const uint8_t *)&p->swap, 8)) {
		emu_req_fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	w->done = true;
	qp->req.reading--;
	complete(qp);
}

/* All before `number`, of which reads were answered by their data. */
static void acknowledged(struct emu_qp *qp, uint32_t number)
{
	/* Out of order each is acknowledged by itself. */
	if (qp->mixed)
		return;
	for (uint32_t n = qp->req.una; n != number; n++) {
		struct emu_swqe *w = emu_req_at(qp, n);

		if (!reads(w->opcode))
			w->done = true;
	}
}

/* "0.01 ms" for code 1, and so on (655.36 ms for 0), in ns. */
static uint64_t rnr_time(unsigned code)
{
	static const uint32_t hundredths[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	 32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024, 1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return hundredths[code & 31] * 10000ull;
}

/* There was no receive: again from that message on, when the peer's time is over. */
static void not_ready(struct emu_qp *qp, const struct emu_packet *p)
{
	struct emu_req *r = &qp->req;

	if (p->attempt != r->attempt)
		return;
	acknowledged(qp, p->number);
	complete(qp);
	if (emu_qp_state(qp) == IBV_QPS_ERR || (!qp->mixed && r->una != p->number))
		return;
	if (qp->dev->set->rnr || r->rnr_left == 0) {
		emu_req_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (r->rnr_left < 7)
		r->rnr_left--;
	r->attempt++;
	for (uint32_t n = r->una; n != r->tail; n++) {
		struct emu_swqe *w = emu_req_at(qp, n);

		if (w->done)
			continue;
		w->sent = w->got = 0;
		w->gone = false;
	}
	r->next = r->una;
	r->reading = 0;
	list_remove(&r->node);
	emu_req_hold(qp, emu_now() + rnr_time(p->bytes));
}

static void refused(struct emu_qp *qp, const struct emu_packet *p)
{
	static const enum ibv_wc_status status[EMU_NAKS] = {
		[EMU_NAK_GONE] = IBV_WC_RETRY_EXC_ERR,
		[EMU_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[EMU_NAK_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
		[EMU_NAK_LOCAL] = IBV_WC_REM_OP_ERR,
	};

	if (p->code == EMU_NAK_RNR) {
		not_ready(qp, p);
		return;
	}
	/* A queue pair that is gone knows nothing of what it got before. */
	if (p->code != EMU_NAK_GONE)
		acknowledged(qp, p->number);
	complete(qp);
	if (emu_qp_state(qp) != IBV_QPS_ERR)
		emu_req_fail(qp, status[p->code]);
}

void emu_req_answer(struct emu_conn *c, const struct emu_packet *p,
		    const uint8_t *payload)
{
	struct emu_qp *qp = emu_qp_find(p->to_address, p->to);
	struct emu_req *r = qp ? &qp->req : NULL;

	/* What is late, of a queue pair that had the number before, too. */
	if (!qp || r->conn != c || r->cookie != p->cookie ||
	    (emu_qp_state(qp) != IBV_QPS_RTS && emu_qp_state(qp) != IBV_QPS_SQD) ||
	    qp->dev->down || p->number - r->una >= r->tail - r->una)
		return;
	switch (p->kind) {
	case EMU_ACK:
		r->rnr_left = qp->attr.rnr_retry;
		if (p->flags & EMU_ONLY)
			emu_req_at(qp, p->number)->done = true;
		else
			acknowledged(qp, p->number + 1);
		complete(qp);
		break;
	case EMU_NAK:
		refused(qp, p);
		break;
	case EMU_DATA:
		data_arrives(qp, p, payload);
		break;
	default:
		old_arrives(qp, p);
		break;
	}
}

/* Their peer's process is gone: whoever waits for it hears so, others when they ask. */
void emu_req_lost(struct emu_conn *c)
{
	for (unsigned d = 0; d < emu.setup.devices; d++)
		for (unsigned i = 0; emu.dev[d].qp && i < EMU_INDEXES; i++) {
			struct emu_qp *qp = emu.dev[d].qp[i];

			if (!qp || qp->req.conn != c)
				continue;
			qp->req.conn = NULL;
			if (emu_req_busy(qp))
				emu_req_fail(qp, IBV_WC_RETRY_EXC_ERR);
		}
}

void emu_req_hold(struct emu_qp *qp, uint64_t until)
{
	list_remove(&qp->req.node);
	list_remove(&qp->timed);
	qp->req.until = until;
	list_push_back(&timed, &qp->timed);
	emu_due(until);
}

void emu_req_timers(uint64_t now)
{
	list_foreach_safe (pos, tmp, &timed) {
		struct emu_qp *qp = container_of(pos, struct emu_qp, timed);

		if (qp->req.until > now) {
			emu_due(qp->req.until);
			continue;
		}
		list_remove(&qp->timed);
		qp->req.until = 0;
		emu_req_kick(qp);
		if (qp->req.conn)
			emu_conn_pump(qp->req.conn);
	}
}

/* Who posted waits for it: that others go first has had its time. */
void emu_req_hasten(void)
{
	if (list_empty(&timed))
		return;
	hastened = emu_now() + HOLD;
	emu_req_timers(hastened);
}
