/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_out.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_out.h"

enum {
	READ_MAX = 64 << 10,	/* taken from a pipe at once */
	LINE_BYTES = 256 << 10, /* longer lines are shown in pieces */
	QUEUE_FULL = 1 << 20,
};

/* ---- sinks ------------------------------------------------------------------------ */

void run_sink_init(struct run_sink *sink, int fd, struct run_pen *pen)
{
	*sink = (struct run_sink){.fd = fd, .tty = isatty(fd), .pen = pen};
}

void run_sink_fini(struct run_sink *sink)
{
	free(sink->queue);
	sink->queue = NULL;
	sink->len = sink->cap = 0;
}

bool run_sink_full(const struct run_sink *sink)
{
	return sink->len >= QUEUE_FULL;
}

/* Grows *buf for `more` bytes after len. */
static bool buffer_grow(char **buf, size_t *cap, size_t len, size_t more)
{
	size_t want = *cap ? *cap : 4096;
	char *p;

	while (want < len + more)
		want *= 2;
	if (want == *cap)
		return true;
	p = realloc(*buf, want);
	if (!p)
		return false;
	*buf = p;
	*cap = want;
	return true;
}

static void sink_break(struct run_sink *sink, int error)
{
	sink->broken = true;
	sink->error = error;
}

static void sink_put(struct run_sink *sink, const char *data, size_t len)
{
	if (sink->broken || len == 0)
		return;
	if (!buffer_grow(&sink->queue, &sink->cap, sink->len, len)) {
		sink_break(sink, ENOMEM); /* the job is stopped */
		return;
	}
	memcpy(sink->queue + sink->len, data, len);
	sink->len += len;
}

void run_sink_flush(struct run_sink *sink)
{
	size_t done = 0;

	while (done < sink->len && !sink->broken) {
		/* A pipe that polls writable takes PIPE_BUF bytes without blocking. */
		struct pollfd pfd = {.fd = sink->fd, .events = POLLOUT};
		size_t piece = sink->len - done < PIPE_BUF ? sink->len - done : PIPE_BUF;
		ssize_t n;

		if (poll(&pfd, 1, 0) != 1)
			break;
		n = write(sink->fd, sink->queue + done, piece);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			sink_break(sink, errno);
		else
			break;
	}
	if (done == 0 && !sink->broken)
		return;
	memmove(sink->queue, sink->queue + done, sink->len - done);
	sink->len = sink->broken ? 0 : sink->len - done;
}

/* ---- streams ---------------------------------------------------------------------- */

void run_stream_init(struct run_stream *s, int fd, int32_t rank, struct run_sink *sink)
{
	*s = (struct run_stream){.fd = fd, .rank = rank, .sink = sink};
}

void run_stream_fini(struct run_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	free(s->line);
	s->line = NULL;
}

void run_pen_release(struct run_pen *pen)
{
	const char *text = pen->holder && pen->holder->live ? "\r\033[K" : "\n";

	if (pen->holder)
		sink_put(pen->holder->sink, text, strlen(text));
	pen->holder = NULL;
}

/* A line, or a piece of one. */
static void stream_show(struct run_stream *s, const char *data, size_t len)
{
	struct run_pen *pen = s->sink->pen;
	char prefix[16];
	int n;

	if (pen->holder != s) {
		run_pen_release(pen);
		n = snprintf(prefix, sizeof(prefix), "[%" PRId32 "] ", s->rank);
		sink_put(s->sink, prefix, (size_t)n);
	}
	sink_put(s->sink, data, len);
	s->live = s->sink->tty && memchr(data, '\r', len) != NULL;
	pen->holder = data[len - 1] == '\n' ? NULL : s;
}

static void stream_show_rest(struct run_stream *s)
{
	if (s->len > 0)
		stream_show(s, s->line, s->len);
	s->len = 0;
}

/* Shows all complete lines of what is there. */
static void stream_split(struct run_stream *s)
{
	char *at = s->line, *end = s->line + s->len, *nl;

	while (at < end && (nl = memchr(at, '\n', (size_t)(end - at)))) {
		stream_show(s, at, (size_t)(nl + 1 - at));
		at = nl + 1;
	}
	s->len = (size_t)(end - at);
	memmove(s->line, at, s->len);
	if (s->len >= LINE_BYTES)
		stream_show_rest(s);
}

void run_stream_pause(struct run_stream *s)
{
	if (s->sink->tty && !run_sink_full(s->sink))
		stream_show_rest(s);
}

static void stream_end(struct run_stream *s)
{
	stream_show_rest(s);
	s->live = false; /* its last words stay */
	if (s->sink->pen->holder == s)
		run_pen_release(s->sink->pen);
	close(s->fd);
	s->fd = -1;
}

void run_stream_read(struct run_stream *s)
{
	ssize_t n = -1;

	if (s->fd < 0)
		return;
	if (buffer_grow(&s->line, &s->cap, s->len, READ_MAX)) {
		n = read(s->fd, s->line + s->len, READ_MAX);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
	}
	if (n <= 0) {
		stream_end(s);
		return;
	}
	s->len += (size_t)n;
	stream_split(s);
}
