/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers' bytes, written down by hand, and what the validator refuses. */
#include "config.h"

#include <errno.h>

#include "prov/wire/uet/uet_wire.h"
#include "util/tap.h"

#define MTU 4096u

struct golden {
	const char *what;
	struct uet_pds_head pds;
	struct uet_ses_req req;
	struct uet_ses_resp resp;
	size_t payload;
	size_t len; /* headers */
	uint8_t bytes[UET_HEAD_MAX];
};

/* An unordered request in the middle of a message: a write of 10000 bytes at 4096. */
static const struct golden write_middle = {
	.what = "write, second packet, unordered",
	.pds = {.type = UET_RUD_REQ,
		.next = UET_NEXT_REQ_STD,
		.retx = true,
		.ar = true,
		.spdcid = 0x1234,
		.dpdcid = 0xabcd,
		.psn = 0x00000002,
		.clear = 0xfffffffe},
	.req = {.op = UET_OP_WRITE,
		.dc = true,
		.rel = true,
		.hd = true,
		.generation = 0x77,
		.message = 0x0102,
		.job = 0xa1b2c3,
		.pid = 0x456,
		.index = 0x789,
		.offset = 0x1122334455667788,
		.initiator = 0xdeadbeef,
		.match = 0x8000000000000001,
		.at = 4096,
		.length = 10000,
		.part = 4096},
	.payload = 4096,
	.len = 56,
	.bytes =
		{/* 00010 0011 0011000 */
		 0x11, 0x98, 0xff, 0xfc, 0, 0, 0, 2, 0x12, 0x34, 0xab, 0xcd,
		 /* SES */
		 0x01, 0x2c, 0x01, 0x02, 0x77, 0xa1, 0xb2, 0xc3, 0x04, 0x56, 0x07, 0x89,
		 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xde, 0xad, 0xbe, 0xef,
		 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0, 0, 0, 0x10, 0, 0, 0, 0x27,
		 0x10},
};

/* The packet that opens an ordered context, 4095 after the first; psn wrapped. */
static const struct golden send_syn = {
	.what = "tagged send, one packet, ordered, syn",
	.pds = {.type = UET_ROD_REQ,
		.next = UET_NEXT_REQ_STD,
		.syn = true,
		.rod = true,
		.spdcid = 0x8001,
		.syn_offset = 0xfff,
		.psn = 0x00000ffe,
		.clear = 0xfffffffe},
	.req = {.op = UET_OP_TAGGED_SEND,
		.eom = true,
		.som = true,
		.message = 1,
		.match = 0x42,
		.data = 0x0102030405060708,
		.length = 3,
		.part = 3},
	.payload = 3,
	.len = 56,
	.bytes =
		{/* 00011 0011 0000100 */
		 0x19, 0x84, 0xf0, 0x00, 0, 0, 0x0f, 0xfe, 0x80, 0x01, 0x0f, 0xff,
		 /* SES */
		 0x09, 0x03, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 3},
};

static const struct golden rendezvous = {
	.what = "rendezvous, its early part in one packet",
	.pds = {.type = UET_RUD_REQ,
		.next = UET_NEXT_REQ_STD,
		.spdcid = 1,
		.dpdcid = 2,
		.psn = 5,
		.clear = 4},
	.req = {.op = UET_OP_RNDV_TSEND,
		.eom = true,
		.som = true,
		.message = 9,
		.length = 0x00100000,
		.part = 16,
		.rndv = {.eager = 16,
			 .generation = 0xee,
			 .pid = 0xabc,
			 .index = 0xdef,
			 .offset = 0x10,
			 .key = 0x20}},
	.payload = 16,
	.len = 80,
	.bytes = {0x11, 0x80, 0xff, 0xff, 0, 0, 0, 5, 0, 1, 0, 2,
		  /* SES */
		  0x0a, 0x03, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0,
		  /* extension */
		  0, 0, 0, 16, 0xee, 0xab, 0xcd, 0xef, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0,
		  0, 0, 0, 0, 0x20},
};

