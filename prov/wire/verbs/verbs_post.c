/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the transmitter says is posted, and completions of lanes are told to it. Requests
 * of a lane are chained and posted with one call; the last of them is signalled, which
 * answers for all (verbs_qp.h). Rules C2, C6.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_lane.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"
#include "prov/wire/verbs/verbs_spare.h"

#define POST_SIGNAL 8u /* at most so many answer for each other */

/* Of each lane, in a row: with the pauses between its openings that is longer than a
 * control channel has to come back. */
#define POST_ODD_MAX 32u

struct post {
	struct ibv_send_wr wr;
	struct ibv_sge sge[VERBS_SGE];
	uint64_t cookie;
	uint8_t lane;
	struct verbs_op *marks; /* it is told where it was posted; NULL: nobody is */
};

/* What is posted in one go. */
struct batch {
	uint32_t count;
	uint64_t lanes; /* that have a chain */
	uint64_t marks; /* those where somebody is told */
	struct post *first[DQPLB_LANES_MAX];
	struct post *last[DQPLB_LANES_MAX];
	struct post post[VERBS_POST_BATCH];
	struct post read;
};

static void batch_add(struct verbs_link *link, struct batch *b,
		      const struct dqplb_post *p)
{
	struct verbs_op *op = container_of(p->xfer, struct verbs_op, xfer);
	const struct verbs_lane *l = &link->lane[p->lane];
	struct post *at = &b->post[b->count++];
	uint32_t rail = l->rail;

	memset(&at->wr, 0, sizeof(at->wr));
	at->cookie = p->cookie;
	at->lane = p->lane;
	at->marks = verbs_op_marks(op, link->flush.least) ? op : NULL;
	if (at->marks)
		b->marks |= UINT64_C(1) << p->lane;
	at->wr.sg_list = at->sge;
	at->wr.num_sge = (int)verbs_op_sge(op, p->offset, p->len, rail, at->sge);
	if (p->len)
		verbs_op_remote(op, p->offset, l->peer_rail, &at->wr.wr.rdma.remote_addr,
				&at->wr.wr.rdma.rkey);
	switch (p->kind) {
	case DQPLB_POST_READ:
		at->wr.opcode = IBV_WR_RDMA_READ;
		break;
	case DQPLB_POST_WRITE_IMM:
		at->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		at->wr.imm_data = htonl(p->imm);
		break;
	default:
		at->wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	}
	if (p->kind != DQPLB_POST_READ && l->qp && p->len <= l->qp->inline_max)
		at->wr.send_flags = IBV_SEND_INLINE;
	if (l->qp) {
		l->qp->bytes += p->len;
		l->qp->requests++;
	}
	if (b->lanes >> p->lane & 1)
		b->last[p->lane]->wr.next = &at->wr;
	else
		b->first[p->lane] = at;
	b->last[p->lane] = at;
	b->lanes |= UINT64_C(1) << p->lane;
}

/* Names and signals, in the order of the chain. */
static void chain_finish(struct verbs_qp *qp, struct post *first)
{
	uint32_t at = qp->sq_head, count = 0;

	for (struct ibv_send_wr *wr = &first->wr; wr; wr = wr->next) {
		wr->wr_id = verbs_wr_id(qp, at++ & qp->sq_mask);
		if (++count == POST_SIGNAL || !wr->next) {
			wr->send_flags |= IBV_SEND_SIGNALED;
			count = 0;
		}
	}
}

static void mark(struct verbs_op *op, const struct verbs_qp *qp)
{
	op->marked = true;
	op->mark_lane = (uint8_t)qp->lane;
	op->mark_incarnation = qp->incarnation;
	op->mark = qp->sq_head;
}

/* `read`: room for one that goes with the chain, which ends with `last`; or NULL. */
static void chain_post(struct verbs_link *link, uint32_t lane, struct post *first,
		       struct post *last, struct post *read)
{
	struct verbs_qp *qp = link->lane[lane].qp;
	struct ibv_send_wr *bad = NULL;
	int err = ENODEV;

