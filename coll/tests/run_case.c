/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_case.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/tests/run_case.h"

#define GUARD_BYTES 64
#define GUARD_VALUE 0xa5
#define FILL_VALUE  0x5a

/* Of a dynamic all-to-allv: it outlives the call. */
struct case_dynamic {
	struct ref_blocks src;
	uint64_t got[REF_RANKS_MAX];
	struct weft_dynamic dynamic;
};

struct case_dynamic *case_dynamic_open(const struct ref_case *c, int32_t rank,
				       int32_t size)
{
	struct case_dynamic *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->src = ref_src(c, rank, size);
	d->dynamic = (struct weft_dynamic)WEFT_DYNAMIC_INIT;
	d->dynamic.max_count = ref_block_most(c);
	d->dynamic.recv_counts = d->got;
	return d;
}

static bool memory_open(struct case_bufs *b, int which, size_t len)
{
	b->memory[which] = malloc(len + GUARD_BYTES);
	if (!b->memory[which])
		return false;
	memset(b->memory[which], FILL_VALUE, len);
	memset((char *)b->memory[which] + len, GUARD_VALUE, GUARD_BYTES);
	return true;
}

bool case_bufs_open(struct case_bufs *b, const struct ref_case *c, const struct ranks *r)
{
	const size_t elem = weft_type_size(c->type);
	const struct ref_blocks src = ref_src(c, r->rank, r->size),
				dst = ref_dst(c, r->rank, r->size);
	const bool broadcast = c->coll == WEFT_COLL_BROADCAST;
	const bool one = broadcast || (c->in_place && src.n && dst.n);
	const bool inner_src = src.n <= dst.n;

	memset(b, 0, sizeof(*b));
	b->dynamic = case_dynamic_open(c, r->rank, r->size);
	if (!b->dynamic)
		return false;
	b->src_len = src.span * elem;
	b->dst_len = dst.span * elem;
	if ((!one || inner_src) && !memory_open(b, 1, b->dst_len))
		return false;
	if ((!one || !inner_src) && !memory_open(b, 0, b->src_len))
		return false;
	b->src = b->memory[0];
	b->dst = b->memory[1];
	if (one && inner_src)
		b->src = (char *)b->dst + (src.n < dst.n ? dst.at[r->rank] * elem : 0);
	else if (one)
		b->dst = (char *)b->src + src.at[r->rank] * elem;
	if (broadcast)
		b->src = b->dst;
	ref_fill(c, r->rank, r->size, b->src);
	return true;
}

void case_bufs_refill(struct case_bufs *b, const struct ref_case *c,
		      const struct ranks *r)
{
	if (b->memory[0])
		memset(b->memory[0], FILL_VALUE, b->src_len);
	if (b->memory[1])
		memset(b->memory[1], FILL_VALUE, b->dst_len);
	ref_fill(c, r->rank, r->size, b->src);
}

void case_bufs_close(struct case_bufs *b)
{
	free(b->memory[0]);
	free(b->memory[1]);
	free(b->dynamic);
}

struct weft_call case_general(const struct weft_comm *comm, const struct ref_case *c,
			      const struct case_bufs *b, struct weft_counts counts[2],
			      struct ref_blocks blocks[2])
{
	const int32_t rank = weft_comm_rank(comm), size = weft_comm_size(comm);
	struct weft_call call = WEFT_CALL_INIT;

	blocks[0] = ref_src(c, rank, size);
	blocks[1] = ref_dst(c, rank, size);
	for (int i = 0; i < 2; i++) {
		counts[i] = (struct weft_counts){.counts = blocks[i].count};
		if (blocks[i].gaps)
			counts[i].displacements = blocks[i].at;
	}
	call.coll = c->coll;
	call.op = c->op;
	call.root = c->root;
	call.src = (struct weft_buf){
		.addr = b->src, .count = blocks[0].span, .type = c->type};
	call.dst = (struct weft_buf){
		.addr = b->dst, .count = blocks[1].span, .type = c->type};
	if (c->coll == WEFT_COLL_BROADCAST)
		call.src = call.dst;
	if (c->coll == WEFT_COLL_REDUCE_SCATTERV || c->coll == WEFT_COLL_ALLTOALLV ||
	    c->coll == WEFT_COLL_SCATTERV)
		call.send_counts = &counts[0];
	if (c->coll == WEFT_COLL_ALLGATHERV || c->coll == WEFT_COLL_ALLTOALLV ||
	    c->coll == WEFT_COLL_GATHERV)
		call.recv_counts = &counts[1];
	if (c->coll == WEFT_COLL_ALLTOALLV_DYNAMIC) {
		counts[0].counts = b->dynamic->src.count;
		if (blocks[0].gaps)
			counts[0].displacements = b->dynamic->src.at;
		call.send_counts = &counts[0];
		call.dynamic = &b->dynamic->dynamic;
	}
	return call;
}

