/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a collective promises, as data: how long the caller's buffers are at each rank,
 * how they share memory in place, and what every element of the result must be. The
 * checker and the tests on real arrays read it; algorithms must make it true.
 */
#ifndef WEFT_PLAN_GOAL_H
#define WEFT_PLAN_GOAL_H

#include "coll/plan/plan.h"

enum plan_goal {
	PLAN_GOAL_BARRIER,
	PLAN_GOAL_BROADCAST,
	PLAN_GOAL_ALLGATHER,
	PLAN_GOAL_ALLREDUCE,
	PLAN_GOAL_REDUCE_SCATTER,
	PLAN_GOAL_ALLTOALL,
	PLAN_GOAL_REDUCE,
	PLAN_GOAL_GATHER,
	PLAN_GOAL_SCATTER,
	PLAN_GOALS
};

/* Whether the result is a sum (or what the operation is) over ranks, and whether one rank
 * is the root. */
bool plan_goal_reduces(enum plan_goal goal);
bool plan_goal_rooted(enum plan_goal goal);

/* Elements of PLAN_SRC or PLAN_DST that the caller has at a rank: 0 where the call does
 * not look at its buffer. With gaps between the blocks of a (v) form. */
uint64_t plan_goal_length(enum plan_goal goal, const struct plan_call *call, int32_t rank,
			  enum plan_buf buf);

/* How SRC and DST of a rank share memory where the call is in place. */
struct plan_goal_alias {
	bool shared;	     /* they do, at this rank */
	enum plan_buf inner; /* the one that lies in the other (or is the other) */
	uint64_t at;	     /* its first element there */
};
struct plan_goal_alias plan_goal_in_place(enum plan_goal goal,
					  const struct plan_call *call, int32_t rank);

#define PLAN_GOAL_EVERYBODY (-1)
#define PLAN_GOAL_UNTOUCHED (-2)

/* So many elements of a result, one after another. */
struct plan_goal_piece {
	uint64_t length;
	int32_t from; /* the rank whose source they are, or one of the above: the sum over
		       * all ranks; what was there before the call */
	uint64_t pos; /* source element of the first */
};

/* Piece `index` of rank's DST, from the first element on; false behind the last. */
bool plan_goal_piece(enum plan_goal goal, const struct plan_call *call, int32_t rank,
		     uint32_t index, struct plan_goal_piece *piece);

#endif
