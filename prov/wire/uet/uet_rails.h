/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails: the addresses of this host that an endpoint sends from and receives at, and the
 * ways between them and a peer's. Each path belongs to one rail, in turn; which of the
 * peer's addresses it leads to is chosen when the link is there, and a way that nothing
 * has come through yet carries one packet only, until it has.
 */
#ifndef WEFT_WIRE_UET_UET_RAILS_H
#define WEFT_WIRE_UET_UET_RAILS_H

#include "prov/wire/uet/uet_hello.h"
#include "prov/wire/uet/uet_pds.h"
#include "prov/wire/uet/uet_sock.h"

struct uet_rails {
	unsigned count; /* 0: one, as the door's address has it */
	struct uet_rail rail[UET_SOCK_RAILS];
	uint8_t bits[UET_SOCK_RAILS]; /* of its address that its network has in common */
};

/*
 * Those that `text` (FI_WEFT_UET_RAILS; NULL: none) names, for an endpoint at that
 * address, whose own is the first; `any`: at all addresses. None where its address isn't
 * among them. -FI_EINVAL, -FI_ENODEV, with the reason in `why`.
 */
int uet_rails_find(const char *text, const struct wire_addr *door, bool any,
		   struct uet_rails *rails, char why[160]);

/* The first rail's host is the endpoint's. */
void uet_rails_name(const struct uet_rails *rails, struct wire_addr *addr);

struct wire_ep;
struct wire_link;

struct uet_ways {
	uint32_t paths;
	uint32_t used; /* a bit for each path that leads anywhere */
	struct wire_addr to[UET_SOCK_PATHS];
	uint8_t host[UET_SOCK_PATHS]; /* which of the peer's addresses, 0: the link's */
};

/* This endpoint's other addresses, for its peers. */
void uet_ways_say(const struct wire_ep *ep, struct uet_hello *hello);
/* A peer's, for its context. */
void uet_ways_hear(struct wire_link *link, const struct uet_hello *hello);
/* The link is up: its paths get their ways. Where there is one it stays as it is. */
void uet_ways_open(struct wire_link *link, uint64_t now);
/* Where a packet leaves from: a path; link: NULL if there is none. */
uint8_t uet_ways_path(const struct wire_ep *ep, const struct wire_link *link,
		      const struct uet_out *out);
/* Whether an address is one of the peer's; its port isn't looked at unless asked. */
bool uet_ways_lead_to(const struct wire_link *link, const struct wire_addr *to,
		      bool port);

#endif
