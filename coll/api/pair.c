/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two ranks, and groups of them. */
#include "config.h"

#include <stdio.h>

#include "coll/algo/pair.h"
#include "coll/api/call.h"
#include "coll/api/error.h"

/* A message as its caller gave it. */
struct pair_call {
	bool sends;
	struct weft_buf buf;
	int32_t peer;
};

static enum weft_result pair_check(const struct weft_comm *comm,
				   const struct pair_call *call,
				   const struct weft_opts *opts)
{
	const char *name = call->sends ? "weft_send" : "weft_recv";
	enum weft_result result = opts ? call_check_opts(opts) : WEFT_SUCCESS;

	if (result == WEFT_SUCCESS)
		result = call_check_buf(&call->buf, "buf");
	if (result != WEFT_SUCCESS)
		return result;
	if (opts && opts->algorithm)
		return error_set(WEFT_ERR_ARG,
				 "%s: weft_opts.algorithm is \"%s\", messages have none",
				 name, opts->algorithm);
	if (call->peer < 0 || call->peer >= comm->size)
		return error_set(WEFT_ERR_ARG, "%s: peer is %d, ranks are 0 to %d", name,
				 call->peer, comm->size - 1);
	if (call->peer == comm->rank)
		return error_set(WEFT_ERR_ARG,
				 "%s: peer is %d, this rank itself: copy the memory",
				 name, call->peer);
	if (comm->grouping && opts && opts->stream_kind != WEFT_STREAM_NONE)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "%s: weft_opts.stream: messages of a group take no "
				 "stream in this version",
				 name);
	if (call->buf.count > (uint64_t)PTRDIFF_MAX / weft_type_size(call->buf.type))
		return error_set(WEFT_ERR_ARG, "%s of %llu %s: more than memory can hold",
				 name, (unsigned long long)call->buf.count,
				 weft_type_name(call->buf.type));
	return WEFT_SUCCESS;
}

LOCK_HELD(lock_context)
static enum weft_result pair_failed_earlier(const struct weft_comm *comm, int32_t peer)
{
	const char *text;
	enum weft_result cause = exec_comm_failed(comm->ctx->exec, comm->number, &text);

	if (cause == WEFT_SUCCESS)
		cause = exec_pair_failed(comm->ctx->exec, comm->number,
					 comm->ranks ? comm->ranks[peer] : peer, &text);
	if (cause == WEFT_SUCCESS)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_COMM,
			 "communicator %u failed earlier for messages with rank %d (%s): "
			 "%s; destroy it and create another",
			 comm->number, peer, weft_strerror(cause), text);
}

LOCK_HELD(lock_context)
static enum weft_result pair_start_req(struct weft_comm *comm,
				       const struct pair_call *call,
				       const struct weft_opts *opts, struct weft_req *req)
{
	const int64_t timeout_us = opts ? opts->timeout_us : 0;
	/* The executor's names are the context's. */
	const int32_t peer = comm->ranks ? comm->ranks[call->peer] : call->peer,
		      own = comm->ranks ? comm->ranks[comm->rank] : comm->rank;
	struct exec_call run = {
		.comm = comm->number,
		.plan = req->plan->plan,
		.src = call->sends ? call->buf.addr : NULL,
		.dst = call->sends ? NULL : call->buf.addr,
		.type = call->buf.type,
		.pair = true,
		.peer = peer,
		.timeout_us = timeout_us ? timeout_us : comm->ctx->timeout_us,
		.id = {.count = call->buf.count,
		       .root = call->sends ? own : peer,
		       .coll = SIG_COLL_PAIR,
		       .type = (uint8_t)call->buf.type},
	};
	struct device_stream stream;
	enum weft_result result =
		device_find(comm, call->sends ? &call->buf : NULL,
			    call->sends ? NULL : &call->buf, false, opts, &run.device);

	if (result == WEFT_SUCCESS)
		result = exec_pair_next(comm->ctx->exec, comm->number, peer, call->sends,
					&run.call);
	stream = device_stream(opts, &run.device);
	if (result == WEFT_SUCCESS)
		result = device_pass(comm->ctx, &stream, &run);
	if (result != WEFT_SUCCESS)
		return result;
	result = exec_req_start(req->exec, &run);
	if (result != WEFT_SUCCESS)
		device_pass_back(&run);
	return result;
}

LOCK_HELD(lock_context)
static enum weft_result pair_start(struct weft_comm *comm, const struct pair_call *call,
				   const struct weft_opts *opts, struct weft_req **out)
{
	const struct plan_call shape = {.rank = comm->rank,
					.size = comm->size,
					.count = call->buf.count,
					.elem_size =
						(uint32_t)weft_type_size(call->buf.type),
					.root = call->peer};
	const struct algo *algo = call->sends ? &pair_send : &pair_receive;
	enum weft_result result = pair_check(comm, call, opts);
	struct comm_plan *plan;
	struct weft_req *req;

	if (result == WEFT_SUCCESS)
		result = pair_failed_earlier(comm, call->peer);
	if (result == WEFT_SUCCESS)
		result = comm_plan_get(comm, WEFT_COLL_COUNT, algo, &shape, &plan);
	if (result != WEFT_SUCCESS)
		return result;
	result = comm_req_get(comm, plan, &req);
	if (result != WEFT_SUCCESS) {
		comm_plan_put(comm, plan);
		return result;
	}
	result = pair_start_req(comm, call, opts, req);
	if (result != WEFT_SUCCESS) {
		comm_req_put(req);
		return result;
	}
	*out = req;
	return WEFT_SUCCESS;
}

