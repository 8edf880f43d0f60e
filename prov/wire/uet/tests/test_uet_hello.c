/* SPDX-License-Identifier: BSD-2-Clause */
/* Golden bytes and mutations of what links begin with, and the checksum's. */
#include "config.h"

#include "prov/wire/uet/uet_crc.h"
#include "prov/wire/uet/uet_hello.h"
#include "util/tap.h"

static const uint8_t golden[32] = {0x57, 0x46, 0x55, 0x45, 0x02, 0x02, 0x00, 0x00,
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
	h = (struct uet_hello){
		.kind = UET_SAID_REFUSE, .err = 111, .incarnation = 5, .to = 6};
	uet_hello_put(&b, &h);
	tap_ok(uet_hello_parse(&b, sizeof(b), &back) && back.err == 111, "a refusal");
	h.err = 0;
	uet_hello_put(&b, &h);
	tap_ok(!uet_hello_parse(&b, sizeof(b), &back), "that says no reason is none");
}

/* What is accepted has one spelling and is in range. */
static void test_mutations(void)
{
	struct uet_hello_bytes again;
	unsigned bad = 0, accepted = 0;
	struct uet_hello h;
	uint8_t b[32];

	for (unsigned bit = 0; bit < sizeof(b) * 8; bit++) {
		memcpy(b, golden, sizeof(b));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!uet_hello_parse(b, sizeof(b), &h))
			continue;
		accepted++;
		uet_hello_put(&again, &h);
		bad += memcmp(&again, b, sizeof(b)) != 0 || h.part > UET_PART_MAX ||
		       h.part < UET_PART_MIN || h.packet < 4096 || !h.incarnation;
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

int main(void)
{
	test_golden();
	test_mutations();
	test_crc();
	return tap_done();
}
