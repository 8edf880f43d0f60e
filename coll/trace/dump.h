/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing a recorder's memory to a file, by nothing but what a signal's handler may call.
 */
#ifndef WEFT_TRACE_DUMP_H
#define WEFT_TRACE_DUMP_H

#include "coll/trace/recorder.h"

/* The moment of a dump, by the clocks of the process that recorded. */
struct dump_now {
	enum trace_reason reason;
	int signal; /* its number, if one is the reason */
	uint64_t ticks;
	int64_t mono, real; /* nanoseconds */
};

/* A file of that name is replaced at once, when the new one is whole. Negative errno. */
int dump_write(const struct trace_image *image, const struct dump_now *now,
	       const char *path);

#endif
