/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What weft perf measures besides the time of a call: how much of it passes while the
 * caller computes (--overlap), and what it is spent on (--breakdown).
 */
#ifndef WEFT_CLI_PERF_STAGES_H
#define WEFT_CLI_PERF_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/perf.h"

/* Measures what the options ask for and puts it into the row, whose calls were measured.
 * False: a call failed, which was said. */
bool perf_stages(struct perf *p, const struct perf_op *op, struct perf_row *row);

#endif
