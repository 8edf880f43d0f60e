/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/post.h"

EMU_API struct ibv_srq *ibv_create_srq(struct ibv_pd *ibv, struct ibv_srq_init_attr *init)
{
	struct emu_pd *pd = emu_pd_of(ibv);
	const struct emu_device *set = pd->dev->set;
	struct emu_srq *srq;
	bool good;

	if (init->attr.max_wr == 0 || init->attr.max_wr > set->max_srq_wr ||
	    init->attr.max_sge > set->max_sge) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	good = emu_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge);
	srq->pd = pd;
	srq->ibv.context = ibv->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = ibv;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	emu_lock();
	good = good && pd->dev->srqs < set->max_srq;
	if (good) {
		pd->dev->srqs++;
		pd->users++;
	}
	emu_unlock();
	if (good)
		return &srq->ibv;
	emu_rq_fini(&srq->rq);
	free(srq);
	errno = ENOMEM;
	return NULL;
}

EMU_API int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct emu_srq *srq = emu_srq_of(ibv);
	int rc = 0;

	emu_lock();
	/* Its size stays what it is. */
	if (mask & IBV_SRQ_MAX_WR ||
	    (mask & IBV_SRQ_LIMIT && attr->srq_limit > srq->rq.size))
		rc = EINVAL;
	else if (mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	if (rc == 0 && srq->limit > 0 && srq->rq.posted < srq->limit) {
		srq->limit = 0;
		emu_event_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	emu_unlock();
	return rc;
}

EMU_API int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct emu_srq *srq = emu_srq_of(ibv);

	emu_lock();
	*attr = (struct ibv_srq_attr){.max_wr = srq->rq.size,
				      .max_sge = srq->rq.max_sge,
				      .srq_limit = srq->limit};
	emu_unlock();
	return 0;
}

EMU_API int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct emu_srq *srq = emu_srq_of(ibv);

	emu_lock();
	if (srq->users > 0) {
		emu_unlock();
		return EBUSY;
	}
	emu_queue_drop(&emu_context_of(ibv->context)->async, ibv);
	while (ibv->events_completed != srq->events)
		emu_wait();
	srq->pd->users--;
	srq->pd->dev->srqs--;
	emu_unlock();
	emu_rq_fini(&srq->rq);
	free(srq);
	return 0;
}
