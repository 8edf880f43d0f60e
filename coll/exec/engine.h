/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the executor: the engine (one per context), its requests and their slots.
 * Only files of coll/exec include this.
 */
#ifndef WEFT_EXEC_ENGINE_H
#define WEFT_EXEC_ENGINE_H

#include "coll/exec/counts.h"
#include "coll/exec/ctl.h"
#include "coll/exec/exec.h"
#include "coll/exec/lines_mem.h"
#include "coll/exec/mem.h"
#include "coll/exec/net.h"
#include "coll/exec/pool.h"
#include "coll/trace/recorder.h"
#include "util/list.h"

#define EXEC_BUCKETS  64
#define EXEC_TEXT_MAX 512
#define EXEC_WHAT_MAX 64
/* Sends of one message that may fail with a broken connection before its peer counts as
 * lost: where two ranks connect to each other at once, ofi_rxm of libfabric 1.17 may
 * close the connection with what was queued on it. A name is unique, so that a message
 * that arrived after all does no harm when it comes again. */
#define EXEC_SEND_TRIES	    3
#define EXEC_PUT_PIECES_MAX 4 /* a place of more pieces is filled by a message */
#define EXEC_BUFS	    3 /* PLAN_SRC, PLAN_DST, PLAN_SCRATCH */

/* A handle of a peer that it told us once (rule F3: saves the key exchange only). */
struct peer_handle {
	uint64_t key;
	uint64_t base;
	uint32_t incarnation; /* 0: none */
};

/* A READY place of a peer, waiting for our SEND. */
struct ready {
	struct list link; /* exec_peer.ready */
	uint32_t k;
	uint32_t recv;
	uint8_t choice;
	uint8_t pieces;
	bool stays;	 /* of a doubled call: for later starts as well (twin.h) */
	uint64_t length; /* of all pieces */
	struct ctl_entry piece[EXEC_PUT_PIECES_MAX];
};

/* What a request knows about one other rank. */
struct exec_peer {
	struct list link;     /* exec_req.peers */
	struct list flush;    /* exec_req.flush while `announce` is not empty */
	struct list announce; /* slots (RECV) whose READY is not sent yet */
	struct list waiting;  /* slots (SEND) without READY */
	struct list ready;    /* READY without slot */
	int32_t rank;
	uint32_t send_k, recv_k; /* next pair numbers */
	uint32_t places;	 /* announced for put and not filled */
	uint32_t puts;		 /* our puts in flight to it */
	uint32_t msgs;		 /* and our messages */
	struct trace_peer *seen; /* of the flight recorder */
	bool revoke_asked;	 /* it failed: wants REVOKED when puts is 0 */
	int64_t probed;		 /* when we last asked it what it does */
};

enum slot_state {
	SLOT_BLOCKED,  /* dependencies are missing */
	SLOT_RUNNABLE, /* may start; on a list of the request */
	SLOT_WAITING,  /* SEND without READY */
	SLOT_ACTIVE,   /* operations in flight, or its place is open */
	SLOT_DONE,
	SLOT_STATES
};

/* The ranges of an instance, as slot.at and slot.whole count them. */
enum slot_range { SLOT_DST, SLOT_SRC, SLOT_SRC2, SLOT_RANGES };

/* One instance in the window. */
struct slot {
	struct list link; /* runnable, retry, local, or a list of its peer */
	struct exec_req *req;
	struct exec_peer *peer;
	uint64_t bytes;
	uint64_t at[SLOT_RANGES]; /* elements: where a whole range begins */
	uint8_t whole;		  /* bit of a range: it is one piece of all the bytes */
	uint8_t state;		  /* enum slot_state */
	uint8_t tries;		  /* sends of its message that failed */
	bool place_open;	  /* a peer may put into its range */
	bool seen_flies;	  /* the flight recorder counts it as being sent */
	uint32_t k;
	uint32_t deps;	     /* that were to be waited for when it was admitted */
	uint32_t deps_left;  /* of them, and of fills */
	uint32_t dependents; /* first edge + 1, 0: none */
	struct net_op *op;   /* posted receive, for cancelling */
	struct ready *ready; /* SEND by put: where to */
	uint32_t seg_count;  /* pieces of that put */
	uint32_t seg_posted;
	uint32_t seg_done;
	struct stage *stage; /* packed payload, when pieces exceed the iov limit */
	uint64_t fill;	     /* of device memory, that it waits for (mirror.h) */
	struct plan_instance inst;
};

