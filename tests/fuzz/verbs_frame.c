/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The head of a frame at a door, as a stranger may forge it: one that is accepted says
 * how much follows, within what there is room for, and has only one spelling.
 */
#include "config.h"

#include "prov/wire/verbs/verbs_frame.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

bool fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t again[VERBS_FRAME_HEAD];
	struct verbs_frame frame;

	if (size < VERBS_FRAME_HEAD || verbs_frame_read(data, &frame) != VERBS_FRAME_OK)
		return false;
	fuzz_require(frame.kind > 0 && frame.kind < VERBS_FRAME_KINDS);
	fuzz_require(frame.len <= VERBS_FRAME_BODY);
	fuzz_require((frame.kind == VERBS_FRAME_END) == (frame.end != 0));
	fuzz_require(frame.end < VERBS_ENDS);
	verbs_frame_write(&frame, again);
	/* An end may be of another version. */
	if (frame.kind == VERBS_FRAME_END)
		memcpy(again + 4, data + 4, 2);
	fuzz_require(memcmp(data, again, sizeof(again)) == 0);
	return true;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const struct verbs_frame frame[] = {
		{.kind = VERBS_FRAME_OPEN, .len = VERBS_NONCE, .context = 3},
		{.kind = VERBS_FRAME_CHALLENGE, .len = VERBS_NONCE + VERBS_PROOF},
		{.kind = VERBS_FRAME_HELLO, .len = 440},
		{.kind = VERBS_FRAME_ANSWER, .len = VERBS_FRAME_BODY},
		{.kind = VERBS_FRAME_READY},
		{.kind = VERBS_FRAME_END, .end = VERBS_END_KEY},
		{.kind = VERBS_FRAME_WORD, .len = VERBS_WORD_MAX},
	};

	if (number >= sizeof(frame) / sizeof(frame[0]))
		return 0;
	verbs_frame_write(&frame[number], room);
	return VERBS_FRAME_HEAD;
}
