/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another provider's part, for the tests of FI_PEER: it has a completion queue and the
 * receives, matches them with the messages that the provider under test brings, and
 * counts what it is called for. Plain lists, one thread.
 */
#ifndef WEFT_FABTESTS_OWN_PEER_OWNER_H
#define WEFT_FABTESTS_OWN_PEER_OWNER_H

#include "fabtests/own/util.h"

#include <rdma/providers/fi_peer.h>

#include "util/list.h"

#define OWNER_DONE_MAX 128

struct owner_entry {
	struct fi_peer_rx_entry e; /* first */
	struct list node;
	struct iovec iov;
	uint64_t ignore;
	size_t room;		   /* multi-receive: of all of it */
	uint32_t parts;		   /* multi-receive: pieces that are under way */
	struct owner_entry *whole; /* it is a piece of that */
};

struct owner {
	struct side *s;
	struct fid_peer_cq cq;
	struct fid_peer_srx srx;
	struct fid_cq *peer_cq; /* what the provider made of them */
	struct fid_ep *peer_srx;
	struct list posted;
	struct list unexpected;
	int unexpected_count;
	int alive;	  /* entries that the provider has not given back */
	int no_memory;	  /* so many questions are answered by that */
	int refuse;	  /* so many messages are not kept */
	bool progressing; /* it may be asked now */
	int out_of_turn;  /* it was asked when it had not called for progress */
	int looked;	  /* how often senders were looked at again */
	size_t min_multi;
	struct done done[OWNER_DONE_MAX];
	int done_count, done_read;
};

/* Like node_open, with an endpoint that reports to o; s->node.cq stays NULL. known: the
 * peer is put into the address vector. */
void owner_open(struct side *s, struct owner *o, const struct want *want, bool known);
/* Everything has been given back. */
void owner_close(struct side *s, struct owner *o);

/* flags: FI_TAGGED or FI_MSG, FI_MULTI_RECV. What starting an unexpected one gave. */
int owner_recv(struct owner *o, void *buf, size_t len, fi_addr_t from, uint64_t tag,
	       uint64_t ignore, void *context, uint64_t flags);
/* Drops the first that waits. */
int owner_discard(struct owner *o);
void owner_progress(struct owner *o);
/* Until so many messages wait; dies when they don't come. */
void owner_await(struct side *s, struct owner *o, int unexpected);
struct owner_entry *owner_first(struct owner *o);
bool owner_next(struct owner *o, struct done *d, int ms);
void owner_expect(struct side *s, struct owner *o, struct done *d, uint64_t flags);

#endif
