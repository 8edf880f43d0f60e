/* SPDX-License-Identifier: BSD-2-Clause */
/* Persistent calls: see persist.h and weft/weft_persistent.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/api/persist.h"
#include "coll/exec/twin.h"

/* Buffers stay registered from call to call, until one fails. */
LOCK_HELD(lock_context) static void persist_hold(struct weft_req *req)
{
	struct comm_persist *p = req->persist;
	struct exec *x = req->comm->ctx->exec;

	exec_hold(x, p->buf[0], p->hold_len[0], false, &p->hold[0]);
	exec_hold(x, p->buf[1], p->hold_len[1], true, &p->hold[1]);
}

void persist_unhold(struct weft_req *req)
{
	for (int i = 0; i < 2; i++)
		exec_hold_end(req->comm->ctx->exec, &req->persist->hold[i]);
}

LOCK_HELD(lock_context) static void persist_free(struct weft_req *req)
{
	struct comm_persist *p = req->persist;
	const char *text;

	if (p) {
		persist_unhold(req);
		if (p->run.device.kept)
			exec_kept_close(req->comm->ctx->exec, p->run.device.kept);
		free(p->tables);
		if (p->run.twin)
			exec_twin_close(p->run.twin,
					exec_comm_failed(req->comm->ctx->exec,
							 req->comm->number,
							 &text) != WEFT_SUCCESS);
	}
	free(req->persist);
	req->persist = NULL;
}

/* The tables are the communicator's only until its next call: keeps a copy. */
static enum weft_result persist_tables(struct comm_persist *p,
				       const struct weft_comm *comm,
				       const struct checked_vector *v)
{
	const size_t len = 2 * (size_t)comm->size + 1;
	struct checked_vector own = *v;
	enum weft_result result;

	p->tables = malloc(2 * len * sizeof(*p->tables));
	if (!p->tables)
		return error_set(WEFT_ERR_NOMEM, "no memory for counts");
	if (v->send)
		own.send = memcpy(p->tables, v->send, len * sizeof(*p->tables));
	if (v->recv)
		own.recv = memcpy(p->tables + len, v->recv, len * sizeof(*p->tables));
	p->own[0] = v->own[0];
	p->own[1] = v->own[1];
	result = call_bind(p->run.plan, &own, p->disp);
	for (uint32_t i = 0; i < COMM_PARTS; i++) {
		if (p->disp[i] == own.own)
			p->disp[i] = p->own;
	}
	return result;
}

/* The buffers as requests register them: as long as the plan or the tables say. */
static void persist_buffers(struct comm_persist *p, const struct checked_call *call,
			    const struct plan *plan)
{
	const size_t elem = weft_type_size(call->type);
	uint64_t len[2] = {plan->buf_len[PLAN_SRC], plan->buf_len[PLAN_DST]};

	if (call->coll == WEFT_COLL_ALLTOALLV_DYNAMIC) {
		len[0] = call->dynamic.src_len;
		len[1] = call->dynamic.dst_len;
	} else if (call->plan.vector) {
		len[0] = call->vector.src_len;
		len[1] = call->vector.dst_len;
	}
	p->buf[0] = call->src;
	p->buf[1] = call->dst;
	for (int i = 0; i < 2; i++)
		p->hold_len[i] = p->buf[i] ? len[i] * elem : 0;
	/* Of device memory the mirrors are what is registered. */
	if (call->device.src >= 0)
		p->hold_len[0] = 0;
	if (call->device.dst >= 0)
		p->hold_len[1] = 0;
}

LOCK_HELD(lock_context)
static enum weft_result persist_make(struct weft_comm *comm,
				     const struct checked_call *call,
				     struct weft_req *req)
{
	struct comm_persist *p = calloc(1, sizeof(*p));
	enum weft_result result = WEFT_SUCCESS;

	if (!p)
		return error_set(WEFT_ERR_NOMEM, "no memory for a persistent call");
	req->persist = p;
	p->run = call_describe(comm, call, req->plan);
	p->streamed = call->stream.given;
	p->device = call->stream.device;
	p->stream = call->stream.stream;
	persist_buffers(p, call, req->plan->plan);
	/* Its starts hold a stream, when it is too late to pin anything. */
	if (p->streamed && p->run.device.on)
		result = exec_kept_open(comm->ctx->exec, &p->run);
	if (result == WEFT_SUCCESS && call->coll == WEFT_COLL_ALLTOALLV_DYNAMIC) {
		struct checked_call own = *call;

		own.dynamic.device.kept = p->run.device.kept;
		return call_take_dynamic(comm, &own, true, req);
	}
	if (result != WEFT_SUCCESS || !call->plan.vector)
		return result;
	result = persist_tables(p, comm, &call->vector);
	p->bind.disp = p->disp;
	p->run.bind = &p->bind;
	return result;
}

