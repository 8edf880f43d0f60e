/* SPDX-License-Identifier: BSD-2-Clause */
/* The state machine of reliable connected queue pairs, as a table. */
#include "config.h"

#include "fabtests/emuverbs/state.h"

#include <errno.h>

#include "fabtests/emuverbs/qp.h"

#define PSN_MAX 0xffffffu
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_OPTIONAL_RANGE)
#define PLACE (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define LATER                                                            \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | \
	 IBV_QP_PATH_MIG_STATE)

static const struct {
	enum ibv_qp_state from, to;
	int must;
	int may;
} changes[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, PLACE, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, PLACE},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 LATER},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, LATER},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, LATER},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		 IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
};

static bool masks_fit(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask == 0;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].from == from && changes[i].to == to)
			return (mask & changes[i].must) == changes[i].must &&
			       (mask & ~(changes[i].must | changes[i].may)) == 0;
	return false;
}

static int path_check(const struct emu_dev *dev, const struct ibv_ah_attr *ah)
{
	if (ah->port_num != dev->set->port)
		return EINVAL;
	if (ah->is_global)
		return emu_dev_route(dev, ah->grh.sgid_index, &ah->grh.dgid);
	/* There are no LIDs on Ethernet. */
	return dev->set->link == EMU_INFINIBAND && ah->dlid != 0 ? 0 : EINVAL;
}

static bool values_fit(const struct emu_dev *dev, const struct ibv_qp_attr *a, int mask)
{
	uint64_t reads = dev->set->max_rd_atomic;

	return !((mask & IBV_QP_PORT &&
		  (a->port_num == 0 || a->port_num > dev->set->ports)) ||
		 (mask & IBV_QP_PKEY_INDEX && !emu_dev_pkey(dev, a->pkey_index)) ||
		 (mask & IBV_QP_ACCESS_FLAGS && a->qp_access_flags & ~(unsigned)ACCESS) ||
		 (mask & IBV_QP_PATH_MTU &&
		  (a->path_mtu < IBV_MTU_256 || a->path_mtu > emu_dev_mtu(dev))) ||
		 (mask & IBV_QP_DEST_QPN && a->dest_qp_num > PSN_MAX) ||
		 (mask & IBV_QP_RQ_PSN && a->rq_psn > PSN_MAX) ||
		 (mask & IBV_QP_SQ_PSN && a->sq_psn > PSN_MAX) ||
		 (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > reads) ||
		 (mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > reads) ||
		 (mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
		 (mask & IBV_QP_TIMEOUT && a->timeout > 31) ||
		 (mask & IBV_QP_RETRY_CNT && a->retry_cnt > 7) ||
		 (mask & IBV_QP_RNR_RETRY && a->rnr_retry > 7));
}

int emu_state_check(struct emu_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = emu_qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (!masks_fit(from, to, mask) || !values_fit(qp->dev, attr, mask))
		return EINVAL;
	return mask & IBV_QP_AV ? path_check(qp->dev, &attr->ah_attr) : 0;
}

void emu_state_keep(struct emu_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *k = &qp->attr;

	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		k->en_sqd_async_notify = a->en_sqd_async_notify;
	if (mask & IBV_QP_ACCESS_FLAGS)
		k->qp_access_flags = a->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		k->pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT)
		k->port_num = a->port_num;
	if (mask & IBV_QP_AV)
		k->ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		k->path_mtu = a->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		k->dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		k->rq_psn = a->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		k->sq_psn = a->sq_psn;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		k->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		k->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		k->min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		k->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		k->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		k->rnr_retry = a->rnr_retry;
}