	if (qp && qp->state == VERBS_QP_READY) {
		if (read && verbs_flush_with(link, lane, &read->wr, read->sge)) {
			read->cookie = VERBS_FLUSH_BEHIND;
			read->marks = NULL;
			last->wr.next = &read->wr;
		}
		chain_finish(qp, first);
		err = ibv_post_send(qp->ib, &first->wr, &bad);
		/* Those before the bad one are on their way. */
		for (struct ibv_send_wr *wr = &first->wr; wr && (!err || wr != bad);
		     wr = wr->next) {
			const struct post *at = container_of(wr, struct post, wr);

			if (at->marks)
				mark(at->marks, qp);
			qp->cookie[qp->sq_head++ & qp->sq_mask] = at->cookie;
			if (at->cookie == VERBS_FLUSH_BEHIND) {
				link->lane[lane].behind++;
				link->flush.with++;
			}
		}
	}
	if (err) {
		FI_WARN(&weft_provider, FI_LOG_EP_DATA, "lane %u: posting: %s\n", lane,
			strerror(err));
		verbs_lane_down(link, lane, VERBS_LANE_PATH);
	}
}

bool verbs_lane_post_own(struct verbs_link *link, uint32_t lane, struct ibv_send_wr *wr,
			 uint64_t cookie)
{
	const struct verbs_lane *l = &link->lane[lane];
	struct verbs_qp *qp = l->qp;
	struct ibv_send_wr *bad;

	if (l->state != VERBS_LANE_UP || qp->state != VERBS_QP_READY)
		return false;
	wr->wr_id = verbs_wr_id(qp, qp->sq_head & qp->sq_mask);
	if (ibv_post_send(qp->ib, wr, &bad)) {
		verbs_lane_down(link, lane, VERBS_LANE_PATH);
		return false;
	}
	qp->cookie[qp->sq_head++ & qp->sq_mask] = cookie;
	return true;
}

static void batch_post(struct verbs_link *link, struct batch *b)
{
	for (uint64_t left = b->lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);

		chain_post(link, lane, b->first[lane], b->last[lane],
			   b->marks >> lane & 1 ? &b->read : NULL);
	}
	b->lanes = b->marks = 0;
	b->count = 0;
}

static void message_send(struct verbs_link *link, const struct dqplb_msg *m)
{
	void *at = verbs_chan_reserve(link, VERBS_CTL_OWN);
	size_t len = at ? dqplb_msg_put(at, VERBS_PACKET, m) : 0;

	/* Neither can be: there was room, and no message is longer. */
	if (len == 0)
		verbs_link_fault(link, -FI_EIO);
	else
		verbs_chan_commit(link, VERBS_CTL_DQPLB, len);
}

void verbs_lanes_post(struct verbs_link *link)
{
	struct dqplb_msg *msg = &link->ep->said;
	struct dqplb_post p;
	struct batch b;

	b.count = 0;
	b.lanes = b.marks = 0;
	while (!link->faulty &&
	       dqplb_tx_next(link->tx, &p,
			     verbs_chan_ready(link, VERBS_CTL_OWN) ? msg : NULL)) {
		if (p.kind == DQPLB_POST_MSG) {
			message_send(link, msg);
			continue;
		}
		batch_add(link, &b, &p);
		if (b.count == VERBS_POST_BATCH)
			batch_post(link, &b);
	}
	if (b.count)
		batch_post(link, &b);
}

/* ---- completions --------------------------------------------------------------------
 */

void verbs_lane_received(struct verbs_link *link, struct verbs_qp *qp,
			 const struct ibv_wc *wc)
{
	uint32_t i = qp->lane;
	struct verbs_lane *l = &link->lane[i];

	qp->receives--;
	link->stirred |= STIRRED_RX;
	if (wc->status != IBV_WC_SUCCESS) {
		if (l->state == VERBS_LANE_DRAINING)
			verbs_lane_settle(link, i);
		else
			verbs_lane_down(link, i, VERBS_LANE_PATH);
		return;
	}
	qp->passed = true;
	/* Whoever is heard on it can be sent to (rule C7). */
	if (l->state == VERBS_LANE_OPENING && !link->dialler)
		verbs_lane_up(link, i);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    dqplb_rx_imm(link->rx, i, qp->incarnation, ntohl(wc->imm_data),
			 wc->byte_len)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"lane %u.%u: what came on it may not: opcode %d, flags 0x%x, "
			"immediate 0x%08x, %u bytes\n",
			i, qp->incarnation, (int)wc->opcode, wc->wc_flags,
			ntohl(wc->imm_data), wc->byte_len);
		verbs_link_fault(link, -EPROTO);
		return;
	}
	if (link->state != VERBS_LINK_UP || l->qp != qp)
		return;
	if (qp->state != VERBS_QP_READY) {
		verbs_lane_settle(link, i);
		return;
	}
	if (verbs_qp_receive(qp, 1))
		verbs_lane_down(link, i, VERBS_LANE_PATH);
	else
		dqplb_rq_posted(&l->rq, 1);
}

