/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A coordinator that starts where an epoch is on, with what was kept or without (G4). It
 * asks every member that it hears of, and goes on when no other coordinator can any more:
 *
 * - Where what was kept is the newest there is (nobody promised anything to another
 *   lineage since), half of the kept epoch is enough: another coordinator needs more than
 *   the other half.
 * - Otherwise a majority is needed of the last epoch that anybody was in, of each later
 * one that somebody prepared (it may have been started), and of those that they were to
 *   follow (another one may have followed, too). An epoch needs half of the one before to
 *   prepare, so none can have been started unseen; and none of the majority will take
 * part in an older term from now on.
 *
 * What counts is the most that a member of that epoch heard (one is enough: COMMIT is
 * said only once it is kept), among those that answered; who did not is not in the next
 * epoch.
 */
#include "config.h"

#include <string.h>

#include "coll/ft/coord_int.h"

void ft_rebuild_fini(struct ft_coord *c)
{
	for (uint32_t i = 0; i < FT_KNOWN_MAX; i++)
		ft_roster_fini(&c->known[i].roster);
	c->knowns = 0;
}

/* False: no room. */
static bool known_add(struct ft_coord *c, const struct ft_roster *roster, bool active)
{
	if (ft_epoch_none(roster->epoch))
		return true;
	for (uint32_t i = 0; i < c->knowns; i++) {
		if (ft_epoch_same(c->known[i].roster.epoch, roster->epoch)) {
			c->known[i].active |= active;
			return true;
		}
	}
	if (c->knowns == FT_KNOWN_MAX ||
	    !ft_roster_copy(&c->known[c->knowns].roster, roster))
		return false;
	c->known[c->knowns++].active = active;
	return true;
}

/* An epoch that may have been started has it, as far as anybody said. */
static bool is_known(const struct ft_coord *c, const struct ft_peer *p)
{
	if (!ft_epoch_none(p->active) || !ft_epoch_none(p->pending))
		return true;
	for (uint32_t i = 0; i < c->knowns; i++) {
		if (ft_roster_find(&c->known[i].roster, p->id) >= 0)
			return true;
	}
	return false;
}

/* An answer binds who gives it. A newcomer that no epoch knows counts in no majority, and
 * should another coordinator go on it may still follow that one: it is not asked, and
 * told to wait, so that it knows how this coordinator stands. */
void ft_rebuild_ask(struct ft_coord *c, const struct ft_peer *p)
{
	ft_coord_say(c, p->id, p->wants_in && !is_known(c, p) ? FT_WAIT : FT_QUERY);
}

static void ask_all(struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->peers; i++) {
		c->peer[i].replied = false;
		if (c->state == FT_COORD_REBUILD)
			ft_rebuild_ask(c, &c->peer[i]);
	}
}

void ft_rebuild_begin(struct ft_coord *c)
{
	ft_coord_set_state(c, FT_COORD_REBUILD);
	ft_roster_clear(&c->next);
	c->since = c->now;
	c->knowns = 0;
	if (c->kept && !known_add(c, &c->d.active, true)) {
		ft_coord_set_state(c, FT_COORD_BROKEN);
		return;
	}
	ask_all(c);
}

void ft_rebuild_refused(struct ft_coord *c, uint64_t term)
{
	if (term > c->seen_term)
		c->seen_term = term;
}

/* Two coordinators that raise at the same moments would never come to an end: each waits
 * longer every time, and as long as its lineage says. */
static void raise_term(struct ft_coord *c)
{
	int64_t base = c->attr.rebuild_us > 0 ? c->attr.rebuild_us : 1;
	int64_t next = 2 * c->raise_wait + base;

	c->raise_wait = next > 16 * base ? 16 * base : next;
	c->raise_at = c->now + c->raise_wait + c->attr.lineage % (base / 2 + 1);
	c->d.term = ft_term_above(c->seen_term, c->attr.lineage);
	c->since = c->now; /* all are asked anew */
	if (ft_coord_save(c, FT_SAVE_TERM))
		ask_all(c);
}

