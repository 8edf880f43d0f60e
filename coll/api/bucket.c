/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gradient buckets: pieces that are coalesced into all-reduces, which start in one order
 * on all ranks however the pieces become ready. Over the public interface only: a bucket
 * is a persistent all-reduce in place, of memory of its own, or of its piece where it has
 * one. See weft_overlap.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"

#define BUCKET_BYTES (UINT64_C(4) * 1024 * 1024)

/* One all-reduce. */
struct part {
	uint32_t first, pieces;
	uint32_t ready; /* of its pieces, in this round */
	uint64_t count;
	void *memory; /* of the context; NULL: the piece itself */
	struct weft_req *req;
	bool open; /* started, and its end was not told */
};

struct weft_bucket {
	struct weft_comm *comm;
	size_t elem;
	uint32_t pieces, parts;
	uint32_t started; /* parts, in this round */
	uint32_t ready;	  /* pieces */
	struct weft_buf *piece;
	uint32_t *part_of; /* by piece */
	bool *is_ready;	   /* by piece */
	struct part *part;
	enum weft_result failed; /* the first failure */
	char text[512];
};

static enum weft_result bucket_failed(struct weft_bucket *b, enum weft_result result)
{
	if (b->failed == WEFT_SUCCESS) {
		b->failed = result;
		snprintf(b->text, sizeof(b->text), "%s", weft_error_detail());
	}
	return error_set(b->failed, "%s", b->text);
}

/* ---- creating -----------------------------------------------------------------------
 */

static enum weft_result bucket_check(const struct weft_buf *piece, uint32_t pieces,
				     const struct weft_bucket_opts *opts)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_bucket_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_BUCKET_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (opts->flags)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_bucket_opts.flags is 0x%" PRIx64
				 ", no flag is defined",
				 opts->flags);
	for (uint32_t i = 0; i < pieces; i++) {
		if (piece[i].type != piece[0].type)
			return error_set(WEFT_ERR_ARG,
					 "weft_bucket_create: piece %u is %s, piece 0 "
					 "%s: all must be of one type",
					 i, weft_type_name(piece[i].type),
					 weft_type_name(piece[0].type));
		if (piece[i].kind != WEFT_MEM_HOST)
			return error_set(WEFT_ERR_UNSUPPORTED,
					 "weft_bucket_create: piece %u has kind %d: only "
					 "host memory can be reduced",
					 i, (int)piece[i].kind);
		if (piece[i].count && !piece[i].addr)
			return error_set(WEFT_ERR_ARG,
					 "weft_bucket_create: piece %u is NULL, with "
					 "%" PRIu64 " elements",
					 i, piece[i].count);
	}
	if (pieces && !weft_type_size(piece[0].type))
		return error_set(WEFT_ERR_ARG, "weft_bucket_create: type %d is none",
				 (int)piece[0].type);
	return WEFT_SUCCESS;
}

/* Which pieces share an all-reduce: the next as long as it fits. */
static void bucket_divide(struct weft_bucket *b, uint64_t bytes)
{
	const uint64_t most = bytes / b->elem;

	for (uint32_t i = 0; i < b->pieces; i++) {
		struct part *last = b->parts ? &b->part[b->parts - 1] : NULL;
		const uint64_t count = b->piece[i].count;
		uint64_t sum;

		/* Nothing fits everywhere. */
		if (!last || __builtin_add_overflow(last->count, count, &sum) ||
		    (last->count && count && sum > most)) {
			last = &b->part[b->parts++];
			last->first = i;
		}
		last->pieces++;
		last->count += count;
		b->part_of[i] = b->parts - 1;
	}
}

static enum weft_result part_make(struct weft_bucket *b, struct part *part,
				  enum weft_op op, int64_t timeout_us)
{
	const struct weft_buf *piece = &b->piece[part->first];
	struct weft_opts opts = WEFT_OPTS_INIT;
	enum weft_result result;
	void *at = piece->addr;

