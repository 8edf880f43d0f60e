/* SPDX-License-Identifier: BSD-2-Clause */
/* See desk.h. */
#include "config.h"

#include <string.h>

#include "coll/ft/tests/desk.h"
#include "util/tap.h"

static void desk_say(void *arg, const struct ft_msg *msg)
{
	struct desk *d = arg;

	if (msg->type == FT_FENCED && msg->id < 64)
		d->out |= UINT64_C(1) << msg->id;
	if (d->count < SAID)
		d->said[d->count++] =
			(struct said){msg->type, msg->reason, msg->id,
				      msg->pending_list ? msg->pending_list->count : 0,
				      msg->active_list ? msg->active_list->count : 0};
}

static bool desk_save(void *arg, enum ft_saved what, const struct ft_durable *durable)
{
	(void)arg;
	(void)what;
	(void)durable;
	return true;
}

void desk_start(struct desk *d, uint32_t size, uint32_t group_size, bool fresh)
{
	const struct ft_coord_attr attr = {
		.fresh = fresh,
		.size = size,
		.group_size = group_size,
		.lineage = LINEAGE,
		.silence_us = 1000 * MS,
		.prepare_us = 500 * MS,
		.rebuild_us = 500 * MS,
		.join_us = 100 * MS,
		.blame_us = 50 * MS,
	};
	const struct ft_coord_out out = {d, desk_say, desk_save};

	memset(d, 0, sizeof(*d));
	if (!ft_coord_init(&d->c, &attr, &out, NULL, 0))
		tap_bail("the coordinator does not start");
}

void desk_open(struct desk *d, uint32_t size, uint32_t group_size)
{
	desk_start(d, size, group_size, true);
}

bool desk_said(const struct desk *d, enum ft_type type, uint64_t id)
{
	for (int i = 0; i < d->count; i++) {
		if (d->said[i].type == type && d->said[i].id == id)
			return true;
	}
	return false;
}

enum ft_reason desk_fenced(const struct desk *d, uint64_t id)
{
	for (int i = 0; i < d->count; i++) {
		if (d->said[i].type == FT_FENCED && d->said[i].id == id)
			return d->said[i].reason;
	}
	return FT_REASON_NONE;
}

void desk_hear(struct desk *d, const struct ft_msg *msg)
{
	ft_coord_hear(&d->c, msg, d->now);
}

void desk_join(struct desk *d, uint64_t id, uint32_t group, uint64_t term)
{
	struct ft_entry self = {.id = id, .group = group};
	const struct ft_roster list = {.count = 1, .room = 1, .entry = &self};

	desk_hear(d, &(struct ft_msg){.type = FT_JOIN,
				      .id = id,
				      .term = term,
				      .sign = 1,
				      .pending_list = &list});
}

void desk_status(struct desk *d, uint64_t id, uint64_t term, bool prepared)
{
	desk_hear(d, &(struct ft_msg){.type = FT_STATUS,
				      .id = id,
				      .term = term,
				      .active = d->c.d.active.epoch,
				      .pending = prepared ? d->c.next.epoch
							  : (struct ft_epoch){0, 0},
				      .commit = d->c.d.commit});
}

void desk_prepare(struct desk *d)
{
	uint64_t id[SAID];
	uint32_t count = d->c.next.count;

	for (uint32_t i = 0; i < count; i++)
		id[i] = d->c.next.entry[i].id;
	for (uint32_t i = 0; i < count; i++)
		desk_status(d, id[i], d->c.d.term, true);
}

void desk_leave(struct desk *d, uint64_t id)
{
	desk_hear(d, &(struct ft_msg){.type = FT_LEAVE,
				      .id = id,
				      .term = d->c.d.term,
				      .active = d->c.d.active.epoch});
}