static const struct golden atomic = {
	.what = "atomic sum of two 64-bit words",
	.pds = {.type = UET_RUD_REQ,
		.next = UET_NEXT_REQ_STD,
		.spdcid = 1,
		.dpdcid = 2,
		.psn = 5,
		.clear = 4},
	.req = {.op = UET_OP_ATOMIC,
		.eom = true,
		.som = true,
		.message = 9,
		.length = 16,
		.part = 16,
		.amo = {.op = 2, .type = 7, .semantics = 1}},
	.payload = 16,
	.len = 60,
	.bytes = {0x11, 0x80, 0xff, 0xff, 0, 0, 0, 5, 0, 1, 0, 2,
		  /* SES */
		  0x03, 0x03, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16,
		  /* extension */
		  2, 7, 1, 0},
};

static const struct golden swap = {
	.what = "compare and swap of a 32-bit word",
	.pds = {.type = UET_RUD_REQ,
		.next = UET_NEXT_REQ_STD,
		.spdcid = 1,
		.dpdcid = 2,
		.psn = 5,
		.clear = 4},
	.req = {.op = UET_OP_FETCH_ATOMIC,
		.eom = true,
		.som = true,
		.message = 9,
		.length = 4,
		.amo = {.op = UET_AMO_CSWAP,
			.type = 5,
			.compare = {[15] = 0xaa},
			.swap = {[12] = 1, [15] = 0xbb}}},
	.len = 92,
	.bytes = {0x11, 0x80, 0xff, 0xff, 0, 0, 0, 5, 0, 1, 0, 2,
		  /* SES */
		  0x04, 0x03, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4,
		  /* extension */
		  0x0d, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0, 0,
		  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xbb},
};

static const struct golden read_data = {
	.what = "data of a read, as a request back",
	.pds = {.type = UET_RUD_REQ,
		.next = UET_NEXT_RESP_DATA,
		.spdcid = 1,
		.dpdcid = 2,
		.psn = 5,
		.clear = 5},
	.resp = {.op = UET_RESP_WITH_DATA,
		 .rc = UET_RC_OK,
		 .message = 0x0a0b,
		 .job = 0x010203,
		 .read = 0x0c0d,
		 .part = 100,
		 .modified = 300,
		 .at = 200},
	.payload = 100,
	.len = 32,
	.bytes =
		{/* 00010 0101 0000000 */
		 0x12, 0x80, 0, 0, 0, 0, 0, 5, 0, 1, 0, 2,
		 /* SES */
		 0x02, 0x01, 0x0a, 0x0b, 0, 1, 2, 3, 0x0c, 0x0d, 0, 100, 0, 0, 1, 0x2c, 0,
		 0, 0, 200},
};

static const struct golden ack_cc = {
	.what = "ack with congestion state",
	.pds = {.type = UET_ACK_CC,
		.mark = true,
		.ask = UET_ASK_CLEAR,
		.spdcid = 0x1111,
		.dpdcid = 0x2222,
		.psn = 0x00000003,
		.cack = 0xfffffffe,
		.mpr = 2,
		.sack_base = 0xffffffff,
		.sack_bits = 0x8000000000000010,
		.cc = {.service = 0x0102,
		       .restore = true,
		       .pend = 0x55,
		       .received = 0xabcdef,
		       .ooo = 7}},
	.len = 32,
	.bytes =
		{/* 01000 0000 0100010 */
		 0x40, 0x22, 0, 5, 0xff, 0xff, 0xff, 0xfe, 0x11, 0x11, 0x22,
		 0x22, 0,    2, 0, 1,	 0x80, 0,    0,	   0,	 0,    0,
		 0,    0x10, 1, 2, 0xd5, 0xab, 0xcd, 0xef, 0,	 7},
};

static const struct golden ack_arrived = {
	.what = "ack that says when the packet came",
	.pds = {.type = UET_ACK_CC,
		.spdcid = 0x1111,
		.dpdcid = 0x2222,
		.psn = 0xfffffffe,
		.cack = 0xfffffffe,
		.sack_base = 0xffffffff,
		.cc = {.service = 0x0102,
		       .received = 0xabcdef,
		       .has_arrived = true,
		       .arrived = 0xfedc}},
	.len = 32,
	.bytes =
		{/* 01000 0000 0000000; the first of the flags */
		 0x40, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe, 0x11, 0x11, 0x22,
		 0x22, 1, 0, 0, 1,    0,    0,	  0,	0,    0,    0,
		 0,    0, 1, 2, 0,    0xab, 0xcd, 0xef, 0xfe, 0xdc},
};

