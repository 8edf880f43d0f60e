/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts and communicators: what the opaque pointers of weft.h point to. A context owns
 * the executor, its communicators and the lock that serialises its calls; a communicator
 * owns its number, its plans and its requests.
 */
#ifndef WEFT_COMM_COMM_H
#define WEFT_COMM_COMM_H

#include <pthread.h>
#include <stdatomic.h>

#include "coll/algo/algo.h"
#include "coll/boot/boot.h"
#include "coll/comm/dynamic.h"
#include "coll/comm/force.h"
#include "coll/comm/op.h"
#include "coll/comm/progress.h"
#include "coll/exec/exec.h"
#include "coll/tune/tune.h"
#include "util/list.h"
#include "util/lock_note.h"
#include "weft/weft.h"

struct weft_ctx {
	pthread_mutex_t lock; /* guards everything below it and what hangs on it */
	struct boot *boot;
	struct exec *exec;
	int64_t timeout_us; /* default deadline of every wait */
	uint32_t next_comm;
	uint32_t created; /* communicators of all ranks, so far */
	int comms;
	struct force force[WEFT_COLL_COUNT]; /* by WEFT_ALGO */
	struct tune *tune;		     /* WEFT_TUNE; NULL: none */
	struct comm_op op[COMM_OPS_MAX];     /* of the caller */
	struct progress *progress;	     /* NULL: callers make it */
	struct stats *stats;		     /* WEFT_STATS; NULL: none */
	void (*boot_end)(void *arg); /* frees what its bootstrap goes by, or NULL */
	void *boot_arg;
	int waiting;	   /* threads that wait in a call, and make progress there */
	atomic_int wanted; /* threads that wait for the lock; not guarded by it */
};

/* Where the lock is not free: says so, for the progress thread gives it away then. */
LOCK_TAKE(lock_context) static inline void ctx_lock(struct weft_ctx *ctx)
{
	if (pthread_mutex_trylock(&ctx->lock) == 0)
		return;
	atomic_fetch_add_explicit(&ctx->wanted, 1, memory_order_relaxed);
	pthread_mutex_lock(&ctx->lock);
	atomic_fetch_sub_explicit(&ctx->wanted, 1, memory_order_relaxed);
}

LOCK_GIVE(lock_context) static inline void ctx_unlock(struct weft_ctx *ctx)
{
	pthread_mutex_unlock(&ctx->lock);
}

/* Something was started that nobody waits for yet. */
LOCK_HELD(lock_context) static inline void ctx_started(struct weft_ctx *ctx)
{
	if (ctx->progress)
		progress_wake(ctx->progress);
}

/* A thread waits in a call from here to there. */
LOCK_HELD(lock_context) static inline void ctx_wait_begin(struct weft_ctx *ctx)
{
	ctx->waiting++;
}

LOCK_HELD(lock_context) static inline void ctx_wait_end(struct weft_ctx *ctx)
{
	ctx->waiting--;
	ctx_started(ctx);
}

/* The algorithm that was chosen for the last call of a collective. */
struct comm_choice {
	struct plan_call call;
	const struct algo *algo; /* NULL: none yet */
};

struct weft_comm {
	struct weft_ctx *ctx;
	uint32_t number; /* the same on every rank */
	uint32_t next_call;
	int32_t rank, size;
	int32_t *ranks;		  /* of the context, by rank here; NULL: the same */
	struct plan_nodes *nodes; /* NULL: all its ranks share one */
	bool shrunk;	   /* weft_comm_shrink() made another one of it, or was refused */
	bool lines;	   /* they share memory for short calls, exec_lines_open() */
	bool reads;	   /* and read each other's memory for long ones */
	struct list plans; /* struct comm_plan, most recently used first */
	int plan_count;
	struct comm_choice choice[WEFT_COLL_COUNT];
	struct list free_reqs; /* kept for reuse, of no plan in particular */
	struct list held_reqs; /* failed blocking calls that are not safe yet */
	int open_reqs;	       /* owned by callers */
	struct list group;     /* requests of the blocking messages of a group */
	bool grouping;	       /* between weft_group_begin() and _end() */
	uint32_t groups;       /* numbers behind its own that are for groups */
	uint32_t next_group;   /* of them */
	uint32_t doubled;      /* persistent calls with WEFT_DOUBLE so far */
	uint32_t next_win;     /* number of the next window */
	int wins;	       /* that exist */
	struct list graphs;    /* struct graph_call: calls in graphs (api/graph.h) */
	struct call_memo *memo[WEFT_COLL_COUNT]; /* api/memo.h: the last calls, or NULL */
	void *win_cards;  /* of windows: peers may write there as long as it lives */
	void *cards;	  /* of splits: peers may write there as long as it lives */
	uint64_t *tables; /* of (v) forms: two of 2 * size + 1; NULL until one comes */
};

