/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is looked at now and then, so that nothing waits for a word that never comes:
 *
 * - Queue pairs that say nothing. A device tells when nothing gets through, but not every
 *   one (rxe takes seven retries for retries without end), nor when its own timers fail.
 * One on which requests wait and nothing was answered for FI_WEFT_ANSWER_TIME is of no
 * use: a lane ends as with a path that failed, a control channel is made anew. Where what
 *   waits on a control channel asks for no answer, or nothing does on a link that stands
 *   still, a read is sent that does.
 * - Ports that are up. That one went is an event, which may be lost: they are asked at
 * one look in eight. (Those that are down: verbs_port.h.)
 * - Links that stand still: what they wait for goes to the log (verbs_state.h), once,
 * when nothing of what is under way ended for FI_WEFT_STALL_TIME.
 *
 * Looks are counted, not seconds: a process that was stopped for a while finds what came
 * meanwhile. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_WATCH_H
#define WEFT_WIRE_VERBS_VERBS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct verbs_ep;
struct verbs_link;

/* Of a link. */
struct verbs_watch {
	uint64_t progress; /* as it was at the last look */
	uint64_t since;	   /* and has been since then; 0: nothing was under way */
	bool said;
	bool due; /* the link is to be looked at */
};

/* A look, when one is due; links have theirs with their chores. Returns how many ports
 * went, of which no event was seen. */
int verbs_watch(struct verbs_ep *ep, uint64_t now);
void verbs_watch_link(struct verbs_link *link);
/* When the next is due; UINT64_MAX: nothing waits for anything. */
uint64_t verbs_watch_due(struct verbs_ep *ep);

#endif
