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
 * A put of one segment, as ordered ones mostly are, need not wait for a round: a read is
 * posted together with it, of the same queue pair, and follows it there. One read is
 * behind all that is posted at a time, and behind all that was before.
 *
 * So that something gets there however often lanes end, a put is cut into chunks, of
 * which each is followed by a read before the next begins: half as long whenever one has
 * to be written again, a segment at last, twice as long with each round that is answered,
 * and as a rule longer than any put. A lane that took something with it begins with one
 * segment, behind which the read comes. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_FLUSH_H
#define WEFT_WIRE_VERBS_VERBS_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "prov/dqplb/rq.h"
#include "prov/dqplb/tx.h"
#include "util/list.h"

struct verbs_link;
struct verbs_op;

/* Places of a lane's send queue that are for them: those of rounds, and those that are
 * posted together with what they follow. */
#define VERBS_FLUSH_ROUND  4u
#define VERBS_FLUSH_WITH   2u
#define VERBS_FLUSH_SENDS  (VERBS_FLUSH_ROUND + VERBS_FLUSH_WITH)
#define VERBS_FLUSH_COOKIE UINT64_MAX /* not one of dqplb's */
#define VERBS_FLUSH_IDLE   (UINT64_MAX - 1)
#define VERBS_FLUSH_BEHIND (UINT64_MAX - 4)

struct verbs_flush {
	struct list waiting; /* puts whose writes are acknowledged */
	struct list behind;  /* those that the round is for */
	uint64_t unposted;   /* lanes whose read has to be posted */
	uint64_t dying;	     /* lanes that ended, and perhaps not yet at the peer */
	uint64_t left;	     /* lanes whose read isn't answered, posted or not */
	uint64_t rounds;
	uint64_t with; /* reads that were posted together with puts */
	/* Of each lane, how far its queue pair's send queue was answered by these. */
	struct {
		uint32_t incarnation;
		uint32_t at;
	} seen[DQPLB_LANES_MAX];
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
/* The read that goes with what is posted on the lane, as far as there is a place for it:
 * fills the request and its one entry, which it points to. Counts when it was posted. */
bool verbs_flush_with(struct verbs_link *link, uint32_t lane, struct ibv_send_wr *wr,
		      struct ibv_sge *sge);
/* Its completion: at that position of the queue pair. */
void verbs_flush_followed(struct verbs_link *link, uint32_t lane, uint32_t at);
/* Whether all that is not known to be in memory of the put was followed by one. */
bool verbs_flush_saw(const struct verbs_link *link, const struct verbs_op *op);
/* A lane is new. While chunks are short a few reads that nobody waits for come first, on
 * each another number: where lanes end after every so many requests, the read that counts
 * is not always the one that ends it. */
void verbs_flush_lane_up(struct verbs_link *link, uint32_t lane);
/* The lane ends: no read can follow what was written on it. */
void verbs_flush_lane_gone(struct verbs_link *link, uint32_t lane);

#endif
