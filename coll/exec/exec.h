/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor: runs plans over any RDM provider. One per context: it owns the endpoint,
 * the registrations and what peers told about theirs; its requests run plans, several at
 * a time. Not thread-safe: the context's lock covers every call.
 */
#ifndef WEFT_EXEC_EXEC_H
#define WEFT_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/boot/boot.h"
#include "coll/exec/ctl.h"
#include "coll/exec/lines.h"
#include "coll/exec/net.h"
#include "coll/plan/plan.h"
#include "util/lock_note.h"

/* Instances that a request looks ahead. Part of the contract with the checker: a plan
 * that is free of deadlock only with a longer look may stand still here. */
#define EXEC_WINDOW 256

struct exec;
struct exec_req;
struct recorder;

/* Opens the provider and exchanges addresses. Collective over boot. */
enum weft_result exec_open(const struct net_attr *attr, struct boot *boot,
			   int64_t timeout_us, struct exec **x);

/* BUSY while requests are open. */
LOCK_HELD(lock_context) enum weft_result exec_close(struct exec *x);

LOCK_HELD(lock_context) const struct weft_stats *exec_stats(const struct exec *x);
/* The last events; never NULL. */
struct recorder *exec_trace(const struct exec *x);
/* Has what the provider counts put into its tables, as of now. */
LOCK_HELD(lock_context) void exec_counts(struct exec *x);
const struct net_caps *exec_caps(const struct exec *x);
const char *exec_provider(const struct exec *x); /* "tcp;ofi_rxm"; lives as long as x */
/* Long pairs are fetched by their receivers; the same on all ranks. */
bool exec_fetches(const struct exec *x);
/* Some ranks of a few (EXEC_CROWD_RANKS) share processors; the same on all ranks. */
bool exec_is_crowded(const struct exec *x);
#define EXEC_CROWD_RANKS 16
/* By rank of the context the lowest rank of its node; the same on all ranks. */
const int32_t *exec_leads(const struct exec *x);
/* All have opened their contexts: how far this rank has the memory of all ranks of its
 * node, and, from what all ranks say, how far a node is to use it. Before the first
 * communicator. */
enum lines_level exec_lines_level(const struct exec *x);
LOCK_HELD(lock_context)
void exec_agree_lines(struct exec *x,
		      enum lines_level (*of)(const void *arg, int32_t rank),
		      const void *arg);
/* The communicator's ranks have lines in common (lines.h), and can read what each other
 * gives; the same on all its ranks. */
LOCK_HELD(lock_context)
bool exec_lines_open(struct exec *x, uint32_t comm, bool *reads);
/* The provider pins registered memory, so that nothing is remembered across calls. */
bool exec_registers_per_call(const struct exec *x);

/* Memory for callers; ARG, NOMEM, PROVIDER, BUSY with the detail. */
LOCK_HELD(lock_context)
enum weft_result exec_mem_alloc(struct exec *x, size_t len, void **addr);
LOCK_HELD(lock_context) enum weft_result exec_mem_free(struct exec *x, void *addr);

/* Buffers that stay where they are, as those of persistent calls do: what is registered
 * per call otherwise stays registered, and its handle told, while it is held. Nothing is
 * held where it makes no difference, or where there is little room left. */
struct mem_entry;
LOCK_HELD(lock_context)
void exec_hold(struct exec *x, void *addr, size_t len, bool remote,
	       struct mem_entry **hold);
LOCK_HELD(lock_context) void exec_hold_end(struct exec *x, struct mem_entry **hold);

/* Communicators that take part: names of other ones are kept until they appear. */
/* ranks: the context's numbers of the members, copied; NULL: all ranks of the context.
 * From here on peers and roots in plans are ranks of the communicator; failures name
 * those of the context. */
LOCK_HELD(lock_context)
enum weft_result exec_comm_open(struct exec *x, uint32_t comm, const int32_t *ranks,
				int32_t count, int32_t self);
/* What ranks must agree about before the first call, as if it were one. */
LOCK_HELD(lock_context)
void exec_comm_seed(struct exec *x, uint32_t comm, uint64_t seed);
LOCK_HELD(lock_context) void exec_comm_close(struct exec *x, uint32_t comm);
/* Why a communicator failed first; WEFT_SUCCESS when it did not. */
LOCK_HELD(lock_context)
enum weft_result exec_comm_failed(const struct exec *x, uint32_t comm, const char **text);

/* The context's rank that the cause is about, or -1. */
LOCK_HELD(lock_context)
int32_t exec_comm_culprit(const struct exec *x, uint32_t comm);

