/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of messages about membership, as a connection brings it: in pieces of any
 * length. What is cut out of it must be what the validator makes of the same bytes, no
 * byte is asked for that a message does not need, and nothing comes after a bad one. The
 * first byte says how it is cut into pieces.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/frame.h"
#include "tests/fuzz/fuzz.h"

/* Where the message that begins here ends, by the validator alone; 0: it is bad. */
static size_t by_hand(const uint8_t *data, size_t size, const uint8_t *job)
{
	struct ft_inbox inbox = {0};
	struct ft_msg msg;
	size_t len = size >= FT_HDR_LEN ? ft_wire_whole(data, job) : 0;
	bool good = len && len <= size &&
		    ft_wire_get(data, len, job, &msg, &inbox) == FT_FAULT_NONE;

	ft_inbox_fini(&inbox);
	return good ? len : 0;
}

/* Puts the next piece in; *used goes on. */
static enum ft_cut feed(struct ft_frame *frame, const uint8_t *data, size_t size,
			size_t *used, size_t piece, const uint8_t *job,
			struct ft_msg *msg)
{
	size_t len;
	uint8_t *at = ft_frame_space(frame, &len);

	fuzz_require(len > 0);
	if (len > piece)
		len = piece;
	if (len > size - *used)
		len = size - *used;
	memcpy(at, data + *used, len);
	*used += len;
	return ft_frame_add(frame, len, job, msg);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t job[FT_JOB_LEN] = {0};
	struct ft_frame frame = {0};
	size_t used = 0, start = 0, piece;
	enum ft_cut cut = FT_CUT_MORE;
	bool any = false;

	if (size < 1 + FT_HDR_LEN)
		return false;
	piece = data[0] ? data[0] : 1;
	data++;
	size--;
	/* The secret is taken from the message: guessing it is not what is tried here. */
	memcpy(job, data + FT_HDR_LEN - FT_JOB_LEN, sizeof(job));
	while (used < size && (cut == FT_CUT_MORE || cut == FT_CUT_WHOLE)) {
		struct ft_msg msg;

		cut = feed(&frame, data, size, &used, piece, job, &msg);
		if (cut == FT_CUT_WHOLE) {
			fuzz_require(by_hand(data + start, size - start, job) ==
				     used - start);
			fuzz_require(ft_wire_len(&msg) == used - start);
			start = used;
			any = true;
		} else if (cut == FT_CUT_BAD) {
			fuzz_require(by_hand(data + start, size - start, job) == 0);
		}
	}
	ft_frame_fini(&frame);
	return any;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const uint8_t job[FT_JOB_LEN] = "secret";
	struct ft_entry self = {.id = 9, .group = 4, .card_len = 2, .card = "xy"};
	const struct ft_roster own = {{0, 0}, 1, 1, &self};
	const struct ft_msg seed[] = {
		{.type = FT_JOIN, .id = 9, .sign = 5, .pending_list = &own},
		{.type = FT_STATUS, .id = 9, .term = 2, .active = {2, 5}},
		{.type = FT_REFUSED, .id = 3, .term = 8},
	};
	/* One, or two in a row; in pieces of several lengths. */
	static const struct {
		uint8_t piece, first, second;
	} row[] = {{255, 0, 3}, {7, 0, 3}, {208, 1, 2}, {100, 2, 1}, {1, 1, 3}};
	size_t len = 1;

	if (number >= sizeof(row) / sizeof(row[0]))
		return 0;
	room[0] = row[number].piece;
	ft_wire_put(room + len, &seed[row[number].first], job);
	len += ft_wire_len(&seed[row[number].first]);
	if (row[number].second < 3) {
		ft_wire_put(room + len, &seed[row[number].second], job);
		len += ft_wire_len(&seed[row[number].second]);
	}
	return len;
}
