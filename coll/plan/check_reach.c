/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: whether one instance of a rank is always done before another
 * starts. A search back along the dependencies that never goes below the instance looked
 * for (all dependencies point backwards); in the plans that algorithms make, the answer
 * is one or two hops away, so that nothing need be remembered for all pairs.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "coll/plan/check_job.h"

bool check_reach_init(struct check_reach *r, const struct check_rank *rank)
{
	*r = (struct check_reach){.rank = rank};
	r->seen = calloc((size_t)rank->plan->instances + 1, sizeof(*r->seen));
	return r->seen;
}

void check_reach_fini(struct check_reach *r)
{
	free(r->seen);
	free(r->stack);
}

int check_reaches(struct check_reach *r, uint64_t from, uint64_t to)
{
	const struct plan *p = r->rank->plan;
	size_t depth = 0;

	if (from >= to)
		return from == to;
	r->question++;
	if (!check_reserve(&r->stack, &r->room, 1, sizeof(*r->stack)))
		return -ENOMEM;
	r->stack[depth++] = to;
	while (depth) {
		struct plan_instance in;
		const struct plan_step *s;

		plan_instance_at(p, r->stack[--depth], &in);
		s = &p->step[in.step];
		for (uint32_t i = 0; i < s->dep_count; i++) {
			uint64_t on;

			if (!check_dep_on(&r->rank->dep[s->dep_first + i], in.trip, &on))
				continue;
			if (on == from)
				return 1;
			if (on < from || r->seen[on] == r->question)
				continue;
			r->seen[on] = r->question;
			if (!check_reserve(&r->stack, &r->room, depth + 1,
					   sizeof(*r->stack)))
				return -ENOMEM;
			r->stack[depth++] = on;
		}
	}
	return 0;
}
