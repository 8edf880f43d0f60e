/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives of one receive queue, to be granted to peers (rule A7): a queue may feed one
 * lane, the lanes of a rail, or lanes of many links. Whoever posts receives says so here;
 * links take from what is free and no sender uses more than its link took, so the grants
 * of all peers together never exceed the receives that are posted.
 */
#ifndef WEFT_DQPLB_RQ_H
#define WEFT_DQPLB_RQ_H

#include <stdint.h>

struct dqplb_rq {
	uint32_t free; /* posted, and granted to nobody */
};

/* That many more receives are posted; also after each immediate, once its receive was
 * posted again. */
static inline void dqplb_rq_posted(struct dqplb_rq *rq, uint32_t count)
{
	rq->free += count;
}

/* Up to `want`; returns how many. */
static inline uint32_t dqplb_rq_take(struct dqplb_rq *rq, uint32_t want)
{
	uint32_t got = want < rq->free ? want : rq->free;

	rq->free -= got;
	return got;
}

#endif
