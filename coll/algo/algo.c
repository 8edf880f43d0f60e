/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of algorithms, and the default choice among them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "coll/algo/build.h"

/*
 * Short vectors are bound by start-up times and take the fewest rounds. Long ones are
 * bound by bandwidth and take the ring, which works while it waits: once each of its
 * 2 (n - 1) steps carries enough. Between them an all-reduce of more than two ranks goes
 * by halves: as few bytes as the ring in few rounds. Where n is no power of two that
 * moves the vector twice more, and the ring is worth it earlier. Measured over Weft's
 * provider with 2 to 8 ranks.
 */
#define ALLREDUCE_SHORT	    (UINT64_C(8) * 1024)   /* bytes of the vector, at most */
#define ALLREDUCE_TWO	    (UINT64_C(128) * 1024) /* the same for two ranks */
#define ALLREDUCE_BLOCK	    (UINT64_C(64) * 1024)  /* a rank's block of it, at least */
#define ALLREDUCE_ODD_TOTAL (UINT64_C(64) * 1024)  /* where n is no power of two */
#define ALLREDUCE_ODD_BLOCK (UINT64_C(8) * 1024)

/* Doubling moves as few bytes, so only pipelining speaks for the ring. */
#define ALLGATHER_RING_BLOCK (UINT64_C(4) * 1024 * 1024)

/* Few ranks: the root talks to all of them, instead of a tree. What is long only where
 * the receivers fetch it, all at the same time; what is very short only among very few:
 * with 8 ranks on as many processors the root's sends one after the other take 3.1 us,
 * the tree 2.3 (and dissemination is the better barrier with 4 and with 8). Where ranks
 * share processors each level of a tree waits for another process to get one. */
#define FLAT_RANKS_FROM 3
#define FLAT_RANKS	8
#define FLAT_RANKS_TINY 4
#define BROADCAST_TINY	(UINT64_C(2) * 1024)
#define BROADCAST_SHORT (UINT64_C(8) * 1024)

/* Doubling may wait for the longest of many blocks; a ring passes them on one by one. */
#define ALLGATHERV_RING (UINT64_C(1) * 1024 * 1024) /* bytes of all blocks, at least */

/* A reduce-scatter by halves has fewer rounds, but adds up in scratch as long as all
 * blocks, and moves them all once more where n is no power of two. */
#define REDUCE_SCATTER_SHORT (UINT64_C(64) * 1024) /* bytes of all blocks, at most */

/* Bruck's all-to-all carries each block log2 n / 2 times, and copies it as often. */
#define ALLTOALL_TINY	    UINT64_C(256)	  /* bytes of a block, at most */
#define ALLTOALL_TINY_RANKS 8			  /* and more ranks than that */
#define ALLTOALL_LONG	    (UINT64_C(32) * 1024) /* one at a time from here on */

/* A tree carries blocks twice and more; the root alone pays a start for each. */
#define ROOT_SHORT                                                          \
	(UINT64_C(2) * 1024) /* bytes of a block that go by a tree, at most \
			      */
#define ROOT_RANKS 8	     /* and more ranks than that */

/* A chain works while it waits, once it has many more chunks than ranks. Measured over
 * Weft's provider and tcp with 4 ranks. */
#define REDUCE_LONG  (UINT64_C(1024) * 1024) /* bytes of the vector, at least */
#define REDUCE_BLOCK (UINT64_C(256) * 1024)  /* for each rank, at least */

static bool any_size(const struct plan_call *call)
{
	return call->size >= 1;
}

/* Adds up in an order of its own. */
static bool commutes(const struct plan_call *call)
{
	return call->size >= 1 && !call->ordered;
}

/* Exchanging blocks of different lengths in one buffer is not done. */
static bool apart(const struct plan_call *call)
{
	return call->size >= 1 && !call->in_place;
}

static bool few_ranks(const struct plan_call *call)
{
	return call->size >= 1 && call->size <= BUILD_FLAT_RANKS;
}

