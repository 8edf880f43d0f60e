/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short collectives among few ranks in one step: everybody gives what it has to everybody
 * who needs it, and what is added up each rank adds up for itself, in the order of ranks,
 * so that all hold the same bits and operations need not commute. Here because ranks of
 * one host that share memory (coll/exec/lines.h) do it with one line written and n - 1
 * read. These plans say the same as messages: it is what the checker proves, and what
 * runs where there are no lines. Cost: a + (n - 1) (o + m (b + g)).
 */
#include "config.h"

#include <errno.h>

#include "coll/algo/build.h"

struct exchange {
	const struct plan_call *call;
	struct plan_builder *b;
	uint32_t send, recv; /* in trip t the one to rank + t + 1, from rank - t - 1 */
	uint8_t in;	     /* scratch by distance; place 0 is for sums */
};

/*
 * Bytes that a rank gives away, all its blocks together, up to which lines carry them. Up
 * to `near` (between two ranks) or `more` (among more) they go through the lines
 * themselves, in pieces, and twice through a processor. Up to `far` they are read where
 * they lie, which takes a turn more to say so and a system call for each rank that is
 * read from: about a microsecond, and more where many read from one at a time. Measured
 * with 2 ranks on a Zen 5, and with 8 and 16 on as many processors of a Xeon: what one
 * rank alone reads, or adds up as it reads it, gains by lines the longest; what is longer
 * than `far` does by a pipeline. Of blocks that one rank reads of each other one and
 * nobody passes on no pipeline makes anything.
 */
static const struct {
	uint64_t near, more, far;
	bool blocks; /* a rank gives away one to each */
} lines_reach[PLAN_GOALS] = {
	[PLAN_GOAL_BARRIER] = {0, 0, 0, false},
	[PLAN_GOAL_BROADCAST] = {UINT64_C(64) << 10, UINT64_C(128) << 10,
				 UINT64_C(128) << 10, false},
	[PLAN_GOAL_ALLGATHER] = {UINT64_C(16) << 10, UINT64_C(16) << 10,
				 UINT64_C(1) << 20, false},
	[PLAN_GOAL_ALLREDUCE] = {UINT64_C(32) << 10, UINT64_C(32) << 10,
				 UINT64_C(1) << 20, false},
	[PLAN_GOAL_REDUCE_SCATTER] = {UINT64_C(16) << 10, UINT64_C(32) << 10,
				      UINT64_C(32) << 20, true},
	[PLAN_GOAL_ALLTOALL] = {UINT64_C(16) << 10, UINT64_C(32) << 10, UINT64_C(2) << 20,
				true},
	[PLAN_GOAL_REDUCE] = {UINT64_C(64) << 10, UINT64_C(32) << 10, UINT64_C(2) << 20,
			      false},
	[PLAN_GOAL_GATHER] = {UINT64_C(32) << 10, UINT64_C(8) << 10, UINT64_C(512) << 10,
			      false},
	[PLAN_GOAL_SCATTER] = {UINT64_C(16) << 10, UINT64_C(32) << 10, UINT64_C(1) << 40,
			       true},
};

enum plan_lines lines_fit(const struct plan_call *call, enum plan_goal goal)
{
	const uint64_t size = call->size > 2 ? (uint64_t)call->size : 2;
	uint64_t bytes;

	if (call->size < 2 || call->size > PLAN_LINES_RANKS || call->vector)
		return PLAN_LINES_NONE;
	if (goal == PLAN_GOAL_BARRIER)
		return PLAN_LINES_NEAR;
	if (!call->count ||
	    __builtin_mul_overflow(call->count, (uint64_t)call->elem_size, &bytes) ||
	    __builtin_mul_overflow(bytes, lines_reach[goal].blocks ? size : 1, &bytes))
		return PLAN_LINES_NONE;
	if (bytes <= (size == 2 ? lines_reach[goal].near : lines_reach[goal].more))
		return PLAN_LINES_NEAR;
	/* In place the peers' blocks would come over what they still read. */
	return call->reads && bytes <= lines_reach[goal].far &&
			       !(goal == PLAN_GOAL_ALLTOALL && call->in_place)
		       ? PLAN_LINES_FAR
		       : PLAN_LINES_NONE;
}

static int lines_check(const struct plan_call *call, bool data, const char **why)
{
	const int ret = build_check(call, data ? (uint64_t)call->size : 0, why);

	if (ret || call->size <= PLAN_LINES_RANKS)
		return ret;
	*why = "too many ranks for one to talk to them all";
	return -EINVAL;
}

