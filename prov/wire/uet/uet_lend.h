/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a link's peer may read for as long as it is lent, straight out of where it
 * is. A read of it is one request, whatever its length; the answers are cut when there is
 * room for them. */
#ifndef WEFT_WIRE_UET_UET_LEND_H
#define WEFT_WIRE_UET_UET_LEND_H

#include "prov/wire/uet/uet_link.h"

/* What an endpoint has lent. */
struct uet_loans;

int uet_loans_open(struct uet_loans **loans);
void uet_loans_close(struct uet_loans *loans);
/* The link is freed: nobody can use its names any more. */
void uet_loans_end(struct wire_link *link);

/* The wire's table. */
uint64_t uet_lend(struct wire_link *link, const void *start, size_t len);
void uet_unlend(struct wire_ep *ep, uint64_t name);

/* A read by the peer. */
enum uet_verdict uet_give_request(struct wire_link *link, const struct uet_pkt *pkt,
				  bool room, struct uet_reply *reply);
/* Cuts answers into the context; false: it has no more room. */
bool uet_give_pump(struct wire_link *link, uint64_t now);
/* A packet of it is with the peer, or never will be. */
void uet_give_done(struct uet_give *give);

#endif
