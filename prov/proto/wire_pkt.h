/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every packet that proto puts on a link: little-endian fields, sizes asserted, one
 * validator. Nobody else looks into a packet. A packet is at least a pkt_head; what
 * follows depends on the kind and, for eager messages, on the flags.
 *
 * The bytes belong to a peer that may still write them: pkt_parse copies each field once
 * and checks the copy. Only the payload is handed on in place; it is data, not structure.
 */
#ifndef WEFT_PROTO_WIRE_PKT_H
#define WEFT_PROTO_WIRE_PKT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/le.h"

enum pkt_kind {
	PKT_EAGER = 1, /* a whole message */
	PKT_RTS,       /* a message announced: rendezvous */
	PKT_CTS,       /* receiver asks the sender to stream the message */
	PKT_DATA,      /* a piece of a streamed message */
	PKT_FIN,       /* receiver is done with an announced message */
	PKT_ACK,       /* an eager message is in the user's buffer */
	PKT_CREDIT,    /* eager bytes given back to the sender */
	PKT_EVENT,     /* a remote write with data is done */
	PKT_CHUNK,     /* a piece of a streamed message, in a bulk slot */
	PKT_TAKEN,     /* bulk slots up to here were read */
	PKT_JOIN,      /* receiver pulls an announced message; the sender may push */
	PKT_COUNT,     /* remote accesses that counters of the target want to hear of */
	PKT_ATOMIC,    /* an atomic operation: wire_atomic.h */
	PKT_RESULT,    /* its result */
	PKT_KINDS
};

#define PKT_F_TAGGED 0x01 /* FI_TAGGED, else FI_MSG */
#define PKT_F_DATA   0x02 /* carries remote CQ data */
#define PKT_F_ACK    0x04 /* eager: carries the sender's id and wants PKT_ACK */
#define PKT_F_ALL    0x07
#define PKT_F_BULK   0x08 /* CTS: pieces may come in bulk slots */
#define PKT_F_MORE   0x10 /* ATOMIC: more requests of the same operation follow */
#define PKT_F_CHECK  0x20 /* ATOMIC: would the whole of it be carried out? */
#define PKT_F_NAMED  0x40 /* RTS: each iov's memory has a name, by which it is reached */

#define PKT_IOV_MAX 4
/* Largest error number that a packet may carry: libfabric's own end well below. */
#define PKT_ERR_MAX 4095
/* Longest message; the sum of two lengths cannot overflow. */
#define PKT_MSG_MAX (UINT64_MAX >> 2)

struct pkt_head {
	uint8_t kind;
	uint8_t flags;
	struct le16 zero;
	struct le32 len; /* see each kind */
};

/* len: payload bytes. Then [le64 data] [le64 id] payload. */
struct pkt_eager {
	struct pkt_head head;
	struct le64 tag;
};

struct pkt_iov {
	struct le64 addr;
	struct le64 len;
};

/* len: how many iov follow; 0 when the memory can't be named by address. With NAMED, as
 * many le64 follow them: the name of each (mem_name in wire.h). */
struct pkt_rts {
	struct pkt_head head;
	struct le64 tag;
	struct le64 data;
	struct le64 id;	   /* of the sender's operation */
	struct le64 total; /* bytes of the message */
	struct pkt_iov iov[];
};

struct pkt_cts {
	struct pkt_head head; /* len: 0 */
	struct le64 tx_id;
	struct le64 rx_id;
	struct le64 want; /* bytes to send, from the start of the message */
};

/* len: payload bytes. */
struct pkt_data {
	struct pkt_head head;
	struct le64 rx_id;
	struct le64 offset;
};

/* FIN: len is 0 or a positive fi_errno. ACK: len is 0. */
struct pkt_done {
	struct pkt_head head;
	struct le64 tx_id;
};

/* len: bytes given back. */
struct pkt_credit {
	struct pkt_head head;
};

struct pkt_event {
	struct pkt_head head; /* len: 0 */
	struct le64 data;
	struct le64 total; /* bytes that were written */
};

