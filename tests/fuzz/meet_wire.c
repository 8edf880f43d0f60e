/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cards and hellos of an epoch's members: what is accepted is the only way to write what
 * it says. The first byte tells which of them the rest is.
 */
#include "config.h"

#include <netinet/in.h>
#include <string.h>

#include "coll/ftar/meet_wire.h"
#include "tests/fuzz/fuzz.h"

static struct ft_entry entry[] = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 9}};
static const struct ft_roster roster = {{2, 5}, 4, 4, entry};

static bool card_one(const uint8_t *data, size_t size)
{
	uint8_t again[FT_CARD_MAX], card[FT_CARD_MAX] = {0};
	struct sockaddr_storage at;
	socklen_t len = 0;

	if (size > sizeof(card))
		size = sizeof(card);
	memcpy(card, data, size);
	if (!meet_card_get(card, (uint32_t)size, &at, &len))
		return false;
	fuzz_require(len == sizeof(struct sockaddr_in) ||
		     len == sizeof(struct sockaddr_in6));
	fuzz_require(meet_card_put(&at, again));
	fuzz_require(size == MEET_CARD_LEN && memcmp(card, again, size) == 0);
	return true;
}

static bool hello_one(const uint8_t *data, size_t size)
{
	uint8_t again[MEET_HELLO_LEN], job[MEET_JOB_LEN];
	int32_t rank;

	if (size < MEET_HELLO_LEN)
		return false;
	/* The secret is taken from the hello: guessing it is not what is tried here. */
	memcpy(job, data + MEET_HELLO_LEN - MEET_JOB_LEN, sizeof(job));
	rank = meet_hello_get(data, &roster, job);
	job[0] ^= 1;
	fuzz_require(meet_hello_get(data, &roster, job) < 0);
	job[0] ^= 1;
	if (rank < 0)
		return false;
	fuzz_require(rank > 0 && rank < 4);
	meet_hello_put(again, &roster, (uint32_t)rank, job);
	fuzz_require(memcmp(data, again, sizeof(again)) == 0);
	return true;
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	if (size == 0)
		return false;
	return data[0] & 1 ? card_one(data + 1, size - 1) : hello_one(data + 1, size - 1);
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const uint8_t job[MEET_JOB_LEN] = "secret";
	static const uint8_t card[2][MEET_CARD_LEN] = {{4, 0, 1, 2, 127, 0, 0, 1},
						       {6, 0, 1, 2, 0x20, 1}};

	if (number < 2) {
		room[0] = 1;
		memcpy(room + 1, card[number], MEET_CARD_LEN);
		return 1 + MEET_CARD_LEN;
	}
	if (number > 4)
		return 0;
	room[0] = 0;
	meet_hello_put(room + 1, &roster, number - 1, job);
	return 1 + MEET_HELLO_LEN;
}
