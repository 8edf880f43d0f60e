/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking a communicator back, from any thread. */
#include "config.h"

#include <stdio.h>

#include "coll/api/call.h"
#include "coll/api/error.h"

/* How long the call stays to tell the others. What is not sent by then, since a rank that
 * is gone takes nothing, goes on in the next call of Weft. */
#define REVOKE_TELL_US	INT64_C(100000)
#define REVOKE_TEXT_MAX 200

/* It becomes part of sentences, here and on other ranks. */
static void revoke_reason(const char *reason, char text[REVOKE_TEXT_MAX])
{
	snprintf(text, REVOKE_TEXT_MAX, "%.199s",
		 reason && *reason ? reason : "no reason was given");
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
}

LOCK_HELD(lock_context) static void revoke_tell(struct weft_ctx *ctx)
{
	const int64_t until = exec_now() + REVOKE_TELL_US;
	struct exec_idle idle = {0};

	for (;;) {
		const bool moved = exec_progress(ctx->exec);
		const int64_t now = exec_now();

		if (!exec_has_words(ctx->exec) || now >= until)
			return;
		ctx_unlock(ctx);
		exec_idle_wait(ctx->exec, &idle, moved, now);
		ctx_lock(ctx);
	}
}

enum weft_result weft_comm_revoke(struct weft_comm *comm, const char *reason)
{
	char text[REVOKE_TEXT_MAX];
	struct weft_ctx *ctx;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "weft_comm_revoke: comm is NULL");
	revoke_reason(reason, text);
	ctx = comm->ctx;
	ctx_lock(ctx);
	if (!exec_comm_revoked(ctx->exec, comm->number)) {
		exec_comm_revoke(ctx->exec, comm->number, text);
		revoke_tell(ctx);
		ctx_started(ctx);
	}
	ctx_unlock(ctx);
	return WEFT_SUCCESS;
}
