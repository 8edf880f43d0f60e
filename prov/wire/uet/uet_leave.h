/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the delivery machine has to send becomes datagrams, some at a time: each with its
 * address, path and checksum, or sealed, and handed to the kernel in pieces that it takes
 * as one. What it has no room for waits in the endpoint.
 */
#ifndef WEFT_WIRE_UET_UET_LEAVE_H
#define WEFT_WIRE_UET_UET_LEAVE_H

#include "prov/wire/uet/uet_ep.h"

/* Bytes that the kernel takes as one. */
#define UET_LEAVE_PIECE 65000

/* Memory for datagrams that are put together here. 0, -FI_ENOMEM. Closed by free(). */
int uet_leave_open(struct wire_ep *ep);
/* Sends what is due. */
void uet_leave(struct wire_ep *ep, uint64_t now);
/* What a bad network, for tests, has kept until now. */
void uet_leave_late(struct wire_ep *ep, uint64_t now);
/* That memory is given back: packets that wait for the kernel with it are forgotten. */
void uet_leave_forget(struct wire_ep *ep, const void *memory, size_t len);
/* What waits for the kernel. */
static inline bool uet_leave_waits(const struct wire_ep *ep)
{
	return ep->out_at < ep->outs;
}

#endif
