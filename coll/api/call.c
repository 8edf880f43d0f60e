/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting a collective, waiting for it, and both at once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/api/call.h"
#include "coll/api/error.h"
#include "coll/api/graph.h"
#include "coll/api/memo.h"
#include "coll/api/persist.h"
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

enum weft_result call_failed_earlier(const struct weft_comm *comm)
{
	const char *text;
	enum weft_result cause = exec_comm_failed(comm->ctx->exec, comm->number, &text);

	if (cause == WEFT_SUCCESS && !list_empty(&comm->graphs))
		cause = graphs_failed(comm, &text);
	if (cause == WEFT_SUCCESS)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_COMM,
			 "communicator %u failed earlier (%s): %s; destroy it and create "
			 "another",
			 comm->number, weft_strerror(cause), text);
}

/* The tables for the partitions of a plan that are bound late. */
enum weft_result call_bind(const struct plan *plan, const struct checked_vector *v,
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
struct exec_call call_describe(const struct weft_comm *comm,
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
enum weft_result call_take_dynamic(struct weft_comm *comm,
				   const struct checked_call *call, bool may_pin,
				   struct weft_req *req)
{
	if (!req->dynamic)
		req->dynamic = dynamic_alloc(comm);
	if (!req->dynamic)
		return error_set(WEFT_ERR_NOMEM, "no memory for counts of %d ranks",
				 comm->size);
	return dynamic_take(req->dynamic, &call->dynamic, req->plan->plan, may_pin);
}

/* Bytes from which a call that is started is left to the progress thread from the first
 * step on: a rank's first steps can be copies that take a third of the call, which its
 * caller wants to compute in. To wake the thread takes some ten microseconds. */
#define CALL_HANDED ((uint64_t)64 << 10)

void call_hand(struct weft_req *req, struct exec_call *run)
{
	req->handed = req->comm->ctx->progress &&
		      run->id.count * weft_type_size(run->type) > CALL_HANDED;
	run->handed = req->handed;
}

void call_go_on(struct weft_req *req)
{
	struct weft_ctx *ctx = req->comm->ctx;

	if (!req->handed)
		exec_progress(ctx->exec);
	ctx_started(ctx);
}

/* Starts the request, which runs req->plan. left: nobody waits for it now. */
LOCK_HELD(lock_context)
static enum weft_result call_start_req(struct weft_comm *comm,
				       const struct checked_call *call, bool left,
				       struct weft_req *req)
{
	const uint64_t *disp[COMM_PARTS];
	const struct plan_binding bind = {.disp = disp};
	struct exec_call run = call_describe(comm, call, req->plan);
	enum weft_result result = WEFT_SUCCESS;

	run.call = comm->next_call;
	req->handed = false;
	if (left)
		call_hand(req, &run);
	if (call_is_vector(call)) {
		result = call_bind(run.plan, &call->vector, disp);
		run.bind = &bind;
	} else if (call->coll == WEFT_COLL_ALLTOALLV_DYNAMIC) {
		result = call_take_dynamic(comm, call, !call->stream.given, req);
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
enum weft_result call_prepare(struct weft_comm *comm, const struct weft_call *call,
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
				   const struct weft_opts *opts, bool left,
				   struct weft_req **out)
{
	struct checked_call checked;
	struct weft_req *req;
	enum weft_result result = call_prepare(comm, call, opts, false, &checked, &req);

	if (result != WEFT_SUCCESS)
		return result;
	result = call_start_req(comm, &checked, left, req);
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
	result = call_start(comm, call, opts, true, req);
	if (result == WEFT_SUCCESS)
		call_go_on(*req);
	ctx_unlock(comm->ctx);
	return result;
}

/* ---- waiting
 * ------------------------------------------------------------------------- */

/* Takes the outcome of a request that is done; frees it, unless it is persistent. */
enum weft_result call_finish(struct weft_req *req)
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
	uint64_t capture = 0;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "comm is NULL");
	ctx = comm->ctx;
	ctx_lock(ctx);
	if (opts && opts->size >= sizeof(*opts) && opts->stream_kind != WEFT_STREAM_NONE)
		result = graph_capture(comm, call, opts, &capture);
	if (capture || result != WEFT_SUCCESS) {
		ctx_unlock(ctx);
		return capture ? graph_add(comm, call, opts, capture) : result;
	}
	if (!call_quick(comm, memo_find(comm, call, opts))) {
		result = call_start(comm, call, opts, false, &req);
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
