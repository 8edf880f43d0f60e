/* SPDX-License-Identifier: BSD-2-Clause */
/* A rank and its window: what may begin, and what that lets begin. */
#include "config.h"

#include "topo/sim/engine_in.h"

static const struct shape *shape_of(const struct engine *e, const struct actor *a)
{
	return e->shapes.shape[a->shape];
}

static int32_t peer_of(const struct engine *e, const struct actor *a,
		       const struct shape_step *s, uint32_t step, uint32_t trip)
{
	const int64_t size = e->job[a->job].call.size;
	int64_t peer = a->peer[step];

	if (s->peer_advance) {
		peer = (peer + (int64_t)s->peer_advance * trip) % size;
		if (peer < 0)
			peer += size;
	}
	return (int32_t)(peer + e->job_first[a->job]);
}

uint64_t actor_bytes(const struct engine *e, const struct actor *a, uint64_t number,
		     const struct slot *slot)
{
	const uint64_t bytes = shape_of(e, a)->step[slot->step].bytes;

	return bytes != SHAPE_VARIES
		       ? bytes
		       : shape_bytes(a->plan, number, e->job[a->job].call.elem_size);
}

/* Instance that trip `trip` of a step waits for by a dependency; false: none. */
static bool dep_number(const struct shape *s, const struct plan_dep *d, uint32_t trip,
		       uint64_t *number)
{
	const struct shape_step *on = &s->step[d->step];
	const int64_t t = d->trip0 + (int64_t)d->advance * trip;

	if (t < 0 || t >= on->trips)
		return false;
	*number = shape_number(on, (uint32_t)t);
	return true;
}

static bool is_done(const struct actor *a, uint64_t number)
{
	return number < a->head || actor_slot(a, number)->flags & SLOT_DONE;
}

/* Its turn within its track; and what has come before it was there. */
static void turn_take(struct engine *e, uint32_t actor, struct slot *slot)
{
	const bool sends = slot->kind == PLAN_SEND;
	const uint32_t at = sends ? track_of(e, (int32_t)actor, slot->peer)
				  : track_of(e, slot->peer, (int32_t)actor);
	struct track *p;

	if (at == SHARE_NONE)
		return;
	p = &e->track[at];
	slot->turn = sends ? p->sends++ : p->recvs++;
	if (track_take(e, sends ? &p->ready : &p->early, slot->turn))
		slot->flags |= SLOT_THERE;
}

static void window_add(struct engine *e, uint32_t actor)
{
	struct actor *a = &e->actor[actor];
	const struct shape *s = shape_of(e, a);
	const uint64_t number = a->next++;
	const uint32_t step = shape_step_of(s, number);
	const struct shape_step *st = &s->step[step];
	const uint32_t trip = shape_trip_of(st, number);
	struct slot *slot = actor_slot(a, number);
	unsigned waits = 0;

	*slot = (struct slot){.step = step, .kind = st->kind, .peer = -1};
	if (st->kind == PLAN_SEND || st->kind == PLAN_RECV) {
		slot->peer = peer_of(e, a, st, step, trip);
		turn_take(e, actor, slot);
	}
	for (uint32_t i = 0; i < st->deps; i++) {
		const struct plan_dep *d = &s->dep[st->dep + i];
		uint64_t on;
		const bool counts = dep_number(s, d, trip, &on);

		/* What proves READY is a dependency in these trips only. */
		if (counts && st->proof == st->dep + i)
			slot->flags |= SLOT_THERE;
		waits += counts && !is_done(a, on);
	}
	slot->waits = (uint16_t)waits;
	if (!waits)
		engine_todo(e, actor, number);
}

static void window_fill(struct engine *e, uint32_t actor)
{
	struct actor *a = &e->actor[actor];
	const uint64_t all = shape_of(e, a)->instances;

	while (a->next < all && a->next < a->head + ENGINE_WINDOW)
		window_add(e, actor);
	if (a->head < all)
		return;
	e->left--;
	if (e->result->first < 0)
		e->result->first = e->now;
	if (--e->job_left[a->job] == 0 && e->job_end)
		e->job_end[a->job] = e->now;
	e->result->time = e->now;
}

void actor_begin(struct engine *e, uint32_t actor)
{
	window_fill(e, actor);
}

static void slot_release(struct engine *e, uint32_t actor, uint64_t number)
{
	struct slot *slot = actor_slot(&e->actor[actor], number);

	if (--slot->waits == 0)
		engine_todo(e, actor, number);
}

