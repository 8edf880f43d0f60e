/* SPDX-License-Identifier: BSD-2-Clause */
/* What engines receive through; see receiver.h. Posting and completing is in rx_op.c. */
#include "config.h"

#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"

int receiver_init(struct receiver *rcv, uint32_t size, uint32_t max)
{
	*rcv = (struct receiver){.min_multi_recv = 16, .rx_max = max};
	list_init(&rcv->engines);
	list_init(&rcv->unasked);
	if (match_queue_init(&rcv->match[0], size) ||
	    match_queue_init(&rcv->match[1], size) || sender_table_init(&rcv->senders) ||
	    rx_pool_init(rcv, size)) {
		receiver_fini(rcv);
		return -FI_ENOMEM;
	}
	return 0;
}

void receiver_fini(struct receiver *rcv)
{
	match_queue_fini(&rcv->match[0]);
	match_queue_fini(&rcv->match[1]);
	pool_fini(&rcv->rx);
	rx_index_fini(&rcv->by_context);
	sender_table_fini(&rcv->senders);
}

int receiver_open(uint32_t size, struct receiver **out)
{
	struct receiver *rcv = malloc(sizeof(*rcv));
	int ret = rcv ? receiver_init(rcv, size, PROTO_OPS_MAX) : -FI_ENOMEM;

	if (ret) {
		free(rcv);
		return ret;
	}
	rcv->shared = true;
	*out = rcv;
	return 0;
}

void receiver_close(struct receiver *rcv)
{
	receiver_fini(rcv);
	free(rcv);
}

void receiver_join(struct proto_ep *ep)
{
	list_push_back(&ep->rcv->engines, &ep->receives);
}

/* Messages that others could still take, though they would hear nothing of them. */
void receiver_leave(struct proto_ep *ep)
{
	list_remove(&ep->receives);
	if (!ep->rcv->shared) {
		return;
	}
	if (ep->rcv->ops) {
		matcher_leave(ep);
	}
	for (uint32_t i = 0; i < pool_limit(&ep->arrivals); i++) {
		struct arrival *a = pool_at(&ep->arrivals, i);

		if (a->state == ARRIVAL_UNEXPECTED) {
			receiver_forget(a);
			list_remove(&a->node);
			arrival_release(ep, a);
		}
	}
}

static bool has_open_claim(const struct arrival *a)
{
	return a->state == ARRIVAL_PULL || a->state == ARRIVAL_OWES_CTS ||
	       a->state == ARRIVAL_STREAM || a->state == ARRIVAL_ORPHAN;
}

void receiver_abandon(struct proto_ep *ep)
{
	if (!ep->rcv || !ep->rcv->shared) {
		return;
	}
	for (uint32_t i = 0; i < pool_limit(&ep->arrivals); i++) {
		struct arrival *a = pool_at(&ep->arrivals, i);

		if (has_open_claim(a)) {
			rx_abandon(ep->rcv, &a->claim);
		}
	}
}

bool receiver_take(struct proto_ep *ep, const struct proto_peer *pp, uint32_t tagged,
		   uint64_t tag, uint64_t len, struct rx_claim *claim)
{
	struct receiver *rcv = ep->rcv;
	struct match_recv *m =
		match_recv_find(&rcv->match[tagged], sender_ident(pp->sender), tag);

	if (!m) {
		return rcv->ops && matcher_take(ep, pp, tagged, tag, len, claim);
	}
	rx_take(rcv, container_of(m, struct rx, m), len, claim);
	return true;
}

void receiver_keep(struct arrival *a)
{
	if (a->ep->rcv->ops) {
		matcher_keep(a);
		return;
	}
	a->m.source = sender_ident(a->peer->sender);
	a->m.tag = a->tag;
	match_msg_add(&a->ep->rcv->match[a->flags & PROTO_TAGGED], &a->m);
}

void receiver_forget(struct arrival *a)
{
	if (a->ep->rcv->ops) {
		list_remove(&a->m.all);
		return;
	}
	match_msg_remove(&a->ep->rcv->match[a->flags & PROTO_TAGGED], &a->m);
}

/* ---- what is asked from above
 * ------------------------------------------------------------ */

void receiver_set_min_multi_recv(struct receiver *rcv, size_t len)
{
	rcv->min_multi_recv = len;
}

void receiver_set_selective(struct receiver *rcv)
{
	rcv->selective = true;
	for (uint32_t i = 0; i < pool_limit(&rcv->rx); i++) {
		struct rx *rx = pool_at(&rcv->rx, i);

		if (rx->state != RX_FREE && !(rx->flags & PROTO_ASKED)) {
			rx->flags &= ~PROTO_REPORT;
			rx->usual = -1;
		}
	}
}

size_t receiver_left(const struct receiver *rcv)
{
	return rcv->rx.free_count;
}
