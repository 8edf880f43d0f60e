/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RECV steps. The receiver chooses how a pair travels (rule F3). Up to the size that all
 * ranks agreed on it is a tagged message, straight into the destination: it cannot land
 * before this receive is posted. Above, a READY says put or message; places of the same
 * peer that become ready together share one control message.
 */
#include "config.h"

#include "coll/exec/engine.h"
#include "coll/exec/name.h"
#include "coll/exec/seen.h"

static void rx_message_done(struct net_op *op, const struct net_result *result)
{
	struct slot *slot = op->owner;
	struct exec_req *req = slot->req;

	net_op_release(&req->x->net, op);
	slot->op = NULL;
	req->ops--;
	if (req->state != EXEC_RUNNING) {
		req_drained(req);
		return;
	}
	if (result->has_data && result->data != req->sig &&
	    (!result->err || result->err == FI_ETRUNC)) {
		accord_signature(req, slot->inst.peer, result->data);
	} else if (result->err == FI_ETRUNC) {
		accord_lengths(slot, "sends at least",
			       slot->bytes + (result->len ? result->len : 1));
	} else if (result->err) {
		req_fail_op(slot, result);
	} else if (result->len != slot->bytes) {
		accord_lengths(slot, "sends", result->len);
	} else {
		seen_received(slot);
		rx_filled(slot);
	}
}

void rx_filled(struct slot *slot)
{
	if (slot->stage) {
		local_pack(slot, &slot->inst.dst, slot->stage->memory, true);
		stage_put(slot->req->x, slot->stage);
		slot->stage = NULL;
	}
	slot_done(slot);
}

/* The iovec of a message: the range itself, or staging when it has too many pieces. */
static int rx_message_iov(struct slot *slot, struct iovec *iov, uint32_t *count)
{
	struct exec *x = slot->req->x;
	const uint32_t limit = (uint32_t)x->net.iov_limit;

	*count = slot_pieces(slot, SLOT_DST, iov, limit);
	if (*count <= limit)
		return 0;
	if (!slot->stage)
		slot->stage = stage_get(x, slot->bytes);
	if (!slot->stage)
		return -FI_ENOMEM;
	iov[0] = (struct iovec){slot->stage->memory, slot->bytes};
	*count = 1;
	return 0;
}

/* Many pieces, or memory that needs a descriptor. */
static int rx_post_general(struct slot *slot, struct net_op *op)
{
	struct exec_req *req = slot->req;
	struct exec *x = req->x;
	struct iovec iov[NET_IOV_MAX + 1];
	void *desc[NET_IOV_MAX] = {NULL};
	uint32_t count;
	int rc;

	rc = rx_message_iov(slot, iov, &count);
	if (!rc && !slot->stage && slot->bytes)
		rc = req_desc(req, slot->inst.dst.buf, &desc[0]);
	if (!rc && slot->stage)
		rc = stage_desc(x, slot->stage, &desc[0]);
	if (rc)
		return rc;
	for (uint32_t i = 1; i < count; i++)
		desc[i] = desc[0];
	return (int)fi_trecvv(x->net.ep, iov, desc, count, x->net.addr[slot->inst.peer],
			      slot_tag(slot), 0, op);
}

static int rx_post(struct slot *slot)
{
	struct exec_req *req = slot->req;
	struct exec *x = req->x;
	struct net_op *op = net_op_alloc(&x->net);
	int rc;

	if (!op)
		return -FI_ENOMEM;
	op->done = rx_message_done;
	op->owner = slot;
	op->peer = slot->inst.peer;
	if (slot_is_whole(slot, SLOT_DST) && !x->net.mr_local)
		rc = (int)fi_trecv(x->net.ep,
				   slot_place(slot, SLOT_DST, slot->inst.dst.buf),
				   slot->bytes, NULL, x->net.addr[slot->inst.peer],
				   slot_tag(slot), 0, op);
	else
		rc = rx_post_general(slot, op);
	if (rc) {
		net_op_release(&x->net, op);
		return rc;
	}
	slot->op = op;
	req->ops++;
	return 0;
}

/* Whether peers shall put into this place: few pieces, and a registration. */
static bool rx_may_put(struct slot *slot)
{
	struct exec_req *req = slot->req;
	const uint32_t max = req->x->caps.put_pieces ? EXEC_PUT_PIECES_MAX : 1;
	struct iovec iov[EXEC_PUT_PIECES_MAX];
	struct mem_entry *entry;

	return req->x->caps.put && slot->inst.dst.buf != PLAN_SRC &&
	       slot_pieces(slot, SLOT_DST, iov, max) <= max &&
	       req_mr(req, slot->inst.dst.buf, true, &entry) == 0 && entry->remote;
}

int rx_start(struct slot *slot)
{
	struct exec_req *req = slot->req;
	struct exec_peer *peer = slot->peer;
	const bool stands = req->call.twin && twin_stands(slot);
	const bool announce =
		!stands && (slot->bytes > req->message_max || req->announces);
	const bool put = announce && slot->bytes > req->message_max && rx_may_put(slot);

	if (!put && !stands) {
		int rc = rx_post(slot);

		if (rc)
			return rc;
	}
	slot_set_state(slot, SLOT_ACTIVE);
	slot->place_open = put || stands;
	if (slot->place_open) {
		peer->places++;
		req->places++;
	}
	if (!announce)
		return 0;
	list_push_back(&peer->announce, &slot->link);
	if (list_empty(&peer->flush))
		list_push_back(&req->flush, &peer->flush);
	return 0;
}