static const struct golden ack_probe = {
	.what = "ack of a probe, without state",
	.pds = {.type = UET_ACK,
		.retx = true,
		.probe = true,
		.spdcid = 0x1111,
		.dpdcid = 0x2222,
		.opaque = 0xfedc,
		.psn = 9,
		.cack = 9},
	.len = 12,
	.bytes =
		{/* 00111 0000 0011000 */
		 0x38, 0x18, 0xfe, 0xdc, 0, 0, 0, 9, 0x11, 0x11, 0x22, 0x22},
};

static const struct golden ack_resp = {
	.what = "ack with an error response",
	.pds = {.type = UET_ACK,
		.next = UET_NEXT_RESP,
		.spdcid = 3,
		.dpdcid = 4,
		.psn = 8,
		.cack = 9},
	.resp = {.list = 1,
		 .op = UET_RESP_RESPONSE,
		 .rc = UET_RC_BAD_MKEY,
		 .generation = 5,
		 .message = 6,
		 .job = 7,
		 .modified = 8},
	.len = 24,
	.bytes =
		{/* 00111 0100 0000000 */
		 0x3a, 0, 0xff, 0xff, 0, 0, 0, 9, 0, 3, 0, 4,
		 /* SES */
		 0x41, 0x1c, 0, 6, 5, 0, 0, 7, 0, 0, 0, 8},
};

static const struct golden ack_small = {
	.what = "ack with 8 bytes of a fetching atomic",
	.pds = {.type = UET_ACK,
		.next = UET_NEXT_RESP_SMALL,
		.spdcid = 3,
		.dpdcid = 4,
		.psn = 10,
		.cack = 9},
	.resp = {.op = UET_RESP_WITH_DATA,
		 .rc = UET_RC_OK,
		 .job = 7,
		 .psn = 10,
		 .part = 8},
	.payload = 8,
	.len = 24,
	.bytes =
		{/* 00111 0110 0000000 */
		 0x3b, 0, 0, 1, 0, 0, 0, 9, 0, 3, 0, 4,
		 /* SES */
		 0x02, 0x01, 0, 8, 0, 0, 0, 7, 0, 0, 0, 10},
};

static const struct golden nack = {
	.what = "nack",
	.pds = {.type = UET_NACK,
		.mark = true,
		.retx = true,
		.code = UET_NACK_NO_RESOURCE,
		.spdcid = 0,
		.dpdcid = 4,
		.psn = 0x01020304,
		.payload = 0x05060708},
	.len = 16,
	.bytes =
		{/* 01010 0000 0110000 */
		 0x50, 0x30, 0x0a, 0, 1, 2, 3, 4, 0, 0, 0, 4, 5, 6, 7, 8},
};

static const struct golden probe = {
	.what = "probe",
	.pds = {.type = UET_CP,
		.ctl = UET_CTL_PROBE,
		.rod = true,
		.ar = true,
		.opaque = 0x1357,
		.spdcid = 3,
		.dpdcid = 4,
		.psn = 0x01020304,
		.payload = 0x05060708},
	.len = 16,
	.bytes =
		{/* 01011 0110 0101000 */
		 0x5b, 0x28, 0x13, 0x57, 1, 2, 3, 4, 0, 3, 0, 4, 5, 6, 7, 8},
};

static const struct golden *const all[] = {
	&write_middle, &send_syn,  &rendezvous, &atomic,    &swap, &read_data, &ack_cc,
	&ack_arrived,  &ack_probe, &ack_resp,	&ack_small, &nack, &probe};

static size_t put(uint8_t *to, const struct uet_pds_head *pds,
		  const struct uet_ses_req *req, const struct uet_ses_resp *resp)
{
	size_t len = uet_pds_put(to, pds);

	if (pds->next == UET_NEXT_REQ_STD)
		return len + uet_req_put(to + len, req);
	if (pds->next != UET_NEXT_NONE)
		return len + uet_resp_put(to + len, pds->next, resp);
	return len;
}

static uint8_t room[UET_HEAD_MAX + UET_PAYLOAD_MAX + 8];

