/* SPDX-License-Identifier: BSD-2-Clause */
/* The collectives that weft perf knows: one row each. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/perf.h"

/* ---- calls ------------------------------------------------------------------------ */

static enum weft_result barrier_call(struct perf *p, uint64_t count,
				     const struct weft_opts *opts)
{
	(void)count;
	return weft_barrier(p->comm, opts);
}

static enum weft_result broadcast_call(struct perf *p, uint64_t count,
				       const struct weft_opts *opts)
{
	return weft_broadcast(p->comm, p->dst, count, p->opts->type, 0, opts);
}

static char *block_of(struct perf *p, void *buf, int32_t rank, uint64_t count)
{
	return (char *)buf + (size_t)rank * count * p->elem;
}

static const void *allgather_src(struct perf *p, uint64_t count)
{
	return p->opts->in_place ? block_of(p, p->dst, p->rank, count) : p->src;
}

static enum weft_result allgather_call(struct perf *p, uint64_t count,
				       const struct weft_opts *opts)
{
	return weft_allgather(p->comm, allgather_src(p, count), p->dst, count,
			      p->opts->type, opts);
}

static enum weft_result allreduce_call(struct perf *p, uint64_t count,
				       const struct weft_opts *opts)
{
	const void *src = p->opts->in_place ? p->dst : p->src;

	return weft_allreduce(p->comm, src, p->dst, count, p->opts->type, p->opts->op,
			      opts);
}

/* Where the result of a call goes that has one block of what it was given. */
static void *inner_dst(struct perf *p, uint64_t count)
{
	return p->opts->in_place ? block_of(p, p->src, p->rank, count) : p->dst;
}

static enum weft_result reduce_scatter_call(struct perf *p, uint64_t count,
					    const struct weft_opts *opts)
{
	return weft_reduce_scatter(p->comm, p->src, inner_dst(p, count), count,
				   p->opts->type, p->opts->op, opts);
}

static enum weft_result alltoall_call(struct perf *p, uint64_t count,
				      const struct weft_opts *opts)
{
	const void *src = p->opts->in_place ? p->dst : p->src;

	return weft_alltoall(p->comm, src, p->dst, count, p->opts->type, opts);
}

static enum weft_result reduce_call(struct perf *p, uint64_t count,
				    const struct weft_opts *opts)
{
	const void *src = p->opts->in_place && p->rank == 0 ? p->dst : p->src;

	return weft_reduce(p->comm, src, p->dst, count, p->opts->type, p->opts->op, 0,
			   opts);
}

static enum weft_result gather_call(struct perf *p, uint64_t count,
				    const struct weft_opts *opts)
{
	const void *src = p->rank == 0 ? allgather_src(p, count) : p->src;

	return weft_gather(p->comm, src, p->dst, count, p->opts->type, 0, opts);
}

static enum weft_result scatter_call(struct perf *p, uint64_t count,
				     const struct weft_opts *opts)
{
	void *dst = p->rank == 0 ? inner_dst(p, count) : p->dst;

	return weft_scatter(p->comm, p->src, dst, count, p->opts->type, 0, opts);
}

/* ---- calls with counts ------------------------------------------------------------ */

void perf_counts_fill(struct perf *p, uint64_t count)
{
	p->counts = (struct weft_counts){.counts = p->even};
	p->dynamic = (struct weft_dynamic)WEFT_DYNAMIC_INIT;
	p->dynamic.max_count = count;
	p->dynamic.recv_counts = p->got;
	for (int32_t r = 0; r < p->size; r++)
		p->even[r] = count;
}

static enum weft_result allgatherv_call(struct perf *p, uint64_t count,
					const struct weft_opts *opts)
{
	return weft_allgatherv(p->comm, p->src, count, p->dst, &p->counts, p->opts->type,
			       opts);
}

static enum weft_result reduce_scatterv_call(struct perf *p, uint64_t count,
					     const struct weft_opts *opts)
{
	return weft_reduce_scatterv(p->comm, p->src, &p->counts, p->dst, count,
				    p->opts->type, p->opts->op, opts);
}

static enum weft_result alltoallv_call(struct perf *p, uint64_t count,
				       const struct weft_opts *opts)
{
	(void)count;
	return weft_alltoallv(p->comm, p->src, &p->counts, p->dst, &p->counts,
			      p->opts->type, opts);
}

static enum weft_result alltoallv_dynamic_call(struct perf *p, uint64_t count,
					       const struct weft_opts *opts)
{
	const uint64_t all = count * (uint64_t)p->size;

	return weft_alltoallv_dynamic(p->comm, p->src, all, &p->counts, p->dst, all,
				      &p->dynamic, p->opts->type, opts);
}

