/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SEND steps: a tagged message from the source range, at once when it is small, or what
 * the receiver's READY says. A put of several pieces sends all but the last as plain
 * writes that complete on delivery, and the last, which carries the remote CQ data, only
 * after them: so the receiver's event is right on providers that order nothing.
 */
#include "config.h"

#include "coll/exec/engine.h"
#include "coll/exec/name.h"
#include "coll/exec/seen.h"

static void tx_ready_release(struct slot *slot)
{
	if (slot->ready)
		pool_put(&slot->req->x->readys, slot->ready);
	slot->ready = NULL;
}

static void tx_stage_release(struct slot *slot)
{
	if (slot->stage)
		stage_put(slot->req->x, slot->stage);
	slot->stage = NULL;
}

/* ---- messages
 * ------------------------------------------------------------------------ */

static void tx_message_done(struct net_op *op, const struct net_result *result)
{
	struct slot *slot = op->owner;
	struct exec_req *req = slot->req;

	net_op_release(&req->x->net, op);
	req->ops--;
	slot->peer->msgs--;
	tx_stage_release(slot);
	if (req->state != EXEC_RUNNING) {
		req_drained(req);
	} else if (net_broke(result) && ++slot->tries < EXEC_SEND_TRIES) {
		slot_set_state(slot, SLOT_RUNNABLE);
		list_push_back(&req->retry, &slot->link);
	} else if (result->err) {
		req_fail_op(slot, result);
	} else {
		tx_ready_release(slot);
		slot_done(slot);
	}
}

static int tx_message_iov(struct slot *slot, struct iovec *iov, uint32_t *count)
{
	struct exec *x = slot->req->x;
	const uint32_t limit = (uint32_t)x->net.iov_limit;

	*count = slot_pieces(slot, SLOT_SRC, iov, limit);
	if (*count <= limit)
		return 0;
	if (!slot->stage) {
		slot->stage = stage_get(x, slot->bytes);
		if (!slot->stage)
			return -FI_ENOMEM;
		local_pack(slot, &slot->inst.src, slot->stage->memory, false);
	}
	iov[0] = (struct iovec){slot->stage->memory, slot->bytes};
	*count = 1;
	return 0;
}

/* Many pieces, or memory that needs a descriptor. */
static int tx_message_general(struct slot *slot, struct net_op *op)
{
	struct exec_req *req = slot->req;
	struct exec *x = req->x;
	struct iovec iov[NET_IOV_MAX + 1];
	void *desc[NET_IOV_MAX] = {NULL};
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.desc = desc,
		.addr = x->net.addr[slot->inst.peer],
		.tag = slot_tag(slot),
		.data = req->sig,
	};
	const uint64_t flags =
		FI_COMPLETION | (x->caps.data ? FI_REMOTE_CQ_DATA : UINT64_C(0));
	uint32_t count;
	int rc;

	rc = tx_message_iov(slot, iov, &count);
	if (!rc && !slot->stage && slot->bytes)
		rc = req_desc(req, slot->inst.src.buf, &desc[0]);
	if (!rc && slot->stage)
		rc = stage_desc(x, slot->stage, &desc[0]);
	if (rc)
		return rc;
	for (uint32_t i = 1; i < count; i++)
		desc[i] = desc[0];
	msg.iov_count = count;
	msg.context = op;
	return (int)fi_tsendmsg(x->net.ep, &msg, flags);
}

static int tx_message_whole(struct slot *slot, struct net_op *op)
{
	struct exec_req *req = slot->req;
	const char *from = slot_place(slot, SLOT_SRC, slot->inst.src.buf);

	return (int)fi_tsenddata(req->x->net.ep, from, slot->bytes, NULL, req->sig,
				 req->x->net.addr[slot->inst.peer], slot_tag(slot), op);
}

static int tx_message(struct slot *slot)
{
	struct exec_req *req = slot->req;
	struct exec *x = req->x;
	struct net_op *op = net_op_alloc(&x->net);
	int rc;

	if (!op)
		return -FI_ENOMEM;
	op->done = tx_message_done;
	op->owner = slot;
	op->peer = slot->inst.peer;
	if (slot_is_whole(slot, SLOT_SRC) && x->caps.data && !x->net.mr_local)
		rc = tx_message_whole(slot, op);
	else
		rc = tx_message_general(slot, op);
	if (rc) {
		net_op_release(&x->net, op);
		return rc;
	}
	req->ops++;
	slot->peer->msgs++;
	x->stats.msgs++;
	x->stats.msg_bytes += slot->bytes;
	seen_message(slot);
	if (x->times)
		x->times->issued = exec_now_ns();
	slot_set_state(slot, SLOT_ACTIVE);
	return 0;
}

