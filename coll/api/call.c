/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting a collective, waiting for it, and both at once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/api/call.h"
#include "coll/api/error.h"
#include "coll/api/memo.h"
#include "coll/exec/twin.h"
#include "util/lock_note.h"

/* How long a wait goes on for buffers of a failed call to become safe. Peers that live
 * answer within a round trip; for others waiting longer does not help. */
#define CALL_GRACE_US INT64_C(1000000)

/* Rounds that move something before other threads get a chance at the lock; and those
 * that do not, where no thread waits for it: to let go of it and to read the clock takes
 * as long as two looks. */
#define CALL_ROUNDS 16
#define CALL_LOOKS  8

/* ---- starting
 * ------------------------------------------------------------------------ */

LOCK_HELD(lock_context)
static enum weft_result call_failed_earlier(const struct weft_comm *comm)
{
	const char *text;
	enum weft_result cause = exec_comm_failed(comm->ctx->exec, comm->number, &text);

	if (cause == WEFT_SUCCESS)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_COMM,
			 "communicator %u failed earlier (%s): %s; destroy it and create "
			 "another",
			 comm->number, weft_strerror(cause), text);
}

/* The tables for the partitions of a plan that are bound late. */
static enum weft_result call_bind(const struct plan *plan, const struct checked_vector *v,
				  const uint64_t *disp[COMM_PARTS])
{
	if (plan->part_count > COMM_PARTS)
		return error_set(WEFT_ERR_INTERNAL, "%s has %u partitions",
				 plan->algorithm, plan->part_count);
	for (uint32_t p = 0; p < plan->part_count; p++) {
		switch ((enum plan_table_kind)plan->part[p].table) {
		case PLAN_TABLE_SEND:
			disp[p] = v->send;
			break;
		case PLAN_TABLE_RECV:
			disp[p] = v->recv;
			break;
		case PLAN_TABLE_OWN:
			disp[p] = v->own;
			break;
		case PLAN_TABLE_OTHER:
			disp[p] = NULL;
			break;
		}
	}
	return WEFT_SUCCESS;
}

/* A (v) form whose tables are known when it starts. */
static bool call_is_vector(const struct checked_call *call)
{
	return call->plan.vector && call->coll != WEFT_COLL_ALLTOALLV_DYNAMIC;
}

/* What the executor is told of a call, but for its number and the tables. */
static struct exec_call call_describe(const struct weft_comm *comm,
				      const struct checked_call *call,
				      const struct comm_plan *plan)
{
	return (struct exec_call){
		.comm = comm->number,
		.plan = plan->plan,
		.src = call->src,
		.dst = call->dst,
		.src_len = call_is_vector(call) ? call->vector.src_len : 0,
		.dst_len = call_is_vector(call) ? call->vector.dst_len : 0,
		.type = call->type,
		.op = call->op,
		.apply = call->user ? call->user->apply : NULL,
		.apply_arg = call->user ? call->user->arg : NULL,
		.timeout_us = call->timeout_us,
		.device = call->device,
		.id = {.count = call->count,
		       .root = call->plan.root,
		       .coll = (uint8_t)call->coll,
		       .type = (uint8_t)call->type,
		       .op = sig_op(call->op),
		       .algorithm = plan->algorithm},
	};
}

/* Memory for a dynamic call, which goes with its request. */
LOCK_HELD(lock_context)
static enum weft_result call_take_dynamic(struct weft_comm *comm,
					  const struct checked_call *call,
					  struct weft_req *req)
{
	if (!req->dynamic)
		req->dynamic = dynamic_alloc(comm);
	if (!req->dynamic)
		return error_set(WEFT_ERR_NOMEM, "no memory for counts of %d ranks",
				 comm->size);
	return dynamic_take(req->dynamic, &call->dynamic, req->plan->plan);
}

/* Starts the request, which runs req->plan. */
LOCK_HELD(lock_context)
static enum weft_result call_start_req(struct weft_comm *comm,
				       const struct checked_call *call,
				       struct weft_req *req)
{
	const uint64_t *disp[COMM_PARTS];
	const struct plan_binding bind = {.disp = disp};
	struct exec_call run = call_describe(comm, call, req->plan);
	enum weft_result result = WEFT_SUCCESS;

