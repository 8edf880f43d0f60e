/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flight recorder: the last events of a context in memory of a fixed size, always on.
 * Written by whoever holds the context's lock; dumped by it, or by a signal's handler
 * while somebody may write, which is why the few oldest events are not in a dump.
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
	TRACE_PATH_MAX = 512,
	TRACE_LOCAL_MIN = 4096, /* bytes of a copy or reduction that is an event */
};

struct recorder {
	struct trace_event *event; /* TRACE_EVENTS */
	uint64_t count;		   /* that were ever recorded */
	bool counter;		   /* ticks are of the processor's counter */
	/* What is needed at a dump only. */
	bool told; /* a failure was dumped already */
	struct trace_head head;
	char path[TRACE_PATH_MAX]; /* of dumps nobody names; "": there are none */
};

static inline void trace_put(struct recorder *r, enum trace_kind kind, uint8_t what,
			     uint32_t comm, uint32_t call, int32_t peer, uint64_t bytes)
{
	struct trace_event *e = &r->event[r->count & (TRACE_EVENTS - 1)];

	e->ticks = ticks_now(r->counter);
	e->kind = (uint8_t)kind;
	e->what = what;
	e->comm = comm;
	e->call = call;
	e->peer = peer;
	e->bytes = bytes;
	r->count++;
}

/* NULL: no memory. */
struct recorder *recorder_open(int32_t rank, int32_t size);
void recorder_close(struct recorder *r); /* may be NULL */

/* From now on dumps that nobody asked for go to a folder: at the first failure, and at
 * SIGUSR2 where the program has not taken that signal. ARG with the detail: the folder's
 * name is too long, or it is none that can be written. */
enum weft_result recorder_arm(struct recorder *r, const char *folder,
			      const char *provider);

/* Where the recorder is armed and nothing was dumped for a failure before. */
void recorder_failed(struct recorder *r);

/* Writes all that is there; a file of that name is replaced at once, when the new one is
 * whole. Negative errno. */
int recorder_dump(const struct recorder *r, enum trace_reason reason, const char *path);

#endif
