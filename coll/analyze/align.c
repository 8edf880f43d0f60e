/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * job_clocks(): a tree of pairs of ranks whose clocks are known to each other, from the
 * reference's outwards, the narrowest strips first where there is a choice.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/analyze/job.h"

/* With so many ranks events are read, and each pair is looked at. */
enum { CLOSE_RANKS = 64, MATCH_BITS = 16 };

/* ---- calls that nobody leaves before all have entered -------------------------------
 */

/* When a rank was in a call. */
static void match_calls(const struct job_seat *a, const struct job_seat *b,
			struct clock_pair *pair)
{
	for (int i = 0; i < a->samples; i++) {
		const struct job_sample *x = &a->sample[i];

		for (int k = 0; x->holds && k < b->samples; k++) {
			const struct job_sample *y = &b->sample[k];

			if (y->group != x->group || y->call != x->call)
				continue;
			clock_pair_forth(pair, x->start, y->end);
			clock_pair_back(pair, x->end, y->start);
		}
	}
}

/* ---- messages ---------------------------------------------------------------------- */

/* Something that one rank gave to another, or got. */
struct mark {
	uint32_t comm, call;
	int32_t from, to;
	uint16_t pair;
	bool there;
	int64_t when;
};

/* Of all messages those whose names fall on a place of their own. */
struct marks {
	struct mark gave[1 << MATCH_BITS], got[1 << MATCH_BITS];
};

static uint32_t mark_place(const struct mark *m)
{
	uint64_t x = (uint64_t)m->comm << 40 ^ (uint64_t)m->call << 8 ^ m->pair;

	x = (x ^ (uint64_t)(uint32_t)m->from << 20 ^ (uint64_t)(uint32_t)m->to << 32) *
	    UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(x >> (64 - MATCH_BITS));
}

static void mark_events(const struct trace_dump *d, struct marks *marks)
{
	for (uint64_t i = 0; i < d->head.count; i++) {
		const struct trace_event *e = &d->event[i];
		const bool gave = e->kind == TRACE_SEND || e->kind == TRACE_PUT;
		const bool got = e->kind == TRACE_STEP && e->what == 1;
		struct mark m = {.comm = e->comm,
				 .call = e->call,
				 .from = gave ? d->head.rank : e->peer,
				 .to = gave ? e->peer : d->head.rank,
				 .pair = e->pair,
				 .there = true};
		struct mark *at;

		if (!gave && !got)
			continue;
		m.when = trace_when(&d->head, e->ticks);
		at = gave ? &marks->gave[mark_place(&m)] : &marks->got[mark_place(&m)];
		/* Of a put of many pieces the last one counts. */
		*at = m;
	}
}

static bool same_mark(const struct mark *a, const struct mark *b)
{
	return a->there && b->there && a->comm == b->comm && a->call == b->call &&
	       a->from == b->from && a->to == b->to && a->pair == b->pair;
}

static struct marks *read_marks(const struct job *job)
{
	struct marks *marks = calloc(1, sizeof(*marks));

	for (int32_t r = 0; marks && r < job->size; r++) {
		struct trace_dump d;

		if (!job->seat[r].there ||
		    trace_load(job_path(job, r), &d) != WEFT_SUCCESS)
			continue;
		mark_events(&d, marks);
		trace_free(&d);
	}
	return marks;
}

/* ---- the tree ---------------------------------------------------------------------- */

/* What each pair of a few ranks knows, [a * size + b], a < b. */
static void match_messages(const struct marks *marks, int32_t size,
			   struct clock_pair *pairs)
{
	for (uint32_t i = 0; marks && i < 1u << MATCH_BITS; i++) {
		const struct mark *gave = &marks->gave[i], *got = &marks->got[i];
		struct clock_pair *pair;

		if (!same_mark(gave, got) || gave->from < 0 || gave->to < 0 ||
		    gave->from >= size || gave->to >= size)
			continue;
		if (gave->from < gave->to) {
			pair = &pairs[gave->from * size + gave->to];
			clock_pair_forth(pair, gave->when, got->when);
		} else {
			pair = &pairs[gave->to * size + gave->from];
			clock_pair_back(pair, got->when, gave->when);
		}
	}
}