/* The context's rank that this one would have gone on with when the communicator failed:
 * of a deadline or a revocation whom it waited for itself, whoever noticed first; else
 * the culprit. -1: none is known. */
LOCK_HELD(lock_context)
int32_t exec_comm_suspect(const struct exec *x, uint32_t comm);

/* Takes it back, here and at all members: all that is open on it fails with REVOKED, and
 * nothing starts any more. Again: nothing happens. */
LOCK_HELD(lock_context)
void exec_comm_revoke(struct exec *x, uint32_t comm, const char *reason);
LOCK_HELD(lock_context) bool exec_comm_revoked(const struct exec *x, uint32_t comm);

/*
 * Who of a communicator's members goes on, and by which number; once (agree.h). This
 * rank wants to: number is the least that it can use; members that are not known to be
 * lost are waited for until then. The communicator is to be revoked. UNSUPPORTED (too
 * many members), NOMEM.
 */
LOCK_HELD(lock_context)
enum weft_result exec_shrink_join(struct exec *x, uint32_t comm, uint32_t number,
				  int64_t wait_until);
/* To be called again and again, besides exec_progress(). True: it is decided. */
LOCK_HELD(lock_context) bool exec_shrink_look(struct exec *x, uint32_t comm);
/* Decided: the communicator's ranks that go on, as ranks of the context, into `ranks`
 * (as many as it has); *self: this one's place among them, or -1. Returns how many. */
LOCK_HELD(lock_context)
int32_t exec_shrink_members(const struct exec *x, uint32_t comm, int32_t *ranks,
			    int32_t *self, uint32_t *number);
/* Not decided: in words, who has not come. */
LOCK_HELD(lock_context)
void exec_shrink_missing(const struct exec *x, uint32_t comm, char *text, size_t len);

/* Whether control messages wait to be sent: a rank that leaves a failed call at once
 * should stay for them. */
LOCK_HELD(lock_context) bool exec_has_words(const struct exec *x);
/* Closing waits for none of them: the caller has. */
LOCK_HELD(lock_context) void exec_hush(struct exec *x);

/* What exec_progress() would be called for. */
enum exec_work {
	EXEC_WORK_NONE,
	EXEC_WORK_WATCH, /* windows are open: a peer may want something */
	EXEC_WORK_OPEN,	 /* requests, or control messages that wait */
};
LOCK_HELD(lock_context) enum exec_work exec_work(const struct exec *x);

/* Completions, retries, slices of local work, deadlines. True when anything moved. */
LOCK_HELD(lock_context) bool exec_progress(struct exec *x);
/* The same, but for deadlines where nothing moved: for a few looks in a row, with
 * exec_progress() soon. */
LOCK_HELD(lock_context) bool exec_look(struct exec *x);
/* Before a wait begins: whether the request has ended, or, where its call goes by lines,
 * ends within a moment, so that the network need not be looked at. Now and then it says
 * no: what peers say shall be heard by who calls nothing else. */
LOCK_HELD(lock_context) bool exec_ends_by_lines(struct exec_req *req);
/* Ranks share this one's processors: looking on keeps them from working. */
bool exec_is_tight(const struct exec *x);

struct exec_call;
struct exec_twin; /* twin.h */
struct gpu_queue;
struct pinned;

/*
 * How a call goes on when its plan is done: some can be planned only with what ranks have
 * told each other. next() puts the plan, its late tables (not copied: they outlive the
 * request), buffers and type into the call, or says why it does not go on. Where it says
 * `alike`, every rank comes to the same: the request ends with that result and text, and
 * the communicator stays good; otherwise it fails as any request does.
 */
struct exec_follow {
	enum weft_result (*next)(struct exec_follow *follow, struct exec_call *call,
				 char *text, size_t len);
	const struct plan *plan; /* that next() will put */
	bool alike;
};

/*
 * Tables of a call that are read when it is executed (tables.h). come() is called when
 * the call's stream, if it has one, has come there, and again when all that it has asked
 * for meanwhile, by exec_tables_bring(), is there, until it has all. leave() is called
 * when the call's steps have ended well; what it gives to exec_tables_take() arrives
 * before the call is over. Both are called with the lock held.
 */
enum tables_got { TABLES_ALL, TABLES_MORE, TABLES_NO_MEMORY };
enum tables_state { TABLES_COMING, TABLES_THERE, TABLES_LEAVING };
struct exec_tables {
	enum tables_got (*come)(struct exec_tables *t, uint32_t stage);
	void (*leave)(struct exec_tables *t);