	run.call = comm->next_call;
	if (call_is_vector(call)) {
		result = call_bind(run.plan, &call->vector, disp);
		run.bind = &bind;
	} else if (call->coll == WEFT_COLL_ALLTOALLV_DYNAMIC) {
		result = call_take_dynamic(comm, call, req);
		if (result == WEFT_SUCCESS)
			result = dynamic_begin(req->dynamic, &run);
	}
	if (result == WEFT_SUCCESS)
		result = device_pass(comm->ctx, &call->stream, &run);
	if (result != WEFT_SUCCESS)
		return result;
	result = exec_req_start(req->exec, &run);
	if (result == WEFT_SUCCESS)
		comm->next_call++;
	else
		device_pass_back(&run);
	return result;
}

/* Checks the call and takes a request with its plan. */
LOCK_HELD(lock_context)
static enum weft_result call_prepare(struct weft_comm *comm, const struct weft_call *call,
				     const struct weft_opts *opts, bool roomy,
				     struct checked_call *checked, struct weft_req **req)
{
	struct comm_plan *plan;
	enum weft_result result = call_check(comm, call, opts, checked);

	if (result == WEFT_SUCCESS)
		result = call_failed_earlier(comm);
	if (roomy)
		checked->plan.roomy = true;
	if (result == WEFT_SUCCESS)
		result = comm_plan_get(comm, checked->coll, checked->algo, &checked->plan,
				       &plan);
	if (result != WEFT_SUCCESS)
		return result;
	result = comm_req_get(comm, plan, req);
	if (result != WEFT_SUCCESS)
		comm_plan_put(comm, plan);
	return result;
}

/* With the lock held. */
LOCK_HELD(lock_context)
static enum weft_result call_start(struct weft_comm *comm, const struct weft_call *call,
				   const struct weft_opts *opts, struct weft_req **out)
{
	struct checked_call checked;
	struct weft_req *req;
	enum weft_result result = call_prepare(comm, call, opts, false, &checked, &req);

	if (result != WEFT_SUCCESS)
		return result;
	result = call_start_req(comm, &checked, req);
	if (result != WEFT_SUCCESS) {
		comm_req_put(req);
		return result;
	}
	*out = req;
	return WEFT_SUCCESS;
}

enum weft_result weft_call_start(struct weft_comm *comm, const struct weft_call *call,
				 const struct weft_opts *opts, struct weft_req **req)
{
	enum weft_result result;

	error_clear();
	if (!comm || !call || !req)
		return error_set(WEFT_ERR_ARG, "%s is NULL",
				 !comm ? "comm" : (!call ? "call" : "req"));
	ctx_lock(comm->ctx);
	result = call_start(comm, call, opts, req);
	if (result == WEFT_SUCCESS) {
		exec_progress(comm->ctx->exec);
		ctx_started(comm->ctx);
	}
	ctx_unlock(comm->ctx);
	return result;
}

/* ---- persistent calls -----------------------------------------------------------------
 */

/* Buffers stay registered from call to call, until one fails. */
LOCK_HELD(lock_context) static void persist_hold(struct weft_req *req)
{
	struct comm_persist *p = req->persist;
	struct exec *x = req->comm->ctx->exec;

	exec_hold(x, p->buf[0], p->hold_len[0], false, &p->hold[0]);
	exec_hold(x, p->buf[1], p->hold_len[1], true, &p->hold[1]);
}

LOCK_HELD(lock_context) static void persist_unhold(struct weft_req *req)
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
	if (call->coll == WEFT_COLL_ALLTOALLV_DYNAMIC)
		return call_take_dynamic(comm, call, req);
	if (!call->plan.vector)
		return WEFT_SUCCESS;
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

