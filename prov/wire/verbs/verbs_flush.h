/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts that are done when their bytes are in the peer's memory (rule E3). That a device
 * acknowledged a write says that the peer's device has it. So a read follows the writes
 * on each lane that they used, of a word in the same memory domain that is registered
 * without relaxed ordering: the head of the peer's key table. What the read's answer
 * comes behind is in memory.
 *
 * Reads go in rounds: one for all puts that wait when a round begins, of each of their
 * lanes one. Where a lane is gone that a put used, nothing can follow on it: what of the
 * put isn't known to be there is written again, once the peer said that nothing of that
 * lane can land any more.
 *
 * So that something gets there however often lanes end, a put is cut into chunks, of
 * which each is followed by a read before the next begins: half as long whenever one has
 * to be written again, a segment at last, twice as long with each round that is answered,
 * and as a rule longer than any put. A lane that took something with it begins with one
 * segment, behind which the read comes. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_FLUSH_H
#define WEFT_WIRE_VERBS_VERBS_FLUSH_H

#include <stdint.h>

#include "util/list.h"

struct verbs_link;
struct verbs_op;

#define VERBS_FLUSH_SENDS  4u /* places of a lane's send queue that are for them */
#define VERBS_FLUSH_COOKIE UINT64_MAX /* not one of dqplb's */
#define VERBS_FLUSH_IDLE   (UINT64_MAX - 1)

struct verbs_flush {
	struct list waiting; /* puts whose writes are acknowledged */
	struct list behind;  /* those that the round is for */
	uint64_t unposted;   /* lanes whose read has to be posted */
	uint64_t dying;	     /* lanes that ended, and perhaps not yet at the peer */
	uint64_t left;	     /* lanes whose read isn't answered, posted or not */
	uint64_t rounds;
	uint64_t anew;	/* puts, or parts of them, that were written again */
	uint64_t chunk; /* bytes of a put that are written before a read follows */
	uint32_t least; /* of a chunk: a segment */
};

/* A put of any length is one chunk until something is lost. */
#define VERBS_FLUSH_CHUNK_MAX (UINT64_C(1) << 62)

void verbs_flush_init(struct verbs_link *link);
/* All writes of the put are acknowledged; it is on none of the link's lists. */
void verbs_flush_add(struct verbs_link *link, struct verbs_op *op);
/* Posts what can be, begins the next round. Returns how many puts were done. */
int verbs_flush_run(struct verbs_link *link);
/* A read's completion. */
void verbs_flush_answered(struct verbs_link *link, uint32_t lane);
/* A lane is new. While chunks are short a few reads that nobody waits for come first, on
 * each another number: where lanes end after every so many requests, the read that counts
 * is not always the one that ends it. */
void verbs_flush_lane_up(struct verbs_link *link, uint32_t lane);
/* The lane ends: no read can follow what was written on it. */
void verbs_flush_lane_gone(struct verbs_link *link, uint32_t lane);

#endif
