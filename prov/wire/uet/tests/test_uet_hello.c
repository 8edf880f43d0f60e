/* SPDX-License-Identifier: BSD-2-Clause */
/* Golden bytes and mutations of what links begin with, and the checksum's. */
#include "config.h"

#include "prov/wire/uet/uet_crc.h"
#include "prov/wire/uet/uet_hello.h"
#include "util/tap.h"

static const uint8_t golden[32] = {0x57, 0x46, 0x55, 0x45, 0x04, 0x02, 0x00, 0x00,
				   0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
				   0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
				   0x00, 0x00, 0x05, 0x78, 0x00, 0x00, 0x20, 0x00};

static void test_golden(void)
{
	struct uet_hello h = {.kind = UET_SAID_ANSWER,
			      .incarnation = UINT64_C(0x1112131415161718),
			      .to = UINT64_C(0x2122232425262728),
			      .part = 1400,
			      .packet = 8192};
	struct uet_hello_bytes b;
	struct uet_hello back;

	uet_hello_put(&b, &h);
	tap_is_mem(&b, golden, sizeof(golden), "an answer's bytes");
	tap_ok(uet_hello_parse(golden, sizeof(golden), &back) && back.kind == h.kind &&
		       back.incarnation == h.incarnation && back.to == h.to &&
		       back.part == h.part && back.packet == h.packet && !back.err,
	       "and what they mean");
	tap_ok(!uet_hello_parse(golden, sizeof(golden) - 1, &back),
	       "a byte less is none");
	h.bare = true;
	uet_hello_put(&b, &h);
	tap_ok(uet_hello_parse(&b, sizeof(b), &back) && back.bare && !back.err,
	       "one that needs no checksums");
	h.kind = UET_SAID_PING;
	h.part = h.packet = 0;
	uet_hello_put(&b, &h);
	tap_ok(!uet_hello_parse(&b, sizeof(b), &back), "which nobody says later");
	h = (struct uet_hello){
		.kind = UET_SAID_REFUSE, .err = 111, .incarnation = 5, .to = 6};
	uet_hello_put(&b, &h);
	tap_ok(uet_hello_parse(&b, sizeof(b), &back) && back.err == 111, "a refusal");
	h.err = 0;
	uet_hello_put(&b, &h);
	tap_ok(!uet_hello_parse(&b, sizeof(b), &back), "that says no reason is none");
}

static struct uet_hello with_rails(void)
{
	struct uet_hello h = {.kind = UET_SAID_HELLO,
			      .incarnation = 5,
			      .part = 1400,
			      .packet = 8192,
			      .rails = 2};

	h.rail[0] = h.rail[1] = (struct uet_host_bytes){{[10] = 0xff, [11] = 0xff}};
	memcpy(h.rail[0].bytes + 12, "\x0a\x62\x01\x02", 4);
	memcpy(h.rail[1].bytes + 12, "\x0a\x62\x02\x02", 4);
	return h;
}

static bool accepted_as(const struct uet_hello *h)
{
	uint8_t b[UET_HELLO_MAX];
	struct uet_hello back;
	size_t len = uet_hello_put(b, h);

	return uet_hello_parse(b, len, &back) && back.rails == h->rails &&
	       memcmp(back.rail, h->rail, sizeof(h->rail)) == 0;
}

/* Other addresses of who says it. */
static void test_rails(void)
{
	static const uint8_t many[] = "\xe0\x00\x00\x01", nobody[4];
	struct uet_hello h = with_rails(), back;
	uint8_t b[UET_HELLO_MAX + 16] = {0};
	size_t len = uet_hello_put(b, &h);

	tap_is_int(len, 64, "two addresses are 32 bytes more");
	tap_is_mem(b + 32, h.rail, 32, "as they are");
	tap_ok(accepted_as(&h), "and are read again");
	tap_ok(!uet_hello_parse(b, len - 1, &back) &&
		       !uet_hello_parse(b, len + 1, &back) &&
		       !uet_hello_parse(b, sizeof(b), &back),
	       "none is half there, nor are there too many");
	h.rail[1] = h.rail[0];
	tap_ok(!accepted_as(&h), "nor two that are one");
	h = with_rails();
	memcpy(h.rail[1].bytes + 12, many, 4);
	tap_ok(!accepted_as(&h), "nor one of many hosts");
	memcpy(h.rail[1].bytes + 12, nobody, 4);
	tap_ok(!accepted_as(&h), "nor nobody's");
	h.rail[1] = (struct uet_host_bytes){{0xfd, [15] = 1}};
	tap_ok(!accepted_as(&h), "nor one of another kind than the other's");
	h.rail[0] = (struct uet_host_bytes){{0xfd, [15] = 2}};
	tap_ok(accepted_as(&h), "those of IPv6 are");
	h.rail[0] = (struct uet_host_bytes){{0xff, [15] = 2}};
	tap_ok(!accepted_as(&h), "but not of many hosts");
	h = with_rails();
	h.kind = UET_SAID_PING;
	h.to = 6;
	h.part = h.packet = 0;
	tap_ok(!accepted_as(&h), "where nothing begins there are none");
}