const struct algo algo_table[] = {
	{"barrier", "dissemination", "ceil(log2 n) rounds of empty messages: log2 n * a",
	 PLAN_GOAL_BARRIER, any_size, barrier_dissemination_build, false},
	{"barrier", "flat", "all report to rank 0, which tells all: 2 a + (n-1) o",
	 PLAN_GOAL_BARRIER, few_ranks, barrier_flat_build, false},
	{"barrier", "recursive-doubling",
	 "log2 n rounds of pairs, two more unless n is a power of two: log2 n * a",
	 PLAN_GOAL_BARRIER, any_size, barrier_doubling_build, false},
	{"barrier", "hierarchical",
	 "up and down within nodes of s, rounds between N: 2 log4 s * a + log2 N * a",
	 PLAN_GOAL_BARRIER, any_size, barrier_nodes_build, false},
	{"barrier", "lines", "each rank's line is read by all: a + (n-1) o",
	 PLAN_GOAL_BARRIER, few_ranks, barrier_lines_build, false},
	{"broadcast", "binomial",
	 "a tree of ceil(log2 n) levels, chunks in a pipeline: log2 n * (a + m b)",
	 PLAN_GOAL_BROADCAST, any_size, broadcast_binomial_build, false},
	{"broadcast", "flat",
	 "the root to every other rank; where they fetch: (n-1) o + a + m b",
	 PLAN_GOAL_BROADCAST, few_ranks, broadcast_flat_build, false},
	{"broadcast", "chain", "from rank to rank, in C chunks: (C + n) (a + m/C b)",
	 PLAN_GOAL_BROADCAST, any_size, broadcast_chain_build, false},
	{"broadcast", "knomial",
	 "a tree of log4 n levels, chunks in a pipeline: log4 n * (a + 3 o + m b)",
	 PLAN_GOAL_BROADCAST, any_size, broadcast_knomial_build, false},
	{"broadcast", "double-tree",
	 "halves down two binary trees, in C chunks: 2 (log2 n + C)(a + m/2C b)",
	 PLAN_GOAL_BROADCAST, any_size, broadcast_double_build, false},
	{"broadcast", "hierarchical",
	 "a tree of N nodes, one in each of s ranks, in a pipeline: (log4 N + log4 s) a "
	 "+ "
	 "m b",
	 PLAN_GOAL_BROADCAST, any_size, broadcast_nodes_build, false},
	{"broadcast", "lines", "the root's lines are read by all: a + m b",
	 PLAN_GOAL_BROADCAST, few_ranks, broadcast_lines_build, false},
	{"allgather", "ring", "n - 1 steps between neighbours, in chunks: (n-1)(a + m b)",
	 PLAN_GOAL_ALLGATHER, any_size, allgather_ring_build, false},
	{"allgather", "recursive-doubling",
	 "ceil(log2 n) rounds, blocks straight to their places: log2 n * a + (n-1) m b",
	 PLAN_GOAL_ALLGATHER, any_size, allgather_doubling_build, false},
	{"allgather", "ffbruck",
	 "ceil(log2 n) rounds, the farthest first with the least: log2 n * a + (n-1) m b",
	 PLAN_GOAL_ALLGATHER, any_size, allgather_ffbruck_build, false},
	{"allgather", "streamed-doubling",
	 "ceil(log2 n) rounds that do not wait for each other: log2 n * a + (n-1) m b",
	 PLAN_GOAL_ALLGATHER, any_size, allgather_streamed_build, false},
	{"allgather", "hierarchical",
	 "a ring of N nodes for each of their ranks, handed round within: (N-1)(a + s m "
	 "b)",
	 PLAN_GOAL_ALLGATHER, allgather_nodes_can, allgather_nodes_build, false},
	{"allgather", "lines", "each rank's lines are read by all: a + (n-1)(o + m b)",
	 PLAN_GOAL_ALLGATHER, few_ranks, allgather_lines_build, false},
	{"allreduce", "ring",
	 "reduce-scatter and all-gather between neighbours, in chunks: 2(n-1)(a + m/n b)",
	 PLAN_GOAL_ALLREDUCE, commutes, allreduce_ring_build, false},
	{"allreduce", "recursive-doubling",
	 "log2 n rounds of whole vectors, two more unless n is a power of two: "
	 "log2 n * (a + m b)",
	 PLAN_GOAL_ALLREDUCE, any_size, allreduce_doubling_build, false},
	{"allreduce", "halving-doubling",
	 "reduce-scatter and all-gather by halves, two rounds more unless n is a power "
	 "of "
	 "two: 2 log2 n * a + 2 m b",
	 PLAN_GOAL_ALLREDUCE, commutes, allreduce_halving_build, false},
	{"allreduce", "double-tree",
	 "halves up and down two binary trees, in C chunks: (4 log2 n + C)(a + m/2C b)",
	 PLAN_GOAL_ALLREDUCE, commutes, allreduce_double_build, false},
	{"allreduce", "hierarchical",
	 "trees within nodes of s ranks, doubling between N: (2 log4 s + log2 N)(a + m "
	 "b)",
	 PLAN_GOAL_ALLREDUCE, commutes, allreduce_nodes_build, false},
	{"allreduce", "lines",
	 "each rank's lines are read and added up by all: a + (n-1)(o + m (b + g))",
	 PLAN_GOAL_ALLREDUCE, few_ranks, allreduce_lines_build, false},
	{"reduce_scatter", "ring",
	 "n - 1 steps between neighbours, in chunks: (n-1)(a + m b)",
	 PLAN_GOAL_REDUCE_SCATTER, commutes, reducescatter_ring_build, false},
	{"reduce_scatter", "recursive-halving",
	 "log2 n rounds, two more unless n is a power of two: log2 n * a + (n-1) m b",
	 PLAN_GOAL_REDUCE_SCATTER, any_size, reducescatter_halving_build, false},
	{"reduce_scatter", "lines",
	 "as allreduce, a block of each: a + (n-1)(o + m (b + g))",
	 PLAN_GOAL_REDUCE_SCATTER, few_ranks, reducescatter_lines_build, false},
	{"alltoall", "pairwise", "n - 1 steps, one block at a time: (n-1)(a + m b)",
	 PLAN_GOAL_ALLTOALL, any_size, alltoall_pairwise_build, false},
	{"alltoall", "direct", "as pairwise, 8 blocks at a time: (n-1)(a/8 + m b)",
	 PLAN_GOAL_ALLTOALL, any_size, alltoall_direct_build, false},
	{"alltoall", "bruck", "ceil(log2 n) rounds of n/2 blocks: log2 n * (a + n/2 m b)",
	 PLAN_GOAL_ALLTOALL, any_size, alltoall_bruck_build, false},
	{"alltoall", "lines", "each rank's lines are read by all: a + (n-1)(o + m b)",
	 PLAN_GOAL_ALLTOALL, few_ranks, alltoall_lines_build, false},
	{"reduce", "binomial",
	 "a tree of ceil(log2 n) levels, chunks in a pipeline: log2 n * (a + m b)",
	 PLAN_GOAL_REDUCE, commutes, reduce_binomial_build, false},
	{"reduce", "chain", "from rank to rank, in C chunks: (C + n) (a + m/C b)",
	 PLAN_GOAL_REDUCE, any_size, reduce_chain_build, false},
	{"reduce", "knomial",
	 "a tree of log4 n levels, chunks in a pipeline: log4 n * (a + 3 m b)",
	 PLAN_GOAL_REDUCE, commutes, reduce_knomial_build, false},
	{"reduce", "double-tree",
	 "halves up two binary trees, in C chunks: 2 (log2 n + C)(a + m/2C b)",
	 PLAN_GOAL_REDUCE, commutes, reduce_double_build, false},
	{"reduce", "hierarchical",
	 "trees within nodes of s ranks, one of N nodes: (log4 s + log4 N)(a + 3 m b)",
	 PLAN_GOAL_REDUCE, commutes, reduce_nodes_build, false},
	{"reduce", "lines",
	 "the root reads and adds up each rank's lines: a + (n-1)(o + m (b + g))",
	 PLAN_GOAL_REDUCE, few_ranks, reduce_lines_build, false},
	{"gather", "binomial", "a tree of ceil(log2 n) levels: log2 n * a + (n-1) m b",
	 PLAN_GOAL_GATHER, any_size, gather_binomial_build, false},
	{"gather", "direct", "every rank to the root, 8 at a time: a + (n-1)(o + m b)",
	 PLAN_GOAL_GATHER, any_size, gather_direct_build, false},
	{"gather", "lines", "the root reads each rank's lines: a + (n-1)(o + m b)",
	 PLAN_GOAL_GATHER, few_ranks, gather_lines_build, false},
	{"scatter", "binomial", "a tree of ceil(log2 n) levels: log2 n * a + (n-1) m b",
	 PLAN_GOAL_SCATTER, any_size, scatter_binomial_build, false},
	{"scatter", "direct", "the root to every rank, 8 at a time: a + (n-1)(o + m b)",
	 PLAN_GOAL_SCATTER, any_size, scatter_direct_build, false},
	{"scatter", "lines", "the root's lines are read by all: a + m b",
	 PLAN_GOAL_SCATTER, few_ranks, scatter_lines_build, false},
	{"allgatherv", "ring", "n - 1 steps between neighbours: (n-1)(a + m b)",
	 PLAN_GOAL_ALLGATHER, any_size, allgatherv_ring_build, true},
	{"allgatherv", "recursive-doubling",
	 "ceil(log2 n) rounds, blocks straight to their places: log2 n * a + (n-1) m b",
	 PLAN_GOAL_ALLGATHER, any_size, allgather_doubling_build, true},
	{"reduce_scatterv", "ring", "n - 1 steps between neighbours: (n-1)(a + m b)",
	 PLAN_GOAL_REDUCE_SCATTER, commutes, reducescatter_ring_build, true},
	{"reduce_scatterv", "recursive-halving",
	 "log2 n rounds, two more unless n is a power of two: log2 n * a + (n-1) m b",
	 PLAN_GOAL_REDUCE_SCATTER, any_size, reducescatter_halving_build, true},
	{"alltoallv", "direct", "n - 1 steps, 8 blocks at a time: (n-1)(a/8 + m b)",
	 PLAN_GOAL_ALLTOALL, apart, alltoall_direct_build, true},
	{"alltoallv", "pairwise", "n - 1 steps, one block at a time: (n-1)(a + m b)",
	 PLAN_GOAL_ALLTOALL, apart, alltoall_pairwise_build, true},
	{"alltoallv_dynamic", "direct",
	 "counts to everybody, then as alltoallv: log2 n * a + (n-1)(a/8 + m b)",
	 PLAN_GOAL_ALLTOALL, apart, alltoall_direct_build, true},
	{"alltoallv_dynamic", "pairwise",
	 "counts to everybody, then one block at a time: (log2 n + n-1) a + (n-1) m b",
	 PLAN_GOAL_ALLTOALL, apart, alltoall_pairwise_build, true},
	{"gatherv", "direct", "every rank to the root, 8 at a time: a + (n-1)(o + m b)",
	 PLAN_GOAL_GATHER, any_size, gather_direct_build, true},
	{"scatterv", "direct", "the root to every rank, 8 at a time: a + (n-1)(o + m b)",
	 PLAN_GOAL_SCATTER, any_size, scatter_direct_build, true},
};