static enum weft_result gatherv_call(struct perf *p, uint64_t count,
				     const struct weft_opts *opts)
{
	return weft_gatherv(p->comm, p->src, count, p->dst, &p->counts, p->opts->type, 0,
			    opts);
}

static enum weft_result scatterv_call(struct perf *p, uint64_t count,
				      const struct weft_opts *opts)
{
	return weft_scatterv(p->comm, p->src, &p->counts, p->dst, count, p->opts->type, 0,
			     opts);
}

/* ---- data ------------------------------------------------------------------------- */

static bool found_in(struct perf *p, const struct data_view *v, enum data_kind kind,
		     int32_t rank, uint64_t round, const char *what)
{
	char text[64];
	uint64_t at;

	if (data_check(&p->data, v, kind, rank, round, &at))
		return true;
	data_explain(&p->data, v, kind, rank, round, at, text, sizeof(text));
	fprintf(stderr,
		"weft %s: rank %" PRId32 ": %s of %" PRIu64 " %s: element %" PRIu64
		" of %s %" PRId32 " is %s\n",
		p->opts->who, p->rank, what, v->count, weft_type_name(p->opts->type), at,
		kind == DATA_RESULT ? "the result at" : "the block of", rank, text);
	return false;
}

static bool found(struct perf *p, const struct data_view *v, enum data_kind kind,
		  int32_t rank, const char *what)
{
	return found_in(p, v, kind, rank, p->round, what);
}

static void barrier_prepare(struct perf *p, uint64_t count, bool sampled)
{
	(void)p, (void)count, (void)sampled;
}

static bool barrier_check(struct perf *p, uint64_t count, bool sampled)
{
	(void)p, (void)count, (void)sampled;
	return true;
}

static void broadcast_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->dst, count, sampled};

	if (p->rank == 0)
		data_fill(&p->data, &v, DATA_OF_RANK, 0, p->round);
	else
		data_poison(&p->data, &v);
}

static bool broadcast_check(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->dst, count, sampled};

	return found(p, &v, DATA_OF_RANK, 0, "broadcast");
}

/* All blocks of what one block per rank will arrive in. */
static void blocks_poison(struct perf *p, uint64_t count, bool sampled)
{
	for (int32_t r = 0; r < p->size; r++) {
		struct data_view block = {block_of(p, p->dst, r, count), count, sampled};

		data_poison(&p->data, &block);
	}
}

static void allgather_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {(void *)(uintptr_t)allgather_src(p, count), count, sampled};

	blocks_poison(p, count, sampled);
	data_fill(&p->data, &v, DATA_OF_RANK, p->rank, p->round);
}

static bool blocks_found(struct perf *p, uint64_t count, bool sampled, const char *what)
{
	bool good = true;

	for (int32_t r = 0; r < p->size && good; r++) {
		struct data_view block = {block_of(p, p->dst, r, count), count, sampled};

		good = found(p, &block, DATA_OF_RANK, r, what);
	}
	return good;
}

static bool allgather_check(struct perf *p, uint64_t count, bool sampled)
{
	return blocks_found(p, count, sampled, "allgather");
}

static void gather_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->src, count, sampled};

	if (p->rank == 0)
		allgather_prepare(p, count, sampled);
	else
		data_fill(&p->data, &v, DATA_OF_RANK, p->rank, p->round);
}

static bool gather_check(struct perf *p, uint64_t count, bool sampled)
{
	return p->rank != 0 || blocks_found(p, count, sampled, "gather");
}

/* What goes from one rank to another is the data of a rank of its own. */
static int32_t pair_of(const struct perf *p, int32_t from, int32_t to)
{
	return from * p->size + to;
}

static void pairs_fill(struct perf *p, void *src, uint64_t count, bool sampled)
{
	for (int32_t r = 0; r < p->size; r++) {
		struct data_view block = {block_of(p, src, r, count), count, sampled};

		data_fill(&p->data, &block, DATA_OF_RANK, pair_of(p, p->rank, r),
			  p->round);
	}
}

static void alltoall_prepare(struct perf *p, uint64_t count, bool sampled)
{
	if (!p->opts->in_place)
		blocks_poison(p, count, sampled);
	pairs_fill(p, p->opts->in_place ? p->dst : p->src, count, sampled);
}

static bool alltoall_check(struct perf *p, uint64_t count, bool sampled)
{
	bool good = true;

	for (int32_t r = 0; r < p->size && good; r++) {
		struct data_view block = {block_of(p, p->dst, r, count), count, sampled};

		good = found(p, &block, DATA_OF_RANK, pair_of(p, r, p->rank), "alltoall");
	}
	return good;
}

