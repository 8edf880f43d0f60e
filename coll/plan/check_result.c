/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the checker: whether the result of every rank is what the collective promises.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_job.h"

/* The only right contents of a result that is not summed up, as runs. */
static bool copies_wanted(const struct check_job *job, int32_t rank,
			  struct check_runs *want)
{
	struct plan_goal_piece p;
	uint64_t at = check_shift(&job->rank[rank], PLAN_DST);

	check_runs_clear(want);
	for (uint32_t i = 0; plan_goal_piece(job->check->goal, job->call, rank, i, &p);
	     i++) {
		struct check_run run = {.length = p.length, .pos = p.pos};

		/* What nobody has written counts from the beginning of its memory. */
		if (p.from == PLAN_GOAL_UNTOUCHED)
			run.pos = at;
		else
			run.expr = check_expr_leaf(&job->exprs, (uint32_t)p.from);
		at += p.length;
		if (p.length && !check_runs_add(want, run))
			return false;
	}
	return true;
}

/* Whether all ranks must have the same, so that one list is enough. */
static bool all_alike(const struct check_job *job)
{
	const enum plan_goal goal = job->check->goal;

	return goal == PLAN_GOAL_BROADCAST || goal == PLAN_GOAL_ALLREDUCE ||
	       (goal == PLAN_GOAL_ALLGATHER && !job->call->vector);
}

/* Where two lists of runs differ: the element, or UINT64_MAX. Lists are joined as far as
 * they can be, so equal contents are equal lists. */
static uint64_t runs_differ(const struct check_runs *a, const struct check_runs *b)
{
	uint64_t at = 0;

	for (size_t i = 0; i < a->used && i < b->used; i++) {
		const struct check_run *x = &a->run[i], *y = &b->run[i];

		if (!check_term_same(x->expr, y->expr) || x->pos != y->pos)
			return at;
		at += x->length < y->length ? x->length : y->length;
		if (x->length != y->length)
			return at;
	}
	return a->length == b->length ? UINT64_MAX : at;
}

/* Rule of a reduction: element x holds every rank's element base + x once, divided once
 * where an average was asked for. */
static int sums_check(struct check_job *job, int32_t rank, const struct check_runs *runs)
{
	/* One rank's average is its own element: dividing by 1 is left out. */
	bool scaled = job->call->average && job->size > 1;
	struct plan_goal_piece p = {.pos = 0};
	uint64_t at;

	plan_goal_piece(job->check->goal, job->call, rank, 0, &p);
	at = p.pos;

	for (size_t i = 0; i < runs->used; i++) {
		const struct check_run *r = &runs->run[i];
		const struct check_expr *e = &job->exprs.expr[r->expr.node];

		if (r->pos != at && r->expr.node)
			return check_fault(job,
					   "rank %d: contributions: element %" PRIu64
					   " holds elements %" PRIu64,
					   rank, at - p.pos, r->pos);
		if (e->set.size != (uint32_t)job->size)
			return check_fault(job,
					   "rank %d: contributions: element %" PRIu64
					   " lacks rank %u's",
					   rank, at - p.pos,
					   check_expr_missing(&job->exprs, r->expr));
		if (e->scaled != scaled)
			return check_fault(job, "rank %d: scale: element %" PRIu64 " %s",
					   rank, at,
					   scaled ? "was not divided" : "was divided");
		at += r->length;
	}
	return 0;
}

static int rank_check(struct check_job *job, int32_t r, struct check_runs *want,
		      struct check_runs *have)
{
	const enum plan_goal goal = job->check->goal;
	const bool sums = plan_goal_reduces(goal);
	const uint64_t length = plan_goal_length(goal, job->call, r, PLAN_DST);
	uint64_t at;

	check_runs_clear(have);
	if (!length)
		return 0;
	if (!check_mem_read(check_mem_of(&job->rank[r], PLAN_DST),
			    check_shift(&job->rank[r], PLAN_DST), length, have))
		return -ENOMEM;
	if (sums && (r == 0 || !all_alike(job))) {
		/* The first rank's, once right, is what the others must equal. */
		struct check_runs first = *have;

		*have = *want;
		*want = first;
		return sums_check(job, r, want);
	}
	if (!sums && (r == 0 || !all_alike(job)) && !copies_wanted(job, r, want))
		return -ENOMEM;
	at = runs_differ(have, want);
	if (at == UINT64_MAX)
		return 0;
	if (!sums)
		return check_fault(job,
				   "rank %d: contents: element %" PRIu64
				   " of the result is not what it must be",
				   r, at);
	if (sums_check(job, r, have))
		return -EINVAL;
	return check_fault(job,
			   "rank %d: bits: element %" PRIu64
			   " was added up in another order than at rank 0",
			   r, at);
}

int check_result(struct check_job *job)
{
	struct check_runs want = {.run = NULL}, have = {.run = NULL};
	int ret = 0;

	if (job->check->goal == PLAN_GOAL_BARRIER)
		return 0;
	for (int32_t r = 0; !ret && r < job->size; r++)
		ret = rank_check(job, r, &want, &have);
	free(want.run);
	free(have.run);
	return ret;
}
