/* SPDX-License-Identifier: BSD-2-Clause */
/* Cards and hellos: golden bytes, and everything that is refused. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "coll/ftar/meet_wire.h"
#include "util/tap.h"

static const uint8_t job[MEET_JOB_LEN] = "secret";

static void test_card4(void)
{
	static const uint8_t golden[MEET_CARD_LEN] = {4, 0, 0x1f, 0x90, 10, 1, 2, 3};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(8080)};
	struct sockaddr_storage at, back;
	uint8_t card[FT_CARD_MAX] = {0};
	socklen_t len = 0;

	in.sin_addr.s_addr = htonl(0x0a010203);
	memset(&at, 0, sizeof(at));
	memcpy(&at, &in, sizeof(in));
	tap_ok(meet_card_put(&at, card) && memcmp(card, golden, sizeof(golden)) == 0,
	       "a card of IPv4");
	tap_ok(meet_card_get(card, MEET_CARD_LEN, &back, &len) && len == sizeof(in) &&
		       memcmp(&back, &at, sizeof(at)) == 0,
	       "is read as it was");
	for (uint32_t i = 0; i < FT_CARD_MAX; i++) {
		if (i != MEET_CARD_LEN && meet_card_get(card, i, &back, &len))
			tap_bail("%u bytes are a card", i);
	}
	tap_ok(true, "no other length is a card");
	for (int i = 8; i < MEET_CARD_LEN; i++) {
		card[i] = 1;
		if (meet_card_get(card, MEET_CARD_LEN, &back, &len))
			tap_bail("byte %d is not looked at", i);
		card[i] = 0;
	}
	tap_ok(true, "nothing lies behind the address");
	in.sin_port = 0;
	memcpy(&at, &in, sizeof(in));
	tap_ok(!meet_card_put(&at, card), "no port: no card");
}

static void test_card6(void)
{
	static const uint8_t golden[MEET_CARD_LEN] = {
		6, 0, 0x1f, 0x90, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(8080)};
	struct sockaddr_storage at, back;
	uint8_t card[FT_CARD_MAX] = {0};
	socklen_t len = 0;

	inet_pton(AF_INET6, "2001:db8::7", &in.sin6_addr);
	memset(&at, 0, sizeof(at));
	memcpy(&at, &in, sizeof(in));
	tap_ok(meet_card_put(&at, card) && memcmp(card, golden, sizeof(golden)) == 0,
	       "a card of IPv6");
	tap_ok(meet_card_get(card, MEET_CARD_LEN, &back, &len) && len == sizeof(in) &&
		       memcmp(&back, &at, sizeof(at)) == 0,
	       "is read as it was");
	for (int family = 0; family < 256; family++) {
		card[0] = (uint8_t)family;
		if (family != 6 && meet_card_get(card, MEET_CARD_LEN, &back, &len))
			tap_bail("family %d", family);
	}
	tap_ok(true, "no other family fits");
	card[0] = 6;
	card[1] = 1;
	tap_ok(!meet_card_get(card, MEET_CARD_LEN, &back, &len), "the spare byte is 0");
	card[1] = card[2] = card[3] = 0;
	tap_ok(!meet_card_get(card, MEET_CARD_LEN, &back, &len), "port 0 is none");
	at.ss_family = AF_UNIX;
	tap_ok(!meet_card_put(&at, card), "another kind of address has no card");
}

static void test_hello(void)
{
	static const uint8_t golden[] = {'W', 'F', 'M', '1', 0,	  0,   0,   2,	 0, 0,
					 0,   0,   0,	0,   0,	  9,   0,   0,	 0, 0,
					 0,   0,   0,	5,   0,	  0,   0,   0,	 0, 0,
					 1,   4,   's', 'e', 'c', 'r', 'e', 't', 0};
	struct ft_entry entry[] = {{.id = 0x100}, {.id = 0x102}, {.id = 0x104}};
	const struct ft_roster roster = {{9, 5}, 3, 3, entry};
	struct ft_roster fewer = roster;
	uint8_t hello[MEET_HELLO_LEN];
	unsigned taken = 0;

	meet_hello_put(hello, &roster, 2, job);
	tap_ok(memcmp(hello, golden, sizeof(golden)) == 0, "a hello");
	tap_ok(meet_hello_get(hello, &roster, job) == 2, "is read as it was");
	for (unsigned bit = 0; bit < 8 * MEET_HELLO_LEN; bit++) {
		hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
		taken += meet_hello_get(hello, &roster, job) >= 0;
		hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_ok(taken == 0, "any bit that differs has it refused");
	fewer.count = 2;
	tap_ok(meet_hello_get(hello, &fewer, job) < 0, "who is not in the roster");
	meet_hello_put(hello, &roster, 0, job);
	tap_ok(meet_hello_get(hello, &roster, job) < 0,
	       "nobody comes as the first, who listens");
}

int main(void)
{
	test_card4();
	test_card6();
	test_hello();
	return tap_done();
}
