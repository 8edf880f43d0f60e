/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_case.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/tests/run_case.h"

#define GUARD_BYTES 64
#define GUARD_VALUE 0xa5

static bool memory_open(struct case_bufs *b, int which, size_t len)
{
	b->memory[which] = malloc(len + GUARD_BYTES);
	if (!b->memory[which])
		return false;
	memset(b->memory[which], 0x5a, len);
	memset((char *)b->memory[which] + len, GUARD_VALUE, GUARD_BYTES);
	return true;
}

bool case_bufs_open(struct case_bufs *b, const struct ref_case *c, const struct ranks *r)
{
	const size_t elem = weft_type_size(c->type);
	const size_t own = (size_t)r->rank * c->count * elem;
	const uint64_t src = ref_src_count(c, r->rank, r->size);
	bool one, inner_src;

	memset(b, 0, sizeof(*b));
	b->src_len = src * elem;
	b->dst_len = ref_dst_count(c, r->rank, r->size) * elem;
	one = c->coll == WEFT_COLL_BROADCAST || (c->in_place && b->src_len && b->dst_len);
	inner_src = b->src_len <= b->dst_len;
	if ((!one || inner_src) && !memory_open(b, 1, b->dst_len))
		return false;
	if ((!one || !inner_src) && !memory_open(b, 0, b->src_len))
		return false;
	b->src = b->memory[0];
	b->dst = b->memory[1];
	if (one && inner_src)
		b->src = (char *)b->dst +
			 (b->src_len < b->dst_len && c->coll != WEFT_COLL_BROADCAST ? own
										    : 0);
	else if (one)
		b->dst = (char *)b->src + own;
	ref_fill(c, r->rank, 0, src, b->src);
	return true;
}

void case_bufs_close(struct case_bufs *b)
{
	free(b->memory[0]);
	free(b->memory[1]);
}

enum weft_result case_start(struct weft_comm *comm, const struct ref_case *c,
			    const struct case_bufs *b, struct weft_req **req)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

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
	default:
		return weft_allreduce_start(comm, b->src, b->dst, c->count, c->type,
					    c->op, &opts, req);
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
	default:
		return weft_allreduce(comm, b->src, b->dst, c->count, c->type, c->op,
				      &opts);
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
			 int32_t rank)
{
	const size_t elem = weft_type_size(c->type);
	char *again = malloc(b->src_len + 1);
	const bool made = again != NULL;
	bool same;

	if (!made)
		return false;
	ref_fill(c, rank, 0, b->src_len / elem, again);
	if (!b->memory[1])
		memcpy(again + ((char *)b->dst - (char *)b->src), b->dst, b->dst_len);
	same = memcmp(again, b->src, b->src_len) == 0;
	free(again);
	return same;
}

int case_check(struct ranks *r, const struct ref_case *c, const struct case_bufs *b)
{
	char text[200];
	int64_t wrong;

	if (c->coll == WEFT_COLL_BARRIER)
		return RANKS_GOOD;
	ref_case_print(c, text, sizeof(text));
	wrong = ref_check(c, r->rank, r->size, b->dst);
	if (wrong >= 0)
		return ranks_say(r, "%s: element %lld is wrong", text, (long long)wrong);
	if ((b->memory[1] && !guard_whole((char *)b->dst + b->dst_len)) ||
	    (b->memory[0] && !guard_whole((char *)b->src + b->src_len)))
		return ranks_say(r, "%s: wrote beyond a buffer", text);
	if (b->memory[0] && !source_whole(c, b, r->rank))
		return ranks_say(r, "%s: the source was changed", text);
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