#define PKT_COUNT_READ 0x01 /* they read, else they wrote */
#define PKT_COUNT_EP   0x02 /* counts for the endpoint */
#define PKT_COUNT_MR   0x04 /* counts for the region with this key */

struct pkt_count {
	struct pkt_head head; /* len: how many, not 0 */
	struct le64 key;
};

struct pkt_chunk {
	struct pkt_head head; /* len: bytes in the slot, not 0 */
	struct le64 rx_id;
	struct le64 offset;
	struct le32 slot;
	struct le32 turn;
};

struct pkt_taken {
	struct pkt_head head; /* len: 0 */
	struct le64 tx_id;
	struct le64 offset; /* everything before it was read */
};

/* len: how many iov follow, at least 1: where the bytes that are wanted go. The transfer
 * has ceil(want / piece) pieces; see joint_open in wire.h. */
struct pkt_join {
	struct pkt_head head;
	struct le64 tx_id;
	struct le64 want;  /* bytes, from the start of the message */
	struct le32 piece; /* bytes of each piece but the last */
	struct le32 cell;
	struct le32 turn;
	struct le32 zero;
	struct pkt_iov iov[];
};

#define PKT_EAGER_HEAD_MAX (sizeof(struct pkt_eager) + 16)
#define PKT_RTS_MAX               \
	(sizeof(struct pkt_rts) + \
	 PKT_IOV_MAX * (sizeof(struct pkt_iov) + sizeof(struct le64)))
#define PKT_JOIN_MAX (sizeof(struct pkt_join) + PKT_IOV_MAX * sizeof(struct pkt_iov))
/* Pieces of a joint transfer. */
#define PKT_JOIN_PIECES 0xffffffu

_Static_assert(sizeof(struct pkt_head) == 8, "pkt_head");
_Static_assert(sizeof(struct pkt_eager) == 16, "pkt_eager");
_Static_assert(PKT_EAGER_HEAD_MAX <= 32, "an 8-byte message fits one 64-byte record");
_Static_assert(sizeof(struct pkt_iov) == 16, "pkt_iov");
_Static_assert(sizeof(struct pkt_rts) == 40, "pkt_rts");
_Static_assert(sizeof(struct pkt_cts) == 32, "pkt_cts");
_Static_assert(sizeof(struct pkt_data) == 24, "pkt_data");
_Static_assert(sizeof(struct pkt_done) == 16, "pkt_done");
_Static_assert(sizeof(struct pkt_credit) == 8, "pkt_credit");
_Static_assert(sizeof(struct pkt_event) == 24, "pkt_event");
_Static_assert(sizeof(struct pkt_count) == 16, "pkt_count");
_Static_assert(sizeof(struct pkt_chunk) == 32, "pkt_chunk");
_Static_assert(sizeof(struct pkt_taken) == 24, "pkt_taken");
_Static_assert(sizeof(struct pkt_join) == 40, "pkt_join");

struct pkt_view_iov {
	uint64_t addr;
	uint64_t len;
};

/* What a valid packet says, in host order. Fields that its kind lacks are not set. */
struct pkt_view {
	uint8_t kind;
	uint8_t flags;
	uint32_t len;	 /* payload bytes, iov count, error, credit or count */
	uint64_t tag;	 /* EAGER, RTS */
	uint64_t data;	 /* EAGER with DATA, RTS, EVENT, ATOMIC */
	uint64_t id;	 /* sender's id: EAGER with ACK, RTS, CTS, FIN, ACK, TAKEN, JOIN,
			  * ATOMIC, RESULT; rx id: DATA, CHUNK */
	uint64_t rx_id;	 /* CTS */
	uint64_t total;	 /* RTS, CTS, EVENT, ATOMIC; JOIN: wanted; RESULT: error */
	uint64_t key;	 /* COUNT */
	uint64_t offset; /* DATA, CHUNK, TAKEN */
	uint32_t slot;	 /* CHUNK; JOIN: cell */
	uint32_t turn;	 /* CHUNK, JOIN */
	uint32_t piece;	 /* JOIN */
	struct pkt_view_iov iov[PKT_IOV_MAX];
	const void *payload;	    /* EAGER, DATA, RESULT; ATOMIC: operands or NULL */
	uint64_t keys[PKT_IOV_MAX]; /* of iov: ATOMIC; RTS with NAMED: the names */
	/* ATOMIC only */
	uint8_t mode;	     /* enum atomic_mode */
	uint8_t op;	     /* enum fi_op */
	uint8_t type;	     /* enum fi_datatype */
	uint8_t count;	     /* of iov and keys */
	const void *compare; /* or NULL */
};

