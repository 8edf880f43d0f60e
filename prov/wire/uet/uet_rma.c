/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts and gets; see uet_rma.h. */
#include "config.h"

#include "prov/wire/uet/uet_rma.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/device.h"

/* An operation's message id: its place, and how often that was used. */
#define TURNS 1000u

static uint16_t op_id(const struct wire_link *link, const struct uet_move *op)
{
	return (uint16_t)(1 + (uint32_t)(op - link->op) + UET_OPS * op->turn);
}

/* ---- the initiator ----------------------------------------------------------------- */

static int op_start(struct wire_link *link, const struct wire_segment *seg, bool get)
{
	struct uet_move *op = NULL;

	if (link->state != UET_LINK_UP)
		return -FI_EAGAIN;
	if ((seg->remote.raw && !get) || seg->local_count > 4 ||
	    seg->remote.addr + seg->len < seg->remote.addr)
		return -FI_EINVAL;
	for (unsigned i = 0; i < UET_OPS && !op; i++) {
		if (!link->op[i].used)
			op = &link->op[i];
	}
	if (!op)
		return -FI_EAGAIN;
	*op = (struct uet_move){.used = true,
				.get = get,
				.turn = (uint16_t)((op->turn + 1) % TURNS),
				.local_count = (uint32_t)seg->local_count,
				.remote = seg->remote,
				.len = seg->len,
				.part = uet_link_part(link, seg->len),
				.user = seg->cookie};
	memcpy(op->local, seg->local, seg->local_count * sizeof(op->local[0]));
	list_push_back(get ? &link->asking : &link->pending, &op->node);
	uet_link_work(link);
	return 0;
}

int uet_put(struct wire_link *link, const struct wire_segment *seg)
{
	return op_start(link, seg, false);
}

int uet_get(struct wire_link *link, const struct wire_segment *seg)
{
	return op_start(link, seg, true);
}

/* The piece of our memory at that offset, and how much of it is in one. */
static uint8_t *local_at(const struct uet_move *op, size_t offset, size_t *len)
{
	for (uint32_t i = 0; i < op->local_count; i++) {
		if (offset < op->local[i].iov_len) {
			*len = op->local[i].iov_len - offset;
			return (uint8_t *)op->local[i].iov_base + offset;
		}
		offset -= op->local[i].iov_len;
	}
	*len = 0;
	return NULL;
}

static void op_over(struct wire_link *link, struct uet_move *op)
{
	if (op->over)
		return;
	op->over = true;
	link->over++;
	uet_link_has_news(link);
}

/* Everything was cut, and everything came back. */
static void op_check(struct wire_link *link, struct uet_move *op)
{
	bool all = op->err || (op->cut == op->len && (!op->get || op->came == op->len));

	if (op->left || !all)
		return;
	list_remove(&op->node);
	link->asked -= op->asked;
	op->asked = 0;
	op_over(link, op);
}

/* A read's first packet has no length of its own: each asks for itself, and says where
 * in the whole its bytes go, and whether it is the last. */
static void ask_alone(struct uet_ses_req *req)
{
	req->offset += req->at;
	req->data = req->at;
	req->hd = req->eom;
	req->length = req->part;
	req->som = req->eom = true;
	req->at = 0;
}

/* Lent memory is asked for at once, by the first packet of the read alone. */
static int op_borrow(struct wire_link *link, struct uet_move *op, uint64_t now)
{
	struct uet_ses_req req = {.op = UET_OP_READ,
				  .message = op_id(link, op),
				  .index = UET_INDEX_LENT,
				  .initiator = uet_door_port(&link->base.ep->base.addr),
				  .offset = op->remote.addr,
				  .match = op->remote.key,
				  .som = true,
				  .eom = op->len <= UET_PART_MAX,
				  .length = (uint32_t)op->len};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {
		.ses = ses, .next = UET_NEXT_REQ_STD, .ar = true, .cookie = op};
	int ret;

	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	ret = uet_pdc_send(link->pdc, &send, now);
	if (ret)
		return ret;
	op->cut = op->len;
	op->left++;
	return 0;
}