/* One of those that may wait for trip `trip` of a step; those of its trips that do, as
 * far as the window has them. */
static void next_release(struct engine *e, uint32_t actor, const struct shape_next *n,
			 int64_t trip)
{
	const struct actor *a = &e->actor[actor];
	const struct shape_step *st = &shape_of(e, a)->step[n->step];
	int64_t from = 0, to = st->trips;

	if (n->advance) {
		const int64_t by = trip - n->trip0;

		if (by % n->advance)
			return;
		from = by / n->advance;
		to = from + 1 < to ? from + 1 : to;
	} else if (n->trip0 != trip) {
		return;
	} else if (a->head > st->base) {
		from = (int64_t)((a->head - st->base) / st->body);
	}
	for (int64_t t = from < 0 ? to : from; t < to; t++) {
		const uint64_t number = shape_number(st, (uint32_t)t);

		if (number >= a->next)
			break;
		if (number >= a->head)
			slot_release(e, actor, number);
	}
}

void actor_done(struct engine *e, uint32_t actor, uint64_t number)
{
	struct actor *a = &e->actor[actor];
	const struct shape *s = shape_of(e, a);
	struct slot *slot = actor_slot(a, number);
	const struct shape_step *st = &s->step[slot->step];
	const int64_t trip = shape_trip_of(st, number);
	bool moved = false;

	slot->flags |= SLOT_DONE;
	e->done++;
	for (uint32_t i = 0; i < st->nexts; i++)
		next_release(e, actor, &s->next[st->next + i], trip);
	while (a->head < a->next && actor_slot(a, a->head)->flags & SLOT_DONE) {
		a->head++;
		moved = true;
	}
	if (moved)
		window_fill(e, actor);
}

/* RECV whose place is free: its sender hears so, where it waits for that. */
static void recv_open(struct engine *e, uint32_t actor, uint64_t number)
{
	struct actor *a = &e->actor[actor];
	struct slot *slot = actor_slot(a, number);
	struct sim_path path;
	uint32_t track;

	if (slot->flags & SLOT_THERE) {
		actor_done(e, actor, number);
		return;
	}
	if (actor_bytes(e, a, number, slot) <= e->o->eager)
		return;
	track = track_of(e, slot->peer, (int32_t)actor);
	if (track == SHARE_NONE)
		return;
	sim_net_path(e->net, a->rank, e->actor[slot->peer].rank, &path);
	engine_event(e, e->now + path.latency, EVENT_READY, track, slot->turn);
}

/* How much longer than others' its own work takes a rank. */
static double lag_of(const struct engine *e, const struct actor *a)
{
	return e->o->lag ? e->o->lag[a->rank] : 1;
}

static void work_start(struct engine *e, uint32_t actor, uint64_t number)
{
	struct actor *a = &e->actor[actor];

	if (e->o->work <= 0) {
		actor_done(e, actor, number);
		return;
	}
	if (a->busy_work < e->now)
		a->busy_work = e->now;
	a->busy_work += (double)actor_bytes(e, a, number, actor_slot(a, number)) /
			e->o->work * lag_of(e, a);
	engine_event(e, a->busy_work, EVENT_WORK, actor, number);
}

static void send_start(struct engine *e, uint32_t actor, uint64_t number)
{
	struct actor *a = &e->actor[actor];
	const struct slot *slot = actor_slot(a, number);
	const uint32_t track = track_of(e, (int32_t)actor, slot->peer);

	if (track == SHARE_NONE)
		return;
	if (e->o->gap <= 0) {
		track_send(e, track, number);
		return;
	}
	if (a->busy_send < e->now)
		a->busy_send = e->now;
	a->busy_send += e->o->gap * lag_of(e, a);
	engine_event(e, a->busy_send, EVENT_ISSUE, track, number);
}

void actor_start(struct engine *e, uint32_t actor, uint64_t number)
{
	struct actor *a = &e->actor[actor];
	struct slot *slot = actor_slot(a, number);

	slot->flags |= SLOT_OPEN;
	switch (slot->kind) {
	case PLAN_RECV:
		recv_open(e, actor, number);
		break;
	case PLAN_SEND:
		if (slot->flags & SLOT_THERE ||
		    actor_bytes(e, a, number, slot) <= e->o->eager)
			send_start(e, actor, number);
		break;
	default:
		work_start(e, actor, number);
		break;
	}
}
