/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts that are small enough to travel in their work request, to one piece of memory by a
 * key that is known, while nothing waits before them: the operation and its transfer are
 * not made, the link's turn after polling isn't needed. The request's place in its send
 * queue names what there is of it. Before anything but its end happens to one, or to the
 * lane that it is on, it is kept: it becomes what verbs_put would have made, and from
 * there on nothing of it is different. So such a name is found only in send queues of
 * lanes that are up. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_QUICK_H
#define WEFT_WIRE_VERBS_VERBS_QUICK_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/wire.h"

struct verbs_op;
struct verbs_rkey;

/* Where the last one of a link went. */
struct verbs_quick {
	uint64_t key;
	uint64_t first; /* as the caller says addresses */
	uint64_t len;	/* 0: ask for the key */
	uint64_t delta; /* from there to the peer's */
	struct verbs_rkey *rkey;
};

/* The cookies of such places: neither dqplb's nor those of verbs_flush.h. */
#define VERBS_QUICK_COOKIE (UINT64_C(1) << 62)

static inline bool verbs_quick_is(uint64_t cookie)
{
	return cookie >> 62 == 1;
}

static inline struct verbs_op *verbs_quick_op(uint64_t cookie)
{
	return (struct verbs_op *)(uintptr_t)(cookie & ~VERBS_QUICK_COOKIE);
}

/* What is the same in all requests of an endpoint. */
void verbs_quick_init(struct verbs_ep *ep);
/* The next one looks for its key, and whether the link takes any. */
void verbs_quick_stop(struct verbs_link *link);
/* Those of a lane's send queue are kept. */
void verbs_quick_keep(struct verbs_link *link, struct verbs_qp *qp);

/* Wire function. */
bool verbs_put_soon(struct wire_link *link, uint64_t key, uint64_t addr, const void *from,
		    size_t len, void *cookie);

#endif
