/* SPDX-License-Identifier: BSD-2-Clause */
/* See pace.h. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/analyze/pace.h"

/* Links that have carried less say nothing. */
enum { LINK_BYTES = 1 << 16 };

/* What a rank takes longer than others must be this part of a call, and of the time
 * before it, to matter. */
#define COUNTS_PART 0.2

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value, int64_t count)
{
	qsort(value, (size_t)count, sizeof(*value), by_value);
	return value[count / 2];
}

/* ---- ranks ------------------------------------------------------------------------- */

/* Own times of all ranks in a call; those that do not have it any more are left out. */
static int64_t own_times(const struct job *job, uint32_t group, uint32_t call,
			 double *time)
{
	int64_t count = 0;

	for (int64_t i = job->group[group].parts; i >= 0; i = job->part[i].next) {
		const struct job_seat *seat = &job->seat[job->part[i].rank];

		for (int k = 0; k < seat->samples; k++) {
			if (seat->sample[k].group == group &&
			    seat->sample[k].call == call)
				time[count++] = (double)seat->sample[k].own;
		}
	}
	return count;
}

struct slow {
	int32_t run, at_end; /* samples in a row below the roofline, and up to the last */
	double worst;	     /* the best efficiency in that row */
};

/* Below the roofline, by so much that the call takes longer for it; *part: of it. */
static bool is_below(const struct job_sample *s, double roofline, double *part)
{
	const double more = (double)s->own - roofline;

	*part = s->own > 0 ? roofline / (double)s->own : 1;
	return *part < PACE_ROOFLINE &&
	       more > COUNTS_PART * (double)(s->end - s->start + s->gap);
}

/* One call of the group: who was below? */
static void sample_call(const struct job *job, uint32_t group, uint32_t call,
			double roofline, struct slow *slow)
{
	for (int64_t i = job->group[group].parts; i >= 0; i = job->part[i].next) {
		const int32_t rank = job->part[i].rank;
		const struct job_seat *seat = &job->seat[rank];

		for (int k = 0; k < seat->samples; k++) {
			const struct job_sample *s = &seat->sample[k];
			double part;

			if (s->group != group || s->call != call)
				continue;
			if (!is_below(s, roofline, &part)) {
				slow[rank].run = 0;
				slow[rank].worst = 0;
				continue;
			}
			slow[rank].run++;
			if (part > slow[rank].worst)
				slow[rank].worst = part;
		}
	}
}

/* A group's calls, of which the first member's are looked at. Fills slow[] of its ranks.
 */
static int sample_group(const struct job *job, uint32_t group, double *time,
			struct slow *slow)
{
	const struct job_group *g = &job->group[group];
	const struct job_seat *seat;
	int samples = 0;

	if (g->parts < 0 || g->present < 3)
		return 0;
	seat = &job->seat[job->part[g->parts].rank];
	for (int k = 0; k < seat->samples; k++) {
		const struct job_sample *s = &seat->sample[k];
		int64_t count;

		if (s->group != group || s->lines || !s->sent)
			continue;
		count = own_times(job, group, s->call, time);
		if (count < 3)
			continue;
		sample_call(job, group, s->call, median(time, count), slow);
		samples++;
	}
	return samples;
}

static void say_slow(const struct job *job, uint32_t group, int32_t rank,
		     const struct slow *slow, struct verdict *v)
{
	char who[128];

	v->kind = VERDICT_SLOW_RANK;
	v->rank = rank;
	v->comm = job->group[group].number;
	v->first = job->group[group].first;
	verdict_say(
		v,
		"%s was busy by itself for longer than the roofline (the median of all "
		"ranks) allows in its last %" PRId32
		" calls of communicator %u: at most %.0f %% of it",
		job_who(job, rank, who), slow->run, v->comm, 100 * slow->worst);
}

