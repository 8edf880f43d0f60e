/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting of sends and receives. */
#include "config.h"

#include "fabtests/emuverbs/post.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/fault.h"
#include "fabtests/emuverbs/mr.h"
#include "fabtests/emuverbs/qp.h"
#include "fabtests/emuverbs/req.h"

static bool can_inline(enum ibv_wr_opcode opcode)
{
	return opcode <= IBV_WR_SEND_WITH_IMM;
}

static int send_check(struct emu_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	uint64_t sum;

	if (qp->req.used >= cap->max_send_wr)
		return ENOMEM;
	if (wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD || wr->num_sge < 0 ||
	    (unsigned)wr->num_sge > cap->max_send_sge)
		return EINVAL;
	sum = emu_sge_sum(wr->sg_list, wr->num_sge);
	if (sum > EMU_MESSAGE_MAX)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (!can_inline(wr->opcode) || sum > cap->max_inline_data))
		return EINVAL;
	if (wr->opcode >= IBV_WR_RDMA_READ && qp->attr.max_rd_atomic == 0 &&
	    emu_qp_state(qp) != IBV_QPS_ERR)
		return EINVAL;
	if (wr->opcode > IBV_WR_RDMA_READ &&
	    (sum != 8 || !qp->dev->set->atomics || wr->wr.atomic.remote_addr % 8))
		return EINVAL;
	return 0;
}

static void send_fill(struct emu_qp *qp, const struct ibv_send_wr *wr, struct emu_swqe *w)
{
	struct ibv_sge *sge = w->sge;
	uint8_t *data = w->data;

	*w = (struct emu_swqe){.id = wr->wr_id,
			       .opcode = wr->opcode,
			       .signaled = qp->init.sq_sig_all ||
					   wr->send_flags & IBV_SEND_SIGNALED,
			       .fence = wr->send_flags & IBV_SEND_FENCE,
			       .solicited = wr->send_flags & IBV_SEND_SOLICITED,
			       .inlined = wr->send_flags & IBV_SEND_INLINE,
			       .immediate = wr->imm_data,
			       .length = emu_sge_sum(wr->sg_list, wr->num_sge),
			       .sges = (unsigned)wr->num_sge,
			       .sge = sge,
			       .data = data};
	if (wr->opcode > IBV_WR_RDMA_READ) {
		w->remote = wr->wr.atomic.remote_addr;
		w->key = wr->wr.atomic.rkey;
		w->compare = wr->wr.atomic.compare_add;
		w->swap = wr->wr.atomic.swap;
	} else {
		w->remote = wr->wr.rdma.remote_addr;
		w->key = wr->wr.rdma.rkey;
	}
	for (int i = 0; i < wr->num_sge; i++) {
		if (w->inlined) {
			memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
			data += wr->sg_list[i].length;
		} else {
			sge[i] = wr->sg_list[i];
		}
	}
}

int emu_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct emu_qp *qp = emu_qp_of(ibv);
	struct emu_req *r = &qp->req;
	int rc = 0;

	emu_lock();
	for (; wr; wr = wr->next) {
		struct emu_swqe *w;

		if (ibv->state != IBV_QPS_RTS && ibv->state != IBV_QPS_SQD &&
		    ibv->state != IBV_QPS_ERR)
			rc = EINVAL;
		else
			rc = send_check(qp, wr);
		if (rc) {
			*bad_wr = wr;
			break;
		}
		w = emu_req_at(qp, r->tail);
		send_fill(qp, wr, w);
		w->fault = -1;
		if (qp->mixed)
			emu_req_mix(qp, w);
		r->tail++;
		r->used++;
		if (ibv->state != IBV_QPS_ERR)
			emu_fault_count(qp, w);
	}
	if (ibv->state == IBV_QPS_ERR)
		emu_req_flush(qp);
	else
		emu_req_kick(qp);
	if (r->conn)
		emu_conn_pump(r->conn);
	emu_unlock();
	return rc;
}

bool emu_rq_init(struct emu_rq *q, unsigned wrs, unsigned sges)
{
	size_t n = wrs ? wrs : 1;

	q->ring = calloc(n, sizeof(*q->ring));
	q->sge = calloc(n * (sges ? sges : 1), sizeof(*q->sge));
	q->size = wrs;
	q->max_sge = sges;
	if (!q->ring || !q->sge)
		return false;
	for (size_t i = 0; i < n; i++)
		q->ring[i].sge = q->sge + i * sges;
	return true;
}

void emu_rq_fini(struct emu_rq *q)
{
	free(q->ring);
	free(q->sge);
}

static int rq_post(struct emu_rq *q, const struct ibv_recv_wr *wr)
{
	struct emu_rwqe *w;

	if (q->used >= q->size)
		return ENOMEM;
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > q->max_sge)
		return EINVAL;
	w = &q->ring[(q->head + q->posted) % q->size];
	w->id = wr->wr_id;
	w->sges = (unsigned)wr->num_sge;
	for (unsigned i = 0; i < w->sges; i++)
		w->sge[i] = wr->sg_list[i];
	q->posted++;
	q->used++;
	return 0;
}

int emu_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct emu_qp *qp = emu_qp_of(ibv);
	int rc = 0;

	emu_lock();
	for (; wr; wr = wr->next) {
		if (ibv->srq || ibv->state == IBV_QPS_RESET)
			rc = EINVAL;
		else
			rc = rq_post(&qp->rq, wr);
		if (rc) {
			*bad_wr = wr;
			break;
		}
	}
	if (ibv->state == IBV_QPS_ERR && !ibv->srq)
		emu_qp_flush_receives(qp);
	emu_unlock();
	return rc;
}

int emu_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr)
{
	struct emu_srq *srq = emu_srq_of(ibv);
	int rc = 0;

	emu_lock();
	for (; wr; wr = wr->next) {
		rc = rq_post(&srq->rq, wr);
		if (rc) {
			*bad_wr = wr;
			break;
		}
	}
	emu_unlock();
	return rc;
}