const size_t algo_count = sizeof(algo_table) / sizeof(algo_table[0]);

const struct algo *algo_find(const char *coll, const char *name)
{
	for (size_t i = 0; i < algo_count; i++) {
		if (!strcmp(algo_table[i].coll, coll) &&
		    !strcmp(algo_table[i].name, name))
			return &algo_table[i];
	}
	return NULL;
}

uint8_t algo_index(const struct algo *algo)
{
	uint8_t index = 0;

	for (const struct algo *a = algo_table; a != algo; a++)
		index += !strcmp(a->coll, algo->coll);
	return index;
}

const struct algo *algo_at(const char *coll, uint8_t index)
{
	for (size_t i = 0; i < algo_count; i++) {
		if (!strcmp(algo_table[i].coll, coll) && index-- == 0)
			return &algo_table[i];
	}
	return NULL;
}

/* a * b, or the largest number when that is larger. */
static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t c;

	return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

/* A choice, and in words why: what it goes by, not more. */
struct choice {
	const char *name;
	const char *why;
};

static struct choice preferred_allreduce(uint64_t bytes, uint64_t n)
{
	const bool odd = n & (n - 1);

	if (bytes <= (n > 2 ? ALLREDUCE_SHORT : ALLREDUCE_TWO))
		return (struct choice){"recursive-doubling",
				       "a short vector takes the fewest rounds"};
	if (odd ? bytes >= ALLREDUCE_ODD_TOTAL && bytes / n >= ALLREDUCE_ODD_BLOCK
		: bytes / n >= ALLREDUCE_BLOCK)
		return (struct choice){"ring", "each rank's block of the vector is long "
					       "enough for its many steps"};
	if (n > 2)
		return (struct choice){"halving-doubling",
				       "too long for whole vectors, too short for many "
				       "steps"};
	return (struct choice){"recursive-doubling", "two ranks need one round"};
}

