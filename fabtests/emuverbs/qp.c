/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: making, changing, asking, ending. */
#include "config.h"

#include "fabtests/emuverbs/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/cq.h"
#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/host.h"
#include "fabtests/emuverbs/post.h"
#include "fabtests/emuverbs/req.h"
#include "fabtests/emuverbs/rsp.h"
#include "fabtests/emuverbs/state.h"

struct emu_qp *emu_qp_find(const uint8_t address[16], uint32_t number)
{
	struct emu_dev *dev = emu_dev_find(address);

	if (!dev || !dev->qp || number >> EMU_INDEX_BITS != emu.slot)
		return NULL;
	return dev->qp[number % EMU_INDEXES];
}

static bool cap_fits(const struct emu_device *set, const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *c = &init->cap;

	return init->qp_type == IBV_QPT_RC && init->send_cq && init->recv_cq &&
	       c->max_send_wr <= set->max_qp_wr && c->max_send_sge <= set->max_sge &&
	       c->max_inline_data <= set->max_inline &&
	       (init->srq ||
		(c->max_recv_wr <= set->max_qp_wr && c->max_recv_sge <= set->max_sge));
}

/* The lowest number that is free, so that numbers come back at once. */
static bool number_take(struct emu_qp *qp)
{
	struct emu_dev *dev = qp->dev;
	unsigned i = 0;

	if (dev->qps >= dev->set->max_qp)
		return false;
	while (i < EMU_INDEXES && dev->qp[i])
		i++;
	if (i == EMU_INDEXES)
		return false;
	dev->qp[i] = qp;
	dev->qps++;
	emu_qp_ibv(qp)->qp_num = emu.slot << EMU_INDEX_BITS | i;
	emu_qp_ibv(qp)->handle = i;
	return true;
}

static void users_add(struct emu_qp *qp, unsigned by)
{
	struct ibv_qp *ibv = emu_qp_ibv(qp);

	emu_cq_of(ibv->send_cq)->users += by;
	emu_cq_of(ibv->recv_cq)->users += by;
	qp->pd->users += by;
	if (ibv->srq)
		emu_srq_of(ibv->srq)->users += by;
}

static void qp_free(struct emu_qp *qp)
{
	emu_req_fini(&qp->req);
	emu_rsp_fini(&qp->rsp);
	emu_rq_fini(&qp->rq);
	free(qp);
}

static void qp_clear(struct emu_qp *qp)
{
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.path_mig_state = IBV_MIG_MIGRATED;
	list_remove(&qp->timed);
	emu_req_reset(&qp->req);
	emu_rsp_reset(&qp->rsp, 0);
	qp->rq.posted = qp->rq.used = 0;
}

static struct emu_qp *qp_new(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	struct emu_qp *qp = calloc(1, sizeof(*qp));
	struct ibv_qp *ibv;
	unsigned sges;

	if (!qp)
		return NULL;
	list_init(&qp->timed);
	list_init(&qp->req.node);
	list_init(&qp->rsp.node);
	qp->pd = emu_pd_of(pd);
	qp->dev = qp->pd->dev;
	qp->mixed = qp->dev->set->delivery == EMU_MIXED;
	qp->init = *init;
	if (init->srq)
		qp->init.cap.max_recv_wr = qp->init.cap.max_recv_sge = 0;
	sges = init->srq ? emu_srq_of(init->srq)->rq.max_sge : init->cap.max_recv_sge;
	ibv = emu_qp_ibv(qp);
	ibv->context = pd->context;
	ibv->qp_context = init->qp_context;
	ibv->pd = pd;
	ibv->send_cq = init->send_cq;
	ibv->recv_cq = init->recv_cq;
	ibv->srq = init->srq;
	ibv->qp_type = init->qp_type;
	ibv->state = IBV_QPS_RESET;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	if (emu_req_init(&qp->req, &qp->init.cap) && emu_rsp_init(&qp->rsp, sges) &&
	    emu_rq_init(&qp->rq, qp->init.cap.max_recv_wr, qp->init.cap.max_recv_sge))
		return qp;
	qp_free(qp);
	return NULL;
}

EMU_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct emu_qp *qp;
	bool good;

	if (!cap_fits(emu_pd_of(pd)->dev->set, init)) {
		errno = init->qp_type == IBV_QPT_RC ? EINVAL : EOPNOTSUPP;
		return NULL;
	}
	qp = qp_new(pd, init);
	if (!qp)
		return NULL;
	emu_lock();
	good = number_take(qp);
	if (good) {
		users_add(qp, 1);
		qp_clear(qp);
	}
	emu_unlock();
	if (!good) {
		qp_free(qp);
		errno = ENOMEM;
		return NULL;
	}
	init->cap = qp->init.cap;
	return emu_qp_ibv(qp);
}

void emu_qp_flush_receives(struct emu_qp *qp)
{
	struct emu_rq *q = &qp->rq;

	if (qp->rsp.taken)
		emu_rsp_received(qp, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, NULL);
	while (q->posted > 0) {
		qp->rsp.rwqe.id = q->ring[q->head].id;
		q->head = (q->head + 1) % q->size;
		q->posted--;
		emu_rsp_received(qp, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, NULL);
	}
}

