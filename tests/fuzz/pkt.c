/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of proto, as a peer may forge them: whatever pkt_parse accepts lies inside the
 * packet and within its limits, and the inline parser of eager messages agrees with it.
 */
#include "config.h"

#include <string.h>

#include "prov/proto/atomic_op.h"
#include "prov/proto/wire_atomic.h"
#include "prov/proto/wire_pkt.h"
#include "tests/fuzz/fuzz.h"

static void check_atomic(const struct pkt_view *v, const uint8_t *data, size_t size)
{
	const uint8_t *at = v->payload, *compare = v->compare;
	size_t elem = atomic_type_size(v->type);
	uint64_t sum = 0;

	fuzz_require(atomic_op_find(v->mode, v->op, v->type) != NULL);
	fuzz_require(v->count > 0 && v->count <= PKT_IOV_MAX);
	fuzz_require(v->len > 0 && v->len <= v->total && v->len % elem == 0);
	fuzz_require(!at || (at >= data && v->len <= (size_t)(data + size - at)));
	fuzz_require(!compare || compare == at + v->len);
	fuzz_require(!compare || v->len == (size_t)(data + size - compare));
	for (uint32_t i = 0; i < v->count; i++) {
		fuzz_require(v->iov[i].len % elem == 0);
		sum += v->iov[i].len;
	}
	fuzz_require(sum == v->len);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	struct pkt_view v = {0}, eager = {0};
	bool good = pkt_parse(data, size, &v) == 0;

	if (good) {
		fuzz_require(v.kind > 0 && v.kind < PKT_KINDS);
		fuzz_require(!(v.flags & ~(PKT_F_ALL | PKT_F_BULK | PKT_F_MORE |
					   PKT_F_CHECK | PKT_F_NAMED)));
		fuzz_require(!(v.flags & PKT_F_CHECK) || v.kind == PKT_ATOMIC);
		if (v.kind == PKT_EAGER || v.kind == PKT_DATA || v.kind == PKT_RESULT) {
			const uint8_t *at = v.payload;

			fuzz_require(at >= data && at <= data + size);
			fuzz_require(v.len == (size_t)(data + size - at));
		}
		if (v.kind == PKT_ATOMIC)
			check_atomic(&v, data, size);
		if (v.kind == PKT_RTS)
			fuzz_require(v.len <= PKT_IOV_MAX && v.total <= PKT_MSG_MAX);
	}
	if (size > 0 && data[0] == PKT_EAGER) {
		fuzz_require(pkt_parse_eager(data, size, &eager) == good);
		fuzz_require(!good || (eager.tag == v.tag && eager.len == v.len &&
				       eager.payload == v.payload));
	}
	return good;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const struct pkt_view_iov iov[2] = {{4096, 100000}, {8192, 100000}};
	static const uint64_t names[2] = {1, UINT64_MAX};
	struct pkt_view atomic = {.len = 16,
				  .id = 3,
				  .total = 32,
				  .mode = ATOMIC_COMPARE,
				  .op = FI_MSWAP,
				  .type = FI_UINT32,
				  .count = 2,
				  .iov = {{4096, 12}, {8192, 4}},
				  .keys = {1, 2}};
	uint8_t *end;

	switch (number) {
	case 0:
		end = pkt_put_eager(room, PKT_F_TAGGED, 8, 42, 0, 0);
		return (size_t)(end - room) + 8;
	case 1:
		end = pkt_put_eager(room, PKT_F_ALL, 3, 42, 7, 9);
		return (size_t)(end - room) + 3;
	case 2:
		return pkt_put_rts(room, PKT_F_TAGGED, 42, 7, 1, 200000, iov, NULL, 2);
	case 3:
		return pkt_put_cts(room, PKT_F_BULK, 1, 2, 200000);
	case 4:
		return pkt_put_data(room, 2, 4096, 16) + 16;
	case 5:
		return pkt_put_fin(room, 1, 0);
	case 6:
		return pkt_put_ack(room, 1);
	case 7:
		return pkt_put_credit(room, 4096);
	case 8:
		return pkt_put_event(room, 7, 200000);
	case 9:
		return pkt_put_chunk(room, 2, 65536, 32768, 3, 1);
	case 10:
		return pkt_put_taken(room, 1, 65536);
	case 11:
		return pkt_put_join(room, &(struct pkt_view){.id = 1,
							     .total = 200000,
							     .piece = 65536,
							     .len = 2,
							     .iov = {iov[0], iov[1]}});
	case 12:
		return pkt_put_count(room, PKT_COUNT_EP | PKT_COUNT_READ, 2, 77);
	case 13:
		atomic.flags = PKT_F_DATA;
		return pkt_put_atomic(room, &atomic) + 2 * atomic.len;
	case 14:
		atomic.mode = ATOMIC_FETCH;
		atomic.op = FI_ATOMIC_READ;
		atomic.count = 1;
		atomic.iov[0].len = 16;
		return pkt_put_atomic(room, &atomic);
	case 15:
		return pkt_put_result(room, 1, 0, 16) + 16;
	case 16:
		return pkt_put_rts(room, PKT_F_NAMED, 42, 7, 1, 200000, iov, names, 2);
	case 17:
		atomic.flags = PKT_F_CHECK | PKT_F_MORE;
		atomic.total = atomic.len;
		return pkt_put_atomic(room, &atomic);
	default:
		return 0;
	}
}
