/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, and their channels. */
#include "config.h"

#include "fabtests/emuverbs/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/host.h"
#include "fabtests/emuverbs/qp.h"

EMU_API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct emu_channel *ch = calloc(1, sizeof(*ch));

	if (!ch || !emu_queue_open(&ch->queue)) {
		free(ch);
		return NULL;
	}
	ch->ibv.context = context;
	ch->ibv.fd = ch->queue.fd;
	emu_lock();
	emu_context_of(context)->objects++;
	emu_unlock();
	return &ch->ibv;
}

EMU_API int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct emu_channel *ch = container_of(ibv, struct emu_channel, ibv);
	int rc = 0;

	emu_lock();
	if (ibv->refcnt > 0) {
		rc = EBUSY;
	} else {
		emu_queue_close(&ch->queue);
		emu_context_of(ibv->context)->objects--;
	}
	emu_unlock();
	if (rc == 0)
		free(ch);
	return rc;
}

static bool cq_fits(struct emu_dev *dev, int cqe, int vector,
		    const struct ibv_context *context)
{
	return cqe > 0 && (uint64_t)cqe <= dev->set->max_cqe && vector >= 0 &&
	       vector < context->num_comp_vectors;
}

EMU_API struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				     void *cq_context, struct ibv_comp_channel *channel,
				     int comp_vector)
{
	struct emu_dev *dev = emu_context_of(context)->dev;
	struct emu_cq *cq;
	int rc = 0;

	if (!cq_fits(dev, cqe, comp_vector, context)) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (cq)
		cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
	if (!cq || !cq->ring) {
		free(cq);
		return NULL;
	}
	cq->size = (unsigned)cqe;
	cq->dev = dev;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = cqe;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	emu_lock();
	if (dev->cqs >= dev->set->max_cq) {
		rc = ENOMEM;
	} else {
		dev->cqs++;
		emu_context_of(context)->objects++;
		if (channel)
			channel->refcnt++;
	}
	emu_unlock();
	if (rc == 0)
		return &cq->ibv;
	free(cq->ring);
	free(cq);
	errno = rc;
	return NULL;
}

EMU_API int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	(void)cq, (void)cqe;
	return EOPNOTSUPP;
}

EMU_API int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct emu_cq *cq = emu_cq_of(ibv);
	struct emu_channel *ch;

	emu_lock();
	if (cq->users > 0) {
		emu_unlock();
		return EBUSY;
	}
	if (ibv->channel) {
		ch = container_of(ibv->channel, struct emu_channel, ibv);
		emu_queue_drop(&ch->queue, ibv);
	}
	emu_queue_drop(&emu_context_of(ibv->context)->async, ibv);
	/* As the real library does: who took an event must say so. */
	while (ibv->comp_events_completed != cq->comp_events ||
	       ibv->async_events_completed != cq->async_events)
		emu_wait();
	if (ibv->channel)
		ibv->channel->refcnt--;
	cq->dev->cqs--;
	emu_context_of(ibv->context)->objects--;
	emu_unlock();
	free(cq->ring);
	free(cq);
	return 0;
}

static void cq_announce(struct emu_cq *cq)
{
	struct emu_event e = {.cq = &cq->ibv};

	cq->armed = false;
	if (cq->ibv.channel)
		emu_queue_put(
			&container_of(cq->ibv.channel, struct emu_channel, ibv)->queue,
			&e);
}

void emu_cq_push(struct ibv_cq *ibv, const struct emu_cqe *e, bool solicited)
{
	struct emu_cq *cq = emu_cq_of(ibv);
	unsigned count = atomic_load_explicit(&cq->count, memory_order_relaxed);

	if (cq->overrun)
		return;
	if (count == cq->size) {
		cq->overrun = true;
		emu_event_cq(cq);
		emu_qp_overrun(cq);
		return;
	}
	cq->ring[(cq->head + count) % cq->size] = *e;
	atomic_store_explicit(&cq->count, count + 1, memory_order_release);
	emu_host_busy();
	if (cq->armed &&
	    (!cq->solicited_only || solicited || e->wc.status != IBV_WC_SUCCESS))
		cq_announce(cq);
}

/* Places of queues become free when the completion that says so was seen. */
static void cqe_gone(const struct emu_cqe *e)
{
	e->qp->req.used -= e->sq_places;
	if (e->rq)
		e->rq->used--;
}

void emu_cq_discard(struct ibv_cq *ibv, struct emu_qp *qp)
{
	struct emu_cq *cq = emu_cq_of(ibv);
	unsigned count = atomic_load_explicit(&cq->count, memory_order_relaxed);
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++) {
		struct emu_cqe *e = &cq->ring[(cq->head + i) % cq->size];

		if (e->qp == qp)
			cqe_gone(e);
		else
			cq->ring[(cq->head + kept++) % cq->size] = *e;
	}
	atomic_store_explicit(&cq->count, kept, memory_order_release);
}

int emu_cq_poll(struct ibv_cq *ibv, int entries, struct ibv_wc *wc)
{
	struct emu_cq *cq = emu_cq_of(ibv);
	unsigned count;
	int n = 0;

	if (atomic_load_explicit(&cq->count, memory_order_relaxed) == 0) {
		emu_host_idle();
		if (atomic_load_explicit(&cq->count, memory_order_relaxed) == 0)
			return 0;
	}
	emu_lock();
	count = atomic_load_explicit(&cq->count, memory_order_relaxed);
	while (n < entries && count > 0) {
		const struct emu_cqe *e = &cq->ring[cq->head];

		wc[n++] = e->wc;
		cqe_gone(e);
		cq->head = (cq->head + 1) % cq->size;
		count--;
	}
	atomic_store_explicit(&cq->count, count, memory_order_release);
	emu_unlock();
	return n;
}

/* An event is for what comes from now on. */
int emu_cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	struct emu_cq *cq = emu_cq_of(ibv);

	emu_lock();
	/* Any completion is more than a solicited one. */
	cq->solicited_only = solicited_only && (!cq->armed || cq->solicited_only);
	cq->armed = true;
	emu_unlock();
	return 0;
}

EMU_API int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			     void **cq_context)
{
	struct emu_event e;

	if (!emu_queue_take(&container_of(channel, struct emu_channel, ibv)->queue, &e))
		return -1;
	emu_cq_of(e.cq)->comp_events++;
	*cq = e.cq;
	*cq_context = e.cq->cq_context;
	emu_unlock();
	return 0;
}

EMU_API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	emu_lock();
	cq->comp_events_completed += nevents;
	emu_changed();
	emu_unlock();
}
