/* SPDX-License-Identifier: BSD-2-Clause */
/* See coord.h. */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coll/ft/coord_int.h"
#include "coll/ft/places.h"

static const char *const state_name[FT_COORD_STATE_END] = {
	[FT_COORD_FORM] = "form",	[FT_COORD_REBUILD] = "rebuild",
	[FT_COORD_STEADY] = "steady",	[FT_COORD_PREPARE] = "prepare",
	[FT_COORD_STALLED] = "stalled", [FT_COORD_DONE] = "done",
	[FT_COORD_OVER] = "over",	[FT_COORD_BROKEN] = "broken",
};

/* May a state follow another? */
static const bool state_follows[FT_COORD_STATE_END][FT_COORD_STATE_END] = {
	[FT_COORD_FORM] = {[FT_COORD_REBUILD] = true,
			   [FT_COORD_PREPARE] = true,
			   [FT_COORD_OVER] = true,
			   [FT_COORD_BROKEN] = true},
	[FT_COORD_REBUILD] = {[FT_COORD_FORM] = true,
			      [FT_COORD_PREPARE] = true,
			      [FT_COORD_STALLED] = true,
			      [FT_COORD_OVER] = true,
			      [FT_COORD_BROKEN] = true},
	[FT_COORD_STEADY] = {[FT_COORD_PREPARE] = true,
			     [FT_COORD_STALLED] = true,
			     [FT_COORD_DONE] = true,
			     [FT_COORD_OVER] = true,
			     [FT_COORD_BROKEN] = true},
	[FT_COORD_PREPARE] = {[FT_COORD_FORM] = true,
			      [FT_COORD_REBUILD] = true,
			      [FT_COORD_PREPARE] = true,
			      [FT_COORD_STEADY] = true,
			      [FT_COORD_STALLED] = true,
			      [FT_COORD_OVER] = true,
			      [FT_COORD_BROKEN] = true},
	[FT_COORD_STALLED] = {[FT_COORD_PREPARE] = true,
			      [FT_COORD_REBUILD] = true,
			      [FT_COORD_STALLED] = true,
			      [FT_COORD_DONE] = true,
			      [FT_COORD_OVER] = true,
			      [FT_COORD_BROKEN] = true},
};

void ft_coord_set_state(struct ft_coord *c, enum ft_coord_state state)
{
	assert(state_follows[c->state][state]);
	c->state = state;
}

static bool is_ended(const struct ft_coord *c)
{
	return c->state == FT_COORD_OVER || c->state == FT_COORD_BROKEN ||
	       c->state == FT_COORD_DONE;
}

bool ft_coord_save(struct ft_coord *c, enum ft_saved what)
{
	if (is_ended(c))
		return false;
	if (c->out.save(c->out.arg, what, &c->d))
		return true;
	ft_coord_set_state(c, FT_COORD_BROKEN);
	return false;
}

/* Where an id is in the table, or would be. */
static uint32_t peer_place(const struct ft_coord *c, uint64_t id)
{
	return ft_place(c->peer, c->peers, sizeof(*c->peer), id);
}

struct ft_peer *ft_coord_peer(const struct ft_coord *c, uint64_t id)
{
	uint32_t at = peer_place(c, id);

	return at < c->peers && c->peer[at].id == id ? &c->peer[at] : NULL;
}

/* NULL: no memory, or twice as many strangers as there can be members. */
static struct ft_peer *peer_get(struct ft_coord *c, uint64_t id)
{
	struct ft_peer *p = ft_coord_peer(c, id);
	uint32_t at = peer_place(c, id);

	if (p || c->peers >= 2 * FT_MEMBERS_MAX)
		return p;
	if (c->peers == c->peer_room) {
		uint32_t room = c->peer_room ? 2 * c->peer_room : 16;

		p = realloc(c->peer, (size_t)room * sizeof(*p));
		if (!p)
			return NULL;
		c->peer = p;
		c->peer_room = room;
	}
	p = &c->peer[at];
	memmove(p + 1, p, (size_t)(c->peers - at) * sizeof(*p));
	c->peers++;
	*p = (struct ft_peer){.id = id, .heard = c->now};
	return p;
}