static struct choice preferred_broadcast(const struct plan_call *call, uint64_t bytes,
					 uint64_t n)
{
	const bool tree = bytes <= BROADCAST_TINY && !call->crowded;

	if (n < FLAT_RANKS_FROM || n > (tree ? FLAT_RANKS_TINY : FLAT_RANKS))
		return (struct choice){"binomial", "for so many ranks a tree is quicker "
						   "than the root alone"};
	if (bytes <= BROADCAST_SHORT)
		return (struct choice){"flat", "few ranks and few bytes: the root serves "
					       "all"};
	if (call->fetches)
		return (struct choice){"flat", "few ranks, which fetch what is long at "
					       "the same time"};
	return (struct choice){"binomial", "long, and the root would send it to one "
					   "after the other"};
}

static struct choice preferred_alltoall(uint64_t bytes, uint64_t n)
{
	if (bytes <= ALLTOALL_TINY && n > ALLTOALL_TINY_RANKS)
		return (struct choice){"bruck", "tiny blocks for many ranks go in few "
						"rounds"};
	if (bytes < ALLTOALL_LONG)
		return (struct choice){"direct", "the starts of short blocks overlap"};
	return (struct choice){"pairwise", "of long blocks a link carries one at a time"};
}

bool algo_goes_by_lines(const char *coll, const struct plan_call *call)
{
	const struct algo *algo =
		call->lines && call->size > 1 ? algo_find(coll, ALGO_LINES) : NULL;

	return algo && algo->supports(call) &&
	       lines_fit(call, algo->goal) != PLAN_LINES_NONE;
}

