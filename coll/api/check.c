/* SPDX-License-Identifier: BSD-2-Clause */
/* See call.h: the checks, one table row per collective. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/call.h"
#include "coll/api/error.h"
#include "coll/api/memo.h"
#include "coll/api/vector.h"
#include "coll/exec/reduce.h"

enum check_holds { NOBODY, ROOT, EVERYBODY }; /* who has a buffer */

/* How many blocks of `count` elements a buffer is. */
enum check_blocks { ONE, ONE_PER_RANK };

struct check_row {
	bool known; /* in this version */
	bool data;  /* has buffers at all */
	bool reduces;
	bool rooted;
	bool one_buffer; /* source and destination are the same */
	bool vector;	 /* a (v) form: counts say how long each block is */
	bool dynamic;	 /* counts that are read when the call is executed */
	enum check_holds src_at, dst_at;
	enum check_blocks src, dst;
};

static const struct check_row check_table[WEFT_COLL_COUNT] = {
	[WEFT_COLL_BARRIER] = {.known = true},
	[WEFT_COLL_BROADCAST] = {.known = true,
				 .data = true,
				 .rooted = true,
				 .one_buffer = true,
				 .src_at = EVERYBODY,
				 .dst_at = EVERYBODY},
	[WEFT_COLL_ALLGATHER] = {.known = true,
				 .data = true,
				 .src_at = EVERYBODY,
				 .dst_at = EVERYBODY,
				 .dst = ONE_PER_RANK},
	[WEFT_COLL_ALLREDUCE] = {.known = true,
				 .data = true,
				 .reduces = true,
				 .src_at = EVERYBODY,
				 .dst_at = EVERYBODY},
	[WEFT_COLL_REDUCE_SCATTER] = {.known = true,
				      .data = true,
				      .reduces = true,
				      .src_at = EVERYBODY,
				      .dst_at = EVERYBODY,
				      .src = ONE_PER_RANK},
	[WEFT_COLL_ALLTOALL] = {.known = true,
				.data = true,
				.src_at = EVERYBODY,
				.dst_at = EVERYBODY,
				.src = ONE_PER_RANK,
				.dst = ONE_PER_RANK},
	[WEFT_COLL_REDUCE] = {.known = true,
			      .data = true,
			      .reduces = true,
			      .rooted = true,
			      .src_at = EVERYBODY,
			      .dst_at = ROOT},
	[WEFT_COLL_GATHER] = {.known = true,
			      .data = true,
			      .rooted = true,
			      .src_at = EVERYBODY,
			      .dst_at = ROOT,
			      .dst = ONE_PER_RANK},
	[WEFT_COLL_SCATTER] = {.known = true,
			       .data = true,
			       .rooted = true,
			       .src_at = ROOT,
			       .dst_at = EVERYBODY,
			       .src = ONE_PER_RANK},
	[WEFT_COLL_ALLGATHERV] = {.known = true,
				  .data = true,
				  .vector = true,
				  .src_at = EVERYBODY,
				  .dst_at = EVERYBODY,
				  .dst = ONE_PER_RANK},
	[WEFT_COLL_REDUCE_SCATTERV] = {.known = true,
				       .data = true,
				       .reduces = true,
				       .vector = true,
				       .src_at = EVERYBODY,
				       .dst_at = EVERYBODY,
				       .src = ONE_PER_RANK},
	[WEFT_COLL_ALLTOALLV] = {.known = true,
				 .data = true,
				 .vector = true,
				 .src_at = EVERYBODY,
				 .dst_at = EVERYBODY,
				 .src = ONE_PER_RANK,
				 .dst = ONE_PER_RANK},
	[WEFT_COLL_ALLTOALLV_DYNAMIC] = {.known = true,
					 .data = true,
					 .dynamic = true,
					 .src_at = EVERYBODY,
					 .dst_at = EVERYBODY,
					 .src = ONE_PER_RANK,
					 .dst = ONE_PER_RANK},
	[WEFT_COLL_GATHERV] = {.known = true,
			       .data = true,
			       .rooted = true,
			       .vector = true,
			       .src_at = EVERYBODY,
			       .dst_at = ROOT,
			       .dst = ONE_PER_RANK},
	[WEFT_COLL_SCATTERV] = {.known = true,
				.data = true,
				.rooted = true,
				.vector = true,
				.src_at = ROOT,
				.dst_at = EVERYBODY,
				.src = ONE_PER_RANK},
};

