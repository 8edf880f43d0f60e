/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching, pure: posted receives against unexpected messages, for one kind of
 * message (FI_MSG and FI_TAGGED have a queue each). Owns no operation: both sides embed a
 * node. A source is an opaque pointer; NULL in a receive means any.
 *
 * Order: a message takes the earliest posted receive that fits, a receive takes the
 * earliest message that fits. Receives without ignored bits are found through a hash on
 * (source, tag) in constant time; those with ignored bits are kept in posting order and
 * compared by stamp.
 */
#ifndef WEFT_PROTO_MATCH_H
#define WEFT_PROTO_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/* Embedded in a posted receive. */
struct match_recv {
	struct list node; /* bucket or wild list */
	const void *source;
	uint64_t tag;
	uint64_t ignore; /* 1 bits are not compared */
	uint64_t stamp;	 /* posting order */
};

/* Embedded in an unexpected message. */
struct match_msg {
	struct list all;       /* match_queue.msgs, arrival order */
	struct list by_tag;    /* bucket on tag */
	struct list by_source; /* bucket on (source, tag) */
	const void *source;
	uint64_t tag;
};

struct match_queue {
	struct list *recvs;	  /* buckets */
	struct list *msgs_tag;	  /* buckets */
	struct list *msgs_source; /* buckets */
	uint32_t mask;
	uint32_t special_count;	 /* posted: the two that follow */
	uint32_t directed_count; /* posted: exact tag and source */
	uint32_t wild_count;	 /* posted: with ignored bits */
	uint32_t msg_count;
	struct list wild;
	struct list msgs;
	uint64_t stamp;
	uint64_t unused[5]; /* a power of two, for two queues in a row */
};
_Static_assert(sizeof(struct match_queue) == 128, "two cache lines");

/* A few instructions, all bits of the tag reach the bucket number. */
static inline uint32_t match_hash(const struct match_queue *q, const void *source,
				  uint64_t tag)
{
	uint64_t h = (tag ^ ((uint64_t)(uintptr_t)source >> 4)) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(h >> 32) & q->mask;
}

/* size: expected number of posted receives. -FI_ENOMEM. */
int match_queue_init(struct match_queue *q, uint32_t size);
void match_queue_fini(struct match_queue *q);

/* The receive that a message from source takes, still posted; NULL if none. */
struct match_recv *match_recv_find(struct match_queue *q, const void *source,
				   uint64_t tag);
/* source, tag and ignore are filled in by the caller. */
void match_recv_add(struct match_queue *q, struct match_recv *r);
void match_recv_remove(struct match_queue *q, struct match_recv *r);
/* The source of a posted receive turns out to be known by another pointer, not NULL. It
 * keeps its place in the order. */
void match_recv_retarget(struct match_queue *q, struct match_recv *r, const void *source);

/* The frequent cases of the three calls above: an exact tag from any source. */

/* The receive that the first look finds; NULL: look again by match_recv_find. */
static inline struct match_recv *match_recv_first(struct match_queue *q, uint64_t tag)
{
	struct list *bucket = &q->recvs[match_hash(q, NULL, tag)];
	struct match_recv *r = container_of(bucket->next, struct match_recv, node);

	/* No receive in a bucket names a source while none is counted as special. */
	if (__builtin_expect(q->special_count || bucket->next == bucket || r->tag != tag,
			     0)) {
		return NULL;
	}
	return r;
}

static inline void match_recv_add_any(struct match_queue *q, struct match_recv *r,
				      uint64_t tag)
{
	r->source = NULL;
	r->tag = tag;
	r->ignore = 0;
	r->stamp = q->stamp++;
	list_push_back(&q->recvs[match_hash(q, NULL, tag)], &r->node);
}

/* The message that this receive takes, still queued; NULL if none. */
struct match_msg *match_msg_find(struct match_queue *q, const struct match_recv *r);
/* source and tag are filled in by the caller. */
void match_msg_add(struct match_queue *q, struct match_msg *m);
void match_msg_remove(struct match_queue *q, struct match_msg *m);

#endif
