/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic all-to-allv: what can be checked at the call, and the plain calls. */
#include "config.h"

#include <stddef.h>

#include "coll/api/call.h"
#include "coll/api/error.h"

/* What there is, and what excludes what. */
static enum weft_result options_check(const struct weft_call *call,
				      const struct weft_dynamic *d)
{
	const struct weft_counts *counts = call->send_counts;

	if (!d)
		return error_set(WEFT_ERR_ARG, "alltoallv_dynamic: weft_call.dynamic is "
					       "NULL");
	/* Callers that were built before there was `kind` have none. */
	if (d->size < offsetof(struct weft_dynamic, kind))
		return error_set(WEFT_ERR_ARG,
				 "weft_dynamic.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_DYNAMIC_INIT",
				 d->size, sizeof(*d));
	if (d->flags & ~WEFT_DYNAMIC_PACKED)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_dynamic.flags is 0x%llx, defined is 0x%llx",
				 (unsigned long long)d->flags,
				 (unsigned long long)WEFT_DYNAMIC_PACKED);
	if (!counts || !counts->counts)
		return error_set(WEFT_ERR_ARG, "send_counts%s is NULL",
				 counts ? "->counts" : "");
	if ((unsigned)counts->kind > WEFT_MEM_AUTO)
		return error_set(WEFT_ERR_ARG,
				 "send_counts->kind is %d, which is no kind of memory",
				 (int)counts->kind);
	if (!d->recv_counts)
		return error_set(WEFT_ERR_ARG, "weft_dynamic.recv_counts is NULL");
	if (d->send_blocks && counts->displacements)
		return error_set(WEFT_ERR_ARG,
				 "alltoallv_dynamic: send_counts->displacements and "
				 "weft_dynamic.send_blocks both say where blocks are: "
				 "give one of them");
	if (d->size >= sizeof(*d) && (unsigned)d->kind > WEFT_MEM_AUTO)
		return error_set(WEFT_ERR_ARG,
				 "weft_dynamic.kind is %d, which is no kind of memory",
				 (int)d->kind);
	if (d->recv_blocks && d->flags & WEFT_DYNAMIC_PACKED)
		return error_set(WEFT_ERR_ARG,
				 "alltoallv_dynamic: WEFT_DYNAMIC_PACKED and "
				 "weft_dynamic.recv_blocks both say where blocks go: "
				 "give one of them");
	return WEFT_SUCCESS;
}

static uint64_t *plain(const uint64_t *table)
{
	return (uint64_t *)(uintptr_t)table;
}

/* Where the arrays are; those of devices are all on one. How long send_blocks is only the
 * counts say: whose it is its first byte does. */
static enum weft_result tables_find(const struct weft_comm *comm,
				    const struct weft_call *call,
				    const struct weft_dynamic *d,
				    struct dynamic_spec *out)
{
	const struct weft_counts *counts = call->send_counts;
	const bool older = d->size < sizeof(*d);
	const uint64_t size = (uint64_t)comm->size, lists = size * d->max_count;
	const uint64_t len[DYNAMIC_TABLES] = {size, size, lists > 0, lists, size};

	for (uint32_t t = 0; t < DYNAMIC_TABLES; t++) {
		const bool send = t == DYNAMIC_COUNTS || t == DYNAMIC_DISPLACEMENTS;
		struct weft_buf buf = {.addr = out->table[t], .count = len[t]};
		enum weft_result result;
		int32_t found;

		if (!buf.addr)
			continue;
		buf.type = t == DYNAMIC_SEND_BLOCKS ? WEFT_UINT8 : WEFT_UINT64;
		if (send || !older) {
			buf.kind = send ? counts->kind : d->kind;
			buf.device = send ? counts->device : d->device;
		}
		result = exec_find_memory(comm->ctx->exec,
					  send ? "send_counts" : "weft_dynamic", &buf,
					  &found);
		if (result != WEFT_SUCCESS)
			return result;
		if (found < 0)
			continue;
		if (out->on_device && out->table_device != found)
			return error_set(WEFT_ERR_ARG,
					 "alltoallv_dynamic: counts and lists are on GPU "
					 "%d and on GPU %d: they must be on one, or in "
					 "host memory",
					 out->table_device, found);
		out->on_device |= 1u << t;
		out->table_device = found;
	}
	out->late = out->on_device != 0;
	return WEFT_SUCCESS;
}