static const struct ft_peer *replied(struct ft_coord *c, uint64_t id)
{
	const struct ft_peer *p = ft_coord_peer(c, id);

	return p && p->replied ? p : NULL;
}

static uint32_t replies_of(struct ft_coord *c, const struct ft_roster *roster)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < roster->count; i++)
		n += replied(c, roster->entry[i].id) != NULL;
	return n;
}

static bool has_majority(struct ft_coord *c, const struct ft_roster *roster)
{
	return replies_of(c, roster) > roster->count / 2;
}

static const struct ft_roster *known_find(const struct ft_coord *c, struct ft_epoch epoch)
{
	for (uint32_t i = 0; i < c->knowns; i++) {
		if (ft_epoch_same(c->known[i].roster.epoch, epoch))
			return &c->known[i].roster;
	}
	return NULL;
}

/* Whether what was kept is the newest, as far as those who answered know. */
static bool kept_is_newest(const struct ft_coord *c)
{
	for (uint32_t i = 0; c->kept && i < c->peers; i++) {
		const struct ft_peer *p = &c->peer[i];

		if (p->replied && (p->prior > c->d.valid ||
				   ft_epoch_cmp(p->active, c->d.active.epoch) > 0))
			return false;
	}
	return c->kept;
}

/* The last epoch that anybody was in. */
static const struct ft_roster *newest_active(const struct ft_coord *c)
{
	const struct ft_roster *last = NULL;

	for (uint32_t i = 0; i < c->knowns; i++) {
		const struct ft_known *k = &c->known[i];

		if (k->active &&
		    (!last || ft_epoch_cmp(k->roster.epoch, last->epoch) > 0))
			last = &k->roster;
	}
	return last;
}

/* The epoch that the next one follows, or NULL: nobody was in any. That is the last one;
 * but where a later one was prepared to follow an earlier, its coordinator had found, by
 * a majority, that the last could not go on: those few who are in it are out. */
static const struct ft_roster *last_epoch(const struct ft_coord *c)
{
	const struct ft_roster *last = newest_active(c);
	const struct ft_peer *latest = NULL;

	for (uint32_t i = 0; last && i < c->peers; i++) {
		const struct ft_peer *p = &c->peer[i];

		if (p->replied && !ft_epoch_none(p->active) &&
		    ft_epoch_cmp(p->pending, last->epoch) > 0 &&
		    (!latest || ft_epoch_cmp(p->pending, latest->pending) > 0))
			latest = p;
	}
	return latest ? known_find(c, latest->active) : last;
}

/* Whether its coordinator let go of an epoch that it prepared: later it, or the same one
 * in another life, which knows what it started, prepared one that follows an earlier. */
static bool was_dropped(const struct ft_coord *c, const struct ft_roster *roster)
{
	const struct ft_epoch e = roster->epoch;

	for (uint32_t i = 0; i < c->peers; i++) {
		const struct ft_peer *p = &c->peer[i];

		if (p->replied && !ft_epoch_none(p->active) &&
		    ft_lineage(p->pending.term) == ft_lineage(e.term) &&
		    ft_epoch_cmp(p->pending, e) > 0 && ft_epoch_cmp(p->active, e) < 0)
			return true;
	}
	return false;
}

/* Whether an epoch was never started, and never will be: all of its members would have
 * had to prepare for it, and one that answered did not. It has promised a later term, or
 * this one, whose coordinator knows what it started. */
static bool never_started(struct ft_coord *c, const struct ft_roster *roster)
{
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct ft_peer *p = replied(c, roster->entry[i].id);

		if (p && ft_epoch_cmp(p->pending, roster->epoch) < 0 &&
		    ft_epoch_cmp(p->active, roster->epoch) < 0)
			return true;
	}
	return was_dropped(c, roster);
}

