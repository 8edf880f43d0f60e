/* SPDX-License-Identifier: BSD-2-Clause */
/* See world.h; what must hold is in actors.c, and that steps go on in the end, and that
 * whoever leaves is let go, here. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/tests/world_int.h"

/* The ring: good where all members of the epoch ran the step in it, by the deadline. */
static void ring(struct world *w, const struct event *e)
{
	struct node *n = &w->node[e->who];
	uint64_t missing = 0, step;

	if (!ft_epoch_same(n->ran, e->epoch) || n->m.phase == FT_PHASE_OUT)
		return;
	step = n->ran_step;
	for (uint32_t i = 0; i < n->m.active.count; i++) {
		uint64_t id = n->m.active.entry[i].id;
		const struct node *o = node_by_id(w, id);

		if (!o || !ft_epoch_same(o->ran, e->epoch) || o->ran_step < step)
			missing = id;
	}
	if (missing && w->now < e->until) {
		struct event again = *e;

		again.at = w->now + 20 * MS;
		world_put(w, again);
		return;
	}
	if (!missing && !w->healed && world_chance(w, 15))
		ft_member_done(&n->m, e->epoch, false,
			       n->m.active.entry[world_below(w, n->m.active.count)].id);
	else
		ft_member_done(&n->m, e->epoch, !missing, missing);
}

/* What goes wrong. */

static struct node *some_node(struct world *w)
{
	int first = (int)world_below(w, NODES);

	for (int i = 0; i < NODES; i++) {
		struct node *n = &w->node[(first + i) % NODES];

		if (n->used && n->up)
			return n;
	}
	return NULL;
}

static void newcomers(struct world *w)
{
	uint32_t group = w->next_group++;

	for (uint32_t i = 0; i < w->group_size; i++)
		node_start(w, group);
}

static void wants_out(struct node *n)
{
	n->wants_out = true;
	/* Some do not wait for the end of their step. */
	if (world_chance(n->w, 300))
		ft_member_give_up(&n->m);
	else
		ft_member_leave(&n->m);
}

/* A member leaves, or dies at a message; at times its whole group does at once. */
static void lose(struct world *w, struct node *n, bool leave)
{
	bool all = world_chance(w, 500);

	for (int i = 0; i < NODES; i++) {
		struct node *o = &w->node[i];

		if (o != n && !(all && o->used && o->up &&
				o->m.attr.self.group == n->m.attr.self.group))
			continue;
		if (leave)
			wants_out(o);
		else
			fuse_light(w, &o->fuse);
	}
}

static void chaos_coordinator(struct world *w)
{
	struct slot *s = &w->slot[w->two ? world_below(w, SLOTS) : 0];

	if (!s->up) {
		if (!w->kept_always && world_chance(w, 300)) {
			world_trace(w, "slot %d loses what it kept", slot_index(s));
			ft_roster_clear(&s->file.active);
			s->file = (struct ft_durable){.active = s->file.active};
			w->result->rebuilds++;
		}
		slot_start(w, slot_index(s), false);
	} else {
		fuse_light(w, &s->fuse);
	}
}

/* Some members hear one coordinator, some the other, or all the same. */
static void split(struct world *w)
{
	int all = (int)world_below(w, 3);

	for (int i = 0; i < NODES; i++)
		w->node[i].home = all < SLOTS ? all : (int)world_below(w, SLOTS);
	for (int i = 0; i < SLOTS; i++)
		slot_start(w, i, false);
}

static void chaos(struct world *w)
{
	struct node *n = some_node(w);
	int64_t dice = world_below(w, 100);

	if (w->healed)
		return;
	world_after(w, 1 + world_below(w, 2 * w->chaos_ms * MS), EV_CHAOS, 0);
	if (w->two && world_chance(w, 400))
		split(w);
	else if (w->two && n && world_chance(w, 100))
		n->home = (int)world_below(w, SLOTS); /* this one alone */
	else if (dice < 25 || !n)
		newcomers(w);
	else if (dice < 45)
		lose(w, n, false);
	else if (dice < 55)
		n->paused_until = w->now + world_below(w, 2 * SILENCE);
	else if (dice < 65)
		n->cut_until = w->now + world_below(w, 3 * SILENCE);
	else if (dice < 70)
		lose(w, n, true);
	else
		chaos_coordinator(w);
}

/* The job ends: all leave, or most of them, each at some moment. */
static void end_job(struct world *w)
{
	const int stay = world_chance(w, 300) ? 150 : 0;

	world_trace(w, "the job ends");
	for (int i = 0; i < NODES; i++) {
		if (w->node[i].used && w->node[i].up && !world_chance(w, stay))
			world_after(w, world_below(w, 600 * MS), EV_LEAVE, i);
	}
}

