/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching, pure: posted receives against unexpected messages, for one kind of
 * message (FI_MSG and FI_TAGGED have a queue each). Owns no operation: both sides embed a
 * node. A source is an opaque pointer; NULL in a receive means any.
 *
 * Order: a message takes the earliest posted receive that fits, a receive takes the
 * earliest message that fits. Receives without ignored bits are found through a hash on
 * (source, tag); those with ignored bits, and messages, one by one in their order while
 * they are few, else through an index (match_index.h). So what a match costs doesn't grow
 * with the number of entries.
 */
#ifndef WEFT_PROTO_MATCH_H
#define WEFT_PROTO_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/* How many kinds of receives are found in an index of many messages. */
#define MATCH_VIEWS 4

/* Embedded in a posted receive. */
struct match_recv {
	struct list node; /* bucket, or match_queue.wild in posting order */
	const void *source;
	uint64_t tag;
	uint64_t ignore;    /* 1 bits are not compared */
	uint64_t stamp;	    /* posting order */
	struct list by_tag; /* with ignored bits, while there are many: in the index */
};

/* Embedded in an unexpected message. */
struct match_msg {
	struct list all; /* match_queue.msgs, arrival order */
	const void *source;
	uint64_t tag;
	struct list by_view[MATCH_VIEWS]; /* in each that is in use */
};

struct match_index;

struct match_queue {
	struct list *recvs; /* buckets */
	/* Posted receives that the first look doesn't find. */
	union {
		struct {
			uint32_t directed_count; /* exact tag and source */
			uint32_t wild_count;	 /* with ignored bits */
		};
		uint64_t special; /* not 0: there are some */
	};
	uint32_t mask;
	uint32_t msg_count;
	struct list wild;
	struct list msgs;
	uint64_t stamp;
	uint32_t wild_few; /* up to so many are not in the index; 0: it is in use */
	uint32_t views;	   /* those in use, a bit each */
	struct match_index *index;
	uint64_t unused[6]; /* a power of two, for two queues in a row */
};
_Static_assert(sizeof(struct match_queue) == 128, "two cache lines");

/* The upper bytes of the product come first: all bits of the key reach them. */
static inline uint32_t match_hash_of(uint64_t key, uint32_t mask)
{
	return (uint32_t)__builtin_bswap64(key * 0x9e3779b97f4a7c15ULL) & mask;
}

static inline uint32_t match_hash(const struct match_queue *q, const void *source,
				  uint64_t tag)
{
	return match_hash_of(tag ^ ((uint64_t)(uintptr_t)source >> 4), q->mask);
}

/* size: expected number of posted receives. -FI_ENOMEM. */
int match_queue_init(struct match_queue *q, uint32_t size);
void match_queue_fini(struct match_queue *q);
/* More receives are to be expected. Without memory for it matching gets slower. */
void match_queue_reserve(struct match_queue *q, uint32_t size);

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
	if (__builtin_expect(q->special || bucket->next == bucket || r->tag != tag, 0)) {
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
