/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dump of a flight recorder: a head of fixed length, three tables (communicators,
 * calls, peers), then events, oldest first, all of fixed length and in the byte order of
 * the host that wrote it. Only this file and trace_file.c know the layout. A dump is a
 * file of anybody's: whoever reads one refuses what is short, long or out of range before
 * a field is used.
 *
 * The tables say how things stand, however long ago they began; the events what happened
 * last.
 */
#ifndef WEFT_TRACE_TRACE_FILE_H
#define WEFT_TRACE_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "weft/weft.h"

enum trace_kind {
	TRACE_CALL = 1, /* a call starts: what is the collective, peer the root, bytes its
			 * count of elements */
	TRACE_END,	/* it is over: what is its result */
	TRACE_FAIL,	/* it failed: what is the result, peer whom it is about or -1 */
	TRACE_STEP,	/* a step of its plan is done: what is its kind; peer is for those
			 * that have one, pair which of theirs it is */
	TRACE_READY,	/* a peer's place is ready that a put waited for */
	TRACE_PUT,     /* a remote write into a peer's memory was given to the provider */
	TRACE_WIN_PUT, /* the same of a window: call is the window's number */
	TRACE_WIN_LAND, /* a put of a peer has landed in the window */
	TRACE_SIGNAL,	/* a signal of a peer has come: bytes is what it adds */
	TRACE_SEND,	/* a message was given to the provider; pair as in its STEP */
	TRACE_SHORT, /* a call by shared lines has begun and ended: as CALL, of its end */
	TRACE_NET, /* the provider tells something: what is enum trace_net, bytes a value
		    */
	TRACE_KIND_END
};

/* What providers tell. */
enum trace_net {
	TRACE_NET_ERROR =
		1, /* an operation came back with an error: bytes is its fi_errno */
	TRACE_NET_PEER_LOST, /* a peer cannot be reached any more */
	TRACE_NET_RAIL_DOWN, /* a device or its port is gone: bytes is its number */
	TRACE_NET_RAIL_UP,   /* it is there again */
	TRACE_NET_LANE_DOWN, /* a lane (queue pair, path) is retired: bytes is its number
			      */
	TRACE_NET_LANE_UP,   /* another took its place */
	TRACE_NET_RESENT, /* packets were sent again: bytes is how many since the last */
	TRACE_NET_END
};

enum trace_reason {
	TRACE_ASKED = 1, /* weft_trace_dump() */
	TRACE_SIGNALLED,
	TRACE_FAILED,
	TRACE_CRASHED, /* a fatal signal: head.signal */
	TRACE_TAKEN,   /* another process read the recorder's memory */
	TRACE_REASON_END
};

/* The message of a call of two ranks, which has a number of its own: a collective's of
 * the same communicator may have the same. */
#define TRACE_PAIR_ALONE UINT16_MAX
#define TRACE_PAIR_MASK	 (UINT16_MAX >> 1) /* of all other numbers */

struct trace_event {
	uint64_t ticks;
	uint8_t kind; /* enum trace_kind */
	uint8_t what;
	uint16_t pair; /* STEP, READY, PUT, SEND: number between the two ranks in this
			* call, 15 bits, or TRACE_PAIR_ALONE */
	uint32_t comm;
	uint32_t call;
	int32_t peer; /* rank of the context; of CALL that of the communicator */
	uint64_t bytes;
};

enum trace_comm_state {
	TRACE_COMM_NONE,
	TRACE_COMM_OPEN,
	TRACE_COMM_BAD,
	TRACE_COMM_STATES
};

/* Members whose ranks in the context are first, first + step, ... */
struct trace_run {
	int32_t first, step, count;
};
enum { TRACE_RUNS = 4 };

/* A communicator that is open. Its number and its first member tell it from all others:
 * communicators without a common member may have the same number. */
struct trace_comm {
	uint32_t number;
	uint32_t state;	    /* enum trace_comm_state */
	int32_t first;	    /* the context's rank of its rank 0 */
	int32_t size, self; /* ranks of it; which this one is */
	uint32_t started;   /* calls; the next one has this number */
	uint32_t ended;	    /* of them, well or not */
	uint32_t runs;	    /* of members; 0: more than fit */
	struct trace_run run[TRACE_RUNS];
	uint64_t sent, got; /* bytes */
	uint64_t busy;	    /* ticks in which something of it was being sent */
	uint64_t since;	    /* ticks; where flying: since when */
	uint32_t flying;    /* operations that send */
	uint32_t zero[3];
};

enum trace_call_state {
	TRACE_CALL_NONE,
	TRACE_CALL_OPEN,
	TRACE_CALL_FAILED, /* and its memory may still be written */
	TRACE_CALL_DONE,
	TRACE_CALL_STATES
};

/* What a call spends its time on: each moment counts for the first that fits. */
enum trace_stage {
	TRACE_STAGE_REGISTER, /* memory is registered */
	TRACE_STAGE_REDUCE,   /* reductions, copies */
	TRACE_STAGE_TRANSFER, /* something of it is being sent */
	TRACE_STAGE_CONTROL,  /* a peer's place is waited for */
	TRACE_STAGE_WAIT,     /* data of peers is */
	TRACE_STAGES
};

enum trace_call_flag {
	TRACE_CALL_PAIR = 1,  /* a message between two ranks: root is the other one;
			       * numbers  count by pair and direction */
	TRACE_CALL_LINES = 2, /* by shared lines: no steps are counted, nor stages */
	TRACE_CALL_SENDS = 4, /* PAIR: this rank sends it */
	TRACE_CALL_FLAGS = 8
};

