/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts of few bytes in a straight line; see verbs_quick.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_quick.h"

#include "prov/wire/verbs/verbs_lane.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"

/* The key of one piece that such a put may go to, and where in it. NULL: none, or it
 * isn't known, or the put would not be allowed: verbs_put finds out. */
static struct verbs_rkey *key_of(struct verbs_link *link, uint64_t key, uint64_t addr,
				 size_t len, uint64_t *remote)
{
	struct verbs_rkey *k = verbs_rkey_known(link, VERBS_KEYS_APP, key);
	const struct verbs_keys_piece *piece;
	uint64_t base, offset;

	if (!k || k->entry.pieces != 1 || !(k->entry.access & VERBS_KEYS_WRITE))
		return NULL;
	piece = &k->entry.piece[0];
	base = k->entry.virt_addr ? piece->addr : 0;
	offset = addr - base;
	if (addr < base || offset > piece->len || len > piece->len - offset)
		return NULL;
	*remote = piece->addr + offset;
	return k;
}

static struct verbs_op *op_make(struct verbs_link *link, uint64_t addr, const void *from,
				size_t len, void *cookie)
{
	struct verbs_op *op =
		container_of(link->ep->ops_free.next, struct verbs_op, node);

	op->link = link;
	op->rkey = NULL;
	op->cookie = cookie;
	op->put = true;
	op->notify = op->held = op->placed = false;
	op->tries = op->part = 0;
	op->done = op->sure = 0;
	op->lanes = op->strayed = 0;
	op->addr = addr;
	op->len = len;
	op->local_count = 1;
	op->local[0].at = (uintptr_t)from;
	op->local[0].len = len;
	op->local[0].mr = NULL;
	op->xfer.len = len;
	list_init(&op->turn);
	return op;
}

static void op_post(struct verbs_link *link, const struct verbs_op *op,
		    const struct dqplb_post *p)
{
	const struct verbs_lane *l = &link->lane[p->lane];
	struct verbs_qp *qp = l->qp;
	struct ibv_sge sge = {.addr = op->local[0].at, .length = p->len};
	struct ibv_send_wr *bad, wr; /* the fields that a write has, and no others */

	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = op->remote;
	wr.wr.rdma.rkey = op->rkey->entry.piece[0].rkey[l->peer_rail];
	if (__builtin_expect(qp && qp->state == VERBS_QP_READY, 1)) {
		wr.wr_id = verbs_wr_id(qp, qp->sq_head & qp->sq_mask);
		if (__builtin_expect(ibv_post_send(qp->ib, &wr, &bad) == 0, 1)) {
			qp->cookie[qp->sq_head++ & qp->sq_mask] = p->cookie;
			return;
		}
	}
	/* It counts as one that the lane has lost. */
	verbs_lane_down(link, p->lane, VERBS_LANE_PATH);
}

bool verbs_put_soon(struct wire_link *wlink, uint64_t key, uint64_t addr,
		    const void *from, size_t len, void *cookie)
{
	struct verbs_link *link = verbs_link_of(wlink);
	struct dqplb_post p;
	struct verbs_op *op;
	struct verbs_rkey *k;
	uint64_t remote;

	if (link->state != VERBS_LINK_UP || link->faulty || link->chan.bye_sent ||
	    verbs_link_numbers(link) || list_empty(&link->ep->ops_free))
		return false;
	k = key_of(link, key, addr, len, &remote);
	if (!k)
		return false;
	op = op_make(link, addr, from, len, cookie);
	if (!dqplb_tx_quick(link->tx, &op->xfer, &p))
		return false;
	k->users++;
	op->rkey = k;
	op->remote = remote;
	list_unlink(&op->node);
	list_push_back(&link->ops, &op->node);
	link->rail_bytes[link->lane[p.lane].rail] += len;
	op_post(link, op, &p);
	return true;
}