static int lines_finish(const struct exchange *x, enum plan_goal goal, struct plan **plan,
			const char **why)
{
	plan_by_lines(x->b, lines_fit(x->call, goal));
	return plan_builder_finish(x->b, plan, why);
}

/* ---- exchanges -----------------------------------------------------------------------
 */

/* In trip t to the rank t + 1 above and from the one t + 1 below. `advance`: of send's
 * source, recv's destination. */
static void exchange_add(struct exchange *x, struct plan_range src, int32_t src_advance,
			 struct plan_range at_peer, struct plan_range dst,
			 int32_t dst_advance)
{
	const struct plan_call *call = x->call;

	plan_loop_begin(x->b, (uint32_t)call->size - 1);
	x->send = plan_add_send(x->b, build_rank(call, call->rank, 1), src, at_peer);
	plan_set_advance(x->b, x->send, 1, at_peer.buf == PLAN_SCRATCH, src_advance, 0);
	x->recv = plan_add_recv(x->b, build_rank(call, call->rank, -1), dst);
	plan_set_advance(x->b, x->recv, -1, dst_advance, 0, 0);
	plan_loop_end(x->b);
}

static struct plan_range scratch_at(const struct exchange *x, uint32_t distance)
{
	return plan_run(PLAN_SCRATCH, x->in, distance, 1);
}

/* Scratch for a block of each rank, by its distance. */
static void scratch_add(struct exchange *x)
{
	const uint64_t all = x->call->count * (uint64_t)x->call->size;

	plan_need_scratch(x->b, all);
	x->in = plan_add_balanced(x->b, all, (uint32_t)x->call->size);
}

/* dst = the sum of all ranks' blocks, of which `own` is ours and the others lie in
 * scratch; came(q) is the trip of the receive from q. guard: dst is what was sent. */
static void fold_add(struct exchange *x, struct plan_range dst, struct plan_range own,
		     bool guard)
{
	const struct plan_call *call = x->call;
	const int32_t n = call->size;
	uint32_t sum = 0;

	for (int32_t q = 1; q < n; q++) {
		const uint32_t far = build_mod((int64_t)call->rank - q, n);
		const uint32_t low = build_mod((int64_t)call->rank - (q - 1), n);
		const struct plan_range so_far = q > 1 ? scratch_at(x, 0)
						 : low ? scratch_at(x, low)
						       : own;

		sum = plan_add_reduce(x->b, q + 1 < n ? scratch_at(x, 0) : dst, so_far,
				      far ? scratch_at(x, far) : own);
		if (q > 1)
			plan_add_dep_same(x->b, sum, sum - 1);
		else if (low)
			plan_add_dep(x->b, sum, x->recv, (int32_t)low - 1, 0);
		if (far)
			plan_add_dep(x->b, sum, x->recv, (int32_t)far - 1, 0);
	}
	for (int32_t t = 0; guard && t < n - 1; t++)
		plan_add_dep(x->b, sum, x->send, t, 0);
	if (call->average)
		plan_set_scale(x->b, sum);
}

/* ---- by collective -------------------------------------------------------------------
 */

int barrier_lines_build(const struct plan_call *call, struct plan **plan,
			const char **why)
{
	const int ret = lines_check(call, false, why);
	struct exchange x = {.call = call};

	if (ret)
		return ret;
	x.b = plan_builder_open("barrier/lines", call);
	if (call->size > 1)
		exchange_add(&x, plan_nothing(), 0, plan_nothing(), plan_nothing(), 0);
	return lines_finish(&x, PLAN_GOAL_BARRIER, plan, why);
}

int allreduce_lines_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	const int ret = lines_check(call, true, why);
	struct exchange x = {.call = call};
	struct plan_range dst, own;
	uint8_t whole;

	if (ret)
		return ret;
	x.b = plan_builder_open("allreduce/lines", call);
	if (!call->count)
		return plan_builder_finish(x.b, plan, why);
	whole = plan_add_balanced(x.b, call->count, 1);
	dst = plan_run(PLAN_DST, whole, 0, 1);
	own = plan_run(call->in_place ? PLAN_DST : PLAN_SRC, whole, 0, 1);
	if (call->size > 1) {
		scratch_add(&x);
		exchange_add(&x, own, 0, scratch_at(&x, 1), scratch_at(&x, 1), 1);
		fold_add(&x, dst, own, call->in_place);
	} else if (!call->in_place) {
		plan_add_copy(x.b, dst, own);
	}
	return lines_finish(&x, PLAN_GOAL_ALLREDUCE, plan, why);
}

