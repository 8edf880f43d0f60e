/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator's machine, message by message: whose promise ends it, and how groups
 * come and go. Schedules of everything at once are in test_model.
 */
#include "config.h"

#include <string.h>

#include "coll/ft/coord.h"
#include "util/tap.h"

enum { MS = 1000, SAID = 64, LINEAGE = 5 };

/* What it said last, in order. */
struct said {
	enum ft_type type;
	enum ft_reason reason;
	uint64_t id;
	uint32_t listed; /* members of the epoch that is prepared */
};

struct desk {
	struct ft_coord c;
	struct said said[SAID];
	int count;
	int64_t now;
};

static void desk_say(void *arg, const struct ft_msg *msg)
{
	struct desk *d = arg;

	if (d->count < SAID)
		d->said[d->count++] =
			(struct said){msg->type, msg->reason, msg->id,
				      msg->pending_list ? msg->pending_list->count : 0};
}

static bool desk_save(void *arg, enum ft_saved what, const struct ft_durable *durable)
{
	(void)arg;
	(void)what;
	(void)durable;
	return true;
}

static void desk_open(struct desk *d, uint32_t size, uint32_t group_size)
{
	const struct ft_coord_attr attr = {
		.fresh = true,
		.size = size,
		.group_size = group_size,
		.lineage = LINEAGE,
		.silence_us = 1000 * MS,
		.prepare_us = 500 * MS,
		.rebuild_us = 500 * MS,
		.join_us = 100 * MS,
	};
	const struct ft_coord_out out = {d, desk_say, desk_save};

	memset(d, 0, sizeof(*d));
	if (!ft_coord_init(&d->c, &attr, &out, NULL, 0))
		tap_bail("the coordinator does not start");
}

static bool desk_said(const struct desk *d, enum ft_type type, uint64_t id)
{
	for (int i = 0; i < d->count; i++) {
		if (d->said[i].type == type && d->said[i].id == id)
			return true;
	}
	return false;
}

static enum ft_reason desk_fenced(const struct desk *d, uint64_t id)
{
	for (int i = 0; i < d->count; i++) {
		if (d->said[i].type == FT_FENCED && d->said[i].id == id)
			return d->said[i].reason;
	}
	return FT_REASON_NONE;
}

static void hear(struct desk *d, const struct ft_msg *msg)
{
	ft_coord_hear(&d->c, msg, d->now);
}

static void join(struct desk *d, uint64_t id, uint32_t group, uint64_t term)
{
	struct ft_entry self = {.id = id, .group = group};
	const struct ft_roster list = {.count = 1, .room = 1, .entry = &self};

	hear(d, &(struct ft_msg){.type = FT_JOIN,
				 .id = id,
				 .term = term,
				 .sign = 1,
				 .pending_list = &list});
}

/* A member of the epoch that is on; prepared: for the next one, too. */
static void status(struct desk *d, uint64_t id, uint64_t term, bool prepared)
{
	hear(d, &(struct ft_msg){.type = FT_STATUS,
				 .id = id,
				 .term = term,
				 .active = d->c.d.active.epoch,
				 .pending = prepared ? d->c.next.epoch
						     : (struct ft_epoch){0, 0},
				 .commit = d->c.d.commit});
}

/* All that are asked to prepare do. */
static void prepare(struct desk *d)
{
	uint64_t id[SAID];
	uint32_t count = d->c.next.count;

	for (uint32_t i = 0; i < count; i++)
		id[i] = d->c.next.entry[i].id;
	for (uint32_t i = 0; i < count; i++)
		status(d, id[i], d->c.d.term, true);
}