/* A call, the last of which are kept. Times are ticks. */
struct trace_call {
	uint64_t start, end; /* end: 0 while it is open; LINES: start is 0 where it was
			      * not waited for */
	uint64_t moved;	     /* its last step, or its start */
	uint64_t count;	     /* elements */
	uint32_t comm, call;
	int32_t root;
	uint8_t coll, type, op, algorithm;
	uint8_t state; /* enum trace_call_state */
	uint8_t result;
	uint8_t flags;	 /* enum trace_call_flag */
	uint8_t told;	 /* lines: what this rank gives is there */
	int32_t culprit; /* of a failure, or -1 */
	int32_t waits;	 /* whom it waits for, where it has stood still; -1: not known */
	uint32_t steps;	 /* done */
	uint32_t all;	 /* steps of its plan */
	uint32_t zero;
	uint64_t sent, got; /* bytes */
	uint64_t stage[TRACE_STAGES];
	uint64_t since;		   /* ticks; the stage that is on began */
	uint32_t on;		   /* enum trace_stage */
	uint16_t sending, waiting; /* operations that send; sends that wait for a place */
};

/* What went between this rank and another one, since the context was opened. */
struct trace_peer {
	int32_t rank;
	uint16_t used, lost; /* 0 or 1: an entry of somebody; who cannot be reached */
	uint64_t told;	/* puts with a notification that were given to the provider */
	uint64_t notes; /* notifications that came */
	uint64_t sends,
		sent;	    /* messages that were given to it, and those that completed */
	uint64_t recvs;	    /* messages that were received */
	uint64_t puts, put; /* puts that were given to it, and those that completed */
	uint64_t ready_out, ready_in; /* places that were announced, to it and by it */
	uint64_t bytes_out, bytes_in;
	uint64_t last_out, last_in; /* ticks of the last operation */
	uint64_t busy;		    /* ticks in which something was being sent to it */
	uint64_t since;
	uint32_t flying;
	uint32_t zero;
};

enum {
	TRACE_HEAD_LEN = 320,
	TRACE_EVENT_LEN = 32,
	TRACE_COMM_LEN = 128,
	TRACE_CALL_LEN = 144,
	TRACE_PEER_LEN = 136,
	TRACE_NAME = 64,
};

struct trace_head {
	char magic[8]; /* "WEFTTRC2" */
	uint32_t order;
	uint32_t head_len, event_len;
	uint32_t reason;
	int32_t rank, size; /* of the context */
	int64_t pid;
	uint64_t total; /* events ever recorded */
	uint64_t count; /* events in the file */
	/* The same moments by three clocks, of opening and of the dump: ticks of the
	 * events, nanoseconds of the monotonic clock and of the calendar. */
	uint64_t ticks[2];
	int64_t mono[2], real[2];
	char provider[TRACE_NAME], host[TRACE_NAME]; /* end with 0 */
	uint64_t job;	 /* the same in all ranks of the context, and no other's */
	uint64_t looked; /* ticks: when this rank last looked for what peers do */
	uint64_t calls;	 /* ever started */
	uint32_t comm_len, call_len, peer_len;
	uint32_t comm_count, call_count, peer_count; /* entries in the file */
	uint32_t lost;	 /* looks for communicators and peers that had no place in their
			    tables */
	uint32_t signal; /* CRASHED: its number */
	uint32_t zero[8];
};

_Static_assert(sizeof(struct trace_event) == TRACE_EVENT_LEN, "an event has no holes");
_Static_assert(sizeof(struct trace_comm) == TRACE_COMM_LEN,
	       "a communicator has no holes");
_Static_assert(sizeof(struct trace_call) == TRACE_CALL_LEN, "a call has no holes");
_Static_assert(sizeof(struct trace_peer) == TRACE_PEER_LEN, "a peer has no holes");
_Static_assert(sizeof(struct trace_head) == TRACE_HEAD_LEN, "the head has no holes");
_Static_assert(offsetof(struct trace_head, provider) == 104, "names at byte 104");
_Static_assert(offsetof(struct trace_head, job) == 232, "what came with version 2");

#define TRACE_MAGIC "WEFTTRC2"
#define TRACE_ORDER UINT32_C(0x01020304)

/* A dump that was read. */
struct trace_dump {
	struct trace_head head;
	struct trace_comm *comm;   /* owned, as the others; head.comm_count */
	struct trace_call *call;   /* head.call_count, the one that started first first */
	struct trace_peer *peer;   /* head.peer_count */
	struct trace_event *event; /* head.count; NULL: not asked for */
};

/* What is wrong with a head, or NULL. */
const char *trace_head_fault(const struct trace_head *h);
/* Whether a row of a table is what a recorder writes. */
bool trace_comm_fits(const struct trace_comm *c, const struct trace_head *h);
bool trace_call_fits(const struct trace_call *c, const struct trace_head *h);
bool trace_peer_fits(const struct trace_peer *p, const struct trace_head *h);

/* ARG with the detail, which names the file and what is wrong with it; NOMEM. */
enum weft_result trace_load(const char *path, struct trace_dump *dump);
/* The same without the events, whose number is checked by the length of the file alone:
 * most of a dump is not read. */
enum weft_result trace_load_tables(const char *path, struct trace_dump *dump);
void trace_free(struct trace_dump *dump);

/* When an event was, nanoseconds of the calendar of its host. */
int64_t trace_when(const struct trace_head *head, uint64_t ticks);
/* So many ticks as nanoseconds. */
int64_t trace_span(const struct trace_head *head, uint64_t ticks);

const char *trace_kind_name(unsigned kind);
const char *trace_reason_name(unsigned reason);
const char *trace_stage_name(unsigned stage);
/* What `what` says in an event: "allreduce", "send", "timeout". */
const char *trace_what_name(const struct trace_event *event);

#endif