/* 0, or -FI_EINVAL: short, long, out of range, unknown. */
int pkt_parse(const void *pkt, size_t len, struct pkt_view *v);

/* The frequent kind by itself, inline. Same checks. */
static inline bool pkt_parse_eager(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_eager h;
	size_t at = sizeof(h);
	struct le64 word;

	if (len < sizeof(h)) {
		return false;
	}
	memcpy(&h, pkt, sizeof(h));
	v->kind = PKT_EAGER;
	v->flags = h.head.flags;
	v->len = le32_get(h.head.len);
	v->tag = le64_get(h.tag);
	if ((v->flags & ~PKT_F_ALL) || h.head.zero.v) {
		return false;
	}
	if (__builtin_expect(v->flags & (PKT_F_DATA | PKT_F_ACK), 0)) {
		size_t need = at + ((v->flags & PKT_F_DATA) ? 8 : 0) +
			      ((v->flags & PKT_F_ACK) ? 8 : 0);

		if (len < need) {
			return false;
		}
		if (v->flags & PKT_F_DATA) {
			memcpy(&word, (const char *)pkt + at, sizeof(word));
			v->data = le64_get(word);
			at += sizeof(word);
		}
		if (v->flags & PKT_F_ACK) {
			memcpy(&word, (const char *)pkt + at, sizeof(word));
			v->id = le64_get(word);
			at += sizeof(word);
		}
	}
	v->payload = (const char *)pkt + at;
	return len - at == v->len;
}

/* An eager message with nothing but a tag: by far the most frequent packet. */
struct pkt_plain {
	uint64_t tag;
	const void *payload;
	uint32_t len;
	uint32_t tagged; /* 0 or 1 */
};

/* Same checks in a few instructions; false: something else, not necessarily wrong. */
static inline bool pkt_parse_plain(const void *pkt, size_t len, struct pkt_plain *p)
{
	struct le64 head, tag;
	uint64_t word;

	if (__builtin_expect(len < sizeof(struct pkt_eager), 0)) {
		return false;
	}
	memcpy(&head, pkt, sizeof(head));
	/* The compiler must not read again what the peer may change meanwhile. */
	__asm__("" : "+r"(head.v));
	memcpy(&tag, (const char *)pkt + offsetof(struct pkt_eager, tag), sizeof(tag));
	word = le64_get(head);
	p->tag = le64_get(tag);
	p->tagged = word >> 8 & PKT_F_TAGGED;
	p->len = word >> 32;
	p->payload = (const char *)pkt + sizeof(struct pkt_eager);
	/* Kind, no flag but "tagged", zero. */
	return __builtin_expect((word & ~((uint64_t)PKT_F_TAGGED << 8) & UINT32_MAX) ==
					PKT_EAGER,
				1) &&
	       p->len == len - sizeof(struct pkt_eager);
}

/* The same with remote data, and nothing else. */
static inline bool pkt_parse_plain_data(const void *pkt, size_t len, struct pkt_plain *p,
					uint64_t *data)
{
	struct le64 words[3];
	uint64_t word;

	if (len < sizeof(words)) {
		return false;
	}
	memcpy(words, pkt, sizeof(words));
	/* The compiler must not read again what the peer may change meanwhile. */
	__asm__("" : "+r"(words[0].v));
	word = le64_get(words[0]);
	p->tag = le64_get(words[1]);
	*data = le64_get(words[2]);
	p->tagged = word >> 8 & PKT_F_TAGGED;
	p->len = word >> 32;
	p->payload = (const char *)pkt + sizeof(words);
	return (word & ~((uint64_t)PKT_F_TAGGED << 8) & UINT32_MAX) ==
		       (PKT_EAGER | PKT_F_DATA << 8) &&
	       p->len == len - sizeof(words);
}

