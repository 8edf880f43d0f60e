/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of the uet wire: what uet_pkt_parse accepts is within its limits, names bytes
 * that are there, and means the same after it was written again.
 */
#include "config.h"

#include <string.h>

#include "prov/wire/uet/uet_wire.h"
#include "tests/fuzz/fuzz.h"

#define MTU 256u

static size_t put(uint8_t *to, const struct uet_pkt *pkt)
{
	size_t len = uet_pds_put(to, &pkt->pds);

	if (pkt->pds.next == UET_NEXT_REQ_STD)
		return len + uet_req_put(to + len, &pkt->req);
	if (pkt->pds.next != UET_NEXT_NONE)
		return len + uet_resp_put(to + len, pkt->pds.next, &pkt->resp);
	return len;
}

static bool same(const struct uet_pkt *a, const struct uet_pkt *b)
{
	if (memcmp(&a->pds, &b->pds, sizeof(a->pds)) != 0 || a->ses_len != b->ses_len)
		return false;
	if (a->pds.next == UET_NEXT_REQ_STD)
		return memcmp(&a->req, &b->req, sizeof(a->req)) == 0;
	return a->pds.next == UET_NEXT_NONE ||
	       memcmp(&a->resp, &b->resp, sizeof(a->resp)) == 0;
}

static void check_request(const struct uet_ses_req *r, uint32_t here)
{
	fuzz_require(r->message != 0 && r->job < 1u << 24 && r->pid < 1u << 12);
	fuzz_require(r->index < 1u << 12 && r->length <= UET_MESSAGE_MAX);
	fuzz_require(r->part <= MTU && (uint64_t)r->at + r->part <= r->length);
	fuzz_require(r->offset + r->length >= r->offset);
	fuzz_require(here == (r->op == UET_OP_READ ? 0 : r->part));
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t again[UET_HEAD_MAX + MTU];
	struct uet_pkt pkt, back;
	size_t len;

	memset(&pkt, 0, sizeof(pkt));
	memset(&back, 0, sizeof(back));
	if (uet_pkt_parse(data, size, MTU, &pkt))
		return false;
	if (pkt.pds.next != UET_NEXT_NONE)
		fuzz_require(pkt.ses > data && pkt.payload == pkt.ses + pkt.ses_len &&
			     pkt.payload + pkt.payload_len == data + size);
	fuzz_require(pkt.payload_len <= MTU && pkt.ses_len <= UET_SES_MAX);
	if (pkt.pds.next == UET_NEXT_REQ_STD)
		check_request(&pkt.req, pkt.payload_len);
	len = put(again, &pkt);
	fuzz_require(len + pkt.payload_len == size);
	if (pkt.payload_len > 0)
		memcpy(again + len, pkt.payload, pkt.payload_len);
	fuzz_require(uet_pkt_parse(again, size, MTU, &back) == 0 && same(&pkt, &back));
	return true;
}

/* One of each: requests of every operation, responses, acks, a nack, control. */
size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const struct uet_ses_req reqs[] = {
		{.op = UET_OP_NOOP, .som = true, .eom = true},
		{.op = UET_OP_WRITE, .som = true, .eom = true, .length = 8},
		{.op = UET_OP_WRITE, .at = 256, .length = 1000, .part = 100},
		{.op = UET_OP_SEND, .eom = true, .at = 256, .length = 300, .part = 44},
		{.op = UET_OP_READ, .som = true, .eom = true, .length = 200},
		{.op = UET_OP_READ, .at = 256, .length = 1000, .part = 256},
		{.op = UET_OP_TAGGED_SEND, .som = true, .length = 1000},
		{.op = UET_OP_RNDV_SEND,
		 .som = true,
		 .eom = true,
		 .length = 1000,
		 .rndv = {.eager = 20}},
		{.op = UET_OP_ATOMIC, .som = true, .eom = true, .length = 16},
		{.op = UET_OP_FETCH_ATOMIC,
		 .som = true,
		 .eom = true,
		 .length = 8,
		 .amo = {.op = UET_AMO_CSWAP}},
		{.op = UET_OP_MSG_ERROR, .eom = true, .at = 8, .length = 16},
	};
	static const uint8_t parts[] = {0, 8, 100, 44, 0, 0, 200, 20, 16, 0, 0};
	const unsigned count = sizeof(reqs) / sizeof(reqs[0]);
	struct uet_pkt pkt = {.pds = {.spdcid = 1, .dpdcid = 2, .psn = 3, .cack = 2}};
	uint32_t payload = 0;
	size_t len;

	memset(room, 0, FUZZ_ROOM);
	if (number < count) {
		pkt.pds.type = number % 2 ? UET_RUD_REQ : UET_ROD_REQ;
		pkt.pds.next = UET_NEXT_REQ_STD;
		pkt.pds.syn = number % 3 == 0;
		pkt.pds.clear = 2;
		pkt.req = reqs[number];
		pkt.req.message = 7;
		payload = parts[number];
	} else if (number < count + 6) {
		static const uint8_t next[] = {UET_NEXT_NONE,	   UET_NEXT_RESP,
					       UET_NEXT_RESP_DATA, UET_NEXT_RESP_DATA,
					       UET_NEXT_NONE,	   UET_NEXT_RESP_SMALL};
		unsigned i = number - count;

		pkt.pds.type = i == 3 ? UET_RUD_REQ : i % 2 ? UET_ACK : UET_ACK_CC;
		pkt.pds.next = next[i];
		pkt.resp = (struct uet_ses_resp){.op = i == 1 ? UET_RESP_RESPONSE
							      : UET_RESP_WITH_DATA,
						 .rc = UET_RC_OK,
						 .modified = 300};
		payload = pkt.resp.part = i >= 2 && i != 4 ? 12 : 0;
	} else if (number == count + 6) {
		pkt.pds.type = UET_NACK;
		pkt.pds.code = UET_NACK_ROD_OOO;
	} else if (number == count + 7) {
		pkt.pds.type = UET_CP;
		pkt.pds.ctl = UET_CTL_PROBE;
	} else {
		return 0;
	}
	len = put(room, &pkt);
	return len + payload;
}
