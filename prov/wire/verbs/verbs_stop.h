/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lanes that are stopped at the peer's door. Of a lane that died the peer reports what
 * arrived, which takes its calls; but plain puts need no more than to know that nothing
 * of them is written there any more (rule C4). So an end that is through with its queue
 * pair of a lane, and has no report of it, asks for that over the connection that the
 * link has with the peer's door: there the helper thread puts the other queue pair into
 * the error state and says so. What the lane brought the target finds out as ever, when
 * it makes a call.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_STOP_H
#define WEFT_WIRE_VERBS_VERBS_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct verbs_call;
struct verbs_door_event;
struct verbs_link;
struct verbs_msg;

/* The lane is over here: the peer is asked to stop it, where it has not reported it yet
 * and understands that. Endpoint lock, like the next three. */
void verbs_stop_want(struct verbs_link *link, uint32_t lane);
/* The connection is another one: what was asked on the one before may be lost. */
void verbs_stop_again(struct verbs_link *link);
/* Asks. Returns when that is to be tried again; UINT64_MAX: it was asked. */
uint64_t verbs_stop_run(struct verbs_link *link, uint64_t now);
/* What the peer said since: true: lanes were stopped. */
bool verbs_stop_news(struct verbs_link *link);
/* A word about lanes to the peer: 0, or as verbs_call_say. Mutex. */
int verbs_stop_say(struct verbs_call *call, const struct verbs_msg *m);
/* A word of the peer's, this or another. Mutex. */
void verbs_stop_word(struct verbs_link *link, const struct verbs_door_event *ev);

#endif
