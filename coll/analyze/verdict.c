/* SPDX-License-Identifier: BSD-2-Clause */
/* See verdict.h. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "coll/analyze/verdict.h"

static const char *const kind_name[VERDICT_KINDS] = {
	[VERDICT_NONE] = "nothing stands still",
	[VERDICT_OUTSIDE] = "rank outside communication",
	[VERDICT_DEAD] = "rank dead",
	[VERDICT_LINK] = "link short of data",
	[VERDICT_MISMATCH] = "metadata mismatch",
	[VERDICT_ORDER] = "different order of communicators",
	[VERDICT_SLOW_RANK] = "slow rank",
	[VERDICT_SLOW_LINK] = "slow link",
	[VERDICT_UNKNOWN] = "not known",
};

const char *verdict_name(enum verdict_kind kind)
{
	return kind_name[kind];
}

void verdict_say(struct verdict *v, const char *fmt, ...)
{
	va_list ap;

	if (v->lines == VERDICT_LINES)
		return;
	va_start(ap, fmt);
	vsnprintf(v->line[v->lines++], VERDICT_LINE, fmt, ap);
	va_end(ap);
}