/* ---- puts
 * ---------------------------------------------------------------------------- */

/* A put whose source lies in more pieces is packed first: each piece is an operation. */
#define TX_SEGMENTS_MAX 16

/* A piece of a put: where from, where to. */
struct segment {
	char *from;
	size_t len;
	uint64_t remote;
	uint64_t key;
};

/* The source of a put, piece by piece: as the plan has it, or packed. Bytes. */
struct tx_source {
	struct plan_piece_iter it;
	bool packed, over;
};

static bool tx_source_next(const struct slot *slot, struct tx_source *source, char **from,
			   uint64_t *length)
{
	const struct exec_req *req = slot->req;
	uint64_t offset;

	if (source->packed) {
		*from = slot->stage->memory;
		*length = slot->bytes;
		source->packed = false;
		source->over = true;
		return true;
	}
	if (source->over || !plan_piece_next(&source->it, &offset, length))
		return false;
	*from = req->buf[slot->inst.src.buf] + offset * req->elem_size;
	*length *= req->elem_size;
	return true;
}

/*
 * Segment `index` of the put: source pieces and place pieces cut each other. Returns the
 * number of segments when index is none of them.
 */
static uint32_t tx_segment(struct slot *slot, uint32_t index, struct segment *seg)
{
	struct exec_req *req = slot->req;
	const struct ready *ready = slot->ready;
	const struct peer_handle *handles = req->x->handles[slot->inst.peer];
	struct tx_source source = {.packed = slot->stage != NULL};
	uint64_t length = 0, used = 0, place_used = 0;
	uint32_t count = 0, piece = 0;
	char *from = NULL;

	plan_piece_begin(&source.it, req->call.plan, &req->bind, &slot->inst.src);
	while (piece < ready->pieces) {
		const struct ctl_entry *place = &ready->piece[piece];
		uint64_t len;

		if (used == length) {
			if (!tx_source_next(slot, &source, &from, &length))
				break;
			used = 0;
		}
		len = length - used;
		if (len > place->length - place_used)
			len = place->length - place_used;
		if (len && count++ == index) {
			seg->from = from + used;
			seg->len = len;
			seg->remote =
				handles[place->handle].base + place->offset + place_used;
			seg->key = handles[place->handle].key;
			return count;
		}
		used += len;
		place_used += len;
		if (place_used == place->length) {
			piece++;
			place_used = 0;
		}
	}
	return count;
}

static int tx_put_more(struct slot *slot);

static void tx_put_done(struct net_op *op, const struct net_result *result)
{
	struct slot *slot = op->owner;
	struct exec_req *req = slot->req;

	net_op_release(&req->x->net, op);
	req->ops--;
	slot->peer->puts--;
	slot->seg_done++;
	if (req->state != EXEC_RUNNING) {
		req_answer_revoke(req, slot->peer);
		req_drained(req);
		return;
	}
	if (result->err) {
		req_fail_op(slot, result);
		return;
	}
	if (slot->seg_done == slot->seg_count) {
		tx_ready_release(slot);
		tx_stage_release(slot);
		slot_done(slot);
	} else if (slot->seg_posted < slot->seg_count && list_empty(&slot->link)) {
		/* req_run() goes on with it: posting from inside a completion
		 * would nest without bound. */
		list_push_back(&req->retry, &slot->link);
	}
}

static int tx_put_segment(struct slot *slot, const struct segment *seg, bool last)
{
	struct exec_req *req = slot->req;
	struct exec *x = req->x;
	struct iovec iov = {seg->from, seg->len};
	struct fi_rma_iov rma = {seg->remote, seg->len, seg->key};
	struct net_op *op = net_op_alloc(&x->net);
	void *desc;
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = x->net.addr[slot->inst.peer],
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = op,
		.data = x->net.job ^ name_pack(NAME_PUT, req->call.comm, req->call.call,
					       slot->ready->recv),
	};
	uint64_t flags =
		FI_COMPLETION | (last ? FI_REMOTE_CQ_DATA : FI_DELIVERY_COMPLETE);
	int rc;

	if (!op)
		return -FI_ENOMEM;
	op->done = tx_put_done;
	op->owner = slot;
	op->peer = slot->inst.peer;
	rc = slot->stage ? stage_desc(x, slot->stage, &desc)
			 : req_desc(req, slot->inst.src.buf, &desc);
	if (!rc)
		rc = (int)fi_writemsg(x->net.ep, &msg, flags);
	if (rc) {
		net_op_release(&x->net, op);
		return rc;
	}
	req->ops++;
	slot->peer->puts++;
	slot->seg_posted++;
	x->stats.puts++;
	x->stats.put_bytes += seg->len;
	seen_put(slot, seg->len, last);
	if (x->times)
		x->times->issued = exec_now_ns();
	return 0;
}

