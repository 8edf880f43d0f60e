/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at messages that have no receive yet: peek, claim, discard. A claimed message
 * has left the match queue, so that no receive finds it; its arrival's id names it.
 * Announced messages are found by their header, and say how long they are.
 */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"

void arrival_describe(const struct arrival *a, struct proto_found *found)
{
	*found = (struct proto_found){.len = a->len,
				      .tag = a->tag,
				      .data = a->data,
				      .source = a->peer->source,
				      .flags = a->flags & (PROTO_TAGGED | PROTO_DATA),
				      .arg = a->ep->arg};
}

static void discard(struct proto_ep *ep, struct arrival *a)
{
	if (a->announced) {
		rndv_discard(ep, a);
	} else {
		eager_discard(ep, a);
	}
}

int receiver_peek(struct receiver *rcv, const struct proto_recv *r, enum proto_peek what,
		  struct proto_found *found)
{
	struct match_queue *q = &rcv->match[r->flags & PROTO_TAGGED];
	const struct match_recv like = {
		.source = r->source ? sender_ident(r->source->sender) : NULL,
		.tag = r->tag,
		.ignore = r->ignore};
	struct match_msg *m = match_msg_find(q, &like);
	struct arrival *a;

	if (!m) {
		return -FI_ENOMSG;
	}
	a = container_of(m, struct arrival, m);
	arrival_describe(a, found);
	if (what == PROTO_PEEK_LOOK) {
		return 0;
	}
	receiver_forget(a);
	if (what == PROTO_PEEK_DISCARD) {
		discard(a->ep, a);
		return 0;
	}
	/* Its sender may go: what became of it is found out when it is received. */
	list_remove(&a->node);
	arrival_set_state(a, ARRIVAL_CLAIMED);
	found->id = pool_id(a);
	return 0;
}

int proto_peek(struct proto_ep *ep, const struct proto_recv *r, enum proto_peek what,
	       struct proto_found *found)
{
	return receiver_peek(ep->rcv, r, what, found);
}

static struct arrival *claimed_find(struct proto_ep *ep, uint64_t id)
{
	struct arrival *a = pool_find(&ep->arrivals, id);

	return a && a->state == ARRIVAL_CLAIMED ? a : NULL;
}

int proto_recv_claimed(struct proto_ep *ep, const struct proto_recv *r, uint64_t id)
{
	struct arrival *a = claimed_find(ep, id);
	struct rx_claim *c;

	if (!a) {
		return -FI_EINVAL;
	}
	c = &a->claim;
	c->multi = NULL;
	c->context = r->context;
	c->buf = NULL;
	c->flags = rx_flags(ep->rcv, r->flags);
	c->room = 0;
	c->count = (uint32_t)r->count;
	for (size_t i = 0; i < r->count; i++) {
		c->iov[i] = r->iov[i];
		c->room += r->iov[i].iov_len;
	}
	if (a->announced) {
		rndv_start(ep, a);
	} else {
		eager_matched(ep, a, c);
	}
	return 0;
}

int proto_discard_claimed(struct proto_ep *ep, uint64_t id, struct proto_found *found)
{
	struct arrival *a = claimed_find(ep, id);

	if (!a) {
		return -FI_EINVAL;
	}
	arrival_describe(a, found);
	discard(ep, a);
	return 0;
}
