/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: receives with a buffer each, for control channels of many links.
 * What peers may send is never more than what is posted (rule A7): a queue pair holds as
 * many receives as its peer may use, few to begin with and more where much arrives
 * (verbs_chan.c). Each queue completes on one completion queue that has a place for each
 * of its receives. Where a device has no such queues, or no more, a queue pair has
 * receives of its own.
 *
 * Mutex, but for verbs_srq_post.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_SRQ_H
#define WEFT_WIRE_VERBS_VERBS_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "prov/wire/verbs/verbs_bufs.h"
#include "prov/wire/verbs/verbs_qp.h"

struct verbs_cq;
struct verbs_ep;

#define VERBS_SRQ_SIZE	1024u /* receives of a queue, at most */
#define VERBS_SRQS_MAX	256u  /* of a rail */
#define VERBS_SRQ_EXTRA 2048u /* receives of an endpoint beyond what each link has */

/* Receives that are posted together: so many more are there than queue pairs hold. */
#define VERBS_SRQ_BATCH 8u

struct verbs_srq {
	struct ibv_srq *ib;
	struct verbs_cq *cq;
	uint32_t rail;
	uint32_t size;
	uint32_t posted; /* or polled, and about to be posted again */
	uint32_t held;	 /* of them, by queue pairs */
	/* Endpoint lock: chained, not posted yet. */
	uint32_t waiting;
	struct ibv_recv_wr wr[VERBS_SRQ_BATCH];
	struct ibv_sge sge[VERBS_SRQ_BATCH];
};

/* A queue with `need` receives that are nobody's yet; they are the caller's now, `extra`
 * of them as by verbs_srq_more. NULL: there is none. */
struct verbs_srq *verbs_srq_get(struct verbs_ep *ep, uint32_t rail, uint32_t need,
				uint32_t extra);
/* So many more, out of what is there for busy links; the more are taken, the less one
 * gets. */
bool verbs_srq_more(struct verbs_ep *ep, struct verbs_srq *srq, uint32_t more);
/* Gives them back: `extra` of them came from verbs_srq_more. */
void verbs_srq_put(struct verbs_ep *ep, struct verbs_srq *srq, uint32_t count,
		   uint32_t extra);
/* What waits is posted. Endpoint lock. 0 or -FI_EIO. */
int verbs_srq_flush(struct verbs_srq *srq);

/* A request, but for its place's length and its neighbour. */
static inline void verbs_srq_request(const struct verbs_srq *srq, struct ibv_recv_wr *wr,
				     const struct verbs_buf *buf)
{
	wr->wr_id = VERBS_WR_RECV | VERBS_WR_SHARED | (uint64_t)buf->index << 32;
	wr->sg_list->addr = (uintptr_t)buf->bytes;
	wr->sg_list->lkey = buf->lkey[srq->rail];
}

/* A buffer that was received into: posted at once, or with those after it. Endpoint lock.
 * 0 or -FI_EIO. */
static inline int verbs_srq_post(struct verbs_srq *srq, const struct verbs_buf *buf)
{
	verbs_srq_request(srq, &srq->wr[srq->waiting++], buf);
	return srq->waiting < VERBS_SRQ_BATCH ? 0 : verbs_srq_flush(srq);
}

/* All of an endpoint without queue pairs. */
void verbs_srqs_close(struct verbs_ep *ep);

#endif
