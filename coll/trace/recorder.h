/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flight recorder: how a context stands and what happened last, in memory of a fixed
 * size, always on. Written by whoever holds the context's lock; dumped by it, or by a
 * signal's handler or another process while somebody may write, which is why the few
 * oldest events are not in a dump.
 *
 * The memory is a file without a name, where the system has such: so another process of
 * the same user can read it (take.h) whatever this one does, and it is gone with it.
 *
 * Nothing here is allocated, locked or asked of the system when an event is recorded.
 */
#ifndef WEFT_TRACE_RECORDER_H
#define WEFT_TRACE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/trace/trace_file.h"
#include "util/ticks.h"

enum {
	TRACE_EVENTS = 8192, /* a power of two; 256 KiB */
	TRACE_MARGIN = 64,   /* oldest events that a dump leaves out */
	TRACE_COMMS = 64,    /* powers of two */
	TRACE_CALLS = 64,
	TRACE_PEERS = 256,
	TRACE_PATH_MAX = 512,
	TRACE_COUNTS = 64,
	TRACE_COUNT_NAME = 40, /* bytes of a counter's name, longer ones are cut */
	TRACE_LANES = 256,     /* of the provider's; more than that are left out */
	TRACE_SUMS = 16, /* collectives, and messages between two ranks as the last */
	TRACE_LOCAL_MIN = 4096, /* bytes of a copy or reduction that is an event */
};

/* 0, which no build is made with but that of bench/trace: what would calls take if
 * nothing was recorded? */
#ifndef TRACE_ON
#define TRACE_ON 1
#endif

/* All calls of a collective that ended. Ticks. */
struct trace_sum {
	uint64_t calls, failed;
	uint64_t ticks;	    /* in those that do not go by lines */
	uint64_t lines;	    /* those that do */
	uint64_t sent, got; /* bytes */
	uint64_t stage[TRACE_STAGES];
};

/* What the provider counts, by its own names. */
struct trace_count {
	char name[TRACE_COUNT_NAME]; /* "": an entry that is not used */
	uint64_t value;
};

/* A queue pair or path of the provider's, as it was looked at last. */
struct trace_lane {
	int32_t peer; /* rank; -1: none of ours */
	uint32_t number;
	uint32_t rail;
	uint32_t up; /* 0 or 1 */
	uint64_t packets, bytes, lost, retired;
};

/* What is not in dumps: sums, and what was counted when the provider was looked at last.
 */
struct trace_live {
	struct trace_sum sum[TRACE_SUMS]; /* by enum weft_coll */
	struct trace_count count[TRACE_COUNTS];
	struct trace_lane lane[TRACE_LANES];
	uint32_t lanes;
	uint32_t zero;
	uint64_t counted; /* ticks of that look; 0: never, or it counts nothing */
};

/* What the memory holds. Entries of tables that are not used are all zero. */
struct trace_image {
	struct trace_head head; /* count and the tables' counts are a dump's */
	struct trace_comm comm[TRACE_COMMS];
	struct trace_call call[TRACE_CALLS];
	struct trace_peer peer[TRACE_PEERS];
	struct trace_event event[TRACE_EVENTS];
	struct trace_live live;
};

/* The name of the memory, as /proc shows it. */
#define TRACE_MEMORY "weft-trace"

struct recorder {
	struct trace_image *image;
	bool counter; /* ticks are of the processor's counter */
	int fd;	      /* of the memory; -1: nobody else can read it */
	/* Where what has no place in its table goes. */
	struct trace_comm spare_comm;
	struct trace_peer spare_peer;
	/* What is needed at a dump only. */
	bool told;		   /* a failure was dumped already */
	char path[TRACE_PATH_MAX]; /* of dumps nobody names; "": there are none */
};

/* The ticks of the event. */
static inline uint64_t trace_put_pair(struct recorder *r, enum trace_kind kind,
				      uint8_t what, uint32_t comm, uint32_t call,
				      int32_t peer, uint64_t bytes, uint32_t pair)
{
	struct trace_image *m = r->image;
	struct trace_event *e = &m->event[m->head.total & (TRACE_EVENTS - 1)];
	const uint64_t now = TRACE_ON ? ticks_now(r->counter) : 0;

	if (!TRACE_ON)
		return now;
	e->ticks = now;
	e->kind = (uint8_t)kind;
	e->what = what;
	e->pair = (uint16_t)pair;
	e->comm = comm;
	e->call = call;
	e->peer = peer;
	e->bytes = bytes;
	m->head.total++;
	return now;
}

static inline uint64_t trace_put(struct recorder *r, enum trace_kind kind, uint8_t what,
				 uint32_t comm, uint32_t call, int32_t peer,
				 uint64_t bytes)
{
	return trace_put_pair(r, kind, what, comm, call, peer, bytes, 0);
}

/* NULL: no memory. */
struct recorder *recorder_open(int32_t rank, int32_t size);
void recorder_close(struct recorder *r); /* may be NULL */

/* Which context of which job it is, for whoever puts the dumps of ranks together. */
void recorder_name(struct recorder *r, uint64_t job, const char *provider);

/* ---- tables ------------------------------------------------------------------------ */

/* ranks: the context's, by rank of the communicator, or NULL: all. */
void recorder_comm_open(struct recorder *r, uint32_t number, const int32_t *ranks,
			int32_t size, int32_t self);
void recorder_comm_close(struct recorder *r, uint32_t number);

/* The entry of an open communicator, or one that is nobody's. */
static inline struct trace_comm *recorder_comm(struct recorder *r, uint32_t number)
{
	struct trace_comm *c = &r->image->comm[number & (TRACE_COMMS - 1)];

	return c->number == number ? c : &r->spare_comm;
}

/* A place for a call that starts: that of one that is over, if any is. */
struct trace_call *recorder_call_other(struct recorder *r);

static inline struct trace_call *recorder_call(struct recorder *r)
{
	struct trace_image *m = r->image;
	struct trace_call *c = &m->call[m->head.calls & (TRACE_CALLS - 1)];

	m->head.calls++;
	return c->state == TRACE_CALL_OPEN || c->state == TRACE_CALL_FAILED
		       ? recorder_call_other(r)
		       : c;
}

/* By rank; one that is nobody's where the table is full. */
struct trace_peer *recorder_peer(struct recorder *r, int32_t rank);

/* From now on the call is at another stage. */
static inline void trace_stage(struct trace_call *c, enum trace_stage stage, uint64_t now)
{
	c->stage[c->on] += now - c->since;
	c->since = now;
	c->on = stage;
}

/* The same, the stage being what its steps say. */
static inline void trace_stage_find(struct trace_call *c, uint64_t now)
{
	const enum trace_stage stage = c->sending   ? TRACE_STAGE_TRANSFER
				       : c->waiting ? TRACE_STAGE_CONTROL
						    : TRACE_STAGE_WAIT;

	if (stage != c->on)
		trace_stage(c, stage, now);
}

/* ---- dumps ------------------------------------------------------------------------- */

/* Writes all that is there; a file of that name is replaced at once, when the new one is
 * whole. number: of the signal, if one is the reason. Negative errno. */
int recorder_dump(const struct recorder *r, enum trace_reason reason, int number,
		  const char *path);

/* Where dumps that nobody asked for have a place (armed.h) and nothing was dumped for a
 * failure before. */
void recorder_failed(struct recorder *r);

#endif
