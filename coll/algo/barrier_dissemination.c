/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barrier by dissemination. In round k every rank tells rank + 2^k and hears from
 * rank - 2^k; what it tells includes everything that it has heard, so that after
 * ceil(log2 n) rounds it has heard of everybody, for any n. Here because no barrier takes
 * fewer rounds and no rank is special.
 * Cost: ceil(log2 n) * a; nothing is carried.
 * Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988.
 */
#include "config.h"

#include "coll/algo/build.h"

int barrier_dissemination_build(const struct plan_call *call, struct plan **plan,
				const char **why)
{
	uint32_t recv[32], rounds = 0;
	struct plan_builder *b;
	int64_t n = call->size;
	int ret = build_check(call, 0, why);

	if (ret)
		return ret;
	b = plan_builder_open("barrier/dissemination", call);
	for (int64_t dist = 1; dist < n; dist *= 2) {
		uint32_t send;

		recv[rounds] = plan_add_recv(b, (int32_t)build_mod(call->rank - dist, n),
					     plan_nothing());
		send = plan_add_send(b, (int32_t)build_mod(call->rank + dist, n),
				     plan_nothing(), plan_nothing());
		/* All earlier rounds, not only the last: receives may complete in any
		 * order. */
		for (uint32_t k = 0; k < rounds; k++)
			plan_add_dep_same(b, send, recv[k]);
		rounds++;
	}
	return plan_builder_finish(b, plan, why);
}
