/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-gathers ahead of their use: as many buffers as may be under way or in use, taken in
 * turn. Step s lies in buffer s mod (ahead + 1); giving step s takes back that of s - 1,
 * in which step s + ahead starts. Over the public interface only. See weft_overlap.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"

#define PREFETCH_AHEAD_MAX 64u

struct room {
	void *memory;	      /* NULL: nothing has elements */
	struct weft_req *req; /* NULL: none is under way */
};

struct weft_prefetch {
	struct weft_comm *comm;
	struct weft_buf *shard;
	uint32_t *order;
	uint32_t shards, steps, ahead;
	uint32_t next, started; /* steps of this round */
	int64_t timeout_us;
	struct room *room; /* ahead + 1 */
	enum weft_result failed;
	char text[512];
};

static enum weft_result prefetch_failed(struct weft_prefetch *p, enum weft_result result)
{
	if (p->failed == WEFT_SUCCESS) {
		p->failed = result;
		snprintf(p->text, sizeof(p->text), "%s", weft_error_detail());
	}
	return error_set(p->failed, "%s", p->text);
}

/* ---- creating -----------------------------------------------------------------------
 */

static enum weft_result opts_check(const struct weft_prefetch_opts *opts, uint32_t shards)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_prefetch_opts.size is %zu, this library needs "
				 "%zu: initialise it with WEFT_PREFETCH_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (opts->flags)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_prefetch_opts.flags is 0x%" PRIx64
				 ", no flag is defined",
				 opts->flags);
	if (opts->ahead > PREFETCH_AHEAD_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_prefetch_opts.ahead is %u, at most %u",
				 opts->ahead, PREFETCH_AHEAD_MAX);
	if (opts->steps && !opts->order)
		return error_set(WEFT_ERR_ARG,
				 "weft_prefetch_opts.order is NULL, with "
				 "%u steps",
				 opts->steps);
	for (uint32_t i = 0; opts->order && i < opts->steps; i++) {
		if (opts->order[i] >= shards)
			return error_set(WEFT_ERR_ARG,
					 "weft_prefetch_opts.order[%u] is %u, there are "
					 "%u shards",
					 i, opts->order[i], shards);
	}
	return WEFT_SUCCESS;
}

/* Bytes of the longest, whole. */
static enum weft_result shards_check(const struct weft_comm *comm,
				     const struct weft_buf *shard, uint32_t shards,
				     uint64_t *longest)
{
	*longest = 0;
	for (uint32_t i = 0; i < shards; i++) {
		const uint64_t elem = weft_type_size(shard[i].type);
		uint64_t bytes;

		if (!elem)
			return error_set(WEFT_ERR_ARG,
					 "weft_prefetch_create: shard %u has type %d, "
					 "which is none",
					 i, (int)shard[i].type);
		if (shard[i].kind != WEFT_MEM_HOST)
			return error_set(WEFT_ERR_UNSUPPORTED,
					 "weft_prefetch_create: shard %u has kind %d: "
					 "only host memory can be gathered",
					 i, (int)shard[i].kind);
		if (shard[i].count && !shard[i].addr)
			return error_set(WEFT_ERR_ARG,
					 "weft_prefetch_create: shard %u is NULL, with "
					 "%" PRIu64 " elements",
					 i, shard[i].count);
		if (__builtin_mul_overflow(shard[i].count, elem, &bytes) ||
		    __builtin_mul_overflow(bytes, (uint64_t)comm->size, &bytes) ||
		    bytes > PTRDIFF_MAX)
			return error_set(WEFT_ERR_ARG,
					 "weft_prefetch_create: shard %u has %" PRIu64
					 " elements: those of %d ranks are more than "
					 "memory can hold",
					 i, shard[i].count, comm->size);
		if (bytes > *longest)
			*longest = bytes;
	}
	return WEFT_SUCCESS;
}

static void prefetch_free(struct weft_prefetch *p)
{
	free(p->shard);
	free(p->order);
	free(p->room);
	free(p);
}

static struct weft_prefetch *prefetch_alloc(struct weft_comm *comm,
					    const struct weft_buf *shard, uint32_t shards,
					    const struct weft_prefetch_opts *opts)
{
	struct weft_prefetch *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->comm = comm;
	p->shards = shards;
	p->steps = opts->order ? opts->steps : shards;
	p->ahead = opts->ahead ? opts->ahead : 1;
	p->timeout_us = opts->timeout_us;
	p->shard = calloc((size_t)shards + 1, sizeof(*p->shard));
	p->order = calloc((size_t)p->steps + 1, sizeof(*p->order));
	p->room = calloc((size_t)p->ahead + 1, sizeof(*p->room));
	if (!p->shard || !p->order || !p->room) {
		prefetch_free(p);
		return NULL;
	}
	for (uint32_t i = 0; i < shards; i++)
		p->shard[i] = shard[i];
	for (uint32_t i = 0; i < p->steps; i++)
		p->order[i] = opts->order ? opts->order[i] : i;
	return p;
}

