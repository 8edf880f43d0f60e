/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coordinators and members of the world. What must hold:
 *
 * - G2: what a member is told to count, or to be in, is durable at that coordinator.
 * - G2: all members of an epoch come into it with the same steps counted, each by the
 * same epoch: all or none. Where a step was counted by two epochs, whoever counted it by
 * one of them counts nothing any more, and comes into one more epoch at most (fenced).
 * - G3: who voted yes is told to run again only in another epoch.
 * - G4: the same table of steps shows two halves that both go on.
 * - G5: `live` is the number of members of the epoch that counted.
 * - A coordinator says that another took over only where a member of its epoch has
 * promised to follow another: a newcomer's promise ends nothing.
 * - An epoch has whole groups only.
 * - Nobody is told what contradicts what it knows (FT_REASON_CONFLICT).
 * - When all is healed and enough of the last epoch live, steps go on.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/tests/world_int.h"

struct node *node_by_id(const struct world *w, uint64_t id)
{
	for (int i = 0; i < NODES; i++) {
		if (w->node[i].used && w->node[i].m.attr.self.id == id)
			return (struct node *)&w->node[i];
	}
	return NULL;
}

int node_index(const struct node *n)
{
	return (int)(n - n->w->node);
}

int slot_index(const struct slot *s)
{
	return (int)(s - s->w->slot);
}

/* Coordinators. */

static void durable_copy(struct ft_durable *to, const struct ft_durable *from)
{
	struct ft_roster list = to->active;

	if (!ft_roster_copy(&list, &from->active))
		abort();
	*to = *from;
	to->active = list;
}

static void slot_say(void *arg, const struct ft_msg *msg)
{
	struct slot *s = arg;
	struct world *w = s->w;
	struct node *n = node_by_id(w, msg->id);

	if (!fuse_pass(&s->fuse) || !n)
		return;
	world_trace(w, "slot %d says %s to %d (term %llx active %llu)", slot_index(s),
		    ft_type_name(msg->type), node_index(n), (unsigned long long)msg->term,
		    (unsigned long long)msg->active.seq);
	if ((msg->type == FT_COMMIT || msg->type == FT_START) &&
	    (!ft_epoch_same(s->file.active.epoch, msg->active) ||
	     !ft_commit_same(s->file.commit, msg->commit)))
		world_fault(w, "G2: %s is said before it is durable",
			    ft_type_name(msg->type));
	if (w->now >= n->cut_until)
		world_post(w, EV_TO_NODE, node_index(n), slot_index(s), msg);
}

static bool slot_save(void *arg, enum ft_saved what, const struct ft_durable *d)
{
	struct slot *s = arg;

	if (!fuse_pass(&s->fuse))
		return false;
	world_trace(s->w, "slot %d keeps %d: term %llx epoch %llu step %llu",
		    slot_index(s), what, (unsigned long long)d->term,
		    (unsigned long long)d->active.epoch.seq,
		    (unsigned long long)d->commit.step);
	durable_copy(&s->file, d);
	return true;
}

void slot_start(struct world *w, int i, bool fresh)
{
	struct slot *s = &w->slot[i];
	struct ft_coord_attr attr = {
		.fresh = fresh,
		.size = w->size,
		.group_size = w->group_size,
		.silence_us = SILENCE,
		.prepare_us = 500 * MS,
		.rebuild_us = 500 * MS,
		.join_us = 300 * MS,
		.blame_us = 100 * MS,
	};
	struct ft_coord_out out = {s, slot_say, slot_save};

	if (s->up)
		return;
	if (s->file.term == 0)
		s->lineage = (uint32_t)world_draw(w);
	attr.lineage = s->lineage;
	s->fuse = (struct fuse){0};
	s->up = true;
	world_trace(w, "slot %d starts, kept epoch %llu", i,
		    (unsigned long long)s->file.active.epoch.seq);
	if (!ft_coord_init(&s->c, &attr, &out, s->file.term ? &s->file : NULL, w->now))
		world_fault(w, "a coordinator does not start");
	world_after(w, 50 * MS, EV_SLOT_TICK, i);
}

void slot_crash(struct slot *s)
{
	world_trace(s->w, "slot %d dies in state %s", slot_index(s),
		    ft_coord_state_name(s->c.state));
	s->w->result->crashes++;
	ft_coord_fini(&s->c);
	s->up = false;
}