void emu_qp_error(struct emu_qp *qp, bool answer)
{
	struct ibv_qp *ibv = emu_qp_ibv(qp);

	if (ibv->state == IBV_QPS_ERR)
		return;
	ibv->state = IBV_QPS_ERR;
	if (!answer)
		emu_rsp_end(qp);
	emu_req_flush(qp);
	emu_qp_flush_receives(qp);
	/* Nothing of the shared queue is taken any more: it comes after the last one. */
	if (ibv->srq && !qp->dev->set->mute)
		emu_event_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void emu_qp_overrun(struct emu_cq *cq)
{
	for (unsigned i = 0; i < EMU_INDEXES; i++) {
		struct emu_qp *qp = cq->dev->qp[i];
		struct ibv_qp *ibv = qp ? emu_qp_ibv(qp) : NULL;

		if (!ibv || (ibv->send_cq != &cq->ibv && ibv->recv_cq != &cq->ibv) ||
		    ibv->state == IBV_QPS_RESET || ibv->state == IBV_QPS_ERR)
			continue;
		emu_event_qp(qp, IBV_EVENT_QP_FATAL);
		emu_qp_error(qp, false);
	}
}

static void addresses_set(struct emu_qp *qp)
{
	const struct ibv_ah_attr *ah = &qp->attr.ah_attr;
	union ibv_gid own;
	enum ibv_gid_type type;

	if (ah->is_global) {
		emu_dev_gid(qp->dev, ah->grh.sgid_index, &own, &type);
		memcpy(qp->own_address, own.raw, 16);
		memcpy(qp->peer_address, ah->grh.dgid.raw, 16);
	} else {
		emu_dev_lid_address(emu_dev_lid(qp->dev), qp->own_address);
		emu_dev_lid_address(ah->dlid, qp->peer_address);
	}
}

/* What a new state means besides. */
static int enter(struct emu_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp *ibv = emu_qp_ibv(qp);

	if (to == IBV_QPS_RTR && !emu_rsp_reset(&qp->rsp, qp->attr.max_dest_rd_atomic))
		return ENOMEM;
	if (mask & IBV_QP_AV)
		addresses_set(qp);
	if (to == IBV_QPS_RTR)
		qp->req.conn = emu_conn_get(qp->attr.dest_qp_num >> EMU_INDEX_BITS);
	if (mask & IBV_QP_RNR_RETRY)
		qp->req.rnr_left = qp->attr.rnr_retry;
	if (to == IBV_QPS_SQD && ibv->state != IBV_QPS_SQD)
		qp->attr.sq_draining = 1;
	ibv->state = to;
	if (to == IBV_QPS_SQD && qp->req.una == qp->req.next && qp->attr.sq_draining) {
		qp->attr.sq_draining = 0;
		if (qp->attr.en_sqd_async_notify)
			emu_event_qp(qp, IBV_EVENT_SQ_DRAINED);
	}
	if (to == IBV_QPS_RTS) {
		emu_req_kick(qp);
		if (qp->req.conn)
			emu_conn_pump(qp->req.conn);
	}
	return 0;
}

static void reset(struct emu_qp *qp)
{
	struct ibv_qp *ibv = emu_qp_ibv(qp);

	emu_rsp_end(qp);
	ibv->state = IBV_QPS_RESET;
	emu_cq_discard(ibv->send_cq, qp);
	emu_cq_discard(ibv->recv_cq, qp);
	if (ibv->srq && qp->rsp.taken)
		emu_srq_of(ibv->srq)->rq.used--;
	qp_clear(qp);
}

EMU_API int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct emu_qp *qp = emu_qp_of(ibv);
	enum ibv_qp_state to;
	int rc;

	emu_lock();
	to = mask & IBV_QP_STATE ? attr->qp_state : ibv->state;
	rc = emu_state_check(qp, attr, mask);
	if (rc == 0 && to == IBV_QPS_RESET) {
		reset(qp);
	} else if (rc == 0 && to == IBV_QPS_ERR) {
		emu_qp_error(qp, false);
	} else if (rc == 0) {
		emu_state_keep(qp, attr, mask);
		rc = enter(qp, to, mask);
	}
	emu_unlock();
	return rc;
}

EMU_API int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
			 struct ibv_qp_init_attr *init)
{
	struct emu_qp *qp = emu_qp_of(ibv);

	(void)mask;
	emu_lock();
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = ibv->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	emu_unlock();
	return 0;
}

EMU_API int ibv_query_qp_data_in_order(struct ibv_qp *ibv, enum ibv_wr_opcode op,
				       uint32_t flags)
{
	(void)op, (void)flags;
	return !emu_qp_of(ibv)->mixed;
}

EMU_API int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct emu_qp *qp = emu_qp_of(ibv);

	emu_lock();
	if (ibv->state != IBV_QPS_RESET)
		reset(qp);
	emu_queue_drop(&emu_context_of(ibv->context)->async, ibv);
	qp->dev->qp[ibv->handle] = NULL;
	qp->dev->qps--;
	/* As the real library does: who took an event must say so. */
	while (ibv->events_completed != qp->events)
		emu_wait();
	users_add(qp, -1u);
	emu_unlock();
	qp_free(qp);
	return 0;
}

EMU_API struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return NULL;
}

EMU_API int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return 0;
}

EMU_API int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	return ece->vendor_id ? EOPNOTSUPP : 0;
}
