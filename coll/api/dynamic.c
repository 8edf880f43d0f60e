/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic all-to-allv: what can be checked at the call, and the plain calls. */
#include "config.h"

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
	if (d->size < sizeof(*d))
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
	if (counts->kind != WEFT_MEM_HOST)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "send_counts->kind: only host memory is supported in "
				 "this version");
	if (!d->recv_counts)
		return error_set(WEFT_ERR_ARG, "weft_dynamic.recv_counts is NULL");
	if (d->send_blocks && counts->displacements)
		return error_set(WEFT_ERR_ARG,
				 "alltoallv_dynamic: send_counts->displacements and "
				 "weft_dynamic.send_blocks both say where blocks are: "
				 "give one of them");
	if (d->recv_blocks && d->flags & WEFT_DYNAMIC_PACKED)
		return error_set(WEFT_ERR_ARG,
				 "alltoallv_dynamic: WEFT_DYNAMIC_PACKED and "
				 "weft_dynamic.recv_blocks both say where blocks go: "
				 "give one of them");
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
		.send_counts = call->send_counts->counts,
		.send_displacements = call->send_counts->displacements,
		.send_blocks = d->send_blocks,
		.recv_blocks = d->recv_blocks,
		.recv_counts = d->recv_counts,
		.max_count = d->max_count,
		.block = block,
		.packed = d->flags & WEFT_DYNAMIC_PACKED,
		.src = call->src.addr,
		.dst = call->dst.addr,
		.src_len = call->src.count,
		.dst_len = call->dst.count,
		.type = call->src.type,
	};
	return WEFT_SUCCESS;
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