static int op_cut(struct wire_link *link, struct uet_move *op, uint64_t now)
{
	struct uet_ses_req req = {.op = op->get ? UET_OP_READ : UET_OP_WRITE,
				  .message = op_id(link, op),
				  .index = UET_INDEX_MEMORY,
				  .initiator = uet_door_port(&link->base.ep->base.addr),
				  .offset = op->remote.addr,
				  .match = op->remote.key,
				  .at = (uint32_t)op->cut,
				  .length = (uint32_t)op->len};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses, .next = UET_NEXT_REQ_STD, .cookie = op};
	uint32_t most;
	size_t piece;
	int ret;

	if (uet_pdc_room(link->pdc) <= UET_PLACES_KEPT)
		return -FI_EAGAIN;
	if (op->remote.raw)
		return op_borrow(link, op, now);
	if (!op->get && uet_pdc_backlogged(link->pdc))
		return -FI_EAGAIN;
	/* More than the peer can answer at once would only be refused. */
	if (op->get && link->asked >= UET_ASKED)
		return -FI_EAGAIN;
	send.payload = local_at(op, op->cut, &piece);
	if (op->get) /* pieces of our own memory don't matter until it comes */
		piece = op->len - op->cut;
	most = op->part < link->part ? op->part : link->part;
	req.part = piece < most ? (uint32_t)piece : most;
	if (req.part > op->len - op->cut)
		req.part = (uint32_t)(op->len - op->cut);
	req.som = op->cut == 0;
	req.eom = op->cut + req.part == op->len;
	send.ar = req.eom;
	if (op->get)
		ask_alone(&req);
	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	send.payload_len = op->get ? 0 : req.part;
	if (op->get)
		send.payload = NULL;
	ret = uet_pdc_send(link->pdc, &send, now);
	if (ret)
		return ret;
	op->cut += req.part;
	op->left++;
	op->asked += op->get;
	link->asked += op->get;
	return 0;
}

static bool pump_list(struct wire_link *link, struct list *list, uint64_t now)
{
	while (!list_empty(list)) {
		struct uet_move *op = container_of(list->next, struct uet_move, node);

		while (!op->err && op->cut < op->len) {
			if (op_cut(link, op, now))
				return false;
		}
		list_remove(&op->node);
	}
	return true;
}

bool uet_rma_pump(struct wire_link *link, uint64_t now)
{
	/* A get is a short word; what it brings takes nothing of our way. */
	bool asked = pump_list(link, &link->asking, now);

	return pump_list(link, &link->pending, now) && asked;
}

static int err_of(uint8_t rc)
{
	switch (rc) {
	case UET_RC_OK:
	case UET_RC_NULL:
		return 0;
	case UET_RC_BAD_MKEY:
		return -FI_ENOKEY;
	case UET_RC_PERM:
		return -FI_EACCES;
	case UET_RC_OUT_OF_RANGE:
		return -FI_EINVAL;
	default:
		return -FI_EIO;
	}
}

void uet_rma_done(struct wire_link *link, struct uet_move *op, int err,
		  const struct uet_pkt *resp)
{
	op->left--;
	if (err) {
		op->err = op->err ? op->err : -FI_ECONNRESET;
	} else if (resp && resp->pds.next == UET_NEXT_RESP) {
		if (err_of(resp->resp.rc) && !op->err)
			op->err = err_of(resp->resp.rc);
		link->events |= resp->resp.generation;
	}
	op_check(link, op);
}

void uet_rma_fail(struct wire_link *link, int err)
{
	for (unsigned i = 0; i < UET_OPS; i++) {
		struct uet_move *op = &link->op[i];

		if (!op->used || op->over)
			continue;
		op->err = op->err ? op->err : err;
		op->left = 0;
		op_check(link, op);
	}
}

/* ---- the target -------------------------------------------------------------------- */

static uint8_t rc_of(int err)
{
	switch (err) {
	case 0:
		return UET_RC_OK;
	case -FI_ENOKEY:
		return UET_RC_BAD_MKEY;
	case -FI_EACCES:
		return UET_RC_PERM;
	default:
		return UET_RC_OUT_OF_RANGE;
	}
}

/* Copies between a packet and the memory that it names; the key's owner waits for us. */
static int place(struct wire_ep *ep, const struct uet_ses_req *req, uint8_t *bytes,
		 bool write)
{
	uint64_t addr = req->offset + req->at;
	struct iovec iov[MEM_REGION_IOV];
	uint32_t count, incarnation;
	int ret;

	if (addr < req->offset)
		return -FI_EINVAL;
	atomic_store(&ep->using_key, req->match);
	atomic_store(&ep->using_any, true);
	/* All of it or nothing: each packet says how long the whole is. */
	ret = mem_keyview_find(ep->view, req->match, req->offset, req->length,
			       write ? FI_REMOTE_WRITE : FI_REMOTE_READ, iov, &count,
			       &incarnation);
	if (!ret)
		ret = mem_keyview_find(ep->view, req->match, addr, req->part,
				       write ? FI_REMOTE_WRITE : FI_REMOTE_READ, iov,
				       &count, &incarnation);
	for (uint32_t i = 0; !ret && i < count; i++) {
		if (write)
			ret = mem_copy(iov[i].iov_base, bytes, iov[i].iov_len);
		else
			ret = mem_copy(bytes, iov[i].iov_base, iov[i].iov_len);
		bytes += iov[i].iov_len;
	}
	atomic_store(&ep->using_any, false);
	return ret;
}