static void pair_begin(const struct job *job, int32_t a, int32_t b,
		       struct clock_pair *pair)
{
	clock_pair_begin(pair, job->seat[a].opened, job->seat[a].real);
	match_calls(&job->seat[a], &job->seat[b], pair);
}

/* The line of C by A's clock, B's being known. */
static struct clock_line join(const struct clock_line *ab, const struct clock_line *bc)
{
	const int64_t b = clock_to(ab, ab->at);

	return (struct clock_line){
		.at = ab->at,
		.offset = clock_to(bc, b) - ab->at,
		.drift = (1 + ab->drift) * (1 + bc->drift) - 1,
		.width = ab->width + bc->width,
	};
}

/* The same line, of A's clock by B's. */
static struct clock_line turn(const struct clock_line *line)
{
	const int64_t at = clock_to(line, line->at);

	return (struct clock_line){.at = at,
				   .offset = line->at - at,
				   .drift = 1 / (1 + line->drift) - 1,
				   .width = line->width};
}

static bool line_between(const struct job *job, const struct clock_pair *pairs, int32_t a,
			 int32_t b, struct clock_line *line)
{
	const int32_t low = a < b ? a : b, high = a < b ? b : a;

	if (!clock_pair_solve(&pairs[low * job->size + high], line))
		return false;
	if (a > b)
		*line = turn(line);
	return true;
}

/* Prim's tree: of all that touch it the narrowest strip next. */
static void grow_tree(struct job *job, const struct clock_pair *pairs)
{
	for (;;) {
		struct clock_line best = {.width = 0}, line;
		int32_t next = -1;

		for (int32_t i = 0; i < job->size * job->size; i++) {
			const int32_t a = i / job->size, b = i % job->size;

			if (!job->seat[a].clocked || !job->seat[b].there ||
			    job->seat[b].clocked ||
			    !line_between(job, pairs, a, b, &line))
				continue;
			line = join(&job->seat[a].clock, &line);
			if (next >= 0 && line.width >= best.width)
				continue;
			best = line;
			next = b;
		}
		if (next < 0)
			return;
		job->seat[next].clock = best;
		job->seat[next].clocked = true;
	}
}

static void clocks_close(struct job *job)
{
	const size_t size = (size_t)job->size;
	struct clock_pair *pairs = calloc(size * size, sizeof(*pairs));
	struct marks *marks = pairs ? read_marks(job) : NULL;

	for (int32_t i = 0; pairs && i < job->size * job->size; i++) {
		const int32_t a = i / job->size, b = i % job->size;

		if (a < b && job->seat[a].there && job->seat[b].there)
			pair_begin(job, a, b, &pairs[i]);
	}
	if (pairs) {
		match_messages(marks, job->size, pairs);
		grow_tree(job, pairs);
	}
	free(marks);
	free(pairs);
}

/* Each against the reference alone. */
static void clocks_far(struct job *job)
{
	struct clock_pair pair;

	for (int32_t r = 0; r < job->size; r++) {
		struct job_seat *seat = &job->seat[r];

		if (!seat->there || seat->clocked)
			continue;
		pair_begin(job, job->reference, r, &pair);
		seat->clocked = clock_pair_solve(&pair, &seat->clock);
	}
}

void job_clocks(struct job *job)
{
	for (int32_t r = 0; r < job->size && job->reference < 0; r++) {
		if (job->seat[r].there)
			job->reference = r;
	}
	if (job->reference < 0)
		return;
	job->seat[job->reference].clock =
		(struct clock_line){.at = job->seat[job->reference].opened};
	job->seat[job->reference].clocked = true;
	if (job->size > CLOSE_RANKS)
		clocks_far(job);
	else
		clocks_close(job);
}
