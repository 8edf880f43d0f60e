/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads behind writes; see verbs_flush.h. Rule E3. */
#include "config.h"

#include "prov/wire/verbs/verbs_flush.h"

#include <string.h>

#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"

#define FLUSH_LEN 8u

void verbs_flush_init(struct verbs_link *link)
{
	list_init(&link->flush.waiting);
	list_init(&link->flush.behind);
	link->flush.chunk = VERBS_FLUSH_CHUNK_MAX;
}

/* Of one that has to be written again. */
static void chunk_shrink(struct verbs_flush *f, uint64_t len)
{
	if (f->chunk > len)
		f->chunk = len;
	f->chunk = f->chunk / 2 > f->least ? f->chunk / 2 : f->least;
}

static void chunk_grow(struct verbs_flush *f)
{
	if (f->chunk < VERBS_FLUSH_CHUNK_MAX)
		f->chunk *= 2;
}

void verbs_flush_add(struct verbs_link *link, struct verbs_op *op)
{
	list_push_back(&link->flush.waiting, &op->node);
	verbs_link_dirty(link);
}

/* Of the head of the peer's key table. */
static void read_fill(const struct verbs_link *link, uint32_t lane,
		      struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	const struct verbs_lane *l = &link->lane[lane];
	const struct verbs_mr *mr = link->ep->dom->bin;

	*sge = (struct ibv_sge){
		.addr = mr->start, .length = FLUSH_LEN, .lkey = mr->lkey[l->rail]};
	*wr = (struct ibv_send_wr){
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = link->peer.table_addr,
			    .rkey = link->peer.rail[l->peer_rail].table_key}};
}

static bool lane_post(struct verbs_link *link, uint32_t lane, uint64_t cookie)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	read_fill(link, lane, &wr, &sge);
	return verbs_lane_post_own(link, lane, &wr, cookie);
}

bool verbs_flush_with(struct verbs_link *link, uint32_t lane, struct ibv_send_wr *wr,
		      struct ibv_sge *sge)
{
	if (link->lane[lane].behind == VERBS_FLUSH_WITH)
		return false;
	read_fill(link, lane, wr, sge);
	return true;
}

void verbs_flush_followed(struct verbs_link *link, uint32_t lane, uint32_t at)
{
	struct verbs_lane *l = &link->lane[lane];

	l->behind--;
	link->flush.seen[lane].incarnation = l->incarnation;
	link->flush.seen[lane].at = at;
}

bool verbs_flush_saw(const struct verbs_link *link, const struct verbs_op *op)
{
	uint32_t lane = op->mark_lane;

	return op->marked && op->lanes == UINT64_C(1) << lane &&
	       link->flush.seen[lane].incarnation == op->mark_incarnation &&
	       (int32_t)(link->flush.seen[lane].at - op->mark) > 0;
}

/* Lanes that are over at the peer too: nothing of them can land any more. */
static void dying_look(struct verbs_link *link)
{
	for (uint64_t todo = link->flush.dying; todo; todo &= todo - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(todo);

		if (dqplb_tx_lane_quiet(link->tx, lane))
			link->flush.dying &= ~(UINT64_C(1) << lane);
	}
}

/* Its next round: all that wait, on each lane that any of them used. */
static void round_begin(struct verbs_link *link)
{
	struct verbs_flush *f = &link->flush;

	dying_look(link);
	list_foreach_safe (at, tmp, &f->waiting) {
		struct verbs_op *op = container_of(at, struct verbs_op, node);

		if (!op->strayed || (op->strayed & f->dying))
			continue;
		list_remove(at);
		chunk_shrink(f, op->done - op->sure);
		f->anew++;
		verbs_op_anew(op);
	}
	list_foreach_safe (at, tmp, &f->waiting) {
		struct verbs_op *op = container_of(at, struct verbs_op, node);

		if (op->strayed)
			continue;
		list_remove(at);
		f->left |= op->lanes;
		list_push_back(&f->behind, at);
	}
	f->unposted = f->left;
	f->rounds += f->left != 0;
}

static int round_end(struct verbs_link *link)
{
	struct list *n;
	int count = 0;

	if (!list_empty(&link->flush.behind))
		chunk_grow(&link->flush);
	while (link->state == VERBS_LINK_UP &&
	       (n = list_pop_front(&link->flush.behind))) {
		struct verbs_op *op = container_of(n, struct verbs_op, node);

		if (op->strayed)
			list_push_back(&link->flush.waiting, n);
		else
			verbs_op_done(op);
		count++;
	}
	return count;
}

int verbs_flush_run(struct verbs_link *link)
{
	struct verbs_flush *f = &link->flush;
	int count = 0;

	if (list_empty(&f->waiting) && list_empty(&f->behind))
		return 0;
	if (f->left == 0)
		count = round_end(link);
	if (link->state != VERBS_LINK_UP)
		return count;
	if (list_empty(&f->behind))
		round_begin(link);
	for (uint64_t todo = f->unposted; todo; todo &= todo - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(todo);

		if (lane_post(link, lane, VERBS_FLUSH_COOKIE))
			f->unposted &= ~(UINT64_C(1) << lane);
	}
	return count;
}

void verbs_flush_lane_up(struct verbs_link *link, uint32_t lane)
{
	uint32_t count = link->lane[lane].incarnation % VERBS_FLUSH_ROUND;

	if (link->flush.chunk == VERBS_FLUSH_CHUNK_MAX)
		return;
	while (count-- && lane_post(link, lane, VERBS_FLUSH_IDLE))
		;
}

void verbs_flush_answered(struct verbs_link *link, uint32_t lane)
{
	link->flush.left &= ~(UINT64_C(1) << lane);
	verbs_link_dirty(link);
}

/* Those of which the lane brought something: whether any needs the read behind it. What
 * was under way there is posted again by dqplb. */
static bool stray(struct list *ops, uint32_t lane)
{
	uint64_t bit = UINT64_C(1) << lane;
	bool any = false;

	list_foreach (n, ops) {
		struct verbs_op *op = container_of(n, struct verbs_op, node);

		if (!((op->lanes | op->xfer.lanes) & bit))
			continue;
		op->strayed |= bit;
		any = any || verbs_op_followed(op);
	}
	return any;
}

void verbs_flush_lane_gone(struct verbs_link *link, uint32_t lane)
{
	struct verbs_flush *f = &link->flush;
	uint64_t bit = UINT64_C(1) << lane;

	bool any = stray(&link->ops, lane);

	any = stray(&f->waiting, lane) || any;
	/* What was on it is in memory where the round's read was answered. */
	if (f->left & bit)
		any = stray(&f->behind, lane) || any;
	if (any)
		dqplb_tx_lane_unproven(link->tx, lane);
	f->unposted &= ~bit;
	f->left &= ~bit;
	f->dying |= bit;
	if (!list_empty(&f->behind))
		verbs_link_dirty(link);
}