	opts.timeout_us = timeout_us;
	if (part->pieces > 1 && part->count) {
		result = weft_mem_alloc(b->comm->ctx, part->count * b->elem,
					&part->memory);
		if (result != WEFT_SUCCESS)
			return result;
		at = part->memory;
	}
	return weft_allreduce_init(b->comm, at, at, part->count, piece->type, op, &opts,
				   &part->req);
}

static struct weft_bucket *bucket_alloc(struct weft_comm *comm,
					const struct weft_buf *piece, uint32_t pieces)
{
	struct weft_bucket *b = calloc(1, sizeof(*b));
	const size_t room = pieces ? pieces : 1;

	if (!b)
		return NULL;
	b->comm = comm;
	b->pieces = pieces;
	b->elem = pieces ? weft_type_size(piece[0].type) : 1;
	b->piece = calloc(room, sizeof(*b->piece));
	b->part_of = calloc(room, sizeof(*b->part_of));
	b->is_ready = calloc(room, sizeof(*b->is_ready));
	b->part = calloc(room, sizeof(*b->part));
	if (b->piece && b->part_of && b->is_ready && b->part) {
		if (pieces)
			memcpy(b->piece, piece, pieces * sizeof(*piece));
		return b;
	}
	free(b->piece);
	free(b->part_of);
	free(b->is_ready);
	free(b->part);
	free(b);
	return NULL;
}

/* SUCCESS where nothing is left that a call or a peer may use. */
static enum weft_result part_release(struct weft_bucket *b, struct part *part)
{
	enum weft_result result;

	if (part->open) {
		int done = 0;

		result = weft_req_test(part->req, &done);
		if (!done)
			return error_set(
				WEFT_ERR_BUSY,
				"weft_bucket_destroy: an all-reduce is under "
				"way: wait for it, or try again where it failed");
		part->open = false;
	}
	if (part->req) {
		result = weft_req_free(part->req);
		if (result != WEFT_SUCCESS)
			return result;
		part->req = NULL;
	}
	if (part->memory) {
		result = weft_mem_free(b->comm->ctx, part->memory);
		if (result != WEFT_SUCCESS)
			return result;
		part->memory = NULL;
	}
	return WEFT_SUCCESS;
}

static enum weft_result bucket_release(struct weft_bucket *b)
{
	for (uint32_t i = 0; i < b->parts; i++) {
		const enum weft_result result = part_release(b, &b->part[i]);

		if (result != WEFT_SUCCESS)
			return result;
	}
	free(b->piece);
	free(b->part_of);
	free(b->is_ready);
	free(b->part);
	free(b);
	return WEFT_SUCCESS;
}

/* Gives back what has not started yet; the sentence stays. */
static enum weft_result bucket_drop(struct weft_bucket *b, enum weft_result result)
{
	char text[sizeof(b->text)];

	snprintf(text, sizeof(text), "%s", weft_error_detail());
	bucket_release(b);
	return error_set(result, "%s", text);
}

enum weft_result weft_bucket_create(struct weft_comm *comm, const struct weft_buf *piece,
				    uint32_t pieces, enum weft_op op,
				    const struct weft_bucket_opts *opts,
				    struct weft_bucket **out)
{
	static const struct weft_bucket_opts defaults = WEFT_BUCKET_OPTS_INIT;
	enum weft_result result;
	struct weft_bucket *b;

	error_clear();
	if (!comm || !out || (pieces && !piece))
		return error_set(WEFT_ERR_ARG, "weft_bucket_create: %s is NULL",
				 !comm ? "comm" : (!out ? "bucket" : "piece"));
	if (!opts)
		opts = &defaults;
	result = bucket_check(piece, pieces, opts);
	if (result != WEFT_SUCCESS)
		return result;
	b = bucket_alloc(comm, piece, pieces);
	if (!b)
		return error_set(WEFT_ERR_NOMEM, "no memory for %u pieces", pieces);
	bucket_divide(b, opts->bytes ? opts->bytes : BUCKET_BYTES);
	for (uint32_t i = 0; i < b->parts && result == WEFT_SUCCESS; i++)
		result = part_make(b, &b->part[i], op, opts->timeout_us);
	if (result == WEFT_SUCCESS) {
		*out = b;
		return WEFT_SUCCESS;
	}
	return bucket_drop(b, result);
}