static struct choice preferred(const char *coll, const struct plan_call *call)
{
	uint64_t bytes = product(call->count, call->elem_size);
	uint64_t n = call->size > 0 ? (uint64_t)call->size : 1;

	if (algo_goes_by_lines(coll, call))
		return (struct choice){ALGO_LINES, "short, and its ranks share memory"};

	if (!strcmp(coll, "allreduce"))
		return preferred_allreduce(bytes, n);
	if (!strcmp(coll, "broadcast"))
		return preferred_broadcast(call, bytes, n);
	if (!strcmp(coll, "allgather"))
		return bytes >= ALLGATHER_RING_BLOCK
			       ? (struct choice){"ring",
						 "long blocks are cut, and passed "
						 "on while they come"}
			       : (struct choice){"recursive-doubling",
						 "few rounds, and no more bytes"};
	if (!strcmp(coll, "allgatherv"))
		return product(bytes, n) >= ALLGATHERV_RING
			       ? (struct choice){"ring",
						 "nobody waits for the longest of "
						 "many blocks"}
			       : (struct choice){"recursive-doubling",
						 "few rounds, and no more bytes"};
	if (!strcmp(coll, "reduce_scatter") || !strcmp(coll, "reduce_scatterv"))
		return n > 2 && product(bytes, n) <= REDUCE_SCATTER_SHORT
			       ? (struct choice){"recursive-halving",
						 "short blocks take few rounds"}
			       : (struct choice){"ring",
						 "works while it waits, in little "
						 "memory"};
	if (!strcmp(coll, "alltoall"))
		return preferred_alltoall(bytes, n);
	if (!strcmp(coll, "reduce"))
		return n > 2 && bytes >= REDUCE_LONG && bytes / n >= REDUCE_BLOCK
			       ? (struct choice){"chain", "a long vector passes in many "
							  "chunks"}
			       : (struct choice){"binomial", "few levels"};
	if (!strcmp(coll, "gather") || !strcmp(coll, "scatter"))
		return bytes <= ROOT_SHORT && n > ROOT_RANKS
			       ? (struct choice){"binomial", "short blocks of many ranks "
							     "go together"}
			       : (struct choice){"direct", "each block goes once"};
	return (struct choice){NULL, "the first of its list"};
}

const char *algo_why(const char *coll, const struct plan_call *call)
{
	const struct choice choice = preferred(coll, call);
	const struct algo *algo = algo_choose(coll, call);

	if (choice.name && algo && strcmp(algo->name, choice.name) != 0)
		return "what is better otherwise cannot do such a call";
	return choice.why;
}

const struct algo *algo_choose(const char *coll, const struct plan_call *call)
{
	const char *name = preferred(coll, call).name;
	const struct algo *first = NULL;

	for (size_t i = 0; i < algo_count; i++) {
		const struct algo *a = &algo_table[i];

		if (strcmp(a->coll, coll) || !a->supports(call))
			continue;
		if (!name || !strcmp(a->name, name))
			return a;
		if (!first)
			first = a;
	}
	return first;
}

void algo_list(const char *coll, char *text, size_t len)
{
	size_t at = 0;

	if (len)
		text[0] = '\0';
	for (size_t i = 0; i < algo_count; i++) {
		int n;

		if (strcmp(algo_table[i].coll, coll))
			continue;
		if (at >= len)
			return;
		n = snprintf(text + at, len - at, "%s%s", at ? ", " : "",
			     algo_table[i].name);
		if (n > 0)
			at += (size_t)n;
	}
}