LOCK_HELD(lock_context)
static enum weft_result persist_init(struct weft_comm *comm, const struct weft_call *call,
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

LOCK_HELD(lock_context) static enum weft_result persist_start(struct weft_req *req)
{
	struct weft_comm *comm = req->comm;
	struct comm_persist *p = req->persist;
	const struct device_stream stream = {
		.given = p->streamed, .device = p->device, .stream = p->stream};
	enum weft_result result = call_failed_earlier(comm);

	if (result == WEFT_SUCCESS && req->dynamic && dynamic_is_taken(req->dynamic))
		result = dynamic_begin(req->dynamic, &p->run);
	if (result == WEFT_SUCCESS)
		result = device_pass(comm->ctx, &stream, &p->run);
	if (result != WEFT_SUCCESS)
		return result;
	persist_hold(req);
	p->run.call = comm->next_call;
	result = exec_req_start(req->exec, &p->run);
	if (result != WEFT_SUCCESS) {
		device_pass_back(&p->run);
		return result;
	}
	p->started = true;
	comm->next_call++;
	exec_progress(comm->ctx->exec);
	ctx_started(comm->ctx);
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

/* ---- waiting
 * ------------------------------------------------------------------------- */

/* Takes the outcome of a request that is done; frees it, unless it is persistent. */
LOCK_HELD(lock_context) static enum weft_result call_finish(struct weft_req *req)
{
	const char *text;
	enum weft_result result = exec_req_result(req->exec, &text);

	if (result != WEFT_SUCCESS)
		error_set(result, "%s", text);
	else if (req->dynamic && dynamic_is_taken(req->dynamic))
		dynamic_finish(req->dynamic);
	/* What a failed call leaves registered it must not (rule D3). */
	if (req->persist && result != WEFT_SUCCESS)
		persist_unhold(req);
	if (req->persist) {
		req->persist->started = false;
		req->persist->ended = result == WEFT_SUCCESS;
	} else {
		comm_req_put(req);
	}
	return result;
}

LOCK_HELD(lock_context) static enum weft_result call_busy(struct weft_req *req)
{
	const char *text;
	enum weft_result result = exec_req_result(req->exec, &text);

	return error_set(WEFT_ERR_BUSY,
			 "the call failed (%s: %s), and a peer may still write into its "
			 "buffers: test or wait again",
			 weft_strerror(result), text);
}

/* A call that failed leaves when the others were told why. */
LOCK_HELD(lock_context) static bool call_has_words(struct weft_req *req)
{
	const char *text;

	return exec_req_result(req->exec, &text) != WEFT_SUCCESS &&
	       exec_has_words(req->comm->ctx->exec);
}

/* Looks a few times, until something moves. */
LOCK_HELD(lock_context) static bool call_look(struct weft_ctx *ctx, struct exec_req *req)
{
	if (exec_is_tight(ctx->exec) || exec_req_state(req) != EXEC_RUNNING)
		return false;
	for (int i = 0; i < CALL_LOOKS; i++) {
		if (exec_look(ctx->exec))
			return true;
		if (atomic_load_explicit(&ctx->wanted, memory_order_relaxed))
			return false;
	}
	return false;
}

/*
 * Progress until the request is done, `until` has passed, or it has been draining for
 * `grace`. Called with the lock, which is not held while waiting, and let go now and then
 * where there is nothing to wait for: other threads work on other requests.
 */
LOCK_HELD(lock_context)
static enum exec_state call_wait_rounds(struct weft_req *req, int64_t until,
					int64_t grace)
{
	struct weft_ctx *ctx = req->comm->ctx;
	struct exec_idle idle = {0};
	int64_t drain_until = INT64_MAX;

	if (exec_ends_by_lines(req->exec))
		return EXEC_DONE;
	for (uint32_t round = 1;; round++) {
		const bool moved = call_look(ctx, req->exec) || exec_progress(ctx->exec);
		const enum exec_state state = exec_req_state(req->exec);
		int64_t now;

		if (state == EXEC_DONE && !call_has_words(req))
			return state;
		if (moved && round % CALL_ROUNDS)
			continue;
		now = exec_clock(ctx->exec);
		if (state != EXEC_RUNNING && drain_until == INT64_MAX &&
		    grace != INT64_MAX)
			drain_until = now + grace;
		if (now >= until || now >= drain_until)
			return state;
		ctx_unlock(ctx);
		exec_idle_wait(ctx->exec, &idle, moved, now);
		ctx_lock(ctx);
	}
}

LOCK_HELD(lock_context)
static enum exec_state call_wait(struct weft_req *req, int64_t until, int64_t grace)
{
	struct weft_ctx *ctx = req->comm->ctx;
	enum exec_state state;

	ctx_wait_begin(ctx);
	state = call_wait_rounds(req, until, grace);
	ctx_wait_end(ctx);
	return state;
}

/* One that was told of its end lies in its communicator's list, waiting for the next
 * call: taken back once more, that list would be broken. With the lock held. */
static enum weft_result call_check_open(const struct weft_req *req, const char *caller)
{
	if (req->persist && !req->persist->started)
		return error_set(WEFT_ERR_ARG,
				 "%s: the persistent request is not started", caller);
	if (list_empty(&req->link))
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "%s: the request is over, and its outcome was told: a request "
			 "is gone with that",
			 caller);
}

enum weft_result weft_req_test(struct weft_req *req, int *done)
{
	struct weft_ctx *ctx;
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!req || !done)
		return error_set(WEFT_ERR_ARG, "weft_req_test: %s is NULL",
				 req ? "done" : "req");
	ctx = req->comm->ctx;
	ctx_lock(ctx);
	result = call_check_open(req, "weft_req_test");
	if (result != WEFT_SUCCESS) {
		ctx_unlock(ctx);
		return result;
	}
	exec_progress(ctx->exec);
	*done = 0;
	switch (exec_req_state(req->exec)) {
	case EXEC_DONE:
		*done = 1;
		result = call_finish(req);
		break;
	case EXEC_DRAINING:
		result = call_busy(req);
		break;
	case EXEC_RUNNING:
	case EXEC_IDLE:
		break;
	}
	ctx_unlock(ctx);
	return result;
}

