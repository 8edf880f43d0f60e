/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the engine: the endpoint and what it keeps for each peer. Only prov/proto
 * includes this, small.h among it. */
#ifndef WEFT_PROTO_EP_H
#define WEFT_PROTO_EP_H

#include "prov/mem/probe.h"
#include "prov/peer/peer.h"
#include "prov/proto/arrival.h"
#include "prov/proto/engine.h"
#include "prov/proto/match.h"
#include "prov/proto/pool.h"
#include "prov/proto/receiver.h"
#include "prov/proto/rx_op.h"
#include "prov/proto/tx_op.h"
#include "prov/proto/wire_pkt.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Why a message to a peer cannot leave at once; 0 opens the fast path. */
#define BLOCK_DOWN   1u /* no transmit link */
#define BLOCK_QUEUE  2u /* others wait in front of it */
#define BLOCK_RMA    4u /* RMA under way, and messages must stay behind it */
#define BLOCK_ATOMIC 8u /* the same of atomics that have not left */

/* Slots that all messages to one peer have out, so that they stay in the cache. */
#define BULK_WINDOW 8

/* What comes in through a peer's slots, and whether that pays: see bulk.c. */
struct bulk_in {
	uint32_t watched; /* arrivals that may be pulled when nothing comes */
	bool seen;	  /* something came since the last look */
	bool owes_taken;  /* some arrival does */
	uint64_t since; /* when the first look found nothing, 0: the last found something
			 */
	uint32_t skip;	/* messages to pull before slots are tried again */
	uint32_t penalty; /* how many the next disappointment costs */
};

/* Accesses that the peer's counters want to hear of, and that found no room yet. They are
 * added up, so that a peer that makes no call holds nobody up. */
#define COUNT_ROWS 32

struct count_row {
	uint64_t key;
	uint32_t count;
	uint8_t flags; /* PKT_COUNT_* */
};

struct counts {
	uint32_t rows;
	struct count_row row[COUNT_ROWS];
};

/* One per peer. Hot fields of both directions first. */
struct proto_peer {
	struct peer peer; /* first: peer.h */
	/* Of the transmit link; wire_slot_none while anything is in the way. */
	const struct wire_slot *slot;
	uint32_t blocked;      /* BLOCK_* */
	uint32_t consumed;     /* eager cost to give back to the peer */
	int64_t credit;	       /* eager cost that we may still send */
	size_t eager_max;      /* payload bytes; 0 while down */
	size_t small_max;      /* of those that small.h sends */
	size_t soon_max;       /* bytes that proto_soon_put takes; 0: none */
	uint64_t source;       /* what is told of its messages: by proto_peer_index_set */
	struct sender *sender; /* whom matching takes it for (holds a reference) */
	/* Itself, or, when it was dialled by another name of its host, the peer of the
	 * name that its door has (holds a reference). */
	struct proto_peer *ident;
	struct proto_peer *alias; /* the last one whose ident this is, or NULL */
	uint32_t window;	  /* eager cost granted to the peer in all */
	uint32_t return_at;	  /* consumed cost that is worth a credit packet */
	uint32_t stored;	  /* eager cost that waits unexpected, this epoch */
	uint32_t late;	   /* the same of what came on links of epochs that had ended */
	uint32_t refs;	   /* receives and arrivals that point here, and mappings */
	uint32_t arrivals; /* that point here */
	bool credit_owed;  /* a credit packet found no room */
	uint64_t rma_posted;
	uint64_t rma_done; /* a prefix: RMA retires in order */
	/* Atomics end in order as well: these, and atomics_sent, count a prefix. */
	uint64_t atomics_posted;
	uint64_t atomics_done;
	struct list msgs;	/* struct tx: not sent yet, in order */
	struct list waiting;	/* struct tx: for ACK, CTS or FIN */
	struct list streams;	/* struct tx: sending DATA */
	struct list bulks;	/* struct tx: sending through slots */
	struct list helps;	/* struct tx: pushing pieces that the receiver wants */
	struct list rma;	/* struct tx: in order */
	struct list pulls;	/* struct arrival */
	struct list streams_in; /* struct arrival */
	struct list owed;	/* struct arrival: a control packet found no room */
	struct list announced;	/* struct arrival: unexpected RTS */
	struct list active;	/* proto_ep.active: has something to do */
	struct list reap;	/* proto_ep.reap: perhaps of no use any more */
	uint32_t bulk_out;	/* slots that its messages have out */
	uint64_t index;		/* its lowest fi_addr_t, or FI_ADDR_NOTAVAIL */
	bool joint_broken;	/* the peer can't push */
	bool lost_memory;	/* proto_give_up */
	struct bulk_in bulk_in;
	struct counts counts;
	uint64_t atomics_sent;
	uint32_t atomics_cost; /* of requests without an answer */
	uint32_t results_kept; /* cost of results that found no room */
	struct list atomics;   /* struct tx: not sent, or not all of it, in order */
	uint64_t refused_id;   /* of its atomic operation that failed the check, or 0 */
	int refused_err;
	struct list results; /* struct arrival: results that found no room, in order */
};

