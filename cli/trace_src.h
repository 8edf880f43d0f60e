/* SPDX-License-Identifier: BSD-2-Clause */
/* What weft trace is given: files, folders of them, or processes, whose recorders are
 * read into files that are gone when the command ends. */
#ifndef WEFT_CLI_TRACE_SRC_H
#define WEFT_CLI_TRACE_SRC_H

#include <stdbool.h>
#include <stdint.h>

struct trace_src {
	const char *who; /* the command that speaks: "trace" */
	char **path;
	char *state; /* of the process, or 0 (take_state()) */
	int64_t count, max;
	char folder[64]; /* of dumps that were taken; "": none */
	const char *out; /* they go there instead, and stay */
	bool bad;	 /* something could not be had; it was said */
	char now;	 /* the state of the process that is being taken */
};

/* who: the command that speaks, static; out: NULL, or where dumps of processes are to
 * stay.
 */
void trace_src_begin(struct trace_src *src, const char *who, const char *out);
void trace_src_end(struct trace_src *src);

/* A file; a folder: all in it that end with .trace; a number that names no file: the
 * process. */
void trace_src_add(struct trace_src *src, const char *word);
/* "1,2,3" */
void trace_src_pids(struct trace_src *src, const char *list);
/* All processes of this user that have a recorder; none is no fault. */
void trace_src_everybody(struct trace_src *src);
/* All processes that descend from it and have a recorder. */
void trace_src_job(struct trace_src *src, const char *pid);

#endif