enum weft_result call_check_opts(const struct weft_opts *opts)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (opts->timeout_us < WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_opts.timeout_us is %lld",
				 (long long)opts->timeout_us);
	if (opts->flags)
		return error_set(
			WEFT_ERR_UNSUPPORTED,
			"weft_opts.flags is 0x%llx: only WEFT_DOUBLE is defined, "
			"for persistent collectives",
			(unsigned long long)opts->flags);
	if ((unsigned)opts->stream_kind > WEFT_STREAM_CUDA ||
	    (opts->stream_kind == WEFT_STREAM_NONE && opts->stream))
		return error_set(WEFT_ERR_ARG,
				 "weft_opts.stream_kind is %d: it must be "
				 "WEFT_STREAM_CUDA where there is a stream, and "
				 "WEFT_STREAM_NONE where there is none",
				 (int)opts->stream_kind);
	if ((unsigned)opts->src_kind > WEFT_MEM_AUTO ||
	    (unsigned)opts->dst_kind > WEFT_MEM_AUTO)
		return error_set(
			WEFT_ERR_ARG, "weft_opts.%s is %d, which is no kind of memory",
			(unsigned)opts->src_kind > WEFT_MEM_AUTO ? "src_kind"
								 : "dst_kind",
			(unsigned)opts->src_kind > WEFT_MEM_AUTO ? (int)opts->src_kind
								 : (int)opts->dst_kind);
	if (opts->src_mem || opts->dst_mem)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_opts.%s: registrations of the caller are not "
				 "supported in this version",
				 opts->src_mem ? "src_mem" : "dst_mem");
	return WEFT_SUCCESS;
}

enum weft_result call_check_buf(const struct weft_buf *buf, const char *name)
{
	if (buf->mem)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "%s.mem: registrations of the caller are not supported "
				 "in this version",
				 name);
	if (!weft_type_size(buf->type))
		return error_set(WEFT_ERR_ARG, "%s.type is %d, which is no type", name,
				 (int)buf->type);
	if (buf->count && !buf->addr)
		return error_set(WEFT_ERR_ARG, "%s is NULL, with %llu elements to move",
				 name, (unsigned long long)buf->count);
	return WEFT_SUCCESS;
}

/* A call whose row was looked up, and what this rank has of it. */
struct check_job {
	const struct weft_comm *comm;
	const struct check_row *row;
	const struct weft_call *call;
	bool has_src, has_dst;
	enum weft_type type;
	size_t elem;	/* bytes of it */
	uint64_t count; /* elements of a block */
	uint64_t at;	/* where this rank's block begins in the buffer that has all */
};

static inline uint64_t blocks_of(const struct check_job *job, enum check_blocks blocks)
{
	return blocks == ONE_PER_RANK ? (uint64_t)job->comm->size : 1;
}

/* The count of the buffer that says it: one that is a single block, if there is one. */
static enum weft_result check_block(struct check_job *job)
{
	const struct weft_call *call = job->call;
	const bool from_src = job->has_src && (job->row->src == ONE || !job->has_dst ||
					       job->row->dst == ONE_PER_RANK);
	const struct weft_buf *buf = from_src ? &call->src : &call->dst;

	job->count = buf->count;
	if ((from_src ? job->row->src : job->row->dst) == ONE)
		return WEFT_SUCCESS;
	job->count /= (uint64_t)job->comm->size;
	/* What is too much is refused for that. */
	if (job->count * (uint64_t)job->comm->size == buf->count ||
	    buf->count > (uint64_t)PTRDIFF_MAX)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "%s: the %s has %llu elements, which are no blocks of the same "
			 "length for %d ranks",
			 weft_coll_name(call->coll), from_src ? "source" : "destination",
			 (unsigned long long)buf->count, job->comm->size);
}