struct mem_keyview;

struct proto_ep {
	const struct wire_ops *wire;
	struct wire_ep *wep;
	struct stage *stage;	   /* NULL: no memory of GPUs */
	struct mem_regcache *regs; /* NULL unless some link may need it (caps.local) */
	const struct proto_up *up;
	void *arg;
	bool closing;
	bool enabled;
	bool chores; /* active or reap isn't empty */
	bool busy;   /* work is left that needs no event to go on */
	bool order_rma;
	bool order_msg_after_rma;
	bool order_atomic;
	bool order_after_put;
	bool atomics;	      /* may be posted */
	struct receiver *rcv; /* `own`, or one that was given */
	struct pool tx;
	struct pool arrivals;
	struct tx_extra *tx_extras; /* one for each chunk of tx */
	size_t inject_size;
	size_t eager_size;
	size_t bulk_size;  /* messages from here on go through slots */
	size_t joint_size; /* messages from here on are copied by both sides */
	struct receiver own;
	struct list receives; /* receiver.engines */
	uint32_t contexts;    /* peers that are one of several contexts, so far */
	struct payload_store payloads;
	struct peer_table peers;
	struct proto_peer **map; /* by fi_addr_t */
	size_t map_len;
	struct list active;
	struct list reap;
	struct list orphan_txs;	     /* struct tx in TX_ORPHAN */
	struct list orphan_arrivals; /* struct arrival in ARRIVAL_ORPHAN */
	uint32_t joint_orphans;	     /* those that a peer may still push into */
	size_t min_multi_recv;
	size_t unexpected_max;
	size_t granted; /* sum of windows of peers that are up */
	uint32_t tx_size, rx_size;
	uint32_t tx_max, rx_max;
	uint32_t injected; /* operations whose memory is ours: nobody waits for them */
	uint64_t connect_timeout;
	uint64_t incarnation;
	uint64_t bad_packets;
	uint64_t atomic_access;	  /* what peers' atomics may do */
	struct mem_keyview *keys; /* our own table, for them; or NULL */
	struct mem_probe probe;
	struct proto_blame blame;
	const char *down_why; /* of the link that goes down just now */
};

/* Around an upcall that tells an error of an operation with that peer. */
void proto_blame_set(struct proto_ep *ep, const struct proto_peer *pp);
void proto_blame_clear(struct proto_ep *ep);

/* What is done on a link is its own wire's; an endpoint may have links of two. */
static inline const struct wire_ops *link_ops(struct wire_link *link)
{
	return wire_link_base(link)->ops;
}

static inline void *link_reserve(struct wire_link *link, size_t len, enum wire_class cls)
{
	return link_ops(link)->pkt_reserve(link, len, cls);
}

static inline void link_commit(struct wire_link *link, void *pkt, size_t len)
{
	link_ops(link)->pkt_commit(link, pkt, len);
}

static inline struct proto_peer *proto_peer_of(struct peer *p)
{
	return (struct proto_peer *)p;
}

static inline bool proto_peer_is_up(const struct proto_peer *pp)
{
	return pp->peer.state == PEER_UP;
}

/* Chunks of operations: what was asked for in one, within reason. */
#define OPS_CHUNK_MIN 6
#define OPS_CHUNK_MAX 10

static inline uint32_t ops_chunk(uint32_t size)
{
	uint32_t log2 = OPS_CHUNK_MIN;

	while (log2 < OPS_CHUNK_MAX && (1u << log2) < size) {
		log2++;
	}
	return log2;
}
_Static_assert((PROTO_OPS_MAX >> OPS_CHUNK_MIN) <= POOL_CHUNKS_MAX, "room for all");

