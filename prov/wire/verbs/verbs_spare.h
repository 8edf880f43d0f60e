/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane that is made at the peer's door, for puts and gets that want nothing of a target
 * but its memory. Ordinary lanes, and the control channel, are made anew by what both
 * applications call; where the target makes no call and all lanes of the link have ended,
 * or the control channel has, an end asks over the connection that the link has with the
 * peer's door: there the helper thread makes a queue pair that nothing is ever posted on
 * (rule D6). At this end it is the lane behind the last, which takes no numbers, reads
 * the peer's key table while there is no control channel, and shows by a read every half
 * second that a rail lives, so that the link waits for a target that sleeps. When
 * ordinary lanes and the channel are there again it ends.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_SPARE_H
#define WEFT_WIRE_VERBS_VERBS_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_card.h"
#include "prov/wire/verbs/verbs_msg.h"

struct verbs_call;
struct verbs_ep;
struct verbs_link;
struct verbs_qp;

/* Cookies of its own reads; dqplb has none of them, nor verbs_flush.h. */
#define VERBS_SPARE_KEYS  (UINT64_MAX - 2)
#define VERBS_SPARE_PROBE (UINT64_MAX - 3)

struct verbs_spare {
	uint64_t since;	 /* there is no other way; 0: there is */
	uint64_t probe;	 /* the next read that shows that it lives; */
	bool probing;	 /* it is under way */
	uint32_t rail;	 /* that is tried next */
	uint64_t opened; /* so many */
	/* Mutex. */
	struct verbs_card_rail peer[VERBS_CARD_RAILS]; /* as the first cards had it */
	uint8_t peers;
	bool closed;		/* the link is over: none is made any more */
	struct verbs_qp *guest; /* our end of the peer's */
	bool answered;		/* what it said is in: */
	struct verbs_msg answer;
};

/* Both cards are known. Mutex. */
void verbs_spare_init(struct verbs_link *link);
/* The link is over: gives the guest up. Mutex. */
void verbs_spare_cut(struct verbs_link *link);

/* Which lane that is; one that isn't there: link->lanes is all that there may be.
 * Endpoint lock, like the next. */
uint32_t verbs_spare_lane(const struct verbs_link *link);
/* Asks for one, or ends it. Returns when that is to be looked at again. */
uint64_t verbs_spare_run(struct verbs_link *link, uint64_t now);
/* What the peer said since: true: something. */
bool verbs_spare_news(struct verbs_link *link);
/* The queue pair of the lane, while it is up and takes `room` requests more. */
struct verbs_qp *verbs_spare_qp(const struct verbs_link *link, uint32_t room);
/* Reads the peer's memory into its own; `at`: 0 or 1. False: not now. */
bool verbs_spare_read(struct verbs_link *link, unsigned at, uint64_t addr, uint32_t rkey,
		      size_t len, bool signal);
const void *verbs_spare_read_at(const struct verbs_link *link, unsigned at);
/* A read's completion. */
void verbs_spare_done(struct verbs_link *link, uint64_t cookie);
/* The lane ends. */
void verbs_spare_gone(struct verbs_link *link);

/* Words of the peer's: that it wants one, that one is there, that its own is to end (the
 * guest is gone on return, if it was that one). Mutex. */
void verbs_spare_asked(struct verbs_link *link, struct verbs_call *call,
		       const struct verbs_msg *m);
void verbs_spare_answered(struct verbs_link *link, const struct verbs_msg *m);
void verbs_spare_stop(struct verbs_link *link, uint32_t incarnation);

#endif
