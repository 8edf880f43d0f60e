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

/* 0, or -EINVAL and *why: rank, size, element size, blocks * count within 64 bits, ranks
 * that a plan can number. blocks 0: nothing is carried. */
int build_check(const struct plan_call *call, uint64_t blocks, const char **why);

/* Pieces into which a block of so many elements is cut, for `blocks` blocks in all: by
 * call->chunk_bytes or else by granule (bytes). At least 1; never pieces of nothing
 * because of a granule smaller than an element. */
uint32_t build_chunks(const struct plan_call *call, uint64_t block, uint64_t granule,
		      uint32_t blocks);

/* at mod n, never negative. */
static inline uint32_t build_mod(int64_t at, int64_t n)
{
	int64_t m = at % n;

	return (uint32_t)(m < 0 ? m + n : m);
}

#endif
