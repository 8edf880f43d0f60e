/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about membership, as somebody who knows the secret may forge them: what
 * ft_wire_get accepts is the only way to write what it says.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/ft_wire.h"
#include "tests/fuzz/fuzz.h"

static void require_list(const struct ft_roster *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		fuzz_require(list->entry[i].id != 0);
		fuzz_require(list->entry[i].card_len <= FT_CARD_MAX);
		fuzz_require(ft_roster_find(list, list->entry[i].id) == (int)i);
	}
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t job[FT_JOB_LEN] = {0};
	struct ft_inbox inbox = {0};
	struct ft_msg msg;
	bool good;

	/* The secret is taken from the message: guessing it is not what is tried here. */
	if (size >= FT_HDR_LEN)
		memcpy(job, data + FT_HDR_LEN - FT_JOB_LEN, sizeof(job));
	good = ft_wire_get(data, size, job, &msg, &inbox) == FT_FAULT_NONE;
	if (good) {
		uint8_t *again = malloc(size);

		fuzz_require(again && ft_wire_len(&msg) == size);
		fuzz_require(ft_wire_whole(data, job) == size);
		require_list(msg.active_list);
		require_list(msg.pending_list);
		ft_wire_put(again, &msg, job);
		fuzz_require(memcmp(data, again, size) == 0);
		free(again);
	}
	job[0] ^= 1;
	fuzz_require(ft_wire_get(data, size, job, &msg, &inbox) != FT_FAULT_NONE);
	ft_inbox_fini(&inbox);
	return good;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const uint8_t job[FT_JOB_LEN] = "secret";
	struct ft_entry entry[] = {
		{.id = 7, .group = 0, .card_len = 3, .since = {2, 1}, .card = "abc"},
		{.id = 3, .group = 1, .since = {2, 5}},
	};
	struct ft_entry self = {.id = 9, .group = 4, .card_len = 2, .card = "xy"};
	const struct ft_roster list = {{2, 5}, 2, 2, entry}, own = {{0, 0}, 1, 1, &self};
	const struct ft_commit commit = {{2, 4}, 11};
	const struct ft_vote vote = {{2, 5}, 12, 3, FT_VOTE_NO};
	const struct ft_msg seed[] = {
		{.type = FT_JOIN, .id = 9, .sign = 5, .pending_list = &own},
		{.type = FT_STATUS,
		 .id = 3,
		 .term = 2,
		 .active = {2, 5},
		 .commit = commit,
		 .vote = vote},
		{.type = FT_STATE,
		 .id = 3,
		 .term = 8,
		 .prior = 2,
		 .active = {2, 5},
		 .commit = commit,
		 .vote = vote,
		 .active_list = &list},
		{.type = FT_REFUSED, .id = 3, .term = 8},
		{.type = FT_LEAVE, .id = 3, .term = 8, .active = {2, 5}},
		{.type = FT_QUERY, .id = 3, .term = 8},
		{.type = FT_PREPARE,
		 .id = 3,
		 .term = 2,
		 .active = {2, 4},
		 .pending = {2, 5},
		 .commit = commit,
		 .pending_list = &list},
		{.type = FT_START,
		 .id = 3,
		 .term = 2,
		 .active = {2, 5},
		 .commit = commit},
		{.type = FT_COMMIT,
		 .id = 3,
		 .term = 2,
		 .active = {2, 5},
		 .commit = commit},
		{.type = FT_FENCED, .id = 3, .term = 2, .reason = FT_REASON_EXCLUDED},
	};

	if (number >= sizeof(seed) / sizeof(seed[0]) ||
	    ft_wire_len(&seed[number]) > FUZZ_ROOM)
		return 0;
	ft_wire_put(room, &seed[number], job);
	return ft_wire_len(&seed[number]);
}