static enum weft_result count_wrong(const struct check_job *job, bool is_src)
{
	const struct weft_buf *buf = is_src ? &job->call->src : &job->call->dst;
	const uint64_t blocks = blocks_of(job, is_src ? job->row->src : job->row->dst);

	return error_set(
		WEFT_ERR_ARG,
		"%s: the %s has %llu elements, it must have %llu (%llu %s%llu)",
		weft_coll_name(job->call->coll), is_src ? "source" : "destination",
		(unsigned long long)buf->count, (unsigned long long)(job->count * blocks),
		(unsigned long long)job->count, blocks > 1 ? "for each of " : "of ",
		(unsigned long long)blocks);
}

static enum weft_result check_types(const struct check_job *job)
{
	return error_set(WEFT_ERR_ARG, "%s: the source is %s, the destination %s",
			 weft_coll_name(job->call->coll),
			 weft_type_name(job->call->src.type),
			 weft_type_name(job->call->dst.type));
}

static enum weft_result check_counts(struct check_job *job)
{
	const struct weft_call *call = job->call;
	const struct check_row *row = job->row;
	enum weft_result result = check_block(job);
	uint64_t src, dst, bytes;

	if (result != WEFT_SUCCESS)
		return result;
	src = job->count * blocks_of(job, row->src);
	dst = job->count * blocks_of(job, row->dst);
	if (__builtin_mul_overflow(
		    job->count, blocks_of(job, row->src > row->dst ? row->src : row->dst),
		    &bytes) ||
	    __builtin_mul_overflow(bytes, (uint64_t)job->elem, &bytes) ||
	    bytes > (uint64_t)PTRDIFF_MAX)
		return error_set(WEFT_ERR_ARG,
				 "%s of %llu %s elements per rank over %d ranks is more "
				 "than memory can hold",
				 weft_coll_name(call->coll),
				 (unsigned long long)job->count,
				 weft_type_name(job->type), job->comm->size);
	if (job->has_src && call->src.count != src)
		return count_wrong(job, true);
	if (job->has_dst && call->dst.count != dst)
		return count_wrong(job, false);
	job->at = (uint64_t)job->comm->rank * job->count;
	if (job->has_src && job->has_dst && call->src.type != call->dst.type)
		return check_types(job);
	return WEFT_SUCCESS;
}

/* The block of `who` in a table; NULL: no table here. */
static const uint64_t *own_block(const struct check_job *job, const uint64_t *table)
{
	return table ? table + 2 * (size_t)job->comm->rank : NULL;
}

/* A buffer of one block: as long as the other buffer's table says, where it is here. */
static enum weft_result check_own(const struct check_job *job, bool is_src,
				  const uint64_t *block, struct checked_vector *v)
{
	const struct weft_buf *buf = is_src ? &job->call->src : &job->call->dst;

	v->own[0] = 0;
	v->own[1] = buf->count;
	if (!block || block[1] - block[0] == buf->count)
		return WEFT_SUCCESS;
	return error_set(
		WEFT_ERR_ARG,
		"%s: the %s has %llu elements, but %s->counts[%d], of this rank, "
		"is %llu",
		weft_coll_name(job->call->coll), is_src ? "source" : "destination",
		(unsigned long long)buf->count, is_src ? "recv_counts" : "send_counts",
		job->comm->rank, (unsigned long long)(block[1] - block[0]));
}

/* Both buffers have a block for each rank, and ours is copied from one to the other. */
static enum weft_result check_both(const struct check_job *job,
				   const struct checked_vector *v)
{
	const uint64_t *send = own_block(job, v->send), *recv = own_block(job, v->recv);

	if (send[1] - send[0] == recv[1] - recv[0])
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "%s: this rank's own block has %llu elements by "
			 "send_counts->counts[%d], %llu by recv_counts->counts[%d]",
			 weft_coll_name(job->call->coll),
			 (unsigned long long)(send[1] - send[0]), job->comm->rank,
			 (unsigned long long)(recv[1] - recv[0]), job->comm->rank);
}