/* Links a waiting slot into the list of the one that it waits for. */
struct edge {
	uint32_t slot; /* index of the waiting one */
	uint32_t next; /* edge + 1 */
};

/* The local step that is being worked on, piece by piece. */
struct local {
	struct slot *slot;
	bool whole[SLOT_RANGES];    /* the current piece is all */
	uint64_t at[SLOT_RANGES];   /* current piece: element offset */
	uint64_t left[SLOT_RANGES]; /* and what is left of it */
	struct plan_piece_iter it[SLOT_RANGES];
};

/* Memory of our own: scratch and staging, kept for reuse. */
struct stage {
	struct list link;
	void *memory;
	size_t size;
	struct mem_entry *mr; /* as local buffer, once it was needed */
};

/* A look for a message where a put was to come; one at a time. */
struct peek {
	bool busy;
	uint32_t comm, call;
	uint64_t number; /* of the slot */
};

/* Ranks disagree: the request stands still until somebody gives the verdict. */
struct accord {
	bool on;
	int32_t judge; /* who is asked for it; -1: nobody yet */
	int64_t until; /* then the next one is */
	uint32_t call; /* the call that they disagree about: this one or one before */
	char text[CTL_TEXT_MAX];
};

struct exec_lines;
struct gpus;
struct mirror;

/* What a request knows that goes by lines (lines_req.h). */
struct req_line {
	struct exec_lines *el; /* of its communicator; NULL: it does not go by lines */
	struct list link;      /* exec_lines.queue */
	bool published;	       /* its turn, the last that it has begun */
	bool far;	       /* what ranks give is read where it lies: lines_far.h */
	bool all;	       /* the turn is over when all ranks were seen in theirs */
	uint32_t turn, turns;  /* of the call: which one, of how many */
	uint8_t does;	       /* with what it reads */
	int32_t next, end;     /* those that it reads yet, counted from... */
	int32_t first;	       /* ...this rank of the communicator on */
	size_t bytes;	       /* that a rank publishes, at most */
	size_t gives;	       /* and that this one does */
	size_t block;
	size_t blocks;	    /* that a rank gives, at most */
	size_t piece;	    /* of each, in this turn: near ones */
	const void *lowest; /* what the lowest rank has given */
	uint64_t at; /* bytes of the blocks before; far ones: read of who is next */
	/* Far ones: */
	int32_t lost;		    /* who took back what was being read, or -1 */
	uint64_t left;		    /* and that are to be added up yet */
	uint64_t addr[LINES_RANKS]; /* where lies what a rank gives */
};

struct exec_req {
	struct list link;   /* exec.reqs */
	struct list bucket; /* exec.bucket */
	struct exec *x;
	enum exec_state state;
	struct exec_call call;
	struct trace_call *seen; /* of the flight recorder */
	uint64_t sig;		 /* of the call */
	size_t message_max;	 /* its pairs of at most so many bytes need no READY */
	bool announces;		 /* all the same, every pair has one */
	uint64_t tag;		 /* of its messages, but for the index; with the job */
	uint32_t k_mask, k_hash; /* of the index in the tags of its messages */
	struct accord accord;
	int64_t deadline;
	bool dated; /* the deadline is known: of calls by lines, once somebody waits */
	enum weft_result result;
	char text[EXEC_TEXT_MAX];
	char what[EXEC_WHAT_MAX]; /* "" until somebody asks */

