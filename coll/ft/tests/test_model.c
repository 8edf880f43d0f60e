/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random schedules of world.h. As a test some hundred, always the same ones. By name:
 * --schedules N, --seed S; the last line says what happened. --trace prints all of it,
 * --first ends with the first fault, not the tenth.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/ft/tests/world.h"
#include "util/tap.h"

struct total {
	uint64_t schedules, faults, stalled;
	struct world_result sum;
};

static void total_add(struct total *t, uint64_t seed, const struct world_result *r)
{
	t->schedules++;
	t->stalled += r->stalled;
	t->sum.steps += r->steps;
	t->sum.epochs += r->epochs;
	t->sum.deaths += r->deaths;
	t->sum.joins += r->joins;
	t->sum.crashes += r->crashes;
	t->sum.rebuilds += r->rebuilds;
	t->sum.fenced += r->fenced;
	t->sum.messages += r->messages;
	if (!r->fault[0])
		return;
	t->faults++;
	tap_diag("--seed %" PRIu64 " --schedules 1 --trace: %s", seed, r->fault);
}

static void run(uint64_t seed, uint64_t schedules, bool trace, uint64_t faults,
		struct total *t)
{
	for (uint64_t i = 0; i < schedules && t->faults < faults; i++) {
		struct world_result r;

		world_run(seed + i, trace, &r);
		total_add(t, seed + i, &r);
	}
}

static void say(const char *before, const struct total *t)
{
	printf("%s%" PRIu64 " schedules: %" PRIu64 " faults; %" PRIu64
	       " steps counted, %" PRIu64 " epochs, %" PRIu64 " deaths, %" PRIu64
	       " joins, %" PRIu64 " coordinator crashes, %" PRIu64
	       " without what was kept, %" PRIu64 " fenced, %" PRIu64
	       " ended without a quorum, %" PRIu64 " messages\n",
	       before, t->schedules, t->faults, t->sum.steps, t->sum.epochs,
	       t->sum.deaths, t->sum.joins, t->sum.crashes, t->sum.rebuilds,
	       t->sum.fenced, t->stalled, t->sum.messages);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text ? text : "", &end, 10);

	if (!text || !*text || *end) {
		fprintf(stderr, "usage: test_model [--schedules N] [--seed S] [--trace] "
				"[--first]\n");
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	uint64_t seed = 0, schedules = 0;
	struct total t = {0};
	uint64_t faults = 10;
	bool trace = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0)
			trace = true;
		else if (strcmp(argv[i], "--first") == 0)
			faults = 1;
		else if (strcmp(argv[i], "--seed") == 0)
			seed = number(argv[++i]);
		else if (strcmp(argv[i], "--schedules") == 0)
			schedules = number(argv[++i]);
		else
			number(NULL);
	}
	/* As a test it is the same every time: what is looked for elsewhere is looked for
	 * by name. */
	if (!seed)
		seed = schedules ? (uint64_t)time(NULL) * 1000003u : 1;
	if (schedules) {
		run(seed, schedules, trace, faults, &t);
		say("", &t);
		return t.faults != 0;
	}
	tap_diag("seed %" PRIu64, seed);
	run(seed, tap_short() ? 60 : 300, trace, faults, &t);
	say("# ", &t);
	tap_ok(t.faults == 0, "G2, G3, G4, G5 hold in every schedule");
	tap_ok(t.sum.steps > 0 && t.sum.deaths > 0 && t.sum.joins > 0 &&
		       t.sum.crashes > 0 && t.sum.rebuilds > 0 && t.sum.fenced > 0,
	       "of everything that may happen something did");
	return tap_done();
}