enum weft_result dynamic_check(const struct weft_comm *comm, const struct weft_call *call,
			       struct dynamic_spec *out)
{
	/* A caller whose struct weft_call is shorter has none. */
	const struct weft_dynamic *d = call->size < sizeof(*call) ? NULL : call->dynamic;
	const uint64_t elem = weft_type_size(call->src.type);
	enum weft_result result = options_check(call, d);
	uint64_t block, all;

	if (result != WEFT_SUCCESS)
		return result;
	block = d->block ? d->block : 1;
	if (__builtin_mul_overflow(d->max_count, block, &all) ||
	    __builtin_mul_overflow(all, (uint64_t)comm->size, &all) ||
	    all > (uint64_t)PTRDIFF_MAX / elem ||
	    call->src.count > (uint64_t)PTRDIFF_MAX / elem ||
	    call->dst.count > (uint64_t)PTRDIFF_MAX / elem)
		return error_set(WEFT_ERR_ARG,
				 "alltoallv_dynamic of %llu times %llu %s for each of "
				 "%d ranks: more than memory can hold",
				 (unsigned long long)d->max_count,
				 (unsigned long long)block,
				 weft_type_name(call->src.type), comm->size);
	if (!d->recv_blocks && call->dst.count < all)
		return error_set(
			WEFT_ERR_ARG,
			"alltoallv_dynamic: the destination has %llu elements, it must "
			"have %llu: weft_dynamic.max_count (%llu) times block (%llu) "
			"from each of %d ranks",
			(unsigned long long)call->dst.count, (unsigned long long)all,
			(unsigned long long)d->max_count, (unsigned long long)block,
			comm->size);
	*out = (struct dynamic_spec){
		.table = {plain(call->send_counts->counts),
			  plain(call->send_counts->displacements), plain(d->send_blocks),
			  plain(d->recv_blocks), d->recv_counts},
		.max_count = d->max_count,
		.block = block,
		.packed = d->flags & WEFT_DYNAMIC_PACKED,
		.src = call->src.addr,
		.dst = call->dst.addr,
		.src_len = call->src.count,
		.dst_len = call->dst.count,
		.type = call->src.type,
	};
	return tables_find(comm, call, d, out);
}

/* ---- the plain calls ----------------------------------------------------------------
 */

static struct weft_call dynamic_call(const void *src, uint64_t src_count,
				     const struct weft_counts *send_counts, void *dst,
				     uint64_t dst_count,
				     const struct weft_dynamic *dynamic,
				     enum weft_type type)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_ALLTOALLV_DYNAMIC;
	call.src = (struct weft_buf){
		.addr = (void *)(uintptr_t)src, .count = src_count, .type = type};
	call.dst = (struct weft_buf){.addr = dst, .count = dst_count, .type = type};
	call.send_counts = send_counts;
	call.dynamic = dynamic;
	return call;
}

enum weft_result weft_alltoallv_dynamic(struct weft_comm *comm, const void *src,
					uint64_t src_count,
					const struct weft_counts *send_counts, void *dst,
					uint64_t dst_count,
					const struct weft_dynamic *dynamic,
					enum weft_type type, const struct weft_opts *opts)
{
	const struct weft_call call =
		dynamic_call(src, src_count, send_counts, dst, dst_count, dynamic, type);

	return call_run(comm, &call, opts);
}

enum weft_result weft_alltoallv_dynamic_start(
	struct weft_comm *comm, const void *src, uint64_t src_count,
	const struct weft_counts *send_counts, void *dst, uint64_t dst_count,
	const struct weft_dynamic *dynamic, enum weft_type type,
	const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call =
		dynamic_call(src, src_count, send_counts, dst, dst_count, dynamic, type);

	return weft_call_start(comm, &call, opts, req);
}

enum weft_result weft_alltoallv_dynamic_init(
	struct weft_comm *comm, const void *src, uint64_t src_count,
	const struct weft_counts *send_counts, void *dst, uint64_t dst_count,
	const struct weft_dynamic *dynamic, enum weft_type type,
	const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call =
		dynamic_call(src, src_count, send_counts, dst, dst_count, dynamic, type);

	return weft_call_init(comm, &call, opts, req);
}
