/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gather by doubling the distance. Where n is a power of two, partners rank ^ 2^k
 * exchange the aligned 2^k blocks that they have (recursive doubling). Otherwise a rank
 * holds the blocks rank .. rank + 2^k - 1 before round k, gives as many of them as are
 * missing to rank - 2^k and gets its own from rank + 2^k (Bruck's distances); blocks go
 * straight to their final places, as a run that may pass the end, so that nothing is
 * rotated or copied. Here because no all-gather has fewer rounds. No receive depends on
 * anything: each place is written once.
 * Cost: ceil(log2 n) * a + (n - 1) * m * b for blocks of m bytes.
 * Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
 * communications in multiport message-passing systems", 1997; recursive doubling as in
 * Thakur, Rabenseifner, Gropp, 2005.
 */
#include "config.h"

#include "coll/algo/build.h"

struct round {
	int64_t to, from;	  /* ranks */
	int64_t send_at, recv_at; /* first blocks */
	int64_t blocks;		  /* each way */
};

static struct round round_of(const struct plan_call *call, int64_t dist)
{
	int64_t n = call->size, rank = call->rank;

	if (!(n & (n - 1))) {
		int64_t peer = rank ^ dist;

		return (struct round){.to = peer,
				      .from = peer,
				      .send_at = rank & ~(dist - 1),
				      .recv_at = peer & ~(dist - 1),
				      .blocks = dist};
	}
	return (struct round){.to = build_mod(rank - dist, n),
			      .from = build_mod(rank + dist, n),
			      .send_at = rank,
			      .recv_at = build_mod(rank + dist, n),
			      .blocks = dist < n - dist ? dist : n - dist};
}

static void rounds_add(struct plan_builder *b, const struct plan_call *call,
		       struct build_blocks blocks, uint8_t own)
{
	uint32_t recv[32], rounds = 0, copy = 0;

	for (int64_t dist = 1; dist < call->size; dist *= 2, rounds++) {
		struct round r = round_of(call, dist);
		struct plan_range held = build_block_run(PLAN_DST, blocks, r.send_at,
							 r.blocks, call->size);
		bool from_src = rounds == 0 && !call->in_place;
		uint32_t send;

		recv[rounds] = plan_add_recv(b, (int32_t)r.from,
					     build_block_run(PLAN_DST, blocks, r.recv_at,
							     r.blocks, call->size));
		send = plan_add_send(b, (int32_t)r.to,
				     from_src ? plan_run(PLAN_SRC, own, 0, 1) : held,
				     call->vector ? plan_anywhere() : held);
		/* The blocks of round k begin 2^k after the own one: the last round of
		 * an uneven n may do without the later ones. */
		for (uint32_t k = 0; k < rounds && (INT64_C(1) << k) < r.blocks; k++)
			plan_add_dep_same(b, send, recv[k]);
		if (rounds > 0 && !call->in_place)
			plan_add_dep_same(b, send, copy);
		/* After the first send has been started from the source itself. */
		if (from_src)
			copy = plan_add_copy(b,
					     build_block_run(PLAN_DST, blocks, call->rank,
							     1, call->size),
					     plan_run(PLAN_SRC, own, 0, 1));
	}
}

int allgather_doubling_build(const struct plan_call *call, struct plan **plan,
			     const char **why)
{
	int ret = build_check(call, build_blocks_most(call), why);
	struct build_blocks blocks;
	struct plan_builder *b;
	uint8_t own;

	if (ret)
		return ret;
	b = plan_builder_open("allgather/recursive-doubling", call);
	if (build_is_empty(call))
		return plan_builder_finish(b, plan, why);
	blocks = build_recv_blocks(b, call);
	own = build_own_block(b, call, false, call->rank);
	if (call->size > 1)
		rounds_add(b, call, blocks, own);
	else if (!call->in_place)
		plan_add_copy(b, build_block_run(PLAN_DST, blocks, 0, 1, 1),
			      plan_run(PLAN_SRC, own, 0, 1));
	return plan_builder_finish(b, plan, why);
}
