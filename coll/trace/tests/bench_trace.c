/* SPDX-License-Identifier: BSD-2-Clause */
/* What recording an event costs: nanoseconds, the best of some rounds. bench/trace. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/trace/recorder.h"

static void record(struct recorder *r, uint32_t events)
{
	for (uint32_t k = 0; k < events; k++)
		trace_put(r, TRACE_STEP, 1, 0, k, (int32_t)(k & 7), k);
}

/* --events N: records so many, for whoever counts instructions. */
int main(int argc, char **argv)
{
	enum { ROUNDS = 20, EVENTS = 1000000 };
	struct recorder *r = recorder_open(0, 1);
	int64_t best = INT64_MAX;

	if (!r)
		return 1;
	if (argc == 3 && strcmp(argv[1], "--events") == 0) {
		record(r, (uint32_t)strtoul(argv[2], NULL, 10));
		recorder_close(r);
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		const int64_t begin = ticks_clock_ns(CLOCK_MONOTONIC);
		int64_t took;

		record(r, EVENTS);
		took = ticks_clock_ns(CLOCK_MONOTONIC) - begin;
		best = took < best ? took : best;
	}
	printf("trace: %.1f ns per event (%s), %" PRIu64 " recorded\n",
	       (double)best / EVENTS,
	       r->counter ? "the processor's counter" : "the monotonic clock",
	       r->image->head.total);
	recorder_close(r);
	return 0;
}
