/* SPDX-License-Identifier: BSD-2-Clause */
/* See engine.h: plans in, the order of events, and what came of it. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/engine_in.h"

/* Moments that differ by no more are the same. */
#define SLACK 1e-12

/* Events between two looks at how far it is. */
#define PROGRESS_EVERY 65536

/* ---- events --------------------------------------------------------------------------
 */

void engine_event(struct engine *e, double at, enum event_kind kind, uint32_t who,
		  uint64_t what)
{
	uint32_t i = e->events;

	if (e->events == e->event_room) {
		const uint32_t room = e->event_room ? e->event_room * 2 : 4096;
		struct event *more = realloc(e->event, room * sizeof(*more));

		if (!more) {
			e->failed = true;
			return;
		}
		e->event = more;
		e->event_room = room;
	}
	e->events++;
	/* Those before it are older: only what is later goes behind. */
	while (i > 0 && e->event[(i - 1) / 2].at > at) {
		e->event[i] = e->event[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	e->event[i] = (struct event){.at = at,
				     .order = e->event_order++ << EVENT_KIND_BITS |
					      (uint64_t)kind,
				     .what = what,
				     .who = who};
}

static bool event_before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static struct event event_take(struct engine *e)
{
	const struct event first = e->event[0], last = e->event[--e->events];
	uint32_t i = 0, below;

	while ((below = 2 * i + 1) < e->events) {
		if (below + 1 < e->events &&
		    event_before(&e->event[below + 1], &e->event[below]))
			below++;
		if (event_before(&last, &e->event[below]))
			break;
		e->event[i] = e->event[below];
		i = below;
	}
	e->event[i] = last;
	return first;
}

void engine_todo(struct engine *e, uint32_t actor, uint64_t number)
{
	if (e->todos == e->todo_room) {
		const uint32_t room = e->todo_room ? e->todo_room * 2 : 4096;
		struct todo *more = realloc(e->todo, room * sizeof(*more));

		if (!more) {
			e->failed = true;
			return;
		}
		e->todo = more;
		e->todo_room = room;
	}
	e->todo[e->todos++] = (struct todo){actor, number};
}

/* In the order in which it became possible. */
static void todo_all(struct engine *e)
{
	for (uint32_t i = 0; i < e->todos && !e->failed; i++)
		actor_start(e, e->todo[i].actor, e->todo[i].number);
	e->todos = 0;
}

static void event_do(struct engine *e, const struct event *ev)
{
	switch ((enum event_kind)(ev->order & ((1u << EVENT_KIND_BITS) - 1))) {
	case EVENT_BEGIN:
		actor_begin(e, ev->who);
		break;
	case EVENT_ARRIVE:
		track_arrived(e, ev->who, (uint32_t)ev->what);
		break;
	case EVENT_READY:
		track_ready(e, ev->who, (uint32_t)ev->what);
		break;
	case EVENT_ISSUE:
		track_send(e, ev->who, ev->what);
		break;
	case EVENT_WORK:
		actor_done(e, ev->who, ev->what);
		break;
	}
	e->result->events++;
}

/* All that happens at this moment, and what comes of it without time passing. */
static void moment(struct engine *e)
{
	const double until = e->now + e->now * SLACK;
	bool more = true;
	uint64_t tag;

	while (more && !e->failed) {
		more = false;
		while (e->events && e->event[0].at <= until) {
			const struct event ev = event_take(e);

			event_do(e, &ev);
			todo_all(e);
			more = true;
		}
		while (share_end(e->share, e->now, &tag)) {
			e->result->events++;
			track_flown(e, (uint32_t)tag);
			todo_all(e);
			more = true;
		}
	}
}

static int moments(struct engine *e)
{
	uint64_t told = 0;

	while (e->left) {
		const double flows = share_next(e->share);
		const double events = e->events ? e->event[0].at : INFINITY;
		const double next = flows < events ? flows : events;

		if (isinf(next))
			return -EDEADLK;
		e->now = next > e->now ? next : e->now;
		moment(e);
		if (e->failed || !share_settle(e->share, e->now))
			return -ENOMEM;
		if (e->o->progress && e->result->events - told >= PROGRESS_EVERY) {
			told = e->result->events;
			e->o->progress(e->o->progress_arg, e->done, e->all, e->now);
		}
	}
	return 0;
}

/* ---- plans in ------------------------------------------------------------------------
 */

static uint32_t window_slots(uint64_t instances)
{
	uint32_t slots = 1;

	while (slots < ENGINE_WINDOW && slots < instances)
		slots *= 2;
	return slots;
}

static bool actor_fill(struct engine *e, struct actor *a, struct plan *plan)
{
	const struct sim_job *job = &e->job[a->job];
	const struct shape *s;
	uint32_t slots;

	a->shape = shape_add(&e->shapes, plan, job->call.elem_size);
	if (a->shape == UINT32_MAX)
		return false;
	s = e->shapes.shape[a->shape];
	slots = window_slots(s->instances);
	a->mask = slots - 1;
	a->peer = malloc((s->steps + 1) * sizeof(*a->peer));
	a->slot = malloc(slots * sizeof(*a->slot));
	if (!a->peer || !a->slot)
		return false;
	for (uint32_t i = 0; i < s->steps; i++)
		a->peer[i] = plan->step[i].peer;
	e->all += s->instances;
	return true;
}

static int job_ranks(struct engine *e, uint32_t j, char *why, size_t why_len)
{
	const struct sim_job *job = &e->job[j];

	for (int32_t r = 0; r < job->call.size; r++) {
		const uint32_t at = e->job_first[j] + (uint32_t)r;
		struct actor *a = &e->actor[at];
		struct plan_call call = job->call;
		struct plan *plan = NULL;
		const char *fault = "no memory";
		double late;
		int rc;

		call.rank = r;
		rc = job->algo->build(&call, &plan, &fault);
		if (rc) {
			snprintf(why, why_len, "%s/%s: rank %d: %s", job->algo->coll,
				 job->algo->name, r, rc == -ENOMEM ? "no memory" : fault);
			return rc;
		}
		a->job = j;
		a->rank = job->at ? job->at[r] : r;
		if (!actor_fill(e, a, plan)) {
			plan_free(plan);
			return -ENOMEM;
		}
		if (e->shapes.shape[a->shape]->varies)
			a->plan = plan;
		else
			plan_free(plan);
		late = e->o->delay ? e->o->delay[a->rank] : 0;
		engine_event(e, job->begin + late, EVENT_BEGIN, at, 0);
	}
	return e->failed ? -ENOMEM : 0;
}

static int jobs_check(const struct sim_net *net, const struct sim_job *job, unsigned jobs,
		      char *why, size_t why_len)
{
	for (unsigned j = 0; j < jobs; j++) {
		const struct plan_call *c = &job[j].call;

		if (c->size > net->ranks) {
			snprintf(why, why_len, "%d ranks, but the network has %d",
				 c->size, net->ranks);
			return -EINVAL;
		}
		if (job[j].algo->vector) {
			snprintf(why, why_len,
				 "%s/%s: lengths that differ by rank are "
				 "not simulated",
				 job[j].algo->coll, job[j].algo->name);
			return -EINVAL;
		}
		if (!job[j].algo->supports(c)) {
			snprintf(why, why_len, "%s/%s does not do %d ranks",
				 job[j].algo->coll, job[j].algo->name, c->size);
			return -EINVAL;
		}
	}
	return 0;
}

static int engine_open(struct engine *e, unsigned jobs, char *why, size_t why_len)
{
	const size_t ports = (size_t)e->net->ranks * SIM_PORTS;
	int rc = 0;

	e->note_free = e->carry_free = SHARE_NONE;
	e->job_first = calloc(jobs + 1, sizeof(*e->job_first));
	e->job_left = calloc(jobs + 1, sizeof(*e->job_left));
	if (!e->job_first || !e->job_left)
		return -ENOMEM;
	for (unsigned j = 0; j < jobs; j++) {
		e->job_first[j] = e->actors;
		e->job_left[j] = (uint32_t)e->job[j].call.size;
		e->actors += (uint32_t)e->job[j].call.size;
	}
	e->left = e->actors;
	e->actor = calloc(e->actors, sizeof(*e->actor));
	e->link_bytes = calloc((size_t)e->net->links + 1, sizeof(*e->link_bytes));
	e->port_bytes = calloc(ports + 1, sizeof(*e->port_bytes));
	e->share = share_open(e->net->links, (uint32_t)ports, e->net->capacity);
	if (!e->actor || !e->link_bytes || !e->port_bytes || !e->share)
		return -ENOMEM;
	for (unsigned j = 0; !rc && j < jobs; j++)
		rc = job_ranks(e, j, why, why_len);
	return rc;
}

static void engine_close(struct engine *e)
{
	for (uint32_t i = 0; e->actor && i < e->actors; i++) {
		plan_free(e->actor[i].plan);
		free(e->actor[i].peer);
		free(e->actor[i].slot);
	}
	shapes_free(&e->shapes);
	share_close(e->share);
	free(e->actor);
	free(e->job_first);
	free(e->job_left);
	free(e->link_bytes);
	free(e->port_bytes);
	free(e->event);
	free(e->track);
	free(e->track_hash);
	free(e->note);
	free(e->carried);
	free(e->todo);
}

static void result_set(struct engine *e)
{
	struct sim_result *r = e->result;
	const double *capacity = e->net->capacity;

	r->share = share_cost(e->share);
	r->shapes = e->shapes.count;
	r->link = SHARE_NONE;
	if (r->first < 0)
		r->first = 0;
	if (r->time <= 0)
		return;
	for (uint32_t l = 0; l < e->net->links; l++) {
		const double part =
			capacity[l] > 0 ? e->link_bytes[l] / capacity[l] / r->time : 0;

		if (part > r->busiest) {
			r->busiest = part;
			r->link = l;
		}
	}
	for (uint32_t p = 0; p < (uint32_t)e->net->ranks * SIM_PORTS; p++) {
		const double part =
			e->port_bytes[p] / capacity[e->net->links + p] / r->time;

		if (part > r->port)
			r->port = part;
	}
}

int sim_run(const struct sim_net *net, const struct sim_job *job, unsigned jobs,
	    const struct sim_options *options, struct sim_result *result, double *job_end,
	    char *why, size_t why_len)
{
	struct engine e = {.net = net,
			   .job = job,
			   .o = options,
			   .job_end = job_end,
			   .result = result};
	int rc = jobs_check(net, job, jobs, why, why_len);

	*result = (struct sim_result){.first = -1};
	if (rc)
		return rc;
	snprintf(why, why_len, "no memory");
	rc = engine_open(&e, jobs, why, why_len);
	if (!rc)
		rc = moments(&e);
	if (rc == -EDEADLK)
		snprintf(why, why_len,
			 "it does not end: %u ranks wait, and nothing is under way",
			 e.left);
	if (!rc) {
		result_set(&e);
		why[0] = '\0';
	}
	engine_close(&e);
	return rc;
}
