/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_case.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/tests/run_case.h"

#define GUARD_BYTES 64
#define GUARD_VALUE 0xa5

bool case_bufs_open(struct case_bufs *b, const struct ref_case *c, const struct ranks *r)
{
	const size_t bytes = c->count * weft_type_size(c->type);
	const bool gathers = c->coll == WEFT_COLL_ALLGATHER;
	const bool one = c->in_place || c->coll == WEFT_COLL_BROADCAST;

	memset(b, 0, sizeof(*b));
	if (c->coll == WEFT_COLL_BARRIER)
		return true;
	b->src_len = bytes;
	b->dst_len = gathers ? bytes * (size_t)r->size : bytes;
	b->memory[1] = malloc(b->dst_len + GUARD_BYTES);
	if (!one)
		b->memory[0] = malloc(b->src_len + GUARD_BYTES);
	if (!b->memory[1] || (!one && !b->memory[0]))
		return false;
	b->dst = b->memory[1];
	b->src = b->memory[0];
	if (one)
		b->src = (char *)b->dst + (gathers ? (size_t)r->rank * bytes : 0);
	memset(b->dst, 0x5a, b->dst_len);
	memset((char *)b->dst + b->dst_len, GUARD_VALUE, GUARD_BYTES);
	if (!one)
		memset((char *)b->src + b->src_len, GUARD_VALUE, GUARD_BYTES);
	if (c->coll != WEFT_COLL_BROADCAST || r->rank == c->root)
		ref_fill(c, r->rank, b->src);
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
	default:
		return weft_allreduce_start(comm, b->src, b->dst, c->count, c->type,
					    c->op, &opts, req);
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
	if (!guard_whole((char *)b->dst + b->dst_len) ||
	    (b->memory[0] && !guard_whole((char *)b->src + b->src_len)))
		return ranks_say(r, "%s: wrote beyond a buffer", text);
	if (b->memory[0]) {
		void *again = malloc(b->src_len + 1);
		const bool same = again && (ref_fill(c, r->rank, again),
					    memcmp(again, b->src, b->src_len) == 0);

		free(again);
		if (!same)
			return ranks_say(r, "%s: the source was changed", text);
	}
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
