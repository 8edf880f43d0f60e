/* SPDX-License-Identifier: BSD-2-Clause */
/* See frame.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/frame.h"

enum { ROOM_KEPT = 64 << 10 }; /* long lists are rare: their room is given back */

void ft_frame_fini(struct ft_frame *f)
{
	free(f->buf);
	ft_inbox_fini(&f->inbox);
	memset(f, 0, sizeof(*f));
}

uint8_t *ft_frame_space(struct ft_frame *f, size_t *len)
{
	if (f->whole == 0) {
		*len = FT_HDR_LEN - f->len;
		return f->hdr + f->len;
	}
	*len = f->whole - f->len;
	return f->buf + f->len;
}

/* The header is here: room for what it says. */
static enum ft_cut open_body(struct ft_frame *f, const uint8_t *job)
{
	f->whole = ft_wire_whole(f->hdr, job);
	if (f->whole == 0 || f->whole > FT_MSG_MAX)
		return FT_CUT_BAD;
	if (f->whole == FT_HDR_LEN)
		return FT_CUT_WHOLE;
	if (f->whole > f->room) {
		uint8_t *buf = realloc(f->buf, f->whole);

		if (!buf)
			return FT_CUT_MEMORY;
		f->buf = buf;
		f->room = f->whole;
	}
	memcpy(f->buf, f->hdr, FT_HDR_LEN);
	return FT_CUT_MORE;
}

/* The message is whole: what it says, and room for the next. */
static enum ft_cut take(struct ft_frame *f, const uint8_t *job, struct ft_msg *msg)
{
	const uint8_t *at = f->whole == FT_HDR_LEN ? f->hdr : f->buf;
	enum ft_fault fault = ft_wire_get(at, f->whole, job, msg, &f->inbox);

	f->len = f->whole = 0;
	if (f->room > ROOM_KEPT) {
		free(f->buf);
		f->buf = NULL;
		f->room = 0;
	}
	if (fault == FT_FAULT_MEMORY)
		return FT_CUT_MEMORY;
	return fault == FT_FAULT_NONE ? FT_CUT_WHOLE : FT_CUT_BAD;
}

enum ft_cut ft_frame_add(struct ft_frame *f, size_t len, const uint8_t *job,
			 struct ft_msg *msg)
{
	enum ft_cut cut;

	f->len += len;
	if (f->whole == 0) {
		if (f->len < FT_HDR_LEN)
			return FT_CUT_MORE;
		cut = open_body(f, job);
		return cut == FT_CUT_WHOLE ? take(f, job, msg) : cut;
	}
	return f->len < f->whole ? FT_CUT_MORE : take(f, job, msg);
}
