/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two wires as one endpoint with one address: `near` for peers on this host, `far` for
 * all others (wire_ep_attr.near, .far). Each link is of one of the two, has that wire's
 * table, and reports by itself; here is only what concerns the endpoint as a whole.
 *
 * near has no use for registrations and keys (mem_add, key_add), far has neither bulk
 * slots nor joint transfers: so each of these calls has one addressee, whatever the link.
 */
#ifndef WEFT_WIRE_JOINED_H
#define WEFT_WIRE_JOINED_H

#include "prov/wire/wire.h"

extern const struct wire_ops joined_wire_ops;

/* The two endpoints inside, for those who look at one of them. */
struct wire_ep *joined_near(struct wire_ep *ep);
struct wire_ep *joined_far(struct wire_ep *ep);

#endif
