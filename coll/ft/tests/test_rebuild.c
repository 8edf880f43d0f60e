/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a coordinator that starts where an epoch is on makes of what members say, message
 * by message, and what they make of that. Schedules of everything at once are in
 * test_model.
 */
#include "config.h"

#include "coll/ft/member.h"
#include "coll/ft/tests/desk.h"
#include "util/tap.h"

enum { LATER = 9, LATER_STILL = 10 }; /* other lineages */

/* The members of an epoch, all in it since another one. */
static struct ft_roster roster_of(struct ft_epoch epoch, struct ft_epoch since,
				  struct ft_entry *entry, uint32_t count,
				  const uint64_t *id)
{
	for (uint32_t i = 0; i < count; i++)
		entry[i] = (struct ft_entry){
			.id = id[i], .group = (uint32_t)id[i], .since = since};
	return (struct ft_roster){
		.epoch = epoch, .count = count, .room = count, .entry = entry};
}

/* It shows that it lives, is asked, and answers. */
static void state(struct desk *d, uint64_t id, const struct ft_roster *active,
		  const struct ft_roster *pending)
{
	static const struct ft_roster nobody;
	const struct ft_epoch none = {0, 0};
	struct ft_msg msg = {.type = FT_STATUS,
			     .id = id,
			     .term = pending ? pending->epoch.term : active->epoch.term,
			     .active = active ? active->epoch : none,
			     .pending = pending ? pending->epoch : none};

	desk_hear(d, &msg);
	msg.type = FT_STATE;
	msg.term = d->c.d.term;
	msg.sign = 1;
	msg.active_list = active ? active : &nobody;
	msg.pending_list = pending ? pending : &nobody;
	desk_hear(d, &msg);
}

/* It takes a term that is later still, and asks anew. */
static void hear_of_term(struct desk *d, uint64_t id, uint64_t term)
{
	desk_hear(d, &(struct ft_msg){.type = FT_REFUSED, .id = id, .term = term});
	d->now += 10000 * MS;
	ft_coord_tick(&d->c, d->now);
}

static const struct ft_entry *next_entry(const struct desk *d, uint64_t id)
{
	const int at = ft_roster_find(&d->c.next, id);

	return at < 0 ? NULL : &d->c.next.entry[at];
}

/* A newcomer prepared for an epoch, of which nobody else did, and died. */
static void test_never_started(void)
{
	const struct ft_epoch on = {ft_term_above(0, LATER), 1}, to_be = {on.term, 2};
	struct ft_entry on_entry[2], to_be_entry[2];
	const struct ft_roster a =
		roster_of(on, on, on_entry, 2, (const uint64_t[]){1, 2});
	const struct ft_roster b =
		roster_of(to_be, on, to_be_entry, 2, (const uint64_t[]){1, 3});
	struct desk d;

	desk_start(&d, 2, 1, false);
	state(&d, 3, NULL, &b);
	/* All are asked anew, in a later term. */
	hear_of_term(&d, 3, ft_term_above(d.c.d.term, LATER));
	state(&d, 1, &a, NULL);
	tap_ok(d.c.state == FT_COORD_REBUILD, "one of two is no majority");
	state(&d, 2, &a, NULL);
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2,
	       "an epoch that one of its members never prepared for is not waited for");
	ft_coord_fini(&d.c);
}

/* Two prepared for an epoch, one of whom died; the other one and two more prepared then
 * for one of the same coordinator, that follows an earlier one than that. */
static void test_dropped(void)
{
	const struct ft_epoch on = {ft_term_above(0, LATER), 1}, to_be = {on.term, 2};
	const struct ft_epoch then = {ft_term_above(on.term, LATER), 1};
	struct ft_entry entry[3][4];
	const struct ft_roster a =
		roster_of(on, on, entry[0], 4, (const uint64_t[]){1, 2, 3, 4});
	const struct ft_roster b =
		roster_of(to_be, on, entry[1], 2, (const uint64_t[]){1, 2});
	const struct ft_roster c =
		roster_of(then, on, entry[2], 3, (const uint64_t[]){1, 3, 4});
	struct desk d;

	desk_start(&d, 4, 1, false);
	state(&d, 2, &a, &b);
	hear_of_term(&d, 2, then.term);
	state(&d, 1, &a, &c);
	state(&d, 3, &a, &c);
	state(&d, 4, &a, &c);
	d.now += 600 * MS;
	ft_coord_tick(&d.c, d.now);
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 3,
	       "nor is one that its own coordinator let go of");
	ft_coord_fini(&d.c);
}

/* Two prepared for the epoch that two others are in, missed its start, and prepared for
 * another one then, of which nothing came; as of one of the others later. */
