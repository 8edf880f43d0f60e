/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet formats: golden bytes, round trips, and mutation: whatever the bytes, the
 * validator neither reads outside nor lets a field through that is out of range. */
#include "config.h"

#include "prov/proto/atomic_op.h"
#include "prov/proto/wire_atomic.h"
#include "prov/proto/wire_pkt.h"
#include "util/tap.h"

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void test_golden_names(void)
{
	static const uint8_t named[] = {
		2, 0x40, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,  /* head, tag */
		6, 0,	 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,  /* data, id */
		3, 0,	 0, 0, 0, 0, 0, 0,			    /* total */
		1, 0,	 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,  /* address, length */
		4, 0,	 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,  /* the second one */
		8, 7,	 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0}; /* their names */
	static const struct pkt_view_iov two[] = {{1, 2}, {4, 1}};
	static const uint64_t names[] = {0x0102030405060708, 9};
	struct pkt_view v;
	uint8_t buf[128];

	tap_is_int(pkt_put_rts(buf, PKT_F_NAMED, 5, 6, 7, 3, two, names, 2),
		   sizeof(named), "length of an rts with names");
	tap_is_mem(buf, named, sizeof(named), "rts with names");
	tap_ok(pkt_parse(buf, sizeof(named), &v) == 0 && v.keys[0] == names[0] &&
		       v.keys[1] == names[1],
	       "which are read again");
}