/* Forgets who is in no epoch and wants in no more. */
static void peer_sweep(struct ft_coord *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->peers; i++) {
		struct ft_peer *p = &c->peer[i];

		if (ft_roster_find(&c->d.active, p->id) >= 0 ||
		    ft_roster_find(&c->next, p->id) >= 0 ||
		    (p->wants_in && ft_coord_is_alive(c, p)))
			c->peer[kept++] = *p;
	}
	c->peers = kept;
}

bool ft_coord_is_alive(const struct ft_coord *c, const struct ft_peer *p)
{
	return c->now - p->heard <= c->attr.silence_us;
}

void ft_coord_say(struct ft_coord *c, uint64_t id, enum ft_type type)
{
	struct ft_msg msg = {.type = type, .id = id, .term = c->d.term};

	if (is_ended(c))
		return;
	if (type == FT_PREPARE) {
		const struct ft_peer *p = ft_coord_peer(c, id);

		msg.pending = c->next.epoch;
		msg.pending_list = &c->next;
		msg.active_list = p && p->missed ? &c->d.active : NULL;
	}
	if (type == FT_PREPARE || type == FT_START || type == FT_COMMIT) {
		msg.active = c->d.active.epoch;
		msg.commit = c->d.commit;
	}
	c->out.say(c->out.arg, &msg);
}

static void say_fenced(struct ft_coord *c, uint64_t id, enum ft_reason reason)
{
	struct ft_msg msg = {
		.type = FT_FENCED, .id = id, .term = c->d.term, .reason = reason};

	c->out.say(c->out.arg, &msg);
}

static void say_all(struct ft_coord *c, const struct ft_roster *to, enum ft_type type)
{
	for (uint32_t i = 0; i < to->count; i++)
		ft_coord_say(c, to->entry[i].id, type);
}

static void stall(struct ft_coord *c)
{
	ft_roster_clear(&c->next);
	/* Who did not prepare may have been slow only. */
	for (uint32_t i = 0; i < c->peers; i++)
		c->peer[i].out = false;
	if (c->d.active.count) {
		ft_coord_set_state(c, FT_COORD_STALLED);
		c->until = c->now + c->attr.prepare_us;
	} else if (c->state != FT_COORD_FORM) {
		ft_coord_set_state(c, FT_COORD_FORM);
	}
}

void ft_coord_attempt(struct ft_coord *c)
{
	c->no_until = 0;
	if (!ft_next_list(c)) {
		ft_coord_set_state(c, FT_COORD_BROKEN);
		return;
	}
	if (!ft_next_suffices(c)) {
		stall(c);
		return;
	}
	ft_coord_set_state(c, FT_COORD_PREPARE);
	c->until = c->now + c->attr.prepare_us;
	say_all(c, &c->next, FT_PREPARE);
}

static bool somebody_wants_in(const struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->peers; i++) {
		if (ft_next_may_enter(c, &c->peer[i]))
			return true;
	}
	return false;
}

/* Everybody is prepared: the epoch is on. */
static void activate(struct ft_coord *c)
{
	ft_roster_swap(&c->d.active, &c->next);
	c->d.valid = c->d.term;
	c->d.fresh = false;
	if (!ft_coord_save(c, FT_SAVE_EPOCH))
		return;
	ft_coord_set_state(c, FT_COORD_STEADY);
	c->kept = true;
	say_all(c, &c->d.active, FT_START);
	/* next is what was before. */
	for (uint32_t i = 0; i < c->next.count; i++) {
		if (ft_roster_find(&c->d.active, c->next.entry[i].id) < 0)
			say_fenced(c, c->next.entry[i].id, FT_REASON_EXCLUDED);
	}
	ft_roster_clear(&c->next);
	for (uint32_t i = 0; i < c->d.active.count; i++) {
		struct ft_peer *p = ft_coord_peer(c, c->d.active.entry[i].id);

		if (p)
			p->wants_in = p->out = p->anew = p->missed = false;
	}
	peer_sweep(c);
	/* Who was left out goes on waiting. */
	if (!somebody_wants_in(c))
		c->joiner_since = 0;
}

static void count_prepared(struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->next.count; i++) {
		const struct ft_peer *p = ft_coord_peer(c, c->next.entry[i].id);

		if (!p || !ft_epoch_same(p->pending, c->next.epoch))
			return;
	}
	activate(c);
}

