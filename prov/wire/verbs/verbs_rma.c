/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts, gets and notices, from the call to the end. Rules A9, D2. */
#include "config.h"

#include "prov/wire/verbs/verbs_rma.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"

/* From here on a transfer is worth opening all lanes. */
#define OP_LARGE (UINT64_C(64) << 10)

struct ops_block {
	struct list node;
	struct verbs_op op[VERBS_OPS_BLOCK];
};

static struct verbs_op *op_alloc(struct verbs_ep *ep)
{
	struct ops_block *block;

	struct verbs_op *op = ep->ops_free;

	if (op) {
		ep->ops_free = op->next;
		return op;
	}
	if (ep->ops_count >= VERBS_OPS_MAX)
		return NULL;
	block = malloc(sizeof(*block));
	if (!block)
		return NULL;
	ep->ops_count += VERBS_OPS_BLOCK;
	list_push_back(&ep->ops_blocks, &block->node);
	for (uint32_t i = VERBS_OPS_BLOCK - 1; i > 0; i--) {
		block->op[i].next = ep->ops_free;
		ep->ops_free = &block->op[i];
	}
	return &block->op[0];
}

void verbs_ops_fini(struct verbs_ep *ep)
{
	struct list *n;

	while ((n = list_pop_front(&ep->ops_blocks)))
		free(container_of(n, struct ops_block, node));
}

/* ---- where --------------------------------------------------------------------------
 */

uint32_t verbs_op_sge(const struct verbs_op *op, uint64_t offset, uint32_t len,
		      uint32_t rail, struct ibv_sge *sge)
{
	uint64_t skip = op->done + offset;
	uint32_t n = 0;

	for (uint32_t i = 0; i < op->local_count && len; i++) {
		size_t here = op->local[i].len;

		if (skip >= here) {
			skip -= here;
			continue;
		}
		here -= skip;
		here = here < len ? here : len;
		sge[n++] = (struct ibv_sge){
			.addr = op->local[i].at + skip,
			.length = (uint32_t)here,
			.lkey = op->local[i].mr ? op->local[i].mr->lkey[rail] : 0};
		len -= (uint32_t)here;
		skip = 0;
	}
	return n;
}

void verbs_op_remote(const struct verbs_op *op, uint64_t offset, uint32_t peer_rail,
		     uint64_t *addr, uint32_t *rkey)
{
	*addr = op->remote + offset;
	*rkey = op->rkey->entry.piece[op->part].rkey[peer_rail];
}

/* Offset from the region's first byte; false: not inside it. */
static bool op_offset(const struct verbs_op *op, uint64_t *offset)
{
	const struct verbs_keys_entry *e = &op->rkey->entry;
	uint64_t total = 0, base = e->virt_addr ? e->piece[0].addr : 0;

	for (uint32_t i = 0; i < e->pieces; i++)
		total += e->piece[i].len;
	*offset = op->addr - base;
	return op->addr >= base && *offset <= total && op->len <= total - *offset;
}

/* The part that begins where `done` bytes are over: its place and length. */
static void op_part(struct verbs_op *op)
{
	const struct verbs_keys_entry *e = &op->rkey->entry;
	uint64_t offset, here;

	op_offset(op, &offset);
	offset += op->done;
	for (op->part = 0; offset >= e->piece[op->part].len; op->part++)
		offset -= e->piece[op->part].len;
	op->remote = e->piece[op->part].addr + offset;
	here = e->piece[op->part].len - offset;
	op->xfer.len = here < op->len - op->done ? here : op->len - op->done;
	if (verbs_op_followed(op) && op->xfer.len > op->link->flush.chunk)
		op->xfer.len = op->link->flush.chunk;
}

/* ---- start --------------------------------------------------------------------------
 */

static int op_check(const struct verbs_op *op)
{
	uint8_t need = op->put ? VERBS_KEYS_WRITE : VERBS_KEYS_READ;
	uint64_t offset;

	if (!(op->rkey->entry.access & need))
		return -FI_EACCES;
	return op_offset(op, &offset) ? 0 : -FI_EINVAL;
}

static void op_start(struct verbs_op *op);

/* A notice has its number or ends without: those that were held for it go. */
static void notice_leave(struct verbs_op *op)
{
	struct verbs_link *link = op->link;
	struct verbs_op *first;

	list_remove(&op->turn);
	while (link->state == VERBS_LINK_UP && !list_empty(&link->notices)) {
		first = container_of(link->notices.next, struct verbs_op, turn);
		if (!first->held)
			return;
		list_remove(&first->turn);
		op_start(first);
	}
}

/* An ordered one is given to the transmitter, which keeps the order from there on, after
 * all that were asked for before it. */
static bool notice_hold(struct verbs_op *op)
{
	op->held = op->notice.ordered && !list_empty(&op->turn) &&
		   op->link->notices.next != &op->turn;
	return op->held;
}