/* The only two that change pp->blocked while the peer lives. */
static inline void proto_block(struct proto_peer *pp, uint32_t why)
{
	pp->blocked |= why;
	pp->slot = &wire_slot_none;
}

static inline void proto_unblock(struct proto_peer *pp, uint32_t why)
{
	pp->blocked &= ~why;
	if (!pp->blocked) {
		pp->slot = wire_link_base(pp->peer.link)->slot;
	}
}

/* Where it is in the address vector. */
static inline void proto_peer_index_set(const struct proto_ep *ep, struct proto_peer *pp,
					uint64_t index)
{
	pp->index = index;
	pp->source = index != UINT64_MAX && ep->up->told ? ep->up->told(ep->arg, index)
							 : index;
}

/* Progress will look at this peer. */
static inline void proto_activate(struct proto_ep *ep, struct proto_peer *pp)
{
	if (list_empty(&pp->active)) {
		list_push_back(&ep->active, &pp->active);
		ep->chores = true;
	}
}

/* Progress will look whether it is of any use. */
static inline void proto_peer_reap(struct proto_ep *ep, struct proto_peer *pp)
{
	if (list_empty(&pp->reap)) {
		list_push_back(&ep->reap, &pp->reap);
		ep->chores = true;
	}
}

static inline void proto_peer_ref(struct proto_peer *pp)
{
	pp->refs++;
}

/* The last reference makes it a candidate for removal. */
static inline void proto_peer_unref(struct proto_ep *ep, struct proto_peer *pp)
{
	if (--pp->refs == 0) {
		proto_peer_reap(ep, pp);
	}
}

/* Two names of one endpoint. */
static inline bool proto_peer_is_same(const struct proto_peer *a,
				      const struct proto_peer *b)
{
	return a->ident == b->ident;
}

/* Nothing that was posted to this peer, by either name, is without completion. */
static inline bool proto_peer_is_quiet(const struct proto_peer *pp)
{
	return list_empty(&pp->msgs) && list_empty(&pp->waiting) &&
	       list_empty(&pp->streams) && list_empty(&pp->bulks) &&
	       list_empty(&pp->helps) && list_empty(&pp->rma) &&
	       list_empty(&pp->atomics) &&
	       (pp->ident == pp || proto_peer_is_quiet(pp->ident));
}

/* A fenced operation, and with it all that its caller posts behind it, comes later. */
static inline bool proto_fence_holds(const struct proto_peer *pp, uint32_t flags)
{
	return (flags & PROTO_FENCE) && !proto_peer_is_quiet(pp);
}

/* The link broke the protocol; it is given up. */
void proto_violation(struct proto_ep *ep, struct wire_link *link);

/* Memory that is to be sent, and was promised to the peer, can't be had (mem_copy): with
 * the next pass the link is given up, so that nobody waits for it. */
void proto_give_up(struct proto_ep *ep, struct proto_peer *pp);

/* Any packet, to whom it concerns. */
void proto_packet(struct proto_ep *ep, struct wire_link *link, const void *pkt,
		  size_t len);

/* ---- eager.c: messages leave, whole messages arrive */

/* Sends what can be sent of pp->msgs. Returns how many. */
int msgs_run(struct proto_ep *ep, struct proto_peer *pp);
/* Every packet comes here first: what is frequent is done, the rest is passed on. */
void eager_packet(void *arg, struct wire_link *link, const void *pkt, size_t len);
void eager_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v);
/* An unexpected eager message got its receive. */
void eager_matched(struct proto_ep *ep, struct arrival *a, struct rx_claim *claim);
/* Nobody wants it. */
void eager_discard(struct proto_ep *ep, struct arrival *a);

/* ---- rndv.c: announced messages */

bool rts_send(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx);
void rts_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v);
/* An announced message got its receive, which is in a->claim. */
void rndv_start(struct proto_ep *ep, struct arrival *a);
/* Takes back what the message had lent to its peer. */
void rndv_unlend(struct proto_ep *ep, struct xfer *x);
/* Nobody wants it. */
void rndv_discard(struct proto_ep *ep, struct arrival *a);
void cts_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v);
void data_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		  const struct pkt_view *v);
void fin_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v);
int pulls_run(struct proto_ep *ep, struct proto_peer *pp);
/* The receive is complete, the sender must hear of it. */
void rndv_finish(struct proto_ep *ep, struct arrival *a, int err);
int streams_run(struct proto_ep *ep, struct proto_peer *pp);
/* The receive ends in error, the sender is told if it can be. */
void rndv_fail(struct proto_ep *ep, struct arrival *a, int err);

