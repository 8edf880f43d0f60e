/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet encoders and the validator. One row per kind; a packet that is not exactly what
 * its row and its own fields say is refused before any field is used. */
#include "config.h"

#include "prov/proto/wire_atomic.h"
#include "prov/proto/wire_pkt.h"

#include <rdma/fi_errno.h>

typedef bool (*pkt_decode)(const void *pkt, size_t len, struct pkt_view *v);

/* The v->len pieces of memory at `at`: they lie in the address space, and have v->total
 * bytes. */
static bool decode_iov(const char *at, struct pkt_view *v)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < v->len; i++) {
		struct pkt_iov iov;

		memcpy(&iov, at + i * sizeof(iov), sizeof(iov));
		v->iov[i].addr = le64_get(iov.addr);
		v->iov[i].len = le64_get(iov.len);
		if (v->iov[i].len > v->total - sum ||
		    v->iov[i].addr > UINT64_MAX - v->iov[i].len) {
			return false;
		}
		sum += v->iov[i].len;
	}
	return sum == v->total;
}

static void put_iov(char *at, const struct pkt_view_iov *iov, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct pkt_iov out = {le64_of(iov[i].addr), le64_of(iov[i].len)};

		memcpy(at + i * sizeof(out), &out, sizeof(out));
	}
}

/* Any value may be one. */
static void decode_names(const char *at, struct pkt_view *v)
{
	for (uint32_t i = 0; i < v->len; i++) {
		struct le64 name;

		memcpy(&name, at + i * sizeof(name), sizeof(name));
		v->keys[i] = le64_get(name);
	}
}

static bool decode_rts(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_rts h;
	size_t each;

	memcpy(&h, pkt, sizeof(h));
	v->tag = le64_get(h.tag);
	v->data = le64_get(h.data);
	v->id = le64_get(h.id);
	v->total = le64_get(h.total);
	each = sizeof(struct pkt_iov) +
	       (v->flags & PKT_F_NAMED ? sizeof(struct le64) : 0);
	if ((v->flags & ~(PKT_F_TAGGED | PKT_F_DATA | PKT_F_NAMED)) ||
	    v->total > PKT_MSG_MAX || v->len > PKT_IOV_MAX ||
	    len != sizeof(h) + v->len * each) {
		return false;
	}
	if (v->len == 0) {
		return !(v->flags & PKT_F_NAMED);
	}
	if (v->flags & PKT_F_NAMED) {
		decode_names((const char *)pkt + sizeof(h) +
				     v->len * sizeof(struct pkt_iov),
			     v);
	}
	return decode_iov((const char *)pkt + sizeof(h), v);
}

static bool decode_cts(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_cts h;

	memcpy(&h, pkt, sizeof(h));
	v->id = le64_get(h.tx_id);
	v->rx_id = le64_get(h.rx_id);
	v->total = le64_get(h.want);
	return len == sizeof(h) && (v->flags & ~PKT_F_BULK) == 0 && v->len == 0 &&
	       v->total != 0 && v->total <= PKT_MSG_MAX;
}

static bool decode_data(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_data h;

	memcpy(&h, pkt, sizeof(h));
	v->id = le64_get(h.rx_id);
	v->offset = le64_get(h.offset);
	v->payload = (const char *)pkt + sizeof(h);
	return v->flags == 0 && v->len != 0 && len - sizeof(h) == v->len &&
	       v->offset <= PKT_MSG_MAX;
}

static bool decode_done(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_done h;

	memcpy(&h, pkt, sizeof(h));
	v->id = le64_get(h.tx_id);
	return len == sizeof(h) && v->flags == 0 &&
	       v->len <= (v->kind == PKT_FIN ? PKT_ERR_MAX : 0);
}

static bool decode_credit(const void *pkt, size_t len, struct pkt_view *v)
{
	(void)pkt;
	return len == sizeof(struct pkt_credit) && v->flags == 0;
}

static bool decode_event(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_event h;

	memcpy(&h, pkt, sizeof(h));
	v->data = le64_get(h.data);
	v->total = le64_get(h.total);
	return len == sizeof(h) && v->flags == 0 && v->len == 0;
}

