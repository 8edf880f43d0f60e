/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. Rules A7, C8. */
#include "config.h"

#include "prov/wire/verbs/verbs_srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_ep.h"

int verbs_srq_flush(struct verbs_srq *srq)
{
	struct ibv_recv_wr *bad;

	srq->waiting = 0;
	return ibv_post_srq_recv(srq->ib, srq->wr, &bad) ? -FI_EIO : 0;
}

static int post_one(struct verbs_srq *srq, const struct verbs_buf *buf)
{
	struct ibv_sge sge = {.length = VERBS_BUF_SIZE};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	verbs_srq_request(srq, &wr, buf);
	return ibv_post_srq_recv(srq->ib, &wr, &bad) ? -FI_EIO : 0;
}

/* So many of its receives are there and nobody's, as far as there is room and memory;
 * those that wait to be posted don't count. */
static bool provide(struct verbs_ep *ep, struct verbs_srq *srq, uint32_t need)
{
	if (srq->size < srq->held + need + VERBS_SRQ_BATCH)
		return false;
	while (srq->posted < srq->held + need + VERBS_SRQ_BATCH) {
		struct verbs_buf *buf = verbs_buf_get(&ep->receives);

		if (!buf)
			return false;
		if (post_one(srq, buf)) {
			verbs_buf_put(&ep->receives, buf);
			return false;
		}
		srq->posted++;
	}
	srq->held += need;
	return true;
}

static uint32_t size_of(const struct verbs_limits *limits)
{
	uint32_t size = VERBS_SRQ_SIZE;

	if (size > limits->srq_wr)
		size = limits->srq_wr;
	return size < limits->cqe ? size : limits->cqe;
}

static struct verbs_srq *open_one(struct verbs_ep *ep, uint32_t rail, uint32_t size)
{
	const struct verbs_rail *r = &ep->dom->dev->rail[rail];
	struct ibv_srq_init_attr init = {.attr = {.max_wr = size, .max_sge = 1}};
	struct verbs_ep_rail *er = &ep->rail[rail];
	struct verbs_srq *srq = calloc(1, sizeof(*srq));

	if (!srq)
		return NULL;
	srq->rail = rail;
	srq->size = size;
	for (uint32_t i = 0; i < VERBS_SRQ_BATCH; i++) {
		srq->sge[i].length = VERBS_BUF_SIZE;
		srq->wr[i] = (struct ibv_recv_wr){
			.next = i + 1 < VERBS_SRQ_BATCH ? &srq->wr[i + 1] : NULL,
			.sg_list = &srq->sge[i],
			.num_sge = 1};
	}
	srq->cq = verbs_cq_get(ep, rail, size);
	if (srq->cq) {
		srq->ib = ep->lib->create_srq(r->pd, &init);
		if (!srq->ib)
			verbs_cq_put(srq->cq, size);
	}
	if (!srq->ib) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"%s: no shared receive queue of %u, the %uth: %s; links have "
			"receives of their own\n",
			r->name, size, er->srqs + 1, strerror(errno));
		free(srq);
		/* Not asked again and again. */
		er->no_srq = true;
		return NULL;
	}
	er->srq[er->srqs++] = srq;
	return srq;
}

static struct verbs_srq *find(struct verbs_ep *ep, uint32_t rail, uint32_t need)
{
	const struct verbs_limits *limits = &ep->dom->dev->rail[rail].limits;
	struct verbs_ep_rail *er = &ep->rail[rail];
	uint32_t size = size_of(limits);
	struct verbs_srq *srq;

	for (uint32_t i = 0; i < er->srqs; i++)
		if (provide(ep, er->srq[i], need))
			return er->srq[i];
	if (er->no_srq || size < need + VERBS_SRQ_BATCH || er->srqs >= limits->srqs ||
	    er->srqs == VERBS_SRQS_MAX)
		return NULL;
	srq = open_one(ep, rail, size);
	return srq && provide(ep, srq, need) ? srq : NULL;
}

struct verbs_srq *verbs_srq_get(struct verbs_ep *ep, uint32_t rail, uint32_t need,
				uint32_t extra)
{
	struct verbs_srq *srq = find(ep, rail, need);

	if (srq)
		ep->srq_extra += extra;
	return srq;
}

bool verbs_srq_more(struct verbs_ep *ep, struct verbs_srq *srq, uint32_t more)
{
	if (ep->srq_extra >= VERBS_SRQ_EXTRA ||
	    more > (VERBS_SRQ_EXTRA - ep->srq_extra) / 8 || !provide(ep, srq, more))
		return false;
	ep->srq_extra += more;
	return true;
}

void verbs_srq_put(struct verbs_ep *ep, struct verbs_srq *srq, uint32_t count,
		   uint32_t extra)
{
	srq->held -= count;
	ep->srq_extra -= extra;
}

void verbs_srqs_close(struct verbs_ep *ep)
{
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		struct verbs_ep_rail *er = &ep->rail[r];

		for (uint32_t i = 0; i < er->srqs; i++) {
			int err = ep->lib->destroy_srq(er->srq[i]->ib);

			if (err)
				FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
					"%s: destroying a shared receive queue: %s\n",
					ep->dom->dev->rail[r].name, strerror(err));
			free(er->srq[i]);
		}
		er->srqs = 0;
	}
}
