/* SPDX-License-Identifier: BSD-2-Clause */
/* See stuck.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/analyze/link.h"
#include "coll/analyze/stuck.h"
#include "coll/exec/sig.h"

/* How sure a cause is; of two alike the one that stopped first counts. */
enum { SURE_LINK = 1, SURE_OUTSIDE, SURE_SAID, SURE_PROVED };

/* A group that stands still. */
struct view {
	bool stuck;
	uint32_t call; /* the first that is not over */
	int32_t active, past, absent, missing;
	int64_t start;	 /* when the first member entered it, by the reference's clock */
	int32_t enterer; /* who that was */
	int64_t to;	 /* another group that one of the absent is in, -1 */
	int32_t via;	 /* which of them */
	int8_t on_path;
};

struct search {
	const struct job *job;
	struct view *view; /* by group */
	int sure;	   /* of the best so far */
	int64_t start;
	struct verdict *v;
};

static struct sig_call call_sig(const struct trace_call *c)
{
	return (struct sig_call){.count = c->count,
				 .root = c->root,
				 .coll = c->coll,
				 .type = c->type,
				 .op = c->op,
				 .algorithm = c->algorithm};
}

static void call_text(const struct trace_call *c, char text[128])
{
	const struct sig_call sig = call_sig(c);

	sig_call_print(&sig, true, text, 128);
}

static bool is_active(const struct job_part *p, uint32_t call)
{
	return p->open && p->first == call;
}

/* ---- how a group stands ------------------------------------------------------------ */

static void view_call(const struct job *job, const struct job_group *g, struct view *w)
{
	w->call = UINT32_MAX;
	for (int64_t i = g->parts; i >= 0; i = job->part[i].next) {
		const struct job_part *p = &job->part[i];

		w->stuck |= p->open && p->stuck;
		if (p->open && p->first < w->call)
			w->call = p->first;
	}
}

static void view_members(const struct job *job, const struct job_group *g, struct view *w)
{
	for (int64_t i = g->parts; i >= 0; i = job->part[i].next) {
		const struct job_part *p = &job->part[i];
		const int64_t start = p->open ? job_time(job, p->rank, p->start) : 0;

		if (!is_active(p, w->call)) {
			w->past += p->first > w->call;
			w->absent += p->first <= w->call;
			continue;
		}
		if (!w->active++ || start < w->start) {
			w->start = start;
			w->enterer = p->rank;
		}
	}
	w->missing = g->size - g->present;
}

/* ---- causes ------------------------------------------------------------------------ */

/* Whether this cause is to be taken over the best so far; then the verdict is its. */
static bool better(struct search *s, int sure, int64_t group, enum verdict_kind kind,
		   int32_t rank)
{
	const struct view *w = &s->view[group];
	const struct job_group *g = &s->job->group[group];
	const struct job_part *p = job_part(s->job, w->enterer, (uint32_t)group);

	if (sure < s->sure || (sure == s->sure && w->start >= s->start))
		return false;
	s->sure = sure;
	s->start = w->start;
	*s->v = (struct verdict){.kind = kind,
				 .rank = rank,
				 .to = -1,
				 .stopped = true,
				 .comm = g->number,
				 .call = w->call,
				 .first = g->first};
	if (p)
		call_text(&p->call, s->v->what);
	verdict_say(s->v,
		    "communicator %u (%" PRId32 " ranks from rank %" PRId32
		    "): call %u, %s: %" PRId32 " in it, %" PRId32 " past it, %" PRId32
		    " not come to it, %" PRId32 " without a dump",
		    g->number, g->size, g->first, w->call, s->v->what, w->active, w->past,
		    w->absent, w->missing);
	return true;
}

/* Says how somebody who waits sees it. */
static void say_waiter(struct search *s, int64_t group)
{
	const struct job *job = s->job;
	const struct job_part *p = job_part(job, s->view[group].enterer, (uint32_t)group);
	char who[128];

	if (p)
		verdict_say(s->v,
			    "%s entered it first, %.3f s before its dump; "
			    "%" PRIu32 " of %" PRIu32
			    " steps done, the last %.3f s before%s%s",
			    job_who(job, p->rank, who),
			    (double)(job->seat[p->rank].real - p->start) * 1e-9,
			    p->call.steps, p->call.all,
			    (double)(job->seat[p->rank].real - p->moved) * 1e-9,
			    p->call.state == TRACE_CALL_FAILED ? "; it failed: " : "",
			    p->call.state == TRACE_CALL_FAILED
				    ? weft_strerror((enum weft_result)p->call.result)
				    : "");
}

