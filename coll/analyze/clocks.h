/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far the clocks of two ranks are apart, from things that one of them did before the
 * other one saw it: a message that was sent and received, a call that nobody leaves
 * before everybody has entered it. Each says that the clocks differ by at most, or at
 * least, so much at a moment. Where there are some of both kinds, the line midway in the
 * widest strip between them, of constant height over time, is taken for the offset and
 * its drift (the separating-line view of Duda et al., "Estimating global time in
 * distributed systems", 1987). Times are nanoseconds.
 */
#ifndef WEFT_ANALYZE_CLOCKS_H
#define WEFT_ANALYZE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Drifts that are looked for: 1000 parts in a million, ten times what quartz does. */
#define CLOCK_DRIFT_MAX 1e-3

enum { CLOCK_SLOTS = 64 };

struct clock_bound {
	bool there;
	double at, value; /* since `from`; what the offset is at most, or at least */
};

/* What is known of one pair, A and B. */
struct clock_pair {
	int64_t from, slot; /* A's time of the first slot; length of one */
	int64_t rough;	    /* B's time less A's, about, so that doubles are exact */
	bool started;
	uint64_t matched; /* pairs that were added */
	struct clock_bound most[CLOCK_SLOTS], least[CLOCK_SLOTS];
};

/* B's time is A's + offset + drift * (A's - at). */
struct clock_line {
	int64_t at;
	int64_t offset;
	double drift;
	double width; /* the line is wrong by no more anywhere between `from` and `to`, if
		       * the drift is no more than is looked for */
};

/* from, to: what is to be added lies between, by A's clock; the rest is left out. */
void clock_pair_begin(struct clock_pair *pair, int64_t from, int64_t to);
/* A did something at a, which B saw, by its own clock, at b. */
void clock_pair_forth(struct clock_pair *pair, int64_t a, int64_t b);
/* And B at b, which A saw at a. */
void clock_pair_back(struct clock_pair *pair, int64_t a, int64_t b);

/* False: there were not pairs of both directions, or no line fits them. */
bool clock_pair_solve(const struct clock_pair *pair, struct clock_line *line);

/* B's time when A's is `a`; and the other way. */
int64_t clock_to(const struct clock_line *line, int64_t a);
int64_t clock_from(const struct clock_line *line, int64_t b);

#endif
