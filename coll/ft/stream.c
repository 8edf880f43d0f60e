/* SPDX-License-Identifier: BSD-2-Clause */
/* See stream.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/ft/stream.h"

enum {
	READ_MOST = 16,	     /* messages at a time */
	OUT_KEPT = 16 << 10, /* room that stays when nothing waits */
};

static const char *const state_name[FT_STREAM_STATE_END] = {
	[FT_STREAM_OPEN] = "open",
	[FT_STREAM_EOF] = "closed by the other end",
	[FT_STREAM_ERROR] = "broken",
	[FT_STREAM_BAD] = "no message of this job came (another secret or version?)",
	[FT_STREAM_SLOW] = "too slow a reader",
	[FT_STREAM_MEMORY] = "no memory",
};

const char *ft_stream_state_name(enum ft_stream_state state)
{
	return (unsigned)state >= FT_STREAM_STATE_END ? "?" : state_name[state];
}

void ft_stream_init(struct ft_stream *s, int fd, const uint8_t *job)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->job = job;
	s->out_most = FT_STREAM_OUT_MOST;
}

void ft_stream_fini(struct ft_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (s->state == FT_STREAM_OPEN)
		s->state = FT_STREAM_EOF;
	free(s->out);
	s->out = NULL;
	s->out_first = s->out_end = s->out_room = 0;
	ft_frame_fini(&s->frame);
}

static void failed(struct ft_stream *s)
{
	s->error = errno;
	s->state = FT_STREAM_ERROR;
}

/* Reads once. false: there is no more now, or the stream has ended. */
static bool read_some(struct ft_stream *s, size_t *got)
{
	uint8_t *at;
	size_t len;
	ssize_t n;

	at = ft_frame_space(&s->frame, &len);
	do
		n = recv(s->fd, at, len, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		s->state = FT_STREAM_EOF;
	else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		failed(s);
	*got = n > 0 ? (size_t)n : 0;
	return n > 0;
}

enum ft_stream_state ft_stream_read(struct ft_stream *s,
				    void (*hear)(void *arg, const struct ft_msg *msg),
				    void *arg)
{
	size_t got;
	int heard = 0;

	while (s->state == FT_STREAM_OPEN && heard < READ_MOST && read_some(s, &got)) {
		struct ft_msg msg;
		enum ft_cut cut = ft_frame_add(&s->frame, got, s->job, &msg);

		if (cut == FT_CUT_BAD)
			s->state = FT_STREAM_BAD;
		if (cut == FT_CUT_MEMORY)
			s->state = FT_STREAM_MEMORY;
		if (cut != FT_CUT_WHOLE)
			continue;
		heard++;
		hear(arg, &msg);
	}
	return s->state;
}

/* Room for len bytes more. */
static bool reserve(struct ft_stream *s, size_t len)
{
	size_t used = s->out_end - s->out_first, room = s->out_room ? s->out_room : 1024;
	uint8_t *out;

	if (s->out_first && s->out_end + len > s->out_room) {
		memmove(s->out, s->out + s->out_first, used);
		s->out_first = 0;
		s->out_end = used;
	}
	if (used + len <= s->out_room)
		return true;
	while (room < used + len)
		room *= 2;
	out = realloc(s->out, room);
	if (!out)
		return false;
	s->out = out;
	s->out_room = room;
	return true;
}

void ft_stream_say(struct ft_stream *s, const struct ft_msg *msg)
{
	size_t len = ft_wire_len(msg);

	if (s->state != FT_STREAM_OPEN)
		return;
	if (s->out_end - s->out_first + len > s->out_most) {
		s->state = FT_STREAM_SLOW;
		return;
	}
	if (!reserve(s, len)) {
		s->state = FT_STREAM_MEMORY;
		return;
	}
	ft_wire_put(s->out + s->out_end, msg, s->job);
	s->out_end += len;
}

enum ft_stream_state ft_stream_write(struct ft_stream *s)
{
	while (s->state == FT_STREAM_OPEN && ft_stream_waits(s)) {
		ssize_t n = send(s->fd, s->out + s->out_first, s->out_end - s->out_first,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			s->out_first += (size_t)n;
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return s->state;
		else if (errno != EINTR)
			failed(s);
	}
	if (!ft_stream_waits(s)) {
		s->out_first = s->out_end = 0;
		if (s->out_room > OUT_KEPT) {
			free(s->out);
			s->out = NULL;
			s->out_room = 0;
		}
	}
	return s->state;
}