	/* the executor's */
	struct exec *x;
	struct pinned *pinned; /* NULL: none of them is in device memory */
	int32_t device;
	struct gpu_queue *in, *out;
	enum tables_state state;
	uint32_t stage;
	bool open;		 /* copies lie behind the last mark */
	bool flies;		 /* it failed, and copies go on: counted in ops */
	struct gpu_queue *queue; /* of the copies that were asked for last... */
	uint64_t asked;		 /* ...and their mark; 0: none is waited for */
	char fault[256];	 /* of the device; "": none */
};

/* Memory of the host for tables that lie on a device, which is prepared. NOMEM, BUSY. */
LOCK_HELD(lock_context)
enum weft_result exec_tables_open(struct exec *x, struct exec_tables *t, int32_t device,
				  size_t len, bool may_pin, void **memory);
LOCK_HELD(lock_context) void exec_tables_close(struct exec *x, struct exec_tables *t);
/* Copies between that memory and the device. */
void exec_tables_bring(struct exec_tables *t, void *to, const void *from, size_t len);
void exec_tables_take(struct exec_tables *t, void *to, const void *from, size_t len);

/* Memory for the mirrors of a call that is started many times (mirror.h). */
struct exec_kept;

/* Device memory among the buffers of a call. */
struct exec_device {
	bool on;		 /* there is some */
	int32_t src, dst;	 /* the device of each; -1: host memory, or no buffer */
	size_t src_len, dst_len; /* bytes */
	bool no_in;		 /* nothing of the source is read (broadcast) */
	bool no_out;		 /* nothing of the destination is written: its root */
	bool sparse;		 /* the destination is blocks with room between them */
	struct exec_kept *kept;	 /* NULL: each start takes what is there */
};

struct exec_call;
/* Takes memory that each start of the call will use: run->device.kept. NOMEM, BUSY. */
LOCK_HELD(lock_context)
enum weft_result exec_kept_open(struct exec *x, struct exec_call *run);
LOCK_HELD(lock_context) void exec_kept_close(struct exec *x, struct exec_kept *kept);

/* Prepares a device, and pins memory for `count` buffers of `size` bytes, where fewer are
 * free. ARG, UNSUPPORTED, BUSY, NOMEM, DEVICE. */
LOCK_HELD(lock_context)
enum weft_result exec_gpu_prepare(struct exec *x, int32_t device, size_t size,
				  uint32_t count);
/* Whether calls, or the process, have used any until now. */
LOCK_HELD(lock_context) bool exec_has_gpus(const struct exec *x);
/* Prepares the devices that the process uses already, if it uses any. */
LOCK_HELD(lock_context) void exec_gpus_warm(struct exec *x);

/* Where memory is that is said to be of a kind, and device: *found is the device that has
 * it, or -1. name: what the caller calls it ("src"), for the detail. ARG, UNSUPPORTED (no
 * GPU), NOMEM, DEVICE. With the lock held. */
enum weft_result exec_find_memory(struct exec *x, const char *name,
				  const struct weft_buf *buf, int32_t *found);

/* Whether there is such a device, for a stream. With the lock held. ARG, UNSUPPORTED. */
enum weft_result exec_find_device(struct exec *x, int32_t device);

/* The place of a call in a stream of a device (passage.h), to be given to the call that
 * starts next, or closed. ARG, UNSUPPORTED, NOMEM, DEVICE. */
struct passage;
LOCK_HELD(lock_context)
enum weft_result exec_passage_open(struct exec *x, int32_t device, void *stream,
				   struct passage **passage);
LOCK_HELD(lock_context) void exec_passage_close(struct passage *passage);

/* Which capture a stream takes part in; 0: none. With the lock held. ARG (a broken one),
 * UNSUPPORTED, DEVICE. */
enum weft_result exec_stream_capture(struct exec *x, int32_t device, void *stream,
				     uint64_t *id);

/* A place in a stream that is being captured (passage.h): each launch of the graph calls
 * begin(arg), with the lock held, which starts a call that is given the passage, or
 * closes that. The graph's end is seen by asking; then it can be closed. */
struct exec_replay;
LOCK_HELD(lock_context)
enum weft_result exec_replay_open(struct exec *x, int32_t device, void *stream,
				  void (*begin)(void *arg), void *arg,
				  struct exec_replay **replay);
LOCK_HELD(lock_context)
void exec_replay_close(struct exec *x, struct exec_replay *replay);
bool exec_replay_is_gone(const struct exec_replay *replay);
struct passage *exec_replay_passage(struct exec_replay *replay);

/* For a thread of the library: what it does does not break graphs that are captured
 * meanwhile. Once something of a GPU was opened; true when it was done. */
LOCK_HELD(lock_context) bool exec_thread_init(struct exec *x);

