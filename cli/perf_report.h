/* SPDX-License-Identifier: BSD-2-Clause */
/* What rank 0 of weft perf shows: tables or JSON on stdout, progress on a terminal. */
#ifndef WEFT_CLI_PERF_REPORT_H
#define WEFT_CLI_PERF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/json.h"
#include "cli/perf.h"

struct perf_report {
	const struct perf *perf;
	bool on;   /* this is rank 0 */
	bool tty;  /* somebody looks at stderr */
	int total; /* measurements to come in all */
	int done;
	uint64_t wrong;
	int few;	  /* measurements of too few calls */
	char best[160];	  /* "broadcast 2.1, allgather 3.4": GB/s, the fastest of each */
	char fastest[80]; /* "barrier 23.8 us" */
	double op_best;
	struct json json;
};

void perf_report_begin(struct perf_report *r, const struct perf *p, int total);
void perf_report_op_begin(struct perf_report *r, const struct perf_op *op);
void perf_report_skip(struct perf_report *r, const struct perf_op *op, const char *why);
/* Said before the measurement. */
void perf_report_progress(struct perf_report *r, const struct perf_op *op,
			  uint64_t bytes);
void perf_report_row(struct perf_report *r, const struct perf_row *row);
/* moved: of all ranks together, shown with --stats. */
void perf_report_op_end(struct perf_report *r, const struct perf_op *op,
			const struct weft_stats *moved, uint64_t calls);
void perf_report_end(struct perf_report *r, double seconds);

#endif
