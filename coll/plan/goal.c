/* SPDX-License-Identifier: BSD-2-Clause */
/* See goal.h. */
#include "config.h"

#include "coll/plan/goal.h"

/* Who has a buffer of a collective, and how many blocks of `count` elements it is. */
enum holds { NOBODY, ROOT, EVERYBODY };
enum blocks { ONE, ONE_PER_RANK };

struct goal_row {
	enum holds src_at, dst_at;
	enum blocks src, dst;
	bool reduces, rooted;
};

static const struct goal_row goal_table[PLAN_GOALS] = {
	[PLAN_GOAL_BARRIER] = {NOBODY, NOBODY, ONE, ONE, false, false},
	/* Who is not the root has the buffer as well, but nothing in it. */
	[PLAN_GOAL_BROADCAST] = {EVERYBODY, EVERYBODY, ONE, ONE, false, true},
	[PLAN_GOAL_ALLGATHER] = {EVERYBODY, EVERYBODY, ONE, ONE_PER_RANK, false, false},
	[PLAN_GOAL_ALLREDUCE] = {EVERYBODY, EVERYBODY, ONE, ONE, true, false},
	[PLAN_GOAL_REDUCE_SCATTER] = {EVERYBODY, EVERYBODY, ONE_PER_RANK, ONE, true,
				      false},
	[PLAN_GOAL_ALLTOALL] = {EVERYBODY, EVERYBODY, ONE_PER_RANK, ONE_PER_RANK, false,
				false},
	[PLAN_GOAL_REDUCE] = {EVERYBODY, ROOT, ONE, ONE, true, true},
	[PLAN_GOAL_GATHER] = {EVERYBODY, ROOT, ONE, ONE_PER_RANK, false, true},
	[PLAN_GOAL_SCATTER] = {ROOT, EVERYBODY, ONE_PER_RANK, ONE, false, true},
};

bool plan_goal_reduces(enum plan_goal goal)
{
	return goal_table[goal].reduces;
}

bool plan_goal_rooted(enum plan_goal goal)
{
	return goal_table[goal].rooted;
}

static bool holds(enum holds who, const struct plan_call *call, int32_t rank)
{
	return who == EVERYBODY || (who == ROOT && rank == call->root);
}

/* Where block i of a (v) form begins (odd: ends) in a buffer of a block per rank. */
static const uint64_t *block_table(const struct plan_call *call, int32_t rank,
				   enum plan_buf buf)
{
	return buf == PLAN_SRC ? call->tables->send[rank] : call->tables->recv[rank];
}

static uint64_t block_at(const struct plan_call *call, int32_t rank, enum plan_buf buf,
			 int32_t block)
{
	if (!call->vector)
		return call->count * (uint64_t)block;
	return block_table(call, rank, buf)[2 * block];
}

static uint64_t block_length(const struct plan_call *call, int32_t rank,
			     enum plan_buf buf, int32_t block)
{
	const uint64_t *at;

	if (!call->vector)
		return call->count;
	at = block_table(call, rank, buf);
	return at[2 * block + 1] - at[2 * block];
}

/* The rank whose table says how long the one block of a rank is, where the other buffer
 * has one per rank. */
static int32_t table_owner(const struct goal_row *row, const struct plan_call *call,
			   int32_t rank)
{
	return row->rooted ? call->root : rank;
}

uint64_t plan_goal_length(enum plan_goal goal, const struct plan_call *call, int32_t rank,
			  enum plan_buf buf)
{
	const struct goal_row *row = &goal_table[goal];
	const bool src = buf == PLAN_SRC;

	if (!holds(src ? row->src_at : row->dst_at, call, rank))
		return 0;
	if ((src ? row->src : row->dst) == ONE_PER_RANK)
		return call->vector ? block_table(call, rank, buf)[2 * call->size]
				    : call->count * (uint64_t)call->size;
	if (!call->vector)
		return call->count;
	return block_length(call, table_owner(row, call, rank), src ? PLAN_DST : PLAN_SRC,
			    rank);
}

struct plan_goal_alias plan_goal_in_place(enum plan_goal goal,
					  const struct plan_call *call, int32_t rank)
{
	const struct goal_row *row = &goal_table[goal];
	struct plan_goal_alias alias = {
		.shared = call->in_place && holds(row->src_at, call, rank) &&
			  holds(row->dst_at, call, rank),
		.inner = PLAN_SRC,
	};

	if (!alias.shared || row->src == row->dst)
		return alias;
	alias.inner = row->src == ONE ? PLAN_SRC : PLAN_DST;
	alias.at =
		block_at(call, rank, alias.inner == PLAN_SRC ? PLAN_DST : PLAN_SRC, rank);
	return alias;
}

/* A result of one block: from the root's block, or summed up. */
static struct plan_goal_piece piece_of_one(enum plan_goal goal,
					   const struct plan_call *call, int32_t rank)
{
	struct plan_goal_piece p = {
		.length = plan_goal_length(goal, call, rank, PLAN_DST),
		.from = plan_goal_reduces(goal) ? PLAN_GOAL_EVERYBODY : call->root,
	};

	if (goal_table[goal].src == ONE_PER_RANK)
		p.pos = block_at(call, goal == PLAN_GOAL_SCATTER ? call->root : rank,
				 PLAN_SRC, rank);
	return p;
}

/* Blocks and, where the blocks of a (v) form leave some, gaps between them. */
static bool piece_of_many(enum plan_goal goal, const struct plan_call *call, int32_t rank,
			  uint32_t index, struct plan_goal_piece *piece)
{
	const uint32_t per = call->vector ? 2 : 1;
	const int32_t from = (int32_t)(index / per);
	const uint64_t *at;

	if (from >= call->size)
		return false;
	*piece = (struct plan_goal_piece){
		.length = block_length(call, rank, PLAN_DST, from), .from = from};
	if (index % per) {
		at = block_table(call, rank, PLAN_DST);
		piece->length = at[2 * from + 2] - at[2 * from + 1];
		piece->from = PLAN_GOAL_UNTOUCHED;
	} else if (goal == PLAN_GOAL_ALLTOALL) {
		piece->pos = block_at(call, from, PLAN_SRC, rank);
	}
	return true;
}

bool plan_goal_piece(enum plan_goal goal, const struct plan_call *call, int32_t rank,
		     uint32_t index, struct plan_goal_piece *piece)
{
	const struct goal_row *row = &goal_table[goal];

	if (!holds(row->dst_at, call, rank))
		return false;
	if (row->dst == ONE_PER_RANK)
		return piece_of_many(goal, call, rank, index, piece);
	if (index)
		return false;
	*piece = piece_of_one(goal, call, rank);
	return true;
}
