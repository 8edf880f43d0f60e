/* SPDX-License-Identifier: BSD-2-Clause */
/* See graph.h. */
#include "config.h"

#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/api/graph.h"
#include "coll/api/persist.h"

/* The communicator of the calls of one graph. */
struct graph_comm {
	struct weft_comm *own;
	uint64_t capture;
	int calls;
};

struct graph_call {
	struct list link; /* weft_comm.graphs of the caller's, the latest first */
	struct graph_comm *graph;
	struct weft_req *req; /* persistent, of graph->own; NULL: it was not made */
	struct exec_replay *replay;
};

enum weft_result graph_capture(struct weft_comm *comm, const struct weft_call *call,
			       const struct weft_opts *opts, uint64_t *capture)
{
	struct checked_call checked;
	enum weft_result result;

	*capture = 0;
	if (!opts || opts->size < sizeof(*opts) || opts->stream_kind == WEFT_STREAM_NONE)
		return WEFT_SUCCESS;
	/* Which device the stream belongs to comes of the whole call. */
	result = call_check(comm, call, opts, &checked);
	if (result != WEFT_SUCCESS)
		return result;
	return exec_stream_capture(comm->ctx->exec, checked.stream.device,
				   checked.stream.stream, capture);
}

/* A launch of the graph has come to the call. */
LOCK_HELD(lock_context) static void graph_begin(void *arg)
{
	struct graph_call *g = arg;

	/* What fails is the communicator's to tell. */
	(void)persist_replay(g->req, exec_replay_passage(g->replay));
}

static enum weft_result graph_comm_make(struct weft_comm *comm, uint64_t capture,
					struct graph_comm **out)
{
	struct graph_comm *graph = calloc(1, sizeof(*graph));
	enum weft_result result;

	if (!graph)
		return error_set(WEFT_ERR_NOMEM, "no memory for a graph");
	graph->capture = capture;
	result = weft_comm_dup(comm, NULL, &graph->own);
	if (result != WEFT_SUCCESS) {
		free(graph);
		return result;
	}
	*out = graph;
	return WEFT_SUCCESS;
}

/* That of the capture, or a new one. */
static enum weft_result graph_comm_of(struct weft_comm *comm, uint64_t capture,
				      struct graph_comm **graph)
{
	struct graph_comm *found = NULL;

	ctx_lock(comm->ctx);
	if (!list_empty(&comm->graphs))
		found = container_of(comm->graphs.next, struct graph_call, link)->graph;
	ctx_unlock(comm->ctx);
	if (!found || found->capture != capture)
		return graph_comm_make(comm, capture, graph);
	*graph = found;
	return WEFT_SUCCESS;
}

/* The request and its place in the stream. */
LOCK_HELD(lock_context)
static enum weft_result graph_call_make(struct graph_call *g,
					const struct weft_call *call,
					const struct weft_opts *opts)
{
	struct weft_comm *own = g->graph->own;
	enum weft_result result = persist_init(own, call, opts, &g->req);

	if (result != WEFT_SUCCESS)
		return result;
	return exec_replay_open(own->ctx->exec, g->req->persist->device,
				g->req->persist->stream, graph_begin, g, &g->replay);
}

/* The call is gone; its communicator, too, with the last. False: not yet. */
static bool graph_call_free(struct graph_call *g)
{
	struct graph_comm *graph = g->graph;

	if (graph->calls == 1 && weft_comm_destroy(graph->own) != WEFT_SUCCESS)
		return false;
	if (--graph->calls == 0)
		free(graph);
	free(g);
	return true;
}

enum weft_result graph_add(struct weft_comm *comm, const struct weft_call *call,
			   const struct weft_opts *opts, uint64_t capture)
{
	struct graph_call *g = calloc(1, sizeof(*g));
	enum weft_result result;

	if (!g)
		return error_set(WEFT_ERR_NOMEM, "no memory for a call in a graph");
	list_init(&g->link);
	graphs_sweep(comm);
	result = graph_comm_of(comm, capture, &g->graph);
	if (result != WEFT_SUCCESS) {
		free(g);
		return result;
	}
	g->graph->calls++;
	ctx_lock(comm->ctx);
	result = device_thread(comm->ctx);
	if (result == WEFT_SUCCESS)
		result = graph_call_make(g, call, opts);
	list_push_front(&comm->graphs, &g->link);
	ctx_started(comm->ctx);
	ctx_unlock(comm->ctx);
	return result;
}

enum weft_result graphs_failed(const struct weft_comm *comm, const char **text)
{
	list_foreach (pos, &comm->graphs) {
		const struct graph_call *g = container_of(pos, struct graph_call, link);
		const enum weft_result cause =
			exec_comm_failed(comm->ctx->exec, g->graph->own->number, text);

		if (cause != WEFT_SUCCESS)
			return cause;
	}
	return WEFT_SUCCESS;
}

/* Its graph is gone, and its last start has ended. */
LOCK_HELD(lock_context) static bool graph_call_end(struct graph_call *g)
{
	if (g->replay && !exec_replay_is_gone(g->replay))
		return false;
	if (g->req && !persist_end(g->req))
		return false;
	if (g->replay)
		exec_replay_close(g->graph->own->ctx->exec, g->replay);
	g->req = NULL;
	g->replay = NULL;
	return true;
}

bool graphs_sweep(struct weft_comm *comm)
{
	struct list over;

	if (list_empty(&comm->graphs))
		return true;
	list_init(&over);
	ctx_lock(comm->ctx);
	list_foreach_safe (pos, tmp, &comm->graphs) {
		if (!graph_call_end(container_of(pos, struct graph_call, link)))
			continue;
		list_remove(pos);
		list_push_back(&over, pos);
	}
	ctx_unlock(comm->ctx);
	list_foreach_safe (pos, tmp, &over) {
		list_remove(pos);
		if (graph_call_free(container_of(pos, struct graph_call, link)))
			continue;
		ctx_lock(comm->ctx);
		list_push_back(&comm->graphs, pos);
		ctx_unlock(comm->ctx);
	}
	return list_empty(&comm->graphs);
}