/* The next DATA packet of a stream; false: no room. */
bool stream_packet(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx);
/* After a piece: was it the last? Then FIN is awaited. */
bool stream_is_over(struct proto_peer *pp, struct tx *tx);
/* The rest of a message whose pieces don't come. */
void rndv_take_over(struct proto_ep *ep, struct arrival *a);
/* A piece is in the receiver's buffer. */
void rndv_placed(struct proto_ep *ep, struct arrival *a, size_t len);
/* ... or could not be. */
void rndv_not_placed(struct proto_ep *ep, struct arrival *a, int err);

/* ---- bulk.c: messages through slots that both sides copy at once */

/* Whether an announced message that could be pulled should come through slots. */
bool bulk_is_better(struct proto_ep *ep, struct proto_peer *pp, uint64_t len);
/* A message begins to stream. */
void bulk_open(struct proto_peer *pp, struct tx *tx, bool granted);
int bulks_run(struct proto_ep *ep, struct proto_peer *pp);
/* Gives the slots back whose bytes end at or before `offset`. */
void bulk_release(struct proto_ep *ep, struct tx *tx, uint64_t offset);
void chunk_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v);
void taken_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v);
/* Progress looks whether pieces come, and the rest is pulled when they don't. */
void bulk_watch(struct proto_ep *ep, struct arrival *a);
void bulk_unwatch(struct arrival *a);
int bulks_in_run(struct proto_ep *ep, struct proto_peer *pp);
/* TAKENs that found no room. */
int taken_run(struct proto_peer *pp);
void bulk_in_reset(struct proto_peer *pp);

/* ---- joint.c: pulled messages whose sender pushes at the same time */

/* Offers the sender of a message that is about to be pulled a part in it. False: not
 * worth it, or not possible; the receiver pulls alone. */
bool joint_offer(struct proto_ep *ep, struct arrival *a);
/* A turn of the receiver. Returns how many pieces it moved. */
int joint_pull(struct proto_ep *ep, struct arrival *a);
/* The receive can't go on. False: the sender may still be writing; joints_settle
 * completes it. */
bool joint_abandon(struct proto_ep *ep, struct arrival *a);
int joints_settle(struct proto_ep *ep);
/* The endpoint closes: all of them, which nobody hears of any more. */
void joints_abandon(struct proto_ep *ep);
void join_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		  const struct pkt_view *v);
int helps_run(struct proto_ep *ep, struct proto_peer *pp);

/* ---- rma.c */

int rma_run(struct proto_ep *ep, struct proto_peer *pp);
/* The first of them is under way, so that its own end is all that it waits for. */
static inline bool rma_next_waits(const struct proto_peer *pp)
{
	const struct tx *next = container_of(pp->rma.next, struct tx, node);

	return next->state == TX_RMA && next->x.inflight && xfer_is_issued(&next->x);
}
/* Whether a put may be under way beside what is (rule E2). */
static inline bool rma_may_join(const struct proto_ep *ep, const struct proto_peer *pp)
{
	const struct wire_link_base *b = wire_link_base(pp->peer.link);
	const struct tx *last = container_of(pp->rma.prev, struct tx, node);

	return (!ep->order_rma || b->caps.ordered) && last->state == TX_RMA &&
	       last->link == pp->peer.link && xfer_is_issued(&last->x);
}
/* Its link did not take it at once: goes as proto_rma has it. */
void rma_refused(struct proto_ep *ep, struct tx *tx);
/* A segment of it is over. False: it wants a turn of rma_run. */
bool rma_done_now(struct proto_ep *ep, struct proto_peer *pp, struct tx *tx);
void event_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v);

/* ---- count.c: remote accesses that are counted at the target */

/* Whether the peer wants to hear of this operation, which was done: MEM_EVENTS_*. */
uint32_t counts_wanted(const struct proto_peer *pp);
/* Notes it; false: no place for it until something left. */
bool counts_add(struct proto_ep *ep, struct proto_peer *pp, const struct tx *tx,
		uint32_t wanted);
