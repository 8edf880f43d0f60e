/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of the ranks: what a rank writes comes through a pipe (a stream) and leaves,
 * prefixed by "[rank] " per line, through the launcher's stdout or stderr (a sink).
 *
 * Lines of different ranks never mix. A line that is unfinished when its rank pauses, or
 * longer than 256 KiB, is shown as far as it goes and its stream "holds the pen": it goes
 * on without a prefix, unless another stream writes in between, which first ends the
 * line. Bytes are passed as they are, whatever they are.
 *
 * Nothing blocks: a sink that does not take its bytes fills its queue, and then the
 * ranks' pipes are left alone until it has drained.
 */
#ifndef WEFT_CLI_RUN_OUT_H
#define WEFT_CLI_RUN_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_stream;

/* Shared by sinks that show the same terminal. */
struct run_pen {
	const struct run_stream
		*holder; /* in the middle of a line; NULL: at its beginning */
};

struct run_sink {
	int fd;
	bool tty;    /* somebody looks: unfinished lines are shown */
	bool broken; /* cannot be written: bytes are dropped */
	int error;   /* why, as errno has it; EPIPE: the reader has gone */
	struct run_pen *pen;
	char *queue;
	size_t len, cap;
};

struct run_stream {
	int fd; /* read end; -1: ended */
	int32_t rank;
	struct run_sink *sink;
	bool live;  /* holds the pen with a line that overwrites itself */
	char *line; /* what has come since the last newline and was not shown */
	size_t len, cap;
};

void run_sink_init(struct run_sink *sink, int fd, struct run_pen *pen);
void run_sink_fini(struct run_sink *sink);

/* More than enough is queued: read no more for it. */
bool run_sink_full(const struct run_sink *sink);

/* Writes what the descriptor takes without blocking, which poll() has said to be some. */
void run_sink_flush(struct run_sink *sink);

/* Whoever holds the pen gives it back: the next text begins a line. */
void run_pen_release(struct run_pen *pen);

/* fd is owned by the stream from here. */
void run_stream_init(struct run_stream *s, int fd, int32_t rank, struct run_sink *sink);
void run_stream_fini(struct run_stream *s);

/* Takes what has come; at the end of the pipe shows the rest and closes it. */
void run_stream_read(struct run_stream *s);

/* The rank has been silent for a moment: shows an unfinished line to who looks. */
void run_stream_pause(struct run_stream *s);

#endif
