/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: takes the plans of all ranks of one call and proves, for every
 * interleaving that their dependencies allow, that
 *  - SENDs and RECVs pair up, with equal lengths and equal ranges at the receiver;
 *  - no place is written before it is READY or while it is read, and no place is read
 * before it is written (two accesses of which one writes are always ordered);
 *  - a SEND with a proof starts after its RECV is READY;
 *  - each element of the result holds exactly the contributions it must, scaled exactly
 * once where an average was asked for, never otherwise;
 *  - everybody finishes (no deadlock), also when a rank looks ahead only `window`
 * instances.
 */
#ifndef WEFT_PLAN_CHECKER_H
#define WEFT_PLAN_CHECKER_H

#include <stddef.h>

#include "coll/plan/goal.h"
#include "coll/plan/plan.h"

struct plan_check {
	enum plan_goal goal;
	const struct plan_call *call; /* rank is ignored */
	struct plan *const *plans;    /* call->size of them, by rank */
	uint64_t window;	      /* instances that an executor looks ahead; 0: all */
};

/* 0 when proven; -EINVAL with a sentence in why (rank, instance, rule); -ENOMEM. */
int plan_check(const struct plan_check *check, char *why, size_t why_len);

#endif
