/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of a (v) form made up for checks and tests: blocks of lengths that differ, some
 * of them nothing, with gaps between some, all drawn from a seed.
 */
#ifndef WEFT_PLAN_TABLES_H
#define WEFT_PLAN_TABLES_H

#include "coll/plan/goal.h"

/* For call->size ranks with blocks of up to `most` elements; call->root is looked at. As
 * much agrees between ranks as must. NULL when memory ran out. */
const struct plan_tables *plan_tables_make(enum plan_goal goal,
					   const struct plan_call *call, uint64_t most,
					   uint64_t seed);
void plan_tables_free(const struct plan_tables *tables, int32_t size);

#endif