/* What is accepted has one spelling and is in range. */
static void test_mutations(void)
{
	struct uet_hello h = with_rails();
	uint8_t good[UET_HELLO_MAX], again[UET_HELLO_MAX], b[UET_HELLO_MAX];
	size_t len = uet_hello_put(good, &h);
	unsigned bad = 0, accepted = 0;

	for (unsigned bit = 0; bit < len * 8; bit++) {
		memcpy(b, good, len);
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!uet_hello_parse(b, len, &h))
			continue;
		accepted++;
		bad += uet_hello_put(again, &h) != len || memcmp(again, b, len) != 0 ||
		       h.part > UET_PART_MAX || h.part < UET_PART_MIN ||
		       h.packet < 4096 || !h.incarnation;
	}
	tap_ok(accepted > 100 && !bad, "what is accepted is in range, with one spelling");
}

static void test_crc(void)
{
	static uint8_t large[20000];
	uint8_t data[257];
	unsigned missed = 0;
	uint32_t whole;

	tap_ok(uet_crc(0, "123456789", 9) == 0xe3069283u, "the checksum, as published");
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	whole = uet_crc(0, data, sizeof(data));
	for (unsigned i = 0; i <= sizeof(data); i++)
		missed +=
			uet_crc(uet_crc(0, data, i), data + i, sizeof(data) - i) != whole;
	tap_is_int(missed, 0, "wherever it is cut");
	tap_ok(uet_crc_plain(0, data, sizeof(data)) == whole, "and whoever computes it");
	for (unsigned bit = 0; bit < sizeof(data) * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		missed += uet_crc(0, data, sizeof(data)) == whole;
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_is_int(missed, 0, "no bit is missed");
	for (unsigned i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i * i + i / 251);
	for (unsigned len = 0; len <= sizeof(large); len += 1 + len / 50)
		missed += uet_crc(len, large + len % 9, len - len % 9) !=
			  uet_crc_plain(len, large + len % 9, len - len % 9);
	missed += uet_crc(1, large, sizeof(large)) !=
		  uet_crc_plain(1, large, sizeof(large));
	tap_is_int(missed, 0, "the fast way says what the plain one does, of any length");
}

/* Each length to twice what the fast way takes at once, from and to odd places. */
static void test_crc_copy(void)
{
	enum { LONGEST = 700, ROOM = LONGEST + 2 * 64 };
	static uint8_t from[ROOM], to[ROOM];
	unsigned other_sum = 0, other_bytes = 0, beside = 0;

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * i + i / 251);
	for (unsigned len = 0; len <= LONGEST; len++) {
		const uint8_t *source = from + len % 61;
		uint8_t *at = to + 32 + len % 31;

		memset(to, 0xa5, sizeof(to));
		other_sum += uet_crc_copy(len * 77, at, source, len) !=
			     uet_crc_plain(len * 77, source, len);
		other_bytes += memcmp(at, source, len) != 0;
		for (const uint8_t *b = to; b < to + sizeof(to); b++)
			beside += (b < at || b >= at + len) && *b != 0xa5;
	}
	tap_is_int(other_sum, 0, "what is copied has the sum that it had");
	tap_is_int(other_bytes, 0, "and all its bytes");
	tap_is_int(beside, 0, "and nothing beside it is written");
}

int main(void)
{
	test_golden();
	test_rails();
	test_mutations();
	test_crc();
	test_crc_copy();
	return tap_done();
}