static void check(const struct golden *g)
{
	uint8_t out[UET_HEAD_MAX];
	size_t len = put(out, &g->pds, &g->req, &g->resp);
	struct uet_pkt pkt;
	unsigned accepted = 0;

	tap_is_int((int64_t)len, (int64_t)g->len, g->what);
	tap_is_mem(out, g->bytes, g->len, g->what);
	memset(room, 0, sizeof(room));
	memcpy(room, g->bytes, g->len);
	tap_is_int(uet_pkt_parse(room, g->len + g->payload, MTU, &pkt), 0,
		   "it is accepted");
	tap_is_mem(&pkt.pds, &g->pds, sizeof(g->pds), "the delivery header comes back");
	if (g->pds.next == UET_NEXT_REQ_STD)
		tap_is_mem(&pkt.req, &g->req, sizeof(g->req), "so does the request's");
	else if (g->pds.next != UET_NEXT_NONE)
		tap_is_mem(&pkt.resp, &g->resp, sizeof(g->resp),
			   "so does the response's");
	tap_ok(pkt.payload_len == g->payload &&
		       (!g->payload || pkt.payload == room + g->len),
	       "and the payload");
	for (size_t i = 0; i < g->len + g->payload; i++)
		accepted += uet_pkt_parse(room, i, MTU, &pkt) == 0;
	tap_is_int(accepted, 0, "no beginning of it is accepted");
	tap_is_int(uet_pkt_parse(room, g->len + g->payload + 1, MTU, &pkt), -EINVAL,
		   "nor a byte too many");
}

static const struct uet_ses_req no_req;
static const struct uet_ses_resp no_resp;

static void refused(const char *what, const struct uet_pds_head *pds,
		    const struct uet_ses_req *req, const struct uet_ses_resp *resp,
		    size_t payload, int want)
{
	struct uet_pkt pkt;
	size_t len;

	memset(room, 0, sizeof(room));
	len = put(room, pds, req, resp);
	tap_is_int(uet_pkt_parse(room, len + payload, MTU, &pkt), want, what);
}

static const struct uet_pds_head rud = {.type = UET_RUD_REQ,
					.next = UET_NEXT_REQ_STD,
					.spdcid = 1,
					.dpdcid = 2,
					.psn = 5,
					.clear = 4};

static void refuse_req(const char *what, struct uet_ses_req req, size_t payload, int want)
{
	refused(what, &rud, &req, &no_resp, payload, want);
}

#define REQ(...) ((struct uet_ses_req){.message = 1, __VA_ARGS__})

static void refuse_data(void)
{
	refuse_req("one packet and not its message's length",
		   REQ(.op = UET_OP_SEND, .som = 1, .eom = 1, .length = 5), 4, -EINVAL);
	refuse_req("a first packet that is all of it",
		   REQ(.op = UET_OP_SEND, .som = 1, .length = 5), 5, -EINVAL);
	refuse_req("a first packet without anything",
		   REQ(.op = UET_OP_WRITE, .som = 1, .length = 5), 0, -EINVAL);
	refuse_req("a later packet at the beginning",
		   REQ(.op = UET_OP_WRITE, .length = 50, .part = 5), 5, -EINVAL);
	refuse_req("a later packet that says another length",
		   REQ(.op = UET_OP_WRITE, .at = 5, .length = 50, .part = 6), 5, -EINVAL);
	refuse_req("one that goes beyond the message",
		   REQ(.op = UET_OP_WRITE, .at = 46, .length = 50, .part = 5), 5,
		   -EINVAL);
	refuse_req("a last one that isn't at the end",
		   REQ(.op = UET_OP_WRITE, .eom = 1, .at = 44, .length = 50, .part = 5),
		   5, -EINVAL);
	refuse_req("one at the end that isn't the last",
		   REQ(.op = UET_OP_WRITE, .at = 45, .length = 50, .part = 5), 5,
		   -EINVAL);
	refuse_req("an offset that wraps with the part",
		   REQ(.op = UET_OP_WRITE, .at = 0xfffffffc, .length = 0xfffffffe,
		       .part = 5),
		   5, -EINVAL);
	refuse_req("a buffer that wraps",
		   REQ(.op = UET_OP_WRITE, .som = 1, .eom = 1, .length = 5,
		       .offset = UINT64_MAX - 3),
		   5, -EINVAL);
	refuse_req("a message that is too long",
		   REQ(.op = UET_OP_WRITE, .som = 1, .length = 0xffffffff), 5, -EINVAL);
	refuse_req("more than the payload that was agreed on",
		   REQ(.op = UET_OP_SEND, .som = 1, .eom = 1, .length = MTU + 1), MTU + 1,
		   -EINVAL);
	refuse_req(
		"message 0",
		(struct uet_ses_req){.op = UET_OP_SEND, .som = 1, .eom = 1, .length = 1},
		1, -EINVAL);
}

