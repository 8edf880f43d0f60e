/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coordinators and members in one process, on a virtual clock, over a network that loses,
 * doubles, delays and cuts, with processes that die before or after any message, stop for
 * a while, come anew and leave; coordinators come back with what they kept, or without,
 * or there are two. Everything follows from one seed.
 *
 * What must hold is looked at whenever something happens; see the list in actors.c.
 */
#ifndef WEFT_FT_TESTS_WORLD_H
#define WEFT_FT_TESTS_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct world_result {
	char fault[200]; /* empty: everything held */
	uint64_t steps;	 /* that counted */
	uint64_t epochs; /* that somebody was in */
	uint64_t deaths, joins, crashes, rebuilds, fenced;
	uint64_t messages;
	bool stalled; /* no further steps in the end, as must be when too many are gone */
};

/* One schedule. trace: print what happens. */
void world_run(uint64_t seed, bool trace, struct world_result *result);

#endif