/* Ranks that say of a rank that it cannot be reached: how many, and one of them. */
static int32_t who_lost(const struct job *job, int32_t rank, int32_t *one)
{
	int32_t count = 0;

	for (int32_t r = 0; r < job->size; r++) {
		const struct job_seat *seat = &job->seat[r];
		const struct job_end *end = job_link(job, r, rank);

		if (!seat->there ||
		    !((seat->result == WEFT_ERR_PEER && seat->culprit == rank) ||
		      (end && end->lost)))
			continue;
		*one = r;
		count++;
	}
	return count;
}

static void cause_missing(struct search *s, int64_t group, int32_t rank)
{
	int32_t one = -1, lost = who_lost(s->job, rank, &one);
	char who[128];

	if (!better(s, lost ? SURE_PROVED : SURE_SAID, group, VERDICT_DEAD, rank))
		return;
	verdict_say(s->v, "rank %" PRId32 " gave no dump", rank);
	if (lost)
		verdict_say(s->v,
			    "%" PRId32 " ranks say that it cannot be reached, among them "
			    "%s",
			    lost, job_who(s->job, one, who));
	else
		verdict_say(s->v, "nobody says that it cannot be reached: it may be "
				  "stopped, or its dump be missing");
	say_waiter(s, group);
}

/* Where a rank is that is not where it should be. */
static void say_where(struct search *s, int32_t rank)
{
	const struct job_seat *seat = &s->job->seat[rank];
	char who[128];

	job_who(s->job, rank, who);
	if (seat->state == 'T' || seat->state == 't')
		verdict_say(s->v, "%s is stopped%s", who,
			    seat->state == 't' ? " by a debugger" : "");
	if (seat->samples) {
		const struct job_sample *last = &seat->sample[seat->samples - 1];

		verdict_say(s->v,
			    "%s ended its last call, %u of communicator %u, %.3f s "
			    "before its dump",
			    who, last->call, s->job->group[last->group].number,
			    (double)(seat->real - last->end) * 1e-9);
	}
	verdict_say(s->v, "%s last looked for what others do %.3f s before its dump", who,
		    (double)seat->looked * 1e-9);
}

static void cause_outside(struct search *s, int64_t group, int32_t rank)
{
	const struct view *w = &s->view[group];
	const struct job_part *p = job_part(s->job, rank, (uint32_t)group);
	char who[128];

	if (!better(s, SURE_OUTSIDE, group, VERDICT_OUTSIDE, rank))
		return;
	if (p && !is_active(p, w->call))
		verdict_say(s->v,
			    "%s has not called it: its next call there is %u, and it is "
			    "in no other",
			    job_who(s->job, rank, who), p->first);
	else if (p)
		verdict_say(s->v, "%s has called it and not gone on with it",
			    job_who(s->job, rank, who));
	say_where(s, rank);
	say_waiter(s, group);
}

static void cause_crash(struct search *s, int64_t group, int32_t rank)
{
	char who[128];

	if (better(s, SURE_PROVED, group, VERDICT_DEAD, rank))
		verdict_say(s->v, "%s crashed: signal %u", job_who(s->job, rank, who),
			    s->job->seat[rank].signal);
}

/* ---- disagreement ------------------------------------------------------------------ */

static bool same_call(const struct trace_call *a, const struct trace_call *b)
{
	const struct sig_call x = call_sig(a), y = call_sig(b);

	return sig_call_same(&x, &y);
}

/* The call that most of the active ones mean (Boyer and Moore's vote). */
static const struct job_part *most_mean(const struct job *job, const struct job_group *g,
					uint32_t call)
{
	const struct job_part *best = NULL;
	int64_t lead = 0;

	for (int64_t i = g->parts; i >= 0; i = job->part[i].next) {
		const struct job_part *p = &job->part[i];

		if (!is_active(p, call))
			continue;
		if (lead == 0)
			best = p;
		lead += same_call(&best->call, &p->call) ? 1 : -1;
	}
	return best;
}

