/* SPDX-License-Identifier: BSD-2-Clause */
/* See sig.h. */
#include "config.h"

#include <assert.h>
#include <stdio.h>

#include "coll/algo/algo.h"
#include "coll/exec/sig.h"
#include "weft/weft.h"

static_assert(WEFT_COLL_COUNT <= SIG_COLL_PAIR && SIG_COLL_PAIR < 1 << 4 &&
		      WEFT_TYPE_COUNT <= 1 << 4 && WEFT_OP_COUNT < SIG_OPS &&
		      SIG_OPS == 1 << 5 && SIG_ALGORITHMS == 1 << 4,
	      "collectives, types and operations fit their fields");

#define SIG_REST_BITS SIG_PAST_SHIFT /* root and count */

/* Where the fields begin. */
enum { SIG_COLL = 60, SIG_TYPE = 56, SIG_OP = 51, SIG_ALGORITHM = 47 };

static unsigned sig_root_bits(int32_t size)
{
	return size > 1 ? 32 - (unsigned)__builtin_clz((uint32_t)size - 1) : 0;
}

uint64_t sig_pack(const struct sig_call *call, uint64_t past, int32_t size)
{
	const unsigned bits = SIG_REST_BITS - sig_root_bits(size);
	const uint64_t top = UINT64_C(1) << (bits - 1);
	uint64_t count = call->count;

	if (count >= top)
		count = top |
			((count * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - (bits - 1)));
	return (uint64_t)call->coll << SIG_COLL | (uint64_t)call->type << SIG_TYPE |
	       (uint64_t)(call->op & (SIG_OPS - 1)) << SIG_OP |
	       (uint64_t)(call->algorithm & (SIG_ALGORITHMS - 1)) << SIG_ALGORITHM |
	       (past >> 53) << SIG_PAST_SHIFT | (uint64_t)(uint32_t)call->root << bits |
	       count;
}

bool sig_unpack(uint64_t sig, int32_t size, struct sig_call *call)
{
	const unsigned root_bits = sig_root_bits(size), bits = SIG_REST_BITS - root_bits;
	const uint64_t top = UINT64_C(1) << (bits - 1);
	const uint64_t count = sig & (2 * top - 1);

	*call = (struct sig_call){
		.coll = sig >> SIG_COLL,
		.type = sig >> SIG_TYPE & 15,
		.op = sig >> SIG_OP & (SIG_OPS - 1),
		.algorithm = sig >> SIG_ALGORITHM & (SIG_ALGORITHMS - 1),
		.root = (int32_t)(sig >> bits & ((UINT64_C(1) << root_bits) - 1)),
		.count = count & top ? top : count,
	};
	return !(count & top);
}

uint32_t sig_length_hash(const struct sig_call *call)
{
	const uint64_t elem_size = weft_type_size((enum weft_type)call->type);
	uint64_t hash = call->count;

	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) + elem_size;
	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) +
	       (uint64_t)(uint32_t)call->root;
	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) +
	       ((uint64_t)call->coll << 8 | call->algorithm);
	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(hash >> 50);
}

bool sig_call_same(const struct sig_call *a, const struct sig_call *b)
{
	return a->coll == b->coll && a->count == b->count && a->type == b->type &&
	       a->op == b->op && a->root == b->root && a->algorithm == b->algorithm;
}

void sig_call_print(const struct sig_call *call, bool exact, char *text, size_t len)
{
	const enum weft_coll coll = (enum weft_coll)call->coll;
	const struct algo *algo = algo_at(weft_coll_name(coll), call->algorithm);
	char op[16] = "", root[24] = "";

	if (call->coll == SIG_COLL_PAIR) {
		snprintf(text, len, "%s%llu %s", exact ? "" : "at least ",
			 (unsigned long long)call->count,
			 weft_type_name((enum weft_type)call->type));
		return;
	}
	if (coll == WEFT_COLL_BARRIER) {
		snprintf(text, len, "barrier (%s)", algo ? algo->name : "?");
		return;
	}
	if (algo && plan_goal_reduces(algo->goal) && call->op >= WEFT_OP_COUNT)
		snprintf(op, sizeof(op), " user %d", call->op - WEFT_OP_COUNT);
	else if (algo && plan_goal_reduces(algo->goal))
		snprintf(op, sizeof(op), " %s", weft_op_name((enum weft_op)call->op));
	if (algo && plan_goal_rooted(algo->goal))
		snprintf(root, sizeof(root), " %s root %d",
			 algo->goal == PLAN_GOAL_REDUCE || algo->goal == PLAN_GOAL_GATHER
				 ? "to"
				 : "from",
			 call->root);
	snprintf(text, len, "%s (%s) of %s%llu %s%s%s", weft_coll_name(coll),
		 algo ? algo->name : "?", exact ? "" : "at least ",
		 (unsigned long long)call->count,
		 weft_type_name((enum weft_type)call->type), op, root);
}
