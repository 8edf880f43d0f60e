/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every header that the uet wire puts into a UDP datagram, in one place and behind one
 * validator: packet delivery (PDS) first, then semantics (SES), then payload. Big-endian
 * fields, sizes asserted, golden bytes in tests/test_uet_wire. The layouts are those of
 * Ultra Ethernet 1.0; README.md says which are missing.
 *
 *   request   RUD_REQ, ROD_REQ: one packet of a message, or a response with data
 *   ack       ACK, ACK_CC: cumulative and selective, and possibly a response
 *   nack      refused, and why
 *   control   CP
 *
 * What protects the datagram as a whole (encryption, a checksum) is put around this and
 * taken off by others.
 */
#ifndef WEFT_UET_WIRE_H
#define WEFT_UET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/be.h"

#define UET_PORT 4793

enum uet_type {
	UET_RUD_REQ = 2,
	UET_ROD_REQ = 3,
	UET_ACK = 7,
	UET_ACK_CC = 8,
	UET_NACK = 10,
	UET_CP = 11
};

enum uet_next {
	UET_NEXT_NONE = 0,
	UET_NEXT_REQ_STD = 3,
	UET_NEXT_RESP = 4,
	UET_NEXT_RESP_DATA = 5,
	UET_NEXT_RESP_SMALL = 6
};

/* What an ack asks its receiver for. */
enum uet_ask { UET_ASK_NOTHING, UET_ASK_CLEAR, UET_ASK_CLOSE };

enum uet_ctl {
	UET_CTL_NOOP,
	UET_CTL_ACK_REQ,
	UET_CTL_CLEAR_CMD,
	UET_CTL_CLEAR_REQ,
	UET_CTL_CLOSE_CMD,
	UET_CTL_CLOSE_REQ,
	UET_CTL_PROBE,
	UET_CTL_KINDS /* credits and negotiation are not spoken */
};

enum uet_nack_code {
	UET_NACK_TRIMMED = 0x01,
	UET_NACK_TRIMMED_LASTHOP = 0x02,
	UET_NACK_NO_PDC = 0x04,
	UET_NACK_NO_CCC = 0x05,
	UET_NACK_NO_BITMAP = 0x06,
	UET_NACK_NO_BUFFER = 0x07,
	UET_NACK_NO_GTD = 0x08,
	UET_NACK_NO_MESSAGE = 0x09,
	UET_NACK_NO_RESOURCE = 0x0a,
	UET_NACK_OUT_OF_WINDOW = 0x0b,
	UET_NACK_ROD_OOO = 0x0d,
	UET_NACK_INV_DPDCID = 0x0e,
	UET_NACK_MISMATCH = 0x0f,
	UET_NACK_CLOSING = 0x10,
	UET_NACK_CLOSING_IN_ERR = 0x11,
	UET_NACK_NOT_RECEIVED = 0x12,
	UET_NACK_GTD_GONE = 0x13,
	UET_NACK_WITH_DATA = 0x14,
	UET_NACK_INVALID_SYN = 0x15,
	UET_NACK_MODE_MISMATCH = 0x16,
	UET_NACK_NEW_START = 0x17,
	UET_NACK_PROCESSING = 0x18,
	UET_NACK_UNEXPECTED = 0x19,
	UET_NACK_INFERRED = 0x1a
};

enum uet_op {
	UET_OP_NOOP = 0x0,
	UET_OP_WRITE = 0x1,
	UET_OP_READ = 0x2,
	UET_OP_ATOMIC = 0x3,
	UET_OP_FETCH_ATOMIC = 0x4,
	UET_OP_SEND = 0x5,
	UET_OP_RNDV_SEND = 0x6,
	UET_OP_TAGGED_SEND = 0x9,
	UET_OP_RNDV_TSEND = 0xa,
	UET_OP_MSG_ERROR = 0xf
};

enum uet_amo {
	UET_AMO_READ = 0xb,
	UET_AMO_CSWAP = 0xd, /* the first and last of those with compare and swap */
	UET_AMO_MSWAP = 0x13,
	UET_AMO_INVAL = 0x14
};

enum uet_resp_op {
	UET_RESP_DEFAULT,
	UET_RESP_RESPONSE,
	UET_RESP_WITH_DATA,
	UET_RESP_NONE
};

