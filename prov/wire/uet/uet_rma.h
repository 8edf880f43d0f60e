/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts and gets: writes and reads of the transport, one packet each that can be placed by
 * itself, carried out by the target's progress. */
#ifndef WEFT_WIRE_UET_UET_RMA_H
#define WEFT_WIRE_UET_UET_RMA_H

#include "prov/wire/uet/uet_link.h"

int uet_put(struct wire_link *link, const struct wire_segment *seg);
int uet_get(struct wire_link *link, const struct wire_segment *seg);

/* Cuts pending ones into the context; false: it has no more room. */
bool uet_rma_pump(struct wire_link *link, uint64_t now);
/* A packet of an operation is with the peer. */
void uet_rma_done(struct wire_link *link, struct uet_move *op, int err,
		  const struct uet_pkt *resp);
/* What the peer wants of our memory, and what it answers. */
enum uet_verdict uet_rma_request(struct wire_link *link, const struct uet_pkt *pkt,
				 bool room, struct uet_reply *reply);
/* All that is under way ends with err. */
void uet_rma_fail(struct wire_link *link, int err);

#endif
