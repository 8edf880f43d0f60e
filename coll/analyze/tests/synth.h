/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dumps of a job that never ran: ranks with clocks of their own go round all-reduces in
 * rings, over all ranks and over groups of eight in turn, and then something is wrong.
 * For tests, and for how long the analyzer takes.
 */
#ifndef WEFT_ANALYZE_TESTS_SYNTH_H
#define WEFT_ANALYZE_TESTS_SYNTH_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/trace/trace_file.h"

enum synth_fault {
	SYNTH_NONE,
	SYNTH_OUTSIDE,	/* `bad` never calls the last one */
	SYNTH_DEAD,	/* gives no dump, and its neighbours know it as lost */
	SYNTH_MISMATCH, /* calls it with another count */
	SYNTH_ORDER,	/* calls its group's instead, which calls that of all */
	SYNTH_LINK,	/* what it sends to the next rank does not come */
	SYNTH_SLOW,	/* takes five times as long for what is its own */
	SYNTH_SLOW_LINK,
	SYNTH_TWO, /* two groups of eight hang, that of `bad` a tenth of a second
		    * before the first, whose rank 0 never calls either */
	SYNTH_FAULTS
};

extern const char *const synth_name[SYNTH_FAULTS];

struct synth {
	int32_t size;
	enum synth_fault fault;
	int32_t bad;
	int calls;	    /* that ended well before */
	int messages;	    /* of each call that are events */
	uint64_t seed;	    /* of clocks and times */
	int64_t offset_max; /* ns that clocks may be apart */
	double drift_max;
};

enum { SYNTH_GROUP = 8 };

/* The rank's clock at a moment of the job, ns. */
int64_t synth_clock(const struct synth *s, int32_t rank, int64_t when);

/* Writes folder/rank-RANK.trace; false: it can't be, errno says why. A rank that gives no
 * dump writes none. */
bool synth_write(const struct synth *s, int32_t rank, const char *folder);

#endif