/* The next part becomes a transfer. */
static void op_start(struct verbs_op *op)
{
	struct verbs_link *link = op->link;
	struct dqplb_xfer *x = &op->xfer;
	bool told, numbered;

	if (op->len)
		op_part(op);
	else
		x->len = 0;
	op->marked = false;
	told = op->notify && op->done + x->len == op->len;
	numbered = told || (op->put && verbs_link_numbers(link));
	x->kind = !op->put ? DQPLB_READ : numbered ? DQPLB_NUMBERED : DQPLB_WRITE;
	x->ordered = false;
	x->bare = numbered;
	x->data = 0;
	x->op = 0;
	if (told) {
		x->ordered = op->notice.ordered;
		x->data = op->notice.data;
		x->op = op->notice.op;
		x->bare = x->data == 0 && x->op == 0;
		if (notice_hold(op))
			return;
	}
	link->stirred |= STIRRED_TX;
	/* Only a link that has failed takes no more. */
	if (dqplb_tx_start(link->tx, x)) {
		x->error = -FI_ECONNRESET;
		list_remove(&op->node);
		list_push_back(&link->ops_failed, &op->node);
		verbs_link_dirty(link);
	}
	if (told && !list_empty(&op->turn))
		notice_leave(op);
}

static void op_end(struct verbs_op *op, int err, bool tell)
{
	struct verbs_link *link = op->link;
	void *cookie = op->cookie;

	list_remove(&op->node);
	if (!list_empty(&op->turn))
		notice_leave(op);
	verbs_op_free(link->ep, op);
	if (tell)
		link->ep->events->segment_done(
			link->ep->arg, (struct wire_link *)(void *)link, cookie, err);
}

/* Not in an upcall's reach: reported by the next reap. */
static void op_end_later(struct verbs_op *op, int err)
{
	op->xfer.error = err;
	list_remove(&op->node);
	list_push_back(&op->link->ops_failed, &op->node);
	op->link->stirred |= STIRRED_TX;
	verbs_link_dirty(op->link);
}

void verbs_op_key(struct verbs_op *op)
{
	int err = op->rkey->state == VERBS_RKEY_GONE ? op->rkey->err : op_check(op);

	if (err == 0 && op->tries && op->rkey->entry.incarnation == op->refused)
		err = -FI_EACCES; /* it was this very one that was refused (rule D2) */
	list_push_back(&op->link->ops, &op->node);
	if (err) {
		op_end_later(op, err);
		return;
	}
	op_start(op);
	verbs_link_dirty(op->link);
}

/* Its key, which may have to be fetched. */
static int op_go(struct verbs_op *op)
{
	struct verbs_rkey *k = op->rkey;
	int ret;

	if (k->state == VERBS_RKEY_FETCHING) {
		list_push_back(&k->waiting, &op->node);
		return 0;
	}
	ret = op_check(op);
	if (ret)
		return ret;
	list_push_back(&op->link->ops, &op->node);
	op_start(op);
	return 0;
}

static int op_new(struct verbs_link *link, const struct wire_segment *seg, bool put,
		  const struct wire_notice *n)
{
	struct verbs_op *op;
	int ret = 0;

	if (link->state != VERBS_LINK_UP || link->faulty || link->chan.bye_sent)
		return -FI_EAGAIN;
	if (seg->local_count > VERBS_SGE || (n && seg->len > WIRE_NOTIFY_MAX))
		return -FI_EINVAL;
	op = op_alloc(link->ep);
	if (!op)
		return -FI_EAGAIN;
	list_init(&op->node);
	op->link = link;
	op->rkey = NULL;
	op->cookie = seg->cookie;
	op->put = put;
	op->notify = n != NULL;
	op->held = false;
	op->placed = seg->placed;
	op->strayed = 0;
	op->lanes = 0;
	op->xfer.lanes = 0;
	list_init(&op->turn);
	if (n) {
		op->notice = *n;
		list_push_back(&link->notices, &op->turn);
	}
	op->tries = 0;
	op->part = 0;
	op->done = 0;
	op->sure = 0;
	op->addr = seg->remote.addr;
	op->len = seg->len;
	op->local_count = 0;
	for (uint32_t i = 0; i < seg->local_count; i++) {
		if (seg->local[i].iov_len == 0)
			continue;
		op->local[op->local_count].at = (uintptr_t)seg->local[i].iov_base;
		op->local[op->local_count].len = seg->local[i].iov_len;
		op->local[op->local_count++].mr = seg->handles[i];
	}
	if (op->len) {
		op->rkey = verbs_rkey_get(
			link, seg->remote.raw ? VERBS_KEYS_NAME : VERBS_KEYS_APP,
			seg->remote.key);
		ret = op->rkey ? op_go(op) : -FI_EAGAIN;
	} else {
		list_push_back(&link->ops, &op->node);
		op_start(op);
	}
	if (ret) {
		list_remove(&op->turn);
		verbs_op_free(link->ep, op);
		return ret;
	}
	if (op->len > OP_LARGE)
		verbs_lanes_want(link);
	verbs_lanes_post(link);
	return 0;
}

int verbs_put(struct wire_link *wlink, const struct wire_segment *seg)
{
	return seg->len ? op_new(verbs_link_of(wlink), seg, true, NULL) : 1;
}

int verbs_get(struct wire_link *wlink, const struct wire_segment *seg)
{
	return seg->len ? op_new(verbs_link_of(wlink), seg, false, NULL) : 1;
}

