/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside coll/algo: the build functions that the table of algo.c names, and the checks
 * and sizes that they share.
 */
#ifndef WEFT_ALGO_BUILD_H
#define WEFT_ALGO_BUILD_H

#include "coll/algo/algo.h"

/* Ranks that one rank serves by itself, at most. */
#define BUILD_FLAT_RANKS 16

/* Peers that a rank which talks to all has under way. */
#define BUILD_LANES 8

/* Levels of a tree, at most. */
#define BUILD_LEVELS_MAX 33

int barrier_flat_build(const struct plan_call *call, struct plan **plan,
		       const char **why);
int broadcast_flat_build(const struct plan_call *call, struct plan **plan,
			 const char **why);
int barrier_dissemination_build(const struct plan_call *call, struct plan **plan,
				const char **why);
int broadcast_binomial_build(const struct plan_call *call, struct plan **plan,
			     const char **why);
int allgather_ring_build(const struct plan_call *call, struct plan **plan,
			 const char **why);
int allgather_doubling_build(const struct plan_call *call, struct plan **plan,
			     const char **why);
int allreduce_ring_build(const struct plan_call *call, struct plan **plan,
			 const char **why);
int allreduce_doubling_build(const struct plan_call *call, struct plan **plan,
			     const char **why);
int allreduce_halving_build(const struct plan_call *call, struct plan **plan,
			    const char **why);

int allgather_ffbruck_build(const struct plan_call *call, struct plan **plan,
			    const char **why);
int broadcast_chain_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int reduce_chain_build(const struct plan_call *call, struct plan **plan,
		       const char **why);
int allgatherv_ring_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int reducescatter_ring_build(const struct plan_call *call, struct plan **plan,
			     const char **why);
int reducescatter_halving_build(const struct plan_call *call, struct plan **plan,
				const char **why);
int alltoall_pairwise_build(const struct plan_call *call, struct plan **plan,
			    const char **why);
int alltoall_direct_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int alltoall_bruck_build(const struct plan_call *call, struct plan **plan,
			 const char **why);
int reduce_binomial_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int gather_binomial_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int gather_direct_build(const struct plan_call *call, struct plan **plan,
			const char **why);
int scatter_binomial_build(const struct plan_call *call, struct plan **plan,
			   const char **why);
int scatter_direct_build(const struct plan_call *call, struct plan **plan,
			 const char **why);

int broadcast_knomial_build(const struct plan_call *call, struct plan **plan,
			    const char **why);
int broadcast_double_build(const struct plan_call *call, struct plan **plan,
			   const char **why);
int broadcast_nodes_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int reduce_knomial_build(const struct plan_call *call, struct plan **plan,
			 const char **why);
int reduce_double_build(const struct plan_call *call, struct plan **plan,
			const char **why);
int reduce_nodes_build(const struct plan_call *call, struct plan **plan,
		       const char **why);
int allreduce_double_build(const struct plan_call *call, struct plan **plan,
			   const char **why);
int allreduce_nodes_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int barrier_nodes_build(const struct plan_call *call, struct plan **plan,
			const char **why);
int barrier_doubling_build(const struct plan_call *call, struct plan **plan,
			   const char **why);
int allgather_streamed_build(const struct plan_call *call, struct plan **plan,
			     const char **why);
int allgather_nodes_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int barrier_lines_build(const struct plan_call *call, struct plan **plan,
			const char **why);
int broadcast_lines_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int allgather_lines_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int allreduce_lines_build(const struct plan_call *call, struct plan **plan,
			  const char **why);
int reducescatter_lines_build(const struct plan_call *call, struct plan **plan,
			      const char **why);
int alltoall_lines_build(const struct plan_call *call, struct plan **plan,
			 const char **why);
int reduce_lines_build(const struct plan_call *call, struct plan **plan,
		       const char **why);
int gather_lines_build(const struct plan_call *call, struct plan **plan,
		       const char **why);
int scatter_lines_build(const struct plan_call *call, struct plan **plan,
			const char **why);
/* How lines carry a call, where they do: by what each rank gives away in it. */
enum plan_lines lines_fit(const struct plan_call *call, enum plan_goal goal);
/* Whether a plan of a step for each block is not too long. */
bool allgather_nodes_can(const struct plan_call *call);

/* 0, or -EINVAL and *why: rank, size, element size, blocks * count within 64 bits, ranks
 * that a plan can number. blocks 0: nothing is carried. */
int build_check(const struct plan_call *call, uint64_t blocks, const char **why);

/* Pieces into which a block of so many elements is cut, for `blocks` blocks in all: by
 * call->chunk_bytes or else by granule (bytes). At least 1; never pieces of nothing
 * because of a granule smaller than an element. */
uint32_t build_chunks(const struct plan_call *call, uint64_t block, uint64_t granule,
		      uint32_t blocks);

/* 0, or -EINVAL and *why: the root is a rank. After build_check(). */
int build_check_root(const struct plan_call *call, const char **why);

/* A buffer that has one block per rank. */
struct build_blocks {
	uint8_t part;
	uint8_t per; /* parts from block to block: in a (v) form gaps are parts as well */
};

/* Of SRC, of DST; in a (v) form by the call's tables, or bound late. */
struct build_blocks build_send_blocks(struct plan_builder *b,
				      const struct plan_call *call);
struct build_blocks build_recv_blocks(struct plan_builder *b,
				      const struct plan_call *call);
/* The one block of a rank in a buffer that has only that, where the other buffer, at rank
 * `of`, has one per rank: `send`: in SRC there. */
uint8_t build_own_block(struct plan_builder *b, const struct plan_call *call, bool send,
			int32_t of);

/* `count` blocks from that of rank `first` on, round the end. */
struct plan_range build_block_run(enum plan_buf buf, struct build_blocks blocks,
				  int64_t first, int64_t count, int32_t size);

/* Blocks that a buffer has at most, each of call->count; of a (v) form that is the whole.
 */
static inline uint64_t build_blocks_most(const struct plan_call *call)
{
	return call->vector ? 1 : (uint64_t)call->size;
}

/* Elements of SRC with a block per rank, gaps included; the most where bound late. */
static inline uint64_t build_send_span(const struct plan_call *call)
{
	if (!call->vector)
		return call->count * (uint64_t)call->size;
	return call->tables ? call->tables->send[call->rank][2 * call->size]
			    : call->count;
}

/* Nothing is to be moved at any rank. */
static inline bool build_is_empty(const struct plan_call *call)
{
	return !call->count && !call->vector;
}

/* Distance of a rank from the root, going up, and back. */
static inline int64_t build_from_root(const struct plan_call *call)
{
	int64_t v = (int64_t)call->rank - call->root;

	return v < 0 ? v + call->size : v;
}

/* Ranks of a binomial tree over n from the one at distance v from the root down. */
int64_t build_subtree(int64_t v, int64_t n);

/* at mod n, never negative. */
static inline uint32_t build_mod(int64_t at, int64_t n)
{
	int64_t m = at % n;

	return (uint32_t)(m < 0 ? m + n : m);
}

/* The rank at that distance from another, going up. */
static inline int32_t build_rank(const struct plan_call *call, int64_t from, int64_t dist)
{
	return (int32_t)build_mod(from + dist, call->size);
}

#endif