static void heal(struct world *w)
{
	world_trace(w, "all is healed");
	w->healed = true;
	w->healed_step = 0;
	for (int i = 0; i < NODES; i++) {
		w->node[i].paused_until = w->node[i].cut_until = 0;
		w->node[i].home = 0;
		if (!w->node[i].fuse.blown)
			w->node[i].fuse = (struct fuse){0};
	}
	for (int i = 1; i < SLOTS; i++) {
		if (w->slot[i].up)
			slot_crash(&w->slot[i]);
	}
	w->slot[0].fuse = (struct fuse){0};
	for (int s = 1; s < STEPS; s++) {
		if (!ft_epoch_none(w->counted[s]))
			w->healed_step = (uint64_t)s;
	}
	if (world_chance(w, 150))
		end_job(w);
}

/* Events. */

static void to_node(struct world *w, const struct event *e)
{
	struct node *n = &w->node[e->who];
	struct ft_msg msg;

	if (!n->up)
		return;
	if (w->now < n->paused_until) {
		struct event again = *e;

		again.at = n->paused_until;
		again.bytes = malloc(e->len);
		if (!again.bytes)
			abort();
		memcpy(again.bytes, e->bytes, e->len);
		world_put(w, again);
		return;
	}
	if (ft_wire_get(e->bytes, e->len, world_job, &msg, &w->inbox) != FT_FAULT_NONE) {
		world_fault(w, "a coordinator's message is refused");
		return;
	}
	n->answer_to = e->from;
	ft_member_hear(&n->m, &msg);
	n->answer_to = n->home;
	node_settle(n);
}

static void to_slot(struct world *w, const struct event *e)
{
	struct slot *s = &w->slot[e->who];
	struct ft_msg msg;

	if (!s->up)
		return;
	if (ft_wire_get(e->bytes, e->len, world_job, &msg, &w->inbox) != FT_FAULT_NONE) {
		world_fault(w, "a member's message is refused");
		return;
	}
	ft_coord_hear(&s->c, &msg, w->now);
	slot_settle(s);
}

static void node_event(struct world *w, const struct event *e)
{
	struct node *n = &w->node[e->who];

	if (!n->up || n->m.phase == FT_PHASE_OUT)
		return;
	if (w->now < n->paused_until) {
		struct event again = *e;

		again.at = n->paused_until;
		world_put(w, again);
		return;
	}
	n->answer_to = n->home;
	switch (e->kind) {
	case EV_NODE_TICK:
		ft_member_tick(&n->m, w->now);
		world_after(w, BEAT, EV_NODE_TICK, e->who);
		break;
	case EV_BEGIN:
		if (n->wants_out)
			ft_member_leave(&n->m);
		else
			ft_member_begin(&n->m);
		break;
	case EV_LEAVE:
		wants_out(n);
		break;
	default:
		ring(w, e);
		break;
	}
	node_settle(n);
}

static void slot_tick(struct world *w, int i)
{
	struct slot *s = &w->slot[i];

	if (!s->up)
		return;
	ft_coord_tick(&s->c, w->now);
	world_after(w, 50 * MS, EV_SLOT_TICK, i);
	slot_settle(s);
}

static void dispatch(struct world *w, const struct event *e)
{
	switch (e->kind) {
	case EV_TO_NODE:
		to_node(w, e);
		break;
	case EV_TO_SLOT:
		to_slot(w, e);
		break;
	case EV_SLOT_TICK:
		slot_tick(w, e->who);
		break;
	case EV_CHAOS:
		chaos(w);
		break;
	default:
		node_event(w, e);
		break;
	}
}

static bool node_lives(const struct node *n)
{
	return n && n->up && n->m.phase != FT_PHASE_OUT;
}

static bool node_stays(const struct node *n)
{
	return node_lives(n) && !n->wants_out;
}

/* Members of groups that live, or stay, as a whole: of any other none can be in the next
 * epoch. */
static uint32_t whole(struct world *w, const struct ft_roster *roster,
		      bool (*counts)(const struct node *n))
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < roster->count; i++) {
		uint32_t of_group = 0;

		for (uint32_t k = 0; k < roster->count; k++) {
			of_group += roster->entry[k].group == roster->entry[i].group &&
				    counts(node_by_id(w, roster->entry[k].id));
		}
		n += of_group >= w->group_size;
	}
	return n;
}

static uint32_t living(struct world *w, const struct ft_roster *roster)
{
	return whole(w, roster, node_stays);
}

