/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: helpers for programs that communicate while they compute. They
 * are of use with a progress thread (WEFT_PROGRESS_THREAD), and need none. The rules at
 * the top of that header hold here; an object is one thread's at a time, and every rank
 * makes and uses those of a communicator in the same order as its other calls. */
#ifndef WEFT_WEFT_OVERLAP_H
#define WEFT_WEFT_OVERLAP_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gradient buckets ---------------------------------------------------------------
 */

struct weft_bucket; /* many buffers that are reduced over and over, some at a time */

struct weft_bucket_opts {
	size_t size;	    /* sizeof(struct weft_bucket_opts) */
	uint64_t bytes;	    /* that one all-reduce carries, at most; 0: 4 MiB */
	int64_t timeout_us; /* of each all-reduce, as in weft_opts */
	uint64_t flags;	    /* none defined: 0 */
};
#define WEFT_BUCKET_OPTS_INIT                           \
	{                                               \
		.size = sizeof(struct weft_bucket_opts) \
	}

/*
 * All-reduces of `pieces` buffers, each in place, in as few calls as opts.bytes allows:
 * neighbours in the list share a bucket, what is longer has one of its own, and is not
 * copied. The list is in the order in which pieces become ready, about; all are host
 * memory of one type, and every rank gives the same counts. The buffers stay where they
 * are until the object is destroyed. Local. Errors: ARG, UNSUPPORTED, COMM, NOMEM.
 */
WEFT_API enum weft_result weft_bucket_create(struct weft_comm *comm,
					     const struct weft_buf *piece,
					     uint32_t pieces, enum weft_op op,
					     const struct weft_bucket_opts *opts,
					     struct weft_bucket **bucket);

/*
 * The piece has its value of this round: it is the library's until the round ends.
 * Pieces may become ready in any order, which may be another on each rank: a bucket
 * starts when all of its pieces are ready and all buckets before it have started.
 * Errors: ARG (no such piece, or it is ready), and those of starting a collective; what
 * could not start fails weft_bucket_wait().
 */
WEFT_API enum weft_result weft_bucket_ready(struct weft_bucket *bucket, uint32_t piece);

/*
 * Waits until every piece has its result, and ends the round: the pieces are the
 * caller's, and may become ready again. Errors: ARG (a piece is not ready: the round goes
 * on), and those of a collective: then the object can only be destroyed.
 */
WEFT_API enum weft_result weft_bucket_wait(struct weft_bucket *bucket);

/* All-reduces that a round takes. */
WEFT_API uint32_t weft_bucket_calls(const struct weft_bucket *bucket);

/* Local. BUSY: a round is under way: wait for it first; or a failed call is not safe yet:
 * try again. */
WEFT_API enum weft_result weft_bucket_destroy(struct weft_bucket *bucket);

/* ---- all-gathers ahead of their use -------------------------------------------------
 */

struct weft_prefetch; /* buffers of which each rank has a shard, gathered when needed */

struct weft_prefetch_opts {
	size_t size;	/* sizeof(struct weft_prefetch_opts) */
	uint32_t ahead; /* gathers that are started before they are asked for; 0: 1 */
	const uint32_t
		*order; /* of the shards, `steps` of them, copied; NULL: 0, 1, ... */
	uint32_t steps;
	int64_t timeout_us; /* of each all-gather, as in weft_opts */
	uint64_t flags;	    /* none defined: 0 */
};
#define WEFT_PREFETCH_OPTS_INIT                           \
	{                                                 \
		.size = sizeof(struct weft_prefetch_opts) \
	}

/*
 * All-gathers of `shards` buffers, one after the other in an order that is known before
 * (forwards and backwards: 0, 1, 2, 1, 0): while the caller works with one, the next are
 * under way. Every rank gives the same counts, types and order. Memory is for ahead + 1
 * of the longest. Local; nothing starts. Errors: ARG, UNSUPPORTED, NOMEM.
 */
WEFT_API enum weft_result weft_prefetch_create(struct weft_comm *comm,
					       const struct weft_buf *shard,
					       uint32_t shards,
					       const struct weft_prefetch_opts *opts,
					       struct weft_prefetch **prefetch);

/*
 * The next of the order, whole: as many elements as the shard has, from each rank in
 * turn. It is the caller's to read until the next call for this object, which needs its
 * memory. The first call of a round starts gathers, so that from there on until it was
 * given a shard must not be written; none is started for the round after, so that shards
 * are the caller's to change when all of the order were given. Errors: those of a
 * collective; then the object can only be destroyed.
 */
WEFT_API enum weft_result weft_prefetch_next(struct weft_prefetch *prefetch,
					     const void **whole, uint32_t *shard);

/* Local. Waits for what is under way. BUSY: a failed call is not safe yet: try again. */
WEFT_API enum weft_result weft_prefetch_destroy(struct weft_prefetch *prefetch);

#ifdef __cplusplus
}
#endif

#endif
