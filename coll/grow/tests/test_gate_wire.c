/* SPDX-License-Identifier: BSD-2-Clause */
/* Hellos and answers of a communicator that grows: golden bytes, and what is refused. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "coll/ftar/meet_wire.h"
#include "coll/grow/gate_wire.h"
#include "util/tap.h"

static void test_hello(void)
{
	static const uint8_t golden[] = {'W', 'F', 'G', '1', 1, 0, 0, 0, 0, 2, 0,
					 3,   0,   0,	0,   0, 1, 2, 3, 4, 5, 6,
					 7,   8,   9,	0,   0, 0, 0, 0, 0, 7, 'k'};
	static const int fixed[] = {0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15};
	struct gate_hello hello = {.major = 2,
				   .minor = 3,
				   .sign = UINT64_C(0x0102030405060708),
				   .drawn = UINT64_C(0x0900000000000007),
				   .job = "k"};
	struct gate_hello back;
	uint8_t buf[GATE_HELLO_LEN];
	int taken = 0;

	gate_hello_put(buf, &hello);
	tap_ok(memcmp(buf, golden, sizeof(golden)) == 0, "layout of a hello");
	tap_ok(gate_hello_get(buf, &back) && back.major == 2 && back.minor == 3 &&
		       back.sign == hello.sign && back.drawn == hello.drawn &&
		       memcmp(back.job, hello.job, sizeof(back.job)) == 0,
	       "is read as it was");
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		buf[fixed[i]] ^= 0x40;
		taken += gate_hello_get(buf, &back);
		buf[fixed[i]] ^= 0x40;
	}
	hello.drawn = 0;
	gate_hello_put(buf, &hello);
	taken += gate_hello_get(buf, &back);
	tap_is_int(taken, 0,
		   "another magic, version or filling, and none drawn: refused");
}

static void good_answer(struct gate_answer *a)
{
	const struct sockaddr_in in = {.sin_family = AF_INET,
				       .sin_port = htons(80),
				       .sin_addr.s_addr = htonl(0x7f000001)};
	struct sockaddr_storage at = {0};

	memcpy(&at, &in, sizeof(in));
	*a = (struct gate_answer){.rank = 3, .size = 5, .word = 9};
	meet_card_put(&at, a->card);
	strcpy(a->text, "one\ntwo");
}

static bool refused(const struct gate_answer *a)
{
	uint8_t buf[GATE_ANSWER_LEN];
	struct gate_answer back;

	gate_answer_put(buf, a);
	return !gate_answer_get(buf, &back);
}

static void test_answer(void)
{
	static const uint8_t golden[] = {'W', 'F', 'G', '1', 0, 0,    0,   0, 0, 0, 0,
					 3,   0,   0,	0,   5, 0,    0,   0, 0, 0, 0,
					 0,   9,   4,	0,   0, 0x50, 127, 0, 0, 1};
	struct gate_answer a, back;
	uint8_t buf[GATE_ANSWER_LEN];

	good_answer(&a);
	gate_answer_put(buf, &a);
	tap_ok(memcmp(buf, golden, sizeof(golden)) == 0, "layout of an answer");
	tap_ok(gate_answer_get(buf, &back) && back.rank == 3 && back.size == 5 &&
		       back.word == 9 && strcmp(back.text, "one two") == 0,
	       "is read as it was, and its sentence is one line");
	memset(buf + GATE_ANSWER_LEN - GATE_TEXT, 'x', GATE_TEXT);
	tap_ok(gate_answer_get(buf, &back) && strlen(back.text) == GATE_TEXT - 1,
	       "a sentence without an end gets one");
	buf[0] ^= 1;
	tap_ok(!gate_answer_get(buf, &back), "refused: another magic");
	a.rank = 5;
	tap_ok(refused(&a), "refused: a rank that is none");
	a.rank = -1;
	tap_ok(refused(&a), "refused: a rank below all");
	good_answer(&a);
	a.size = FT_MEMBERS_MAX + 1;
	tap_ok(refused(&a), "refused: too many ranks");
	good_answer(&a);
	a.word = 0;
	tap_ok(refused(&a), "refused: no word");
	good_answer(&a);
	memset(a.card, 0, sizeof(a.card));
	tap_ok(refused(&a), "refused: no card");
	good_answer(&a);
	a.result = WEFT_RESULT_COUNT;
	tap_ok(refused(&a), "refused: a result that is none");
	a = (struct gate_answer){.result = WEFT_ERR_MISMATCH, .text = "no"};
	tap_ok(!refused(&a), "a refusal needs nothing but its sentence");
}

int main(void)
{
	test_hello();
	test_answer();
	return tap_done();
}
