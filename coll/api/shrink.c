/* SPDX-License-Identifier: BSD-2-Clause */
/* A communicator of those that live of another: asks who they are, and makes it. */
#include "config.h"

#include <stdlib.h>

#include "coll/api/call.h"
#include "coll/api/error.h"

/* How long the call stays to tell the others what was decided; what is not sent by then
 * goes in the next call of Weft. */
#define SHRINK_TELL_US INT64_C(100000)

/* Makes progress until it is decided, or the time is over. */
LOCK_HELD(lock_context)
static bool shrink_decide(struct weft_comm *comm, int64_t until)
{
	struct weft_ctx *ctx = comm->ctx;
	struct exec_idle idle = {0};
	bool decided;

	for (;;) {
		const bool moved = exec_progress(ctx->exec);
		const int64_t now = exec_now();

		decided = exec_shrink_look(ctx->exec, comm->number);
		if (decided || now >= until)
			return decided;
		ctx_unlock(ctx);
		exec_idle_wait(ctx->exec, &idle, moved, now);
		ctx_lock(ctx);
	}
}

LOCK_HELD(lock_context) static void shrink_tell(struct weft_ctx *ctx)
{
	const int64_t until = exec_now() + SHRINK_TELL_US;
	struct exec_idle idle = {0};

	while (exec_has_words(ctx->exec) && exec_now() < until) {
		const bool moved = exec_progress(ctx->exec);

		ctx_unlock(ctx);
		exec_idle_wait(ctx->exec, &idle, moved, exec_now());
		ctx_lock(ctx);
	}
	ctx_started(ctx);
}

/* What was decided, as a communicator. */
LOCK_HELD(lock_context)
static enum weft_result shrink_make(struct weft_comm *comm, uint32_t groups,
				    struct weft_comm **out)
{
	int32_t *ranks = calloc((size_t)comm->size, sizeof(*ranks));
	enum weft_result result;
	uint32_t number;
	int32_t count, self;

	if (!ranks)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d ranks", comm->size);
	count = exec_shrink_members(comm->ctx->exec, comm->number, ranks, &self, &number);
	if (self < 0)
		result = error_set(WEFT_ERR_FENCED,
				   "weft_comm_shrink: %d ranks of communicator %u go on "
				   "without rank %d, which they had not heard of in time",
				   count, comm->number, comm->rank);
	else
		result = comm_make(comm->ctx, number, ranks, count, self, groups, out);
	if (result != WEFT_SUCCESS)
		free(ranks);
	return result;
}

LOCK_HELD(lock_context)
static enum weft_result shrink_run(struct weft_comm *comm, uint32_t groups,
				   int64_t timeout_us, struct weft_comm **out)
{
	struct weft_ctx *ctx = comm->ctx;
	const int64_t now = exec_now();
	const int64_t wait = timeout_us / 2;
	enum weft_result result;
	char missing[200];

	if (comm->shrunk)
		return error_set(WEFT_ERR_ARG,
				 "weft_comm_shrink: communicator %u was shrunk before: "
				 "shrink the one that came of it",
				 comm->number);
	if (!exec_comm_revoked(ctx->exec, comm->number))
		exec_comm_revoke(ctx->exec, comm->number,
				 "it goes on without ranks that are lost");
	result = exec_shrink_join(ctx->exec, comm->number, ctx->next_comm, now + wait);
	if (result != WEFT_SUCCESS)
		return result;
	if (!shrink_decide(comm, now + timeout_us)) {
		exec_shrink_missing(ctx->exec, comm->number, missing, sizeof(missing));
		return error_set(WEFT_ERR_TIMEOUT,
				 "weft_comm_shrink: nothing is decided about "
				 "communicator %u within %.3f s: %s; it takes more than "
				 "half of them, or the proven end of all others",
				 comm->number, (double)timeout_us * 1e-6, missing);
	}
	comm->shrunk = true;
	result = shrink_make(comm, groups, out);
	shrink_tell(ctx);
	return result;
}

enum weft_result weft_comm_shrink(struct weft_comm *comm,
				  const struct weft_comm_opts *opts, int64_t timeout_us,
				  struct weft_comm **out)
{
	enum weft_result result = WEFT_SUCCESS;
	struct weft_comm *made = NULL;

	error_clear();
	if (!comm || !out)
		return error_set(WEFT_ERR_ARG, "weft_comm_shrink: %s is NULL",
				 comm ? "out" : "comm");
	if (timeout_us < 0 && timeout_us != WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_comm_shrink: timeout_us is %lld",
				 (long long)timeout_us);
	if (opts)
		result = comm_opts_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	if (!timeout_us)
		timeout_us = comm->ctx->timeout_us;
	/* Whoever would wait for ever for those that may have died never decides. */
	if (timeout_us == WEFT_TIMEOUT_INFINITE)
		return error_set(
			WEFT_ERR_ARG,
			"weft_comm_shrink: timeout_us is infinite: give the time "
			"after half of which silent ranks count as lost");
	ctx_lock(comm->ctx);
	result = shrink_run(comm, comm_opts_groups(opts), timeout_us, &made);
	ctx_unlock(comm->ctx);
	if (result == WEFT_SUCCESS)
		*out = made;
	return result;
}
