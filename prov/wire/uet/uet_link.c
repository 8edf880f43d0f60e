/* SPDX-License-Identifier: BSD-2-Clause */
/* Links; see uet_link.h. */
#include "config.h"

#include "prov/wire/uet/uet_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/uet/uet.h"
#include "prov/wire/uet/uet_leave.h"
#include "prov/wire/uet/uet_lend.h"
#include "prov/wire/uet/uet_rma.h"

/* Message ids go round, and 0 is none. */
#define IDS 65535u

static uint16_t id_of(uint64_t number)
{
	return (uint16_t)(1 + number % IDS);
}

/* ---- coming, going ----------------------------------------------------------------- */

struct wire_link *uet_link_new(struct wire_ep *ep, const struct wire_addr *peer)
{
	struct wire_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->base = (struct wire_link_base){
		.ops = &uet_wire_ops, .ep = ep, .peer = *peer, .slot = &wire_slot_none};
	list_init(&link->news);
	list_init(&link->pump);
	list_init(&link->asking);
	list_init(&link->pending);
	list_init(&link->giving);
	for (unsigned i = 0; i < UET_OPS; i++)
		list_init(&link->op[i].node);
	for (unsigned i = 0; i < UET_GIVES; i++)
		list_init(&link->give[i].node);
	list_push_back(&ep->links, &link->node);
	return link;
}

/* UET_PACKET bytes; NULL: there are none. */
static uint8_t *bytes_get(struct wire_link *link)
{
	return link->spares ? link->spare[--link->spares] : malloc(UET_PACKET);
}

static void bytes_put(struct wire_link *link, uint8_t **bytes)
{
	link->spare[link->spares++] = *bytes;
	*bytes = NULL;
}

void uet_link_free(struct wire_link *link)
{
	uet_leave_forget(link->base.ep, &link->ping, sizeof(link->ping));
	list_remove(&link->news);
	list_remove(&link->pump);
	list_remove(&link->node);
	for (unsigned i = 0; i < UET_MSGS; i++) {
		free(link->out_msg[i].bytes);
		free(link->in_msg[i].bytes);
	}
	while (link->spares)
		free(link->spare[--link->spares]);
	for (unsigned i = 0; i < UET_ANSWERS; i++)
		free(link->answer[i].bytes);
	uet_loans_end(link);
	uet_sock_unfix(link->base.ep->sock, &link->base.peer);
	free(link->ways);
	free(link);
}

void uet_link_has_news(struct wire_link *link)
{
	if (list_empty(&link->news))
		list_push_back(&link->base.ep->news, &link->news);
}

void uet_link_has_work(struct wire_link *link)
{
	if (list_empty(&link->pump))
		list_push_back(&link->base.ep->pump, &link->pump);
}

void uet_link_work(struct wire_link *link)
{
	uint64_t now;

	uet_link_has_work(link);
	if (link->base.ep->busy)
		return;
	now = uet_ep_now();
	uet_link_pump(link, now);
	uet_leave(link->base.ep, now);
}

uint32_t uet_link_part(const struct wire_link *link, size_t len)
{
	size_t packets = (len + link->part - 1) / link->part;
	size_t part = packets ? (len + packets - 1) / packets : 0;

	/* Whole lines of a cache, as long as they make no more packets. */
	part = (part + 63) & ~(size_t)63;
	return part < link->part ? (uint32_t)part : link->part;
}

bool uet_link_quiet(const struct wire_link *link)
{
	return link->state != UET_LINK_UP || !link->pdc ||
	       (link->tail == link->head && !uet_pdc_open_packets(link->pdc));
}

void uet_link_over(struct wire_link *link, int err)
{
	if (link->state == UET_LINK_OVER)
		return;
	/* Who was never told of it need not hear that it ends. */
	link->tell_down = link->wanted || link->state == UET_LINK_UP;
	link->state = UET_LINK_OVER;
	link->err = err;
	link->abort = link->pdc != NULL;
	uet_link_has_news(link);
}

void uet_link_refused(struct wire_link *link)
{
	char text[WIRE_ADDR_TEXT_MAX];

	if (link->state == UET_LINK_UP)
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"peer %s is gone: its host says that nobody listens there\n",
			wire_addr_text(&link->base.peer, text));
	uet_link_over(link,
		      link->state == UET_LINK_UP ? -FI_ECONNRESET : -FI_ECONNREFUSED);
}

/* ---- what the ends say to each other ----------------------------------------------- */