/* Whether a member of the epoch that is on has promised a later term: nothing else ends a
 * coordinator. What a member promised it keeps, dead or not. */
static bool slot_was_left(const struct slot *s)
{
	for (uint32_t i = 0; i < s->c.d.active.count; i++) {
		const struct node *n = node_by_id(s->w, s->c.d.active.entry[i].id);

		if (n && n->m.promised > s->c.d.term)
			return true;
	}
	return false;
}

/* After every call of its machine: it died, or has nothing more to do. */
void slot_settle(struct slot *s)
{
	if (s->up && s->c.state == FT_COORD_OVER && !slot_was_left(s))
		world_fault(s->w, "coordinator %d is over, and no member left it",
			    slot_index(s));
	if (s->up && (s->fuse.blown || s->c.state >= FT_COORD_DONE))
		slot_crash(s);
}

/* Members. */

static void node_say(void *arg, const struct ft_msg *msg)
{
	struct node *n = arg;
	int to = n->answer_to;

	if (!fuse_pass(&n->fuse))
		return;
	world_trace(n->w,
		    "node %d says %s to slot %d (term %llx active %llx.%llu pending "
		    "%llx.%llu vote %d of %llu)",
		    node_index(n), ft_type_name(msg->type), to,
		    (unsigned long long)msg->term, (unsigned long long)msg->active.term,
		    (unsigned long long)msg->active.seq,
		    (unsigned long long)msg->pending.term,
		    (unsigned long long)msg->pending.seq, msg->vote.answer,
		    (unsigned long long)msg->vote.step);
	if (n->w->now >= n->cut_until)
		world_post(n->w, EV_TO_SLOT, to, node_index(n), msg);
}

/* Steps up to this one count for good: it goes on from them. */
static void node_goes_on(struct node *n, uint64_t last)
{
	struct world *w = n->w;

	for (uint64_t s = n->first; s <= last && s < STEPS; s++) {
		if (ft_epoch_none(w->counted[s])) {
			w->counted[s] = n->hist[s];
			w->result->steps++;
		} else if (!ft_epoch_same(w->counted[s], n->hist[s])) {
			world_fault(w,
				    "G2/G4: step %llu counts in epochs %llu and %llu, "
				    "and both "
				    "go on",
				    (unsigned long long)s,
				    (unsigned long long)w->counted[s].seq,
				    (unsigned long long)n->hist[s].seq);
		}
	}
}

/* Groups of an epoch are whole: the roster has each one's members beside each other. */
static void check_groups(struct world *w, const struct ft_roster *roster)
{
	uint32_t of_group = 0;

	for (uint32_t i = 0; i < roster->count; i++) {
		const struct ft_entry *e = &roster->entry[i];

		of_group = i && e->group == e[-1].group ? of_group + 1 : 1;
		if ((i + 1 == roster->count || e->group != e[1].group) &&
		    of_group < w->group_size)
			world_fault(w, "epoch %llu has %u members of group %u",
				    (unsigned long long)roster->epoch.seq, of_group,
				    e->group);
	}
}

static void node_enters(struct node *n)
{
	struct world *w = n->w;
	struct epoch_record *r = NULL;

	/* Into one epoch a member may come alone, with a step that nobody else heard to
	 * count, and be lost; not into two. */
	n->entered = n->m.active.epoch;
	node_goes_on(n, n->came_with);
	n->came_with = n->m.commit.step;
	for (uint32_t i = 0; i < w->records && !r; i++) {
		if (ft_epoch_same(w->record[i].epoch, n->entered))
			r = &w->record[i];
	}
	if (!r) {
		if (w->records == EPOCHS) {
			world_fault(w, "more than %d epochs", EPOCHS);
			return;
		}
		r = &w->record[w->records++];
		r->epoch = n->entered;
		r->commit = n->m.commit;
		memcpy(r->hist, n->hist, sizeof(r->hist));
		check_groups(w, &n->m.active);
		w->result->epochs++;
	}
	if (!ft_commit_same(r->commit, n->m.commit))
		world_fault(
			w, "G2: into epoch %llu some come with step %llu, some with %llu",
			(unsigned long long)r->epoch.seq,
			(unsigned long long)r->commit.step,
			(unsigned long long)n->m.commit.step);
	for (int s = 0; s < STEPS; s++) {
		if (!ft_epoch_none(r->hist[s]) && !ft_epoch_none(n->hist[s]) &&
		    !ft_epoch_same(r->hist[s], n->hist[s]))
			world_fault(w, "G2: members of epoch %llu differ about step %d",
				    (unsigned long long)r->epoch.seq, s);
	}
}

