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
	uint32_t any_count;	 /* posted: exact tag, any source */
	uint32_t directed_count; /* posted: exact tag and source */
	uint32_t wild_count;	 /* posted: with ignored bits */
	uint32_t msg_count;
	struct list wild;
	struct list msgs;
	uint64_t stamp;
};

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

/* The message that this receive takes, still queued; NULL if none. */
struct match_msg *match_msg_find(struct match_queue *q, const struct match_recv *r);
/* source and tag are filled in by the caller. */
void match_msg_add(struct match_queue *q, struct match_msg *m);
void match_msg_remove(struct match_queue *q, struct match_msg *m);

#endif
