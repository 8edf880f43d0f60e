/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that a context writes by itself, into a folder that a variable of the environment
 * names. */
#ifndef WEFT_TRACE_OUT_PATH_H
#define WEFT_TRACE_OUT_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

struct out_path {
	const char *variable, *folder; /* what was asked for */
	const char *what;	       /* such files: "dumps" */
	const char *prefix, *suffix;   /* of the name: PREFIX-RANK.PID.NUMBER.SUFFIX */
	int32_t rank;
	unsigned number; /* of the context in its process */
};

/* ARG, with the detail: the folder is none that can be written to, or the path does not
 * fit; path is "" then. */
enum weft_result out_path_set(const struct out_path *p, char *path, size_t room);

#endif
