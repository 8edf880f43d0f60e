/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver whose receives somebody else has: that one is asked about each message
 * (struct proto_matcher_ops), and keeps those that nobody waits for, by name. The queues
 * of the receiver itself stay empty.
 *
 * What is kept is in the state ARRIVAL_CLAIMED: its sender may go, which is found out
 * when it gets its receive. A message that the other side had no memory for stays in the
 * state ARRIVAL_UNEXPECTED, on receiver.unasked, and those after it behind it.
 */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"

int receiver_open_matched(const struct proto_matcher_ops *ops, void *arg,
			  struct receiver **out)
{
	int ret = receiver_open(1, out);

	if (!ret) {
		(*out)->ops = ops;
		(*out)->arg = arg;
	}
	return ret;
}

static void claim_fill(struct rx_claim *c, const struct proto_recv *r, void *entry)
{
	c->multi = NULL;
	c->entry = entry;
	c->context = r->context;
	c->flags = r->flags | RX_FOREIGN;
	c->count = (uint32_t)r->count;
	c->room = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		c->iov[i] = r->iov[i];
		c->room += r->iov[i].iov_len;
	}
	/* It may be a piece of a larger one: where it starts is worth telling. */
	c->buf = c->count ? c->iov[0].iov_base : NULL;
}

/* A name for a message that was never kept: it could not be, or the link was given up. */
static void unmatched_drop(struct receiver *rcv)
{
	if (rcv->unmatched) {
		rcv->ops->release(rcv->arg, rcv->unmatched);
		rcv->unmatched = NULL;
	}
}

bool matcher_take(struct proto_ep *ep, const struct proto_peer *pp, uint32_t tagged,
		  uint64_t tag, uint64_t len, struct rx_claim *claim)
{
	struct receiver *rcv = ep->rcv;
	const struct proto_found m = {
		.len = len, .tag = tag, .source = pp->source, .flags = tagged};
	struct proto_recv r = {0};
	void *entry = NULL;
	int ret;

	unmatched_drop(rcv);
	if (!list_empty(&rcv->unasked)) {
		return false;
	}
	ret = rcv->ops->get(rcv->arg, &m, &r, &entry);
	if (!ret) {
		claim_fill(claim, &r, entry);
		return true;
	}
	rcv->unmatched = ret == -FI_ENOENT ? entry : NULL;
	return false;
}

static void discard(struct arrival *a)
{
	if (a->announced) {
		rndv_discard(a->ep, a);
	} else {
		eager_discard(a->ep, a);
	}
}

static void start(struct arrival *a)
{
	if (a->announced) {
		rndv_start(a->ep, a);
	} else {
		eager_matched(a->ep, a, &a->claim);
	}
}

/* The other side keeps it from now on; if it refuses to, nobody will ever want it. */
static void keep(struct arrival *a, void *entry)
{
	struct receiver *rcv = a->ep->rcv;
	struct proto_found m;

	arrival_describe(a, &m);
	list_remove(&a->node);
	arrival_set_state(a, ARRIVAL_CLAIMED);
	a->claim.flags = RX_FOREIGN;
	a->claim.entry = entry;
	if (rcv->ops->queue(rcv->arg, entry, &m, a)) {
		rcv->ops->release(rcv->arg, entry);
		discard(a);
	}
}

void matcher_keep(struct arrival *a)
{
	struct receiver *rcv = a->ep->rcv;
	void *entry = rcv->unmatched;

	rcv->unmatched = NULL;
	if (entry) {
		keep(a, entry);
		return;
	}
	list_push_back(&rcv->unasked, &a->m.all);
	a->ep->chores = true;
}

int matcher_run(struct proto_ep *ep)
{
	struct receiver *rcv = ep->rcv;
	int moved = 0;

	while (!list_empty(&rcv->unasked)) {
		struct arrival *a =
			container_of(rcv->unasked.next, struct arrival, m.all);
		struct proto_recv r = {0};
		struct proto_found m;
		void *entry = NULL;
		int ret;

		arrival_describe(a, &m);
		ret = rcv->ops->get(rcv->arg, &m, &r, &entry);
		if (ret == -FI_EAGAIN) {
			return moved;
		}
		list_remove(&a->m.all);
		moved++;
		if (!ret) {
			claim_fill(&a->claim, &r, entry);
			start(a);
		} else if (ret == -FI_ENOENT) {
			keep(a, entry);
		} else {
			discard(a);
		}
	}
	return moved;
}

void matcher_leave(struct proto_ep *ep)
{
	struct receiver *rcv = ep->rcv;

	unmatched_drop(rcv);
	for (uint32_t i = 0; i < pool_limit(&ep->arrivals); i++) {
		struct arrival *a = pool_at(&ep->arrivals, i);

		if (a->state == ARRIVAL_CLAIMED) {
			rcv->ops->forget(rcv->arg, a->claim.entry);
		}
	}
}

/* ---- what is asked from above
 * ------------------------------------------------------------ */

void matcher_start(struct arrival *a, const struct proto_recv *r)
{
	claim_fill(&a->claim, r, a->claim.entry);
	start(a);
}

void matcher_discard(struct arrival *a)
{
	discard(a);
}

uint64_t matcher_source(const struct arrival *a)
{
	return a->peer->source;
}

void *matcher_engine_arg(const struct arrival *a)
{
	return a->ep->arg;
}