/* Reads the tables that this rank has. */
static enum weft_result check_tables(struct check_job *job, struct checked_vector *v)
{
	const struct check_row *row = job->row;
	const int32_t size = job->comm->size;
	struct vector_table send = {job->comm->tables, 0},
			    recv = {job->comm->tables + 2 * (size_t)size + 1, 0};
	enum weft_result result = WEFT_SUCCESS;

	if (row->src == ONE_PER_RANK && job->has_src) {
		result = vector_read(size, job->call->send_counts, "send_counts",
				     job->call->src.count, &send);
		v->send = send.at;
	}
	if (result == WEFT_SUCCESS && row->dst == ONE_PER_RANK && job->has_dst) {
		result = vector_read(size, job->call->recv_counts, "recv_counts",
				     job->call->dst.count, &recv);
		v->recv = recv.at;
	}
	/* What all ranks must have the same. */
	if (!row->rooted && row->src != row->dst)
		v->total = send.total + recv.total;
	return result;
}

/* In place of check_counts() for (v) forms. */
static enum weft_result check_vector(struct check_job *job, struct checked_call *out)
{
	const struct weft_call *call = job->call;
	const struct check_row *row = job->row;
	struct checked_vector *v = &out->vector;
	const uint64_t most = (uint64_t)PTRDIFF_MAX / job->elem;
	enum weft_result result = check_tables(job, v);

	if (result == WEFT_SUCCESS && ((job->has_src && call->src.count > most) ||
				       (job->has_dst && call->dst.count > most)))
		return error_set(WEFT_ERR_ARG, "%s of %s: more than memory can hold",
				 weft_coll_name(call->coll), weft_type_name(job->type));
	if (result == WEFT_SUCCESS && row->src != row->dst)
		result =
			check_own(job, row->src == ONE,
				  own_block(job, row->src == ONE ? v->recv : v->send), v);
	if (result == WEFT_SUCCESS && row->src == row->dst)
		result = check_both(job, v);
	if (result == WEFT_SUCCESS && job->has_src && job->has_dst &&
	    call->src.type != call->dst.type)
		return check_types(job);
	if (result != WEFT_SUCCESS)
		return result;
	v->src_len = job->has_src ? call->src.count : 0;
	v->dst_len = job->has_dst ? call->dst.count : 0;
	if (v->send || v->recv)
		job->at = own_block(job, row->src == ONE ? v->recv : v->send)[0];
	/* Scratch that mirrors a buffer: few plans for many lengths. */
	job->count = 1;
	if (row->reduces) {
		while (job->count < v->send[2 * (size_t)job->comm->size])
			job->count *= 2;
	} else {
		job->count = most;
	}
	return WEFT_SUCCESS;
}

/* In place of both for a dynamic one. */
static enum weft_result check_dynamic(struct check_job *job, struct checked_call *out)
{
	if (job->call->src.type != job->call->dst.type)
		return check_types(job);
	job->count = (uint64_t)PTRDIFF_MAX / job->elem;
	return dynamic_check(job->comm, job->call, &out->dynamic);
}

static const char *in_place_text(const struct check_row *row)
{
	if (row->src == row->dst)
		return "source must be the destination";
	return row->dst == ONE_PER_RANK ? "source this rank's block of the destination"
					: "destination this rank's block of the source";
}

/* In place as weft.h defines it, or apart; anything else is refused. */
static enum weft_result check_overlap(const struct check_job *job, bool *in_place)
{
	const struct weft_call *call = job->call;
	const struct check_row *row = job->row;
	const size_t size = job->elem;
	const uintptr_t src = (uintptr_t)call->src.addr, dst = (uintptr_t)call->dst.addr;
	const size_t src_len = call->src.count * size, dst_len = call->dst.count * size;
	const size_t own = job->at * size;

	*in_place = row->src < row->dst	  ? src == dst + own
		    : row->src > row->dst ? dst == src + own
					  : src == dst;
	if (*in_place || !src_len || !dst_len || src + src_len <= dst ||
	    dst + dst_len <= src)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "%s: source and destination overlap; they must be apart, or the "
			 "%s",
			 weft_coll_name(call->coll), in_place_text(row));
}