static int say_bytes(struct wire_link *link, void *bytes, size_t len, uint64_t now)
{
	struct uet_ses_req req = {.op = UET_OP_SEND,
				  .som = true,
				  .eom = true,
				  .message = 1,
				  .index = UET_INDEX_LINK,
				  .initiator = uet_door_port(&link->base.ep->base.addr),
				  .match = link->in,
				  .length = (uint32_t)len,
				  .part = (uint32_t)len};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses,
				.next = UET_NEXT_REQ_STD,
				.ar = true,
				.payload = bytes,
				.payload_len = (uint32_t)len,
				.cookie = bytes};
	int ret;

	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	ret = uet_pdc_send(link->pdc, &send, now);
	if (!ret)
		link->told = link->in;
	return ret;
}

static size_t hello_fill(const struct wire_link *link, uint8_t kind, uint16_t err,
			 void *bytes)
{
	bool sizes = kind == UET_SAID_HELLO || kind == UET_SAID_ANSWER;
	struct uet_hello hello = {.kind = kind,
				  .err = err,
				  .incarnation = link->base.ep->incarnation,
				  .to = link->base.peer_incarnation,
				  .part = sizes ? link->part : 0,
				  .packet = sizes ? UET_PACKET : 0,
				  .bare = sizes && link->inside};

	if (sizes)
		uet_ways_say(link->base.ep, &hello);
	return uet_hello_put(bytes, &hello);
}

int uet_link_say(struct wire_link *link, uint8_t kind, uint16_t err, uint64_t now)
{
	uint8_t *bytes = malloc(UET_HELLO_MAX);
	size_t len;
	int ret;

	if (!bytes)
		return -FI_ENOMEM;
	len = hello_fill(link, kind, err, bytes);
	/* Outside of the link: on_done frees it. */
	ret = say_bytes(link, bytes, len, now);
	if (ret)
		free(bytes);
	return ret;
}

int uet_link_ping(struct wire_link *link, uint64_t now)
{
	return say_bytes(link, &link->ping, sizeof(link->ping), now);
}

/* The peer has handed up so many of our messages. */
static bool taken(struct wire_link *link, uint64_t count)
{
	if (count > link->next)
		return false;
	if (count > link->taken)
		link->taken = count;
	return true;
}

static void link_up(struct wire_link *link, uint64_t now)
{
	uet_ways_open(link, now);
	link->state = UET_LINK_UP;
	link->base.caps = uet_wire_ops.caps;
	uet_pdc_set_payload(link->pdc, link->part);
	link->bare = link->says_bare && link->inside && !link->ways;
	if (link->bare)
		uet_pdc_one_way(link->pdc);
	hello_fill(link, UET_SAID_PING, 0, &link->ping);
	link->tell_up = true;
	uet_link_has_news(link);
	uet_link_has_work(link);
}

static enum uet_verdict said(struct wire_link *link, const struct uet_pkt *pkt)
{
	uint64_t mine = link->base.ep->incarnation, now = uet_ep_now();
	struct uet_hello h;

	if (!uet_hello_parse(pkt->payload, pkt->payload_len, &h) ||
	    !taken(link, pkt->req.match) || (h.to && h.to != mine) ||
	    (link->base.peer_incarnation &&
	     h.incarnation != link->base.peer_incarnation)) {
		uet_link_over(link, -FI_ECONNRESET);
		return UET_TAKEN;
	}
	if (h.kind == UET_SAID_HELLO && link->state == UET_LINK_ANSWERED) {
		/* What both ends can take. */
		link->part = h.part < link->part ? h.part : link->part;
		link->says_bare = h.bare;
		uet_ways_hear(link, &h);
		if (uet_link_say(link, UET_SAID_ANSWER, 0, now))
			uet_link_over(link, -FI_ECONNRESET);
	} else if (h.kind == UET_SAID_ANSWER && link->state == UET_LINK_DIALLED &&
		   h.part <= link->part) {
		link->part = h.part;
		link->base.peer_incarnation = h.incarnation;
		link->says_bare = h.bare;
		uet_ways_hear(link, &h);
		link_up(link, now);
		if (uet_link_say(link, UET_SAID_READY, 0, now))
			uet_link_over(link, -FI_ECONNRESET);
	} else if (h.kind == UET_SAID_READY && link->state == UET_LINK_ANSWERED) {
		link_up(link, now);
	} else if (h.kind == UET_SAID_REFUSE) {
		uet_link_over(link, -(int)h.err);
	} else if (h.kind == UET_SAID_BYE) {
		uet_link_over(link, -FI_ESHUTDOWN);
	} else if (h.kind != UET_SAID_PING) {
		uet_link_over(link, -FI_ECONNRESET);
	}
	return UET_TAKEN;
}

/* ---- packets of the layers above --------------------------------------------------- */

