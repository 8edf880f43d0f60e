/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator's machine, message by message: whose promise ends it, how groups come
 * and go, whoever leaves, and who is out when a step cannot be run. Schedules of
 * everything at once are in test_model.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/ft/tests/desk.h"
#include "util/tap.h"

enum { CROWD = 8 };

/* Two members, an epoch that is on. */
static void desk_of_two(struct desk *d)
{
	desk_open(d, 2, 1);
	desk_join(d, 1, 1, 0);
	desk_join(d, 2, 2, 0);
	desk_prepare(d);
	if (d->c.state != FT_COORD_STEADY || d->c.d.active.count != 2)
		tap_bail("there is no epoch of two");
	d->count = 0;
}

static void test_newcomers(void)
{
	struct desk d;
	uint64_t later;

	desk_of_two(&d);
	later = ft_term_above(d.c.d.term, 9);
	desk_join(&d, 3, 3, later);
	tap_ok(d.c.state == FT_COORD_STEADY,
	       "a newcomer that follows a later term ends nothing by asking in");
	tap_is_int(desk_fenced(&d, 3), FT_REASON_TERM,
		   "and is told why it is not let in");
	desk_hear(&d, &(struct ft_msg){.type = FT_REFUSED, .id = 3, .term = later});
	desk_status(&d, 4, later, false);
	tap_ok(d.c.state == FT_COORD_STEADY, "nor by refusing, nor who never asked in");
	d.now += 200 * MS;
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_STEADY, "no epoch is prepared for it");

	/* One that promises while it is asked to prepare. */
	desk_join(&d, 5, 5, 0);
	d.now += 200 * MS;
	desk_status(&d, 1, d.c.d.term, false);
	desk_status(&d, 2, d.c.d.term, false);
	desk_join(&d, 5, 5, 0);
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 3,
	       "a newcomer is waited for");
	desk_hear(&d, &(struct ft_msg){.type = FT_REFUSED, .id = 5, .term = later});
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 2,
	       "it refuses, and the others go on without it");
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2, "at once");
	ft_coord_fini(&d.c);
}

static void test_members(void)
{
	struct desk d;

	desk_of_two(&d);
	desk_hear(&d, &(struct ft_msg){.type = FT_REFUSED,
				       .id = 2,
				       .term = ft_term_above(d.c.d.term, 9)});
	tap_ok(d.c.state == FT_COORD_OVER,
	       "a member that follows a later term says that another took over");
	ft_coord_fini(&d.c);
}

/* Where no epoch is on a coordinator takes a term that newcomers can follow. */
static void test_forming(void)
{
	struct desk d;
	uint64_t later;

	desk_open(&d, 2, 1);
	later = ft_term_above(ft_term_above(d.c.d.term, 9), 9);
	desk_join(&d, 1, 1, later);
	desk_join(&d, 2, 2, 0);
	tap_ok(d.c.state == FT_COORD_FORM, "one of the first two cannot follow yet");
	d.now += 10000 * MS;
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.d.term > later, "the coordinator takes a later term still");
	desk_join(&d, 2, 2, 0);
	desk_join(&d, 1, 1, later);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 2, "both are asked");
	/* And where it hears of it late. */
	later = ft_term_above(d.c.d.term, 9);
	desk_hear(&d, &(struct ft_msg){.type = FT_REFUSED, .id = 1, .term = later});
	tap_ok(d.c.state == FT_COORD_FORM, "a refusal does not end it");
	d.now += 100000 * MS;
	ft_coord_tick(&d.c, d.now);
	desk_join(&d, 1, 1, later);
	desk_join(&d, 2, 2, 0);
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2,
	       "the first epoch is on");
	ft_coord_fini(&d.c);
}

