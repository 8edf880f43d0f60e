/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of a call that failed. A long one completes at its sender only when its
 * receiver takes it; a receiver that failed, or never wanted it, would leave the sender's
 * buffer in use for good (rule D3). So when a peer's FAIL says that it has messages in
 * flight to us, they are taken, one after the other, into memory that nobody reads: as
 * much as the longest needs, since shm of libfabric 1.17 never ends what it has to
 * truncate.
 */
#include "config.h"

#include <stdlib.h>

#include "coll/exec/engine.h"
#include "coll/exec/name.h"

/* No message of a sane peer is longer. */
#define SINK_MAX (UINT64_C(1) << 30)

/* One standing receive. */
struct sink {
	struct list link; /* exec.sinks */
	struct exec *x;
	struct net_op *op;
	uint32_t comm, call;
	int32_t peer;
	struct stage *stage; /* where they go */
	bool pair;	     /* of a call of two ranks */
	bool closed;	     /* its communicator is */
};

static void sink_done(struct net_op *op, const struct net_result *result);

static void sink_release(struct sink *sink)
{
	list_remove(&sink->link);
	stage_put(sink->x, sink->stage);
	pool_put(&sink->x->sinks_pool, sink);
}

static bool sink_post(struct sink *sink)
{
	struct exec *x = sink->x;
	struct net_op *op = net_op_alloc(&x->net);
	struct iovec iov = {sink->stage->memory, sink->stage->size};
	void *desc = NULL;
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = x->net.addr[sink->peer],
		.tag = x->net.job ^ name_pack(sink->pair ? NAME_PAIR : NAME_MESSAGE,
					      sink->comm, sink->call, 0),
		.ignore = NAME_INDEX_MASK,
		.context = op,
	};

	if (!op)
		return false;
	op->done = sink_done;
	op->owner = sink;
	op->peer = sink->peer;
	if (stage_desc(x, sink->stage, &desc) ||
	    fi_trecvmsg(x->net.ep, &msg, FI_COMPLETION)) {
		net_op_release(&x->net, op);
		return false;
	}
	sink->op = op;
	return true;
}

static void sink_done(struct net_op *op, const struct net_result *result)
{
	struct sink *sink = op->owner;
	const bool again = !sink->closed && result->err != FI_ECANCELED &&
			   (!result->err || result->err == FI_ETRUNC);

	net_op_release(&sink->x->net, op);
	sink->op = NULL;
	/* The sender repeats its FAIL while it has messages in flight. */
	if (!again || !sink_post(sink))
		sink_release(sink);
}

void sink_open(struct exec *x, const struct ctl_msg *fail)
{
	struct sink *sink;

	if (fail->fail.msg_bytes > SINK_MAX)
		return;
	list_foreach (pos, &x->sinks) {
		sink = container_of(pos, struct sink, link);
		if (sink->peer == fail->src && sink->comm == fail->comm &&
		    sink->call == fail->call && sink->pair == fail->pair)
			return;
	}
	sink = pool_get(&x->sinks_pool);
	if (!sink)
		return;
	*sink = (struct sink){.x = x,
			      .comm = fail->comm,
			      .call = fail->call,
			      .peer = fail->src,
			      .pair = fail->pair};
	sink->stage = stage_get(x, fail->fail.msg_bytes);
	if (!sink->stage) {
		pool_put(&x->sinks_pool, sink);
		return;
	}
	list_push_back(&x->sinks, &sink->link);
	if (!sink_post(sink))
		sink_release(sink);
}

void sink_close(struct exec *x, uint32_t comm)
{
	list_foreach_safe (pos, tmp, &x->sinks) {
		struct sink *sink = container_of(pos, struct sink, link);

		if (sink->comm != comm)
			continue;
		sink->closed = true;
		fi_cancel(&x->net.ep->fid, sink->op);
	}
}

void sinks_init(struct exec *x)
{
	list_init(&x->sinks);
	pool_init(&x->sinks_pool, sizeof(struct sink));
}

/* The endpoint is closed: what was posted is ours again. */
void sinks_fini(struct exec *x)
{
	struct list *node;

	while ((node = list_pop_front(&x->sinks)))
		stage_put(x, container_of(node, struct sink, link)->stage);
	pool_fini(&x->sinks_pool);
}
