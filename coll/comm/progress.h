/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread of a context: what was started goes on while the caller computes
 * and calls nothing. It sleeps while nothing is started, stands aside while a thread of
 * the caller waits in a call (which makes the progress then), and lets who wants the
 * context's lock have it between two rounds.
 */
#ifndef WEFT_COMM_PROGRESS_H
#define WEFT_COMM_PROGRESS_H

#include <stdbool.h>

#include "util/lock_note.h"
#include "weft/weft.h"

struct progress;

/* What a context was asked for, by its options or else by the environment. */
struct progress_attr {
	bool thread;
	const char *cpus; /* "3", "0,2-4": where it may run; NULL: where the caller may */
};

/* WEFT_PROGRESS and WEFT_PROGRESS_CPUS where the options leave it open. ARG. */
enum weft_result progress_read(const struct weft_ctx_opts *opts,
			       struct progress_attr *attr);

/* The thread; *out is NULL where none is asked for. ARG (processors that it may not
 * have), NOMEM. */
enum weft_result progress_open(struct weft_ctx *ctx, const struct progress_attr *attr,
			       struct progress **out);

/* Ends the thread and waits for that. Not with the lock. */
LOCK_NOT_HELD(lock_context) void progress_close(struct progress *p);

/* Something was started, or a wait ended that may leave something behind. */
LOCK_HELD(lock_context) void progress_wake(struct progress *p);

/* Nothing is to be done, and it sleeps until somebody starts something. */
LOCK_HELD(lock_context) bool progress_asleep(const struct progress *p);

#endif
