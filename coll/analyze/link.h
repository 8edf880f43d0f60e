/* SPDX-License-Identifier: BSD-2-Clause */
/* Where all ranks have entered a call: which link it waits for. */
#ifndef WEFT_ANALYZE_LINK_H
#define WEFT_ANALYZE_LINK_H

#include "coll/analyze/job.h"
#include "coll/analyze/verdict.h"

struct link_cause {
	int32_t from, to;
	const char *what;     /* "notifications", "messages", ... */
	uint64_t given, come; /* of them */
};

/* From a rank that waits to the one that it waits for, and so on, until one is found that
 * has given what has not come. False: there is none. */
bool link_find(const struct job *job, int64_t group, uint32_t call,
	       struct link_cause *cause);

/* The evidence, with what the provider said of the link at both ends. */
void link_say(const struct job *job, const struct link_cause *cause, struct verdict *v);

#endif
