/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dump of a flight recorder: a head of fixed length, then events of fixed length,
 * oldest first, in the byte order of the host that wrote it. Only this file and
 * trace_file.c know the layout. A dump is a file of anybody's: trace_load() refuses what
 * is short, long or out of range before a field is used.
 */
#ifndef WEFT_TRACE_TRACE_FILE_H
#define WEFT_TRACE_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

enum trace_kind {
	TRACE_CALL = 1, /* a call starts: what is the collective, peer the root, bytes its
			 * count of elements */
	TRACE_END,	/* it is over: what is its result */
	TRACE_FAIL,	/* it failed: what is the result, peer whom it is about or -1 */
	TRACE_STEP,	/* a step of its plan is done: what is its kind; peer is for those
			 * that have one */
	TRACE_READY,	/* a peer's place is ready that a put waited for */
	TRACE_PUT,     /* a remote write into a peer's memory was given to the provider */
	TRACE_WIN_PUT, /* the same of a window: call is the window's number */
	TRACE_WIN_LAND, /* a put of a peer has landed in the window */
	TRACE_SIGNAL,	/* a signal of a peer has come: bytes is what it adds */
	TRACE_KIND_END
};

enum trace_reason {
	TRACE_ASKED = 1, /* weft_trace_dump() */
	TRACE_SIGNALLED,
	TRACE_FAILED,
	TRACE_REASON_END
};

struct trace_event {
	uint64_t ticks;
	uint8_t kind; /* enum trace_kind */
	uint8_t what;
	uint8_t zero[2];
	uint32_t comm;
	uint32_t call;
	int32_t peer; /* rank of the context; of CALL that of the communicator */
	uint64_t bytes;
};

enum { TRACE_HEAD_LEN = 256, TRACE_EVENT_LEN = 32, TRACE_NAME = 64 };

struct trace_head {
	char magic[8]; /* "WEFTTRC1" */
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
	char zero[24];
};

_Static_assert(sizeof(struct trace_event) == TRACE_EVENT_LEN, "an event has no holes");
_Static_assert(sizeof(struct trace_head) == TRACE_HEAD_LEN, "the head has no holes");
_Static_assert(offsetof(struct trace_head, provider) == 104, "names at byte 104");

#define TRACE_MAGIC "WEFTTRC1"
#define TRACE_ORDER UINT32_C(0x01020304)

/* A dump that was read. */
struct trace_dump {
	struct trace_head head;
	struct trace_event *event; /* owned; head.count */
};

/* ARG with the detail, which names the file and what is wrong with it; NOMEM. */
enum weft_result trace_load(const char *path, struct trace_dump *dump);
void trace_free(struct trace_dump *dump);

/* When an event was, nanoseconds of the calendar of its host. */
int64_t trace_when(const struct trace_head *head, uint64_t ticks);

const char *trace_kind_name(unsigned kind);
const char *trace_reason_name(unsigned reason);
/* What `what` says in an event: "allreduce", "send", "timeout". */
const char *trace_what_name(const struct trace_event *event);

#endif