/* Tells what was noted. */
int counts_run(struct proto_ep *ep, struct proto_peer *pp);
void count_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v);

/* ---- atomic.c: the initiator's half */

/* What a request of len bytes costs until it is answered, and what a peer may have in
 * all. Bounds what its target keeps when results find no room. */
#define ATOMIC_REQUEST	 64
#define ATOMIC_WINDOW	 (64u << 10)
#define ATOMIC_CHUNK_MAX (16u << 10) /* bytes of one request */

static inline uint32_t atomic_cost(size_t len)
{
	return ATOMIC_REQUEST + (uint32_t)len;
}

int atomics_run(struct proto_ep *ep, struct proto_peer *pp);
void result_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		    const struct pkt_view *v);
/* The peer is gone: all that were not sent end. */
void atomics_fail(struct proto_ep *ep, struct proto_peer *pp, int err);

/* ---- atomic_target.c: the target's half */

void atomic_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		    const struct pkt_view *v);
int results_run(struct proto_ep *ep, struct proto_peer *pp);
/* The peer is gone: nobody waits for them. */
void results_drop(struct proto_ep *ep, struct proto_peer *pp);

/* ---- peek.c */

void arrival_describe(const struct arrival *a, struct proto_found *found);

/* ---- matcher.c: a receiver whose receives somebody else has */

/* As the receiver_ calls of these names. */
bool matcher_take(struct proto_ep *ep, const struct proto_peer *pp, uint32_t tagged,
		  uint64_t tag, uint64_t len, struct rx_claim *claim);
void matcher_keep(struct arrival *a);
void matcher_leave(struct proto_ep *ep);
/* Messages that there was no memory for. */
int matcher_run(struct proto_ep *ep);

/* ---- ack.c: control packets that must not get lost for want of room */

/* Sends what a owes (its state says what), or queues it. */
void owe(struct proto_ep *ep, struct arrival *a);
int owed_run(struct proto_ep *ep, struct proto_peer *pp);
/* An eager message was delivered whose sender waits for that. */
void ack_send(struct proto_ep *ep, struct proto_peer *pp, uint64_t tx_id);
void ack_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		 const struct pkt_view *v);

/* ---- credit.c: bounds on unexpected payload (rule B2) */

/* What an eager message costs: its payload and what keeping it takes. */
#define CREDIT_MSG 64
/* Granted to a peer that comes up without asking, and at most. */
#define CREDIT_FIRST (32u << 10)
#define CREDIT_MAX   (256u << 10)

/* More than an honest peer can have here at a time: credit bounds its eager messages, its
 * transmit operations what it announces. Without a bound one peer that announces for ever
 * would use up what all of them share. */
#define ARRIVALS_PEER_MAX (4 * CREDIT_MAX / CREDIT_MSG + PROTO_OPS_MAX)

static inline uint32_t credit_cost(size_t len)
{
	return CREDIT_MSG + (uint32_t)len;
}

/* What may wait of messages that were sent before their epoch ended: each link that is
 * left of one may still bring what it had credit for. */
#define LATE_MAX (PEER_EXTRA_LINKS * 2 * CREDIT_MAX)

void credit_open(struct proto_ep *ep, struct proto_peer *pp);
void credit_close(struct proto_ep *ep, struct proto_peer *pp);
/* Gives back what was consumed; once it is worth a packet (credit_consume). */
int credit_return(struct proto_ep *ep, struct proto_peer *pp);
void credit_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		    const struct pkt_view *v);

static inline void credit_consume(struct proto_ep *ep, struct proto_peer *pp,
				  uint32_t cost)
{
	pp->consumed += cost;
	if (unlikely(pp->consumed >= pp->return_at)) {
		credit_return(ep, pp);
	}
}

/* ---- link.c: peers come and go */

extern const struct peer_ops proto_peer_ops;
void proto_segment_done(void *arg, struct wire_link *link, void *cookie, int err);
void proto_put_over(void *arg, struct wire_link *link, void *cookie);
void proto_atomic_done(void *arg, struct wire_link *link, uint64_t cookie, uint64_t was,
		       int err);
/* Frees peers that nobody needs any more. */
void proto_reap(struct proto_ep *ep);

#endif
