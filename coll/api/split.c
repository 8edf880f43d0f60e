/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators of some ranks of another: who wants what is told by an all-gather on that
 * one, which is all the communication there is. Groups have no rank in common, so all of
 * them may have the same number: the least that no rank of the parent has used.
 */
#include "config.h"

#include <stdlib.h>

#include "coll/api/call.h"
#include "coll/api/error.h"
#include "coll/exec/name.h"

/* What a rank of the parent tells the others. */
struct split_card {
	int32_t color, key;
	int32_t rank; /* in the parent */
	uint32_t next_comm;
};

static int card_compare(const void *a, const void *b)
{
	const struct split_card *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The cards of all ranks, in memory of the communicator: of an all-gather that failed a
 * peer may still write it. */
static enum weft_result split_gather(struct weft_comm *comm, int32_t color, int32_t key,
				     struct split_card **out)
{
	struct weft_call call = WEFT_CALL_INIT;
	struct split_card *all, *own;

	ctx_lock(comm->ctx);
	if (!comm->cards)
		comm->cards = calloc((size_t)comm->size + 1, sizeof(*all));
	all = comm->cards;
	own = all ? &all[comm->size] : NULL;
	if (own)
		*own = (struct split_card){.color = color,
					   .key = key,
					   .rank = comm->rank,
					   .next_comm = comm->ctx->next_comm};
	ctx_unlock(comm->ctx);
	if (!own)
		return error_set(WEFT_ERR_NOMEM, "no memory for a split of %d ranks",
				 comm->size);
	call.coll = WEFT_COLL_ALLGATHER;
	call.src =
		(struct weft_buf){.addr = own, .count = sizeof(*own), .type = WEFT_UINT8};
	call.dst = (struct weft_buf){.addr = all,
				     .count = sizeof(*own) * (uint64_t)comm->size,
				     .type = WEFT_UINT8};
	*out = all;
	return call_run(comm, &call, NULL);
}

/* The group of this rank, from all cards. */
LOCK_HELD(lock_context)
static enum weft_result split_make(struct weft_comm *parent, struct split_card *all,
				   int32_t color, struct weft_comm **out)
{
	uint32_t number = 0;
	int32_t *ranks = calloc((size_t)parent->size, sizeof(*ranks));
	int32_t count = 0, self = -1;
	enum weft_result result;

	if (!ranks)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d ranks", parent->size);
	qsort(all, (size_t)parent->size, sizeof(*all), card_compare);
	for (int32_t i = 0; i < parent->size; i++) {
		if (all[i].next_comm > number)
			number = all[i].next_comm;
		if (all[i].color != color)
			continue;
		if (all[i].rank == parent->rank)
			self = count;
		ranks[count++] = parent->ranks ? parent->ranks[all[i].rank] : all[i].rank;
	}
	result = comm_make(parent->ctx, number, ranks, count, self, out);
	if (result != WEFT_SUCCESS)
		free(ranks);
	return result;
}

/* Whoever joins none counts on as well, as the others do. */
static void split_skip(struct weft_comm *parent, const struct split_card *all)
{
	for (int32_t i = 0; i < parent->size; i++) {
		if (parent->ctx->next_comm <= all[i].next_comm)
			parent->ctx->next_comm = all[i].next_comm + 1;
	}
}

/* Cards come from peers: each must be its sender's, with a number that can be. */
static enum weft_result split_check(const struct weft_comm *comm,
				    const struct split_card *all)
{
	for (int32_t i = 0; i < comm->size; i++) {
		if (all[i].rank != i)
			return error_set(WEFT_ERR_INTERNAL,
					 "rank %d says that it is rank %d of "
					 "communicator %u",
					 i, all[i].rank, comm->number);
		if (all[i].next_comm > NAME_COMM_MAX + 1)
			return error_set(
				WEFT_ERR_INTERNAL,
				"rank %d says that it has used %u communicators, "
				"a context has %u at most",
				i, all[i].next_comm, NAME_COMM_MAX + 1);
	}
	return WEFT_SUCCESS;
}

static enum weft_result split_run(struct weft_comm *comm, int32_t color, int32_t key,
				  struct weft_comm **out)
{
	struct split_card *all = NULL;
	struct weft_comm *made = NULL;
	enum weft_result result = split_gather(comm, color, key, &all);

	if (result == WEFT_SUCCESS)
		result = split_check(comm, all);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(comm->ctx);
	if (color == WEFT_SPLIT_NONE)
		split_skip(comm, all);
	else
		result = split_make(comm, all, color, &made);
	ctx_unlock(comm->ctx);
	if (result == WEFT_SUCCESS)
		*out = made;
	return result;
}

enum weft_result weft_comm_split(struct weft_comm *comm, int32_t color, int32_t key,
				 const struct weft_comm_opts *opts,
				 struct weft_comm **out)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!comm || !out)
		return error_set(WEFT_ERR_ARG, "weft_comm_split: %s is NULL",
				 comm ? "out" : "comm");
	if (color < WEFT_SPLIT_NONE)
		return error_set(WEFT_ERR_ARG,
				 "weft_comm_split: color is %d: give 0 or more, or no "
				 "color by WEFT_SPLIT_NONE",
				 color);
	if (opts)
		result = comm_opts_check(opts);
	return result == WEFT_SUCCESS ? split_run(comm, color, key, out) : result;
}

enum weft_result weft_comm_dup(struct weft_comm *comm, const struct weft_comm_opts *opts,
			       struct weft_comm **out)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!comm || !out)
		return error_set(WEFT_ERR_ARG, "weft_comm_dup: %s is NULL",
				 comm ? "out" : "comm");
	if (opts)
		result = comm_opts_check(opts);
	return result == WEFT_SUCCESS ? split_run(comm, 0, 0, out) : result;
}