/* A call to run. Everything that it points to outlives the request. */
struct exec_call {
	uint32_t comm;
	uint32_t call; /* number in its communicator, counted from 0 */
	const struct plan *plan;
	const struct plan_binding *bind; /* copied: the one snapshot of late tables */
	void *src, *dst;		 /* PLAN_SRC, PLAN_DST */
	uint64_t src_len, dst_len;	 /* elements, where tables are bound late */
	enum weft_type type;
	enum weft_op op;
	/* In place of op: the caller's own operation. NULL: none. */
	void (*apply)(void *arg, enum weft_type type, void *dst, const void *a,
		      const void *b, uint64_t count);
	void *apply_arg;
	bool pair;	    /* a message between this rank and `peer`, not a collective */
	int32_t peer;	    /* call is what exec_pair_next() said */
	int64_t timeout_us; /* > 0 or WEFT_TIMEOUT_INFINITE */
	struct sig_call id; /* what the ranks must agree about */
	struct exec_follow *follow; /* NULL: the plan is all */
	struct exec_tables *tables; /* NULL: what it does is known when it starts */
	struct exec_twin *twin;	    /* dst and scratch are its; NULL: not doubled */
	struct exec_device device;
	struct passage *passage; /* taken over when it starts; NULL: in no stream */
	bool handed; /* another thread goes on with it: to start it moves nothing */
};

/* Messages between two ranks (pair.h). The number of the next one to a peer or from it;
 * NOMEM. */
LOCK_HELD(lock_context)
enum weft_result exec_pair_next(struct exec *x, uint32_t comm, int32_t peer, bool sends,
				uint32_t *call);
/* Why messages between this rank and a peer failed first; WEFT_SUCCESS: they did not. */
LOCK_HELD(lock_context)
enum weft_result exec_pair_failed(const struct exec *x, uint32_t comm, int32_t peer,
				  const char **text);

enum exec_state {
	EXEC_IDLE, /* not started, or its outcome was taken */
	EXEC_RUNNING,
	EXEC_DRAINING, /* failed; memory may still be written (rule D3) */
	EXEC_DONE,
};

/* A request is reused for many calls, its memory grows to what they need. One that ran a
 * plan to its good end is quickest to run the same plan again: its steps lie there, and
 * only their states go back. So who frees a plan tells the requests that ran it last. */
LOCK_HELD(lock_context) struct exec_req *exec_req_alloc(struct exec *x);
LOCK_HELD(lock_context)
void exec_req_release(struct exec_req *req); /* must be idle or done */
void exec_req_forget(struct exec_req *req);  /* the plan; must be idle or done */

/* ARG for late tables that make no sense, NOMEM; then it stays idle. */
LOCK_HELD(lock_context)
enum weft_result exec_req_start(struct exec_req *req, const struct exec_call *call);

/*
 * Does a call without a request, where all of it goes by lines within a moment: true, and
 * it has ended well. False: it is to be started as any other one, with the same
 * exec_call, whose plan a request has run before, and which nothing may refuse: it may
 * have begun.
 */
LOCK_HELD(lock_context) bool exec_quick(struct exec *x, const struct exec_call *call);

LOCK_HELD(lock_context) enum exec_state exec_req_state(const struct exec_req *req);
LOCK_HELD(lock_context)
int64_t exec_req_deadline(const struct exec_req *req); /* INT64_MAX: none */

/* "allreduce (ring)": what it ran last, for messages. */
const char *exec_req_what(struct exec_req *req);

/* How it ended (state DONE) or is ending (DRAINING), and the sentence. */
LOCK_HELD(lock_context)
enum weft_result exec_req_result(const struct exec_req *req, const char **text);

/* When what happened of the call that was started last, nanoseconds. For measurements:
 * one request at a time. */
struct exec_times {
	int64_t begin;	/* the executor has it */
	int64_t ready;	/* the last READY that a SEND waited for; else begin */
	int64_t issued; /* the last transfer was given to the provider; else begin */
};
/* From now on; NULL: not any more. */
void exec_time_calls(struct exec *x, struct exec_times *times);

/* Monotonic clock, microseconds. */
int64_t exec_now(void);

/* The same clock, as the last round of progress that moved nothing saw it. */
int64_t exec_clock(const struct exec *x);

/* Waiting between two calls of exec_progress() without the lock: spins, then yields, then
 * sleeps. Where ranks share processors it yields at once. now: exec_clock(), taken with
 * the lock. */
struct exec_idle {
	int64_t since; /* the first round that moved nothing; 0: the last one moved */
};
LOCK_NOT_HELD(lock_context)
void exec_idle_wait(const struct exec *x, struct exec_idle *idle, bool moved,
		    int64_t now);

#endif