void *uet_pkt_reserve(struct wire_link *link, size_t len, enum wire_class cls)
{
	uint64_t most = cls == WIRE_CONTROL ? UET_MSGS : UET_MSGS_DATA;
	struct uet_msg_out *m = &link->out_msg[link->head % UET_MSGS];

	if (link->state != UET_LINK_UP || link->head - link->tail >= most ||
	    link->head - link->taken >= most || len > UET_PACKET)
		return NULL;
	if (!m->bytes)
		m->bytes = bytes_get(link);
	return m->bytes;
}

void uet_pkt_commit(struct wire_link *link, void *pkt, size_t len)
{
	struct uet_msg_out *m = &link->out_msg[link->head % UET_MSGS];

	(void)pkt;
	*m = (struct uet_msg_out){.len = (uint32_t)len, .bytes = m->bytes};
	link->head++;
	uet_link_work(link);
}

/* One packet of the message that is next; false: the context has no room. */
static bool cut(struct wire_link *link, uint64_t now)
{
	struct uet_msg_out *m = &link->out_msg[link->next % UET_MSGS];
	uint32_t left = m->len - link->at;
	uint32_t part = left < link->part ? left : link->part;
	struct uet_ses_req req = {.op = UET_OP_SEND,
				  .som = link->at == 0,
				  .eom = part == left,
				  .message = id_of(link->next),
				  .index = UET_INDEX_PACKETS,
				  .initiator = uet_door_port(&link->base.ep->base.addr),
				  .match = link->in,
				  .at = link->at,
				  .length = m->len,
				  .part = part};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses,
				.next = UET_NEXT_REQ_STD,
				.ar = part == left &&
				      link->head - link->tail > UET_MSGS / 4,
				.payload = m->bytes + link->at,
				.payload_len = part,
				.cookie = m};

	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	if (uet_pdc_send(link->pdc, &send, now))
		return false;
	m->left++;
	link->told = link->in;
	link->at += part;
	if (part == left) {
		m->cut = true;
		link->next++;
		link->at = 0;
	}
	return true;
}

void uet_link_pump(struct wire_link *link, uint64_t now)
{
	list_remove(&link->pump);
	if (link->state != UET_LINK_UP || !link->pdc)
		return;
	while (link->next < link->head) {
		if (!cut(link, now)) {
			uet_link_has_work(link);
			return;
		}
	}
	if (link->in - link->told >= UET_MSGS_TELL && uet_link_ping(link, now))
		uet_link_has_work(link);
	link->gives_first = !link->gives_first;
	if (link->gives_first && !uet_give_pump(link, now))
		uet_link_has_work(link);
	if (!uet_rma_pump(link, now))
		uet_link_has_work(link);
	if (!link->gives_first && !uet_give_pump(link, now))
		uet_link_has_work(link);
}

static void msg_done(struct wire_link *link, struct uet_msg_out *m)
{
	m->left--;
	if (m->cut && !m->left)
		bytes_put(link, &m->bytes);
	while (link->tail < link->next && link->out_msg[link->tail % UET_MSGS].cut &&
	       !link->out_msg[link->tail % UET_MSGS].left)
		link->tail++;
}

/* Into its message's place, whatever came before it. */
static enum uet_verdict place(struct wire_link *link, const struct uet_pkt *pkt)
{
	/* Its sender knows what was handed up, so it isn't much further than we are. */
	uint32_t ahead = (uint32_t)((pkt->req.message + IDS - id_of(link->in)) % IDS);
	struct uet_msg_in *m = &link->in_msg[(link->in + ahead) % UET_MSGS];

	if (ahead >= UET_MSGS || !taken(link, pkt->req.match) || !pkt->req.length ||
	    pkt->req.length > UET_PACKET || (m->len && m->len != pkt->req.length) ||
	    pkt->req.at > pkt->req.length ||
	    pkt->payload_len > pkt->req.length - pkt->req.at) {
		uet_link_over(link, -FI_ECONNRESET);
		return UET_TAKEN;
	}
	if (!m->bytes)
		m->bytes = bytes_get(link);
	if (!m->bytes)
		return UET_NO_BUFFER;
	memcpy(m->bytes + pkt->req.at, pkt->payload, pkt->payload_len);
	m->len = pkt->req.length;
	m->got += pkt->payload_len;
	if (ahead == 0 && m->got >= m->len)
		uet_link_has_news(link);
	return UET_TAKEN;
}

/* ---- the delivery machine's events ------------------------------------------------- */

static enum uet_verdict on_request(void *arg, struct uet_pdc *pdc,
				   const struct uet_pkt *pkt, bool room,
				   struct uet_reply *reply)
{
	struct wire_link *link = uet_pdc_ctx(pdc);