static enum weft_result pair_begin(struct weft_comm *comm, const struct pair_call *call,
				   const struct weft_opts *opts, struct weft_req **req)
{
	enum weft_result result;

	error_clear();
	if (!comm || !req)
		return error_set(WEFT_ERR_ARG, "%s is NULL", comm ? "req" : "comm");
	ctx_lock(comm->ctx);
	result = pair_start(comm, call, opts, req);
	if (result == WEFT_SUCCESS) {
		exec_progress(comm->ctx->exec);
		ctx_started(comm->ctx);
	}
	ctx_unlock(comm->ctx);
	return result;
}

/* Starts; outside of a group it waits as well. */
static enum weft_result pair_run(struct weft_comm *comm, const struct pair_call *call,
				 const struct weft_opts *opts)
{
	struct weft_req *req;
	enum weft_result result;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "comm is NULL");
	ctx_lock(comm->ctx);
	result = pair_start(comm, call, opts, &req);
	if (result == WEFT_SUCCESS && comm->grouping) {
		list_push_back(&comm->group, &req->member);
		ctx_started(comm->ctx);
	} else if (result == WEFT_SUCCESS && opts &&
		   opts->stream_kind != WEFT_STREAM_NONE) {
		call_leave_streamed(req);
	} else if (result == WEFT_SUCCESS) {
		result = call_end(req);
	}
	ctx_unlock(comm->ctx);
	return result;
}

static struct pair_call pair_make(bool sends, const void *buf, uint64_t count,
				  enum weft_type type, int32_t peer)
{
	return (struct pair_call){
		.sends = sends,
		.buf = {.addr = (void *)buf, .count = count, .type = type},
		.peer = peer};
}

enum weft_result weft_send(struct weft_comm *comm, const void *buf, uint64_t count,
			   enum weft_type type, int32_t peer,
			   const struct weft_opts *opts)
{
	const struct pair_call call = pair_make(true, buf, count, type, peer);

	return pair_run(comm, &call, opts);
}

enum weft_result weft_send_start(struct weft_comm *comm, const void *buf, uint64_t count,
				 enum weft_type type, int32_t peer,
				 const struct weft_opts *opts, struct weft_req **req)
{
	const struct pair_call call = pair_make(true, buf, count, type, peer);

	return pair_begin(comm, &call, opts, req);
}

enum weft_result weft_recv(struct weft_comm *comm, void *buf, uint64_t count,
			   enum weft_type type, int32_t peer,
			   const struct weft_opts *opts)
{
	const struct pair_call call = pair_make(false, buf, count, type, peer);

	return pair_run(comm, &call, opts);
}

enum weft_result weft_recv_start(struct weft_comm *comm, void *buf, uint64_t count,
				 enum weft_type type, int32_t peer,
				 const struct weft_opts *opts, struct weft_req **req)
{
	const struct pair_call call = pair_make(false, buf, count, type, peer);

	return pair_begin(comm, &call, opts, req);
}

/* ---- groups ---------------------------------------------------------------------------
 */

enum weft_result weft_group_begin(struct weft_comm *comm)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "weft_group_begin: comm is NULL");
	ctx_lock(comm->ctx);
	if (comm->grouping)
		result = error_set(WEFT_ERR_ARG,
				   "weft_group_begin: a group of communicator %u is open "
				   "already: end it first",
				   comm->number);
	comm->grouping = true;
	ctx_unlock(comm->ctx);
	return result;
}

/* Waits for all; the first failure is the group's. */
LOCK_HELD(lock_context) static enum weft_result group_end(struct weft_comm *comm)
{
	enum weft_result first = WEFT_SUCCESS;
	char text[1024] = "";
	struct list *node;

	comm->grouping = false;
	while ((node = list_pop_front(&comm->group))) {
		const enum weft_result result =
			call_end(container_of(node, struct weft_req, member));

		if (result == WEFT_SUCCESS || first != WEFT_SUCCESS)
			continue;
		first = result;
		snprintf(text, sizeof(text), "%s", weft_error_detail());
	}
	return first == WEFT_SUCCESS ? first : error_set(first, "%s", text);
}

enum weft_result weft_group_end(struct weft_comm *comm)
{
	enum weft_result result;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "weft_group_end: comm is NULL");
	ctx_lock(comm->ctx);
	if (comm->grouping)
		result = group_end(comm);
	else
		result = error_set(WEFT_ERR_ARG,
				   "weft_group_end: no group of communicator %u is open",
				   comm->number);
	ctx_unlock(comm->ctx);
	return result;
}