/* WEFT_DOUBLE is asked for, by options that are long enough. */
static bool call_is_doubled(const struct weft_opts *opts)
{
	return opts && opts->size >= sizeof(*opts) && opts->flags & WEFT_DOUBLE;
}

/* Rule F5 needs collectives whose end at any rank waits for the start of every rank. */
static enum weft_result double_check(const struct weft_call *call)
{
	switch (call->coll) {
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLREDUCE:
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_ALLTOALL:
		break;
	default:
		return error_set(
			WEFT_ERR_UNSUPPORTED,
			"WEFT_DOUBLE: %s is not supported, for no rank's end "
			"would wait for all to start, or it has no blocks of one "
			"length; supported: allgather, allreduce, "
			"reduce_scatter, alltoall",
			weft_coll_name(call->coll));
	}
	if (call->size >= sizeof(*call) && call->dst.addr)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_DOUBLE: dst.addr must be NULL: the destination is "
				 "the library's, and weft_req_result() says where");
	return WEFT_SUCCESS;
}

/* As a plain call, whose destination lies somewhere apart: it is never looked at. */
LOCK_HELD(lock_context)
static enum weft_result double_prepare(struct weft_comm *comm,
				       const struct weft_call *call,
				       const struct weft_opts *opts,
				       struct checked_call *checked,
				       struct weft_req **req)
{
	enum weft_result result = double_check(call);
	struct weft_opts plain = *opts;
	struct weft_call apart = *call;

	if (result != WEFT_SUCCESS)
		return result;
	plain.flags &= ~WEFT_DOUBLE;
	if (apart.src.addr)
		apart.dst.addr = (char *)apart.src.addr +
				 apart.src.count * weft_type_size(apart.src.type) + 64;
	result = call_prepare(comm, &apart, &plain, true, checked, req);
	checked->dst = NULL;
	return result;
}

LOCK_HELD(lock_context)
static enum weft_result double_make(struct weft_comm *comm,
				    const struct checked_call *call, struct weft_req *req)
{
	enum weft_result result = WEFT_SUCCESS;

	if (call->device.on || call->stream.given)
		return error_set(
			WEFT_ERR_UNSUPPORTED,
			"WEFT_DOUBLE: the destination is the library's, in host "
			"memory: device memory and streams are not supported with "
			"it");
	result = persist_make(comm, call, req);
	if (result == WEFT_SUCCESS)
		result = exec_twin_open(comm->ctx->exec, comm->number, comm->doubled + 1,
					req->plan->plan, weft_type_size(call->type),
					&req->persist->run.twin);
	if (result == WEFT_SUCCESS)
		comm->doubled++;
	return result;
}

enum weft_result persist_init(struct weft_comm *comm, const struct weft_call *call,
			      const struct weft_opts *opts, struct weft_req **out)
{
	const bool doubled = call_is_doubled(opts);
	struct checked_call checked;
	struct weft_req *req;
	enum weft_result result;

	result = doubled ? double_prepare(comm, call, opts, &checked, &req)
			 : call_prepare(comm, call, opts, false, &checked, &req);
	if (result != WEFT_SUCCESS)
		return result;
	result = doubled ? double_make(comm, &checked, req)
			 : persist_make(comm, &checked, req);
	if (result == WEFT_SUCCESS) {
		*out = req;
		return result;
	}
	persist_free(req);
	comm_req_put(req);
	return result;
}

enum weft_result weft_call_init(struct weft_comm *comm, const struct weft_call *call,
				const struct weft_opts *opts, struct weft_req **out)
{
	enum weft_result result;

	error_clear();
	if (!comm || !call || !out)
		return error_set(WEFT_ERR_ARG, "%s is NULL",
				 !comm ? "comm" : (!call ? "call" : "req"));
	ctx_lock(comm->ctx);
	result = persist_init(comm, call, opts, out);
	ctx_unlock(comm->ctx);
	return result;
}

enum weft_result weft_req_result(struct weft_req *req, const void **result)
{
	struct weft_ctx *ctx;
	enum weft_result got = WEFT_SUCCESS;