static void test_golden(void)
{
	static const uint8_t eager[] = {
		1,    7,    0,	  0,	3,    0,    0,	  0,	8,    7,    6,	  5,
		4,    3,    2,	  1,	0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 'a',  'b',  'c'};
	static const uint8_t rts[] = {2, 1, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0,
				      0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0,
				      0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
				      2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
	static const uint8_t cts[] = {3, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
				      2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t data[] = {4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,
				       0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t fin[] = {5, 0, 0, 0, 14, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t ack[] = {6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t credit[] = {7, 0, 0, 0, 0, 0, 1, 0};
	static const uint8_t event[] = {8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
					0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t chunk[] = {9, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
					3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0};
	static const struct pkt_view join_view = {.id = 2,
						  .total = 0x30000,
						  .piece = 0x10000,
						  .slot = 5,
						  .turn = 6,
						  .len = 1,
						  .iov = {{0x1000, 0x30000}}};
	static const uint8_t join[] = {11, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0,
				       0,  0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0,
				       5,  0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
				       0,  0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0};
	static const uint8_t taken[] = {10, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
					0,  0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t count[] = {12, 6, 0, 0, 3, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
	static const uint8_t atomic[] = {
		13, 0x12, 0, 0, 8, 0, 0, 0, 9,	0, 0, 0, 0, 0, 0, 0, /* head, id */
		7,  0,	  0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, /* data, total */
		1,  2,	  5, 1, 0, 0, 0, 0, /* fetch SUM UINT32 */
		0,  0,	  2, 0, 0, 0, 0, 0, 8,	0, 0, 0, 0, 0, 0, 0, /* address, length */
		6,  0,	  0, 0, 0, 0, 0, 1};			     /* key */
	static const uint8_t result[] = {14, 0, 0, 0, 8,  0, 0, 0, 9, 0, 0, 0,
					 0,  0, 0, 0, 22, 0, 0, 0, 0, 0, 0, 0};
	const struct pkt_view request = {.flags = PKT_F_DATA | PKT_F_MORE,
					 .len = 8,
					 .id = 9,
					 .data = 7,
					 .total = 16,
					 .mode = ATOMIC_FETCH,
					 .op = FI_SUM,
					 .type = FI_UINT32,
					 .count = 1,
					 .iov = {{0x20000, 8}},
					 .keys = {0x0100000000000006}};
	struct pkt_view_iov iov = {0x20000, 0x100};
	uint8_t buf[128];
	char *at;

	at = pkt_put_eager(buf, PKT_F_ALL, 3, 0x0102030405060708, 0x1112131415161718,
			   0x2122232425262728);
	memcpy(at, "abc", 3);
	tap_is_mem(buf, eager, sizeof(eager), "eager");
	tap_is_int(pkt_put_rts(buf, PKT_F_TAGGED, 5, 6, 7, 0x100, &iov, NULL, 1),
		   sizeof(rts), "rts length");
	tap_is_mem(buf, rts, sizeof(rts), "rts");
	tap_is_int(pkt_put_cts(buf, PKT_F_BULK, 1, 2, 3), sizeof(cts), "cts length");
	tap_is_mem(buf, cts, sizeof(cts), "cts");
	tap_is_int(pkt_put_data(buf, 2, 3, 1), sizeof(data), "data length");
	tap_is_mem(buf, data, sizeof(data), "data");
	tap_is_int(pkt_put_fin(buf, 9, 14), sizeof(fin), "fin length");
	tap_is_mem(buf, fin, sizeof(fin), "fin");
	tap_is_int(pkt_put_ack(buf, 9), sizeof(ack), "ack length");
	tap_is_mem(buf, ack, sizeof(ack), "ack");
	tap_is_int(pkt_put_credit(buf, 0x10000), sizeof(credit), "credit length");
	tap_is_mem(buf, credit, sizeof(credit), "credit");
	tap_is_int(pkt_put_event(buf, 1, 2), sizeof(event), "event length");
	tap_is_mem(buf, event, sizeof(event), "event");
	tap_is_int(pkt_put_chunk(buf, 2, 3, 0x100, 4, 5), sizeof(chunk), "chunk length");
	tap_is_mem(buf, chunk, sizeof(chunk), "chunk");
	tap_is_int(pkt_put_taken(buf, 2, 3), sizeof(taken), "taken length");
	tap_is_mem(buf, taken, sizeof(taken), "taken");
	tap_is_int(pkt_put_join(buf, &join_view), sizeof(join), "join length");
	tap_is_mem(buf, join, sizeof(join), "join");
	tap_is_int(pkt_put_count(buf, PKT_COUNT_EP | PKT_COUNT_MR, 3, 0x0102030405060708),
		   sizeof(count), "count length");
	tap_is_mem(buf, count, sizeof(count), "count");
	tap_is_int(pkt_put_atomic(buf, &request), sizeof(atomic), "atomic length");
	tap_is_mem(buf, atomic, sizeof(atomic), "atomic");
	tap_is_int(pkt_put_result(buf, 9, 22, 8), sizeof(result), "result length");
	tap_is_mem(buf, result, sizeof(result), "result");
}

/* A valid request: operation and type at random, two pieces. */
static size_t make_atomic(uint8_t *buf)
{
	struct pkt_view v = {.count = 2, .id = next_random(), .data = 5};
	size_t elem, len;

	do {
		v.mode = next_random() % ATOMIC_MODES;
		v.op = next_random() % FI_ATOMIC_OP_LAST;
		v.type = next_random() % 16;
	} while (!atomic_op_find(v.mode, v.op, v.type));
	elem = atomic_type_size(v.type);
	v.flags = next_random() & (PKT_F_DATA | PKT_F_MORE);
	v.len = 2 * elem;
	v.total = v.len + next_random() % 3 * elem;
	v.iov[0] = (struct pkt_view_iov){next_random() >> 1, elem};
	v.iov[1] = (struct pkt_view_iov){next_random() >> 1, elem};
	len = pkt_put_atomic(buf, &v);
	return len + (size_t)atomic_op_operands(v.mode, v.op) * v.len;
}

/* Some valid packet of that kind. */
static size_t make(uint8_t *buf, uint8_t kind)
{
	struct pkt_view_iov iov[PKT_IOV_MAX] = {{0x1000, 10}, {0x2000, 0}, {7, 90}};
	const uint64_t names[PKT_IOV_MAX] = {next_random(), 0, UINT64_MAX};
	uint8_t flags = next_random() & PKT_F_ALL;

	switch (kind) {
	case PKT_EAGER:
		memset(pkt_put_eager(buf, flags, 5, next_random(), 1, 2), 0x77, 5);
		return pkt_eager_head(flags) + 5;
	case PKT_RTS:
		return pkt_put_rts(buf,
				   (flags & ~PKT_F_ACK) | (next_random() & PKT_F_NAMED),
				   1, 2, 3, 100, iov, names, 3);
	case PKT_CTS:
		return pkt_put_cts(buf, next_random() & PKT_F_BULK, next_random(),
				   next_random(), 1000);
	case PKT_DATA:
		return pkt_put_data(buf, next_random(), 4096, 9) + 9;
	case PKT_FIN:
		return pkt_put_fin(buf, next_random(), next_random() % 200);
	case PKT_ACK:
		return pkt_put_ack(buf, next_random());
	case PKT_CREDIT:
		return pkt_put_credit(buf, next_random());
	case PKT_CHUNK:
		return pkt_put_chunk(buf, next_random(), 8192, 4096, next_random(),
				     next_random());
	case PKT_TAKEN:
		return pkt_put_taken(buf, next_random(), 8192);
	case PKT_JOIN:
		return pkt_put_join(
			buf,
			&(struct pkt_view){.id = next_random(),
					   .total = 100,
					   .piece = 30,
					   .slot = (uint32_t)next_random(),
					   .len = 3,
					   .iov = {{0x1000, 10}, {0x2000, 0}, {7, 90}}});
	case PKT_COUNT:
		return pkt_put_count(buf, PKT_COUNT_EP | (flags & PKT_COUNT_READ),
				     1 + next_random() % 9, next_random());
	case PKT_ATOMIC:
		return make_atomic(buf);
	case PKT_RESULT:
		return next_random() & 1 ? pkt_put_result(buf, next_random(), 0, 6) + 6
					 : pkt_put_result(buf, next_random(), 13, 0);
	default:
		return pkt_put_event(buf, next_random(), next_random());
	}
}

static bool atomic_in_range(const struct pkt_view *v, const uint8_t *pkt, size_t len)
{
	size_t elem = atomic_type_size(v->type);
	const uint8_t *end = pkt + len;
	uint64_t sum = 0;

	if (!atomic_op_find(v->mode, v->op, v->type) || v->count == 0 ||
	    v->count > PKT_IOV_MAX || v->len == 0 || v->len > v->total) {
		return false;
	}
	for (uint32_t i = 0; i < v->count; i++) {
		if (v->iov[i].len % elem) {
			return false;
		}
		sum += v->iov[i].len;
	}
	if (v->compare) {
		end -= v->len;
	}
	return sum == v->len && v->len % elem == 0 &&
	       !v->payload == (v->op == FI_ATOMIC_READ) &&
	       !v->compare == (v->mode != ATOMIC_COMPARE) &&
	       (!v->compare || v->compare == end) &&
	       (!v->payload || (const uint8_t *)v->payload == end - v->len);
}

/* What every handler may rely on. */
static bool in_range(const struct pkt_view *v, const uint8_t *pkt, size_t len)
{
	uint64_t sum = 0;

	if (v->kind == 0 || v->kind >= PKT_KINDS ||
	    (v->flags & ~(PKT_F_ALL | PKT_F_BULK | PKT_F_MORE | PKT_F_NAMED))) {
		return false;
	}
	switch (v->kind) {
	case PKT_ATOMIC:
		return atomic_in_range(v, pkt, len);
	case PKT_EAGER:
	case PKT_DATA:
	case PKT_RESULT:
		return (const uint8_t *)v->payload >= pkt &&
		       (const uint8_t *)v->payload + v->len == pkt + len;
	case PKT_RTS:
		if (v->len > PKT_IOV_MAX || v->total > PKT_MSG_MAX ||
		    ((v->flags & PKT_F_NAMED) && v->len == 0)) {
			return false;
		}
		for (uint32_t i = 0; i < v->len; i++) {
			sum += v->iov[i].len;
		}
		return v->len == 0 || sum == v->total;
	case PKT_CTS:
		return v->total > 0 && v->total <= PKT_MSG_MAX;
	case PKT_FIN:
		return v->len <= 4095;
	case PKT_CHUNK:
		return v->len > 0 && v->offset <= PKT_MSG_MAX;
	case PKT_TAKEN:
		return v->offset <= PKT_MSG_MAX;
	case PKT_JOIN:
		if (v->len == 0 || v->len > PKT_IOV_MAX || v->total == 0 ||
		    v->piece == 0 || (v->total - 1) / v->piece >= PKT_JOIN_PIECES) {
			return false;
		}
		for (uint32_t i = 0; i < v->len; i++) {
			sum += v->iov[i].len;
		}
		return sum == v->total;
	case PKT_COUNT:
		return v->len > 0 && (v->flags & (PKT_COUNT_EP | PKT_COUNT_MR));
	default:
		return true;
	}
}

static void test_kinds(void)
{
	uint8_t buf[256];
	struct pkt_view v;

	for (uint8_t kind = 1; kind < PKT_KINDS; kind++) {
		size_t len = make(buf, kind);
		bool good = pkt_parse(buf, len, &v) == 0 && in_range(&v, buf, len);

		for (size_t cut = 0; cut < len; cut++) {
			good &= pkt_parse(buf, cut, &v) != 0;
		}
		good &= pkt_parse(buf, len + 1, &v) != 0;
		tap_ok(good, "%s: valid as made, refused when cut or longer",
		       pkt_kind_name(kind));
	}
	memset(buf, 0, sizeof(buf));
	tap_ok(pkt_parse(buf, sizeof(buf), &v) != 0, "kind 0");
	buf[0] = PKT_KINDS;
	tap_ok(pkt_parse(buf, sizeof(buf), &v) != 0, "unknown kind");
	tap_is_str(pkt_kind_name(200), "?", "name of an unknown kind");
}

static void test_ranges(void)
{
	struct pkt_view_iov wraps = {UINT64_MAX - 4, 10};
	struct pkt_view_iov longer = {0x1000, 11};
	uint8_t buf[256];
	struct pkt_view v;
	size_t len;

	len = pkt_put_rts(buf, 0, 0, 0, 0, 10, &wraps, NULL, 1);
	tap_ok(pkt_parse(buf, len, &v) != 0, "rts: memory that wraps round");
	len = pkt_put_rts(buf, 0, 0, 0, 0, 10, &longer, NULL, 1);
	tap_ok(pkt_parse(buf, len, &v) != 0, "rts: memory longer than the message");
	len = pkt_put_rts(buf, 0, 0, 0, 0, UINT64_MAX, NULL, NULL, 0);
	tap_ok(pkt_parse(buf, len, &v) != 0, "rts: message too long");
	len = pkt_put_rts(buf, PKT_F_NAMED, 0, 0, 0, 10, NULL, NULL, 0);
	tap_ok(pkt_parse(buf, len, &v) != 0, "rts: names of nothing");
	v = (struct pkt_view){.total = 10, .piece = 0, .len = 1, .iov = {{0x1000, 10}}};
	tap_ok(pkt_parse(buf, pkt_put_join(buf, &v), &v) != 0, "join: pieces of nothing");
	v = (struct pkt_view){.total = 10, .piece = 5, .len = 1, .iov = {{0x1000, 9}}};
	tap_ok(pkt_parse(buf, pkt_put_join(buf, &v), &v) != 0, "join: less than wanted");
	v = (struct pkt_view){.total = UINT64_C(1) << 40,
			      .piece = 1,
			      .len = 1,
			      .iov = {{0, UINT64_C(1) << 40}}};
	tap_ok(pkt_parse(buf, pkt_put_join(buf, &v), &v) != 0, "join: too many pieces");
	len = pkt_put_cts(buf, 0, 1, 2, 0);
	tap_ok(pkt_parse(buf, len, &v) != 0, "cts for nothing");
	len = pkt_put_data(buf, 1, 2, 0);
	tap_ok(pkt_parse(buf, len, &v) != 0, "data without data");
	len = pkt_put_result(buf, 1, 5, 8) + 8;
	tap_ok(pkt_parse(buf, len, &v) != 0, "a result and an error");
}

/* One field of a request at a time is out of its range. */
static void test_atomic_ranges(void)
{
	const struct pkt_view good = {.len = 16,
				      .total = 16,
				      .mode = ATOMIC_COMPARE,
				      .op = FI_CSWAP,
				      .type = FI_INT64,
				      .count = 2,
				      .iov = {{0x1000, 8}, {0x2000, 8}}};
	const size_t operands = 32;
	struct {
		const char *what;
		struct pkt_view v;
	} rows[13];
	uint8_t buf[512];
	struct pkt_view v;

	for (size_t i = 0; i < 13; i++) {
		rows[i].v = good;
	}
	rows[0].what = "an operation for another call", rows[0].v.op = FI_SUM;
	rows[1].what = "an unknown operation", rows[1].v.op = FI_ATOMIC_OP_LAST;
	rows[2].what = "an unknown type", rows[2].v.type = 16;
	rows[3].what = "an unknown call", rows[3].v.mode = ATOMIC_MODES;
	rows[4].what = "no pieces", rows[4].v.count = 0;
	rows[5].what = "too many pieces", rows[5].v.count = PKT_IOV_MAX + 1;
	rows[6].what = "pieces that are too long", rows[6].v.iov[1].len = 16;
	rows[7].what = "pieces that are too short", rows[7].v.iov[1].len = 0;
	rows[8].what = "half an element", rows[8].v.iov[0].len = 4,
	rows[8].v.iov[1].len = 12;
	rows[9].what = "longer than the whole", rows[9].v.total = 8;
	rows[10].what = "an operation without an end", rows[10].v.total = UINT64_MAX - 7;
	rows[11].what = "an order of complex numbers", rows[11].v.op = FI_CSWAP_LE,
	rows[11].v.type = FI_FLOAT_COMPLEX;
	rows[12].what = "an unknown flag", rows[12].v.flags = PKT_F_ACK;
	memset(buf, 0, sizeof(buf));
	tap_ok(pkt_parse(buf, pkt_put_atomic(buf, &good) + operands, &v) == 0,
	       "atomic: as it should be");
	for (size_t i = 0; i < 13; i++) {
		size_t count = rows[i].v.count;

		/* What is encoded stays inside the view. */
		rows[i].v.count = count > PKT_IOV_MAX ? PKT_IOV_MAX : count;
		memset(buf, 0, sizeof(buf));
		pkt_put_atomic(buf, &rows[i].v);
		buf[offsetof(struct pkt_atomic, count)] = count;
		tap_ok(pkt_parse(buf,
				 sizeof(struct pkt_atomic) +
					 count * sizeof(struct pkt_atomic_iov) + operands,
				 &v) != 0,
		       "atomic: %s", rows[i].what);
	}
}

/* The short parser takes exactly what the whole one takes for an eager message with no
 * flag but "tagged", and reads the same from it. v->kind is 0 where nothing was taken. */
static bool plain_agrees(const struct pkt_view *v, const uint8_t *pkt, size_t len)
{
	struct pkt_plain p;
	bool wanted = v->kind == PKT_EAGER && !(v->flags & ~PKT_F_TAGGED);

	if (pkt_parse_plain(pkt, len, &p) != wanted) {
		return false;
	}
	return !wanted || (p.tag == v->tag && p.payload == v->payload &&
			   p.len == v->len && p.tagged == v->flags);
}

/* So does the one for messages with data and no other flag. */
static bool plain_data_agrees(const struct pkt_view *v, const uint8_t *pkt, size_t len)
{
	bool wanted = v->kind == PKT_EAGER && (v->flags & ~PKT_F_TAGGED) == PKT_F_DATA;
	struct pkt_plain p;
	uint64_t data;

	if (pkt_parse_plain_data(pkt, len, &p, &data) != wanted) {
		return false;
	}
	return !wanted ||
	       (p.tag == v->tag && p.payload == v->payload && p.len == v->len &&
		p.tagged == (v->flags & PKT_F_TAGGED) && data == v->data);
}

static void test_mutation(void)
{
	uint64_t passed = 0;
	bool good = true;

	for (int round = 0; round < 300000 && good; round++) {
		uint8_t made[256];
		size_t len = make(made, 1 + next_random() % (PKT_KINDS - 1));
		uint8_t *exact;
		struct pkt_view v;

		for (uint64_t n = next_random() % 4; n > 0; n--) {
			made[next_random() % len] = next_random();
		}
		if (next_random() % 4 == 0) {
			len = next_random() % (len + 1);
		}
		exact = malloc(len ? len
				   : 1); /* so that a sanitizer sees each step out */
		memcpy(exact, made, len);
		if (pkt_parse(exact, len, &v) == 0) {
			passed++;
			good = in_range(&v, exact, len);
		} else {
			v.kind = 0;
		}
		good = good && plain_agrees(&v, exact, len) &&
		       plain_data_agrees(&v, exact, len);
		free(exact);
	}
	tap_ok(good, "300000 mutated packets: none got through out of range");
	tap_ok(passed > 1000, "%" PRIu64 " of them were still valid", passed);
}

int main(void)
{
	test_golden();
	test_golden_names();
	test_kinds();
	test_ranges();
	test_atomic_ranges();
	test_mutation();
	return tap_done();
}
