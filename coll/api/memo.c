/* SPDX-License-Identifier: BSD-2-Clause */
/* See memo.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/api/memo.h"

/* As if there were none. */
static bool opts_say_nothing(const struct weft_opts *o)
{
	return o->size >= sizeof(*o) && o->timeout_us == WEFT_TIMEOUT_DEFAULT &&
	       !o->algorithm && !o->flags && o->stream_kind == WEFT_STREAM_NONE &&
	       !o->stream && o->src_kind == WEFT_MEM_HOST &&
	       o->dst_kind == WEFT_MEM_HOST && !o->src_mem && !o->dst_mem;
}

static bool memo_may(const struct weft_call *call, const struct weft_opts *opts)
{
	return (!opts || opts_say_nothing(opts)) && call->size >= sizeof(*call) &&
	       call->op < WEFT_OP_USER && (unsigned)call->coll < WEFT_COLL_COUNT &&
	       call->src.kind == WEFT_MEM_HOST && call->dst.kind == WEFT_MEM_HOST &&
	       !call->send_counts && !call->recv_counts && !call->dynamic;
}

static bool memo_buf_same(const struct weft_buf *a, const struct weft_buf *b)
{
	return a->addr == b->addr && a->count == b->count && a->type == b->type &&
	       a->kind == b->kind && a->device == b->device && a->mem == b->mem;
}

struct call_memo *memo_find(const struct weft_comm *comm, const struct weft_call *call,
			    const struct weft_opts *opts)
{
	struct call_memo *memo = memo_may(call, opts) ? comm->memo[call->coll] : NULL;

	if (!memo || memo->call.op != call->op || memo->call.root != call->root ||
	    memo->out.plan.nodes != comm->nodes ||
	    !memo_buf_same(&memo->call.src, &call->src) ||
	    !memo_buf_same(&memo->call.dst, &call->dst))
		return NULL;
	return memo;
}

void memo_put(struct weft_comm *comm, const struct weft_call *call,
	      const struct weft_opts *opts, const struct checked_call *out)
{
	struct call_memo **memo = &comm->memo[out->coll];

	/* Of a (v) form only the root may have counts. */
	if (!memo_may(call, opts) || out->plan.vector)
		return;
	if (!*memo)
		*memo = malloc(sizeof(**memo));
	if (!*memo)
		return;
	(*memo)->call = *call;
	memcpy(&(*memo)->out, out, offsetof(struct checked_call, vector));
	(*memo)->plan = NULL;
}

void comm_memos_forget(struct weft_comm *comm, const struct comm_plan *plan)
{
	for (int i = 0; i < WEFT_COLL_COUNT; i++) {
		if (comm->memo[i] && comm->memo[i]->plan == plan)
			comm->memo[i]->plan = NULL;
	}
}

void comm_memos_free(struct weft_comm *comm)
{
	for (int i = 0; i < WEFT_COLL_COUNT; i++)
		free(comm->memo[i]);
}