	error_clear();
	if (!req || !result)
		return error_set(WEFT_ERR_ARG, "weft_req_result: %s is NULL",
				 req ? "result" : "req");
	ctx = req->comm->ctx;
	ctx_lock(ctx);
	if (!req->persist || !req->persist->run.twin)
		got = error_set(WEFT_ERR_ARG, "weft_req_result: the request was not made "
					      "with WEFT_DOUBLE");
	else if (req->persist->started || !req->persist->ended)
		got = error_set(WEFT_ERR_ARG,
				"weft_req_result: there is no result: the request is "
				"started and not waited for, or never ended well");
	else
		*result = exec_twin_result(req->persist->run.twin);
	ctx_unlock(ctx);
	return got;
}

/* It has its place in a stream, or needs none. */
LOCK_HELD(lock_context) static enum weft_result persist_begin(struct weft_req *req)
{
	struct weft_comm *comm = req->comm;
	struct comm_persist *p = req->persist;
	enum weft_result result = WEFT_SUCCESS;

	persist_hold(req);
	p->run.call = comm->next_call;
	call_hand(req, &p->run);
	if (req->dynamic && dynamic_is_taken(req->dynamic))
		result = dynamic_begin(req->dynamic, &p->run);
	if (result == WEFT_SUCCESS)
		result = exec_req_start(req->exec, &p->run);
	if (result != WEFT_SUCCESS) {
		device_pass_back(&p->run);
		return result;
	}
	p->started = true;
	comm->next_call++;
	return WEFT_SUCCESS;
}

LOCK_HELD(lock_context) static enum weft_result persist_start(struct weft_req *req)
{
	struct weft_ctx *ctx = req->comm->ctx;
	struct comm_persist *p = req->persist;
	const struct device_stream stream = {
		.given = p->streamed, .device = p->device, .stream = p->stream};
	enum weft_result result = call_failed_earlier(req->comm);

	if (result == WEFT_SUCCESS)
		result = device_pass(ctx, &stream, &p->run);
	if (result == WEFT_SUCCESS)
		result = persist_begin(req);
	if (result != WEFT_SUCCESS)
		return result;
	call_go_on(req);
	return WEFT_SUCCESS;
}

enum weft_result weft_req_start(struct weft_req *req)
{
	struct weft_ctx *ctx;
	enum weft_result result;

	error_clear();
	if (!req)
		return error_set(WEFT_ERR_ARG, "weft_req_start: req is NULL");
	ctx = req->comm->ctx;
	ctx_lock(ctx);
	if (!req->persist)
		result = error_set(WEFT_ERR_ARG,
				   "weft_req_start: the request is of one call, which "
				   "has started: persistent ones come from "
				   "weft_call_init()");
	else if (req->persist->started)
		result = error_set(WEFT_ERR_ARG,
				   "weft_req_start: the request is started: wait for it "
				   "first");
	else
		result = persist_start(req);
	ctx_unlock(ctx);
	return result;
}

enum weft_result weft_req_free(struct weft_req *req)
{
	struct weft_ctx *ctx;
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!req)
		return error_set(WEFT_ERR_ARG, "weft_req_free: req is NULL");
	ctx = req->comm->ctx;
	ctx_lock(ctx);
	if (!req->persist) {
		result = error_set(WEFT_ERR_ARG,
				   "weft_req_free: the request is of one call, and gone "
				   "when its end is told");
	} else if (req->persist->started) {
		result = error_set(WEFT_ERR_BUSY,
				   "weft_req_free: the request is started: wait for it "
				   "first");
	} else {
		persist_free(req);
		comm_req_put(req);
	}
	ctx_unlock(ctx);
	return result;
}

/* ---- started by graphs ----------------------------------------------------------------
 */

/* Whether it can be started, or freed: what came of its last start is taken. */
LOCK_HELD(lock_context) static bool persist_is_over(struct weft_req *req)
{
	if (req->persist->started && exec_req_state(req->exec) == EXEC_DONE)
		call_finish(req);
	return !req->persist->started;
}

enum weft_result persist_replay(struct weft_req *req, struct passage *passage)
{
	enum weft_result result = WEFT_ERR_BUSY;

	/* One that failed may still be written to by a peer. */
	if (persist_is_over(req))
		result = call_failed_earlier(req->comm);
	req->persist->run.passage = passage;
	if (result == WEFT_SUCCESS)
		return persist_begin(req);
	device_pass_back(&req->persist->run);
	return result;
}

bool persist_end(struct weft_req *req)
{
	if (!persist_is_over(req))
		return false;
	persist_free(req);
	comm_req_put(req);
	return true;
}