enum weft_result case_start(struct weft_comm *comm, const struct ref_case *c,
			    const struct case_bufs *b, struct weft_req **req)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_counts counts[2];
	struct ref_blocks blocks[2];
	const struct weft_call call = case_general(comm, c, b, counts, blocks);

	opts.algorithm = c->algorithm;
	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return weft_barrier_start(comm, &opts, req);
	case WEFT_COLL_BROADCAST:
		return weft_broadcast_start(comm, b->dst, c->count, c->type, c->root,
					    &opts, req);
	case WEFT_COLL_ALLGATHER:
		return weft_allgather_start(comm, b->src, b->dst, c->count, c->type,
					    &opts, req);
	case WEFT_COLL_REDUCE_SCATTER:
		return weft_reduce_scatter_start(comm, b->src, b->dst, c->count, c->type,
						 c->op, &opts, req);
	case WEFT_COLL_ALLTOALL:
		return weft_alltoall_start(comm, b->src, b->dst, c->count, c->type, &opts,
					   req);
	case WEFT_COLL_REDUCE:
		return weft_reduce_start(comm, b->src, b->dst, c->count, c->type, c->op,
					 c->root, &opts, req);
	case WEFT_COLL_GATHER:
		return weft_gather_start(comm, b->src, b->dst, c->count, c->type, c->root,
					 &opts, req);
	case WEFT_COLL_SCATTER:
		return weft_scatter_start(comm, b->src, b->dst, c->count, c->type,
					  c->root, &opts, req);
	case WEFT_COLL_ALLREDUCE:
		return weft_allreduce_start(comm, b->src, b->dst, c->count, c->type,
					    c->op, &opts, req);
	default: /* the (v) forms */
		return weft_call_start(comm, &call, &opts, req);
	}
}

enum weft_result case_init(struct weft_comm *comm, const struct ref_case *c,
			   const struct case_bufs *b, struct weft_req **req)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_counts counts[2];
	struct ref_blocks blocks[2];
	const struct weft_call call = case_general(comm, c, b, counts, blocks);

	opts.algorithm = c->algorithm;
	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return weft_barrier_init(comm, &opts, req);
	case WEFT_COLL_BROADCAST:
		return weft_broadcast_init(comm, b->dst, c->count, c->type, c->root,
					   &opts, req);
	case WEFT_COLL_ALLGATHER:
		return weft_allgather_init(comm, b->src, b->dst, c->count, c->type, &opts,
					   req);
	case WEFT_COLL_REDUCE_SCATTER:
		return weft_reduce_scatter_init(comm, b->src, b->dst, c->count, c->type,
						c->op, &opts, req);
	case WEFT_COLL_ALLTOALL:
		return weft_alltoall_init(comm, b->src, b->dst, c->count, c->type, &opts,
					  req);
	case WEFT_COLL_REDUCE:
		return weft_reduce_init(comm, b->src, b->dst, c->count, c->type, c->op,
					c->root, &opts, req);
	case WEFT_COLL_GATHER:
		return weft_gather_init(comm, b->src, b->dst, c->count, c->type, c->root,
					&opts, req);
	case WEFT_COLL_SCATTER:
		return weft_scatter_init(comm, b->src, b->dst, c->count, c->type, c->root,
					 &opts, req);
	case WEFT_COLL_ALLREDUCE:
		return weft_allreduce_init(comm, b->src, b->dst, c->count, c->type, c->op,
					   &opts, req);
	case WEFT_COLL_ALLGATHERV:
		return weft_allgatherv_init(comm, b->src, call.src.count, b->dst,
					    &counts[1], c->type, &opts, req);
	case WEFT_COLL_REDUCE_SCATTERV:
		return weft_reduce_scatterv_init(comm, b->src, &counts[0], b->dst,
						 call.dst.count, c->type, c->op, &opts,
						 req);
	case WEFT_COLL_ALLTOALLV:
		return weft_alltoallv_init(comm, b->src, &counts[0], b->dst, &counts[1],
					   c->type, &opts, req);
	case WEFT_COLL_ALLTOALLV_DYNAMIC:
		return weft_alltoallv_dynamic_init(comm, b->src, call.src.count,
						   &counts[0], b->dst, call.dst.count,
						   call.dynamic, c->type, &opts, req);
	case WEFT_COLL_GATHERV:
		return weft_gatherv_init(comm, b->src, call.src.count, b->dst, &counts[1],
					 c->type, c->root, &opts, req);
	default:
		return weft_scatterv_init(comm, b->src, &counts[0], b->dst,
					  call.dst.count, c->type, c->root, &opts, req);
	}
}

