/* SPDX-License-Identifier: BSD-2-Clause */
/* Communicators: creating and destroying. */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/api/graph.h"
#include "coll/comm/comm.h"
#include "coll/comm/measure.h"
#include "coll/exec/name.h"
#include "util/lock_note.h"

enum weft_result comm_opts_check(const struct weft_comm_opts *opts)
{
	/* Callers that were built before there was `groups` want none. */
	if (opts->size < offsetof(struct weft_comm_opts, groups))
		return error_set(WEFT_ERR_ARG,
				 "weft_comm_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_COMM_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (opts->flags)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_comm_opts.flags is 0x%llx, no flag is defined",
				 (unsigned long long)opts->flags);
	if (comm_opts_groups(opts) > COMM_GROUPS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_comm_opts.groups is %u, the most is %u",
				 opts->groups, COMM_GROUPS_MAX);
	return WEFT_SUCCESS;
}

uint32_t comm_opts_groups(const struct weft_comm_opts *opts)
{
	return opts && opts->size >= sizeof(*opts) ? opts->groups : 0;
}

/* What ranks tell each other of a communicator of all of them. */
struct comm_card {
	uint32_t next_comm, created;
	uint32_t lines; /* enum lines_level */
};

/* What a card says is not trusted: anything else is none. */
static enum lines_level card_lines(const void *cards, int32_t rank)
{
	const uint32_t lines = ((const struct comm_card *)cards)[rank].lines;

	return lines <= LINES_FAR ? (enum lines_level)lines : LINES_NONE;
}

/* Numbers come from counting: the least that no rank has used, since two communicators of
 * one number would take each other's data. Ranks that are in several groups count
 * further; communicators of all ranks every rank must create in the same order. */
LOCK_HELD(lock_context)
static enum weft_result comm_agree(struct weft_ctx *ctx, uint32_t *number)
{
	const int32_t size = boot_size(ctx->boot);
	const struct comm_card own = {ctx->next_comm, ctx->created,
				      exec_lines_level(ctx->exec)};
	const struct comm_card *all;
	struct boot_view view;
	enum weft_result result;

	result =
		boot_allgather_view(ctx->boot, &own, sizeof(own), ctx->timeout_us, &view);
	all = view.at;
	*number = 0;
	for (int32_t i = 0; i < size && result == WEFT_SUCCESS; i++) {
		if (all[i].next_comm > *number)
			*number = all[i].next_comm;
		if (all[i].created != own.created)
			result = error_set(WEFT_ERR_MISMATCH,
					   "rank %d creates its communicator of all "
					   "ranks number %u, rank %d number %u: every "
					   "rank must create them in the same order",
					   i, all[i].created, boot_rank(ctx->boot),
					   own.created);
	}
	if (result == WEFT_SUCCESS && !ctx->created)
		exec_agree_lines(ctx->exec, card_lines, all);
	boot_view_end(&view);
	return result;
}

enum weft_result comm_make(struct weft_ctx *ctx, uint32_t number, int32_t *ranks,
			   int32_t size, int32_t rank, uint32_t groups,
			   struct weft_comm **out)
{
	struct weft_comm *comm;
	enum weft_result result;

	if (number > NAME_COMM_MAX || groups > NAME_COMM_MAX - number)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "a context names at most %u communicators in its life, "
				 "all are used: open another context",
				 NAME_COMM_MAX + 1);
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return error_set(WEFT_ERR_NOMEM, "no memory for a communicator");
	result = exec_comm_open(ctx->exec, number, ranks, size, rank);
	if (result != WEFT_SUCCESS) {
		free(comm);
		return result;
	}
	comm->ctx = ctx;
	comm->number = number;
	comm->groups = groups;
	if (ctx->next_comm <= number + groups)
		ctx->next_comm = number + groups + 1;
	comm->rank = rank;
	comm->size = size;
	comm->ranks = ranks;
	result = comm_nodes_make(comm);
	if (result != WEFT_SUCCESS) {
		exec_comm_close(ctx->exec, number);
		free(comm);
		return result;
	}
	comm->lines = exec_lines_open(ctx->exec, number, &comm->reads);
	list_init(&comm->plans);
	list_init(&comm->free_reqs);
	list_init(&comm->held_reqs);
	list_init(&comm->group);
	list_init(&comm->graphs);
	ctx->comms++;
	*out = comm;
	return WEFT_SUCCESS;
}