static void refuse_others(void)
{
	refuse_req("a read that brings something",
		   REQ(.op = UET_OP_READ, .som = 1, .eom = 1, .length = 5), 5, -EINVAL);
	refuse_req("a read of more than a packet can bring back",
		   REQ(.op = UET_OP_READ, .som = 1, .eom = 1, .length = MTU + 1), 0,
		   -EINVAL);
	refuse_req("a read of nothing in the middle",
		   REQ(.op = UET_OP_READ, .at = 5, .length = 50), 0, -EINVAL);
	refuse_req("a read beyond its end",
		   REQ(.op = UET_OP_READ, .at = 40, .length = 50, .part = 11), 0,
		   -EINVAL);
	refuse_req("a rendezvous whose early part is longer than it",
		   REQ(.op = UET_OP_RNDV_SEND, .som = 1, .eom = 1, .length = 5,
		       .rndv = {.eager = 6}),
		   6, -EINVAL);
	refuse_req("a rendezvous that brings less than it says",
		   REQ(.op = UET_OP_RNDV_SEND, .som = 1, .eom = 1, .length = 50,
		       .rndv = {.eager = 6}),
		   5, -EINVAL);
	refuse_req("an atomic in two packets",
		   REQ(.op = UET_OP_ATOMIC, .som = 1, .length = 8), 4, -EINVAL);
	refuse_req("an atomic without operands",
		   REQ(.op = UET_OP_ATOMIC, .som = 1, .eom = 1, .length = 8), 0, -EINVAL);
	refuse_req("a swap with a payload",
		   REQ(.op = UET_OP_FETCH_ATOMIC, .som = 1, .eom = 1, .length = 8,
		       .amo = {.op = UET_AMO_CSWAP}),
		   8, -EINVAL);
	refuse_req("a swap of more than it carries",
		   REQ(.op = UET_OP_FETCH_ATOMIC, .som = 1, .eom = 1, .length = 17,
		       .amo = {.op = UET_AMO_CSWAP}),
		   0, -EINVAL);
	refuse_req("an atomic operation that there isn't",
		   REQ(.op = UET_OP_ATOMIC, .som = 1, .eom = 1, .length = 8,
		       .amo = {.op = UET_AMO_INVAL + 1}),
		   8, -EOPNOTSUPP);
	refuse_req("an end in error that isn't the end",
		   REQ(.op = UET_OP_MSG_ERROR, .at = 5, .length = 50), 0, -EINVAL);
	refuse_req("nothing, with something in it",
		   REQ(.op = UET_OP_NOOP, .som = 1, .eom = 1), 1, -EINVAL);
	refuse_req("an operation that isn't spoken", REQ(.op = 0xc, .som = 1, .eom = 1),
		   0, -EOPNOTSUPP);
	refuse_req("an operation that there isn't", REQ(.op = 0x3f, .som = 1, .eom = 1),
		   0, -EOPNOTSUPP);
}