static void test_groups(void)
{
	struct desk d;

	desk_open(&d, 4, 2);
	for (uint64_t id = 1; id <= 4; id++)
		desk_join(&d, id, (uint32_t)(id + 1) / 2, 0);
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 4,
	       "two groups of two");
	/* One of a group dies: the other one is out. */
	ft_coord_lost(&d.c, 3, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 2,
	       "a group with a dead member is not in the next epoch");
	desk_prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2 &&
		       desk_fenced(&d, 4) == FT_REASON_EXCLUDED,
	       "who is left of it is told that it is out");
	/* Half a group waits, a whole one comes in. */
	desk_join(&d, 5, 7, 0);
	d.now += 200 * MS;
	desk_status(&d, 1, d.c.d.term, false);
	desk_status(&d, 2, d.c.d.term, false);
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_STEADY, "half a group is not let in");
	desk_join(&d, 6, 7, 0);
	d.now += 200 * MS;
	desk_status(&d, 1, d.c.d.term, false);
	desk_status(&d, 2, d.c.d.term, false);
	desk_join(&d, 5, 7, 0);
	desk_join(&d, 6, 7, 0);
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 4, "a whole one is");
	desk_prepare(&d);
	tap_ok(d.c.d.active.count == 4, "four again");
	desk_leave(&d, 1);
	desk_prepare(&d);
	/* Half of an epoch has to be in the next: group 1 is the other half. */
	ft_coord_tick(&d.c, d.now);
	desk_prepare(&d);
	tap_ok(d.c.d.active.count == 2 && ft_roster_find(&d.c.d.active, 1) < 0 &&
		       ft_roster_find(&d.c.d.active, 2) < 0 &&
		       desk_said(&d, FT_FENCED, 2),
	       "one leaves, and its group is out with it");
	ft_coord_fini(&d.c);
}

static uint64_t rng;

static uint32_t below(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng % n);
}

/* ---- leaving ----------------------------------------------------------------------- */

/* Groups of so many, with members 1, 2, ..., in an epoch that is on. */
static void desk_of_groups(struct desk *d, uint32_t groups, uint32_t group_size)
{
	const uint32_t size = groups * group_size;

	desk_open(d, size, group_size);
	for (uint32_t i = 0; i < size; i++)
		desk_join(d, i + 1, i / group_size, 0);
	desk_prepare(d);
	if (d->c.state != FT_COORD_STEADY || d->c.d.active.count != size)
		tap_bail("there is no epoch of %u groups", groups);
	d->count = 0;
}

/* The time goes on, as long as it brings a next epoch, all of whom prepare. */
static void settle(struct desk *d)
{
	for (int i = 0; i < 100 && d->c.state < FT_COORD_DONE; i++) {
		const struct ft_epoch before = d->c.d.active.epoch;

		desk_prepare(d);
		for (uint32_t k = 0; k < d->c.d.active.count; k++)
			desk_status(d, d->c.d.active.entry[k].id, d->c.d.term, false);
		d->now += 10 * MS;
		ft_coord_tick(&d->c, d->now);
		if (d->c.state == FT_COORD_STEADY &&
		    ft_epoch_same(before, d->c.d.active.epoch))
			return;
	}
}

/* The last group: one of it leaves and the other one does not, yet. */
static void test_last_group(void)
{
	struct desk d;

	desk_of_groups(&d, 1, 2);
	desk_leave(&d, 2);
	settle(&d);
	tap_ok(d.c.state == FT_COORD_DONE && desk_fenced(&d, 2) == FT_REASON_LEFT,
	       "one of the last group leaves: it is let go");
	tap_is_int(desk_fenced(&d, 1), FT_REASON_EXCLUDED, "and the group with it");
	d.count = 0;
	desk_leave(&d, 1);
	tap_is_int(desk_fenced(&d, 1), FT_REASON_LEFT, "who did not hear it asks again");
	d.count = 0;
	desk_status(&d, 1, d.c.d.term, false);
	tap_is_int(desk_fenced(&d, 1), FT_REASON_EXCLUDED, "or shows that it lives");
	ft_coord_fini(&d.c);

	/* Its last word comes while too few live. */
	desk_of_groups(&d, 2, 1);
	ft_coord_lost(&d.c, 2, d.now);
	desk_prepare(&d);
	desk_leave(&d, 1);
	settle(&d);
	tap_ok(d.c.state == FT_COORD_DONE && desk_fenced(&d, 1) == FT_REASON_LEFT,
	       "the last one leaves after the others died");
	ft_coord_fini(&d.c);
	desk_of_groups(&d, 3, 2);
	for (uint64_t id = 2; id <= 6; id += 2)
		ft_coord_lost(&d.c, id, d.now);
	tap_ok(d.c.state == FT_COORD_STALLED, "no group is whole any more");
	desk_leave(&d, 1);
	desk_leave(&d, 3);
	tap_ok(d.c.state == FT_COORD_STALLED, "it waits for the third one's other half");
	desk_leave(&d, 5);
	tap_ok(d.c.state == FT_COORD_DONE && desk_fenced(&d, 1) == FT_REASON_LEFT &&
		       desk_fenced(&d, 3) == FT_REASON_LEFT &&
		       desk_fenced(&d, 5) == FT_REASON_LEFT,
	       "of each group one leaves: all are let go");
	ft_coord_fini(&d.c);
}

