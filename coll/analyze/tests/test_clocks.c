/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks from pairs: whatever their offset, drift and the times of messages, the estimate
 * is as good as its width says. WEFT_SEED repeats a run.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "coll/analyze/clocks.h"
#include "util/tap.h"

enum { RUNS = 2000, SPAN_NS = 2000000000, LEAST_NS = 1000 };

static uint64_t state;

static double part(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) * 0x1p-53;
}

static double between(double low, double high)
{
	return low + part() * (high - low);
}

struct world {
	int64_t begin, offset;
	double drift;
	int64_t flight; /* most that a message takes beyond the least */
	int messages;
};

static int64_t b_of(const struct world *w, int64_t a)
{
	return a + w->offset + (int64_t)(w->drift * (double)(a - w->begin));
}

static void talk(const struct world *w, struct clock_pair *pair)
{
	for (int i = 0; i < w->messages; i++) {
		const int64_t sent = w->begin + (int64_t)(part() * SPAN_NS);
		const int64_t there =
			sent + LEAST_NS + (int64_t)(part() * part() * (double)w->flight);

		if (part() < 0.5)
			clock_pair_forth(pair, sent, b_of(w, there));
		else
			clock_pair_back(pair, there, b_of(w, sent));
	}
}

/* Wrong by so much, at most, anywhere between. */
static double error_of(const struct world *w, const struct clock_line *line)
{
	double worst = 0;

	for (int i = 0; i <= 8; i++) {
		const int64_t a = w->begin + (int64_t)SPAN_NS / 8 * i;
		const double error = (double)(clock_to(line, a) - b_of(w, a));

		worst = fmax(worst, fabs(error));
	}
	return worst;
}

static void property(void)
{
	int good = 0, solved = 0, back = 0;
	double worst = 0;

	for (int i = 0; i < RUNS; i++) {
		struct world w = {.begin = (int64_t)between(1e18, 2e18),
				  .offset = (int64_t)between(-1e12, 1e12),
				  .drift = between(-1e-4, 1e-4),
				  .flight = (int64_t)between(0, 1e6),
				  .messages = 40 + (int)(part() * 400)};
		struct clock_pair pair;
		struct clock_line line;
		double error;

		clock_pair_begin(&pair, w.begin, w.begin + SPAN_NS);
		talk(&w, &pair);
		if (!clock_pair_solve(&pair, &line))
			continue;
		solved++;
		error = error_of(&w, &line);
		worst = fmax(worst, error / line.width);
		good += error <= line.width + 2; /* that are rounded */
		back += llabs(clock_from(&line, clock_to(&line, w.begin + 12345)) -
			      (w.begin + 12345)) <= 2;
	}
	tap_diag("the worst error is %.2f of the width", worst);
	tap_ok(solved == RUNS, "all of %d are solved", RUNS);
	tap_ok(good == solved, "%d of %d are as good as they say", good, solved);
	tap_ok(back == solved, "there and back is the same");
}

static void little(void)
{
	struct clock_pair pair;
	struct clock_line line;

	clock_pair_begin(&pair, 0, 1000);
	tap_ok(!clock_pair_solve(&pair, &line), "of nothing nothing is known");
	clock_pair_forth(&pair, 10, 500);
	clock_pair_forth(&pair, 20, 505);
	tap_ok(!clock_pair_solve(&pair, &line), "nor of one direction");
	clock_pair_forth(&pair, 1000000, 0);
	clock_pair_back(&pair, -5, 0);
	tap_ok(pair.matched == 2, "what is outside of the time is left out");
	clock_pair_back(&pair, 40, 500);
	tap_ok(clock_pair_solve(&pair, &line) && line.offset >= 460 && line.offset <= 485,
	       "one each is between them");
	clock_pair_back(&pair, 40, 100000);
	tap_ok(!clock_pair_solve(&pair, &line), "what no line fits is not solved");
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");

	state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	tap_diag("seed %" PRIu64 " (repeat with WEFT_SEED=%" PRIu64 ")", state, state);
	state = state * UINT64_C(0x9e3779b97f4a7c15) | 1;
	little();
	property();
	return tap_done();
}