/* ---- rounds ---------------------------------------------------------------------------
 */

/* Pieces in, or out of, the memory that they share. */
static void part_copy(const struct weft_bucket *b, const struct part *part, bool out)
{
	char *at = part->memory;

	for (uint32_t i = part->first; at && i < part->first + part->pieces; i++) {
		const size_t len = b->piece[i].count * b->elem;

		if (len && out)
			memcpy(b->piece[i].addr, at, len);
		else if (len)
			memcpy(at, b->piece[i].addr, len);
		at += len;
	}
}

enum weft_result weft_bucket_ready(struct weft_bucket *b, uint32_t piece)
{
	error_clear();
	if (!b)
		return error_set(WEFT_ERR_ARG, "weft_bucket_ready: bucket is NULL");
	if (b->failed != WEFT_SUCCESS)
		return bucket_failed(b, b->failed);
	if (piece >= b->pieces)
		return error_set(WEFT_ERR_ARG,
				 "weft_bucket_ready: piece is %u, there are %u", piece,
				 b->pieces);
	if (b->is_ready[piece])
		return error_set(WEFT_ERR_ARG,
				 "weft_bucket_ready: piece %u is ready already: "
				 "weft_bucket_wait() ends the round",
				 piece);
	b->is_ready[piece] = true;
	b->ready++;
	b->part[b->part_of[piece]].ready++;
	while (b->started < b->parts) {
		struct part *part = &b->part[b->started];
		enum weft_result result;

		if (part->ready < part->pieces)
			break;
		part_copy(b, part, false);
		result = weft_req_start(part->req);
		if (result != WEFT_SUCCESS)
			return bucket_failed(b, result);
		part->open = true;
		b->started++;
	}
	return WEFT_SUCCESS;
}

static uint32_t bucket_first_missing(const struct weft_bucket *b)
{
	uint32_t i = 0;

	while (i < b->pieces && b->is_ready[i])
		i++;
	return i;
}

enum weft_result weft_bucket_wait(struct weft_bucket *b)
{
	error_clear();
	if (!b)
		return error_set(WEFT_ERR_ARG, "weft_bucket_wait: bucket is NULL");
	if (b->failed != WEFT_SUCCESS)
		return bucket_failed(b, b->failed);
	if (b->ready < b->pieces)
		return error_set(WEFT_ERR_ARG,
				 "weft_bucket_wait: %u of %u pieces are ready, piece %u "
				 "is not: every rank must give all of them",
				 b->ready, b->pieces, bucket_first_missing(b));
	for (uint32_t i = 0; i < b->parts; i++) {
		struct part *part = &b->part[i];
		const enum weft_result result =
			weft_req_wait(part->req, WEFT_TIMEOUT_DEFAULT);

		if (result != WEFT_ERR_BUSY)
			part->open = false;
		if (result != WEFT_SUCCESS)
			return bucket_failed(b, result);
		part_copy(b, part, true);
		part->ready = 0;
	}
	memset(b->is_ready, 0, b->pieces * sizeof(*b->is_ready));
	b->ready = 0;
	b->started = 0;
	return WEFT_SUCCESS;
}

uint32_t weft_bucket_calls(const struct weft_bucket *b)
{
	return b ? b->parts : 0;
}

enum weft_result weft_bucket_destroy(struct weft_bucket *b)
{
	error_clear();
	if (!b)
		return error_set(WEFT_ERR_ARG, "weft_bucket_destroy: bucket is NULL");
	return bucket_release(b);
}
