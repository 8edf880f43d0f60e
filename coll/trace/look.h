/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a context of another process of this host and this user stands at this moment, as
 * its recorder says: whole, and checked like a dump, whoever wrote it. Nothing is asked
 * of the process, which may be stopped.
 */
#ifndef WEFT_TRACE_LOOK_H
#define WEFT_TRACE_LOOK_H

#include <sys/types.h>

#include "coll/trace/recorder.h"

struct look {
	struct trace_head head; /* its counts say how many rows there are; no events */
	struct trace_comm comm[TRACE_COMMS];
	struct trace_call call[TRACE_CALLS]; /* in no order */
	struct trace_peer peer[TRACE_PEERS];
	struct trace_live live;
};

/* Calls `each` for each context that the process has open. ARG with the detail: there is
 * no such process, it may not be looked at, it has no recorder, or what was read is
 * none's. */
enum weft_result look_process(pid_t pid, void (*each)(void *arg, const struct look *look),
			      void *arg);

#endif
