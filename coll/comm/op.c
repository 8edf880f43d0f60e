/* SPDX-License-Identifier: BSD-2-Clause */
/* See op.h: creating and destroying. */
#include "config.h"

#include "coll/api/error.h"
#include "coll/comm/comm.h"

static enum weft_result op_opts_check(const struct weft_op_opts *opts)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_op_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_OP_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (!opts->apply)
		return error_set(WEFT_ERR_ARG, "weft_op_opts.apply is NULL");
	if (opts->flags & ~WEFT_OP_ORDERED)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_op_opts.flags is 0x%llx, there is WEFT_OP_ORDERED",
				 (unsigned long long)opts->flags);
	return WEFT_SUCCESS;
}

LOCK_HELD(lock_context)
static enum weft_result op_add(struct weft_ctx *ctx, const struct weft_op_opts *opts,
			       enum weft_op *op)
{
	unsigned place = 0;

	while (place < COMM_OPS_MAX && ctx->op[place].apply)
		place++;
	if (place == COMM_OPS_MAX)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_op_create: the context has %u operations, which "
				 "is the most: destroy one first",
				 place);
	ctx->op[place] = (struct comm_op){.apply = opts->apply,
					  .arg = opts->arg,
					  .ordered = opts->flags & WEFT_OP_ORDERED};
	*op = (enum weft_op)(WEFT_OP_USER + place);
	return WEFT_SUCCESS;
}

enum weft_result weft_op_create(struct weft_ctx *ctx, const struct weft_op_opts *opts,
				enum weft_op *op)
{
	enum weft_result result;

	error_clear();
	if (!ctx || !opts || !op)
		return error_set(WEFT_ERR_ARG, "weft_op_create: %s is NULL",
				 !ctx ? "ctx" : (!opts ? "opts" : "op"));
	result = op_opts_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(ctx);
	result = op_add(ctx, opts, op);
	ctx_unlock(ctx);
	return result;
}

enum weft_result weft_op_destroy(struct weft_ctx *ctx, enum weft_op op)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!ctx)
		return error_set(WEFT_ERR_ARG, "weft_op_destroy: ctx is NULL");
	ctx_lock(ctx);
	if (comm_op_find(ctx->op, op))
		ctx->op[(unsigned)op - WEFT_OP_USER] = (struct comm_op){.apply = NULL};
	else
		result = error_set(WEFT_ERR_ARG,
				   "weft_op_destroy: op is %d, which is no operation of "
				   "this context",
				   (int)op);
	ctx_unlock(ctx);
	return result;
}
