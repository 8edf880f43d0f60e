/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control channel that died is made anew through the door, on another rail where there
 * is one, while lanes go on (rule C5): the dialler of the link calls again with the same
 * session and a higher round; both say what they heard, and what the other hasn't heard
 * is sent again (rule B1). An answerer whose end died asks for that in a word at the
 * door. While the doors reach each other and anything gets through in between, this may
 * happen any number of times, and takes as long as the peer makes no call; else the link
 * ends after FI_WEFT_CONNECT_TIMEOUT.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_RESUME_H
#define WEFT_WIRE_VERBS_VERBS_RESUME_H

#include "prov/wire/verbs/verbs_link.h"

/* Why a link ended whose channel could not be made anew. */
#define VERBS_WHY_RAILS "no rail reaches it any more"
/* Or by the peer, which says nothing when it dies and when it gives up. */
#define VERBS_WHY_CUT "it cut its connection"

/* The control channel is of no use any more. Endpoint lock, as those below. */
void verbs_resume_start(struct verbs_link *link);
/* What is due; verbs_link_wake says when the next is. */
void verbs_resume_run(struct verbs_link *link, uint64_t now);
/* What the door said meanwhile. */
int verbs_resume_news(struct verbs_link *link);
/* Something got through though there is no channel: the peer may only be asleep. */
void verbs_resume_passed(struct verbs_link *link);
/* The peer was heard on the new channel. */
void verbs_resume_heard(struct verbs_link *link);

/* Door events. Mutex. A call of the link's session with a higher round; false: it is no
 * link of ours. */
bool verbs_resume_hello(struct verbs_ep *ep, struct verbs_call *call,
			const struct verbs_card *card);
/* A word: the answerer's end of the channel of that round died. */
void verbs_resume_asked(struct verbs_link *link, uint32_t round);
/* An event of the new call. */
void verbs_resume_event(struct verbs_link *link, const struct verbs_door_event *ev);
/* The link is over: gives calls up, with that error. */
void verbs_resume_drop(struct verbs_link *link, int err);

#endif
