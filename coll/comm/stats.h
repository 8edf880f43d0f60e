/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of counters, where WEFT_STATS names a folder: FOLDER/weft-RANK.PID.N.prom,
 * written every WEFT_STATS_SECONDS (10) by a thread that sleeps in between, and when the
 * context closes. What is in them: coll/trace/prom.h.
 */
#ifndef WEFT_COMM_STATS_H
#define WEFT_COMM_STATS_H

#include <stdbool.h>

#include "weft/weft.h"

struct stats;

/* "" or NULL: 10. False: it is no number of seconds from 0.1 to 86400. */
bool stats_seconds(const char *text, double *seconds);

/* *out is NULL where nothing is asked for. ARG with the detail: the folder can't be
 * written, or the number is none; NOMEM. The context is open but for that. */
enum weft_result stats_open(struct weft_ctx *ctx, struct stats **out);
/* Writes the last one. Without the lock. */
void stats_close(struct stats *stats); /* may be NULL */

#endif
