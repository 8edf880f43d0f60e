/* SPDX-License-Identifier: BSD-2-Clause */
/* See snapshot.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/snapshot.h"
#include "util/be.h"

enum { SNAPSHOT_VERSION = 1 };

/* FNV-1a. */
uint64_t ft_snapshot_check(const void *buf, size_t len, uint64_t salt)
{
	const uint8_t *at = buf;
	uint64_t sum = 0xcbf29ce484222325u ^ salt;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ at[i]) * 0x100000001b3u;
	return sum ^ sum >> 32;
}

/*
 * A snapshot is what a STATE message would say of it, the only other place where a list
 * of members is written down: term and epoch, what counts, the sign; prior is the valid
 * term. A coordinator that has no epoch yet is written as having none, and fresh by its
 * id.
 */
static void to_msg(const struct ft_durable *d, struct ft_msg *msg)
{
	*msg = (struct ft_msg){
		.type = FT_STATE,
		.id = d->fresh ? 2 : 1,
		.term = d->term,
		.prior = d->valid,
		.sign = d->sign,
		.active = d->active.epoch,
		.commit = d->commit,
		.active_list = &d->active,
	};
}

static bool from_msg(const struct ft_msg *msg, struct ft_durable *d)
{
	if (msg->type != FT_STATE || msg->id > 2 || !ft_epoch_none(msg->pending) ||
	    msg->vote.answer != FT_VOTE_NONE ||
	    ft_epoch_cmp(msg->commit.epoch, msg->active) > 0)
		return false;
	d->fresh = msg->id == 2;
	d->term = msg->term;
	d->valid = msg->prior;
	d->sign = msg->sign;
	d->commit = msg->commit;
	return ft_roster_copy(&d->active, msg->active_list);
}

uint8_t *ft_snapshot_put(const struct ft_durable *d, const uint8_t *job, size_t *len)
{
	struct be64 check;
	struct ft_msg msg;
	size_t head;
	uint8_t *buf;

	to_msg(d, &msg);
	head = ft_wire_len(&msg);
	buf = malloc(head + sizeof(check));
	if (!buf)
		return NULL;
	ft_wire_put(buf, &msg, job);
	check = be64_of(ft_snapshot_check(buf, head, SNAPSHOT_VERSION));
	memcpy(buf + head, &check, sizeof(check));
	*len = head + sizeof(check);
	return buf;
}

const char *ft_snapshot_get(const void *buf, size_t len, const uint8_t *job,
			    struct ft_durable *d, size_t *used)
{
	struct ft_inbox inbox = {0};
	struct ft_msg msg;
	struct be64 check;
	size_t head = len >= FT_HDR_LEN ? ft_wire_whole(buf, job) : 0;
	bool good;

	*used = 0;
	if (head == 0)
		return "is not what a coordinator of this job kept";
	if (len < head + sizeof(check))
		return "is cut short";
	memcpy(&check, (const uint8_t *)buf + head, sizeof(check));
	if (be64_get(check) != ft_snapshot_check(buf, head, SNAPSHOT_VERSION))
		return "is damaged, or of another version";
	good = ft_wire_get(buf, head, job, &msg, &inbox) == FT_FAULT_NONE &&
	       from_msg(&msg, d);
	ft_inbox_fini(&inbox);
	if (!good)
		return "says what no coordinator keeps";
	*used = head + sizeof(check);
	return NULL;
}
