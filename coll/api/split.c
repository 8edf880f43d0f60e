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
				   int32_t color, uint32_t groups, struct weft_comm **out)
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
	result = comm_make(parent->ctx, number, ranks, count, self, groups, out);
	if (result != WEFT_SUCCESS)
		free(ranks);
	return result;
}

/* Whoever joins none counts on as well, as the others do. */
static void split_skip(struct weft_comm *parent, const struct split_card *all,
		       uint32_t groups)
{
	for (int32_t i = 0; i < parent->size; i++) {
		if (parent->ctx->next_comm <= all[i].next_comm + groups)
			parent->ctx->next_comm = all[i].next_comm + groups + 1;
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
				  uint32_t groups, struct weft_comm **out)
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
		split_skip(comm, all, groups);
	else
		result = split_make(comm, all, color, groups, &made);
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
	return result == WEFT_SUCCESS
		       ? split_run(comm, color, key, comm_opts_groups(opts), out)
		       : result;
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
	return result == WEFT_SUCCESS ? split_run(comm, 0, 0, comm_opts_groups(opts), out)
				      : result;
}

/* ---- groups by list -------------------------------------------------------------------
 */

/* The context's numbers of the ranks of a list; *self is the own place in it. Each must
 * be a rank, once. */
static enum weft_result group_ranks(const struct weft_comm *comm, const int32_t *list,
				    int32_t count, int32_t *out, int32_t *self)
{
	bool *seen = calloc((size_t)comm->size, sizeof(*seen));
	enum weft_result result = WEFT_SUCCESS;

	if (!seen)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d ranks", comm->size);
	*self = -1;
	for (int32_t i = 0; i < count && result == WEFT_SUCCESS; i++) {
		if (list[i] < 0 || list[i] >= comm->size || seen[list[i]]) {
			result = error_set(WEFT_ERR_ARG,
					   "weft_comm_group: ranks[%d] is %d, which is "
					   "%s: ranks are 0 to %d, each once",
					   i, list[i],
					   list[i] < 0 || list[i] >= comm->size
						   ? "no rank"
						   : "in the list already",
					   comm->size - 1);
			continue;
		}
		seen[list[i]] = true;
		out[i] = comm->ranks ? comm->ranks[list[i]] : list[i];
		if (list[i] == comm->rank)
			*self = i;
	}
	free(seen);
	if (result == WEFT_SUCCESS && *self < 0)
		result = error_set(WEFT_ERR_ARG,
				   "weft_comm_group: the list does not have this rank, "
				   "%d: who joins no group gives count 0",
				   comm->rank);
	return result;
}

/* What shows in the first collective when lists differ. */
static uint64_t group_hash(const int32_t *ranks, int32_t count)
{
	uint64_t hash = (uint64_t)count;

	for (int32_t i = 0; i < count; i++)
		hash = (hash ^ hash >> 29 ^ (uint64_t)(uint32_t)ranks[i]) *
		       UINT64_C(0x9e3779b97f4a7c15);
	return hash;
}

/* Takes the next number, also for a rank that joins nothing. */
LOCK_HELD(lock_context)
static enum weft_result group_make(struct weft_comm *parent, const int32_t *list,
				   int32_t count, struct weft_comm **out)
{
	const uint32_t number = parent->number + 1 + parent->next_group;
	int32_t *ranks = count ? calloc((size_t)count, sizeof(*ranks)) : NULL;
	enum weft_result result = WEFT_SUCCESS;
	int32_t self = -1;

	if (parent->next_group == parent->groups) {
		free(ranks);
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_comm_group: communicator %u was created for %u "
				 "groups, which are used: set weft_comm_opts.groups",
				 parent->number, parent->groups);
	}
	if (count && !ranks)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d ranks", count);
	if (count)
		result = group_ranks(parent, list, count, ranks, &self);
	if (result == WEFT_SUCCESS && count)
		result = comm_make(parent->ctx, number, ranks, count, self, 0, out);
	if (result != WEFT_SUCCESS) {
		free(ranks);
		return result;
	}
	parent->next_group++;
	if (count)
		exec_comm_seed(parent->ctx->exec, number, group_hash(ranks, count));
	else
		*out = NULL;
	return WEFT_SUCCESS;
}

enum weft_result weft_comm_group(struct weft_comm *comm, const int32_t *ranks,
				 int32_t count, const struct weft_comm_opts *opts,
				 struct weft_comm **out)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!comm || !out || (count && !ranks))
		return error_set(WEFT_ERR_ARG, "weft_comm_group: %s is NULL",
				 !comm ? "comm" : (!out ? "out" : "ranks"));
	if (count < 0 || count > comm->size)
		return error_set(WEFT_ERR_ARG,
				 "weft_comm_group: count is %d, the communicator has %d "
				 "ranks",
				 count, comm->size);
	if (opts)
		result = comm_opts_check(opts);
	if (result == WEFT_SUCCESS && comm_opts_groups(opts))
		result =
			error_set(WEFT_ERR_UNSUPPORTED,
				  "weft_comm_group: weft_comm_opts.groups is %u: a group "
				  "of a group is made by weft_comm_split()",
				  opts->groups);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(comm->ctx);
	if (exec_comm_revoked(comm->ctx->exec, comm->number))
		result = error_set(WEFT_ERR_COMM,
				   "weft_comm_group: communicator %u was revoked",
				   comm->number);
	else
		result = group_make(comm, ranks, count, out);
	ctx_unlock(comm->ctx);
	return result;
}