static bool decode_chunk(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_chunk h;

	memcpy(&h, pkt, sizeof(h));
	v->id = le64_get(h.rx_id);
	v->offset = le64_get(h.offset);
	v->slot = le32_get(h.slot);
	v->turn = le32_get(h.turn);
	return len == sizeof(h) && v->flags == 0 && v->len != 0 &&
	       v->offset <= PKT_MSG_MAX;
}

static bool decode_taken(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_taken h;

	memcpy(&h, pkt, sizeof(h));
	v->id = le64_get(h.tx_id);
	v->offset = le64_get(h.offset);
	return len == sizeof(h) && v->flags == 0 && v->len == 0 &&
	       v->offset <= PKT_MSG_MAX;
}

static bool decode_join(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_join h;

	memcpy(&h, pkt, sizeof(h));
	v->id = le64_get(h.tx_id);
	v->total = le64_get(h.want);
	v->piece = le32_get(h.piece);
	v->slot = le32_get(h.cell);
	v->turn = le32_get(h.turn);
	return v->flags == 0 && h.zero.v == 0 && v->len != 0 && v->len <= PKT_IOV_MAX &&
	       len == sizeof(h) + v->len * sizeof(struct pkt_iov) && v->total != 0 &&
	       v->total <= PKT_MSG_MAX && v->piece != 0 &&
	       (v->total - 1) / v->piece < PKT_JOIN_PIECES &&
	       decode_iov((const char *)pkt + sizeof(h), v);
}

static bool decode_count(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_count h;

	memcpy(&h, pkt, sizeof(h));
	v->key = le64_get(h.key);
	return len == sizeof(h) && v->len != 0 &&
	       (v->flags & (PKT_COUNT_EP | PKT_COUNT_MR)) &&
	       (v->flags & ~(PKT_COUNT_READ | PKT_COUNT_EP | PKT_COUNT_MR)) == 0;
}

static const struct {
	const char *name;
	size_t min;
	pkt_decode decode;
} pkt_rows[] = {
	[PKT_EAGER] = {"eager", sizeof(struct pkt_eager), pkt_parse_eager},
	[PKT_RTS] = {"rts", sizeof(struct pkt_rts), decode_rts},
	[PKT_CTS] = {"cts", sizeof(struct pkt_cts), decode_cts},
	[PKT_DATA] = {"data", sizeof(struct pkt_data), decode_data},
	[PKT_FIN] = {"fin", sizeof(struct pkt_done), decode_done},
	[PKT_ACK] = {"ack", sizeof(struct pkt_done), decode_done},
	[PKT_CREDIT] = {"credit", sizeof(struct pkt_credit), decode_credit},
	[PKT_EVENT] = {"event", sizeof(struct pkt_event), decode_event},
	[PKT_CHUNK] = {"chunk", sizeof(struct pkt_chunk), decode_chunk},
	[PKT_TAKEN] = {"taken", sizeof(struct pkt_taken), decode_taken},
	[PKT_JOIN] = {"join", sizeof(struct pkt_join), decode_join},
	[PKT_COUNT] = {"count", sizeof(struct pkt_count), decode_count},
	[PKT_ATOMIC] = {"atomic", sizeof(struct pkt_atomic), pkt_decode_atomic},
	[PKT_RESULT] = {"result", sizeof(struct pkt_result), pkt_decode_result},
};
_Static_assert(sizeof(pkt_rows) / sizeof(pkt_rows[0]) == PKT_KINDS, "a row per kind");

int pkt_parse(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_head head;

	if (len < sizeof(head)) {
		return -FI_EINVAL;
	}
	memcpy(&head, pkt, sizeof(head));
	if (head.kind == 0 || head.kind >= PKT_KINDS || head.zero.v ||
	    len < pkt_rows[head.kind].min) {
		return -FI_EINVAL;
	}
	v->kind = head.kind;
	v->flags = head.flags;
	v->len = le32_get(head.len);
	return pkt_rows[head.kind].decode(pkt, len, v) ? 0 : -FI_EINVAL;
}

int pkt_parse_notice(uint32_t op, uint64_t data, uint64_t len, struct pkt_view *v)
{
	if (op != PKT_NOTICE_EVENT) {
		return -FI_EINVAL;
	}
	v->kind = PKT_EVENT;
	v->flags = 0;
	v->len = 0;
	v->data = data;
	v->total = len;
	return 0;
}

