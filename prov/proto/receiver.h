/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an engine receives through: posted receives against messages that nobody waits for
 * yet. Each engine has one of its own, unless it was given one that it shares with others
 * (a shared receive context); nothing else of an engine is shared. What a message needs
 * beyond its match (payload, credit, who is told when it is done) stays with the engine
 * that it came to.
 *
 * The straight way of small messages (eager.c, small.h) looks into the queues itself. All
 * else asks three questions only, receiver_take, receiver_keep and receiver_forget, so
 * that whoever matches somewhere else has to answer these, with queues that stay empty.
 */
#ifndef WEFT_PROTO_RECEIVER_H
#define WEFT_PROTO_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/proto/match.h"
#include "prov/proto/pool.h"
#include "prov/proto/rx_index.h"
#include "prov/proto/sender.h"
#include "util/list.h"

struct arrival;
struct proto_ep;
struct proto_peer;
struct rx_claim;

struct receiver {
	struct match_queue match[2]; /* by PROTO_TAGGED; source: struct sender */
	struct pool rx;		     /* struct rx */
	uint32_t rx_max;	     /* of them at most */
	size_t min_multi_recv;
	struct sender_table senders;
	struct list engines; /* proto_ep.receives: those that complete something */
	/* Somebody else has the receives (matcher.c), and matches; NULL: nobody. */
	const struct proto_matcher_ops *ops;
	void *arg;
	void *unmatched;     /* what the last message would be kept by; NULL: nothing */
	struct list unasked; /* struct arrival.m.all: there was no memory for it */
	bool shared;
	bool selective; /* shared: some engine's owner wants to hear of some only */
	struct rx_index by_context;
};

/* With room for `size` receives, and for max when they are posted. -FI_ENOMEM; then it is
 * as if nothing had been done. */
int receiver_init(struct receiver *rcv, uint32_t size, uint32_t max);
void receiver_fini(struct receiver *rcv);

/* The engine receives through ep->rcv from now on; and no more, but for what has a
 * receive already. */
void receiver_join(struct proto_ep *ep);
void receiver_leave(struct proto_ep *ep);
/* The engine's wire is closed: nothing of it will complete any more. What it held of
 * buffers that others receive into as well, they hear of. */
void receiver_abandon(struct proto_ep *ep);

/* The message takes the first receive that fits, which then is claimed. False: none. */
bool receiver_take(struct proto_ep *ep, const struct proto_peer *pp, uint32_t tagged,
		   uint64_t tag, uint64_t len, struct rx_claim *claim);
/* It waits for a receive, in the order of the calls. */
void receiver_keep(struct arrival *a);
/* It doesn't wait any more, whoever it is that takes it. */
void receiver_forget(struct arrival *a);

#endif