int verbs_put_notify(struct wire_link *wlink, const struct wire_segment *seg,
		     const struct wire_notice *n)
{
	return op_new(verbs_link_of(wlink), seg, true, n);
}

/* ---- the end ------------------------------------------------------------------------
 */

/* Refused by the peer's device: perhaps the key means something else by now (D2). */
static bool op_again(struct verbs_op *op)
{
	struct verbs_link *link = op->link;
	struct verbs_rkey *k = op->rkey;

	if (op->xfer.error != -FI_EACCES || !k || ++op->tries > VERBS_OP_TRIES)
		return false;
	op->refused = k->entry.incarnation;
	verbs_rkey_refused(link, k);
	op->rkey = verbs_rkey_get(link, k->entry.space, k->entry.key);
	verbs_rkey_put(k);
	if (!op->rkey)
		return false;
	list_remove(&op->node);
	op->done = 0;
	op->sure = 0;
	if (op->rkey->state == VERBS_RKEY_FETCHING) {
		list_push_back(&op->rkey->waiting, &op->node);
		return true;
	}
	verbs_op_key(op);
	return true;
}

void verbs_op_over(struct verbs_op *op)
{
	int err = op->xfer.error;

	/* As most are: nobody else has to hear of it, and there is nothing more of it. */
	if (__builtin_expect(!err && op->xfer.len == op->len && !op->placed &&
				     list_empty(&op->turn),
			     1)) {
		struct verbs_link *link = op->link;
		void *cookie = op->cookie;

		list_unlink(&op->node);
		verbs_op_free(link->ep, op);
		link->ep->events->segment_done(
			link->ep->arg, (struct wire_link *)(void *)link, cookie, 0);
		return;
	}

	if (err && op_again(op))
		return;
	if (err) {
		op_end(op, err, true);
		return;
	}
	op->done += op->xfer.len;
	op->lanes |= op->xfer.lanes;
	op->xfer.lanes = 0;
	/* What the peer hears of with the last part must be there before that. What is
	 * numbered has been heard of already. */
	if (verbs_flush_saw(op->link, op)) {
		op->lanes = op->strayed = 0;
		op->sure = op->done;
	}
	if (op->lanes && !verbs_link_numbers(op->link) &&
	    (op->placed || (op->notify && op->done < op->len))) {
		list_remove(&op->node);
		verbs_flush_add(op->link, op);
		return;
	}
	if (op->done < op->len)
		op_start(op);
	else
		op_end(op, 0, true);
}

void verbs_op_done(struct verbs_op *op)
{
	op->lanes = 0;
	op->sure = op->done;
	if (op->done == op->len) {
		op_end(op, 0, true);
		return;
	}
	list_push_back(&op->link->ops, &op->node);
	op_start(op);
}

/* Twice is as good as once: nobody was told of it (rule C4). */
void verbs_op_anew(struct verbs_op *op)
{
	/* What was written on living lanes is still to be followed there: it must not
	 * land on what comes after this put. */
	op->lanes &= ~op->strayed;
	op->strayed = 0;
	op->done = op->sure;
	list_push_back(&op->link->ops, &op->node);
	op_start(op);
}

int verbs_ops_reap(struct verbs_link *link)
{
	struct dqplb_xfer *x;
	struct list *n;
	int count = 0;

	if (__builtin_expect(link->atomics.tail != link->atomics.posted, 0))
		count = verbs_atomics_reap(link);
	while (link->state == VERBS_LINK_UP && (x = dqplb_tx_take(link->tx))) {
		verbs_op_over(container_of(x, struct verbs_op, xfer));
		count++;
	}
	while (link->state == VERBS_LINK_UP && (n = list_pop_front(&link->ops_failed))) {
		struct verbs_op *op = container_of(n, struct verbs_op, node);

		op_end(op, op->xfer.error, true);
		count++;
	}
	return count;
}

static void list_fail(struct verbs_link *link, struct list *list, int err, bool tell)
{
	(void)link;
	while (!list_empty(list))
		op_end(container_of(list->next, struct verbs_op, node), err, tell);
}

void verbs_ops_fail(struct verbs_link *link, int err, bool tell)
{
	if (link->tx)
		dqplb_tx_abort(link->tx, err);
	/* What was over already ends as it did. */
	if (link->tx) {
		struct dqplb_xfer *x;

		while ((x = dqplb_tx_take(link->tx)))
			op_end(container_of(x, struct verbs_op, xfer), x->error, tell);
	}
	verbs_atomics_fail(link, err, tell);
	list_fail(link, &link->ops_failed, err, tell);
	list_fail(link, &link->ops, err, tell);
	list_fail(link, &link->flush.waiting, err, tell);
	list_fail(link, &link->flush.behind, err, tell);
	while (!list_empty(&link->rkeys.fetches)) {
		struct verbs_rkey *k =
			container_of(link->rkeys.fetches.next, struct verbs_rkey, where);

		k->users++;
		list_fail(link, &k->waiting, err, tell);
		list_remove(&k->where);
		k->users--;
	}
}
