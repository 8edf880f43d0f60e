/* SPDX-License-Identifier: BSD-2-Clause */
/* See call.h: the checks, one table row per collective. */
#include "config.h"

#include <stdint.h>

#include "coll/api/call.h"
#include "coll/api/error.h"
#include "coll/exec/reduce.h"

struct check_row {
	bool known;   /* in this version */
	bool data;    /* has buffers at all */
	bool gathers; /* the destination is as many blocks as there are ranks */
	bool reduces;
	bool rooted;
	bool one_buffer; /* source and destination are the same */
};

static const struct check_row check_table[WEFT_COLL_COUNT] = {
	[WEFT_COLL_BARRIER] = {.known = true},
	[WEFT_COLL_BROADCAST] = {.known = true,
				 .data = true,
				 .rooted = true,
				 .one_buffer = true},
	[WEFT_COLL_ALLGATHER] = {.known = true, .data = true, .gathers = true},
	[WEFT_COLL_ALLREDUCE] = {.known = true, .data = true, .reduces = true},
};

static enum weft_result check_opts(const struct weft_opts *opts)
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
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_opts.flags is 0x%llx, no flag is defined",
				 (unsigned long long)opts->flags);
	if (opts->stream_kind != WEFT_STREAM_NONE || opts->stream)
		return error_set(
			WEFT_ERR_UNSUPPORTED,
			"weft_opts.stream_kind: streams are not supported in this "
			"version");
	if (opts->src_kind != WEFT_MEM_HOST || opts->dst_kind != WEFT_MEM_HOST)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_opts.%s: only host memory is supported in this "
				 "version",
				 opts->src_kind != WEFT_MEM_HOST ? "src_kind"
								 : "dst_kind");
	if (opts->src_mem || opts->dst_mem)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_opts.%s: registrations of the caller are not "
				 "supported in this version",
				 opts->src_mem ? "src_mem" : "dst_mem");
	return WEFT_SUCCESS;
}

static enum weft_result check_buf(const struct weft_buf *buf, const char *name)
{
	if (buf->kind != WEFT_MEM_HOST)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "%s.kind: only host memory is supported in this version",
				 name);
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

static enum weft_result check_counts(const struct weft_comm *comm,
				     const struct check_row *row,
				     const struct weft_call *call)
{
	const uint64_t blocks = row->gathers ? (uint64_t)comm->size : 1;
	uint64_t want, bytes;

	if (__builtin_mul_overflow(call->src.count, blocks, &want) ||
	    __builtin_mul_overflow(want, weft_type_size(call->src.type), &bytes) ||
	    bytes > (uint64_t)PTRDIFF_MAX)
		return error_set(WEFT_ERR_ARG,
				 "%s of %llu %s elements per rank over %d ranks is more "
				 "than memory can hold",
				 weft_coll_name(call->coll),
				 (unsigned long long)call->src.count,
				 weft_type_name(call->src.type), comm->size);
	if (call->dst.count != want)
		return error_set(
			WEFT_ERR_ARG,
			"%s: the destination has %llu elements, it must have "
			"%llu (%llu from each of %llu)",
			weft_coll_name(call->coll), (unsigned long long)call->dst.count,
			(unsigned long long)want, (unsigned long long)call->src.count,
			(unsigned long long)blocks);
	if (call->src.type != call->dst.type)
		return error_set(WEFT_ERR_ARG, "%s: the source is %s, the destination %s",
				 weft_coll_name(call->coll),
				 weft_type_name(call->src.type),
				 weft_type_name(call->dst.type));
	return WEFT_SUCCESS;
}

/* In place as weft.h defines it, or apart; anything else is refused. */
static enum weft_result check_overlap(const struct weft_comm *comm,
				      const struct check_row *row,
				      const struct weft_call *call, bool *in_place)
{
	const size_t size = weft_type_size(call->src.type);
	const uintptr_t src = (uintptr_t)call->src.addr, dst = (uintptr_t)call->dst.addr;
	const size_t src_len = call->src.count * size, dst_len = call->dst.count * size;
	const uintptr_t own = dst + (row->gathers ? (size_t)comm->rank * src_len : 0);

	*in_place = src == own;
	if (*in_place || !src_len || src + src_len <= dst || dst + dst_len <= src)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "%s: source and destination overlap; they must be apart, or the "
			 "source %s",
			 weft_coll_name(call->coll),
			 row->one_buffer || !row->gathers
				 ? "must be the destination"
				 : "this rank's block of the destination");
}

