/* SPDX-License-Identifier: BSD-2-Clause */
/* See tables.h. */
#include "config.h"

#include <stdlib.h>

#include "coll/plan/tables.h"

static uint64_t mixed(uint64_t seed, uint64_t a, uint64_t b)
{
	uint64_t x = seed + a * UINT64_C(0x9e3779b97f4a7c15) + b;

	x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 29) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 32;
}

/* What goes from one rank to another. Where all ranks share the lengths, `from` is 0. */
static uint64_t block(uint64_t seed, uint64_t most, int32_t from, int32_t to)
{
	const uint64_t x = mixed(seed, (uint64_t)from + 1, (uint64_t)to);

	return x % 4 ? (x >> 8) % (most + 1) : 0;
}

enum draw {
	BY_PAIR,	 /* lengths differ from rank to rank, gaps as well */
	SHARED,		 /* lengths are the same at all ranks */
	SHARED_WITH_GAPS /* gaps, too: sums go by the source's elements */
};

/* Blocks of one rank's buffer. */
static uint64_t *table(const struct plan_call *call, uint64_t most, uint64_t seed,
		       int32_t rank, bool by_sender, enum draw draw)
{
	uint64_t *at = malloc((2 * (size_t)call->size + 1) * sizeof(*at));
	const int32_t gaps = draw == SHARED_WITH_GAPS ? 0 : rank;

	for (int32_t i = 0; at && i < call->size; i++) {
		const uint64_t gap = mixed(seed, (uint64_t)gaps, (uint64_t)i + 77) % 4;
		int32_t from = 0, to = i;

		if (draw == BY_PAIR) {
			from = by_sender ? i : rank;
			to = by_sender ? rank : i;
		}
		if (i == 0)
			at[0] = 0;
		at[2 * i + 1] = at[2 * i] + block(seed, most, from, to);
		at[2 * i + 2] = at[2 * i + 1] + (gap == 3 ? 2 : 0);
	}
	return at;
}

const struct plan_tables *plan_tables_make(enum plan_goal goal,
					   const struct plan_call *call, uint64_t most,
					   uint64_t seed)
{
	const size_t n = (size_t)call->size;
	const enum draw draw = goal == PLAN_GOAL_ALLTOALL	  ? BY_PAIR
			       : goal == PLAN_GOAL_REDUCE_SCATTER ? SHARED_WITH_GAPS
								  : SHARED;
	struct plan_tables *t = calloc(1, sizeof(*t));
	uint64_t **send = calloc(n, sizeof(*send)), **recv = calloc(n, sizeof(*recv));
	bool good = t && send && recv;

	for (int32_t r = 0; good && r < call->size; r++) {
		const bool here = !plan_goal_rooted(goal) || r == call->root;

		if (goal == PLAN_GOAL_ALLTOALL || goal == PLAN_GOAL_REDUCE_SCATTER ||
		    (goal == PLAN_GOAL_SCATTER && here))
			good &= (send[r] = table(call, most, seed, r, false, draw)) !=
				NULL;
		if (goal == PLAN_GOAL_ALLTOALL || goal == PLAN_GOAL_ALLGATHER ||
		    (goal == PLAN_GOAL_GATHER && here))
			good &= (recv[r] = table(call, most, seed, r, true, draw)) !=
				NULL;
	}
	if (t) {
		t->send = (const uint64_t *const *)send;
		t->recv = (const uint64_t *const *)recv;
	} else {
		free(send);
		free(recv);
	}
	if (good)
		return t;
	plan_tables_free(t, call->size);
	return NULL;
}

void plan_tables_free(const struct plan_tables *tables, int32_t size)
{
	if (!tables)
		return;
	for (int32_t r = 0; r < size; r++) {
		if (tables->send)
			free((void *)(uintptr_t)tables->send[r]);
		if (tables->recv)
			free((void *)(uintptr_t)tables->recv[r]);
	}
	free((void *)(uintptr_t)tables->send);
	free((void *)(uintptr_t)tables->recv);
	free((void *)(uintptr_t)tables);
}