	/* window */
	const struct plan *warm; /* all of its steps lie in the slots, as admitted */
	bool awake;		 /* something happened that steps may wait for */
	struct slot *slot;
	struct edge *edge;
	uint32_t slots; /* of the window now, a power of two */
	uint32_t slots_max, edges_max;
	uint32_t deps_max;
	uint64_t base; /* oldest that is not retired; 0 where the window takes all */
	uint64_t next; /* first that is not admitted */
	uint64_t done; /* instances */

	/* buffers */
	char *buf[EXEC_BUFS];
	struct mem_entry *mr[EXEC_BUFS];
	struct stage *scratch;
	size_t elem_size;
	struct plan_binding bind;
	const uint64_t **bind_disp;
	uint64_t *bind_memory;

	struct req_line line;

	struct mirror *mirror;	      /* NULL: nothing lies in device memory */
	struct mirror *mirror_memory; /* kept for the next call that has some */
	struct passage *passage;      /* NULL: no stream waits for it */
	bool began;		      /* its stream, if it has one, has come there */

	/* peers */
	struct exec_peer **peer_of; /* by rank */
	struct list peers;
	struct list flush;

	struct list runnable;
	struct list retry;
	struct list local_queue;
	struct local local;

	uint32_t ops;	 /* operations in flight */
	uint32_t places; /* open places of all peers */
	int64_t moved;	 /* when the last instance was done */
	int64_t probed;	 /* when we last asked whom we wait for, or repeated FAIL */
	int32_t culprit; /* whom a failure is about, or -1 */
	int32_t blame;	 /* whom the rank that we wait for waits for, or -1 */
	/* Which has not called it, and waits in another call; -1: none is known. */
	int32_t elsewhere_rank;
	struct ctl_elsewhere elsewhere;
	/* Which has ended it so many calls ago that it does not know what it was; -1:
	 * none is known. */
	int32_t forgot_rank;
	uint32_t forgot_since;
};

enum comm_state { COMM_UNKNOWN, COMM_OPEN, COMM_CLOSED };

/* A call that started here. */
struct exec_past {
	struct sig_call id;
	uint64_t sig;
};

struct exec_comm {
	enum comm_state state;
	uint32_t next_call;		       /* first call that did not start here */
	uint64_t past;			       /* hash of the calls so far, see sig.h */
	struct exec_past recent[CTL_PAST_MAX]; /* by call number */
	enum weft_result failed;	       /* first cause, or WEFT_SUCCESS */
	uint32_t failed_call;
	int32_t culprit; /* whom the cause is about, or -1 */
	int32_t waited;	 /* whom we waited for ourselves then, or -1 */
	char text[EXEC_TEXT_MAX];
	bool revoked; /* and why: */
	char revoke_text[CTL_TEXT_MAX];
	struct exec_pair **pairs; /* by rank; NULL until there is a message */
	int32_t *ranks;		  /* of the context, by rank here; NULL: the same */
	int32_t members;	  /* 0 when closed, or unknown */
	int32_t self;		  /* our rank here */
	struct exec_lines *lines; /* NULL: its calls go by messages */
	struct shrink *shrink;	  /* NULL: nobody has asked who goes on */
};

/* The context's number of a rank of a communicator. */
static inline int32_t exec_comm_rank(const struct exec_comm *comm, int32_t rank)
{
	return comm->ranks ? comm->ranks[rank] : rank;
}

/* A control message of a call that did not start here yet. */
struct stash {
	struct list link;
	struct ctl_msg msg;
};

struct ctl_buf {
	struct list link; /* exec.ctl_out, exec.ctl_idle */
	struct exec *x;
	int32_t peer;
	uint8_t tries; /* sends that failed */
	size_t len;
	char *data; /* CTL_MAX bytes, inside a registered slab */
	void *desc;
};

struct ctl_slab;

