/* SPDX-License-Identifier: BSD-2-Clause */
/* See ranklist.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "coll/boot/ranklist.h"

enum { RUNS_MAX = 8 };

static size_t run_print(char *text, size_t len, size_t at, int32_t first, int32_t last)
{
	int n;

	if (at >= len)
		return at;
	if (first == last)
		n = snprintf(text + at, len - at, "%s%" PRId32, at ? ", " : "", first);
	else
		n = snprintf(text + at, len - at, "%s%" PRId32 "-%" PRId32,
			     at ? ", " : "", first, last);
	return at + (size_t)n;
}

int32_t ranklist_format(char *text, size_t len, int32_t size,
			bool (*has)(const void *arg, int32_t rank), const void *arg)
{
	int32_t count = 0, shown = 0, runs = 0, first = -1;
	size_t at = 0;

	for (int32_t r = 0; r <= size; r++) {
		bool in = r < size && has(arg, r);

		count += in;
		if (in && first < 0)
			first = r;
		if (in || first < 0)
			continue;
		if (runs++ < RUNS_MAX) {
			at = run_print(text, len, at, first, r - 1);
			shown += r - first;
		}
		first = -1;
	}
	if (count == 0)
		snprintf(text, len, "none");
	else if (shown < count && at < len)
		snprintf(text + at, len - at, " and %" PRId32 " more", count - shown);
	return count;
}
