/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples do when a call fails: say what Weft says of it, and end the process,
 * which has weft run end the others. */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

static inline void check(const char *what, enum weft_result result)
{
	if (result == WEFT_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, weft_strerror(result), weft_error_detail());
	exit(1);
}

/* Memory, zeroed, or the end. */
static inline void *room(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory) {
		fprintf(stderr, "no memory for %zu times %zu bytes\n", count, size);
		exit(1);
	}
	return memory;
}

#endif
