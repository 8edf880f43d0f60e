/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint of the verbs wire: its door, completion queues, queue pairs and links.
 *
 * Lock order: the caller's endpoint lock, then ep->mutex, then the domain's
 * (verbs_mem.h). The helper thread takes ep->mutex only; it answers doors, makes queue
 * pairs and links, and leaves news of them for progress. It never calls upwards.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_EP_H
#define WEFT_WIRE_VERBS_VERBS_EP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/msg.h"
#include "prov/wire/verbs/verbs_auth.h"
#include "prov/wire/verbs/verbs_bufs.h"
#include "prov/wire/verbs/verbs_door.h"
#include "prov/wire/verbs/verbs_helper.h"
#include "prov/wire/verbs/verbs_mem.h"
#include "prov/wire/verbs/verbs_port.h"
#include "prov/wire/verbs/verbs_qp.h"
#include "prov/wire/verbs/verbs_srq.h"
#include "prov/wire/wire.h"
#include "util/list.h"

#define VERBS_POST_BATCH 16u /* requests that are chained, of one lane */
#define VERBS_SGE	 4u
#define VERBS_POLL	 16u /* completions that are taken at a time */

/* A rail as one endpoint uses it. */
struct verbs_ep_rail {
	struct ibv_comp_channel *channel;
	struct verbs_cq *cq[VERBS_CQS_MAX]; /* mutex; the first `cqs` also without */
	_Atomic(uint32_t) cqs;
	struct verbs_srq *srq[VERBS_SRQS_MAX]; /* mutex */
	uint32_t srqs;			       /* mutex */
	bool no_srq; /* mutex; the device gave no more, or there are none */
	/* Queue pairs with a shared queue, by number; written under the mutex. */
	_Atomic(_Atomic(struct verbs_qp *) *) *numbered;
	bool was_up;	/* as the links were told */
	uint32_t moves; /* likewise, and as the card says */
	/* Endpoint lock: */
	uint64_t downs; /* how often it went, or moved, */
	uint64_t ups;	/* and came */
};

/* What a link has done. */
struct verbs_link_counts {
	uint64_t packets;
	uint64_t replays;    /* packets sent again */
	uint64_t duplicates; /* packets that came twice, dropped */
	uint64_t segments;
	uint64_t again;	 /* segments moved to another queue pair, puts written again */
	uint64_t opened; /* lanes */
	uint64_t retired;
	uint64_t rebuilt;
	uint64_t silent;  /* queue pairs on which nothing was answered */
	uint64_t resumes; /* control channels made anew */
	uint64_t stops;	  /* lanes that the peer stopped before it reported them */
	uint64_t spares;  /* lanes that were made at its door */
	uint64_t waits;	  /* packets that there was no room for */
	uint64_t flushes; /* rounds of reads behind writes, and reads that went with them
			   */
	uint64_t bytes[DQPLB_RAILS_MAX];
};

struct verbs_ep {
	struct wire_ep_base base; /* first */
	const struct wire_events *events;
	void *arg;
	uint64_t incarnation;
	int pid; /* whose endpoint it is: not a forked child's */
	struct verbs_dom *dom;
	const struct verbs_lib *lib;
	/* What is the same for all links. Read with the endpoint's lock or the mutex
	 * held; a rail that moves is written with both. */
	struct verbs_card card;
	uint32_t lane_sends; /* requests that fit a lane's send queue */

