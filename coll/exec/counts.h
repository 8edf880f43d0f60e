/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the provider counts, where it is Weft's (weft/weft_fi.h): looked at now and then,
 * put into the recorder's tables, and told as an event where something went wrong since
 * the last look. Other providers tell of errors only, by completions. The context's lock.
 */
#ifndef WEFT_EXEC_COUNTS_H
#define WEFT_EXEC_COUNTS_H

#include <stdint.h>

#include "coll/exec/net.h"
#include "coll/trace/recorder.h"

struct counts;

/* NULL: the provider has none, or there is no memory. Both are used as long as it is. */
struct counts *counts_open(const struct net *net, struct recorder *trace);
void counts_close(struct counts *counts); /* may be NULL */

/* now: microseconds; looks where the last look is a while ago. counts may be NULL. */
void counts_look(struct counts *counts, int64_t now);
/* Looks. */
void counts_now(struct counts *counts);

#endif
