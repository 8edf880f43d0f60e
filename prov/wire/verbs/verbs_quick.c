/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts of few bytes in a straight line; see verbs_quick.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_quick.h"

#include <string.h>

#include "prov/dqplb/tx_quick.h"
#include "prov/wire/verbs/verbs_lane.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"

void verbs_quick_init(struct verbs_ep *ep)
{
	ep->quick_wr.sg_list = &ep->quick_sge;
	ep->quick_wr.num_sge = 1;
	ep->quick_wr.opcode = IBV_WR_RDMA_WRITE;
	ep->quick_wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
}

void verbs_quick_stop(struct verbs_link *link)
{
	memset(&link->quick, 0, sizeof(link->quick));
}

static uint64_t base_of(const struct verbs_keys_entry *e)
{
	return e->virt_addr ? e->piece[0].addr : 0;
}

/* Whether such puts may go by that key: to one piece, which is known and may be written,
 * and no counter of the peer's wants to hear of it.
 * If not verbs_put finds out why. */
static __attribute__((noinline)) bool quick_open(struct verbs_link *link, uint64_t key)
{
	struct verbs_quick *q = &link->quick;
	struct verbs_rkey *k;

	if (link->state != VERBS_LINK_UP || link->faulty || link->chan.bye_sent ||
	    verbs_link_numbers(link) || link->events)
		return false;
	k = verbs_rkey_known(link, VERBS_KEYS_APP, key);
	if (!k || k->entry.pieces != 1 || !(k->entry.access & VERBS_KEYS_WRITE) ||
	    k->entry.piece[0].len == 0)
		return false;
	q->key = key;
	q->first = base_of(&k->entry);
	q->len = k->entry.piece[0].len;
	q->delta = k->entry.piece[0].addr - q->first;
	q->rkey = k;
	return true;
}

/* As verbs_put makes one; posted, and what was posted is not over. Returns what names it
 * to the transmitter. */
static uint64_t op_keep(struct verbs_link *link, struct verbs_op *op, uint32_t lane)
{
	const struct verbs_keys_entry *e = &op->rkey->entry;

	op->link = link;
	op->put = true;
	op->notify = op->held = op->placed = false;
	op->tries = op->part = 0;
	op->done = op->sure = 0;
	op->lanes = op->strayed = 0;
	op->local_count = 1;
	op->local[0].len = op->len;
	op->local[0].mr = NULL;
	op->remote = e->piece[0].addr + (op->addr - base_of(e));
	op->xfer.len = op->len;
	list_init(&op->turn);
	list_push_back(&link->ops, &op->node);
	return dqplb_tx_quick_keep(link->tx, &op->xfer, lane);
}

void verbs_quick_keep(struct verbs_link *link, struct verbs_qp *qp)
{
	for (uint32_t at = qp->sq_tail; at != qp->sq_head; at++) {
		uint64_t *cookie = &qp->cookie[at & qp->sq_mask];

		if (verbs_quick_is(*cookie))
			*cookie = op_keep(link, verbs_quick_op(*cookie), qp->lane);
	}
}

/* It counts as one that the lane has lost. */
static __attribute__((noinline)) void post_failed(struct verbs_op *op,
						  struct verbs_qp *qp)
{
	struct verbs_link *link = qp->link;

	op_keep(link, op, qp->lane);
	verbs_lane_down(link, qp->lane, VERBS_LANE_PATH);
}

/* By another key than the last one. */
static __attribute__((noinline)) bool put_other(struct wire_link *wlink, uint64_t key,
						uint64_t addr, const void *from,
						size_t len, void *cookie)
{
	return quick_open(verbs_link_of(wlink), key) &&
	       verbs_put_soon(wlink, key, addr, from, len, cookie);
}

bool verbs_put_soon(struct wire_link *wlink, uint64_t key, uint64_t addr,
		    const void *from, size_t len, void *cookie)
{
	struct verbs_link *link = verbs_link_of(wlink);
	struct verbs_quick *q = &link->quick;
	struct verbs_ep *ep = link->ep;
	struct verbs_op *op = ep->ops_free;
	struct ibv_send_wr *bad;
	uint64_t offset;
	uint32_t lane, at;
	struct verbs_qp *qp;

	if (__builtin_expect(q->key != key || !q->len, 0))
		return put_other(wlink, key, addr, from, len, cookie);
	offset = addr - q->first;
	if (__builtin_expect(!op || offset > q->len || len > q->len - offset, 0))
		return false;
	/* Before the lane is known: it is used up then, and nothing but the request is
	 * left of what was given. */
	op->cookie = cookie;
	op->addr = addr;
	op->len = len;
	op->local[0].at = (uintptr_t)from;
	ep->quick_sge.addr = (uintptr_t)from;
	ep->quick_sge.length = (uint32_t)len;
	ep->quick_wr.wr.rdma.remote_addr = addr + q->delta;
	lane = dqplb_tx_quick(link->tx, (uint32_t)len);
	if (__builtin_expect(lane == DQPLB_NO_LANE, 0))
		return false;
	qp = link->lane[lane].qp;
	at = qp->sq_head & qp->sq_mask;
	ep->ops_free = op->next;
	op->rkey = q->rkey;
	op->rkey->users++;
	qp->bytes += len;
	ep->quick_wr.wr_id = qp->name | at;
	ep->quick_wr.wr.rdma.rkey = op->rkey->entry.piece[0].rkey[qp->peer_rail];
	if (__builtin_expect(ibv_post_send(qp->ib, &ep->quick_wr, &bad), 0)) {
		post_failed(op, qp);
		return true;
	}
	qp->cookie[at] = VERBS_QUICK_COOKIE | (uintptr_t)op;
	qp->requests++;
	qp->sq_head++;
	return true;
}