static enum weft_result check_data(const struct weft_comm *comm,
				   const struct check_row *row,
				   const struct weft_call *call, struct checked_call *out)
{
	enum weft_result result = check_buf(&call->src, "src");

	if (result == WEFT_SUCCESS)
		result = check_buf(&call->dst, "dst");
	if (result == WEFT_SUCCESS)
		result = check_counts(comm, row, call);
	if (result == WEFT_SUCCESS)
		result = check_overlap(comm, row, call, &out->plan.in_place);
	if (result != WEFT_SUCCESS)
		return result;
	if (row->one_buffer && !out->plan.in_place && call->src.count)
		return error_set(WEFT_ERR_ARG,
				 "%s has one buffer: src.addr and dst.addr must be equal",
				 weft_coll_name(call->coll));
	if (row->reduces && (unsigned)call->op >= WEFT_OP_COUNT)
		return error_set(WEFT_ERR_ARG, "op is %d, which is no operation",
				 (int)call->op);
	if (row->reduces && !reduce_supported(call->src.type, call->op))
		return error_set(
			WEFT_ERR_UNSUPPORTED,
			"%s of %s is not supported in this version; supported: %s",
			weft_op_name(call->op), weft_type_name(call->src.type),
			reduce_supported_text());
	if (row->rooted && (call->root < 0 || call->root >= comm->size))
		return error_set(WEFT_ERR_ARG, "root is %d, ranks are 0 to %d",
				 call->root, comm->size - 1);
	return WEFT_SUCCESS;
}

static enum weft_result check_algorithm(const char *name, struct checked_call *out)
{
	const char *coll = weft_coll_name(out->coll);
	char list[256];

	out->algo = name ? algo_find(coll, name) : algo_choose(coll, &out->plan);
	if (out->algo && out->algo->supports(&out->plan))
		return WEFT_SUCCESS;
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
	       a->fetches == b->fetches && a->crowded == b->crowded &&
	       a->in_place == b->in_place && a->rank == b->rank && a->size == b->size &&
	       a->chunk_bytes == b->chunk_bytes;
}

/* Where nobody names one, the same call gets the same algorithm as the last time. */
static enum weft_result check_choice(struct weft_comm *comm, const struct weft_opts *opts,
				     struct checked_call *out)
{
	struct comm_choice *choice = &comm->choice[out->coll];
	enum weft_result result;

	if (opts && opts->algorithm)
		return check_algorithm(opts->algorithm, out);
	if (choice->algo && plan_call_same(&choice->call, &out->plan)) {
		out->algo = choice->algo;
		return WEFT_SUCCESS;
	}
	result = check_algorithm(NULL, out);
	if (result == WEFT_SUCCESS)
		*choice = (struct comm_choice){.call = out->plan, .algo = out->algo};
	return result;
}

enum weft_result call_check(struct weft_comm *comm, const struct weft_call *call,
			    const struct weft_opts *opts, struct checked_call *out)
{
	const struct check_row *row;
	enum weft_result result = opts ? check_opts(opts) : WEFT_SUCCESS;

	if (result != WEFT_SUCCESS)
		return result;
	if (call->size < sizeof(*call))
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
		return error_set(WEFT_ERR_ARG, "%s takes no %s",
				 weft_coll_name(call->coll),
				 call->send_counts ? "send_counts" : "recv_counts");
	*out = (struct checked_call){
		.coll = call->coll,
		.type = row->data ? call->src.type : WEFT_INT8,
		.op = row->reduces ? call->op : WEFT_SUM,
		.src = call->src.addr,
		.dst = call->dst.addr,
		.timeout_us = opts && opts->timeout_us ? opts->timeout_us
						       : comm->ctx->timeout_us,
		.plan = {.rank = comm->rank,
			 .size = comm->size,
			 .count = row->data ? call->src.count : 0,
			 .root = row->rooted ? call->root : 0,
			 .fetches = exec_fetches(comm->ctx->exec),
			 .crowded = exec_is_crowded(comm->ctx->exec),
			 .average = row->reduces && call->op == WEFT_AVG},
	};
	if (row->data)
		result = check_data(comm, row, call, out);
	if (result != WEFT_SUCCESS)
		return result;
	out->plan.elem_size = (uint32_t)weft_type_size(out->type);
	return check_choice(comm, opts, out);
}

const char *weft_algorithm(struct weft_comm *comm, const struct weft_call *call,
			   const struct weft_opts *opts)
{
	struct checked_call checked;

	error_clear();
	if (!comm || !call) {
		error_set(WEFT_ERR_ARG, "weft_algorithm: %s is NULL",
			  comm ? "call" : "comm");
		return NULL;
	}
	if (call_check(comm, call, opts, &checked) != WEFT_SUCCESS)
		return NULL;
	return checked.algo->name;
}