static enum weft_result check_operation(const struct check_job *job,
					struct checked_call *out)
{
	const struct weft_call *call = job->call;

	out->user = comm_op_find(job->comm->ctx->op, call->op);
	if (out->user) {
		out->plan.ordered = out->user->ordered;
		return WEFT_SUCCESS;
	}
	if ((unsigned)call->op >= WEFT_OP_USER &&
	    (unsigned)call->op < WEFT_OP_USER + COMM_OPS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "op is %d: the context has no such operation "
				 "(weft_op_create)",
				 (int)call->op);
	if ((unsigned)call->op >= WEFT_OP_COUNT)
		return error_set(WEFT_ERR_ARG, "op is %d, which is no operation",
				 (int)call->op);
	if (!reduce_supported(job->type, call->op))
		return error_set(
			WEFT_ERR_UNSUPPORTED,
			"%s of %s is not supported in this version; supported: %s",
			weft_op_name(call->op), weft_type_name(job->type),
			reduce_supported_text());
	return WEFT_SUCCESS;
}

static bool is_held(const struct check_job *job, enum check_holds who)
{
	return who == EVERYBODY || (who == ROOT && job->comm->rank == job->call->root);
}

/* Where its memory is. */
static enum weft_result check_device(const struct check_job *job,
				     const struct weft_opts *opts,
				     struct checked_call *out)
{
	const struct weft_call *call = job->call;
	const bool one = job->row->one_buffer, root = job->comm->rank == call->root;
	const enum weft_result result =
		device_find(job->comm, job->has_src ? &call->src : NULL,
			    job->has_dst ? &call->dst : NULL, one, opts, &out->device);

	out->device.no_in = one && !root;
	out->device.no_out = one && root;
	out->device.sparse = job->row->vector || job->row->dynamic;
	return result;
}

static enum weft_result check_data(const struct weft_comm *comm,
				   const struct check_row *row,
				   const struct weft_call *call,
				   const struct weft_opts *opts, struct checked_call *out)
{
	struct check_job job = {.comm = comm, .row = row, .call = call};
	enum weft_result result = WEFT_SUCCESS;

	if (row->rooted && (call->root < 0 || call->root >= comm->size))
		return error_set(WEFT_ERR_ARG, "root is %d, ranks are 0 to %d",
				 call->root, comm->size - 1);
	job.has_src = is_held(&job, row->src_at);
	job.has_dst = is_held(&job, row->dst_at);
	if (job.has_src)
		result = call_check_buf(&call->src, "src");
	if (result == WEFT_SUCCESS && job.has_dst)
		result = call_check_buf(&call->dst, "dst");
	if (result != WEFT_SUCCESS)
		return result;
	job.type = job.has_src ? call->src.type : call->dst.type;
	job.elem = weft_type_size(job.type);
	result = row->vector	? check_vector(&job, out)
		 : row->dynamic ? check_dynamic(&job, out)
				: check_counts(&job);
	if (result == WEFT_SUCCESS && job.has_src && job.has_dst)
		result = check_overlap(&job, &out->plan.in_place);
	if (result == WEFT_SUCCESS)
		result = check_device(&job, opts, out);
	if (result != WEFT_SUCCESS)
		return result;
	out->dynamic.device = out->device;
	if ((row->vector || row->dynamic) && row->src == row->dst && out->plan.in_place) {
		/* A buffer of nothing is apart from any, both may be NULL. */
		out->plan.in_place = call->src.count && call->dst.count;
		if (out->plan.in_place)
			return error_set(WEFT_ERR_UNSUPPORTED,
					 "%s in place is not supported: source and "
					 "destination must be apart",
					 weft_coll_name(call->coll));
	}
	if (row->one_buffer && !out->plan.in_place && call->src.count)
		return error_set(WEFT_ERR_ARG,
				 "%s has one buffer: src.addr and dst.addr must be equal",
				 weft_coll_name(call->coll));
	out->type = job.type;
	out->src = job.has_src ? call->src.addr : NULL;
	out->dst = job.has_dst ? call->dst.addr : NULL;
	out->plan.count = job.count;
	out->plan.vector = row->vector || row->dynamic;
	out->count = row->vector    ? out->vector.total
		     : row->dynamic ? out->dynamic.max_count * out->dynamic.block
				    : job.count;
	out->plan.elem_size = (uint32_t)job.elem;
	return row->reduces ? check_operation(&job, out) : WEFT_SUCCESS;
}

