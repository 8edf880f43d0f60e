/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the checker: whether the result of every rank is what the collective promises.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_job.h"

/* The only right contents of a broadcast or an all-gather, as runs. */
static bool copies_wanted(const struct check_job *job, struct check_runs *want)
{
	uint64_t count = job->call->count;
	bool gather = job->check->goal == PLAN_GOAL_ALLGATHER;

	for (int32_t r = 0; r < (gather ? job->size : 1); r++) {
		uint32_t from = (uint32_t)(gather ? r : job->call->root);

		if (!check_runs_add(want,
				    (struct check_run){.length = count,
						       .expr = check_expr_leaf(from)}))
			return false;
	}
	return true;
}

/* Where two lists of runs differ: the element, or UINT64_MAX. Lists are joined as far as
 * they can be, so equal contents are equal lists. */
static uint64_t runs_differ(const struct check_runs *a, const struct check_runs *b)
{
	uint64_t at = 0;

	for (size_t i = 0; i < a->used && i < b->used; i++) {
		const struct check_run *x = &a->run[i], *y = &b->run[i];

		if (x->expr != y->expr || x->pos != y->pos)
			return at;
		at += x->length < y->length ? x->length : y->length;
		if (x->length != y->length)
			return at;
	}
	return a->length == b->length ? UINT64_MAX : at;
}

/* Rule of an all-reduce: element x holds every rank's element x once, divided once where
 * an average was asked for. */
static int sums_check(struct check_job *job, int32_t rank, const struct check_runs *runs)
{
	/* One rank's average is its own element: dividing by 1 is left out. */
	bool scaled = job->call->average && job->size > 1;
	uint64_t at = 0;

	for (size_t i = 0; i < runs->used; i++) {
		const struct check_run *r = &runs->run[i];
		const struct check_expr *e = &job->exprs.expr[r->expr];

		if (r->pos != at && r->expr != CHECK_EXPR_NOTHING)
			return check_fault(job,
					   "rank %d: contributions: element %" PRIu64
					   " holds elements %" PRIu64,
					   rank, at, r->pos);
		if (e->set.size != (uint32_t)job->size)
			return check_fault(job,
					   "rank %d: contributions: element %" PRIu64
					   " lacks rank %u's",
					   rank, at,
					   check_set_missing(&job->exprs.pool, e->set));
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
	bool sums = job->check->goal == PLAN_GOAL_ALLREDUCE;
	const struct check_mem *m = &job->rank[r].mem[PLAN_DST];
	uint64_t length = m->cell[m->cells].at, at;

	check_runs_clear(have);
	if (length && !check_mem_read(m, 0, length, have))
		return -ENOMEM;
	if (sums && r == 0) {
		/* The first rank's, once right, is what the others must equal. */
		struct check_runs first = *have;

		*have = *want;
		*want = first;
		return sums_check(job, r, want);
	}
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

	if (job->check->goal == PLAN_GOAL_BARRIER || !job->call->count)
		return 0;
	if (job->check->goal != PLAN_GOAL_ALLREDUCE && !copies_wanted(job, &want))
		ret = -ENOMEM;
	for (int32_t r = 0; !ret && r < job->size; r++)
		ret = rank_check(job, r, &want, &have);
	free(want.run);
	free(have.run);
	return ret;
}