static void count_votes(struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->d.active.count; i++) {
		const struct ft_peer *p = ft_coord_peer(c, c->d.active.entry[i].id);

		if (!p || p->vote.answer != FT_VOTE_YES ||
		    p->vote.step != c->d.commit.step + 1 ||
		    !ft_epoch_same(p->vote.epoch, c->d.active.epoch))
			return;
	}
	c->d.commit.step++;
	c->d.commit.epoch = c->d.active.epoch;
	c->failed = 0;
	if (!ft_coord_save(c, FT_SAVE_COMMIT))
		return;
	say_all(c, &c->d.active, FT_COMMIT);
	if (ft_next_newcomers_wait(c))
		ft_coord_attempt(c);
}

/* The step failed. The next epoch is prepared when it is plain who is dead, or when
 * whoever lives has said why, or had the time to. */
static void weigh_failed(struct ft_coord *c)
{
	if (!ft_blame_quiet(c)) {
		if (c->now < c->no_until && !ft_blame_is_heard(c))
			return;
		ft_blame_judge(c);
		c->failed++;
	}
	ft_coord_attempt(c);
}

/* A member could not run the step. Most wait for one that waits itself: who is to blame
 * shows when the others have spoken, too. */
static void take_no(struct ft_coord *c)
{
	if (c->no_until == 0)
		c->no_until = c->now + c->attr.blame_us;
	weigh_failed(c);
}

static void hear_vote(struct ft_coord *c, const struct ft_vote *vote)
{
	if (c->state != FT_COORD_STEADY || vote->step != c->d.commit.step + 1 ||
	    !ft_epoch_same(vote->epoch, c->d.active.epoch))
		return;
	if (vote->answer == FT_VOTE_YES)
		count_votes(c);
	else if (vote->answer == FT_VOTE_NO)
		take_no(c);
}

/* What a member lacks is said again. */
static void repeat(struct ft_coord *c, const struct ft_peer *p)
{
	bool in_active = ft_roster_find(&c->d.active, p->id) >= 0;

	if (c->state == FT_COORD_PREPARE && ft_roster_find(&c->next, p->id) >= 0 &&
	    !ft_epoch_same(p->pending, c->next.epoch))
		ft_coord_say(c, p->id, FT_PREPARE);
	if (c->state != FT_COORD_STEADY || !in_active)
		return;
	if (ft_epoch_same(p->pending, c->d.active.epoch))
		ft_coord_say(c, p->id, FT_START);
	else if (ft_epoch_same(p->active, c->d.active.epoch) &&
		 p->commit.step < c->d.commit.step)
		ft_coord_say(c, p->id, FT_COMMIT);
}

static bool is_ours(const struct ft_coord *c, uint64_t id)
{
	return ft_roster_find(&c->d.active, id) >= 0 || ft_roster_find(&c->next, id) >= 0;
}

/* Somebody follows a later term. Of a member of the epoch that is on this says that
 * another coordinator asked for it, and may have taken over. A newcomer may have been
 * asked by any: it counts in no majority of this epoch, and only cannot be let in. */
static void note_term(struct ft_coord *c, struct ft_peer *p, uint64_t term)
{
	if (p && term > p->promised)
		p->promised = term;
	if (term <= c->d.term)
		return;
	if (c->d.active.count == 0 || c->state == FT_COORD_REBUILD)
		ft_rebuild_refused(c, term);
	else if (p && ft_roster_find(&c->d.active, p->id) >= 0)
		ft_coord_set_state(c, FT_COORD_OVER);
	if (p && c->state == FT_COORD_PREPARE && ft_roster_find(&c->next, p->id) >= 0)
		ft_coord_attempt(c);
}

