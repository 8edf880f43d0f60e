/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is to blame that members could not run a step. Each says whom it waited for; but
 * where one is stuck soon all are, and most wait for somebody that waits itself. So what
 * they say is followed from one to the next:
 *
 * - It ends at somebody that waits for nobody, or has not said anything: that one is to
 *   blame.
 * - It goes round: the path between two of them is broken although both live, and nothing
 *   says which end it is. All of the round are to blame.
 *
 * Once may be chance, or a machine that is too busy. Of those who were to blame for a
 * step in two epochs or more the one most often blamed is out, one at a time: where a
 * member reaches nobody the other end of the round is another one each time, and only it
 * is the same. Of several the one that came last goes.
 *
 * But where a step failed and somebody has said nothing for most of the silence that
 * makes it dead, not even that it lives, there is nothing to be found out: the others
 * would wait out the rest of it, and longer where the coordinator itself runs late, in an
 * epoch that cannot be prepared with it.
 */
#include "config.h"

#include "coll/ft/coord_int.h"

enum { BLAMED_OUT = 2, QUIET_PARTS = 3, QUIET_OF = 4 };

static bool has_voted(const struct ft_coord *c, const struct ft_peer *p)
{
	return p->vote.answer != FT_VOTE_NONE && p->vote.step == c->d.commit.step + 1 &&
	       ft_epoch_same(p->vote.epoch, c->d.active.epoch);
}

bool ft_blame_is_heard(const struct ft_coord *c)
{
	for (uint32_t i = 0; i < c->d.active.count; i++) {
		const struct ft_peer *p = ft_coord_peer(c, c->d.active.entry[i].id);

		if (p && ft_coord_is_alive(c, p) && !has_voted(c, p))
			return false;
	}
	return true;
}

/* It has not said what became of the step, and nothing else, for 3/4 of the silence. */
static bool is_quiet(const struct ft_coord *c, const struct ft_peer *p)
{
	const int64_t most = c->attr.silence_us / QUIET_OF * QUIET_PARTS;

	return !p || (!has_voted(c, p) && c->now - p->heard > most);
}

bool ft_blame_quiet(struct ft_coord *c)
{
	const struct ft_roster *now = &c->d.active;
	uint32_t quiet = 0;

	for (uint32_t i = 0; i < now->count; i++)
		quiet += is_quiet(c, ft_coord_peer(c, now->entry[i].id));
	/* Without half of the members there is no next epoch: they may be back in time.
	 */
	if (quiet == 0 || now->count - quiet < ft_half(now))
		return false;
	for (uint32_t i = 0; i < now->count; i++) {
		struct ft_peer *p = ft_coord_peer(c, now->entry[i].id);

		if (p && is_quiet(c, p))
			p->out = true;
	}
	return true;
}

/* Whom a member waited for; NULL: nobody that takes part. */
static struct ft_peer *waited_for(const struct ft_coord *c, const struct ft_peer *p)
{
	if (!has_voted(c, p) || p->vote.answer != FT_VOTE_NO || !p->vote.suspect ||
	    p->vote.suspect == p->id || ft_roster_find(&c->d.active, p->vote.suspect) < 0)
		return NULL;
	return ft_coord_peer(c, p->vote.suspect);
}

/* Whether `a` rather than `b` is out, of two that are equally to blame. */
static bool came_later(const struct ft_coord *c, const struct ft_peer *a,
		       const struct ft_peer *b)
{
	const struct ft_roster *r = &c->d.active;
	const int cmp = ft_epoch_cmp(r->entry[ft_roster_find(r, a->id)].since,
				     r->entry[ft_roster_find(r, b->id)].since);

	return cmp ? cmp > 0 : a->id > b->id;
}

/* Returns whoever is to be out, of the one that was until now, or NULL, and this one. */
static struct ft_peer *blame(const struct ft_coord *c, struct ft_peer *worst,
			     struct ft_peer *p)
{
	const uint64_t step = c->d.commit.step + 1;

	p->blamed = p->blamed_step == step ? p->blamed + 1 : 1;
	p->blamed_step = step;
	if (p->blamed < BLAMED_OUT)
		return worst;
	if (!worst || p->blamed > worst->blamed ||
	    (p->blamed == worst->blamed && came_later(c, p, worst)))
		return p;
	return worst;
}

void ft_blame_judge(struct ft_coord *c)
{
	struct ft_peer *worst = NULL;

	for (uint32_t i = 0; i < c->peers; i++)
		c->peer[i].walk = 0;
	for (uint32_t i = 0; i < c->d.active.count; i++) {
		struct ft_peer *p = ft_coord_peer(c, c->d.active.entry[i].id);
		struct ft_peer *last = p;
		const uint32_t walk = i + 1;

		if (!p || p->walk || !waited_for(c, p))
			continue;
		for (; p && !p->walk; p = waited_for(c, p)) {
			p->walk = walk;
			last = p;
		}
		if (!p) {
			worst = blame(c, worst, last);
		} else if (p->walk == walk) {
			const struct ft_peer *first = p;

			do {
				worst = blame(c, worst, p);
				p = waited_for(c, p);
			} while (p && p != first);
		}
	}
	if (worst)
		worst->out = true;
}