/* They are not posted again, so they must not be waited for either; the lane ends as soon
 * as the link is up. */
void verbs_lane_early(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	qp->receives--;
	qp->spoilt = qp->spoilt || wc->status != IBV_WC_SUCCESS;
}

/* An operation's own fault: 0, or what it ends with. That a queue pair can't send is said
 * of the first that it should have sent, for example before a device's port is known to
 * be down: the operation's fault only if nothing else ever gets through. */
static int fault_of(struct verbs_link *link, enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_REM_ACCESS_ERR:
		return -FI_EACCES;
	case IBV_WC_LOC_PROT_ERR:
		return -FI_EFAULT;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_LOC_LEN_ERR:
		return -FI_EINVAL;
	case IBV_WC_LOC_QP_OP_ERR:
		return ++link->odd > POST_ODD_MAX * link->lanes ? -FI_EIO : 0;
	case IBV_WC_REM_OP_ERR:
		return -FI_EREMOTEIO;
	default:
		return 0;
	}
}

/* The end of a transfer that nothing is in front of: no turn of the link's is needed.
 * Whoever is told may give the link up. */
static void sent_one(struct verbs_link *link, struct verbs_qp *qp)
{
	struct dqplb_xfer *x =
		dqplb_tx_done_take(link->tx, qp->cookie[qp->sq_tail++ & qp->sq_mask]);

	if (dqplb_tx_waits(link->tx))
		link->stirred |= STIRRED_TX;
	if (x)
		verbs_op_over(container_of(x, struct verbs_op, xfer));
}

static void own_answered(struct verbs_link *link, uint32_t lane, uint64_t cookie,
			 uint32_t at)
{
	if (cookie == VERBS_FLUSH_BEHIND)
		verbs_flush_followed(link, lane, at);
	else if (cookie == VERBS_FLUSH_COOKIE)
		verbs_flush_answered(link, lane);
	else if (cookie != VERBS_FLUSH_IDLE)
		verbs_spare_done(link, cookie);
}

static void sent_all(struct verbs_link *link, struct verbs_qp *qp, uint32_t count)
{
	uint32_t lane = qp->lane;

	link->stirred |= STIRRED_TX;
	for (uint32_t k = 0; k < count; k++) {
		uint64_t cookie = qp->cookie[qp->sq_tail++ & qp->sq_mask];

		if (cookie < VERBS_LANE_OWN)
			dqplb_tx_done(link->tx, cookie);
		else
			own_answered(link, lane, cookie, qp->sq_tail - 1);
	}
	if (qp->state == VERBS_QP_ERROR)
		verbs_lane_settle(link, lane);
}

/* Of what wasn't answered for by itself, only what is known to be done is said to be: on
 * an error those before it are sent again like those behind it. */
void verbs_lane_sent(struct verbs_link *link, struct verbs_qp *qp,
		     const struct ibv_wc *wc)
{
	uint32_t at = wc->wr_id & qp->sq_mask, i = qp->lane;
	uint32_t count = ((at - qp->sq_tail) & qp->sq_mask) + 1;
	int fault;

	if (count > qp->sq_head - qp->sq_tail)
		return; /* a place that nothing was posted on */
	if (wc->status != IBV_WC_SUCCESS || verbs_quick_is(qp->cookie[at]))
		verbs_quick_keep(link, qp);
	if (wc->status == IBV_WC_SUCCESS) {
		qp->passed = true;
		link->odd = 0;
		if (count == 1 && qp->state == VERBS_QP_READY &&
		    qp->cookie[at] < VERBS_LANE_OWN)
			sent_one(link, qp);
		else
			sent_all(link, qp, count);
		return;
	}
	link->stirred |= STIRRED_TX;
	fault = fault_of(link, wc->status);
	qp->sq_tail += count;
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		FI_INFO(&weft_provider, FI_LOG_EP_DATA, "lane %u.%u: %s\n", i,
			qp->incarnation, link->ep->lib->wc_status_str(wc->status));
	/* Its own key table can't be read: that is no peer. */
	if (fault && qp->cookie[at] >= VERBS_LANE_OWN)
		verbs_link_fault(link, -EPROTO);
	else if (fault)
		dqplb_tx_fault(link->tx, qp->cookie[at], fault);
	if (qp->state == VERBS_QP_ERROR)
		verbs_lane_settle(link, i);
	else
		verbs_lane_down(link, i, fault ? VERBS_LANE_FAULT : VERBS_LANE_PATH);
}