/* A majority of every epoch that anybody who lives was in last, or prepared. */
static bool majorities_live(struct world *w)
{
	const struct ft_roster *kept = &w->slot[0].file.active;
	bool any = false;

	if (kept->count && living(w, kept) <= kept->count / 2)
		return false;
	for (int i = 0; i < NODES; i++) {
		const struct node *n = &w->node[i];

		if (!n->used || !node_stays(n))
			continue;
		any |= n->m.active.count > 0;
		if ((n->m.active.count &&
		     living(w, &n->m.active) <= n->m.active.count / 2) ||
		    (n->m.pending.count &&
		     living(w, &n->m.pending) <= n->m.pending.count / 2))
			return false;
	}
	return any;
}

/* Whether steps must go on in the end. */
static bool must_go_on(struct world *w)
{
	const struct ft_roster *last = &w->slot[0].file.active;
	uint32_t live = living(w, last);

	if (w->kept_always && !w->two && live > 0)
		return live >= (last->count + 1) / 2;
	return majorities_live(w);
}

static bool went_on(const struct world *w)
{
	return w->healed_step + 4 < STEPS &&
	       !ft_epoch_none(w->counted[w->healed_step + 4]);
}

/* One that has said that it leaves, and was not told that it is out; or NULL. */
static const struct node *kept_in(const struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		const struct node *n = &w->node[i];

		if (n->used && node_lives(n) && n->m.leaving)
			return n;
	}
	return NULL;
}

/* Whether it must be: enough of the epoch that is on live for another one, were it of
 * those who leave, and the coordinator knows the epoch. */
static bool must_let_go(struct world *w)
{
	const struct ft_roster *last = &w->slot[0].file.active;

	return (went_on(w) || (w->kept_always && !w->two)) && last->count &&
	       whole(w, last, node_lives) >= (last->count + 1) / 2;
}

/* What must have come to pass in the end. */
static void check_end(struct world *w)
{
	const struct node *n = kept_in(w);

	w->result->stalled = !went_on(w);
	if (w->result->stalled && must_go_on(w))
		world_fault(w,
			    "all is healed and enough live, but no step counts any more");
	if (n && must_let_go(w))
		world_fault(w, "all is healed and node %d wants to leave, and may not",
			    node_index(n));
}

static void world_fini(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		if (w->node[i].up)
			ft_member_fini(&w->node[i].m);
	}
	for (int i = 0; i < SLOTS; i++) {
		if (w->slot[i].up)
			ft_coord_fini(&w->slot[i].c);
		ft_roster_fini(&w->slot[i].file.active);
	}
	while (w->count)
		free(w->heap[--w->count].bytes);
	free(w->heap);
	ft_inbox_fini(&w->inbox);
	free(w->record);
	free(w);
}

static struct world *world_open(uint64_t seed, bool trace_it, struct world_result *result)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->record = calloc(EPOCHS, sizeof(*w->record));
	if (!w->record)
		abort();
	w->rng = seed;
	w->trace = trace_it;
	w->result = result;
	w->loss = (int)world_below(w, 4) * 30;
	w->dup = (int)world_below(w, 3) * 50;
	w->late = (int)world_below(w, 3) * 40;
	w->chaos_ms = 100 + (int)world_below(w, 900);
	w->group_size = world_chance(w, 350) ? 2 + (uint32_t)world_below(w, 2) : 1;
	w->size = w->group_size * (1 + (uint32_t)world_below(w, 4));
	w->kept_always = world_chance(w, 600);
	w->two = world_chance(w, 350);
	if (w->two && world_chance(w, 700))
		w->size = (3 + (uint32_t)world_below(w, 4)) * w->group_size;
	for (int i = 0; i < SLOTS; i++)
		w->slot[i].w = w;
	return w;
}

void world_run(uint64_t seed, bool trace_it, struct world_result *result)
{
	struct world *w;

	memset(result, 0, sizeof(*result));
	w = world_open(seed, trace_it, result);
	slot_start(w, 0, true);
	for (uint32_t i = 0; i < w->size / w->group_size; i++)
		newcomers(w);
	world_after(w, 1 + world_below(w, 500 * MS), EV_CHAOS, 0);
	while (w->count && !result->fault[0]) {
		struct event e = world_get(w);

		w->now = e.at;
		if (w->now > END)
			free(e.bytes);
		if (w->now > END)
			break;
		if (!w->healed && w->now > ACT)
			heal(w);
		if (w->healed && !w->slot[0].up)
			slot_start(w, 0, false);
		dispatch(w, &e);
		free(e.bytes);
		if (w->healed && went_on(w) && !kept_in(w))
			break;
	}
	if (!result->fault[0])
		check_end(w);
	world_fini(w);
}
