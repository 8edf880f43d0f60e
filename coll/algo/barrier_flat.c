/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barrier at rank 0: all report to it, and when the last one did it tells all. Here
 * because it has two rounds for any n, and where ranks share processors each has to run
 * twice only; rank 0 handles all messages, so it is for few ranks.
 * Cost: 2 * a + (n - 1) * o, o what rank 0 needs for a message in and one out.
 */
#include "config.h"

#include <errno.h>

#include "coll/algo/build.h"

int barrier_flat_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	uint32_t recv[BUILD_FLAT_RANKS];
	struct plan_builder *b;
	int ret = build_check(call, 0, why);

	if (ret)
		return ret;
	if (call->size > BUILD_FLAT_RANKS) {
		*why = "too many ranks for one to talk to them all";
		return -EINVAL;
	}
	b = plan_builder_open("barrier/flat", call);
	if (call->rank) {
		plan_add_recv(b, 0, plan_nothing());
		plan_add_send(b, 0, plan_nothing(), plan_nothing());
		return plan_builder_finish(b, plan, why);
	}
	for (int32_t i = 1; i < call->size; i++)
		recv[i] = plan_add_recv(b, i, plan_nothing());
	for (int32_t i = 1; i < call->size; i++) {
		const uint32_t send = plan_add_send(b, i, plan_nothing(), plan_nothing());

		/* That it is there itself, it knows. */
		for (int32_t k = 1; k < call->size; k++) {
			if (k != i)
				plan_add_dep_same(b, send, recv[k]);
		}
	}
	return plan_builder_finish(b, plan, why);
}
