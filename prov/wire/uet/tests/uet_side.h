/* SPDX-License-Identifier: BSD-2-Clause */
/* Two endpoints of the wire in one process, which talk over loopback through the contract
 * alone. */
#ifndef WEFT_WIRE_UET_TESTS_UET_SIDE_H
#define WEFT_WIRE_UET_TESTS_UET_SIDE_H

#include "prov/mem/params.h"
#include "prov/wire/uet/uet.h"
#include "prov/wire/uet/uet_link.h"
#include "util/tap.h"

#define WAIT_NS (UINT64_C(60) * 1000000000)
#define MEMORY	((size_t)100000)

struct side {
	struct mem_keytab *keys;
	struct wire_ep *ep;
	struct wire_link *link; /* the last that came up, while it is */
	unsigned ups, downs, packets, segments;
	unsigned bad; /* packets and segments that were wrong */
	int down_err;
	uint64_t key;
	uint8_t memory[MEMORY];
};

/* What the environment would say; NULL: not set. */
void set_keys(const char *key, const char *auth_key);
/* As ep_open; the port may be 0. */
int side_try(struct side *s, const char *key, const char *host, uint16_t port, bool any);
/* On 127.0.0.1. */
void side_open(struct side *s, const char *key);
void side_close(struct side *s);
/* From now on it sends over that one (uet_shim.h); NULL: over a good one. */
void side_network(struct side *s, const char *text);
/* Datagrams that it took for nothing. */
uint64_t side_garbled(struct side *s);
struct uet_seal_stats side_seals(struct side *s);

/* Progress of both; a moment without anything is left to others. */
void both_turn(struct side *a, struct side *b);
/* Until *count is at least `want`; false: it never is. */
bool both_until(struct side *a, struct side *b, const unsigned *count, unsigned want);
bool both_dial(struct side *a, struct side *b, const struct wire_addr *to);
/* `count` packets from a to b, and bytes there and back: all of it right. */
bool both_talk(struct side *a, struct side *b, unsigned count);

#endif