/* Posts what may be posted of a put now. */
static int tx_put_more(struct slot *slot)
{
	while (slot->seg_posted < slot->seg_count) {
		const bool last = slot->seg_posted + 1 == slot->seg_count;
		struct segment seg = {0};
		int rc;

		if (last && slot->seg_done != slot->seg_posted)
			return 0;
		tx_segment(slot, slot->seg_posted, &seg);
		rc = tx_put_segment(slot, &seg, last);
		if (rc)
			return rc;
	}
	return 0;
}

/* Whether we know the handles that a place names: the message that brought one may still
 * be under way. */
static bool tx_handles_known(const struct slot *slot)
{
	const struct peer_handle *handles = slot->req->x->handles[slot->inst.peer];

	for (uint32_t i = 0; i < slot->ready->pieces; i++) {
		const struct ctl_entry *place = &slot->ready->piece[i];

		if (!handles || handles[place->handle].incarnation != place->incarnation)
			return false;
	}
	return true;
}

static int tx_put(struct slot *slot)
{
	struct segment seg;

	if (!tx_handles_known(slot))
		return -FI_EAGAIN;
	if (slot->state == SLOT_RUNNABLE) {
		slot->seg_count = tx_segment(slot, UINT32_MAX, &seg);
		if (slot->seg_count > TX_SEGMENTS_MAX && !slot->stage) {
			slot->stage = stage_get(slot->req->x, slot->bytes);
			if (!slot->stage)
				return -FI_ENOMEM;
			local_pack(slot, &slot->inst.src, slot->stage->memory, false);
			slot->seg_count = tx_segment(slot, UINT32_MAX, &seg);
		}
		slot_set_state(slot, SLOT_ACTIVE);
	}
	return tx_put_more(slot);
}

/* ---- starting
 * ------------------------------------------------------------------------ */

static struct ready *tx_find_ready(struct exec_peer *peer, uint32_t k)
{
	list_foreach (pos, &peer->ready) {
		struct ready *ready = container_of(pos, struct ready, link);

		if (ready->k == k) {
			list_remove(&ready->link);
			return ready;
		}
	}
	return NULL;
}

bool tx_is_bulk(const struct slot *slot)
{
	return slot->inst.kind == PLAN_SEND && slot->bytes > slot->req->message_max;
}

void tx_bulk_last(struct exec_req *req)
{
	struct list *last = req->runnable.prev, *node = req->runnable.next;

	if (node == last)
		return;
	for (bool more = true; more;) {
		struct list *next = node->next;

		more = node != last;
		if (tx_is_bulk(container_of(node, struct slot, link))) {
			list_remove(node);
			list_push_back(&req->runnable, node);
		}
		node = next;
	}
}

int tx_start(struct slot *slot)
{
	struct exec_req *req = slot->req;
	struct exec_peer *peer = slot->peer;

	if (slot->bytes <= req->message_max && !req->announces)
		return tx_message(slot);
	if (!slot->ready)
		slot->ready = tx_find_ready(peer, slot->k);
	if (slot->ready && req->call.twin)
		twin_keep(slot);
	else if (req->call.twin)
		slot->ready = twin_ready(slot);
	if (!slot->ready) {
		slot_set_state(slot, SLOT_WAITING);
		list_push_back(&peer->waiting, &slot->link);
		seen_blocked(slot);
		return 0;
	}
	if (slot->ready->length != slot->bytes) {
		slot_set_state(slot, SLOT_ACTIVE);
		accord_lengths(slot, "expects", slot->ready->length);
		return 0;
	}
	return slot->ready->choice == CTL_CHOICE_PUT ? tx_put(slot) : tx_message(slot);
}

void tx_ready(struct exec_req *req, struct exec_peer *peer, struct ready *ready)
{
	list_foreach (pos, &peer->waiting) {
		struct slot *slot = container_of(pos, struct slot, link);

		if (slot->k != ready->k)
			continue;
		list_remove(&slot->link);
		seen_ready(slot);
		if (req->x->times)
			req->x->times->ready = exec_now_ns();
		slot->ready = ready;
		slot_set_state(slot, SLOT_RUNNABLE);
		list_push_back(&req->runnable, &slot->link);
		req->awake = true;
		return;
	}
	list_push_back(&peer->ready, &ready->link);
}
