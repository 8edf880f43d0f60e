/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter straight from the root's SRC: it sends every rank its block, so many at a time,
 * to growing distances. Here because no block is carried twice: for long blocks, for few
 * ranks, and for the (v) form, where only the root knows all lengths.
 * Cost: (n - 1) * (o + m * b) + a for blocks of m bytes, o what the root needs to start a
 * send.
 */
#include "config.h"

#include "coll/algo/build.h"

int scatter_direct_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct build_blocks all = {0, 1};
	struct plan_builder *b;
	struct plan_range own;
	uint32_t send;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	b = plan_builder_open("scatter/direct", call);
	if (build_is_empty(call))
		return plan_builder_finish(b, plan, why);
	own = plan_run(PLAN_DST, build_own_block(b, call, true, call->root), 0, 1);
	if (call->rank != call->root) {
		plan_add_recv(b, call->root, own);
		return plan_builder_finish(b, plan, why);
	}
	all = build_send_blocks(b, call);
	if (call->size > 1) {
		plan_loop_begin(b, (uint32_t)call->size - 1);
		send = plan_add_send(
			b, build_rank(call, call->rank, 1),
			build_block_run(PLAN_SRC, all, call->rank + 1, 1, call->size),
			plan_anywhere());
		plan_set_advance(b, send, 1, 0, all.per, 0);
		plan_add_dep(b, send, send, -BUILD_LANES, 1);
		plan_loop_end(b);
	}
	if (!call->in_place)
		plan_add_copy(b, own,
			      build_block_run(PLAN_SRC, all, call->rank, 1, call->size));
	return plan_builder_finish(b, plan, why);
}