enum weft_result weft_req_wait(struct weft_req *req, int64_t timeout_us)
{
	struct weft_ctx *ctx;
	enum weft_result result;
	enum exec_state state;
	const int64_t now = exec_now();
	int64_t until = INT64_MAX;

	error_clear();
	if (!req)
		return error_set(WEFT_ERR_ARG, "weft_req_wait: req is NULL");
	if (timeout_us < WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_req_wait: timeout_us is %lld",
				 (long long)timeout_us);
	if (timeout_us > 0 && timeout_us < INT64_MAX - now)
		until = now + timeout_us;
	ctx = req->comm->ctx;
	ctx_lock(ctx);
	result = call_check_open(req, "weft_req_wait");
	if (result != WEFT_SUCCESS) {
		ctx_unlock(ctx);
		return result;
	}
	/* By default the request ends by its own deadline; then the grace counts. */
	state = call_wait(req, until,
			  timeout_us == WEFT_TIMEOUT_DEFAULT ? CALL_GRACE_US : INT64_MAX);
	if (state == EXEC_DONE)
		result = call_finish(req);
	else if (state == EXEC_DRAINING)
		result = call_busy(req);
	else
		result = error_set(WEFT_ERR_TIMEOUT,
				   "%s is not finished after %.3f s; the request goes on",
				   exec_req_what(req->exec), (double)timeout_us * 1e-6);
	ctx_unlock(ctx);
	return result;
}

/* A blocking call that failed and whose buffers are not safe yet. */
LOCK_HELD(lock_context) static enum weft_result call_leave(struct weft_req *req)
{
	const char *text;
	enum weft_result result = exec_req_result(req->exec, &text);

	error_set(result,
		  "%s; a peer may still write into the buffers of this call: they are "
		  "safe when weft_comm_destroy() succeeds",
		  text);
	comm_req_hold(req);
	return result;
}

enum weft_result call_end(struct weft_req *req)
{
	return call_wait(req, INT64_MAX, CALL_GRACE_US) == EXEC_DONE ? call_finish(req)
								     : call_leave(req);
}

/* A call that was made before, and went by lines: true where it has ended, well. */
LOCK_HELD(lock_context)
static bool call_quick(struct weft_comm *comm, struct call_memo *memo)
{
	/* Its request lies there: nothing can refuse it, should it have to be started. */
	if (!memo || !memo->plan || list_empty(&memo->plan->idle))
		return false;
	memo->run.call = comm->next_call;
	if (!exec_quick(comm->ctx->exec, &memo->run))
		return false;
	comm->next_call++;
	return true;
}

/* The next one like it may be quick. */
LOCK_HELD(lock_context)
static void call_remember(struct weft_comm *comm, struct call_memo *memo,
			  struct comm_plan *plan)
{
	if (!memo || memo->plan || plan->plan->lines != PLAN_LINES_NEAR)
		return;
	memo->plan = plan;
	memo->run = call_describe(comm, &memo->out, plan);
}

void call_leave_streamed(struct weft_req *req)
{
	struct weft_comm *comm = req->comm;

	comm_req_hold(req);
	comm_reqs_settle(comm);
	exec_progress(comm->ctx->exec);
	ctx_started(comm->ctx);
}

enum weft_result call_run(struct weft_comm *comm, const struct weft_call *call,
			  const struct weft_opts *opts)
{
	struct weft_ctx *ctx;
	struct weft_req *req;
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "comm is NULL");
	ctx = comm->ctx;
	ctx_lock(ctx);
	if (!call_quick(comm, memo_find(comm, call, opts))) {
		result = call_start(comm, call, opts, &req);
		if (result == WEFT_SUCCESS && opts &&
		    opts->stream_kind != WEFT_STREAM_NONE) {
			call_leave_streamed(req);
		} else if (result == WEFT_SUCCESS) {
			call_remember(comm, memo_find(comm, call, opts), req->plan);
			result = call_end(req);
		}
	}
	ctx_unlock(ctx);
	return result;
}