/* The (v) forms. */
static enum weft_result case_call_v(struct weft_comm *comm, const struct ref_case *c,
				    const struct case_bufs *b,
				    const struct weft_opts *opts)
{
	struct weft_counts counts[2];
	struct ref_blocks blocks[2];
	const struct weft_call call = case_general(comm, c, b, counts, blocks);
	const uint64_t src = call.src.count, dst = call.dst.count;

	switch (c->coll) {
	case WEFT_COLL_ALLGATHERV:
		return weft_allgatherv(comm, b->src, src, b->dst, &counts[1], c->type,
				       opts);
	case WEFT_COLL_REDUCE_SCATTERV:
		return weft_reduce_scatterv(comm, b->src, &counts[0], b->dst, dst,
					    c->type, c->op, opts);
	case WEFT_COLL_ALLTOALLV:
		return weft_alltoallv(comm, b->src, &counts[0], b->dst, &counts[1],
				      c->type, opts);
	case WEFT_COLL_ALLTOALLV_DYNAMIC:
		return weft_alltoallv_dynamic(comm, b->src, src, &counts[0], b->dst, dst,
					      call.dynamic, c->type, opts);
	case WEFT_COLL_GATHERV:
		return weft_gatherv(comm, b->src, src, b->dst, &counts[1], c->type,
				    c->root, opts);
	default:
		return weft_scatterv(comm, b->src, &counts[0], b->dst, dst, c->type,
				     c->root, opts);
	}
}

enum weft_result case_call(struct weft_comm *comm, const struct ref_case *c,
			   const struct case_bufs *b)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.algorithm = c->algorithm;
	switch (c->coll) {
	case WEFT_COLL_BARRIER:
		return weft_barrier(comm, &opts);
	case WEFT_COLL_BROADCAST:
		return weft_broadcast(comm, b->dst, c->count, c->type, c->root, &opts);
	case WEFT_COLL_ALLGATHER:
		return weft_allgather(comm, b->src, b->dst, c->count, c->type, &opts);
	case WEFT_COLL_REDUCE_SCATTER:
		return weft_reduce_scatter(comm, b->src, b->dst, c->count, c->type, c->op,
					   &opts);
	case WEFT_COLL_ALLTOALL:
		return weft_alltoall(comm, b->src, b->dst, c->count, c->type, &opts);
	case WEFT_COLL_REDUCE:
		return weft_reduce(comm, b->src, b->dst, c->count, c->type, c->op,
				   c->root, &opts);
	case WEFT_COLL_GATHER:
		return weft_gather(comm, b->src, b->dst, c->count, c->type, c->root,
				   &opts);
	case WEFT_COLL_SCATTER:
		return weft_scatter(comm, b->src, b->dst, c->count, c->type, c->root,
				    &opts);
	case WEFT_COLL_ALLREDUCE:
		return weft_allreduce(comm, b->src, b->dst, c->count, c->type, c->op,
				      &opts);
	default:
		return case_call_v(comm, c, b, &opts);
	}
}

