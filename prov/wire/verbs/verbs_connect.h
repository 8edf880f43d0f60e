/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to a link: dialling, answering, hearing the answer. The control queue
 * pair and a lane of each rail come up with the two cards; the dialler makes its queue
 * pairs, with their receives, before it says their names, and the answerer makes and
 * connects its own before it answers (rules C7, C8).
 */
#ifndef WEFT_WIRE_VERBS_VERBS_CONNECT_H
#define WEFT_WIRE_VERBS_VERBS_CONNECT_H

#include "prov/wire/verbs/verbs_link.h"

/* What all cards of the endpoint say. */
void verbs_card_fill(struct verbs_ep *ep);
/* The link's card, with its control queue pair and (lanes) the lanes that it has. */
void verbs_card_make(const struct verbs_link *link, struct verbs_card *card, bool lanes);

#endif
