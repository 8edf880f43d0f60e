/* SPDX-License-Identifier: BSD-2-Clause */
/* Cards: fixed bytes, no others get through, and what two cards have in common. */
#include "config.h"

#include "prov/wire/verbs/verbs_card.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prov/wire/verbs/tests/card_make.h"
#include "util/tap.h"

/* Bytes of a card, in the order that they travel in. */
static const char golden[] = "57547663"
			     "0200"
			     "b801"
			     "02000000"
			     "02030600" /* head */
			     "0400240c"
			     "00000000"
			     "0a010203"
			     "00000000"
			     "00000000"
			     "00000000"
			     "8877665544332211"
			     "0807060504030201"
			     "0500000000000000"
			     "0010000000"
			     "7f0000"
			     "0000010000000000" /* table */
			     "00000000"
			     "03000000"
			     "00200000"
			     "80000000"
			     "40000000"
			     "00010000";

static void test_golden(void)
{
	uint8_t bytes[VERBS_CARD_MAX], again[VERBS_CARD_MAX];
	struct verbs_card card, back;
	char text[sizeof(golden)];
	size_t len;

	card_make(&card, "node1", 0x0102030405060708u);
	len = verbs_card_write(&card, bytes);
	tap_is_int(len, 440, "a card of two rails and three queue pairs has 440 bytes");
	for (size_t i = 0; i < sizeof(golden) / 2; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	tap_ok(strcmp(text, golden) == 0, "its head has the bytes that it always had");
	if (strcmp(text, golden) != 0)
		tap_diag("%s", text);
	tap_ok(memcmp(bytes + 104, "node1\0", 6) == 0 &&
		       memcmp(bytes + 168, "b1\0", 3) == 0,
	       "then comes the place");
	tap_ok(memcmp(bytes + 264, "\4\0\0\0\0\4\0\0\20\0\0\0", 12) == 0,
	       "then a row for each distance");
	tap_ok(memcmp(bytes + 336, "\2\0\5\20\0\0\377\377", 8) == 0, "then rails");
	tap_ok(memcmp(bytes + 392, "\377\377\0\0\0\0\0\0\21\0\0\0\357\315\253\0", 16) ==
		       0,
	       "then queue pairs");
	tap_ok(!verbs_card_read(bytes, len, &back), "it is read");
	tap_ok(verbs_card_write(&back, again) == len && memcmp(bytes, again, len) == 0 &&
		       back.door.in.sin_port == card.door.in.sin_port &&
		       strcmp(back.place.rack, "r3") == 0 &&
		       back.qp[0].psn == card.qp[0].psn,
	       "and is the same card");
}

static void test_lengths(void)
{
	uint8_t bytes[VERBS_CARD_MAX + 1] = {0};
	struct verbs_card card, back;
	unsigned taken = 0;
	size_t len;

	card_make(&card, "node1", 7);
	len = verbs_card_write(&card, bytes);
	for (size_t i = 0; i <= len + 1; i++)
		if (i != len && !verbs_card_read(bytes, i, &back))
			taken++;
	tap_is_int(taken, 0, "no card that is shorter or longer is taken");
	card.rails = VERBS_CARD_RAILS;
	for (uint8_t i = 2; i < card.rails; i++) {
		card.rail[i] = card.rail[0];
		card.rail[i].number = i;
	}
	for (uint8_t i = 0; i < VERBS_CARD_QPS; i++)
		card.qp[i] = (struct verbs_card_qp){.lane = i, .qpn = 1u + i};
	card.qps = VERBS_CARD_QPS;
	card.qp[3].lane = VERBS_LANE_CONTROL;
	len = verbs_card_write(&card, bytes);
	tap_is_int(len, VERBS_CARD_MAX, "the longest is as long as it may be");
	tap_ok(!verbs_card_read(bytes, len, &back), "and is taken");
}

/* Nothing is read behind the end of one that was cut off: there is no memory there. */
static void test_cut(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len;
	uint8_t bytes[VERBS_CARD_MAX], *mem;
	struct verbs_card card, back;
	unsigned taken = 0;

	card_make(&card, "node1", 7);
	len = verbs_card_write(&card, bytes);
	mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	if (mem == MAP_FAILED || len > page || mprotect(mem + page, page, PROT_NONE))
		tap_bail("no page without memory behind it: %m");
	for (size_t i = 0; i < len; i++) {
		memcpy(mem + page - i, bytes, i);
		if (!verbs_card_read(mem + page - i, i, &back))
			taken++;
	}
	tap_is_int(taken, 0, "one that is cut off is read to its end and refused");
	munmap(mem, 2 * page);
}

/* What is wrong with a card, one field at a time. */
#define WRONG(field_, value_)                                               \
	{                                                                   \
#field_, offsetof(struct verbs_card, field_),               \
			sizeof(((struct verbs_card *)NULL)->field_), value_ \
	}

static const struct {
	const char *field;
	size_t at;
	size_t size;
	uint64_t value;
} wrong[] = {
	WRONG(incarnation, 0),
	WRONG(session, 0),
	WRONG(generation, 64),
	WRONG(packet, 4095),
	WRONG(packet, (1 << 20) + 1),
	WRONG(credits, 0),
	WRONG(receives, 65537),
	WRONG(records, 0),
	WRONG(table_addr, UINT64_MAX - 5),
	WRONG(table_len, (UINT64_C(1) << 40) + 1),
	WRONG(row[2].lanes, 0),
	WRONG(row[5].lanes, VERBS_CARD_LANES + 1),
	WRONG(row[1].window, 1000),
	WRONG(row[0].segments, 1025),
	WRONG(rails, 0),
	WRONG(rail[1].kind, 5),
	WRONG(rail[1].number, 16),
	WRONG(rail[1].number, 0), /* that of another */
	WRONG(rail[0].mtu, 6),
	WRONG(rail[0].rd_atomic, 0),
	WRONG(rail[0].gid[11], 0),
	WRONG(rail[0].lid, 1),
	WRONG(qps, VERBS_CARD_QPS + 1),
	WRONG(qp[1].lane, VERBS_CARD_LANES),
	WRONG(qp[2].lane, 0), /* likewise */
	WRONG(qp[0].rail, 2),
	WRONG(qp[1].qpn, 0),
	WRONG(qp[1].psn, 1 << 24),
	WRONG(qp[0].lane, 5),		       /* no control */
	WRONG(qp[1].lane, VERBS_LANE_CONTROL), /* two */
	WRONG(place.host[0], '/'),
	WRONG(place.zone[0], 0), /* rack of an unknown zone */
	WRONG(door.in.sin_port, 0),
};

/* The validator is asked before a card is written, too. */
static void test_wrong(void)
{
	uint8_t bytes[VERBS_CARD_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct verbs_card card;

		card_make(&card, "node1", 7);
		memcpy((char *)&card + wrong[i].at, &wrong[i].value, wrong[i].size);
		tap_ok(verbs_card_write(&card, bytes) == 0, "refused: %s 0x%" PRIx64,
		       wrong[i].field, wrong[i].value);
	}
}

/* One byte changed at a time: either refused, or another card with the same spelling. */
static void test_bytes(void)
{
	uint8_t bytes[VERBS_CARD_MAX], again[VERBS_CARD_MAX];
	unsigned refused = 0, odd = 0;
	struct verbs_card card, back;
	size_t len;

	card_make(&card, "node1", 7);
	len = verbs_card_write(&card, bytes);
	for (size_t at = 0; at < len; at++) {
		for (unsigned v = 0; v < 256; v++) {
			uint8_t was = bytes[at];

			bytes[at] = (uint8_t)v;
			if (verbs_card_read(bytes, len, &back))
				refused++;
			else if (verbs_card_write(&back, again) != len ||
				 memcmp(bytes, again, len) != 0)
				odd++;
			bytes[at] = was;
		}
	}
	tap_ok(refused > 20000, "%u changed bytes were refused", refused);
	tap_is_int(odd, 0, "and what was taken is spelt in one way only");
}

static void test_terms(void)
{
	struct verbs_card a, b;
	struct verbs_terms t;

	card_make(&a, "node1", 7);
	card_make(&b, "node2", 7);
	b.row[FABRIC_SAME_RACK].lanes = 3;
	b.row[FABRIC_SAME_RACK].window = 2048;
	b.receives = 8;
	b.packet = 4096;
	tap_ok(!verbs_card_agree(&a, &b, &t), "two cards agree");
	tap_is_int(t.distance, FABRIC_SAME_RACK, "they are in one rack");
	tap_is_int(t.lanes, 3, "on the lower number of lanes");
	tap_is_int(t.packet, 4096, "on the shorter packet");
	tap_ok(t.window[0] == 1024 && t.window[1] == 2048, "each has its own window");
	tap_ok(t.segments[0] == 8 && t.segments[1] == 16,
	       "and no more segments than the other has receives");
	memset(a.place.building, 0, sizeof(a.place.building));
	memset(b.place.building, 0, sizeof(b.place.building));
	tap_ok(!verbs_card_agree(&a, &b, &t) && t.distance == FABRIC_UNKNOWN,
	       "two that are not known are not in the same place");
	b.session = 8;
	tap_ok(verbs_card_agree(&a, &b, &t) != NULL, "two sessions are no link");
	b.session = 7;
	b.round = 1;
	tap_ok(verbs_card_agree(&a, &b, &t) != NULL, "two rounds are none");
	b.round = 0;
	b.rail[0].kind = b.rail[1].kind = VERBS_RAIL_IB;
	tap_ok(verbs_card_agree(&a, &b, &t) != NULL, "nor are rails of two kinds");
}

static void test_rails(void)
{
	struct verbs_card a, b;

	card_make(&a, "node1", 7);
	card_make(&b, "node2", 7);
	b.rail[0].number = 1;
	b.rail[1].number = 0;
	tap_is_int(verbs_card_rail_for(&b, &a, 0), 1, "rails of one number meet");
	b.rail[0].number = 7;
	tap_is_int(verbs_card_rail_for(&b, &a, 1), 1, "else those of one index");
	b.rails = 1;
	tap_is_int(verbs_card_rail_for(&b, &a, 1), 0, "or whichever there is");
	b.rail[0].kind = VERBS_RAIL_ROCE6;
	tap_is_int(verbs_card_rail_for(&b, &a, 1), UINT32_MAX, "of the same kind");
	tap_is_int(verbs_card_rail_for(&b, &a, 2), UINT32_MAX, "no such rail");
	tap_ok(verbs_card_qp(&a, 1) == &a.qp[2] && !verbs_card_qp(&a, 2),
	       "queue pairs are found by lane");
}

static void test_moves(void)
{
	static const uint8_t four[16] = {[10] = 0xff, [11] = 0xff, [15] = 1};
	static const uint8_t six[16] = {[0] = 0xfd, [15] = 1}, none[16];
	struct verbs_card_rail r = {.kind = VERBS_RAIL_ROCE6}, was;

	memcpy(r.gid, six, sizeof(six));
	was = r;
	tap_ok(!verbs_card_rail_move(&r, 0, four) && !verbs_card_rail_move(&r, 0, none) &&
		       !verbs_card_rail_move(&r, 7, six) &&
		       memcmp(&r, &was, sizeof(r)) == 0,
	       "a rail stays what it is, whatever its peer says of it");
	r.kind = VERBS_RAIL_ROCE4;
	tap_ok(verbs_card_rail_move(&r, 0, four) && memcmp(r.gid, four, 16) == 0,
	       "and moves to an address of its kind");
	r.kind = VERBS_RAIL_IB;
	tap_ok(verbs_card_rail_move(&r, 9, none) && r.lid == 9,
	       "InfiniBand by LID alone");
	tap_ok(!verbs_card_rail_move(&r, 0, none) && r.lid == 9, "but not by nothing");
}

int main(void)
{
	test_golden();
	test_lengths();
	test_cut();
	test_wrong();
	test_bytes();
	test_terms();
	test_rails();
	test_moves();
	return tap_done();
}
