/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that are made once and started many times, by weft_req_start() or by a graph. */
#ifndef WEFT_API_PERSIST_H
#define WEFT_API_PERSIST_H

#include "coll/api/call.h"

LOCK_HELD(lock_context)
enum weft_result persist_init(struct weft_comm *comm, const struct weft_call *call,
			      const struct weft_opts *opts, struct weft_req **req);

/* What a failed call leaves registered it must not (rule D3). */
LOCK_HELD(lock_context) void persist_unhold(struct weft_req *req);

/* Starts one with its place in a graph, which is closed where that fails; what came of
 * the start before is dropped. BUSY: that has failed, and is not over. */
LOCK_HELD(lock_context)
enum weft_result persist_replay(struct weft_req *req, struct passage *passage);
/* Frees one that graphs started; false: its last start is not over. */
LOCK_HELD(lock_context) bool persist_end(struct weft_req *req);

#endif