/* A plan that is remembered, and what it is for. */
struct comm_plan {
	struct list link;
	enum weft_coll coll;
	const struct algo *algo;
	struct plan_call call;
	struct plan *plan;
	uint8_t algorithm; /* algo_index() */
	uint32_t refs;	   /* requests that run it */
	struct list idle;  /* requests that ran it last, a few */
	int idle_count;
};

/* CALL_PARTS late partitions of a plan of a (v) form, at most. */
#define COMM_PARTS 8

/* A call that can be started many times, as it was checked. */
struct comm_persist {
	struct exec_call run; /* but for the number of the call */
	struct plan_binding bind;
	const uint64_t *disp[COMM_PARTS];
	uint64_t own[2];
	uint64_t *tables; /* a copy of the communicator's, or NULL */
	bool started;	  /* and its end was not told yet */
	bool ended;	  /* the last start did, and well */
	void *buf[2];	  /* source and destination */
	bool streamed;	  /* in a stream: */
	int32_t device;
	void *stream;
	struct mem_entry *hold[2]; /* as registered, exec_hold() */
	size_t hold_len[2];	   /* bytes */
};

struct weft_req {
	struct comm_persist *persist; /* NULL: of one call */
	struct list link;	      /* comm->free_reqs, comm->held_reqs or plan->idle */
	struct list member;	      /* comm->group */
	struct weft_comm *comm;
	struct exec_req *exec;
	struct comm_plan *plan;
	struct comm_dynamic
		*dynamic; /* kept for the next call; NULL until one needs it */
	bool handed;	  /* the progress thread does all of it */
};

/* ctx.c: what weft_ctx_open() does once its arguments are good; net is for tests. */
enum weft_result ctx_open(const struct weft_ctx_opts *opts, const struct net_attr *net,
			  struct weft_ctx **ctx);

/* comm.c: what creating one ends with. ranks: as exec_comm_open(), owned by the
 * communicator when it succeeds. The number is above all that the members have used. */
LOCK_HELD(lock_context)
enum weft_result comm_make(struct weft_ctx *ctx, uint32_t number, int32_t *ranks,
			   int32_t size, int32_t rank, uint32_t groups,
			   struct weft_comm **comm);
/* comm_nodes.c: sets comm->nodes. */
LOCK_HELD(lock_context) enum weft_result comm_nodes_make(struct weft_comm *comm);
enum weft_result comm_opts_check(const struct weft_comm_opts *opts);
/* Numbers behind the communicator's own that are for its groups. */
uint32_t comm_opts_groups(const struct weft_comm_opts *opts);
#define COMM_GROUPS_MAX 256u

/* comm_plan.c: a plan for the call, built or remembered; returned by comm_plan_put(). */
LOCK_HELD(lock_context)
enum weft_result comm_plan_get(struct weft_comm *comm, enum weft_coll coll,
			       const struct algo *algo, const struct plan_call *call,
			       struct comm_plan **plan);
LOCK_HELD(lock_context)
void comm_plan_put(struct weft_comm *comm, struct comm_plan *plan);
LOCK_HELD(lock_context) void comm_plans_free(struct weft_comm *comm);

/* api/memo.c: calls that were remembered do not know the plan any more; nor anything. */
LOCK_HELD(lock_context)
void comm_memos_forget(struct weft_comm *comm, const struct comm_plan *plan);
void comm_memos_free(struct weft_comm *comm);

/* comm_req.c */
/* For the plan, whose reference it takes over when there is one. */
LOCK_HELD(lock_context)
enum weft_result comm_req_get(struct weft_comm *comm, struct comm_plan *plan,
			      struct weft_req **req);
LOCK_HELD(lock_context)
void comm_req_put(struct weft_req *req); /* idle or done: kept, returns its plan */
/* The plan goes: the requests that ran it last belong to none. */
LOCK_HELD(lock_context)
void comm_reqs_forget(struct weft_comm *comm, struct comm_plan *plan);
/* Keeps a request whose caller does not wait any longer. */
LOCK_HELD(lock_context) void comm_req_hold(struct weft_req *req);
/* Takes back held requests that became safe; true when none is left. */
LOCK_HELD(lock_context) bool comm_reqs_settle(struct weft_comm *comm);
LOCK_HELD(lock_context) void comm_reqs_free(struct weft_comm *comm);

#endif