struct exec {
	struct net net;
	struct mem mem;
	int32_t rank, size;
	struct net_caps caps; /* agreed with all ranks */
	bool tight;	      /* ranks share our processors */
	bool crowded;	      /* some ranks share some; the same on all ranks */
	int32_t *lead;	      /* by rank: the lowest of its node; the same on all ranks */
	struct lines_mem lines;
	uint32_t unseen; /* calls by lines since the network was looked at */
	struct weft_stats stats;
	struct peer_handle **handles; /* [rank][id], NULL until the peer told one */
	struct exec_comm *comms;
	uint32_t comms_max;
	struct list reqs;
	struct list bucket[EXEC_BUCKETS];
	struct list stash;
	uint32_t stashed;
	struct pool readys, peers, stashes, sinks_pool;
	struct list sinks;
	struct list stages;    /* free memory, largest last used first */
	struct list wins;      /* struct exec_win */
	struct list win_retry; /* struct win_op, to be posted again */
	struct pool win_ops, win_lates, win_weaks;
	struct list earlies; /* words of puts before their call started, twin.h */
	struct pool early_pool;
	uint32_t early_count;
	uint32_t twins; /* doubled requests */
	struct list ctl_free, ctl_out, ctl_repost;
	struct ctl_slab *slabs;
	struct peek peek;
	uint32_t ctl_sends;	  /* in flight */
	uint32_t held;		  /* registrations, by exec_hold() */
	uint32_t rounds;	  /* of progress in which something moved */
	int64_t now;		  /* when the clock was looked at last */
	struct recorder *trace;	  /* what happened last */
	struct counts *counts;	  /* of the provider; NULL: it has none */
	struct exec_times *times; /* NULL: nobody measures */
	struct gpus *gpus;	  /* NULL: nobody has named one yet */
	struct list replays;	  /* struct exec_replay */
	bool foreign_told;	  /* that control messages of another job come */
	bool hushed;		  /* closing waits for no control messages */
	uint64_t garbage; /* control messages that named nothing, or could not be read */
};

/* One more call that started here. */
static inline void exec_comm_started(struct exec_comm *comm, const struct exec_req *req)
{
	comm->past = sig_past_add(comm->past, req->sig);
	comm->recent[req->call.call % CTL_PAST_MAX] =
		(struct exec_past){.id = req->call.id, .sig = req->sig};
	comm->next_call = req->call.call + 1;
}

static inline bool ctl_io_waits(const struct exec *x)
{
	return !list_empty(&x->ctl_out) || !list_empty(&x->ctl_repost);
}

static inline bool slot_is_whole(const struct slot *slot, enum slot_range which)
{
	return slot->whole & 1u << which;
}

/* Where a whole range is; buf is its buffer, of which nothing needs none. */
static inline char *slot_place(const struct slot *slot, enum slot_range which,
			       uint8_t buf)
{
	return slot->bytes ? slot->req->buf[buf] + slot->at[which] * slot->req->elem_size
			   : NULL;
}

/* ---- engine.c ---- */
/* For exec_times. */
int64_t exec_now_ns(void);
/* Of a call of two ranks `pair` is the other one, else -1. */
struct exec_req *engine_find(struct exec *x, uint32_t comm, uint32_t call,
			     uint32_t call_mask, int32_t pair);
void engine_link(struct exec *x, struct exec_req *req);
void engine_unlink(struct exec_req *req);
struct stage *stage_get(struct exec *x, size_t size);
void stage_put(struct exec *x, struct stage *stage);
int stage_desc(struct exec *x, struct stage *stage, void **desc);
/* Keeps the first cause, and the call that it was in. */
void exec_comm_fail(struct exec *x, uint32_t comm, uint32_t call, enum weft_result result,
		    int32_t culprit, const char *text);
/* A call that started here lately, or NULL. */
const struct exec_past *exec_comm_past(const struct exec *x, uint32_t comm,
				       uint32_t call);

/* ---- ctl_io.c: control messages in and out ---- */
enum weft_result ctl_io_open(struct exec *x);
void ctl_io_close(struct exec *x);
bool ctl_io_progress(struct exec *x);
/* Queues and tries to send. src and job of the message are filled in. -FI_ENOMEM. */
int ctl_io_send(struct exec *x, int32_t peer, struct ctl_msg *msg);