/* Two members, an epoch that is on. */
static void desk_of_two(struct desk *d)
{
	desk_open(d, 2, 1);
	join(d, 1, 1, 0);
	join(d, 2, 2, 0);
	prepare(d);
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
	join(&d, 3, 3, later);
	tap_ok(d.c.state == FT_COORD_STEADY,
	       "a newcomer that follows a later term ends nothing by asking in");
	tap_is_int(desk_fenced(&d, 3), FT_REASON_TERM,
		   "and is told why it is not let in");
	hear(&d, &(struct ft_msg){.type = FT_REFUSED, .id = 3, .term = later});
	status(&d, 4, later, false);
	tap_ok(d.c.state == FT_COORD_STEADY, "nor by refusing, nor who never asked in");
	d.now += 200 * MS;
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_STEADY, "no epoch is prepared for it");

	/* One that promises while it is asked to prepare. */
	join(&d, 5, 5, 0);
	d.now += 200 * MS;
	status(&d, 1, d.c.d.term, false);
	status(&d, 2, d.c.d.term, false);
	join(&d, 5, 5, 0);
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 3,
	       "a newcomer is waited for");
	hear(&d, &(struct ft_msg){.type = FT_REFUSED, .id = 5, .term = later});
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 2,
	       "it refuses, and the others go on without it");
	prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2, "at once");
	ft_coord_fini(&d.c);
}

static void test_members(void)
{
	struct desk d;

	desk_of_two(&d);
	hear(&d, &(struct ft_msg){.type = FT_REFUSED,
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
	join(&d, 1, 1, later);
	join(&d, 2, 2, 0);
	tap_ok(d.c.state == FT_COORD_FORM, "one of the first two cannot follow yet");
	d.now += 10000 * MS;
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.d.term > later, "the coordinator takes a later term still");
	join(&d, 2, 2, 0);
	join(&d, 1, 1, later);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 2, "both are asked");
	/* And where it hears of it late. */
	later = ft_term_above(d.c.d.term, 9);
	hear(&d, &(struct ft_msg){.type = FT_REFUSED, .id = 1, .term = later});
	tap_ok(d.c.state == FT_COORD_FORM, "a refusal does not end it");
	d.now += 100000 * MS;
	ft_coord_tick(&d.c, d.now);
	join(&d, 1, 1, later);
	join(&d, 2, 2, 0);
	prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2,
	       "the first epoch is on");
	ft_coord_fini(&d.c);
}

static void test_groups(void)
{
	struct desk d;

	desk_open(&d, 4, 2);
	for (uint64_t id = 1; id <= 4; id++)
		join(&d, id, (uint32_t)(id + 1) / 2, 0);
	prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 4,
	       "two groups of two");
	/* One of a group dies: the other one is out. */
	ft_coord_lost(&d.c, 3, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 2,
	       "a group with a dead member is not in the next epoch");
	prepare(&d);
	tap_ok(d.c.state == FT_COORD_STEADY && d.c.d.active.count == 2 &&
		       desk_fenced(&d, 4) == FT_REASON_EXCLUDED,
	       "who is left of it is told that it is out");
	/* Half a group waits, a whole one comes in. */
	join(&d, 5, 7, 0);
	d.now += 200 * MS;
	status(&d, 1, d.c.d.term, false);
	status(&d, 2, d.c.d.term, false);
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_STEADY, "half a group is not let in");
	join(&d, 6, 7, 0);
	d.now += 200 * MS;
	status(&d, 1, d.c.d.term, false);
	status(&d, 2, d.c.d.term, false);
	join(&d, 5, 7, 0);
	join(&d, 6, 7, 0);
	ft_coord_tick(&d.c, d.now);
	tap_ok(d.c.state == FT_COORD_PREPARE && d.c.next.count == 4, "a whole one is");
	prepare(&d);
	tap_ok(d.c.d.active.count == 4, "four again");
	hear(&d, &(struct ft_msg){.type = FT_LEAVE,
				  .id = 1,
				  .term = d.c.d.term,
				  .active = d.c.d.active.epoch});
	prepare(&d);
	/* Half of an epoch has to be in the next: group 1 is the other half. */
	ft_coord_tick(&d.c, d.now);
	prepare(&d);
	tap_ok(d.c.d.active.count == 2 && ft_roster_find(&d.c.d.active, 1) < 0 &&
		       ft_roster_find(&d.c.d.active, 2) < 0 &&
		       desk_said(&d, FT_FENCED, 2),
	       "one leaves, and its group is out with it");
	ft_coord_fini(&d.c);
}

int main(void)
{
	test_newcomers();
	test_members();
	test_forming();
	test_groups();
	return tap_done();
}