static enum uet_verdict answer(struct wire_link *link, const struct uet_ses_req *req,
			       int err, bool room, struct uet_reply *reply)
{
	/* Once for each operation, with its last packet: what counters want to hear. */
	bool last = req->op == UET_OP_READ ? req->hd : req->eom;
	uint32_t events = last ? mem_keytab_wanted(link->base.ep->keys) : 0;
	struct uet_ses_resp resp = {.op = UET_RESP_RESPONSE,
				    .rc = rc_of(err),
				    .generation = (uint8_t)events,
				    .message = req->message,
				    .job = req->job};

	if (!err && !events)
		return UET_TAKEN;
	if (!room)
		return UET_NO_BUFFER;
	reply->next = UET_NEXT_RESP;
	reply->len = (uint8_t)uet_resp_put(reply->bytes, UET_NEXT_RESP, &resp);
	return UET_REPLIED;
}

static struct uet_answer *answer_get(struct wire_link *link)
{
	for (unsigned i = 0; i < UET_ANSWERS; i++) {
		struct uet_answer *a = &link->answer[i];

		if (a->used)
			continue;
		if (!a->bytes)
			a->bytes = malloc(UET_PART_MAX);
		return a->bytes ? a : NULL;
	}
	return NULL;
}

/* The data goes as a request of our own, so that it is sent until it is there. */
static enum uet_verdict give(struct wire_link *link, const struct uet_pkt *pkt, bool room,
			     struct uet_reply *reply)
{
	const struct uet_ses_req *req = &pkt->req;
	struct uet_ses_resp resp = {.op = UET_RESP_WITH_DATA,
				    .rc = UET_RC_OK,
				    .message = req->message,
				    .job = req->job,
				    .read = req->message,
				    .at = (uint32_t)req->data,
				    .modified = (uint32_t)req->data + req->part,
				    .part = req->part};
	struct uet_answer *a = answer_get(link);
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses,
				.next = UET_NEXT_RESP_DATA,
				.ar = req->eom,
				.payload_len = req->part,
				.cookie = a};
	bool lowest = uet_pdc_lowest(link->pdc, pkt->pds.psn);
	int ret;

	/* The last answer, and the last place for it, are for what holds back all
	 * others. */
	if (!a || !room ||
	    (!lowest &&
	     (link->answers + 1 >= UET_ANSWERS || uet_pdc_room_back(link->pdc) <= 1)))
		return UET_NO_BUFFER;
	/* Our way may be narrower by now: then it goes in pieces. */
	if (req->part > UET_PART_MAX || req->data > UINT32_MAX - req->part)
		return answer(link, req, -FI_EINVAL, room, reply);
	ret = place(link->base.ep, req, a->bytes, false);
	if (ret)
		return answer(link, req, ret, room, reply);
	send.payload = a->bytes;
	send.ses_len = (uint32_t)uet_resp_put(ses, UET_NEXT_RESP_DATA, &resp);
	if (uet_pdc_send(link->pdc, &send, uet_ep_now()))
		return UET_NO_BUFFER;
	a->used = true;
	link->answers++;
	return answer(link, req, 0, room, reply);
}

/* Data that we asked for. */
static enum uet_verdict came(struct wire_link *link, const struct uet_pkt *pkt)
{
	const struct uet_ses_resp *resp = &pkt->resp;
	uint32_t id = resp->read;
	struct uet_move *op = id ? &link->op[(id - 1) % UET_OPS] : NULL;
	const uint8_t *from = pkt->payload;
	size_t at = resp->at, left = pkt->payload_len, piece;

	/* Of one that is over: nobody waits for it. */
	if (!op || !op->used || !op->get || op->over || op_id(link, op) != id ||
	    at > op->len || left > op->len - at)
		return UET_TAKEN;
	if (err_of(resp->rc)) {
		op->err = op->err ? op->err : err_of(resp->rc);
		op_check(link, op);
		return UET_TAKEN;
	}
	while (left) {
		uint8_t *to = local_at(op, at, &piece);

		piece = piece < left ? piece : left;
		memcpy(to, from, piece);
		from += piece;
		at += piece;
		left -= piece;
	}
	op->came += pkt->payload_len;
	if (op->asked) {
		op->asked--;
		link->asked--;
		uet_link_has_work(link);
	}
	op_check(link, op);
	return UET_TAKEN;
}

enum uet_verdict uet_rma_request(struct wire_link *link, const struct uet_pkt *pkt,
				 bool room, struct uet_reply *reply)
{
	if (pkt->pds.next == UET_NEXT_RESP_DATA)
		return came(link, pkt);
	if (pkt->req.op == UET_OP_WRITE) {
		/* place only reads it. */
		uint8_t *bytes = (uint8_t *)(uintptr_t)pkt->payload;

		/* Whoever answers must be able to before anything is done. */
		if (!room && pkt->req.eom && mem_keytab_wanted(link->base.ep->keys))
			return UET_NO_BUFFER;
		return answer(link, &pkt->req,
			      place(link->base.ep, &pkt->req, bytes, true), room, reply);
	}
	return give(link, pkt, room, reply);
}
