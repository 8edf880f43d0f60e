/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that were in order, and what came of them: most are made again and again. The
 * last one of each collective, of those that depend on nothing but the call and the
 * communicator: plain ones whose options say nothing, with operations of the library. So
 * a loop that makes several calls in turn finds all of them.
 */
#ifndef WEFT_API_MEMO_H
#define WEFT_API_MEMO_H

#include "coll/api/call.h"

struct call_memo {
	struct weft_call call;
	struct checked_call out; /* but for its vector and dynamic parts */
	/* Once it has run by lines: what the executor was told, but for the call's
	 * number. NULL: it has not, or its plan is forgotten. */
	struct comm_plan *plan;
	struct exec_call run;
};

/* The memo of such a call, or NULL. */
struct call_memo *memo_find(const struct weft_comm *comm, const struct weft_call *call,
			    const struct weft_opts *opts);

/* What memo_find() will find, where the call is one that is remembered. A memory that is
 * not there is missed by nobody. */
void memo_put(struct weft_comm *comm, const struct weft_call *call,
	      const struct weft_opts *opts, const struct checked_call *out);

#endif