static enum weft_result check_algorithm(const struct tune *tune, const char *name,
					struct checked_call *out)
{
	const char *coll = weft_coll_name(out->coll);
	char list[256];

	if (name)
		out->algo = algo_find(coll, name);
	else
		out->algo = tune_choose(tune, coll, &out->plan);
	if (out->algo && out->algo->supports(&out->plan))
		return WEFT_SUCCESS;
	if (out->plan.ordered && (out->algo || !name))
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "%s%s%s does not keep the order of ranks, which an "
				 "operation with WEFT_OP_ORDERED needs: allreduce "
				 "(recursive-doubling, lines), reduce (chain, lines), "
				 "reduce_scatter (recursive-halving, lines) and "
				 "reduce_scatterv (recursive-halving) do",
				 coll, name ? " by " : "", name ? name : "");
	algo_list(coll, list, sizeof(list));
	if (out->algo)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "algorithm \"%s\" of %s cannot do %d ranks; those there "
				 "are: %s",
				 name ? name : "?", coll, out->plan.size, list);
	return error_set(WEFT_ERR_ARG, "no algorithm \"%s\" for %s; those there are: %s",
			 name ? name : "any", coll, list);
}

static bool plan_call_same(const struct plan_call *a, const struct plan_call *b)
{
	return a->count == b->count && a->elem_size == b->elem_size &&
	       a->root == b->root && a->average == b->average &&
	       a->ordered == b->ordered && a->fetches == b->fetches &&
	       a->crowded == b->crowded && a->in_place == b->in_place &&
	       a->rank == b->rank && a->size == b->size &&
	       a->chunk_bytes == b->chunk_bytes;
}

/* What WEFT_ALGO names, where it can be done. */
static bool check_forced(struct force *force, struct checked_call *out)
{
	if (force->algo->supports(&out->plan)) {
		out->algo = force->algo;
		out->plan.chunk_bytes = force->chunk_bytes;
		return true;
	}
	if (!force->told)
		fprintf(stderr,
			"weft: WEFT_ALGO: algorithm \"%s\" of %s cannot do such calls "
			"with %d ranks: another is chosen for them\n",
			force->algo->name, force->algo->coll, out->plan.size);
	force->told = true;
	return false;
}

/* Where nobody names one, the same call gets the same algorithm as the last time. */
static enum weft_result check_choice(struct weft_comm *comm, const struct weft_opts *opts,
				     struct checked_call *out)
{
	struct comm_choice *choice = &comm->choice[out->coll];
	struct force *force = &comm->ctx->force[out->coll];
	const uint64_t most = out->plan.count;
	enum weft_result result = WEFT_SUCCESS;

	if (opts && opts->algorithm)
		return check_algorithm(NULL, opts->algorithm, out);
	if (force->algo && check_forced(force, out))
		return WEFT_SUCCESS;
	/* By what all ranks know alike: a block as long as the mean. */
	if (out->coll == WEFT_COLL_ALLTOALLV_DYNAMIC)
		out->plan.count = out->count;
	else if (out->plan.vector)
		out->plan.count = out->vector.total / (uint64_t)comm->size;
	if (choice->algo && plan_call_same(&choice->call, &out->plan)) {
		out->algo = choice->algo;
	} else {
		result = check_algorithm(comm->ctx->tune, NULL, out);
		if (result == WEFT_SUCCESS)
			*choice = (struct comm_choice){.call = out->plan,
						       .algo = out->algo};
	}
	out->plan.count = most;
	return result;
}

/* Counts belong to a buffer of a (v) form that has a block per rank. */
static enum weft_result check_takes(const struct check_row *row,
				    const struct weft_call *call)
{
	const bool send =
		call->send_counts && !((row->vector && row->src != ONE) || row->dynamic);

	if (!send && !(call->recv_counts && (!row->vector || row->dst == ONE)))
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG, "%s takes no %s", weft_coll_name(call->coll),
			 send ? "send_counts" : "recv_counts");
}

