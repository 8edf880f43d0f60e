/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of an endpoint, and the completion queues behind them. A completion's wr_id
 * names the queue pair by slot and generation, so that one which comes late for a queue
 * pair that is gone is known for what it is (rule C1), and the place in its send queue.
 *
 * A send queue completes in order, so one signalled request answers for those before it;
 * the last of what is posted at a time is always signalled, so a queue pair that is in
 * error has ended when each request was answered for (rule C2).
 *
 * One that takes from a shared receive queue has its last receive when the device says
 * so, by an event. Until then a receive may be on its way to be completed, and would be
 * lost to all others with the queue pair: closed by its owner, it stays as retired.
 *
 * Made and closed with the endpoint's mutex held (the helper thread makes some); posted
 * on and polled with the endpoint's lock held. Whoever polls holds on to a queue pair and
 * its link without the mutex: so both are freed with the endpoint's lock held only, and
 * the helper thread, which has it not, leaves what it gives up to progress.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_QP_H
#define WEFT_WIRE_VERBS_VERBS_QP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_dev.h"
#include "util/list.h"

struct verbs_buf;
struct verbs_ep;
struct verbs_link;
struct verbs_srq;

#define VERBS_CQ_SIZE	 4096u /* entries; more where one queue pair needs more */
#define VERBS_CQS_MAX	 1024u /* of a rail */
#define VERBS_QP_SLOTS	 65536u
#define VERBS_QP_CHUNK	 256u /* slots that are made at a time */
#define VERBS_INLINE_MAX 128u
#define VERBS_QPN_CHUNK	 256u
#define VERBS_QPN_CHUNKS (1u << 16)

struct verbs_cq {
	struct ibv_cq *ib;
	uint32_t size;
	uint32_t used; /* sum of the queues that complete here */
};

enum verbs_qp_state {
	VERBS_QP_NEW,	/* can receive nothing yet */
	VERBS_QP_READY, /* can send and receive */
	VERBS_QP_ERROR, /* completions are being flushed */
	VERBS_QP_STATES
};

struct verbs_qp {
	struct ibv_qp *ib;
	_Atomic(struct verbs_link *) link; /* NULL: retired */
	struct verbs_cq *cq;
	struct verbs_srq *srq;	   /* NULL: receives of its own */
	struct verbs_buf *scratch; /* control: what reads bring, acknowledgements */
	struct verbs_buf *results; /* likewise: of native atomics; NULL: there are none */
	struct verbs_buf *own;	   /* control, of its own receives */
	struct list where;	   /* ep->retired */
	uint64_t due;		   /* retired: destroyed at the latest */
	bool connected;		   /* the peer may have sent */
	bool lost;		   /* its path failed, and may still have packets of it */
	_Atomic(bool) last;	   /* the device says that all its receives are out */
	uint32_t receives_extra;   /* of a busy link's */
	enum verbs_qp_state state;
	uint64_t name; /* the part of wr_id that is its own */
	uint16_t slot;
	uint16_t gen;
	uint16_t lane;	   /* or VERBS_LANE_CONTROL */
	uint8_t rail;	   /* of this side */
	uint8_t peer_rail; /* of the peer's card */
	bool passed;	   /* something got through */
	bool spoilt;	   /* a lane's: it ended before its link was up */
	uint32_t inline_max;
	uint32_t incarnation; /* of the lane */
	uint32_t psn;
	uint32_t sq_depth;
	uint32_t sq_mask;      /* of positions: power of two - 1 */
	uint32_t sq_head;      /* next position */
	uint32_t sq_tail;      /* first that wasn't answered for */
	uint32_t receives;     /* that are posted */
	uint32_t receives_max; /* or what it holds of the shared queue */
	uint32_t watch_tail;   /* sq_tail at the last look (verbs_watch.h) */
	uint32_t silent;       /* looks since it moved, with something waiting */
	uint64_t requests;     /* a lane's, that dqplb gave it, */
	uint64_t bytes;	       /* and theirs */
	uint64_t cookie[];     /* of each position */
};