static bool slow_rank(const struct job *job, struct verdict *v)
{
	double *time = calloc((size_t)job->size + 1, sizeof(*time));
	struct slow *slow = calloc((size_t)job->size + 1, sizeof(*slow));
	int32_t best = -1;
	uint32_t where = 0;
	double worst = 1;

	for (uint32_t g = 0; time && slow && g < (uint32_t)job->groups; g++) {
		memset(slow, 0, (size_t)job->size * sizeof(*slow));
		if (sample_group(job, g, time, slow) < PACE_SAMPLES)
			continue;
		for (int32_t r = 0; r < job->size; r++) {
			if (slow[r].run < PACE_SAMPLES || slow[r].worst >= worst)
				continue;
			worst = slow[r].worst;
			best = r;
			where = g;
			v->lines = 0;
			say_slow(job, where, r, &slow[r], v);
		}
	}
	free(time);
	free(slow);
	return best >= 0;
}

/* ---- links ------------------------------------------------------------------------- */

/* Bytes per ns. */
static double rate(const struct job_end *end)
{
	return (double)end->bytes_out / (double)(end->busy > 0 ? end->busy : 1);
}

static bool is_used(const struct job_end *end)
{
	return end->bytes_out >= LINK_BYTES && end->busy > 0;
}

/* The peer that a rank sends to most slowly, of those below the limit; -1. */
static int32_t slowest_of(const struct job *job, int32_t rank, double limit,
			  double *worst)
{
	const struct job_seat *seat = &job->seat[rank];
	int32_t peer = -1;

	*worst = limit;
	for (int64_t i = seat->end; seat->there && i < seat->end + seat->ends; i++) {
		const struct job_end *end = &job->end[i];

		if (!is_used(end) || rate(end) >= *worst)
			continue;
		*worst = rate(end);
		peer = end->peer;
	}
	return peer;
}

static bool receives_slowly(const struct job *job, int32_t rank, double limit)
{
	for (int32_t r = 0; r < job->size; r++) {
		const struct job_end *end = job_link(job, r, rank);

		if (end && is_used(end) && rate(end) < limit)
			return true;
	}
	return false;
}

static bool slow_link(const struct job *job, struct verdict *v)
{
	double *all = calloc((size_t)job->ends + 1, sizeof(*all)), roofline, worst,
	       worst_on;
	char who[128], to[128];
	int64_t count = 0;
	int32_t on;

	for (int64_t i = 0; all && i < job->ends; i++) {
		if (is_used(&job->end[i]))
			all[count++] = rate(&job->end[i]);
	}
	roofline = count >= 3 ? median(all, count) : 0;
	free(all);
	worst = PACE_ROOFLINE * roofline;
	for (int32_t r = 0; r < job->size; r++) {
		const int32_t peer = slowest_of(job, r, worst, &worst_on);

		if (peer < 0)
			continue;
		worst = worst_on;
		v->kind = VERDICT_SLOW_LINK;
		v->rank = r;
		v->to = peer;
	}
	if (v->kind != VERDICT_SLOW_LINK)
		return false;
	/* Where it receives slowly and sends slowly, it is the one in the middle. */
	on = slowest_of(job, v->to, PACE_ROOFLINE * roofline, &worst_on);
	if (on >= 0 && slowest_of(job, v->rank, PACE_ROOFLINE * roofline, &worst) >= 0 &&
	    !receives_slowly(job, v->rank, PACE_ROOFLINE * roofline)) {
		v->rank = v->to;
		v->to = on;
		worst = worst_on;
	}
	verdict_say(v,
		    "%s sends to %s at %.3f GB/s while something is on its way; the "
		    "roofline, half of all links, is %.3f GB/s: %.0f %%",
		    job_who(job, v->rank, who), job_who(job, v->to, to), worst, roofline,
		    100 * worst / roofline);
	return true;
}

bool pace_find(const struct job *job, struct verdict *v)
{
	*v = (struct verdict){.kind = VERDICT_NONE, .rank = -1, .to = -1};
	return slow_rank(job, v) || slow_link(job, v);
}
