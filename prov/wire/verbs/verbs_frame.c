/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads of frames: the bytes, the validator. */
#include "config.h"

#include "prov/wire/verbs/verbs_frame.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "util/le.h"

#define FRAME_MAGIC 0x64765457u /* "WTvd" */

struct frame_head {
	struct le32 magic;
	struct le16 version;
	struct le16 kind;
	struct le16 len;
	struct le16 context;
	struct le32 end;
};

static_assert(sizeof(struct frame_head) == VERBS_FRAME_HEAD, "head");

/* Bytes of a body: without a key, with one. */
static const struct {
	uint16_t min, max;
	bool context;
} frame_body[VERBS_FRAME_KINDS] = {
	[VERBS_FRAME_OPEN] = {VERBS_NONCE, VERBS_NONCE, true},
	[VERBS_FRAME_CHALLENGE] = {VERBS_NONCE + VERBS_PROOF, VERBS_NONCE + VERBS_PROOF,
				   false},
	[VERBS_FRAME_HELLO] = {1, VERBS_FRAME_BODY, true},
	[VERBS_FRAME_ANSWER] = {1, VERBS_FRAME_BODY, false},
	[VERBS_FRAME_READY] = {0, VERBS_PROOF, false},
	[VERBS_FRAME_END] = {0, 0, false},
	[VERBS_FRAME_WORD] = {1, VERBS_WORD_MAX + VERBS_PROOF, false},
};

void verbs_frame_write(const struct verbs_frame *frame, uint8_t head[VERBS_FRAME_HEAD])
{
	struct frame_head h = {
		.magic = le32_of(FRAME_MAGIC),
		.version = le16_of(VERBS_DOOR_VERSION),
		.kind = le16_of((uint16_t)frame->kind),
		.len = le16_of(frame->len),
		.context = le16_of(frame->context),
		.end = le32_of(frame->end),
	};

	memcpy(head, &h, sizeof(h));
}

enum verbs_frame_error verbs_frame_read(const uint8_t head[VERBS_FRAME_HEAD],
					struct verbs_frame *frame)
{
	struct frame_head h;
	unsigned kind, end;
	bool ends;

	memcpy(&h, head, sizeof(h));
	kind = le16_get(h.kind);
	end = le32_get(h.end);
	ends = kind == VERBS_FRAME_END;
	if (le32_get(h.magic) != FRAME_MAGIC)
		return VERBS_FRAME_ALIEN;
	if (le16_get(h.version) != VERBS_DOOR_VERSION && !ends)
		return VERBS_FRAME_VERSION;
	if (kind == 0 || kind >= VERBS_FRAME_KINDS || ends == (end == 0) ||
	    end >= VERBS_ENDS)
		return VERBS_FRAME_ALIEN;
	*frame = (struct verbs_frame){
		.kind = (enum verbs_frame_kind)kind,
		.context = le16_get(h.context),
		.len = le16_get(h.len),
		.end = (enum verbs_end)end,
	};
	if (frame->len < frame_body[kind].min || frame->len > frame_body[kind].max ||
	    (frame->context && !frame_body[kind].context))
		return VERBS_FRAME_ALIEN;
	return VERBS_FRAME_OK;
}