static void scatter_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->dst, count, sampled};

	data_poison(&p->data, &v);
	if (p->rank == 0)
		pairs_fill(p, p->src, count, sampled);
}

static bool scatter_check(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->rank == 0 ? inner_dst(p, count) : p->dst, count,
			      sampled};

	return found(p, &v, DATA_OF_RANK, pair_of(p, 0, p->rank), "scatter");
}

static void allreduce_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view src = {p->src, count, sampled}, dst = {p->dst, count, sampled};

	if (p->opts->in_place) {
		/* All of it: what was left is a result, and would grow from call to call.
		 */
		dst.sampled = false;
		data_fill(&p->data, &dst, DATA_OPERAND, p->rank, p->round);
		return;
	}
	data_poison(&p->data, &dst);
	data_fill(&p->data, &src, DATA_OPERAND, p->rank, p->round);
}

static bool allreduce_check(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->dst, count, sampled};

	return found(p, &v, DATA_RESULT, p->rank, "allreduce");
}

static void reduce_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view src = {p->src, count, sampled};

	if (p->rank == 0)
		allreduce_prepare(p, count, sampled);
	else
		data_fill(&p->data, &src, DATA_OPERAND, p->rank, p->round);
}

static bool reduce_check(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->dst, count, sampled};

	return p->rank != 0 || found(p, &v, DATA_RESULT, p->rank, "reduce");
}

/* Blocks differ as rounds do: the round of the rank that a block is for. */
static void reduce_scatter_prepare(struct perf *p, uint64_t count, bool sampled)
{
	const uint64_t round = p->round;
	struct data_view dst = {p->dst, count, sampled};

	data_poison(&p->data, &dst);
	for (int32_t r = 0; r < p->size; r++) {
		/* In place the block is a result afterwards, and would grow. */
		struct data_view block = {block_of(p, p->src, r, count), count,
					  sampled && !p->opts->in_place};

		data_fill(&p->data, &block, DATA_OPERAND, p->rank,
			  round * (uint64_t)p->size + (uint64_t)r);
	}
}

static bool reduce_scatter_check(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {inner_dst(p, count), count, sampled};

	return found_in(p, &v, DATA_RESULT, p->rank,
			p->round * (uint64_t)p->size + (uint64_t)p->rank,
			"reduce_scatter");
}

/* What came is said by the call, too. */
static void dynamic_prepare(struct perf *p, uint64_t count, bool sampled)
{
	memset(p->got, 0xff, (size_t)p->size * sizeof(*p->got));
	alltoall_prepare(p, count, sampled);
}

static bool dynamic_check(struct perf *p, uint64_t count, bool sampled)
{
	for (int32_t r = 0; r < p->size; r++) {
		if (p->got[r] == count)
			continue;
		fprintf(stderr,
			"weft %s: rank %" PRId32 ": alltoallv_dynamic: %" PRIu64
			" elements of rank %" PRId32 " are counted, it sent %" PRIu64
			"\n",
			p->opts->who, p->rank, p->got[r], r, count);
		return false;
	}
	return alltoall_check(p, count, sampled);
}

/* ---- figures ---------------------------------------------------------------------- */

static double bytes_none(double per_rank, double ranks)
{
	(void)per_rank, (void)ranks;
	return 0;
}

static double bytes_one(double per_rank, double ranks)
{
	(void)ranks;
	return per_rank;
}

static double bytes_all(double per_rank, double ranks)
{
	return per_rank * ranks;
}

static double bus_one(double ranks)
{
	(void)ranks;
	return 1;
}

static double bus_allgather(double ranks)
{
	return (ranks - 1) / ranks;
}

static double bus_allreduce(double ranks)
{
	return 2 * (ranks - 1) / ranks;
}