static bool guard_whole(const void *end)
{
	const uint8_t *g = end;

	for (int i = 0; i < GUARD_BYTES; i++) {
		if (g[i] != GUARD_VALUE)
			return false;
	}
	return true;
}

/* The source is as it was, but for the result in it. */
static bool source_whole(const struct ref_case *c, const struct case_bufs *b,
			 const struct ranks *r)
{
	char *again = malloc(b->src_len + 1);
	bool same;

	if (!again)
		return false;
	memset(again, FILL_VALUE, b->src_len);
	ref_fill(c, r->rank, r->size, again);
	if (!b->memory[1])
		memcpy(again + ((char *)b->dst - (char *)b->src), b->dst, b->dst_len);
	same = memcmp(again, b->src, b->src_len) == 0;
	free(again);
	return same;
}

/* Nobody wrote between the blocks of the destination. */
static bool gaps_whole(const struct ref_case *c, const struct case_bufs *b,
		       const struct ranks *r)
{
	const struct ref_blocks dst = ref_dst(c, r->rank, r->size);
	const size_t elem = weft_type_size(c->type);
	size_t at = 0;

	for (int32_t k = 0; b->memory[1] && k <= dst.n; k++) {
		const size_t next = k < dst.n ? dst.at[k] * elem : b->dst_len;

		for (; at < next; at++) {
			if (((uint8_t *)b->dst)[at] != FILL_VALUE)
				return false;
		}
		if (k < dst.n)
			at += dst.count[k] * elem;
	}
	return true;
}

int case_check(struct ranks *r, const struct ref_case *c, const struct case_bufs *b)
{
	char text[200];
	int64_t wrong;

	if (c->coll == WEFT_COLL_BARRIER)
		return RANKS_GOOD;
	ref_case_print(c, text, sizeof(text));
	if (c->coll == WEFT_COLL_ALLTOALLV_DYNAMIC &&
	    memcmp(b->dynamic->got, ref_dst(c, r->rank, r->size).count,
		   (size_t)r->size * sizeof(uint64_t)) != 0)
		return ranks_say(r, "%s: other counts than were sent", text);
	wrong = ref_check(c, r->rank, r->size, b->dst);
	if (wrong >= 0)
		return ranks_say(r, "%s: element %lld is wrong", text, (long long)wrong);
	if ((b->memory[1] && !guard_whole((char *)b->dst + b->dst_len)) ||
	    (b->memory[0] && !guard_whole((char *)b->src + b->src_len)))
		return ranks_say(r, "%s: wrote beyond a buffer", text);
	if (b->memory[0] && !source_whole(c, b, r))
		return ranks_say(r, "%s: the source was changed", text);
	if (!gaps_whole(c, b, r))
		return ranks_say(r, "%s: wrote between blocks", text);
	return RANKS_GOOD;
}

static int case_compare(struct ranks *r, const struct case_bufs *b)
{
	uint64_t hash = UINT64_C(14695981039346656037), all[RANKS_MAX];
	const uint8_t *byte = b->dst;

	for (size_t i = 0; i < b->dst_len; i++)
		hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
	if (!ranks_gather(r, &hash, all, sizeof(hash)))
		return ranks_say(r, "the ranks of the test lost each other");
	for (int32_t i = 0; i < r->size; i++) {
		if (all[i] != hash)
			return ranks_say(r, "rank %d holds other bits", i);
	}
	return RANKS_GOOD;
}

int case_run(struct ranks *r, struct weft_comm *comm, const struct ref_case *c,
	     bool compare)
{
	struct case_bufs b;
	struct weft_req *req;
	enum weft_result result;
	char text[200];
	int bad = RANKS_BAD;

	ref_case_print(c, text, sizeof(text));
	if (!case_bufs_open(&b, c, r))
		return ranks_say(r, "no memory for %s", text);
	result = case_start(comm, c, &b, &req);
	if (result == WEFT_SUCCESS)
		result = weft_req_wait(req, WEFT_TIMEOUT_DEFAULT);
	if (result != WEFT_SUCCESS)
		ranks_say(r, "%s: %s: %s", text, weft_strerror(result),
			  weft_error_detail());
	else
		bad = case_check(r, c, &b);
	if (!bad && compare)
		bad = case_compare(r, &b);
	case_bufs_close(&b);
	return bad;
}