LOCK_HELD(lock_context)
static enum weft_result comm_open(struct weft_ctx *ctx, uint32_t groups,
				  struct weft_comm **out)
{
	uint32_t number = 0;
	enum weft_result result = comm_agree(ctx, &number);

	if (result == WEFT_SUCCESS)
		result = comm_make(ctx, number, NULL, boot_size(ctx->boot),
				   boot_rank(ctx->boot), groups, out);
	if (result == WEFT_SUCCESS)
		ctx->created++;
	return result;
}

/* WEFT_TUNE=measure. All ranks make their communicators of all ranks in the same order,
 * so that all are here with their first one. */
static enum weft_result comm_measure(struct weft_comm *comm)
{
	struct tune *tune = comm->ctx->tune;
	enum weft_result result;
	char why[256];

	if (!tune || !tune->measure)
		return WEFT_SUCCESS;
	tune->measure = false;
	result = measure_terms(comm, &tune->cost);
	if (result == WEFT_SUCCESS)
		return WEFT_SUCCESS;
	snprintf(why, sizeof(why), "%s", weft_error_detail());
	(void)weft_comm_destroy(comm);
	return error_set(result, "%s", why);
}

enum weft_result weft_comm_create(struct weft_ctx *ctx, const struct weft_comm_opts *opts,
				  struct weft_comm **comm)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!ctx || !comm)
		return error_set(WEFT_ERR_ARG, "weft_comm_create: %s is NULL",
				 ctx ? "comm" : "ctx");
	if (opts)
		result = comm_opts_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(ctx);
	result = comm_open(ctx, comm_opts_groups(opts), comm);
	if (result == WEFT_SUCCESS)
		exec_gpus_warm(ctx->exec);
	ctx_unlock(ctx);
	return result == WEFT_SUCCESS ? comm_measure(*comm) : result;
}

LOCK_HELD(lock_context) static enum weft_result comm_close(struct weft_comm *comm)
{
	struct weft_ctx *ctx = comm->ctx;

	exec_progress(ctx->exec);
	if (comm->open_reqs)
		return error_set(WEFT_ERR_BUSY,
				 "weft_comm_destroy: %d requests are open, wait for them "
				 "first, and free those that are persistent",
				 comm->open_reqs);
	if (comm->wins)
		return error_set(
			WEFT_ERR_BUSY,
			"weft_comm_destroy: %d windows exist, destroy them first",
			comm->wins);
	if (!comm_reqs_settle(comm))
		return error_set(
			WEFT_ERR_BUSY,
			"weft_comm_destroy: a peer may still write into buffers "
			"of a call that failed; they are safe when this succeeds");
	comm_plans_free(comm);
	comm_reqs_free(comm);
	exec_comm_close(ctx->exec, comm->number);
	ctx->comms--;
	return WEFT_SUCCESS;
}

enum weft_result weft_comm_destroy(struct weft_comm *comm)
{
	struct weft_ctx *ctx;
	enum weft_result result;

	error_clear();
	if (!comm)
		return error_set(WEFT_ERR_ARG, "weft_comm_destroy: comm is NULL");
	ctx = comm->ctx;
	if (!graphs_sweep(comm))
		return error_set(WEFT_ERR_BUSY,
				 "weft_comm_destroy: graphs exist that have calls of the "
				 "communicator: destroy them first");
	ctx_lock(ctx);
	result = comm_close(comm);
	ctx_unlock(ctx);
	if (result == WEFT_SUCCESS) {
		free(comm->nodes);
		free(comm->tables);
		comm_memos_free(comm);
		free(comm->ranks);
		free(comm->cards);
		free(comm->win_cards);
		free(comm);
	}
	return result;
}

int32_t weft_comm_rank(const struct weft_comm *comm)
{
	return comm ? comm->rank : -1;
}

int32_t weft_comm_size(const struct weft_comm *comm)
{
	return comm ? comm->size : -1;
}