/* ---- events.c: what control messages mean ---- */
void event_ctl(struct exec *x, const struct ctl_msg *msg);
void event_stashed(struct exec_req *req);
void event_stash(struct exec *x, const struct ctl_msg *msg);
/* Whether the call of the message may still start here. */
bool event_is_early(const struct exec *x, const struct ctl_msg *msg);
void event_peer_lost(struct exec *x, int32_t rank, const char *why);
void event_data(void *arg, uint64_t word);

/* ---- req.c: the window ---- */
/* The request begins now, as deadlines and probes see it. */
void req_date(struct exec_req *req, int64_t now);
/* The tag of the message of a slot. */
uint64_t slot_tag(const struct slot *slot);
struct exec_peer *req_peer(struct exec_req *req, int32_t rank);
void slot_set_state(struct slot *slot, enum slot_state state);
void slot_done(struct slot *slot);
/* One thing less that the slot waits for. */
void slot_let(struct slot *slot);
bool req_run(struct exec_req *req);
/* All steps, or lines, are done: it settles, once the result is where it belongs. */
void req_end(struct exec_req *req);
void req_settle(struct exec_req *req);

/* ---- need.c: what steps need of buffers ---- */
/* Registration of a whole buffer, made at its first use; NULL where none is needed. */
int req_mr(struct exec_req *req, uint8_t buf, bool remote, struct mem_entry **entry);
/* Descriptor for local use of a buffer; *desc NULL where none is needed. */
int req_desc(struct exec_req *req, uint8_t buf, void **desc);
/* Pieces of the slot's DST or SRC as byte ranges; returns their number, at most max + 1.
 */
uint32_t slot_pieces(const struct slot *slot, enum slot_range which, struct iovec *iov,
		     uint32_t max);

/* ---- rx.c, tx.c, local.c: the kinds of steps. 0, -FI_EAGAIN, or another error ---- */
int rx_start(struct slot *slot);
void rx_flush(struct exec_req *req);
void rx_filled(struct slot *slot);
/* Begins to look, slot by slot from this number on, whether a peer sent a message where
 * it was to put: it has another length for the pair. */
void rx_peek(struct exec_req *req, uint64_t from);
int tx_start(struct slot *slot);
/* A SEND that waits for READY, and keeps a connection to its peer busy for long. */
bool tx_is_bulk(const struct slot *slot);
/* Where a connection keeps messages in order, READY behind a long put waits until that is
 * through, and so does what the peer could send meanwhile: two ranks that exchange long
 * blocks would do so one after the other. So places come before bulk, which is started
 * in the next round where there were some: READY leaves at the end of this one. */
void tx_bulk_last(struct exec_req *req);
void tx_ready(struct exec_req *req, struct exec_peer *peer, struct ready *ready);
bool local_run(struct exec_req *req);
/* Whether a step is so short that it is done where it is started. */
bool local_is_short(const struct slot *slot);
void local_do_short(struct slot *slot);
/* Copies between a range and packed memory. */
void local_pack(struct slot *slot, const struct plan_range *range, char *packed,
		bool unpack);

/* ---- fail.c ---- */
__attribute__((format(printf, 4, 5))) void req_fail(struct exec_req *req,
						    enum weft_result result,
						    int32_t culprit, const char *fmt,
						    ...);
void req_fail_op(struct slot *slot, const struct net_result *result);
void req_fail_post(struct slot *slot, const char *what, int rc);
void req_drained(struct exec_req *req);
void req_revoked(struct exec_req *req, struct exec_peer *peer);
void req_answer_revoke(struct exec_req *req, struct exec_peer *peer);
bool req_clock(struct exec_req *req, int64_t now);
void req_probe(struct exec_req *req, int32_t rank);
int32_t req_waits_for(const struct exec_req *req, struct slot **slot);

/* ---- revoke.c ---- */
void revoke_event(struct exec *x, const struct ctl_msg *msg);
/* The communicator has just been opened: was it revoked before? */
void revoke_opened(struct exec *x, uint32_t comm);