enum uet_rc {
	UET_RC_NULL = 0x00,
	UET_RC_OK = 0x01,
	UET_RC_BAD_GENERATION = 0x02,
	UET_RC_NO_MATCH = 0x05,
	UET_RC_UNSUPPORTED_OP = 0x06,
	UET_RC_UNSUPPORTED_SIZE = 0x07,
	UET_RC_OUT_OF_RANGE = 0x0c,
	UET_RC_PERM = 0x17,
	UET_RC_BAD_INDEX = 0x19,
	UET_RC_BAD_PID = 0x1a,
	UET_RC_BAD_JOB = 0x1b,
	UET_RC_BAD_MKEY = 0x1c,
	UET_RC_BAD_ADDR = 0x1d,
	UET_RC_CANCELLED = 0x1e,
	UET_RC_UNDELIVERABLE = 0x1f,
	UET_RC_UNCOR = 0x20,
	UET_RC_TOO_LONG = 0x22,
	UET_RC_INITIATOR_ERR = 0x23,
	UET_RC_DROPPED = 0x24,
	UET_RC_MAX = 0x3f
};

/* Layouts, as they lie in the datagram. */

/* type in bits 15:11, next header or control type in 10:7, flags in 6:0. */
#define UET_F_RETX 0x10 /* all but responses without */
#define UET_F_AR   0x08 /* request, control: acknowledge at once */
#define UET_F_SYN  0x04 /* request, control */
#define UET_F_MARK 0x20 /* ack, nack: the request had been marked on its way */
#define UET_F_ROD  0x20 /* control: of an ordered context */
#define UET_F_P	   0x08 /* ack: of a probe */
#define UET_F_ASK  0x06 /* ack: enum uet_ask, from bit 1 */
#define UET_F_NT   0x08 /* nack: of a mode that is not spoken */

struct uet_req_bytes {
	struct be16 prologue;
	struct be16 clear; /* signed, at most 0, from psn */
	struct be32 psn;
	struct be16 spdcid;
	struct be16 dpdcid; /* syn: offset of psn from the first, 12 bits */
};

struct uet_ack_bytes {
	struct be16 prologue;
	struct be16 ack; /* signed, from cack; probe: its opaque */
	struct be32 cack;
	struct be16 spdcid;
	struct be16 dpdcid;
};

struct uet_ack_cc_bytes {
	struct uet_ack_bytes ack;
	uint8_t cc; /* type in 7:4, flags in 3:0: UET_CC_F_ARRIVED */
	uint8_t mpr;
	struct be16 sack; /* signed, from cack */
	struct be64 bits;
	struct be64 state; /* service 16, restore 1, pending 7, received 24, ooo 16; or
			    * instead of ooo: arrived 16 */
};

struct uet_nack_bytes {
	struct be16 prologue;
	uint8_t code;
	uint8_t vendor;
	struct be32 psn;
	struct be16 spdcid;
	struct be16 dpdcid;
	struct be32 payload;
};

struct uet_cp_bytes {
	struct be16 prologue;
	struct be16 opaque;
	struct be32 psn;
	struct be16 spdcid;
	struct be16 dpdcid;
	struct be32 payload;
};

struct uet_std_bytes {
	uint8_t op;
	uint8_t flags; /* version in 7:6 */
	struct be16 message;
	struct be32 job; /* generation 8, job 24 */
	struct be16 pid; /* 12 bits */
	struct be16 index;
	struct be64 offset;
	struct be32 initiator;
	struct be64 match;
	struct be64 data; /* som: header data; else payload length 14 in 45:32, message
			   * offset in 31:0 */
	struct be32 length;
} __attribute__((packed));

#define UET_STD_DC  0x20
#define UET_STD_IE  0x10
#define UET_STD_REL 0x08
#define UET_STD_HD  0x04
#define UET_STD_EOM 0x02
#define UET_STD_SOM 0x01

struct uet_rndv_bytes {
	struct be32 eager;
	struct be32 where; /* generation 8, pid 12, index 12 */
	struct be64 offset;
	struct be64 key;
};

struct uet_amo_bytes {
	uint8_t op;
	uint8_t type;
	uint8_t semantics;
	uint8_t reserved;
};

struct uet_swap_bytes {
	struct uet_amo_bytes amo;
	uint8_t compare[16];
	uint8_t swap[16];
};