const struct perf_op perf_op_table[] = {
	{.name = "barrier",
	 .coll = WEFT_COLL_BARRIER,
	 .size_means = "",
	 .call = barrier_call,
	 .prepare = barrier_prepare,
	 .check = barrier_check,
	 .bytes = bytes_none,
	 .bus_factor = bus_one,
	 .src_blocks = 1,
	 .dst_blocks = 1},
	{.name = "broadcast",
	 .coll = WEFT_COLL_BROADCAST,
	 .sized = true,
	 .size_means = "size: bytes of the buffer",
	 .call = broadcast_call,
	 .prepare = broadcast_prepare,
	 .check = broadcast_check,
	 .bytes = bytes_one,
	 .bus_factor = bus_one,
	 .src_blocks = 1,
	 .dst_blocks = 1},
	{.name = "allgather",
	 .coll = WEFT_COLL_ALLGATHER,
	 .sized = true,
	 .in_place = true,
	 .size_means = "size: bytes each rank gives",
	 .call = allgather_call,
	 .prepare = allgather_prepare,
	 .check = allgather_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .src_blocks = 1},
	{.name = "allreduce",
	 .coll = WEFT_COLL_ALLREDUCE,
	 .sized = true,
	 .reduces = true,
	 .in_place = true,
	 .size_means = "size: bytes of the vector",
	 .call = allreduce_call,
	 .prepare = allreduce_prepare,
	 .check = allreduce_check,
	 .bytes = bytes_one,
	 .bus_factor = bus_allreduce,
	 .src_blocks = 1,
	 .dst_blocks = 1},
	{.name = "reduce_scatter",
	 .coll = WEFT_COLL_REDUCE_SCATTER,
	 .sized = true,
	 .reduces = true,
	 .in_place = true,
	 .size_means = "size: bytes each rank gets",
	 .call = reduce_scatter_call,
	 .prepare = reduce_scatter_prepare,
	 .check = reduce_scatter_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .dst_blocks = 1},
	{.name = "alltoall",
	 .coll = WEFT_COLL_ALLTOALL,
	 .sized = true,
	 .in_place = true,
	 .size_means = "size: bytes for each rank",
	 .call = alltoall_call,
	 .prepare = alltoall_prepare,
	 .check = alltoall_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather},
	{.name = "reduce",
	 .coll = WEFT_COLL_REDUCE,
	 .sized = true,
	 .reduces = true,
	 .in_place = true,
	 .size_means = "size: bytes of the vector",
	 .call = reduce_call,
	 .prepare = reduce_prepare,
	 .check = reduce_check,
	 .bytes = bytes_one,
	 .bus_factor = bus_one,
	 .src_blocks = 1,
	 .dst_blocks = 1},
	{.name = "gather",
	 .coll = WEFT_COLL_GATHER,
	 .sized = true,
	 .in_place = true,
	 .size_means = "size: bytes each rank gives",
	 .call = gather_call,
	 .prepare = gather_prepare,
	 .check = gather_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .src_blocks = 1},
	{.name = "scatter",
	 .coll = WEFT_COLL_SCATTER,
	 .sized = true,
	 .in_place = true,
	 .size_means = "size: bytes each rank gets",
	 .call = scatter_call,
	 .prepare = scatter_prepare,
	 .check = scatter_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .dst_blocks = 1},
	{.name = "allgatherv",
	 .coll = WEFT_COLL_ALLGATHERV,
	 .sized = true,
	 .counts = true,
	 .size_means = "size: bytes each rank gives",
	 .call = allgatherv_call,
	 .prepare = allgather_prepare,
	 .check = allgather_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .src_blocks = 1},
	{.name = "reduce_scatterv",
	 .coll = WEFT_COLL_REDUCE_SCATTERV,
	 .sized = true,
	 .reduces = true,
	 .counts = true,
	 .size_means = "size: bytes each rank gets",
	 .call = reduce_scatterv_call,
	 .prepare = reduce_scatter_prepare,
	 .check = reduce_scatter_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .dst_blocks = 1},
	{.name = "alltoallv",
	 .coll = WEFT_COLL_ALLTOALLV,
	 .sized = true,
	 .counts = true,
	 .size_means = "size: bytes for each rank",
	 .call = alltoallv_call,
	 .prepare = alltoall_prepare,
	 .check = alltoall_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather},
	{.name = "alltoallv_dynamic",
	 .coll = WEFT_COLL_ALLTOALLV_DYNAMIC,
	 .sized = true,
	 .counts = true,
	 .size_means = "size: bytes for each rank, which it learns by the call",
	 .call = alltoallv_dynamic_call,
	 .prepare = dynamic_prepare,
	 .check = dynamic_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather},
	{.name = "gatherv",
	 .coll = WEFT_COLL_GATHERV,
	 .sized = true,
	 .counts = true,
	 .size_means = "size: bytes each rank gives",
	 .call = gatherv_call,
	 .prepare = gather_prepare,
	 .check = gather_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .src_blocks = 1},
	{.name = "scatterv",
	 .coll = WEFT_COLL_SCATTERV,
	 .sized = true,
	 .counts = true,
	 .size_means = "size: bytes each rank gets",
	 .call = scatterv_call,
	 .prepare = scatter_prepare,
	 .check = scatter_check,
	 .bytes = bytes_all,
	 .bus_factor = bus_allgather,
	 .dst_blocks = 1},
};

const size_t perf_op_count = sizeof(perf_op_table) / sizeof(perf_op_table[0]);