static enum weft_result call_check_all(struct weft_comm *comm,
				       const struct weft_call *call,
				       const struct weft_opts *opts,
				       struct checked_call *out)
{
	const struct check_row *row;
	enum weft_result result = opts ? call_check_opts(opts) : WEFT_SUCCESS;

	if (result != WEFT_SUCCESS)
		return result;
	/* Callers that were built before there was `dynamic` have none. */
	if (call->size < offsetof(struct weft_call, dynamic))
		return error_set(WEFT_ERR_ARG,
				 "weft_call.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_CALL_INIT",
				 call->size, sizeof(*call));
	if ((unsigned)call->coll >= WEFT_COLL_COUNT)
		return error_set(WEFT_ERR_ARG, "coll is %d, which is no collective",
				 (int)call->coll);
	row = &check_table[call->coll];
	if (!row->known)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_call.coll: %s is not in this version",
				 weft_coll_name(call->coll));
	if (call->send_counts || call->recv_counts)
		result = check_takes(row, call);
	if (result != WEFT_SUCCESS)
		return result;
	if (row->vector && !comm->tables) {
		comm->tables =
			malloc((2 * (size_t)comm->size + 1) * 2 * sizeof(*comm->tables));
		if (!comm->tables)
			return error_set(WEFT_ERR_NOMEM, "no memory for counts");
	}
	/* One by one: the counts are of (v) forms only. */
	out->coll = call->coll;
	out->type = WEFT_INT8;
	out->op = row->reduces ? call->op : WEFT_SUM;
	out->user = NULL;
	out->src = out->dst = NULL;
	out->device = (struct exec_device){.src = -1, .dst = -1};
	out->plan = (struct plan_call){
		.rank = comm->rank,
		.size = comm->size,
		.elem_size = 1,
		.root = row->rooted ? call->root : 0,
		.fetches = exec_fetches(comm->ctx->exec),
		.crowded = exec_is_crowded(comm->ctx->exec),
		.lines = comm->lines,
		.reads = comm->reads,
		.nodes = comm->nodes,
		.average = row->reduces && call->op == WEFT_AVG,
	};
	out->timeout_us =
		opts && opts->timeout_us ? opts->timeout_us : comm->ctx->timeout_us;
	out->count = 0;
	if (row->vector)
		out->vector = (struct checked_vector){.total = 0};
	if (row->data)
		result = check_data(comm, row, call, opts, out);
	if (result != WEFT_SUCCESS)
		return result;
	out->stream = device_stream(opts, &out->device);
	if (row->dynamic && out->stream.given)
		out->dynamic.late = true;
	if (out->stream.given)
		result = exec_find_device(comm->ctx->exec, out->stream.device);
	if (result != WEFT_SUCCESS)
		return result;
	return check_choice(comm, opts, out);
}

enum weft_result call_check(struct weft_comm *comm, const struct weft_call *call,
			    const struct weft_opts *opts, struct checked_call *out)
{
	const struct call_memo *memo = memo_find(comm, call, opts);
	enum weft_result result;

	if (memo) {
		memcpy(out, &memo->out, offsetof(struct checked_call, vector));
		return WEFT_SUCCESS;
	}
	result = call_check_all(comm, call, opts, out);
	if (result == WEFT_SUCCESS)
		memo_put(comm, call, opts, out);
	return result;
}

const char *weft_algorithm(struct weft_comm *comm, const struct weft_call *call,
			   const struct weft_opts *opts)
{
	struct checked_call checked;
	enum weft_result result;

	error_clear();
	if (!comm || !call) {
		error_set(WEFT_ERR_ARG, "weft_algorithm: %s is NULL",
			  comm ? "call" : "comm");
		return NULL;
	}
	/* Checks remember the choice and write the communicator's tables. */
	ctx_lock(comm->ctx);
	result = call_check(comm, call, opts, &checked);
	ctx_unlock(comm->ctx);
	return result == WEFT_SUCCESS ? checked.algo->name : NULL;
}
