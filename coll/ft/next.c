/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is in the next epoch: those of the one that is on who live and stay, newcomers,
 * and, where that is less than half of the one that is on, of those who leave as many as
 * it takes. Groups come, stay and leave as a whole. Nothing here changes the state of the
 * machine or says anything.
 */
#include "config.h"

#include "coll/ft/coord_int.h"

enum { JOIN_DOUBLED = 4 }; /* times that waiting newcomers are put off at most */

/* Whether this coordinator can let it in: it wants, and follows no later one. */
bool ft_next_may_enter(const struct ft_coord *c, const struct ft_peer *p)
{
	return p->wants_in && !p->out && p->promised <= c->d.term;
}

/* Whether it can be in the next epoch: of those who leave, or of those who stay. */
static bool can_follow(const struct ft_coord *c, uint64_t id, bool leaving)
{
	const struct ft_peer *p = ft_coord_peer(c, id);

	return p && !p->out && p->leaving == leaving && ft_coord_is_alive(c, p);
}

/* Adds one of the epoch. False: no memory. */
static bool next_add(struct ft_coord *c, const struct ft_entry *entry)
{
	struct ft_entry e = *entry;

	if (ft_coord_peer(c, e.id)->anew)
		e.since = c->next.epoch;
	return ft_roster_add(&c->next, &e);
}

/* Adds those of the epoch that live and stay. False: no memory. */
static bool next_add_staying(struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->d.active.count; i++) {
		const struct ft_entry *e = &c->d.active.entry[i];

		if (can_follow(c, e->id, false) && !next_add(c, e))
			return false;
	}
	return true;
}

/* How long newcomers wait for the end of a step. Each of its epochs that failed makes it
 * twice as long: who joins again and again must not end all the attempts of those that
 * would get there without it. */
static int64_t join_wait(const struct ft_coord *c)
{
	const uint32_t doubled = c->failed < JOIN_DOUBLED ? c->failed : JOIN_DOUBLED;

	return c->attr.join_us > INT64_MAX >> JOIN_DOUBLED ? c->attr.join_us
							   : c->attr.join_us << doubled;
}

/* A newcomer has waited long enough, or need not: no step fails. */
bool ft_next_newcomers_are_due(const struct ft_coord *c)
{
	return c->joiner_since && c->now - c->joiner_since >= join_wait(c);
}

static bool newcomers_come(const struct ft_coord *c)
{
	return c->failed == 0 || c->d.active.count == 0 || ft_next_newcomers_are_due(c);
}

/* The end of the group that begins at a place of the epoch's list. */
static uint32_t group_end(const struct ft_roster *roster, uint32_t first)
{
	uint32_t i = first + 1;

	while (i < roster->count && roster->entry[i].group == roster->entry[first].group)
		i++;
	return i;
}

static uint32_t count_followers(const struct ft_coord *c, bool leaving, uint32_t first,
				uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < end; i++)
		n += can_follow(c, c->d.active.entry[i].id, leaving);
	return n;
}

static bool next_add_newcomers(struct ft_coord *c)
{
	/* Those who leave may be needed once more. */
	const uint32_t most =
		FT_MEMBERS_MAX - count_followers(c, true, 0, c->d.active.count);

	for (uint32_t i = 0; newcomers_come(c) && i < c->peers && c->next.count < most;
	     i++) {
		struct ft_peer *p = &c->peer[i];

		if (!ft_next_may_enter(c, p) || !ft_coord_is_alive(c, p))
			continue;
		p->entry.since = c->next.epoch;
		if (!ft_roster_add(&c->next, &p->entry))
			return false;
	}
	return true;
}

/* Those of the next epoch that are of the one that is on. */
static uint32_t survivors(const struct ft_coord *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->next.count; i++) {
		const struct ft_entry *e = &c->next.entry[i];

		n += !ft_epoch_same(e->since, c->next.epoch) ||
		     ft_coord_peer(c, e->id)->anew;
	}
	return n;
}

/* Adds as many of a group of the epoch as make it whole, then more of it until half of
 * the epoch is there. False: no memory. */
static bool next_add_group(struct ft_coord *c, uint32_t first, uint32_t end)
{
	uint32_t of_group = 0;

	for (int leaving = 0; leaving < 2; leaving++) {
		for (uint32_t i = first; i < end; i++) {
			const struct ft_entry *e = &c->d.active.entry[i];

			if (!can_follow(c, e->id, leaving))
				continue;
			if (of_group >= c->attr.group_size &&
			    survivors(c) >= ft_half(&c->d.active))
				return true;
			if (!next_add(c, e))
				return false;
			of_group++;
		}
	}
	return true;
}

/* Half of an epoch must be in the next: where too many leave at once some groups of them
 * have to wait for the one after, each as a whole. False: no memory. */
static bool next_add_leaving(struct ft_coord *c)
{
	const struct ft_roster *now = &c->d.active;

	for (uint32_t i = 0, end; i < now->count; i = end) {
		end = group_end(now, i);
		if (survivors(c) >= ft_half(now))
			break;
		if (count_followers(c, true, i, end) > 0 &&
		    count_followers(c, true, i, end) +
				    count_followers(c, false, i, end) >=
			    c->attr.group_size &&
		    !next_add_group(c, i, end))
			return false;
	}
	return true;
}

/* The next epoch's members: those of this one that live and stay, newcomers, and who
 * leaves as far as it must. False: no memory. */
bool ft_next_list(struct ft_coord *c)
{
	c->next.epoch = (struct ft_epoch){c->d.term, ++c->seq};
	c->next.count = 0;
	if (!next_add_staying(c) || !next_add_newcomers(c))
		return false;
	ft_roster_whole_groups(&c->next, c->attr.group_size);
	return next_add_leaving(c);
}

/* Without half of the members, others could have rebuilt a coordinator from a majority;
 * without anybody nobody would know what counts. */
bool ft_next_suffices(const struct ft_coord *c)
{
	if (c->d.active.count)
		return survivors(c) >= ft_half(&c->d.active);
	return c->next.count >= c->attr.size && c->next.count > 0;
}

/* A newcomer whose group is complete, or where none of it is taken. */
bool ft_next_newcomers_wait(const struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->peers; i++) {
		uint32_t n = 0;

		if (!ft_next_may_enter(c, &c->peer[i]))
			continue;
		for (uint32_t k = 0; k < c->peers; k++) {
			n += ft_next_may_enter(c, &c->peer[k]) &&
			     c->peer[k].entry.group == c->peer[i].entry.group;
		}
		if (n >= c->attr.group_size)
			return true;
	}
	return false;
}

bool ft_next_is_leaving(const struct ft_coord *c, uint64_t id)
{
	const struct ft_peer *p = ft_coord_peer(c, id);

	return p && p->leaving;
}

/* Of every group so many leave that it is not whole without them: there is no next epoch.
 * Whether the others live does not matter: a group leaves as a whole. */
bool ft_next_is_none(const struct ft_coord *c)
{
	const struct ft_roster *now = &c->d.active;

	for (uint32_t i = 0, end; i < now->count; i = end) {
		uint32_t stay = 0;

		end = group_end(now, i);
		for (uint32_t k = i; k < end; k++)
			stay += !ft_next_is_leaving(c, now->entry[k].id);
		if (stay >= c->attr.group_size)
			return false;
	}
	return now->count > 0;
}

bool ft_next_somebody_leaves(const struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->d.active.count; i++) {
		if (ft_next_is_leaving(c, c->d.active.entry[i].id))
			return true;
	}
	return false;
}