/* Some of the members leave, each at any moment: all of them are let go, and whoever is
 * of a group of which nobody leaves goes on. */
static bool leaving(uint64_t seed)
{
	uint32_t groups, group_size, left[SAID], lefts = 0, stay = 0;
	struct desk d;
	bool good;

	rng = seed * 2 + 1;
	group_size = 1 + below(3);
	groups = 1 + below(6);
	desk_of_groups(&d, groups, group_size);
	for (uint32_t g = 0; g < groups; g++) {
		const uint32_t leavers = below(group_size + 1);

		stay += leavers == 0;
		for (uint32_t i = 0; i < leavers; i++)
			left[lefts++] = g * group_size + i + 1;
	}
	for (uint32_t i = lefts; i > 0; i--) {
		const uint32_t at = below(i), id = left[at];

		left[at] = left[i - 1];
		left[i - 1] = id;
		desk_leave(&d, id);
		if (below(2))
			desk_prepare(&d);
		if (below(2)) {
			d.now += 10 * MS;
			ft_coord_tick(&d.c, d.now);
		}
	}
	settle(&d);
	good = stay ? d.c.state == FT_COORD_STEADY : d.c.state == FT_COORD_DONE;
	good &= !stay || d.c.d.active.count == stay * group_size;
	for (uint32_t i = 0; i < lefts; i++)
		good &= (d.out >> left[i] & 1) == 1;
	if (!good)
		tap_diag("seed %" PRIu64 ": %u of %u groups of %u stay, %u members "
			 "leave: state %s, %u members",
			 seed, stay, groups, group_size, lefts,
			 ft_coord_state_name(d.c.state), d.c.d.active.count);
	ft_coord_fini(&d.c);
	return good;
}

static void test_leaving(void)
{
	const char *text = getenv("WEFT_SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
	bool good = true;

	for (uint64_t i = 0; i < 2000 && good; i++)
		good = leaving(seed + i);
	tap_ok(good,
	       "seed %" PRIu64
	       ": whoever leaves is let go, whenever it is that others do",
	       seed);
}

/* ---- steps that cannot be run ------------------------------------------------------ */

static void crowd_open(struct desk *d, uint32_t size)
{
	desk_open(d, size, 1);
	for (uint64_t id = 1; id <= size; id++)
		desk_join(d, id, (uint32_t)id, 0);
	desk_prepare(d);
	if (d->c.state != FT_COORD_STEADY || d->c.d.active.count != size)
		tap_bail("there is no epoch of %u", size);
	d->count = 0;
}

static bool takes_part(const struct desk *d, uint64_t id)
{
	return ft_roster_find(&d->c.d.active, id) >= 0;
}

/* What became of the step that is on. suspect: with NO, whom it waited for. */
static void vote(struct desk *d, uint64_t id, enum ft_answer answer, uint64_t suspect)
{
	desk_hear(d, &(struct ft_msg){.type = FT_STATUS,
				      .id = id,
				      .term = d->c.d.term,
				      .active = d->c.d.active.epoch,
				      .commit = d->c.d.commit,
				      .vote = {.epoch = d->c.d.active.epoch,
					       .step = d->c.d.commit.step + 1,
					       .suspect = suspect,
					       .answer = answer}});
}

/* The members of the epoch in any order, the two first. */
static uint32_t in_any_order(const struct desk *d, uint64_t a, uint64_t b, uint64_t *id)
{
	const uint32_t count = d->c.d.active.count;
	uint32_t n = 2;

	id[0] = a;
	id[1] = b;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t it = d->c.d.active.entry[i].id;
		uint32_t at;

		if (it == a || it == b)
			continue;
		at = 2 + below(n - 1);
		id[n++] = id[at];
		id[at] = it;
	}
	return n;
}

/* The step of an epoch in which two do not hear each other: they wait for each other,
 * each of the rest for one that is stuck already. They say so in any order, and all do
 * what the coordinator makes of it. Who is out comes again as a newcomer, at once. */