/* ---- a message where a put was to come
 * ----------------------------------------------- */

/* The open place of this number, announced already. */
static struct slot *rx_open(struct exec_req *req, uint64_t number)
{
	struct slot *slot = &req->slot[number & (req->slots - 1)];

	return number >= req->base && number < req->next && slot->place_open &&
			       list_empty(&slot->link)
		       ? slot
		       : NULL;
}

static void rx_peek_done(struct net_op *op, const struct net_result *result)
{
	struct exec *x = op->owner;
	const struct peek *peek = &x->peek;
	struct exec_req *req = engine_find(x, peek->comm, peek->call, UINT32_MAX, -1);
	struct slot *slot;

	net_op_release(&x->net, op);
	x->peek.busy = false;
	if (!req || req->state != EXEC_RUNNING || req->accord.on)
		return;
	slot = rx_open(req, peek->number);
	if (slot && !result->err)
		accord_lengths(slot, "sends", result->len);
	else
		rx_peek(req, peek->number + 1);
}

/* Only lengths that were bound late, which no signature has, come to this. */
void rx_peek(struct exec_req *req, uint64_t from)
{
	struct exec *x = req->x;
	struct slot *slot = NULL;
	struct net_op *op;

	for (; from < req->next && !slot; from++)
		slot = rx_open(req, from);
	op = slot ? net_op_alloc(&x->net) : NULL;
	if (!op)
		return;
	op->done = rx_peek_done;
	op->owner = x;
	op->peer = slot->inst.peer;
	x->peek = (struct peek){.busy = true,
				.comm = req->call.comm,
				.call = req->call.call,
				.number = from - 1};
	if (fi_trecvmsg(x->net.ep,
			&(struct fi_msg_tagged){.addr = x->net.addr[slot->inst.peer],
						.tag = slot_tag(slot),
						.context = op},
			FI_PEEK | FI_COMPLETION)) {
		/* Where nobody can look, such a call ends by its deadline. */
		net_op_release(&x->net, op);
		x->peek.busy = false;
	}
}

/* ---- READY
 * --------------------------------------------------------------------------- */

static void rx_add_handle(struct exec_req *req, struct ctl_ready *ready,
			  struct mem_entry *entry, int32_t rank)
{
	if (mem_tell(entry, rank))
		return;
	ready->handle[ready->handles++] = (struct ctl_handle){
		.id = entry->id,
		.incarnation = entry->incarnation,
		.key = entry->key,
		.base = entry->base,
	};
	req->x->stats.handles++;
}

/* Adds the place to the message; false when it has no room left. */
static bool rx_add_place(struct slot *slot, struct ctl_ready *ready)
{
	struct exec_req *req = slot->req;
	struct iovec iov[EXEC_PUT_PIECES_MAX];
	struct ctl_entry entry = {.k = slot->k,
				  .recv = (uint32_t)(slot->inst.number & NAME_INDEX_MASK),
				  .choice = CTL_CHOICE_MESSAGE,
				  .length = slot->bytes};
	struct mem_entry *mr;
	uint32_t count;

	if (!slot->place_open) {
		if (ready->entries == CTL_ENTRY_MAX)
			return false;
		ready->entry[ready->entries++] = entry;
		return true;
	}
	count = slot_pieces(slot, SLOT_DST, iov, EXEC_PUT_PIECES_MAX);
	if (ready->entries + count > CTL_ENTRY_MAX)
		return false;
	if (req->call.twin)
		entry.recv = twin_index(req->call.twin, slot->inst.number);
	mr = req->mr[slot->inst.dst.buf];
	rx_add_handle(req, ready, mr, slot->inst.peer);
	entry.choice = CTL_CHOICE_PUT;
	entry.handle = mr->id;
	entry.incarnation = mr->incarnation;
	entry.stays = req->call.twin && twin_offer(slot);
	for (uint32_t i = 0; i < count; i++) {
		entry.more = i + 1 < count;
		entry.offset = (uint64_t)((uintptr_t)iov[i].iov_base - mr->start);
		entry.length = iov[i].iov_len;
		ready->entry[ready->entries++] = entry;
	}
	return true;
}

/* One message of READY places; false when memory ran out. */
static bool rx_flush_message(struct exec_req *req, struct exec_peer *peer)
{
	struct ctl_msg msg = {.kind = CTL_READY,
			      .comm = req->call.comm,
			      .call = req->call.call,
			      .sig = req->sig};

	while (!list_empty(&peer->announce)) {
		struct slot *slot = container_of(peer->announce.next, struct slot, link);

		if (!rx_add_place(slot, &msg.ready))
			break;
		list_remove(&slot->link);
	}
	req->x->stats.readys++;
	peer->seen->ready_out += msg.ready.entries;
	return ctl_io_send(req->x, peer->rank, &msg) == 0;
}

void rx_flush(struct exec_req *req)
{
	struct list *node;

	while ((node = list_pop_front(&req->flush))) {
		struct exec_peer *peer = container_of(node, struct exec_peer, flush);

		while (!list_empty(&peer->announce)) {
			if (rx_flush_message(req, peer))
				continue;
			req_fail(req, WEFT_ERR_NOMEM, -1,
				 "no memory for a control message");
			return;
		}
	}
}
