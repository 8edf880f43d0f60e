/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts of jobs that never ran, whose ranks' clocks are a second apart and drift: the
 * right one, the right rank, and clocks that are found. WEFT_SEED repeats a run.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/analyze/pace.h"
#include "coll/analyze/stuck.h"
#include "coll/analyze/tests/synth.h"
#include "coll/api/error.h"
#include "util/tap.h"

static char folder[200];
static uint64_t seed;

struct want {
	enum synth_fault fault;
	enum verdict_kind kind;
	int32_t size, bad, to;
};

static const struct want want_table[] = {
	{SYNTH_NONE, VERDICT_NONE, 16, -1, -1},
	{SYNTH_OUTSIDE, VERDICT_OUTSIDE, 16, 11, -1},
	{SYNTH_DEAD, VERDICT_DEAD, 16, 3, -1},
	{SYNTH_MISMATCH, VERDICT_MISMATCH, 16, 15, -1},
	{SYNTH_ORDER, VERDICT_ORDER, 16, 5, -1},
	{SYNTH_LINK, VERDICT_LINK, 16, 9, 10},
	{SYNTH_SLOW, VERDICT_SLOW_RANK, 16, 2, -1},
	{SYNTH_SLOW_LINK, VERDICT_SLOW_LINK, 16, 12, 13},
	{SYNTH_TWO, VERDICT_OUTSIDE, 24, 21, -1},
	/* With so many ranks clocks go by calls, not by messages. */
	{SYNTH_OUTSIDE, VERDICT_OUTSIDE, 300, 287, -1},
	{SYNTH_TWO, VERDICT_OUTSIDE, 160, 93, -1},
	{SYNTH_ORDER, VERDICT_ORDER, 160, 93, -1},
};

static void path_of(int32_t rank, char path[300])
{
	snprintf(path, 300, "%s/rank-%" PRId32 ".trace", folder, rank);
}

/* How wrong the clock of a rank is against the reference's, at the end. */
static int64_t clock_error(const struct synth *s, const struct job *job, int32_t rank)
{
	const int64_t when = (int64_t)s->calls * 1000000;
	const int64_t right = synth_clock(s, job->reference, when);

	return llabs(job_time(job, rank, synth_clock(s, rank, when)) - right);
}

static void clocks_right(const struct synth *s, const struct job *job)
{
	int64_t worst = 0;
	double width = 0;
	int32_t known = 0;

	for (int32_t r = 0; r < s->size; r++) {
		const int64_t error = clock_error(s, job, r);

		if (!job->seat[r].there)
			continue;
		known += job->seat[r].clocked;
		width = job->seat[r].clock.width > width ? job->seat[r].clock.width
							 : width;
		worst = error > worst ? error : worst;
	}
	tap_ok(known == job->present && (double)worst <= width,
	       "  %" PRId32 " clocks, wrong by at most %" PRId64 " ns (width %.0f)",
	       known, worst, width);
}

static void judge(const struct want *want)
{
	struct synth s = {.size = want->size,
			  .fault = want->fault,
			  .bad = want->bad,
			  .calls = 16,
			  .messages = 4,
			  .seed = seed,
			  .offset_max = 1000000000,
			  .drift_max = 5e-5};
	struct verdict *v = calloc(1, sizeof(*v));
	struct job job;
	char path[300];

	job_begin(&job, 1000000000);
	for (int32_t r = 0; v && r < s.size; r++) {
		path_of(r, path);
		if (!synth_write(&s, r, folder))
			tap_bail("%s: %s", path, strerror(errno));
		if (access(path, R_OK) == 0 && job_add(&job, path, 0) != WEFT_SUCCESS)
			tap_bail("%s", weft_error_detail());
	}
	if (!v)
		tap_bail("no memory");
	job_clocks(&job);
	if (!stuck_find(&job, v))
		pace_find(&job, v);
	if (!tap_ok(v->kind == want->kind && v->rank == want->bad && v->to == want->to,
		    "%s of %" PRId32 " ranks: %s, rank %" PRId32, synth_name[want->fault],
		    want->size, verdict_name(v->kind), v->rank)) {
		for (int i = 0; i < v->lines; i++)
			tap_diag("%s", v->line[i]);
	}
	clocks_right(&s, &job);
	job_end(&job);
	free(v);
	for (int32_t r = 0; r < s.size; r++) {
		path_of(r, path);
		unlink(path);
	}
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");

	seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	tap_diag("seed %" PRIu64 " (repeat with WEFT_SEED=%" PRIu64 ")", seed, seed);
	snprintf(folder, sizeof(folder), "%s/weft-analyze-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(folder))
		tap_bail("%s: %s", folder, strerror(errno));
	for (size_t i = 0; i < sizeof(want_table) / sizeof(want_table[0]); i++)
		judge(&want_table[i]);
	rmdir(folder);
	return tap_done();
}