static void hear_join(struct ft_coord *c, const struct ft_msg *msg)
{
	struct ft_peer *p;

	if (c->d.sign == 0)
		c->d.sign = msg->sign;
	if (msg->sign != c->d.sign) {
		say_fenced(c, msg->id, FT_REASON_SIGN);
		return;
	}
	p = peer_get(c, msg->id);
	if (!p) {
		say_fenced(c, msg->id, FT_REASON_FULL);
		return;
	}
	p->heard = c->now;
	if (ft_roster_find(&c->d.active, p->id) >= 0)
		return; /* said before it was let in */
	p->wants_in = true;
	p->entry = msg->pending_list->entry[0];
	note_term(c, p, msg->term);
	if (c->state == FT_COORD_REBUILD) {
		if (!p->replied)
			ft_rebuild_ask(c, p);
		return;
	}
	if (p->promised > c->d.term) {
		/* It cannot take part here, nor go back on its word: as a new member it
		 * may. Where too few of the epoch are heard of, it is for whoever
		 * follows to say. */
		if (c->state == FT_COORD_STEADY)
			say_fenced(c, p->id, FT_REASON_TERM);
		return;
	}
	if (c->joiner_since == 0)
		c->joiner_since = c->now;
	if (c->state == FT_COORD_FORM)
		ft_coord_attempt(c);
	else
		repeat(c, p);
}

static void hear_status(struct ft_coord *c, struct ft_peer *p, const struct ft_msg *msg)
{
	/* What it answered to QUERY counts, not what it had said before. */
	if (c->state == FT_COORD_REBUILD && p->replied)
		return;
	p->active = msg->active;
	p->pending = msg->pending;
	p->commit = msg->commit;
	p->vote = msg->vote;
	/* One that had not been heard when the others answered: with it there may be
	 * enough. */
	if (c->state == FT_COORD_STALLED && msg->term < c->d.term &&
	    c->d.valid != c->d.term)
		ft_rebuild_begin(c);
	if (c->state == FT_COORD_REBUILD) {
		if (msg->type == FT_STATE)
			ft_rebuild_state(c, p, msg);
		else if (!p->replied)
			ft_coord_say(c, p->id, FT_QUERY);
		return;
	}
	if (msg->term != c->d.term)
		return;
	if (c->state == FT_COORD_PREPARE && ft_epoch_same(p->pending, c->next.epoch))
		count_prepared(c);
	hear_vote(c, &msg->vote);
	p = ft_coord_peer(c, msg->id); /* the table may have moved */
	if (p)
		repeat(c, p);
}

static void say_left(struct ft_coord *c, uint64_t id)
{
	say_fenced(c, id,
		   ft_next_is_leaving(c, id) ? FT_REASON_LEFT : FT_REASON_EXCLUDED);
}

static void let_leave(struct ft_coord *c)
{
	if (!ft_next_is_none(c)) {
		/* Too few may live: that nobody stays is for who leaves last to show. */
		if (c->state == FT_COORD_STEADY)
			ft_coord_attempt(c);
		return;
	}
	for (uint32_t i = 0; i < c->d.active.count; i++)
		say_left(c, c->d.active.entry[i].id);
	ft_coord_set_state(c, FT_COORD_DONE);
}

/* Whether the epoch that is on is the last there is, as far as this coordinator can know
 * it without asking. */
static bool knows_epoch(const struct ft_coord *c)
{
	return c->state == FT_COORD_STEADY ||
	       (c->state == FT_COORD_STALLED && c->d.valid == c->d.term);
}

/* From a member of some epoch or a newcomer that prepares for one. */
static void hear_member(struct ft_coord *c, const struct ft_msg *msg)
{
	bool asks = c->state == FT_COORD_FORM || c->state == FT_COORD_REBUILD;
	struct ft_peer *p;

	/* It was in an epoch, and not in this one: dead, as far as this job knows. While
	 * the next is prepared that is not certain yet. */
	if (!asks && !is_ours(c, msg->id) && !ft_epoch_none(msg->active)) {
		if (c->state == FT_COORD_STEADY)
			say_fenced(c, msg->id, FT_REASON_EXCLUDED);
		return;
	}
	p = peer_get(c, msg->id);
	if (!p)
		return;
	p->heard = c->now;
	if (msg->type != FT_LEAVE) {
		hear_status(c, p, msg);
		return;
	}
	p->leaving = true;
	if (knows_epoch(c))
		let_leave(c);
}