int reduce_lines_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	int ret = lines_check(call, true, why);
	struct exchange x = {.call = call};
	uint8_t whole;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	x.b = plan_builder_open("reduce/lines", call);
	if (!call->count)
		return plan_builder_finish(x.b, plan, why);
	whole = plan_add_balanced(x.b, call->count, 1);
	if (call->rank != call->root) {
		plan_add_send(x.b, call->root, plan_run(PLAN_SRC, whole, 0, 1),
			      plan_anywhere());
	} else if (call->size > 1) {
		scratch_add(&x);
		plan_loop_begin(x.b, (uint32_t)call->size - 1);
		x.recv = plan_add_recv(x.b, build_rank(call, call->rank, -1),
				       scratch_at(&x, 1));
		plan_set_advance(x.b, x.recv, -1, 1, 0, 0);
		plan_loop_end(x.b);
		fold_add(&x, plan_run(PLAN_DST, whole, 0, 1),
			 plan_run(call->in_place ? PLAN_DST : PLAN_SRC, whole, 0, 1),
			 false);
	} else if (!call->in_place) {
		plan_add_copy(x.b, plan_run(PLAN_DST, whole, 0, 1),
			      plan_run(PLAN_SRC, whole, 0, 1));
	}
	return lines_finish(&x, PLAN_GOAL_REDUCE, plan, why);
}

int reducescatter_lines_build(const struct plan_call *call, struct plan **plan,
			      const char **why)
{
	const int ret = lines_check(call, true, why);
	struct exchange x = {.call = call};
	struct build_blocks all;
	struct plan_range dst, own;

	if (ret)
		return ret;
	x.b = plan_builder_open("reduce_scatter/lines", call);
	if (!call->count)
		return plan_builder_finish(x.b, plan, why);
	all = build_send_blocks(x.b, call);
	dst = plan_run(PLAN_DST, build_own_block(x.b, call, true, call->rank), 0, 1);
	own = build_block_run(PLAN_SRC, all, call->rank, 1, call->size);
	if (call->size > 1) {
		scratch_add(&x);
		exchange_add(&x,
			     build_block_run(PLAN_SRC, all, (int64_t)call->rank + 1, 1,
					     call->size),
			     all.per, scratch_at(&x, 1), scratch_at(&x, 1), 1);
		fold_add(&x, dst, own, false);
	} else if (!call->in_place) {
		plan_add_copy(x.b, dst, own);
	}
	return lines_finish(&x, PLAN_GOAL_REDUCE_SCATTER, plan, why);
}

int allgather_lines_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	const int ret = lines_check(call, true, why);
	struct exchange x = {.call = call};
	struct build_blocks all;
	struct plan_range place, own;

	if (ret)
		return ret;
	x.b = plan_builder_open("allgather/lines", call);
	if (!call->count)
		return plan_builder_finish(x.b, plan, why);
	all = build_recv_blocks(x.b, call);
	place = build_block_run(PLAN_DST, all, call->rank, 1, call->size);
	own = call->in_place
		      ? place
		      : plan_run(PLAN_SRC, build_own_block(x.b, call, false, call->rank),
				 0, 1);
	if (call->size > 1)
		exchange_add(&x, own, 0, place,
			     build_block_run(PLAN_DST, all, (int64_t)call->rank - 1, 1,
					     call->size),
			     -all.per);
	if (!call->in_place)
		plan_add_copy(x.b, place, own);
	return lines_finish(&x, PLAN_GOAL_ALLGATHER, plan, why);
}

/* ---- those that are one step as they are ---------------------------------------------
 */

typedef int build_fn(const struct plan_call *call, struct plan **plan, const char **why);

/* Nobody else has the plan yet. */
static int as_lines(build_fn *build, const char *name, enum plan_goal goal,
		    const struct plan_call *call, struct plan **plan, const char **why)
{
	int ret = lines_check(call, true, why);

	if (!ret)
		ret = build(call, plan, why);
	if (ret)
		return ret;
	(*plan)->algorithm = name;
	(*plan)->lines = (uint8_t)lines_fit(call, goal);
	return 0;
}

int broadcast_lines_build(const struct plan_call *call, struct plan **plan,
			  const char **why)
{
	return as_lines(broadcast_flat_build, "broadcast/lines", PLAN_GOAL_BROADCAST,
			call, plan, why);
}

int alltoall_lines_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	return as_lines(alltoall_direct_build, "alltoall/lines", PLAN_GOAL_ALLTOALL, call,
			plan, why);
}

int gather_lines_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	return as_lines(gather_direct_build, "gather/lines", PLAN_GOAL_GATHER, call, plan,
			why);
}

int scatter_lines_build(const struct plan_call *call, struct plan **plan,
			const char **why)
{
	return as_lines(scatter_direct_build, "scatter/lines", PLAN_GOAL_SCATTER, call,
			plan, why);
}