	(void)arg;
	if (!link || link->state == UET_LINK_OVER)
		return UET_TAKEN;
	if (pkt->pds.next == UET_NEXT_RESP_DATA)
		return uet_rma_request(link, pkt, room, reply);
	if (pkt->pds.next == UET_NEXT_REQ_STD) {
		if (pkt->req.index == UET_INDEX_LINK && pkt->req.op == UET_OP_SEND)
			return said(link, pkt);
		if (pkt->req.index == UET_INDEX_PACKETS && pkt->req.op == UET_OP_SEND)
			return place(link, pkt);
		if (pkt->req.index == UET_INDEX_MEMORY &&
		    (pkt->req.op == UET_OP_WRITE || pkt->req.op == UET_OP_READ))
			return uet_rma_request(link, pkt, room, reply);
		if (pkt->req.index == UET_INDEX_LENT && pkt->req.op == UET_OP_READ)
			return uet_give_request(link, pkt, room, reply);
	}
	uet_link_over(link, -FI_ECONNRESET);
	return UET_TAKEN;
}

static void on_done(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		    const struct uet_pkt *resp)
{
	struct wire_link *link = uet_pdc_ctx(pdc);
	struct wire_ep *ep = arg;
	uint8_t *at = cookie;

	if (!link)
		return;
	if (at >= (uint8_t *)link->out_msg &&
	    at < (uint8_t *)(link->out_msg + UET_MSGS)) {
		uet_leave_forget(ep, ((struct uet_msg_out *)cookie)->bytes, UET_PACKET);
		msg_done(link, cookie);
		uet_link_has_work(link);
	} else if (at >= (uint8_t *)link->op && at < (uint8_t *)(link->op + UET_OPS)) {
		struct uet_move *op = cookie;

		for (uint32_t i = 0; i < op->local_count; i++)
			uet_leave_forget(ep, op->local[i].iov_base, op->local[i].iov_len);
		uet_rma_done(link, op, err, resp);
		uet_link_has_work(link);
	} else if (at >= (uint8_t *)link->answer &&
		   at < (uint8_t *)(link->answer + UET_ANSWERS)) {
		struct uet_answer *a = cookie;

		uet_leave_forget(ep, a->bytes, UET_PART_MAX);
		a->used = false;
		link->answers--;
	} else if (at >= (uint8_t *)link->give &&
		   at < (uint8_t *)(link->give + UET_GIVES)) {
		uet_give_done(cookie);
		uet_link_has_work(link);
	} else if (cookie != &link->ping) {
		uet_leave_forget(ep, cookie, UET_HELLO_MAX);
		free(cookie);
	}
}

/* The first packet must say who it is. */
static int on_opened(void *arg, struct uet_pdc *pdc, const struct uet_pkt *pkt)
{
	struct wire_ep *ep = arg;
	struct wire_link *link;
	struct wire_addr door;
	struct uet_hello h;
	int err;

	if (pkt->pds.next != UET_NEXT_REQ_STD || pkt->req.op != UET_OP_SEND ||
	    pkt->req.index != UET_INDEX_LINK ||
	    !uet_hello_parse(pkt->payload, pkt->payload_len, &h) ||
	    h.kind != UET_SAID_HELLO)
		return -EPROTO;
	uet_ep_door(uet_pdc_peer(pdc), ep->base.addr.sa.sa_family, &door);
	link = uet_link_new(ep, &door);
	if (!link)
		return -ENOMEM;
	link->state = UET_LINK_ANSWERED;
	link->base.peer_incarnation = h.incarnation;
	link->inside = uet_ep_inside(ep, &door);
	link->part = uet_ep_part(ep, 0, &door, &err);
	if (!link->part) {
		uet_link_free(link);
		return -EHOSTUNREACH;
	}
	link->pdc = pdc;
	uet_pdc_set_ctx(pdc, link);
	return 0;
}

static void on_closed(void *arg, struct uet_pdc *pdc, int err, uint8_t code)
{
	struct wire_link *link = uet_pdc_ctx(pdc);
	char text[WIRE_ADDR_TEXT_MAX];

	(void)arg;
	if (!link)
		return;
	link->pdc = NULL;
	link->abort = false;
	if (link->state == UET_LINK_UP && err == -ETIMEDOUT)
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"peer %s is gone: it says nothing "
			"(FI_WEFT_UET_TIMEOUT=%" PRIu64 ")\n",
			wire_addr_text(&link->base.peer, text),
			prov_params()->uet_timeout_ms);
	else if (link->state == UET_LINK_UP)
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "peer %s is gone: %s%s%s\n",
			wire_addr_text(&link->base.peer, text), strerror(-err),
			code ? ", it said " : "", code ? uet_nack_name(code) : "");
	uet_link_over(link,
		      link->state == UET_LINK_UP ? -FI_ECONNRESET : -FI_ECONNREFUSED);
	uet_link_has_news(link);
}

