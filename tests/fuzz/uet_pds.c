/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that a peer may forge, into contexts in the middle of their work: whatever it
 * says, what leaves is valid and fits the windows, each packet of ours is over once, and
 * contexts go on or end.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "prov/wire/uet/uet_pds.h"
#include "tests/fuzz/fuzz.h"

#define MTU    256u
#define WINDOW 32u
#define SENT   8u
#define START  0xfffffffcu
#define MS     UINT64_C(1000000)

/* Ids and first numbers come from here: the inputs must be able to name them. */
struct world {
	struct uet_pds *pds;
	uint32_t draws;
	unsigned done[SENT];
	unsigned requests;
};

static const uint8_t nothing[MTU];

static enum uet_verdict on_request(void *arg, struct uet_pdc *pdc,
				   const struct uet_pkt *pkt, bool room,
				   struct uet_reply *reply)
{
	struct world *w = arg;

	(void)pdc;
	fuzz_require(pkt->payload_len <= MTU && pkt->ses);
	reply->next = UET_NEXT_RESP;
	reply->len = 12;
	memset(reply->bytes, 0, sizeof(reply->bytes));
	reply->bytes[0] = UET_RESP_RESPONSE;
	switch (w->requests++ % 4) {
	case 0:
		return UET_TAKEN;
	case 1:
		return room ? UET_REPLIED : UET_NO_BUFFER;
	case 2:
		return room ? UET_LATER : UET_NO_BUFFER;
	default:
		return UET_NO_BUFFER;
	}
}

static void on_done(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		    const struct uet_pkt *resp)
{
	unsigned *done = cookie;

	(void)arg;
	(void)pdc;
	fuzz_require(err <= 0 && (!err || !resp));
	fuzz_require(++*done == 1);
}

static int on_opened(void *arg, struct uet_pdc *pdc, const struct uet_pkt *pkt)
{
	(void)arg;
	(void)pdc;
	(void)pkt;
	return 0;
}

static void on_closed(void *arg, struct uet_pdc *pdc, int err, uint8_t code)
{
	(void)arg;
	(void)pdc;
	(void)code;
	fuzz_require(err <= 0);
}

/* What is drawn first is the id 1, third the first number, near the wrap. */
static uint64_t on_random(void *arg)
{
	struct world *w = arg;

	return ++w->draws == 3 ? START : w->draws;
}

static const struct uet_pds_events events = {on_request, on_done, on_opened, on_closed};

static void pull(struct world *w, uint64_t now)
{
	uint8_t bytes[UET_HEAD_MAX + MTU];
	struct uet_out out;
	struct uet_pkt pkt;

	for (unsigned n = 0; uet_pds_next(w->pds, now, &out); n++) {
		fuzz_require(n < 10000 && out.head_len <= UET_HEAD_MAX);
		memcpy(bytes, out.head, out.head_len);
		if (out.payload_len)
			memcpy(bytes + out.head_len, out.payload, out.payload_len);
		fuzz_require(uet_pkt_parse(bytes, out.head_len + out.payload_len, MTU,
					   &pkt) == 0);
		fuzz_require(!out.pdc || uet_pdc_open_packets(out.pdc) <= WINDOW);
	}
}

static void start(struct world *w, bool ordered)
{
	static const struct uet_ses_req req = {.op = UET_OP_SEND,
					       .som = true,
					       .eom = true,
					       .message = 1,
					       .length = 8,
					       .part = 8};
	struct uet_pds_config config = {.contexts = 4,
					.half_open = 2,
					.window = WINDOW,
					.responses = 3,
					.mtu = MTU,
					.random = on_random,
					.events = &events,
					.arg = w};
	struct uet_peer peer = {.host = {1}, .fep = 1};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses,
				.next = UET_NEXT_REQ_STD,
				.payload = nothing,
				.payload_len = 8};
	struct uet_pdc *pdc;

	memset(w, 0, sizeof(*w));
	fuzz_require(uet_pds_open(&config, &w->pds) == 0);
	fuzz_require(uet_pdc_dial(w->pds, &peer, ordered, NULL, MS, &pdc) == 0);
	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	for (unsigned i = 0; i < SENT; i++) {
		send.cookie = &w->done[i];
		fuzz_require(uet_pdc_send(pdc, &send, MS) == 0);
	}
	pull(w, MS);
}