struct uet_resp_bytes {
	uint8_t op; /* list in 7:6 */
	uint8_t rc; /* version in 7:6 */
	struct be16 message;
	struct be32 job;
	struct be32 modified;
};

struct uet_resp_data_bytes {
	uint8_t op;
	uint8_t rc;
	struct be16 message;
	struct be32 job;
	struct be16 read;    /* the message that asked */
	struct be16 payload; /* 14 bits */
	struct be32 modified;
	struct be32 offset;
};

struct uet_resp_small_bytes {
	uint8_t op;
	uint8_t rc;
	struct be16 payload; /* 14 bits */
	struct be32 job;
	struct be32 psn; /* of the request */
};

_Static_assert(sizeof(struct uet_req_bytes) == 12, "uet_req_bytes");
_Static_assert(sizeof(struct uet_ack_bytes) == 12, "uet_ack_bytes");
_Static_assert(sizeof(struct uet_ack_cc_bytes) == 32, "uet_ack_cc_bytes");
_Static_assert(sizeof(struct uet_nack_bytes) == 16, "uet_nack_bytes");
_Static_assert(sizeof(struct uet_cp_bytes) == 16, "uet_cp_bytes");
_Static_assert(sizeof(struct uet_std_bytes) == 44, "uet_std_bytes");
_Static_assert(sizeof(struct uet_rndv_bytes) == 24, "uet_rndv_bytes");
_Static_assert(sizeof(struct uet_amo_bytes) == 4, "uet_amo_bytes");
_Static_assert(sizeof(struct uet_swap_bytes) == 36, "uet_swap_bytes");
_Static_assert(sizeof(struct uet_resp_bytes) == 12, "uet_resp_bytes");
_Static_assert(sizeof(struct uet_resp_data_bytes) == 20, "uet_resp_data_bytes");
_Static_assert(sizeof(struct uet_resp_small_bytes) == 12, "uet_resp_small_bytes");

/* Longest SES header with its extension, and longest header of all. */
#define UET_SES_MAX	80u
#define UET_HEAD_MAX	(12u + UET_SES_MAX)
#define UET_PAYLOAD_MAX 16383u /* 14 bits */
/* A longer one isn't written: the length that each packet carries has 32 bits. */
#define UET_MESSAGE_MAX	  0xfffffffeu
#define UET_SYN_MAX	  0xfffu /* offset of the last PSN that can open a context */
#define UET_SERVICE_NONE  0	 /* no service time */
#define UET_SERVICE_LATE  0xffff /* longer than what can be said */
#define UET_SERVICE_NS	  128
#define UET_ARRIVED_NS	  2048
#define UET_CC_F_ARRIVED  0x1 /* none is out of order; instead of how many: when */
#define UET_RECEIVED_UNIT 256
#define UET_OOO_NONE	  0xffff
#define UET_MPR_UNIT	  128u

/* Congestion state in an ack. */
struct uet_ack_state {
	uint16_t service;  /* UET_SERVICE_NS each */
	bool restore;	   /* the receiver's penalty is over */
	uint8_t pend;	   /* penalty, of 128 */
	uint32_t received; /* UET_RECEIVED_UNIT bytes, of the context, modulo 2^24 */
	uint16_t ooo;	   /* packets above the cumulative one */
	bool has_arrived;  /* ooo is 0, and: */
	uint16_t arrived;  /* the receiver's clock when the packet came, modulo 2^16
			    * UET_ARRIVED_NS */
};

/* The delivery header in host order. Fields that its type lacks are 0. */
struct uet_pds_head {
	uint8_t type;
	uint8_t next; /* enum uet_next; a control packet has none */
	bool retx;
	bool ar;
	bool syn;
	bool mark;
	bool probe;
	bool rod; /* ROD_REQ, or control of such a context */
	uint8_t ask;
	uint16_t spdcid;
	uint16_t dpdcid;     /* syn: 0 */
	uint16_t syn_offset; /* of psn from the first */
	uint32_t psn;	     /* ack: that of the packet which it answers */
	uint32_t clear;	     /* request: all up to this one may be forgotten */
	uint32_t cack;	     /* ack: all up to this one were received */
	uint16_t opaque;     /* probe, and its ack */
	uint8_t ctl;
	uint8_t code; /* nack */
	uint32_t payload;
	uint8_t mpr; /* ACK_CC: from here on */
	uint32_t sack_base;
	uint64_t sack_bits; /* bit 0 is sack_base */
	struct uet_ack_state cc;
};