void ft_coord_hear(struct ft_coord *c, const struct ft_msg *msg, int64_t now)
{
	c->now = now > c->now ? now : c->now;
	/* All have left, and this one did not hear it; or its group did without it. */
	if (c->state == FT_COORD_DONE && msg->type <= FT_LEAVE && msg->type != FT_JOIN)
		say_fenced(c, msg->id,
			   msg->type == FT_LEAVE ? FT_REASON_LEFT : FT_REASON_EXCLUDED);
	if (is_ended(c) || msg->type > FT_LEAVE)
		return; /* what only coordinators say */
	if (msg->type == FT_JOIN) {
		hear_join(c, msg);
		return;
	}
	/* An epoch was on before this coordinator came. */
	if (c->d.active.count == 0 && !ft_epoch_none(msg->active) &&
	    (c->state == FT_COORD_FORM || c->state == FT_COORD_PREPARE))
		ft_rebuild_begin(c);
	note_term(c, ft_coord_peer(c, msg->id), msg->term);
	if (!is_ended(c) && msg->type != FT_REFUSED)
		hear_member(c, msg);
}

/* A member of the epoch that is on says nothing any more. */
static bool somebody_is_silent(const struct ft_coord *c, const struct ft_roster *roster)
{
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct ft_peer *p = ft_coord_peer(c, roster->entry[i].id);

		if (!p || !ft_coord_is_alive(c, p))
			return true;
	}
	return false;
}

static void prepare_is_late(struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->next.count; i++) {
		struct ft_peer *p = ft_coord_peer(c, c->next.entry[i].id);

		if (p && !ft_epoch_same(p->pending, c->next.epoch)) {
			p->out = true;
			p->wants_in = false;
		}
	}
	ft_coord_attempt(c);
}

void ft_coord_tick(struct ft_coord *c, int64_t now)
{
	c->now = now > c->now ? now : c->now;
	switch (c->state) {
	case FT_COORD_FORM:
		ft_rebuild_tick(c);
		break;
	case FT_COORD_REBUILD:
		ft_rebuild_tick(c);
		break;
	case FT_COORD_STEADY:
		if (ft_next_somebody_leaves(c))
			let_leave(c);
		else if (somebody_is_silent(c, &c->d.active) ||
			 (ft_next_newcomers_wait(c) && ft_next_newcomers_are_due(c)))
			ft_coord_attempt(c);
		else if (c->no_until)
			weigh_failed(c);
		break;
	case FT_COORD_PREPARE:
		if (c->now >= c->until || somebody_is_silent(c, &c->next))
			prepare_is_late(c);
		break;
	case FT_COORD_STALLED:
		if (c->now < c->until)
			break;
		if (knows_epoch(c) && ft_next_is_none(c)) {
			let_leave(c);
			break;
		}
		/* Whoever has not answered since this coordinator came may know of a step
		 * that counts: it is asked again, not let in unheard. */
		if (c->d.valid != c->d.term)
			ft_rebuild_begin(c);
		else
			ft_coord_attempt(c);
		break;
	default:
		break;
	}
}

void ft_coord_lost(struct ft_coord *c, uint64_t id, int64_t now)
{
	struct ft_peer *p = ft_coord_peer(c, id);

	if (p)
		p->heard = INT64_MIN / 2;
	ft_coord_tick(c, now);
}

bool ft_coord_init(struct ft_coord *c, const struct ft_coord_attr *attr,
		   const struct ft_coord_out *out, const struct ft_durable *kept,
		   int64_t now)
{
	memset(c, 0, sizeof(*c));
	c->attr = *attr;
	c->out = *out;
	c->now = now;
	c->d.fresh = kept ? kept->fresh : attr->fresh;
	if (kept) {
		c->d.term = kept->term;
		c->d.valid = kept->valid;
		c->d.sign = kept->sign;
		c->d.commit = kept->commit;
		c->kept = kept->active.count > 0;
		if (!ft_roster_copy(&c->d.active, &kept->active))
			return false;
	}
	c->d.term = ft_term_above(c->d.term, attr->lineage);
	if (!ft_coord_save(c, FT_SAVE_TERM))
		return false;
	if (!c->d.fresh)
		ft_rebuild_begin(c);
	return true;
}

void ft_coord_fini(struct ft_coord *c)
{
	ft_rebuild_fini(c);
	ft_roster_fini(&c->d.active);
	ft_roster_fini(&c->next);
	free(c->peer);
	memset(c, 0, sizeof(*c));
}

const char *ft_coord_state_name(enum ft_coord_state state)
{
	return (unsigned)state >= FT_COORD_STATE_END ? "?" : state_name[state];
}