static void step_fails(struct desk *d, uint64_t a, uint64_t b, uint64_t *next_id)
{
	uint64_t id[SAID] = {0}, waits[SAID];
	const uint32_t count = in_any_order(d, a, b, id);
	const uint32_t before = d->c.d.active.count;

	waits[0] = b;
	waits[1] = a;
	for (uint32_t i = 2; i < count; i++)
		waits[i] = id[below(i)];
	for (uint32_t left = count; left > 0; left--) {
		const uint32_t i = below(left);

		vote(d, id[i], FT_VOTE_NO, waits[i]);
		id[i] = id[left - 1];
		waits[i] = waits[left - 1];
	}
	d->now += 200 * MS;
	for (uint32_t i = 0; i < before; i++) {
		if (d->c.state == FT_COORD_STEADY)
			desk_status(d, d->c.d.active.entry[i].id, d->c.d.term, false);
	}
	ft_coord_tick(&d->c, d->now);
	desk_prepare(d);
	for (uint32_t i = d->c.d.active.count; i < before; i++) {
		desk_join(d, *next_id, (uint32_t)*next_id, 0);
		++*next_id;
	}
	d->count = 0;
}

/* The step is run, and counts. */
static void step_counts(struct desk *d)
{
	uint64_t id[SAID];
	const uint32_t count = d->c.d.active.count;

	for (uint32_t i = 0; i < count; i++)
		id[i] = d->c.d.active.entry[i].id;
	for (uint32_t i = 0; i < count; i++)
		vote(d, id[i], FT_VOTE_YES, 0);
}

/* Two live members, and no path between them. */
static bool parted(uint64_t seed)
{
	uint64_t next_id = 100, a, b;
	uint32_t epochs = 0;
	struct desk d;
	bool good;

	rng = seed * 2 + 1;
	crowd_open(&d, CROWD);
	a = 1 + below(CROWD);
	b = 1 + (a + below(CROWD - 1)) % CROWD;
	while (takes_part(&d, a) && takes_part(&d, b) && epochs < 100) {
		step_fails(&d, a, b, &next_id);
		epochs++;
	}
	good = epochs == 2 && d.c.d.active.count == CROWD - 1 && next_id == 101;
	step_counts(&d);
	/* Only now the newcomer is let in. */
	good &= d.c.d.commit.step == 1 && d.c.state == FT_COORD_PREPARE &&
		d.c.next.count == CROWD;
	desk_prepare(&d);
	good &= takes_part(&d, 100) && d.c.d.active.count == CROWD;
	if (!good)
		tap_diag("seed %" PRIu64 ": %" PRIu64 " and %" PRIu64
			 " parted: %u epochs, then %u members, step %" PRIu64,
			 seed, a, b, epochs, d.c.d.active.count, d.c.d.commit.step);
	ft_coord_fini(&d.c);
	return good;
}

/* One hears the coordinator and nobody else: with whom it is stuck first changes. */
static bool alone(uint64_t seed)
{
	uint64_t next_id = 100, a, b;
	uint32_t epochs = 0;
	struct desk d;
	bool good;

	rng = seed * 2 + 1;
	crowd_open(&d, CROWD);
	a = 1 + below(CROWD);
	while (takes_part(&d, a) && epochs < 100) {
		do
			b = d.c.d.active.entry[below(d.c.d.active.count)].id;
		while (b == a);
		step_fails(&d, a, b, &next_id);
		epochs++;
	}
	good = epochs <= 3 && d.c.d.active.count >= CROWD - 2;
	if (!good)
		tap_diag("seed %" PRIu64 ": %" PRIu64
			 " alone: %u epochs, then %u members",
			 seed, a, epochs, d.c.d.active.count);
	ft_coord_fini(&d.c);
	return good;
}

