/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gather straight into the root's DST: every rank sends its block to the root, which
 * expects so many at a time, from growing distances. Here because no block is carried
 * twice: for long blocks, for few ranks, and for the (v) form, where only the root knows
 * all lengths.
 * Cost: (n - 1) * (o + m * b) + a for blocks of m bytes, o what the root needs to start
 * and end a receive.
 */
#include "config.h"

#include "coll/algo/build.h"

int gather_direct_build(const struct plan_call *call, struct plan **plan,
			const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct build_blocks all = {0, 1};
	struct plan_builder *b;
	struct plan_range own;
	uint32_t recv;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	b = plan_builder_open("gather/direct", call);
	if (build_is_empty(call))
		return plan_builder_finish(b, plan, why);
	own = plan_run(PLAN_SRC, build_own_block(b, call, false, call->root), 0, 1);
	if (call->rank != call->root) {
		plan_add_send(b, call->root, own, plan_anywhere());
		return plan_builder_finish(b, plan, why);
	}
	all = build_recv_blocks(b, call);
	if (call->size > 1) {
		plan_loop_begin(b, (uint32_t)call->size - 1);
		recv = plan_add_recv(
			b, build_rank(call, call->rank, 1),
			build_block_run(PLAN_DST, all, call->rank + 1, 1, call->size));
		plan_set_advance(b, recv, 1, all.per, 0, 0);
		plan_add_dep(b, recv, recv, -BUILD_LANES, 1);
		plan_loop_end(b);
	}
	if (!call->in_place)
		plan_add_copy(b,
			      build_block_run(PLAN_DST, all, call->rank, 1, call->size),
			      own);
	return plan_builder_finish(b, plan, why);
}
