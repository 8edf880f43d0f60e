/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the bootstrap, as a stranger who knows the secret may forge them: what
 * boot_wire_check accepts is the only way to write what it says.
 */
#include "config.h"

#include <string.h>

#include "coll/boot/boot_wire.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_one(const uint8_t *data, size_t size)
{
	/* The secret is taken from the message: guessing it is not what is tried here. */
	uint8_t job[BOOT_JOB_LEN] = {0};
	struct boot_hdr again;
	struct boot_msg msg;
	bool good;

	if (size >= sizeof(again))
		memcpy(job, data + offsetof(struct boot_hdr, job), sizeof(job));
	good = boot_wire_check(data, size, job, &msg) == BOOT_WIRE_GOOD;
	if (good) {
		fuzz_require(size >= sizeof(again));
		fuzz_require(msg.size > 0 && msg.size <= BOOT_SIZE_MAX);
		fuzz_require(msg.rank >= 0 && msg.rank < msg.size);
		boot_wire_put(&again, &msg, job);
		fuzz_require(memcmp(data, &again, sizeof(again)) == 0);
	}
	/* Another secret is never accepted. */
	job[0] ^= 1;
	fuzz_require(boot_wire_check(data, size, job, &msg) != BOOT_WIRE_GOOD);
	return good;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const uint8_t job[BOOT_JOB_LEN] = "secret";
	static const struct boot_msg seed[] = {
		{.type = BOOT_HELLO, .rank = 3, .size = 4},
		{.type = BOOT_ACCEPT, .rank = 0, .size = 4},
		{.type = BOOT_WELCOME, .rank = 0, .size = 4},
		{.type = BOOT_GATHER, .rank = 3, .size = 4, .seq = 1, .len = 100},
		{.type = BOOT_RESULT, .rank = 0, .size = 4, .seq = 1, .len = 400},
		{.type = BOOT_FAIL, .rank = 2, .size = 4, .len = 10, .code = 5},
	};
	struct boot_hdr hdr;

	if (number >= sizeof(seed) / sizeof(seed[0]))
		return 0;
	boot_wire_put(&hdr, &seed[number], job);
	memcpy(room, &hdr, sizeof(hdr));
	return sizeof(hdr);
}