static bool majorities(struct ft_coord *c, const struct ft_roster *last)
{
	for (uint32_t i = 0; i < c->knowns; i++) {
		const struct ft_roster *roster = &c->known[i].roster;

		if (ft_epoch_cmp(roster->epoch, last->epoch) >= 0 &&
		    !never_started(c, roster) && !has_majority(c, roster))
			return false;
	}
	for (uint32_t i = 0; i < c->peers; i++) {
		const struct ft_peer *p = &c->peer[i];
		const struct ft_roster *base = known_find(c, p->active);

		if (p->replied && ft_epoch_cmp(p->pending, last->epoch) > 0 && base &&
		    !has_majority(c, base))
			return false;
	}
	return true;
}

/* What counts: the most that one of the epoch heard, or that was kept of it. */
static struct ft_commit best_commit(struct ft_coord *c, const struct ft_roster *last)
{
	bool kept = c->kept && ft_epoch_same(last->epoch, c->d.active.epoch);
	struct ft_commit best = kept ? c->d.commit : (struct ft_commit){{0, 0}, 0};

	for (uint32_t i = 0; i < last->count; i++) {
		const struct ft_peer *p = replied(c, last->entry[i].id);

		if (p && ft_epoch_cmp(p->active, last->epoch) <= 0 &&
		    p->commit.step > best.step)
			best = p->commit;
	}
	return best;
}

/* A member that prepared for the epoch, did not hear that it was started, and then
 * prepared for another one, of another coordinator, which came to nothing: it does not
 * know the epoch any more. No step counted there, since none does without the vote of all
 * members. So one that was in no epoch before comes in anew, and one that was goes on
 * from that one. In the epoch's majority they count as all do. */
static void note_missed(struct ft_peer *p, const struct ft_roster *last)
{
	const bool missed = p->replied && !ft_epoch_same(p->active, last->epoch) &&
			    !ft_epoch_same(p->pending, last->epoch);

	p->anew = missed && ft_epoch_none(p->active);
	p->missed = missed && !ft_epoch_none(p->active);
}

static void decide(struct ft_coord *c, const struct ft_roster *last)
{
	c->d.commit = best_commit(c, last);
	if (!ft_roster_copy(&c->d.active, last)) {
		ft_coord_set_state(c, FT_COORD_BROKEN);
		return;
	}
	for (uint32_t i = 0; i < c->peers; i++)
		c->peer[i].anew = c->peer[i].missed = false;
	for (uint32_t i = 0; i < last->count; i++) {
		struct ft_peer *p = ft_coord_peer(c, last->entry[i].id);

		if (p) {
			p->out = !p->replied;
			p->wants_in = false; /* it is in: it missed that it was let in */
			note_missed(p, last);
		}
	}
	ft_coord_attempt(c);
}

static void check(struct ft_coord *c)
{
	const struct ft_roster *last;
	bool newest = kept_is_newest(c);
	bool enough;

	last = newest ? &c->d.active : last_epoch(c);
	if (!last)
		return;
	enough = newest ? replies_of(c, last) >= ft_half(last) : majorities(c, last);
	if (!enough)
		return;
	if (replies_of(c, last) == last->count || c->now - c->since >= c->attr.rebuild_us)
		decide(c, last);
}

void ft_rebuild_state(struct ft_coord *c, struct ft_peer *p, const struct ft_msg *msg)
{
	if (msg->term != c->d.term || p->replied)
		return;
	if (!known_add(c, msg->active_list, true) ||
	    !known_add(c, msg->pending_list, false))
		return;
	if (c->d.sign == 0)
		c->d.sign = msg->sign;
	p->prior = msg->prior;
	p->replied = true;
	check(c);
}

void ft_rebuild_tick(struct ft_coord *c)
{
	if (c->seen_term > c->d.term && c->now >= c->raise_at)
		raise_term(c);
	if (c->state == FT_COORD_REBUILD)
		check(c);
}
