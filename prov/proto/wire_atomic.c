/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoders and validator of the packets of atomic operations. */
#include "config.h"

#include "prov/proto/wire_atomic.h"

#include <rdma/fi_errno.h>

#include "prov/proto/atomic_op.h"

/* The pieces: whole elements, which add up. */
static bool iov_parse(const void *pkt, size_t elem, struct pkt_view *v)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < v->count; i++) {
		struct pkt_atomic_iov iov;

		memcpy(&iov,
		       (const char *)pkt + sizeof(struct pkt_atomic) + i * sizeof(iov),
		       sizeof(iov));
		v->iov[i].addr = le64_get(iov.addr);
		v->iov[i].len = le64_get(iov.len);
		v->keys[i] = le64_get(iov.key);
		/* Where they are is for the key table to judge. */
		if (v->iov[i].len > v->len - sum || v->iov[i].len % elem) {
			return false;
		}
		sum += v->iov[i].len;
	}
	return sum == v->len;
}

static bool head_parse(const struct pkt_atomic *h, struct pkt_view *v)
{
	v->id = le64_get(h->id);
	v->data = le64_get(h->data);
	v->total = le64_get(h->total);
	v->mode = h->mode;
	v->op = h->op;
	v->type = h->type;
	v->count = h->count;
	if ((v->flags & PKT_F_CHECK) &&
	    (!(v->flags & PKT_F_MORE) || v->len != v->total)) {
		return false;
	}
	return !(v->flags & ~(PKT_F_DATA | PKT_F_MORE | PKT_F_CHECK)) && !h->zero.v &&
	       v->len && v->len <= v->total && v->total <= PKT_ATOMIC_TOTAL_MAX &&
	       v->count && v->count <= PKT_IOV_MAX;
}

bool pkt_decode_atomic(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_atomic h;
	size_t at, elem;
	uint32_t operands;

	memcpy(&h, pkt, sizeof(h));
	if (!head_parse(&h, v) || !atomic_op_find(v->mode, v->op, v->type)) {
		return false;
	}
	elem = atomic_type_size(v->type);
	operands = v->flags & PKT_F_CHECK ? 0 : atomic_op_operands(v->mode, v->op);
	at = sizeof(h) + v->count * sizeof(struct pkt_atomic_iov);
	if (v->len % elem || v->total % elem || len < at ||
	    len - at != (uint64_t)operands * v->len || !iov_parse(pkt, elem, v)) {
		return false;
	}
	v->payload = operands > 0 ? (const char *)pkt + at : NULL;
	v->compare = operands > 1 ? (const char *)pkt + at + v->len : NULL;
	return true;
}

bool pkt_decode_result(const void *pkt, size_t len, struct pkt_view *v)
{
	struct pkt_result h;
	uint32_t err;

	memcpy(&h, pkt, sizeof(h));
	err = le32_get(h.err);
	v->id = le64_get(h.id);
	v->total = err;
	v->payload = (const char *)pkt + sizeof(h);
	return v->flags == 0 && !h.zero.v && err <= PKT_ERR_MAX && !(err && v->len) &&
	       len - sizeof(h) == v->len;
}

size_t pkt_put_atomic(void *pkt, const struct pkt_view *v)
{
	struct pkt_atomic h = {
		.head = {.kind = PKT_ATOMIC, .flags = v->flags, .len = le32_of(v->len)},
		.id = le64_of(v->id),
		.data = le64_of(v->data),
		.total = le64_of(v->total),
		.mode = v->mode,
		.op = v->op,
		.type = v->type,
		.count = v->count};

	memcpy(pkt, &h, sizeof(h));
	for (uint32_t i = 0; i < v->count; i++) {
		struct pkt_atomic_iov out = {le64_of(v->iov[i].addr),
					     le64_of(v->iov[i].len), le64_of(v->keys[i])};

		memcpy((char *)pkt + sizeof(h) + i * sizeof(out), &out, sizeof(out));
	}
	return sizeof(h) + v->count * sizeof(struct pkt_atomic_iov);
}

size_t pkt_put_result(void *pkt, uint64_t id, uint32_t err, uint32_t len)
{
	struct pkt_result h = {.head = {.kind = PKT_RESULT, .len = le32_of(len)},
			       .id = le64_of(id),
			       .err = le32_of(err <= PKT_ERR_MAX ? err : FI_EOTHER)};

	memcpy(pkt, &h, sizeof(h));
	return sizeof(h);
}
