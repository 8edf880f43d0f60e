/* SPDX-License-Identifier: BSD-2-Clause */
/* How one context stands, as text or JSON. */
#ifndef WEFT_CLI_STAT_H
#define WEFT_CLI_STAT_H

#include "cli/json.h"
#include "coll/trace/look.h"

/* was: the same context a while ago, by which there are rates; NULL: there are none. */
void stat_text(const struct look *now, const struct look *was);
/* One object of an array. */
void stat_json(struct json *j, const struct look *now, const struct look *was);

#endif