/* ---- shrink.c: who goes on without the dead ---- */
void shrink_event(struct exec *x, const struct ctl_msg *msg);
void shrinks_peer_lost(struct exec *x, int32_t rank);
void shrinks_fini(struct exec *x);

/* ---- sink.c: messages of calls that failed ---- */
void sinks_init(struct exec *x);
void sink_open(struct exec *x, const struct ctl_msg *fail);
void sinks_fini(struct exec *x);
void sink_close(struct exec *x, uint32_t comm);

/* ---- win.c: windows ---- */
void wins_init(struct exec *x);
void wins_fini(struct exec *x);
bool win_progress(struct exec *x);
void win_ctl(struct exec *x, const struct ctl_msg *msg);
void win_data(struct exec *x, uint32_t comm, uint32_t number, uint32_t index);
void win_peer_lost(struct exec *x, int32_t rank, const char *why);
void win_revoked(struct exec *x, uint32_t comm, const char *why);

/* ---- twin.c: persistent calls with two sides ---- */
struct name;
void twins_init(struct exec *x);
void twins_fini(struct exec *x);
void twin_comm_close(struct exec *x, uint32_t comm);
/* The buffers of this start. */
void twin_start(struct exec_req *req);
/* Whose start it is, mixed into the hash of the calls before. */
uint64_t twin_mix(const struct exec_twin *twin, uint64_t past);
/* The index of the word of a put that fills the RECV. */
uint32_t twin_index(const struct exec_twin *twin, uint64_t recv);
/* RECV: its peer knows the place from an earlier start. */
bool twin_stands(const struct slot *slot);
/* RECV that is announced: whether its place stays; then it counts as known. */
bool twin_offer(struct slot *slot);
/* SEND: remembers what slot->ready says, where that stays; and what is remembered, a copy
 * from the pool, NULL: nothing. */
void twin_keep(const struct slot *slot);
struct ready *twin_ready(const struct slot *slot);
/* False: the word is of no call that may still start. */
bool twin_early(struct exec *x, const struct name *name, uint64_t word);
void twin_arrived(struct exec_req *req);

/* ---- order.c: calls of communicators in different orders ---- */
/* To the PROBE of a call that has not started here. */
void order_answer(struct exec *x, const struct ctl_msg *probe);
void order_take(struct exec_req *req, const struct ctl_msg *msg);
/* "rank 1 has not called it: ..."; false where nothing is known. */
bool order_explain(const struct exec_req *req, char *text, size_t len);

/* ---- accord.c: ranks that disagree about a call ---- */
/* Something with another signature than the request's came from rank. */
void accord_signature(struct exec_req *req, int32_t rank, uint64_t sig);
/* The same, where that may be of another call than the request's, by its number: lines of
 * ranks that disagreed before. */
void accord_line(struct exec_req *req, int32_t rank, uint32_t call, uint64_t sig);
/* The request stands still. True: others have found since, in a later call, that ranks
 * disagree, and it has ended with what they say. Whoever it waits for may have done the
 * call as another one, and come back never. */
bool accord_overtaken(struct exec_req *req);
/* Compares with what another rank says that it runs; and where one says that it has ended
 * the call too long ago to know what it ran. */
void accord_status(struct exec_req *req, const struct ctl_msg *msg);
void accord_forgotten(struct exec_req *req, const struct ctl_msg *msg);
/* What the deadline says of it: "rank 1 has ended it, ..."; false where nothing is known.
 */
bool accord_explain(const struct exec_req *req, char *text, size_t len);
void accord_doubled(struct exec_req *req);
/* The peer of the slot `how` ("sends", "expects") another number of bytes. */
void accord_lengths(struct slot *slot, const char *how, uint64_t theirs);
/* The other rank waits for a place, where we wait for a message. */
void accord_place(struct exec_req *req, const struct ctl_msg *msg);
bool accord_clock(struct exec_req *req, int64_t now);
void accord_report(struct exec *x, const struct ctl_msg *msg);
void accord_past(struct exec *x, const struct ctl_msg *msg);
void accord_apply(struct exec *x, const struct ctl_msg *verdict);

#endif