static void test_blame(void)
{
	const char *text = getenv("WEFT_SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
	bool good_parted = true, good_alone = true;
	struct desk d;

	for (uint64_t i = 0; i < 1000 && good_parted; i++)
		good_parted = parted(seed + i);
	tap_ok(good_parted,
	       "seed %" PRIu64
	       ": of two that do not hear each other one is out after two "
	       "epochs, and newcomers wait for the step",
	       seed);
	for (uint64_t i = 0; i < 1000 && good_alone; i++)
		good_alone = alone(seed + i);
	tap_ok(good_alone, "one that reaches nobody is out, and at most one other");

	/* One says nothing: the others wait for it, by way of each other. */
	crowd_open(&d, 4);
	for (int i = 0; i < 2; i++) {
		vote(&d, 4, FT_VOTE_NO, 3);
		vote(&d, 3, FT_VOTE_NO, 2);
		vote(&d, 2, FT_VOTE_NO, 1);
		tap_ok(d.c.state == FT_COORD_STEADY, "the fourth may speak still");
		d.now += 60 * MS;
		ft_coord_tick(&d.c, d.now);
		desk_prepare(&d);
	}
	tap_ok(d.c.d.active.count == 3 && !takes_part(&d, 1),
	       "who says nothing is out, not who waited for others that wait");
	/* Nobody knows: nobody is out. */
	for (int i = 0; i < 5; i++) {
		for (uint64_t id = 2; id <= 4; id++)
			vote(&d, id, FT_VOTE_NO, 0);
		desk_prepare(&d);
	}
	tap_is_int(d.c.d.active.count, 3, "without a suspect nobody is out");
	step_counts(&d);
	/* What was said of an earlier step does not count. */
	vote(&d, 2, FT_VOTE_NO, 3);
	vote(&d, 3, FT_VOTE_NO, 2);
	vote(&d, 4, FT_VOTE_NO, 2);
	desk_prepare(&d);
	step_counts(&d);
	vote(&d, 2, FT_VOTE_NO, 3);
	vote(&d, 3, FT_VOTE_NO, 2);
	vote(&d, 4, FT_VOTE_NO, 2);
	desk_prepare(&d);
	tap_is_int(d.c.d.active.count, 3, "nor who was to blame for another step");
	ft_coord_fini(&d.c);
}

/* A crowd, of which the first `quiet` say nothing for so long, after what they vote now.
 */
static void crowd_of_quiet(struct desk *d, uint64_t quiet, enum ft_answer answer,
			   int64_t us)
{
	crowd_open(d, 4);
	for (uint64_t id = 1; id <= quiet && answer != FT_VOTE_NONE; id++)
		vote(d, id, answer, 0);
	d->now += us;
	for (uint64_t id = quiet + 1; id <= 4; id++)
		desk_status(d, id, d->c.d.term, false);
	ft_coord_tick(&d->c, d->now);
}

/* A step fails, and somebody has not even said that it lives for 3/4 of the silence. */
static void test_quiet(void)
{
	struct desk d;

	crowd_of_quiet(&d, 1, FT_VOTE_NONE, 760 * MS);
	tap_ok(d.c.state == FT_COORD_STEADY, "who is quiet is waited for");
	vote(&d, 4, FT_VOTE_NO, 3);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 3 &&
		       ft_roster_find(&d.c.next, 1) < 0,
	       "until a step fails: the next epoch is prepared without it at once");
	desk_prepare(&d);
	tap_ok(d.c.d.active.count == 3 && desk_fenced(&d, 1) == FT_REASON_EXCLUDED,
	       "which is on then, and it is told that it is out");
	tap_is_int(d.c.failed, 0, "newcomers need not wait for that");
	ft_coord_fini(&d.c);

	crowd_of_quiet(&d, 1, FT_VOTE_NONE, 740 * MS);
	vote(&d, 4, FT_VOTE_NO, 3);
	tap_ok(d.c.state == FT_COORD_STEADY, "for less it is heard first");
	d.now += 20 * MS;
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 3,
	       "until it has been for so long, which no message need say");
	ft_coord_fini(&d.c);

	crowd_of_quiet(&d, 1, FT_VOTE_YES, 760 * MS);
	vote(&d, 4, FT_VOTE_NO, 3);
	tap_ok(d.c.state == FT_COORD_STEADY,
	       "one that has voted did not hold up anybody");
	ft_coord_fini(&d.c);

	crowd_of_quiet(&d, 3, FT_VOTE_NONE, 760 * MS);
	vote(&d, 4, FT_VOTE_NO, 3);
	d.now += 60 * MS;
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 4,
	       "of more than half of an epoch nobody is out for that");
	ft_coord_fini(&d.c);
}

int main(void)
{
	test_newcomers();
	test_blame();
	test_quiet();
	test_members();
	test_forming();
	test_groups();
	test_last_group();
	test_leaving();
	return tap_done();
}