static void refuse_heads(void)
{
	const struct uet_ses_req one = {
		.op = UET_OP_SEND, .som = 1, .eom = 1, .message = 1, .length = 1};
	struct uet_ses_resp data = read_data.resp;
	struct uet_ses_resp plain = ack_resp.resp;
	struct uet_pds_head h = rud;
	struct uet_pkt pkt;

	h.spdcid = 0;
	refused("a request from no context", &h, &one, &no_resp, 1, -EINVAL);
	h = rud;
	h.dpdcid = 0;
	refused("a request to no context", &h, &one, &no_resp, 1, -EINVAL);
	h = rud;
	h.next = UET_NEXT_RESP;
	refused("a response as a request", &h, &no_req, &plain, 0, -EINVAL);
	h.next = UET_NEXT_NONE;
	refused("a request for nothing", &h, &no_req, &no_resp, 0, -EINVAL);
	h = ack_cc.pds;
	h.next = UET_NEXT_REQ_STD;
	refused("an ack with a request", &h, &one, &no_resp, 1, -EINVAL);
	h = ack_cc.pds;
	h.ask = 3;
	refused("an ack that asks for what there isn't", &h, &no_req, &no_resp, 0,
		-EINVAL);
	h = nack.pds;
	h.code = 0;
	refused("a nack without a reason", &h, &no_req, &no_resp, 0, -EINVAL);
	h = probe.pds;
	h.ctl = 7;
	refused("credits", &h, &no_req, &no_resp, 0, -EOPNOTSUPP);
	data.modified = 299;
	refused("data beyond the end of what was read", &read_data.pds, &no_req, &data,
		100, -EINVAL);
	data = read_data.resp;
	data.rc = UET_RC_BAD_MKEY;
	refused("data with an error", &read_data.pds, &no_req, &data, 100, -EINVAL);
	plain.op = UET_RESP_DEFAULT;
	refused("an error as the default", &ack_resp.pds, &no_req, &plain, 0, -EINVAL);

	memcpy(room, write_middle.bytes, write_middle.len);
	room[2] = 0, room[3] = 1;
	tap_is_int(uet_pkt_parse(room, write_middle.len + 4096, MTU, &pkt), -EINVAL,
		   "what may be forgotten lies ahead");
	memcpy(room, write_middle.bytes, write_middle.len);
	room[13] |= 0x40;
	tap_is_int(uet_pkt_parse(room, write_middle.len + 4096, MTU, &pkt), -EPROTO,
		   "another version");
	memcpy(room, ack_cc.bytes, ack_cc.len);
	room[12] = 0x10;
	tap_is_int(uet_pkt_parse(room, ack_cc.len, MTU, &pkt), -EOPNOTSUPP,
		   "credits in an ack");
}

/* Types that are somebody's, and those that are nobody's. */
static void refuse_types(void)
{
	struct uet_pkt pkt;
	unsigned good = 0;

	memset(room, 0, sizeof(room));
	for (unsigned type = 0; type < 32; type++) {
		bool spoken = type == 2 || type == 3 || type == 7 || type == 8 ||
			      type == 10 || type == 11;
		int want = spoken || type == 0 || type > 14 ? -EINVAL : -EOPNOTSUPP;

		room[0] = (uint8_t)(type << 3);
		good += uet_pkt_parse(room, 64, MTU, &pkt) == want;
	}
	tap_is_int(good, 32, "each type is spoken, known, or nothing");
	tap_ok(uet_pkt_parse(room, 0, MTU, &pkt) == -EINVAL &&
		       uet_pkt_parse(room, 64, UET_PAYLOAD_MAX + 1, &pkt) == -EINVAL,
	       "nothing at all; a payload that no packet has");
}

static void names(void)
{
	tap_is_str(uet_type_name(UET_ACK_CC), "ack-cc", "a type's name");
	tap_is_str(uet_type_name(31), "?", "no type's");
	tap_is_str(uet_nack_name(UET_NACK_ROD_OOO), "out of order", "a refusal's");
	tap_is_str(uet_nack_name(0xff), "?", "no refusal's");
	tap_is_str(uet_ctl_name(UET_CTL_PROBE), "probe", "a control packet's");
	tap_is_str(uet_op_name(UET_OP_WRITE), "write", "an operation's");
	tap_is_str(uet_op_name(0x3f), "?", "no operation's");
	tap_ok(uet_nack_class(UET_NACK_NO_PDC) == UET_NACK_AGAIN_LATER &&
		       uet_nack_class(UET_NACK_CLOSING) == UET_NACK_FATAL &&
		       uet_nack_class(UET_NACK_GTD_GONE) == UET_NACK_FATAL_LOST &&
		       uet_nack_class(0x0c) == UET_NACK_UNKNOWN,
	       "what a refusal asks for");
	tap_ok(uet_psn_before(0xffffffff, 0) && !uet_psn_before(0, 0xffffffff) &&
		       !uet_psn_before(7, 7),
	       "numbers wrap");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check(all[i]);
	refuse_data();
	refuse_others();
	refuse_heads();
	refuse_types();
	names();
	return tap_done();
}