/* False: they all mean the same. */
static bool cause_mismatch(struct search *s, int64_t group)
{
	const struct job *job = s->job;
	const struct job_group *g = &job->group[group];
	const struct job_part *most = most_mean(job, g, s->view[group].call), *odd = NULL;
	char who[128], text[128];
	int64_t others = 0;

	for (int64_t i = g->parts; most && i >= 0; i = job->part[i].next) {
		const struct job_part *p = &job->part[i];

		if (!is_active(p, s->view[group].call) ||
		    same_call(&p->call, &most->call))
			continue;
		others++;
		if (!odd || p->rank < odd->rank)
			odd = p;
	}
	if (!odd)
		return false;
	if (!better(s, SURE_PROVED, group, VERDICT_MISMATCH, odd->rank))
		return true;
	call_text(&most->call, s->v->what);
	verdict_say(s->v, "%s and others call %s", job_who(job, most->rank, who),
		    s->v->what);
	call_text(&odd->call, text);
	verdict_say(s->v, "%s calls %s%s", job_who(job, odd->rank, who), text,
		    others > 1 ? ", and more ranks call something else" : "");
	return true;
}

/* ---- who is missing ---------------------------------------------------------------- */

/* The group of another call that a rank stands still in; -1: none. *in_pair: it waits
 * for a message of a rank. */
static int64_t busy_with(const struct job *job, int32_t rank, uint32_t not_group,
			 const struct job_pair **in_pair)
{
	const struct job_seat *seat = &job->seat[rank];
	int64_t best = -1;

	*in_pair = NULL;
	for (int64_t i = seat->part; i < seat->part + seat->parts; i++) {
		const struct job_part *p = &job->part[i];

		if (p->group != not_group && p->open && p->stuck &&
		    (best < 0 || p->start < job->part[best].start))
			best = i;
	}
	for (int i = 0; best < 0 && i < seat->pairs && !*in_pair; i++) {
		if (seat->pair[i].stuck)
			*in_pair = &seat->pair[i];
	}
	return best < 0 ? -1 : (int64_t)job->part[best].group;
}

/* A rank that waits for a message: who ends the chain of those that do? */
static int32_t follow_pairs(const struct job *job, int32_t rank, bool *circle)
{
	const struct job_pair *pair = NULL;
	int32_t left = job->size;

	*circle = false;
	for (;;) {
		if (!job->seat[rank].there ||
		    busy_with(job, rank, UINT32_MAX, &pair) >= 0 || !pair)
			return rank;
		rank = pair->peer;
		if (left-- == 0) {
			*circle = true;
			return rank;
		}
	}
}

static void cause_absent(struct search *s, int64_t group, int32_t rank)
{
	struct view *w = &s->view[group];
	const struct job_pair *pair;
	const int64_t to = busy_with(s->job, rank, (uint32_t)group, &pair);
	int32_t end = rank;
	bool circle = false;

	if (to >= 0) {
		if (w->to < 0) {
			w->to = to;
			w->via = rank;
		}
		return;
	}
	if (pair)
		end = follow_pairs(s->job, rank, &circle);
	if (!s->job->seat[end].there)
		cause_missing(s, group, end);
	else if (end == rank || !circle)
		cause_outside(s, group, end);
	if (end != rank && s->v->rank == end)
		verdict_say(s->v, "rank %" PRId32 " waits for a message with it", rank);
}

static void look_missing(struct search *s, int64_t group)
{
	const struct job_group *g = &s->job->group[group];

	for (int32_t r = 0; r < s->job->size; r++) {
		if (!s->job->seat[r].there && (g->runs == 0 || job_group_has(g, r))) {
			cause_missing(s, group, r);
			return;
		}
	}
}

static void look_absent(struct search *s, int64_t group)
{
	const struct job *job = s->job;

	for (int64_t i = job->group[group].parts; i >= 0; i = job->part[i].next) {
		const struct job_part *p = &job->part[i];

		if (p->first <= s->view[group].call && !is_active(p, s->view[group].call))
			cause_absent(s, group, p->rank);
	}
}

/* ---- all are in it ----------------------------------------------------------------- */

/* One that is stopped, or has not looked for long while most others did; -1. */
static int32_t find_asleep(const struct job *job, const struct job_group *g,
			   uint32_t call)
{
	int32_t asleep = -1, awake = 0;

	for (int64_t i = g->parts; i >= 0; i = job->part[i].next) {
		const struct job_part *p = &job->part[i];
		const struct job_seat *seat = &job->seat[p->rank];

		if (!is_active(p, call))
			continue;
		if (seat->state == 'T' || seat->state == 't')
			return p->rank;
		if (seat->looked < job->stuck_ns / 2)
			awake++;
		else if (asleep < 0 || seat->looked > job->seat[asleep].looked)
			asleep = p->rank;
	}
	return awake * 2 > g->present ? asleep : -1;
}