	/* Endpoint lock. */
	struct list dirty;	     /* links that have something to do after polling */
	struct verbs_op *ops_free;   /* by verbs_op.next */
	struct ibv_send_wr quick_wr; /* verbs_quick.h */
	struct ibv_sge quick_sge;
	struct list ops_blocks;
	uint32_t ops_count;
	struct list closing; /* links that were given up and say so to their peers */
	struct list graves;  /* links to be freed */
	struct list timed;   /* links that wait for a time */
	uint32_t turns;	     /* of progress */
	struct verbs_link_counts gone; /* of links that are (verbs_count.h) */
	/* The only completion queue there is; NULL: there is none, or more. Mutex; read
	 * without. */
	_Atomic(struct ibv_cq *) only;
	uint64_t async_due; /* asynchronous events are read */
	uint64_t watch_due; /* what waits for a word that never comes is looked for */
	uint32_t watches;   /* how often it was */
	struct verbs_bufs sends;
	_Atomic(bool) armed;
	int epoll;
	uint32_t stashed; /* completions that arming found: progress takes them */
	uint32_t stash_rail;
	struct ibv_wc stash[VERBS_POLL];
	struct dqplb_msg heard; /* what a link hears just now, */
	struct dqplb_msg said;	/* and says, perhaps meanwhile */

	pthread_mutex_t mutex;
	struct verbs_auth *auth;
	struct verbs_door *door;
	struct verbs_helper *helper;
	struct verbs_reaper *reaper; /* mutex; NULL: none was needed yet */
	struct list links;	     /* mutex */
	struct list news;	     /* mutex: links that progress must hear about */
	struct list left;	     /* mutex: links that the helper thread gave up */
	uint32_t left_count;	     /* mutex */
	struct verbs_bufs receives;  /* mutex */
	uint32_t srq_extra;	     /* mutex: receives that busy links have */
	struct list retired;	     /* mutex: queue pairs */
	_Atomic(bool) has_retired;
	_Atomic(bool) has_news;
	_Atomic(bool) stirred; /* with has_news: devices have events, or ports turned */
	int wake;	       /* eventfd: there are news */
	struct verbs_ports ports;
	/* Mutex; read without by who has a completion of theirs. */
	_Atomic(struct verbs_qp *) *slots[VERBS_QP_SLOTS / VERBS_QP_CHUNK];
	uint32_t slots_made;
	uint32_t slot_hint;
	uint16_t gens;

	struct verbs_ep_rail rail[DQPLB_RAILS_MAX];
};

static inline struct verbs_ep *verbs_ep_of(struct wire_ep *ep)
{
	return (struct verbs_ep *)(void *)ep;
}

static inline _Atomic(struct verbs_qp *) *verbs_slot_at(const struct verbs_ep *ep,
							uint32_t slot)
{
	return &ep->slots[slot / VERBS_QP_CHUNK][slot % VERBS_QP_CHUNK];
}

/* The queue pair of a completion; NULL: it is gone. */
static inline struct verbs_qp *verbs_qp_of(const struct verbs_ep *ep, uint64_t wr_id)
{
	struct verbs_qp *qp = atomic_load_explicit(
		verbs_slot_at(ep, wr_id >> 32 & 0xffff), memory_order_acquire);

	return qp && qp->gen == wr_id >> 48 ? qp : NULL;
}

/* The same by its number, for receives of a shared queue. */
static inline struct verbs_qp *verbs_qp_numbered(const struct verbs_ep *ep, uint32_t rail,
						 uint32_t number)
{
	_Atomic(struct verbs_qp *) *chunk = atomic_load_explicit(
		&ep->rail[rail].numbered[number / VERBS_QPN_CHUNK % VERBS_QPN_CHUNKS],
		memory_order_acquire);

	return chunk ? atomic_load_explicit(&chunk[number % VERBS_QPN_CHUNK],
					    memory_order_acquire)
		     : NULL;
}

uint64_t verbs_now(void);

int verbs_ep_open(const struct wire_ep_attr *attr, struct wire_ep **ep);
void verbs_ep_close(struct wire_ep *ep);
int verbs_progress(struct wire_ep *ep, int budget);
int verbs_arm(struct wire_ep *ep);
int verbs_fd(struct wire_ep *ep);
uint64_t verbs_look_due(struct wire_ep *ep);

/* There is something for progress, which was written before. */
void verbs_ep_ring(struct verbs_ep *ep);
/* News of a link. Mutex held. */
void verbs_ep_news(struct verbs_ep *ep, struct verbs_link *link);

#endif