const char *pkt_kind_name(uint8_t kind)
{
	return kind > 0 && kind < PKT_KINDS ? pkt_rows[kind].name : "?";
}

static struct pkt_head head_of(uint8_t kind, uint8_t flags, uint32_t len)
{
	return (struct pkt_head){.kind = kind, .flags = flags, .len = le32_of(len)};
}

size_t pkt_put_rts(void *pkt, uint8_t flags, uint64_t tag, uint64_t data, uint64_t id,
		   uint64_t total, const struct pkt_view_iov *iov, const uint64_t *names,
		   uint32_t count)
{
	struct pkt_rts h = {.head = head_of(PKT_RTS, flags, count),
			    .tag = le64_of(tag),
			    .data = le64_of(data),
			    .id = le64_of(id),
			    .total = le64_of(total)};
	size_t len;

	memcpy(pkt, &h, sizeof(h));
	put_iov((char *)pkt + sizeof(h), iov, count);
	len = sizeof(h) + count * sizeof(struct pkt_iov);
	for (uint32_t i = 0; i < count && (flags & PKT_F_NAMED); i++) {
		struct le64 name = le64_of(names[i]);

		memcpy((char *)pkt + len, &name, sizeof(name));
		len += sizeof(name);
	}
	return len;
}

size_t pkt_put_cts(void *pkt, uint8_t flags, uint64_t tx_id, uint64_t rx_id,
		   uint64_t want)
{
	struct pkt_cts h = {.head = head_of(PKT_CTS, flags, 0),
			    .tx_id = le64_of(tx_id),
			    .rx_id = le64_of(rx_id),
			    .want = le64_of(want)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_data(void *pkt, uint64_t rx_id, uint64_t offset, uint32_t len)
{
	struct pkt_data h = {.head = head_of(PKT_DATA, 0, len),
			     .rx_id = le64_of(rx_id),
			     .offset = le64_of(offset)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

static size_t put_done(void *pkt, uint8_t kind, uint64_t tx_id, uint32_t err)
{
	struct pkt_done h = {.head = head_of(kind, 0, err), .tx_id = le64_of(tx_id)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_fin(void *pkt, uint64_t tx_id, uint32_t err)
{
	return put_done(pkt, PKT_FIN, tx_id, err <= PKT_ERR_MAX ? err : FI_EOTHER);
}

size_t pkt_put_ack(void *pkt, uint64_t tx_id)
{
	return put_done(pkt, PKT_ACK, tx_id, 0);
}

size_t pkt_put_credit(void *pkt, uint32_t bytes)
{
	struct pkt_credit h = {.head = head_of(PKT_CREDIT, 0, bytes)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_count(void *pkt, uint8_t flags, uint32_t count, uint64_t key)
{
	struct pkt_count h = {.head = head_of(PKT_COUNT, flags, count),
			      .key = le64_of(key)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_event(void *pkt, uint64_t data, uint64_t total)
{
	struct pkt_event h = {.head = head_of(PKT_EVENT, 0, 0),
			      .data = le64_of(data),
			      .total = le64_of(total)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_chunk(void *pkt, uint64_t rx_id, uint64_t offset, uint32_t len,
		     uint32_t slot, uint32_t turn)
{
	struct pkt_chunk h = {.head = head_of(PKT_CHUNK, 0, len),
			      .rx_id = le64_of(rx_id),
			      .offset = le64_of(offset),
			      .slot = le32_of(slot),
			      .turn = le32_of(turn)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_taken(void *pkt, uint64_t tx_id, uint64_t offset)
{
	struct pkt_taken h = {.head = head_of(PKT_TAKEN, 0, 0),
			      .tx_id = le64_of(tx_id),
			      .offset = le64_of(offset)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}

size_t pkt_put_join(void *pkt, const struct pkt_view *v)
{
	struct pkt_join h = {.head = head_of(PKT_JOIN, 0, v->len),
			     .tx_id = le64_of(v->id),
			     .want = le64_of(v->total),
			     .piece = le32_of(v->piece),
			     .cell = le32_of(v->slot),
			     .turn = le32_of(v->turn)};

	memcpy(pkt, &h, sizeof(h));
	put_iov((char *)pkt + sizeof(h), v->iov, v->len);
	return sizeof(h) + v->len * sizeof(struct pkt_iov);
}
