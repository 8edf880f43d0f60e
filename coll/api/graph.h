/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives that were captured into graphs. Capturing makes a persistent request of the
 * call; each launch of the graph starts it when it comes there, and waits for its end.
 * Launches and plain calls of a communicator come in an order that ranks need not share,
 * so the calls of a graph have a communicator of their own, of the same ranks, that is
 * made when the first of them is captured.
 */
#ifndef WEFT_API_GRAPH_H
#define WEFT_API_GRAPH_H

#include "coll/api/call.h"

/* Whether a blocking call is for a graph: its stream is being captured (*capture: which
 * capture; 0: none). Errors of the stream. */
LOCK_HELD(lock_context)
enum weft_result graph_capture(struct weft_comm *comm, const struct weft_call *call,
			       const struct weft_opts *opts, uint64_t *capture);

/* Captures the call. Waits until all ranks do. Without the lock. */
LOCK_NOT_HELD(lock_context)
enum weft_result graph_add(struct weft_comm *comm, const struct weft_call *call,
			   const struct weft_opts *opts, uint64_t capture);

/* Why a call in a graph failed first; WEFT_SUCCESS: none did. */
LOCK_HELD(lock_context)
enum weft_result graphs_failed(const struct weft_comm *comm, const char **text);

/* Frees the calls of graphs that are gone; true when none is left. Without the lock. */
LOCK_NOT_HELD(lock_context) bool graphs_sweep(struct weft_comm *comm);

#endif