static void node_runs(struct node *n)
{
	struct world *w = n->w;

	if (ft_epoch_same(n->ran, n->m.active.epoch) &&
	    n->ran_step == n->m.commit.step + 1)
		world_fault(w, "G3: step %llu is run twice in one epoch",
			    (unsigned long long)n->ran_step);
	n->ran = n->m.active.epoch;
	n->ran_step = n->m.commit.step + 1;
	world_put(w, (struct event){.at = w->now + 1 + world_below(w, 20 * MS),
				    .kind = EV_RING,
				    .who = node_index(n),
				    .epoch = n->ran,
				    .until = w->now + DEADLINE});
}

static void node_commits(struct node *n)
{
	struct world *w = n->w;
	uint64_t step = n->m.commit.step;
	int at = ft_roster_find(&n->m.active, n->m.attr.self.id);

	if (step >= STEPS)
		return;
	/* G5: where the epoch that counted is still there to be looked at. */
	if (ft_epoch_same(n->m.commit.epoch, n->m.active.epoch) &&
	    (at < 0 || n->m.live != n->m.active.count))
		world_fault(w, "G5: %u of %u contributed", n->m.live, n->m.active.count);
	n->hist[step] = n->m.commit.epoch;
	node_goes_on(n, step - 1);
	world_after(w, 1 + world_below(w, 30 * MS), EV_BEGIN, node_index(n));
}

static void node_tell(void *arg, enum ft_event event, const struct ft_member *m)
{
	static const char *const name[] = {"joined", "run", "stop", "committed",
					   "fenced"};
	struct node *n = arg;

	if (n->fuse.blown)
		return;
	world_trace(n->w, "node %d: %s, epoch %llu, step %llu", node_index(n),
		    name[event], (unsigned long long)m->active.epoch.seq,
		    (unsigned long long)m->commit.step);
	switch (event) {
	case FT_JOINED:
		n->first = m->commit.step + 1;
		n->w->result->joins++;
		break;
	case FT_RUN:
		node_runs(n);
		break;
	case FT_COMMITTED:
		node_commits(n);
		break;
	case FT_FENCED_OUT:
		if (m->reason == FT_REASON_CONFLICT)
			world_fault(n->w, "a member is told what cannot be");
		n->w->result->fenced++;
		break;
	default:
		break;
	}
	if (!fuse_pass(&n->fuse))
		world_trace(n->w, "node %d dies of that", node_index(n));
}

void node_start(struct world *w, uint32_t group)
{
	struct node *n = NULL;
	struct ft_member_attr attr = {
		.self = {.id = ++w->next_id, .group = group, .card_len = 4},
		.sign = 7,
		.beat_us = BEAT,
	};
	struct ft_member_out out;

	for (int i = 0; i < NODES && !n; i++) {
		if (!w->node[i].used)
			n = &w->node[i];
	}
	if (!n)
		return;
	*n = (struct node){.w = w, .used = true, .up = true};
	/* It may come to the other coordinator first, and hear of a term there. */
	if (w->two && !w->healed && w->slot[1].up)
		n->home = n->answer_to = (int)world_below(w, SLOTS);
	out = (struct ft_member_out){n, node_say, node_tell};
	ft_member_init(&n->m, &attr, &out);
	world_after(w, world_below(w, BEAT), EV_NODE_TICK, node_index(n));
	world_after(w, 1 + world_below(w, 30 * MS), EV_BEGIN, node_index(n));
}

static void node_die(struct node *n)
{
	world_trace(n->w, "node %d dies", node_index(n));
	n->w->result->deaths++;
	n->up = false;
	ft_member_fini(&n->m);
}

void node_settle(struct node *n)
{
	if (!n->up)
		return;
	if (n->fuse.blown) {
		node_die(n);
		return;
	}
	if (n->m.phase == FT_PHASE_OUT)
		return;
	if (!ft_epoch_same(n->entered, n->m.active.epoch))
		node_enters(n);
}