static void look_active(struct search *s, int64_t group)
{
	const struct job *job = s->job;
	const struct job_group *g = &job->group[group];
	const int32_t asleep = find_asleep(job, g, s->view[group].call);
	struct link_cause cause;

	if (asleep >= 0) {
		cause_outside(s, group, asleep);
		return;
	}
	if (link_find(job, group, s->view[group].call, &cause)) {
		if (!better(s, SURE_LINK, group, VERDICT_LINK, cause.from))
			return;
		s->v->to = cause.to;
		link_say(job, &cause, s->v);
		say_waiter(s, group);
		return;
	}
	if (better(s, 0, group, VERDICT_UNKNOWN, -1)) {
		verdict_say(s->v,
			    "all have entered it, and no link is short of anything");
		say_waiter(s, group);
	}
}

/* ---- circles ----------------------------------------------------------------------- */

static void say_edge(struct search *s, int64_t group)
{
	const struct view *w = &s->view[group], *to = &s->view[w->to];
	char who[128];

	verdict_say(s->v,
		    "communicator %u, call %u, waits for %s, which is in call %u of "
		    "communicator %u",
		    s->job->group[group].number, w->call, job_who(s->job, w->via, who),
		    to->call, s->job->group[w->to].number);
}

/* Of the groups in the circle the one that the fewest entered: they went another way. */
static void cause_circle(struct search *s, int64_t group)
{
	int64_t least = group, before = group;

	for (int64_t g = s->view[group].to, from = group;; from = g, g = s->view[g].to) {
		if (s->view[g].active < s->view[least].active || least == g) {
			least = g;
			before = from;
		}
		if (g == group)
			break;
	}
	if (!better(s, SURE_SAID, least, VERDICT_ORDER, s->view[before].via))
		return;
	say_edge(s, least);
	for (int64_t g = s->view[least].to; g != least; g = s->view[g].to)
		say_edge(s, g);
}

static void find_circles(struct search *s)
{
	for (int64_t i = 0; i < s->job->groups; i++) {
		int64_t g = i;

		if (!s->view[i].stuck || s->view[i].on_path)
			continue;
		for (; g >= 0 && !s->view[g].on_path; g = s->view[g].to)
			s->view[g].on_path = 1;
		if (g >= 0 && s->view[g].on_path == 1)
			cause_circle(s, g);
		for (g = i; g >= 0 && s->view[g].on_path == 1; g = s->view[g].to)
			s->view[g].on_path = 2;
	}
}

/* ---- all of it --------------------------------------------------------------------- */

static void look_group(struct search *s, int64_t group)
{
	const struct view *w = &s->view[group];

	for (int64_t i = s->job->group[group].parts; i >= 0; i = s->job->part[i].next) {
		const int32_t rank = s->job->part[i].rank;

		if (s->job->seat[rank].reason == TRACE_CRASHED)
			cause_crash(s, group, rank);
	}
	if (cause_mismatch(s, group))
		return;
	if (w->missing > 0)
		look_missing(s, group);
	if (w->absent > 0)
		look_absent(s, group);
	if (!w->missing && !w->absent)
		look_active(s, group);
}

bool stuck_find(const struct job *job, struct verdict *v)
{
	struct search s = {.job = job, .v = v, .sure = -1};
	bool stuck = false;

	*v = (struct verdict){.kind = VERDICT_NONE, .rank = -1, .to = -1};
	s.view = calloc((size_t)job->groups + 1, sizeof(*s.view));
	if (!s.view) {
		v->kind = VERDICT_UNKNOWN;
		verdict_say(v, "no memory for %" PRId64 " communicators", job->groups);
		return true;
	}
	for (int64_t i = 0; i < job->groups; i++) {
		s.view[i].to = -1;
		view_call(job, &job->group[i], &s.view[i]);
		if (s.view[i].stuck)
			view_members(job, &job->group[i], &s.view[i]);
		stuck |= s.view[i].stuck;
	}
	for (int64_t i = 0; i < job->groups; i++) {
		if (s.view[i].stuck)
			look_group(&s, i);
	}
	find_circles(&s);
	if (stuck && s.sure < 0) {
		v->kind = VERDICT_UNKNOWN;
		verdict_say(v, "calls stand still that wait for one another");
	}
	free(s.view);
	return stuck;
}
