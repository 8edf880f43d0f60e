/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection between a member and its coordinator: messages in and out of a
 * socket that never blocks. What can't be written at once waits, up to a bound.
 */
#ifndef WEFT_FT_STREAM_H
#define WEFT_FT_STREAM_H

#include "coll/ft/frame.h"

enum ft_stream_state {
	FT_STREAM_OPEN,
	FT_STREAM_EOF,	 /* the other end closed it */
	FT_STREAM_ERROR, /* the system says why: stream.error */
	FT_STREAM_BAD,	 /* what came is no message of the job */
	FT_STREAM_SLOW,	 /* the other end doesn't read, and too much waits for it */
	FT_STREAM_MEMORY,
	FT_STREAM_STATE_END
};

/* What may wait for a slow reader: a few messages of the longest kind. */
enum { FT_STREAM_OUT_MOST = 4 * FT_MSG_MAX };

struct ft_stream {
	int fd; /* owned; -1: none */
	enum ft_stream_state state;
	int error;
	const uint8_t *job;
	struct ft_frame frame;
	uint8_t *out; /* owned; bytes out_first to out_end wait */
	size_t out_first, out_end, out_room;
	size_t out_most; /* FT_STREAM_OUT_MOST unless changed */
};

/* Takes the socket. job stays the caller's, and there. */
void ft_stream_init(struct ft_stream *s, int fd, const uint8_t *job);

/* Closes it. Can be called again. */
void ft_stream_fini(struct ft_stream *s);

/* Reads what is there, up to a few messages, so that one peer does not keep others
 * waiting; hands each to hear(), which may say something, but not end the stream. */
enum ft_stream_state ft_stream_read(struct ft_stream *s,
				    void (*hear)(void *arg, const struct ft_msg *msg),
				    void *arg);

/* Puts a message behind those that wait. Nothing happens when the stream is not open. */
void ft_stream_say(struct ft_stream *s, const struct ft_msg *msg);

/* Writes what the socket takes of it. */
enum ft_stream_state ft_stream_write(struct ft_stream *s);

static inline bool ft_stream_waits(const struct ft_stream *s)
{
	return s->out_first < s->out_end;
}

const char *ft_stream_state_name(enum ft_stream_state state);

#endif