static enum weft_result room_release(struct weft_prefetch *p, struct room *room)
{
	enum weft_result result = WEFT_SUCCESS;

	if (room->req) {
		result = weft_req_wait(room->req, WEFT_TIMEOUT_DEFAULT);
		if (result == WEFT_ERR_BUSY)
			return result;
		room->req = NULL; /* it is gone, however it ended */
	}
	if (room->memory) {
		result = weft_mem_free(p->comm->ctx, room->memory);
		if (result != WEFT_SUCCESS)
			return result;
		room->memory = NULL;
	}
	return WEFT_SUCCESS;
}

static enum weft_result prefetch_release(struct weft_prefetch *p)
{
	for (uint32_t i = 0; i <= p->ahead; i++) {
		const enum weft_result result = room_release(p, &p->room[i]);

		if (result != WEFT_SUCCESS)
			return result;
	}
	prefetch_free(p);
	return WEFT_SUCCESS;
}

/* Gives back what has not started yet; the sentence stays. */
static enum weft_result prefetch_drop(struct weft_prefetch *p, enum weft_result result)
{
	char text[sizeof(p->text)];

	snprintf(text, sizeof(text), "%s", weft_error_detail());
	prefetch_release(p);
	return error_set(result, "%s", text);
}

enum weft_result weft_prefetch_create(struct weft_comm *comm,
				      const struct weft_buf *shard, uint32_t shards,
				      const struct weft_prefetch_opts *opts,
				      struct weft_prefetch **out)
{
	static const struct weft_prefetch_opts defaults = WEFT_PREFETCH_OPTS_INIT;
	enum weft_result result;
	struct weft_prefetch *p;
	uint64_t longest;

	error_clear();
	if (!comm || !out || (shards && !shard))
		return error_set(WEFT_ERR_ARG, "weft_prefetch_create: %s is NULL",
				 !comm ? "comm" : (!out ? "prefetch" : "shard"));
	if (!opts)
		opts = &defaults;
	result = opts_check(opts, shards);
	if (result == WEFT_SUCCESS)
		result = shards_check(comm, shard, shards, &longest);
	if (result != WEFT_SUCCESS)
		return result;
	p = prefetch_alloc(comm, shard, shards, opts);
	if (!p)
		return error_set(WEFT_ERR_NOMEM, "no memory for %u shards", shards);
	for (uint32_t i = 0; longest && i <= p->ahead && result == WEFT_SUCCESS; i++)
		result = weft_mem_alloc(comm->ctx, longest, &p->room[i].memory);
	if (result != WEFT_SUCCESS)
		return prefetch_drop(p, result);
	*out = p;
	return WEFT_SUCCESS;
}

/* ---- rounds ---------------------------------------------------------------------------
 */

static struct room *room_of(struct weft_prefetch *p, uint32_t step)
{
	return &p->room[step % (p->ahead + 1)];
}

static enum weft_result step_start(struct weft_prefetch *p, uint32_t step)
{
	const struct weft_buf *shard = &p->shard[p->order[step]];
	struct room *room = room_of(p, step);
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.timeout_us = p->timeout_us;
	return weft_allgather_start(p->comm, shard->addr, room->memory, shard->count,
				    shard->type, &opts, &room->req);
}

enum weft_result weft_prefetch_next(struct weft_prefetch *p, const void **whole,
				    uint32_t *shard)
{
	enum weft_result result = WEFT_SUCCESS;
	struct room *room;

	error_clear();
	if (!p || !whole)
		return error_set(WEFT_ERR_ARG, "weft_prefetch_next: %s is NULL",
				 p ? "whole" : "prefetch");
	if (p->failed != WEFT_SUCCESS)
		return prefetch_failed(p, p->failed);
	if (!p->steps)
		return error_set(WEFT_ERR_ARG,
				 "weft_prefetch_next: there are no shards to gather");
	if (p->next == p->steps) {
		p->next = 0;
		p->started = 0;
	}
	while (p->started < p->steps && p->started <= p->next + p->ahead) {
		result = step_start(p, p->started);
		if (result != WEFT_SUCCESS)
			return prefetch_failed(p, result);
		p->started++;
	}
	room = room_of(p, p->next);
	result = weft_req_wait(room->req, WEFT_TIMEOUT_DEFAULT);
	if (result != WEFT_ERR_BUSY)
		room->req = NULL;
	if (result != WEFT_SUCCESS)
		return prefetch_failed(p, result);
	if (shard)
		*shard = p->order[p->next];
	*whole = room->memory;
	p->next++;
	return WEFT_SUCCESS;
}

enum weft_result weft_prefetch_destroy(struct weft_prefetch *p)
{
	error_clear();
	if (!p)
		return error_set(WEFT_ERR_ARG, "weft_prefetch_destroy: prefetch is NULL");
	return prefetch_release(p);
}
