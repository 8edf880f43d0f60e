/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of the proofs. See checker.h for what is proven, check_*.c for how. */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "coll/plan/check_job.h"

/* Wide enough for most plans to finish, so that "look ahead without limit" need not keep
 * every instance in memory: what finishes in a window finishes without one. */
#define WINDOW_FIRST 64

static uint64_t instances_most(const struct check_job *job)
{
	uint64_t most = 1;

	for (int32_t r = 0; r < job->size; r++) {
		if (job->rank[r].plan->instances > most)
			most = job->rank[r].plan->instances;
	}
	return most;
}

static int contents_check(struct check_job *job)
{
	uint64_t window = job->check->window, most = instances_most(job);
	bool stuck;
	int ret;

	if (window) {
		ret = check_run(job, window < most ? window : most, &stuck);
	} else {
		ret = check_run(job, most < WINDOW_FIRST ? most : WINDOW_FIRST, &stuck);
		if (ret && stuck && most > WINDOW_FIRST)
			ret = check_run(job, most, &stuck);
	}
	return ret ? ret : check_result(job);
}

int plan_check(const struct plan_check *check, char *why, size_t why_len)
{
	struct check_job job;
	int ret;

	if (why_len)
		why[0] = '\0';
	ret = check_job_init(&job, check, why, why_len);
	/* Contents are followed in one order only: that it stands for all is what the
	 * conflicts have to be excluded for first. */
	if (!ret)
		ret = check_conflicts(&job);
	if (!ret)
		ret = contents_check(&job);
	if (!ret)
		ret = check_proofs(&job);
	if (ret == -ENOMEM)
		snprintf(why, why_len, "out of memory");
	check_job_fini(&job);
	return ret;
}