static void test_missed(void)
{
	const uint64_t id[] = {1, 2, 3, 4};
	const struct ft_epoch first = {ft_term_above(0, LATER), 1};
	const struct ft_epoch on = {ft_term_above(first.term, LATER), 1};
	const struct ft_epoch other = {ft_term_above(on.term, LATER_STILL), 1};
	const struct ft_epoch last = {ft_term_above(other.term, LATER), 1};
	struct ft_entry entry[4][4];
	const struct ft_roster a = roster_of(first, first, entry[0], 2, id);
	const struct ft_roster b = roster_of(on, first, entry[1], 4, id);
	const struct ft_roster c = roster_of(other, first, entry[2], 4, id);
	const struct ft_roster e = roster_of(last, first, entry[3], 4, id);
	const struct ft_entry *old, *anew;
	uint32_t before = 0;
	struct desk d;

	entry[1][2].since = entry[1][3].since = on;
	entry[2][2].since = entry[2][3].since = other;
	entry[3][2].since = entry[3][3].since = on;
	desk_start(&d, 4, 1, false);
	hear_of_term(&d, 1, last.term);
	state(&d, 1, &b, NULL);
	state(&d, 2, &a, &c);
	state(&d, 4, &b, &e);
	state(&d, 3, NULL, &c);
	old = next_entry(&d, 2);
	anew = next_entry(&d, 3);
	tap_ok(d.c.state == FT_COORD_PREPARE && ft_epoch_same(d.c.d.active.epoch, on) &&
		       old && anew,
	       "all go on from the epoch that some of them were in");
	tap_ok(old && ft_epoch_same(old->since, first), "one that was in, as it was");
	tap_ok(anew && ft_epoch_same(anew->since, d.c.next.epoch),
	       "one that never was, as a newcomer");
	for (int i = 0; i < d.count; i++) {
		if (d.said[i].type == FT_PREPARE && d.said[i].id == 2)
			before = d.said[i].before;
	}
	tap_is_int(before, 4, "who was in is told whom the epoch had that it missed");
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 4, "and it is on");
	ft_coord_fini(&d.c);
}

/* The same from the member's side. */

static void ignore_say(void *arg, const struct ft_msg *msg)
{
	(void)arg;
	(void)msg;
}

static void ignore_tell(void *arg, enum ft_event event, const struct ft_member *m)
{
	(void)arg;
	(void)event;
	(void)m;
}

static void to_prepare(struct ft_member *m, const struct ft_roster *active,
		       const struct ft_roster *next, bool told)
{
	ft_member_hear(
		m, &(struct ft_msg){.type = FT_QUERY, .id = 2, .term = next->epoch.term});
	ft_member_hear(m, &(struct ft_msg){.type = FT_PREPARE,
					   .id = 2,
					   .term = next->epoch.term,
					   .active = active->epoch,
					   .pending = next->epoch,
					   .active_list = told ? active : NULL,
					   .pending_list = next});
}

static void test_member_missed(void)
{
	const uint64_t id[] = {1, 2};
	const struct ft_member_attr attr = {
		.self = {.id = 2, .group = 2}, .sign = 1, .beat_us = 100 * MS};
	const struct ft_member_out out = {NULL, ignore_say, ignore_tell};
	const struct ft_roster none = {0};
	struct ft_entry entry[5][2];
	struct ft_roster e[5];
	struct ft_member m;
	uint64_t term = 0;

	for (int i = 0; i < 5; i++) {
		term = ft_term_above(term, (uint32_t)(LATER + i));
		e[i] = roster_of((struct ft_epoch){term, 1},
				 (struct ft_epoch){ft_term_above(0, LATER), 1}, entry[i],
				 2, id);
	}
	ft_member_init(&m, &attr, &out);
	to_prepare(&m, &none, &e[0], false);
	ft_member_hear(&m, &(struct ft_msg){.type = FT_START,
					    .id = 2,
					    .term = e[0].epoch.term,
					    .active = e[0].epoch});
	to_prepare(&m, &e[0], &e[1], false);
	to_prepare(&m, &e[0], &e[2], false);
	to_prepare(&m, &e[1], &e[3], false);
	tap_ok(m.phase == FT_PHASE_SEALED && ft_epoch_same(m.pending.epoch, e[2].epoch),
	       "a member prepares for nothing that follows an epoch it does not know");
	/* In which somebody else was, under its id, does not count. */
	entry[1][1].since = e[1].epoch;
	to_prepare(&m, &e[1], &e[3], true);
	tap_ok(ft_epoch_same(m.pending.epoch, e[2].epoch),
	       "nor where another life of it was in that one");
	entry[1][1].since = e[0].epoch;
	to_prepare(&m, &e[1], &e[3], true);
	tap_ok(m.phase == FT_PHASE_SEALED && ft_epoch_same(m.active.epoch, e[1].epoch) &&
		       ft_epoch_same(m.pending.epoch, e[3].epoch) && m.active.count == 2,
	       "where it is told who was in it, itself as well, it does");
	ft_member_hear(&m, &(struct ft_msg){.type = FT_START,
					    .id = 2,
					    .term = e[3].epoch.term,
					    .active = e[3].epoch});
	tap_ok(m.phase == FT_PHASE_ACTIVE && ft_epoch_same(m.active.epoch, e[3].epoch),
	       "and takes part");
	ft_member_fini(&m);
}

int main(void)
{
	test_never_started();
	test_dropped();
	test_missed();
	test_member_missed();
	return tap_done();
}
