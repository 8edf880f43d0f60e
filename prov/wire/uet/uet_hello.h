/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two ends of a link say to each other before anything else may be said, and
 * when it ends: messages to resource index 0, one packet each. Big-endian fields, one
 * validator.
 *
 *   HELLO	the dialler: who it is, what it can take, its other addresses; the
 *		first packet of a context
 *   ANSWER	whoever was dialled: what both can take, its other addresses
 *   READY	the dialler has the answer: from here on the link is up at both ends
 *   REFUSE	instead of ANSWER; `err` says why
 *   PING	whoever says it is there, and wants to know whether the other is; or how
 *		many messages it has handed up (the request's match bits, as with all)
 *   BYE	the link is over
 */
#ifndef WEFT_WIRE_UET_UET_HELLO_H
#define WEFT_WIRE_UET_UET_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/be.h"

#define UET_HELLO_MAGIC	  0x57465545u /* "WFUE" */
#define UET_HELLO_VERSION 4
/* Addresses that the ends of a link may name besides the one they dial from, or are
 * dialled at. */
#define UET_HELLO_RAILS 7u

enum uet_said {
	UET_SAID_HELLO = 1,
	UET_SAID_ANSWER,
	UET_SAID_READY,
	UET_SAID_REFUSE,
	UET_SAID_PING,
	UET_SAID_BYE,
	UET_SAID_KINDS
};

struct uet_hello_bytes {
	struct be32 magic;
	uint8_t version;
	uint8_t kind;
	struct be16 err;	 /* REFUSE; HELLO, ANSWER: 0 or UET_HELLO_BARE */
	struct be64 incarnation; /* of who says it */
	struct be64 to;		 /* of whom it is said to; 0: not known */
	struct be32 part;	 /* payload of one packet */
	struct be32 packet;	 /* longest packet of the layers above */
};

_Static_assert(sizeof(struct uet_hello_bytes) == 32, "uet_hello_bytes");

/* One of its sender's other addresses: as many follow as the length has room for. IPv4 as
 * ::ffff:a.b.c.d. */
struct uet_host_bytes {
	uint8_t bytes[16];
};

#define UET_HELLO_MAX \
	(sizeof(struct uet_hello_bytes) + UET_HELLO_RAILS * sizeof(struct uet_host_bytes))

/* Its sender takes datagrams without checksums: they stay within its host (uet_sums.h).
 */
#define UET_HELLO_BARE 1u

/* Smallest and largest that can be agreed on. Four of the largest, with headers, are what
 * a kernel takes as one. */
#define UET_PART_MIN 512u
#define UET_PART_MAX 16064u

struct uet_hello {
	uint8_t kind;	      /* enum uet_said */
	uint16_t err;	      /* REFUSE: a positive fi_errno */
	bool bare;	      /* HELLO, ANSWER: no checksums are needed; else false */
	uint64_t incarnation; /* never 0 */
	uint64_t to;	      /* HELLO: 0; else never 0 */
	uint32_t part;	      /* HELLO, ANSWER: in range; else 0 */
	uint32_t packet;      /* HELLO, ANSWER: at least 4096; else 0 */
	uint32_t rails;	      /* HELLO, ANSWER: at most UET_HELLO_RAILS; else 0 */
	/* Each of one host, all of one family, no two alike. */
	struct uet_host_bytes rail[UET_HELLO_RAILS];
};

/* Returns how many bytes, at most UET_HELLO_MAX. */
size_t uet_hello_put(void *to, const struct uet_hello *hello);
/* False: nothing that uet_hello_put writes. */
bool uet_hello_parse(const void *bytes, size_t len, struct uet_hello *hello);

#endif
