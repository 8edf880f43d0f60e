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

/* Where this rank's block begins in the result of an all-gather. */
static void *own_block(struct perf *p, uint64_t count)
{
	return (char *)p->dst + (size_t)p->rank * count * p->elem;
}

static enum weft_result allgather_call(struct perf *p, uint64_t count,
				       const struct weft_opts *opts)
{
	const void *src = p->opts->in_place ? own_block(p, count) : p->src;

	return weft_allgather(p->comm, src, p->dst, count, p->opts->type, opts);
}

static enum weft_result allreduce_call(struct perf *p, uint64_t count,
				       const struct weft_opts *opts)
{
	const void *src = p->opts->in_place ? p->dst : p->src;

	return weft_allreduce(p->comm, src, p->dst, count, p->opts->type, p->opts->op,
			      opts);
}

/* ---- data ------------------------------------------------------------------------- */

static bool found(struct perf *p, const struct data_view *v, enum data_kind kind,
		  int32_t rank, const char *what)
{
	char text[64];
	uint64_t at;

	if (data_check(&p->data, v, kind, rank, p->round, &at))
		return true;
	data_explain(&p->data, v, kind, rank, p->round, at, text, sizeof(text));
	fprintf(stderr,
		"weft perf: rank %" PRId32 ": %s of %" PRIu64 " %s: element %" PRIu64
		" of %s %" PRId32 " is %s\n",
		p->rank, what, v->count, weft_type_name(p->opts->type), at,
		kind == DATA_RESULT ? "the result at" : "the block of", rank, text);
	return false;
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

static void allgather_prepare(struct perf *p, uint64_t count, bool sampled)
{
	struct data_view v = {p->src, count, sampled};

	for (int32_t r = 0; r < p->size; r++) {
		struct data_view block = {(char *)p->dst + (size_t)r * count * p->elem,
					  count, sampled};

		data_poison(&p->data, &block);
	}
	if (p->opts->in_place)
		v.buf = own_block(p, count);
	data_fill(&p->data, &v, DATA_OF_RANK, p->rank, p->round);
}

static bool allgather_check(struct perf *p, uint64_t count, bool sampled)
{
	bool good = true;

	for (int32_t r = 0; r < p->size && good; r++) {
		struct data_view block = {(char *)p->dst + (size_t)r * count * p->elem,
					  count, sampled};

		good = found(p, &block, DATA_OF_RANK, r, "allgather");
	}
	return good;
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
	 .bus_factor = bus_allgather},
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
	 .dst_blocks = 1},
};

const size_t perf_op_count = sizeof(perf_op_table) / sizeof(perf_op_table[0]);
