/* SPDX-License-Identifier: BSD-2-Clause */
/* What the provider counted while an operation was measured (--stats). */
#ifndef WEFT_CLI_PERF_COUNTS_H
#define WEFT_CLI_PERF_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/trace/recorder.h"

struct perf;

struct perf_counts {
	uint32_t n; /* 0: the provider has none, or ranks have different ones */
	const char *name[TRACE_COUNTS];
	uint64_t value[TRACE_COUNTS];
};

/* This rank's, so far. */
void perf_counts_now(const struct perf *p, struct perf_counts *counts);
/* What was added since then on all ranks together. False: said what is wrong. */
bool perf_counts_sum(struct perf *p, const struct perf_counts *since,
		     struct perf_counts *sum);

#endif