/* The datagram, three times, with time between; then the peer is silent for good. */
static void feed(const uint8_t *data, size_t size, bool ordered)
{
	struct uet_in in = {.from = {.host = {1}, .fep = 1}};
	struct uet_pkt pkt;
	struct world w;
	uint64_t now = MS;

	start(&w, ordered);
	for (unsigned i = 0; i < 3; i++) {
		now += 20000;
		fuzz_require(uet_pkt_parse(data, size, MTU, &pkt) == 0);
		uet_pds_rx(w.pds, &in, &pkt, now);
		pull(&w, now);
	}
	for (unsigned i = 0; i < 3000 && uet_pds_due(w.pds) != UINT64_MAX; i++) {
		now = uet_pds_due(w.pds) > now ? uet_pds_due(w.pds) : now;
		uet_pds_tick(w.pds, now);
		pull(&w, now);
	}
	for (unsigned i = 0; i < SENT; i++)
		fuzz_require(w.done[i] == 1);
	uet_pds_close(w.pds);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	struct uet_pkt pkt;

	if (uet_pkt_parse(data, size, MTU, &pkt))
		return false;
	feed(data, size, false);
	feed(data, size, true);
	return true;
}

/* What a peer would say: acks, refusals, control, requests of its own and back. */
size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const struct uet_pds_head seeds[] = {
		{.type = UET_ACK_CC,
		 .cack = START + 1,
		 .psn = START + 4,
		 .sack_base = START + 3,
		 .sack_bits = 6,
		 .cc = {.service = 9, .received = 2, .ooo = 2}},
		{.type = UET_ACK, .cack = START + 7, .psn = START + 7},
		{.type = UET_ACK_CC, .probe = true, .opaque = 1, .cack = START + 3},
		{.type = UET_ACK_CC,
		 .cack = START - 1,
		 .psn = START,
		 .next = UET_NEXT_RESP,
		 .ask = UET_ASK_CLEAR},
		{.type = UET_NACK, .code = UET_NACK_NO_BUFFER, .psn = START + 2},
		{.type = UET_NACK, .code = UET_NACK_ROD_OOO, .psn = START},
		{.type = UET_NACK, .code = UET_NACK_PROCESSING, .psn = START + 1},
		{.type = UET_NACK, .code = UET_NACK_INV_DPDCID, .psn = START},
		{.type = UET_NACK, .code = UET_NACK_TRIMMED, .psn = START + 3},
		{.type = UET_CP, .ctl = UET_CTL_PROBE, .psn = START, .payload = START},
		{.type = UET_CP, .ctl = UET_CTL_ACK_REQ, .psn = START},
		{.type = UET_CP, .ctl = UET_CTL_CLEAR_CMD, .payload = START + 2},
		{.type = UET_CP, .ctl = UET_CTL_CLOSE_REQ, .psn = START},
		{.type = UET_RUD_REQ,
		 .next = UET_NEXT_REQ_STD,
		 .psn = START,
		 .clear = START - 1},
		{.type = UET_ROD_REQ,
		 .next = UET_NEXT_REQ_STD,
		 .psn = START,
		 .clear = START - 1},
		{.type = UET_RUD_REQ,
		 .next = UET_NEXT_REQ_STD,
		 .syn = true,
		 .syn_offset = 3,
		 .psn = 2,
		 .clear = 1},
	};
	static const struct uet_ses_req req = {.op = UET_OP_SEND,
					       .som = true,
					       .eom = true,
					       .message = 5,
					       .length = 4,
					       .part = 4};
	static const struct uet_ses_resp resp = {.op = UET_RESP_RESPONSE,
						 .rc = UET_RC_NO_MATCH};
	struct uet_pds_head h;
	size_t len;

	if (number >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	memset(room, 0, FUZZ_ROOM);
	h = seeds[number];
	h.spdcid = 77;
	h.dpdcid = h.syn ? 0 : 1;
	len = uet_pds_put(room, &h);
	if (h.next == UET_NEXT_REQ_STD)
		return len + uet_req_put(room + len, &req) + req.part;
	return h.next ? len + uet_resp_put(room + len, h.next, &resp) : len;
}
