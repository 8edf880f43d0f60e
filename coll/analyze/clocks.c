/* SPDX-License-Identifier: BSD-2-Clause */
/* See clocks.h. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "coll/analyze/clocks.h"

/* Of the height of the strip that a drift costs, by how far it leads. */
#define PENALTY 0.05

/* Steps of the search; each leaves two thirds of where the best may lie. */
enum { SEARCH_STEPS = 80 };

void clock_pair_begin(struct clock_pair *pair, int64_t from, int64_t to)
{
	memset(pair, 0, sizeof(*pair));
	pair->from = from;
	pair->slot = to > from ? (to - from) / CLOCK_SLOTS + 1 : 1;
}

/* In each slot of time the sharpest counts. */
static void bound_add(struct clock_pair *pair, bool most, int64_t a, int64_t b)
{
	const int64_t slot = (a - pair->from) / pair->slot;
	struct clock_bound *bound;
	double value;

	if (a < pair->from || slot >= CLOCK_SLOTS)
		return;
	if (!pair->started)
		pair->rough = b - a;
	pair->started = true;
	pair->matched++;
	value = (double)(b - a - pair->rough);
	bound = most ? &pair->most[slot] : &pair->least[slot];
	if (bound->there && (most ? value >= bound->value : value <= bound->value))
		return;
	*bound = (struct clock_bound){true, (double)(a - pair->from), value};
}

void clock_pair_forth(struct clock_pair *pair, int64_t a, int64_t b)
{
	bound_add(pair, true, a, b);
}

void clock_pair_back(struct clock_pair *pair, int64_t a, int64_t b)
{
	bound_add(pair, false, a, b);
}

struct strip {
	double low, high; /* of the offset at `from` */
};

/* The strip of lines that drift so fast and break no bound. */
static struct strip strip_of(const struct clock_pair *pair, double drift)
{
	struct strip s = {-INFINITY, INFINITY};

	for (int i = 0; i < CLOCK_SLOTS; i++) {
		const struct clock_bound *most = &pair->most[i], *least = &pair->least[i];

		if (most->there)
			s.high = fmin(s.high, most->value - drift * most->at);
		if (least->there)
			s.low = fmax(s.low, least->value - drift * least->at);
	}
	return s;
}

/* As wide as can be; of those that hardly differ the one that drifts least: where all
 * that is known lies within a moment, nothing is known about the drift. */
static double score(const struct clock_pair *pair, double drift, double at)
{
	const struct strip s = strip_of(pair, drift);

	(void)at;
	return s.high - s.low -
	       PENALTY * fabs(drift) * (double)(pair->slot * CLOCK_SLOTS);
}

/* The best drift between two, by a function that is concave in it. */
static double search(const struct clock_pair *pair, double low, double high,
		     double (*value)(const struct clock_pair *pair, double drift,
				     double at),
		     double at)
{
	for (int i = 0; i < SEARCH_STEPS; i++) {
		const double third = (high - low) / 3, a = low + third, b = high - third;

		if (value(pair, a, at) < value(pair, b, at))
			low = a;
		else
			high = b;
	}
	return (low + high) / 2;
}

/* The drift furthest from a good one, towards `end`, that breaks no bound. */
static double furthest(const struct clock_pair *pair, double good, double end)
{
	for (int i = 0; i < SEARCH_STEPS; i++) {
		const double mid = (good + end) / 2;
		const struct strip s = strip_of(pair, mid);

		if (s.high >= s.low)
			good = mid;
		else
			end = mid;
	}
	return good;
}

/* The most, and less the least, that the offset can be at a time, with this drift. */
static double most_at(const struct clock_pair *pair, double drift, double at)
{
	return strip_of(pair, drift).high + drift * at;
}

static double less_at(const struct clock_pair *pair, double drift, double at)
{
	return -strip_of(pair, drift).low - drift * at;
}

/* How much the offset may be between at that time, whatever the drift. */
static double gap_at(const struct clock_pair *pair, double slow, double fast, double at)
{
	const double up = search(pair, slow, fast, most_at, at);
	const double down = search(pair, slow, fast, less_at, at);

	return most_at(pair, up, at) + less_at(pair, down, at);
}

bool clock_pair_solve(const struct clock_pair *pair, struct clock_line *line)
{
	const double span = (double)(pair->slot * CLOCK_SLOTS);
	struct strip s = strip_of(pair, 0);
	double drift, slow, fast;

	if (isinf(s.low) || isinf(s.high))
		return false;
	drift = search(pair, -CLOCK_DRIFT_MAX, CLOCK_DRIFT_MAX, score, 0);
	s = strip_of(pair, drift);
	if (s.high < s.low)
		return false;
	slow = furthest(pair, drift, -CLOCK_DRIFT_MAX);
	fast = furthest(pair, drift, CLOCK_DRIFT_MAX);
	*line = (struct clock_line){
		.at = pair->from,
		.offset = pair->rough + llround((s.low + s.high) / 2),
		.drift = drift,
		/* In between it is less: the gap is convex in time. */
		.width =
			fmax(gap_at(pair, slow, fast, 0), gap_at(pair, slow, fast, span)),
	};
	return true;
}

int64_t clock_to(const struct clock_line *line, int64_t a)
{
	return a + line->offset + llround(line->drift * (double)(a - line->at));
}

int64_t clock_from(const struct clock_line *line, int64_t b)
{
	const double since = (double)(b - line->offset - line->at);

	return line->at + llround(since / (1 + line->drift));
}
