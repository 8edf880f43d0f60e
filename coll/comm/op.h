/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the caller: a context has places for a few. The place's number is the
 * value that the caller gets, and what the ranks compare.
 */
#ifndef WEFT_COMM_OP_H
#define WEFT_COMM_OP_H

#include <stdbool.h>

#include "coll/exec/sig.h"
#include "weft/weft.h"

#define COMM_OPS_MAX (SIG_OPS - WEFT_OP_COUNT)

struct comm_op {
	void (*apply)(void *arg, enum weft_type type, void *dst, const void *a,
		      const void *b, uint64_t count); /* NULL: the place is free */
	void *arg;
	bool ordered;
};

/* What the value means in the table of a context; NULL: nothing. */
static inline const struct comm_op *comm_op_find(const struct comm_op *table,
						 enum weft_op op)
{
	const unsigned place = (unsigned)op - WEFT_OP_USER;

	return place < COMM_OPS_MAX && table[place].apply ? &table[place] : NULL;
}

#endif
