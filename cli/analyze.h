/* SPDX-License-Identifier: BSD-2-Clause */
/* weft trace analyze: the dumps of a job, put together and judged. */
#ifndef WEFT_CLI_ANALYZE_H
#define WEFT_CLI_ANALYZE_H

#include <stdbool.h>

#include "cli/trace_src.h"

/* stuck: seconds, as given, or NULL. Status: 0, nothing is wrong; 3: something is, and
 * was said; 1: a dump was refused, the others show nothing; 2: `stuck` is no number. */
int analyze_run(const struct trace_src *src, const char *stuck, bool json);

#endif
