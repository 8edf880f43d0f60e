/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A posted receive, from a pool of rx_attr.size at first, until a message takes it: then
 * a claim says where the message goes, and the slot is free again. A multi-receive buffer
 * stays until it is used up and all its messages are complete.
 */
#ifndef WEFT_PROTO_RX_OP_H
#define WEFT_PROTO_RX_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "prov/proto/engine.h"
#include "prov/proto/match.h"
#include "prov/proto/pool.h"
#include "prov/proto/receiver.h"

enum rx_state {
	RX_FREE,
	RX_OPEN,     /* filled in, looks through unexpected messages, if there are any */
	RX_POSTED,   /* in the match queue */
	RX_DRAINING, /* multi-receive: used up or cancelled, messages still arrive */
	RX_STATES
};

/* What a frequent message touches is in the first two cache lines. */
struct rx {
	struct pool_obj obj;
	struct match_recv m; /* m.source holds a reference */
	enum rx_state state;
	uint32_t flags; /* PROTO_* */
	void *context;
	/* One piece for one message, whose success is reported: its length. Else
	 * negative. */
	int64_t usual;
	uint32_t count;
	uint32_t pending; /* multi-receive: claims that aren't complete */
	struct iovec iov[PROTO_IOV_MAX];
	size_t used;	 /* multi-receive */
	size_t min_free; /* multi-receive: used up when less is left */
	bool cancelled;
};
_Static_assert(offsetof(struct rx, iov[1]) <= 128, "two cache lines");

/* In rx_claim.flags: somebody else's, who hears when it is done with (matcher.c). */
#define RX_FOREIGN 0x20000u

/* Where one message goes. */
struct rx_claim {
	struct rx *multi; /* the multi-receive buffer it is in, or NULL */
	void *entry;	  /* RX_FOREIGN: the owner's name for it */
	void *context;
	void *buf; /* multi-receive: where the message starts, else NULL */
	size_t room;
	uint32_t flags;
	uint32_t count;
	struct iovec iov[PROTO_IOV_MAX];
};

/* What a finished message says about itself. */
struct rx_result {
	uint64_t len; /* of the message, as sent */
	uint64_t tag;
	uint64_t data;
	uint32_t flags; /* PROTO_TAGGED, PROTO_DATA */
	uint64_t source;
	int err; /* 0 or -fi_errno */
};

/* Makes the pool, with `size` receives. -FI_ENOMEM. */
int rx_pool_init(struct receiver *rcv, uint32_t size);
/* Of a receive that is posted with those: whether it reports by itself. */
static inline uint32_t rx_flags(const struct receiver *rcv, uint32_t flags)
{
	return rcv->selective && !(flags & PROTO_ASKED) ? flags & ~PROTO_REPORT : flags;
}

/* Bytes of all pieces. */
size_t rx_len(const struct rx *rx);
/* Takes rx (open or posted) for a message of len bytes. */
void rx_take(struct receiver *rcv, struct rx *rx, uint64_t len, struct rx_claim *claim);
/* Completes: success, truncation (the message is longer than the room) or error. */
void rx_finish(struct proto_ep *ep, const struct rx_claim *claim,
	       const struct rx_result *r);
/* Frees a slot that is in no queue. */
void rx_release(struct receiver *rcv, struct rx *rx);
/* It has one message less under way, which nobody hears of. */
void rx_abandon(struct receiver *rcv, const struct rx_claim *claim);
/* `from` turns out to be another name of `to`: receives that were posted for one are for
 * the other from now on. */
void rx_retarget(struct receiver *rcv, struct sender *from, struct sender *to);
const char *rx_state_name(enum rx_state s);

#define RX_FROM(state) (1u << (state))
/* From which states each may be entered. */
static const uint32_t rx_state_from[RX_STATES] = {
	[RX_FREE] = RX_FROM(RX_OPEN) | RX_FROM(RX_POSTED) | RX_FROM(RX_DRAINING),
	[RX_OPEN] = RX_FROM(RX_FREE),
	[RX_POSTED] = RX_FROM(RX_FREE) | RX_FROM(RX_OPEN),
	[RX_DRAINING] = RX_FROM(RX_OPEN) | RX_FROM(RX_POSTED),
};

/* The only writer of rx->state. */
static inline void rx_set_state(struct rx *rx, enum rx_state to)
{
	assert(rx_state_from[to] >> rx->state & 1);
	rx->state = to;
}

#endif