/* Writes its header; flags 0 or PKT_F_TAGGED. */
static inline void pkt_put_plain(void *pkt, uint32_t flags, size_t len, uint64_t tag)
{
	const uint64_t words[2] = {htole64((uint64_t)len << 32 | flags << 8 | PKT_EAGER),
				   htole64(tag)};

	memcpy(pkt, words, sizeof(words));
}

/* The same with remote data. */
static inline void pkt_put_plain_data(void *pkt, uint32_t flags, size_t len, uint64_t tag,
				      uint64_t data)
{
	const uint64_t word = htole64(data);

	pkt_put_plain(pkt, flags | PKT_F_DATA, len, tag);
	memcpy((char *)pkt + sizeof(struct pkt_eager), &word, sizeof(word));
}

/* Header bytes of an eager packet with these flags. */
static inline size_t pkt_eager_head(uint8_t flags)
{
	return sizeof(struct pkt_eager) + ((flags & PKT_F_DATA) ? 8 : 0) +
	       ((flags & PKT_F_ACK) ? 8 : 0);
}

/* Writes the header, returns where the payload goes. */
static inline void *pkt_put_eager(void *pkt, uint8_t flags, uint32_t len, uint64_t tag,
				  uint64_t data, uint64_t id)
{
	struct pkt_eager h = {
		.head = {.kind = PKT_EAGER, .flags = flags, .len = le32_of(len)},
		.tag = le64_of(tag)};
	char *at = (char *)pkt + sizeof(h);
	struct le64 word;

	memcpy(pkt, &h, sizeof(h));
	if (flags & PKT_F_DATA) {
		word = le64_of(data);
		memcpy(at, &word, sizeof(word));
		at += sizeof(word);
	}
	if (flags & PKT_F_ACK) {
		word = le64_of(id);
		memcpy(at, &word, sizeof(word));
		at += sizeof(word);
	}
	return at;
}

/* Each returns the packet's length. names: with NAMED, of each iov. */
size_t pkt_put_rts(void *pkt, uint8_t flags, uint64_t tag, uint64_t data, uint64_t id,
		   uint64_t total, const struct pkt_view_iov *iov, const uint64_t *names,
		   uint32_t count);
size_t pkt_put_cts(void *pkt, uint8_t flags, uint64_t tx_id, uint64_t rx_id,
		   uint64_t want);
/* The payload follows at the returned length. */
size_t pkt_put_data(void *pkt, uint64_t rx_id, uint64_t offset, uint32_t len);
size_t pkt_put_fin(void *pkt, uint64_t tx_id, uint32_t err);
size_t pkt_put_ack(void *pkt, uint64_t tx_id);
size_t pkt_put_credit(void *pkt, uint32_t bytes);
size_t pkt_put_event(void *pkt, uint64_t data, uint64_t total);
size_t pkt_put_count(void *pkt, uint8_t flags, uint32_t count, uint64_t key);
size_t pkt_put_chunk(void *pkt, uint64_t rx_id, uint64_t offset, uint32_t len,
		     uint32_t slot, uint32_t turn);
size_t pkt_put_taken(void *pkt, uint64_t tx_id, uint64_t offset);
/* What v says: id, total, piece, slot, turn, len and iov. */
size_t pkt_put_join(void *pkt, const struct pkt_view *v);

/*
 * What a notice (wire.h) carries instead of a packet, for links that have them: the same
 * as EVENT. Accesses that are only counted have none: a notice is done when the target
 * has taken it, and who only writes must not wait for a target that makes no call.
 */
#define PKT_NOTICE_EVENT 0x100u

/* len: bytes that were written. 0 and *v as of the packet, or -FI_EINVAL. */
int pkt_parse_notice(uint32_t op, uint64_t data, uint64_t len, struct pkt_view *v);

/* "eager", "rts", ...; "?" for anything else. */
const char *pkt_kind_name(uint8_t kind);

#endif
