/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress of an endpoint: completions, news, asynchronous events, sleeping. Endpoint
 * lock. */
#ifndef WEFT_WIRE_VERBS_VERBS_POLL_H
#define WEFT_WIRE_VERBS_VERBS_POLL_H

#include <stdbool.h>

#include "prov/wire/verbs/verbs_ep.h"

/* For the endpoint's end: goes on with goodbyes, without upcalls; `now`: no longer.
 * Returns how many things happened. */
int verbs_poll_closing(struct verbs_ep *ep, bool now);
/* Takes every completion that is there, with upcalls: links may end. Returns how many.
 * Not from upcalls. */
int verbs_poll_now(struct verbs_ep *ep);
/* Asynchronous events are looked for at the next turn. */
void verbs_poll_async(struct verbs_ep *ep);

#endif