/* The request header, with the extension that its operation has. */
struct uet_ses_req {
	uint8_t op;
	bool dc;
	bool ie;
	bool rel;
	bool hd;
	bool eom;
	bool som;
	uint8_t generation;
	uint16_t message; /* never 0 */
	uint32_t job;	  /* 24 bits */
	uint16_t pid;	  /* 12 bits */
	uint16_t index;	  /* 12 bits */
	uint64_t offset;  /* into the buffer, of the whole message */
	uint32_t initiator;
	uint64_t match;	 /* tag bits, or the memory's key */
	uint64_t data;	 /* som */
	uint32_t at;	 /* offset of this packet in the message; som: 0 */
	uint32_t length; /* of the whole message */
	uint32_t part;	 /* bytes of this packet; READ: bytes that it wants */
	struct {
		uint32_t eager; /* bytes of the message that come by themselves */
		uint8_t generation;
		uint16_t pid;
		uint16_t index;
		uint64_t offset;
		uint64_t key;
	} rndv;
	struct {
		uint8_t op;
		uint8_t type;
		uint8_t semantics;
		uint8_t compare[16];
		uint8_t swap[16];
	} amo;
};

struct uet_ses_resp {
	uint8_t list;
	uint8_t op;
	uint8_t rc;
	uint8_t generation; /* RESP */
	uint16_t message;
	uint32_t job;
	uint32_t modified;
	uint16_t read; /* RESP_DATA */
	uint32_t at;   /* RESP_DATA: offset in the message */
	uint32_t psn;  /* RESP_SMALL */
	uint32_t part; /* bytes of this packet */
};

/* A packet that was found right. `payload` points into the bytes that were looked at. */
struct uet_pkt {
	struct uet_pds_head pds;
	union {
		struct uet_ses_req req;	  /* pds.next is UET_NEXT_REQ_STD */
		struct uet_ses_resp resp; /* ... RESP, RESP_DATA, RESP_SMALL */
	};
	const uint8_t *ses; /* the SES header's bytes, as they came */
	uint32_t ses_len;
	const uint8_t *payload;
	uint32_t payload_len;
};

/*
 * 0; -EINVAL: short, long, out of range, or lengths that don't fit each other;
 * -EOPNOTSUPP: a header or an operation that is right elsewhere and not spoken here;
 * -EPROTO: of another version. Reserved bits are not looked at. `mtu` is the payload
 * that all ends have agreed on, at most UET_PAYLOAD_MAX. Whether ids and numbers fit a
 * context is for whoever has it.
 */
int uet_pkt_parse(const void *bytes, size_t len, uint32_t mtu, struct uet_pkt *pkt);

/* Each writes a header that uet_pkt_parse accepts, and returns its length. The payload
 * follows: req->part bytes (READ: none), resp->part bytes. */
size_t uet_pds_put(void *to, const struct uet_pds_head *head);
size_t uet_req_put(void *to, const struct uet_ses_req *req);
size_t uet_resp_put(void *to, uint8_t next, const struct uet_ses_resp *resp);

/* Bytes of the SES header of a request, extension included. */
size_t uet_req_size(uint8_t op, uint8_t amo);

/* For people; "?" for what has no name. */
const char *uet_type_name(uint8_t type);
const char *uet_nack_name(uint8_t code);
const char *uet_ctl_name(uint8_t ctl);
const char *uet_op_name(uint8_t op);

/* What the initiator does about a nack. */
enum uet_nack_class {
	UET_NACK_AGAIN_NOW,   /* sends the packet again at once */
	UET_NACK_AGAIN_LATER, /* after a while */
	UET_NACK_FATAL,	      /* the context is over; what is open may go on another */
	UET_NACK_FATAL_LOST,  /* the context is over, and what is open has failed */
	UET_NACK_UNKNOWN      /* ignored */
};
enum uet_nack_class uet_nack_class(uint8_t code);

/* Numbers and ids wrap: whether a comes before b, less than half the circle. */
static inline bool uet_psn_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#endif
