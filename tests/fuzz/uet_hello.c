/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the ends of a link of the uet wire say to each other: what is accepted is in
 * range, names hosts, and has one spelling.
 */
#include "config.h"

#include <string.h>

#include "prov/wire/uet/uet_hello.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_one(const uint8_t *data, size_t size)
{
	static const struct uet_host_bytes none;
	uint8_t again[UET_HELLO_MAX];
	struct uet_hello h;
	bool begins;

	if (!uet_hello_parse(data, size, &h))
		return false;
	begins = h.kind == UET_SAID_HELLO || h.kind == UET_SAID_ANSWER;
	fuzz_require(h.kind >= UET_SAID_HELLO && h.kind < UET_SAID_KINDS);
	fuzz_require(h.incarnation != 0 && (h.to == 0) == (h.kind == UET_SAID_HELLO));
	fuzz_require(begins || !h.bare);
	fuzz_require((h.err != 0) == (h.kind == UET_SAID_REFUSE));
	fuzz_require(begins ? h.part >= UET_PART_MIN && h.part <= UET_PART_MAX
			    : h.part == 0 && h.packet == 0 && h.rails == 0);
	fuzz_require(h.rails <= UET_HELLO_RAILS);
	for (uint32_t i = 0; i < h.rails; i++) {
		fuzz_require(memcmp(&h.rail[i], &none, sizeof(none)) != 0);
		for (uint32_t j = 0; j < i; j++)
			fuzz_require(memcmp(&h.rail[i], &h.rail[j], sizeof(none)) != 0);
	}
	fuzz_require(uet_hello_put(again, &h) == size && memcmp(again, data, size) == 0);
	return true;
}

/* One of each kind, those that begin with several numbers of addresses. */
size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	struct uet_hello h = {.incarnation = 5 + number};
	bool begins = number >= UET_SAID_KINDS;

	if (number > UET_SAID_KINDS + UET_HELLO_RAILS)
		return 0;
	h.kind = (uint8_t)(begins ? UET_SAID_HELLO + number % 2 : 1 + number);
	if (number + 1 == UET_SAID_KINDS)
		h.kind = UET_SAID_BYE;
	begins = h.kind == UET_SAID_HELLO || h.kind == UET_SAID_ANSWER;
	h.to = h.kind == UET_SAID_HELLO ? 0 : 9;
	h.err = h.kind == UET_SAID_REFUSE ? 111 : 0;
	h.bare = begins && number % 3 == 0;
	h.part = begins ? 1400 : 0;
	h.packet = begins ? 8192 : 0;
	h.rails = number >= UET_SAID_KINDS ? number - UET_SAID_KINDS : 0;
	for (uint32_t i = 0; i < h.rails; i++) {
		uint8_t *bytes = h.rail[i].bytes;

		if (number % 2)
			bytes[10] = bytes[11] = 0xff;
		else
			bytes[0] = 0xfd;
		bytes[12] = 10;
		bytes[15] = (uint8_t)(1 + i);
	}
	return uet_hello_put(room, &h);
}