#define VERBS_WR_RECV	UINT64_C(0x80000000)
#define VERBS_WR_SHARED UINT64_C(0x40000000) /* bits 32 to 63: the buffer's index */
#define VERBS_WR_INDEX	UINT64_C(0x3fffffff) /* of a buffer, where it isn't shared */

static inline uint64_t verbs_wr_id(const struct verbs_qp *qp, uint32_t at)
{
	return qp->name | at;
}

static inline uint32_t verbs_qp_sq_room(const struct verbs_qp *qp)
{
	return qp->sq_depth - (qp->sq_head - qp->sq_tail);
}

/* Everything that was posted was answered for. */
static inline bool verbs_qp_is_quiet(const struct verbs_qp *qp)
{
	return qp->sq_head == qp->sq_tail && qp->receives == 0;
}

struct verbs_qp_attr {
	uint32_t rail;
	uint32_t sends;
	uint32_t receives;
	uint32_t sge;
	uint16_t lane;
	uint32_t incarnation;
	bool ooo;
	struct verbs_srq *srq; /* `receives` of it are the queue pair's */
};

/* In INIT: receives can be posted (rule C8). -FI_ENOMEM: the device has no more. Mutex.
 */
int verbs_qp_open(struct verbs_ep *ep, struct verbs_link *link,
		  const struct verbs_qp_attr *attr, struct verbs_qp **qp);
/* From the return on nothing of it reads or writes memory, but for a control channel's
 * buffers. Mutex. */
void verbs_qp_close(struct verbs_ep *ep, struct verbs_qp *qp);
/* It never had anything that could be completed, so nobody who polls knows it. */
bool verbs_qp_unheard(const struct verbs_qp *qp);
/* The same without the endpoint's lock: progress destroys it. Of queue pairs that no
 * memory of the application's was posted on. Mutex. */
void verbs_qp_leave(struct verbs_ep *ep, struct verbs_qp *qp);
/* Destroys one that was retired; one that is lost a little later (verbs_reaper.h). Mutex.
 */
void verbs_qp_destroy(struct verbs_ep *ep, struct verbs_qp *qp);
/* Of that the call into the driver, which may take long, with no lock held; and the rest.
 * Mutex. */
void verbs_qp_end(const struct verbs_ep *ep, const struct verbs_qp *qp);
void verbs_qp_free(struct verbs_ep *ep, struct verbs_qp *qp);

/* Bytes that a write of any of the endpoint's queue pairs can carry itself. */
uint32_t verbs_qp_inlined(const struct verbs_ep *ep);
/* To RTR and RTS: the peer's queue pair and the rail of its card. -FI_EIO; -FI_EAGAIN: it
 * would take long just now. */
int verbs_qp_connect(struct verbs_ep *ep, struct verbs_qp *qp,
		     const struct verbs_card *card, uint32_t peer_rail, uint32_t qpn,
		     uint32_t psn, uint8_t traffic_class);
/* To the error state; harmless twice. */
void verbs_qp_error(struct verbs_ep *ep, struct verbs_qp *qp);
/* Likewise, by who hasn't the endpoint's lock: from the return on nothing that the peer
 * sent on it is written, and who has the lock hears of it by its completions. False: not
 * so. Mutex.
 */
bool verbs_qp_stop(struct verbs_ep *ep, struct verbs_qp *qp);
/* So many receives without memory. 0, or -FI_EIO. */
int verbs_qp_receive(struct verbs_qp *qp, uint32_t count);

void verbs_numbers_close(struct verbs_ep *ep);

/* A completion queue with room for so many; taken until verbs_cq_put. NULL: there is
 * none. Mutex. */
struct verbs_cq *verbs_cq_get(struct verbs_ep *ep, uint32_t rail, uint32_t need);
void verbs_cq_put(struct verbs_cq *cq, uint32_t need);

/* All completion queues ask for an event; they are polled behind that. */
void verbs_cqs_notify(struct verbs_ep *ep);
/* Completion queues of an endpoint that has no queue pairs any more. */
void verbs_cqs_close(struct verbs_ep *ep);

#endif