const struct uet_pds_events uet_link_events = {
	.request = on_request, .done = on_done, .opened = on_opened, .closed = on_closed};

/* ---- telling ----------------------------------------------------------------------- */

static int tell_packets(struct wire_link *link, int budget)
{
	struct wire_ep *ep = link->base.ep;
	int n = 0;

	while (n < budget && !link->gone) {
		struct uet_msg_in *m = &link->in_msg[link->in % UET_MSGS];

		if (!m->len || m->got < m->len)
			return n;
		ep->events->packet(ep->arg, link, m->bytes, m->len);
		m->len = m->got = 0;
		bytes_put(link, &m->bytes);
		link->in++;
		n++;
		if (link->in - link->told == UET_MSGS_TELL)
			uet_link_has_work(link);
	}
	if (!link->gone)
		uet_link_has_news(link);
	return n;
}

static int tell_ops(struct wire_link *link)
{
	struct wire_ep *ep = link->base.ep;
	int n = 0;

	for (unsigned i = 0; i < UET_OPS && link->over && !link->gone; i++) {
		struct uet_move *op = &link->op[i];

		if (!op->used || !op->over)
			continue;
		op->used = false;
		link->over--;
		n++;
		ep->events->segment_done(ep->arg, link, op->user, op->err);
	}
	return n;
}

int uet_link_tell(struct wire_link *link, int budget)
{
	struct wire_ep *ep = link->base.ep;
	int n = 0;

	if (link->abort && link->pdc) {
		link->abort = false;
		uet_pdc_abort(link->pdc, -ECONNRESET, uet_ep_now());
	}
	if (link->tell_up && !link->gone) {
		link->tell_up = false;
		n++;
		ep->events->link_up(ep->arg, link);
	}
	if (!link->gone && (link->state == UET_LINK_UP || link->tell_down))
		n += tell_packets(link, budget);
	if (link->state == UET_LINK_OVER)
		uet_rma_fail(link, -FI_ECONNRESET);
	n += tell_ops(link);
	if (link->gone || link->state != UET_LINK_OVER || !list_empty(&link->news))
		return n;
	link->gone = true;
	list_remove(&link->node);
	list_push_back(&ep->dead, &link->node);
	if (link->tell_down)
		ep->events->link_down(ep->arg, link, link->err);
	return n + 1;
}

/* ---- the wire's calls -------------------------------------------------------------- */

int uet_dial(struct wire_ep *ep, const struct wire_addr *to, void *peer_ctx,
	     struct wire_link **out)
{
	uint64_t now = uet_ep_now();
	struct wire_link *link;
	struct uet_peer peer;
	uint32_t part;
	int err = 0;

	/* Endpoints with contexts aren't there: see README.md. */
	if (to->sa.sa_family != ep->base.addr.sa.sa_family || to->context)
		return -FI_EHOSTUNREACH;
	part = uet_ep_part(ep, 0, to, &err);
	if (!part)
		return -FI_EHOSTUNREACH;
	link = uet_link_new(ep, to);
	if (!link)
		return -FI_ENOMEM;
	link->wanted = true;
	link->part = part;
	link->inside = uet_ep_inside(ep, to);
	link->base.peer_ctx = peer_ctx;
	uet_ep_peer(to, &peer);
	err = uet_pdc_dial(ep->pds, &peer, false, link, now, &link->pdc);
	if (!err) {
		err = uet_link_say(link, UET_SAID_HELLO, 0, now);
		if (err)
			uet_pdc_abort(link->pdc, -ECONNRESET, now);
	}
	if (err) {
		uet_link_free(link);
		return err == -EAGAIN ? -FI_EAGAIN : -FI_ENOMEM;
	}
	*out = link;
	uet_leave(ep, now);
	return 0;
}

void uet_hangup(struct wire_link *link)
{
	struct wire_ep *ep = link->base.ep;
	uint64_t now = uet_ep_now();

	link->gone = true;
	link->state = UET_LINK_OVER;
	if (link->pdc && link->base.peer_incarnation &&
	    uet_link_say(link, UET_SAID_BYE, 0, now) == 0)
		uet_leave(ep, now);
	list_remove(&link->node);
	list_push_back(&ep->dead, &link->node);
}

uint32_t uet_events(struct wire_link *link)
{
	return link->events;
}
