/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two packets of atomic operations; rules as in wire_pkt.h. A request carries as many
 * elements as fit, the rest of a longer operation follows in more requests. Before the
 * first of several one asks whether all of them would be carried out (PKT_F_CHECK); if
 * not, those that follow aren't. Each request is answered by one result, in order.
 */
#ifndef WEFT_PROTO_WIRE_ATOMIC_H
#define WEFT_PROTO_WIRE_ATOMIC_H

#include "prov/proto/wire_pkt.h"

/* Target memory: len is a multiple of the element's size. */
struct pkt_atomic_iov {
	struct le64 addr;
	struct le64 len;
	struct le64 key;
};

/*
 * head.len: bytes of target memory that it is about, not 0. Then `count` pkt_atomic_iov,
 * which add up to head.len; then head.len bytes of operands, unless the operation is
 * FI_ATOMIC_READ; then head.len bytes to compare with, where mode is ATOMIC_COMPARE.
 * With PKT_F_CHECK, which comes with PKT_F_MORE, head.len is total, and there are no
 * operands and nothing to compare with.
 */
struct pkt_atomic {
	struct pkt_head head;
	struct le64 id;	   /* of the initiator's operation */
	struct le64 data;  /* 0 without PKT_F_DATA */
	struct le64 total; /* bytes of the whole operation, not less than head.len */
	uint8_t mode;	   /* enum atomic_mode */
	uint8_t op;	   /* enum fi_op */
	uint8_t type;	   /* enum fi_datatype */
	uint8_t count;	   /* 1 to PKT_IOV_MAX */
	struct le32 zero;
};

/* head.len: bytes of results; 0 where there are none, and with an error. */
struct pkt_result {
	struct pkt_head head;
	struct le64 id;
	struct le32 err; /* 0 or a positive fi_errno */
	struct le32 zero;
};

_Static_assert(sizeof(struct pkt_atomic_iov) == 24, "pkt_atomic_iov");
_Static_assert(sizeof(struct pkt_atomic) == 40, "pkt_atomic");
_Static_assert(sizeof(struct pkt_result) == 24, "pkt_result");

/* Bytes of all operations of one call at most. */
#define PKT_ATOMIC_TOTAL_MAX (UINT64_C(1) << 32)

#define PKT_ATOMIC_HEAD_MAX \
	(sizeof(struct pkt_atomic) + PKT_IOV_MAX * sizeof(struct pkt_atomic_iov))

/* What v says (flags, len, id, data, total, mode, op, type, count, iov, keys), but the
 * operands, which follow at the returned length. */
size_t pkt_put_atomic(void *pkt, const struct pkt_view *v);
/* The results follow at the returned length. */
size_t pkt_put_result(void *pkt, uint64_t id, uint32_t err, uint32_t len);

/* Rows of pkt_parse. */
bool pkt_decode_atomic(const void *pkt, size_t len, struct pkt_view *v);
bool pkt_decode_result(const void *pkt, size_t len, struct pkt_view *v);

#endif
