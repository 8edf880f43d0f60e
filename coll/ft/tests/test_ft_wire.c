/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of members and coordinator: golden bytes, and what the validator refuses.
 */
#include "config.h"

#include "coll/ft/ft_wire.h"
#include "util/tap.h"

static const uint8_t job[FT_JOB_LEN] = "secret";

static struct ft_roster two(struct ft_entry entry[2])
{
	entry[0] = (struct ft_entry){
		.id = 0x1112131415161718u, .group = 1, .card_len = 2, .since = {3, 4}};
	memcpy(entry[0].card, "ab", 2);
	entry[1] = (struct ft_entry){.id = 5, .group = 2, .since = {3, 9}};
	return (struct ft_roster){.epoch = {3, 9}, .count = 2, .room = 2, .entry = entry};
}

static void golden(void)
{
	static const uint8_t want[] = {
		'W', 'E', 'F', 'F', 1, FT_PREPARE, 0, 0, /* frame */
		0,   0,	  0,   0,   0, 0,	   0, 5, /* id */
		0,   0,	  0,   0,   0, 0,	   0, 3, /* term */
		0,   0,	  0,   0,   0, 0,	   0, 0,
		0,   0,	  0,   0,   0, 0,	   0, 0, /* prior, sign */
		0,   0,	  0,   0,   0, 0,	   0, 3,
		0,   0,	  0,   0,   0, 0,	   0, 8, /* active */
		0,   0,	  0,   0,   0, 0,	   0, 3,
		0,   0,	  0,   0,   0, 0,	   0, 9, /* pending */
		0,   0,	  0,   0,   0, 0,	   0, 3,
		0,   0,	  0,   0,   0, 0,	   0, 7, /* commit */
		1,   2,	  3,   4,   5, 6,	   7, 8, /* its step */
	};
	static const uint8_t entry_want[] = {
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0,   0,	  0, 1,
		0,    0,    0,	  2,	0,    0,    0,	  0,	0,   0,	  0, 3,
		0,    0,    0,	  0,	0,    0,    0,	  4,	'a', 'b', 0,
	};
	struct ft_entry entry[2];
	struct ft_roster list = two(entry);
	struct ft_msg got, msg = {.type = FT_PREPARE,
				  .id = 5,
				  .term = 3,
				  .active = {3, 8},
				  .pending = {3, 9},
				  .commit = {{3, 7}, 0x0102030405060708u},
				  .pending_list = &list};
	struct ft_inbox inbox = {0};
	uint8_t buf[FT_HDR_LEN + 2 * FT_ENTRY_LEN];

	tap_is_int((int64_t)ft_wire_len(&msg), sizeof(buf), "its length");
	ft_wire_put(buf, &msg, job);
	tap_is_mem(buf, want, sizeof(want), "a header's bytes");
	tap_is_mem(buf + 144, job, sizeof(job), "the secret is at byte 144");
	tap_is_mem(buf + FT_HDR_LEN, entry_want, sizeof(entry_want), "an entry's bytes");
	tap_is_int((int64_t)ft_wire_whole(buf, job), sizeof(buf),
		   "a header says how long");
	tap_is_int(ft_wire_get(buf, sizeof(buf), job, &got, &inbox), FT_FAULT_NONE,
		   "it is accepted");
	tap_ok(got.id == 5 && got.commit.step == msg.commit.step &&
		       got.pending_list->count == 2 &&
		       got.pending_list->entry[0].id == entry[0].id &&
		       ft_epoch_same(got.pending_list->epoch, msg.pending) &&
		       got.active_list->count == 0,
	       "and says the same");
	ft_inbox_fini(&inbox);
}

/* Who missed an epoch is told who is in it. */
static void both_lists(void)
{
	struct ft_entry entry[2];
	struct ft_roster list = two(entry);
	struct ft_msg got, msg = {.type = FT_PREPARE,
				  .id = 5,
				  .term = 3,
				  .active = {3, 9},
				  .pending = {3, 10},
				  .active_list = &list,
				  .pending_list = &list};
	struct ft_inbox inbox = {0};
	uint8_t buf[FT_HDR_LEN + 4 * FT_ENTRY_LEN];

	tap_is_int((int64_t)ft_wire_len(&msg), sizeof(buf), "the length of two lists");
	ft_wire_put(buf, &msg, job);
	tap_is_int(ft_wire_get(buf, sizeof(buf), job, &got, &inbox), FT_FAULT_NONE,
		   "to prepare may say who is in the epoch before");
	tap_ok(got.active_list->count == 2 && got.pending_list->count == 2 &&
		       ft_epoch_same(got.active_list->epoch, msg.active),
	       "and both lists arrive");
	msg.active = (struct ft_epoch){0, 0};
	ft_wire_put(buf, &msg, job);
	tap_is_int(ft_wire_get(buf, sizeof(buf), job, &got, &inbox), FT_FAULT_LIST,
		   "but not where there was none");
	ft_inbox_fini(&inbox);
}

/* Whether the message with one byte changed is refused as it should be. */
static enum ft_fault damaged(size_t at, uint8_t value, size_t len)
{
	struct ft_entry entry[2];
	struct ft_roster list = two(entry);
	struct ft_msg got, msg = {.type = FT_PREPARE,
				  .id = 5,
				  .term = 3,
				  .active = {3, 8},
				  .pending = {3, 9},
				  .pending_list = &list};
	struct ft_inbox inbox = {0};
	uint8_t buf[FT_HDR_LEN + 2 * FT_ENTRY_LEN + 1] = {0};
	enum ft_fault fault;

	ft_wire_put(buf, &msg, job);
	buf[at] = value;
	fault = ft_wire_get(buf, len, job, &got, &inbox);
	ft_inbox_fini(&inbox);
	return fault;
}

static void refused(void)
{
	const size_t whole = FT_HDR_LEN + 2 * FT_ENTRY_LEN;
	bool all = true;

	tap_is_int(damaged(4, 1, whole), FT_FAULT_NONE, "unchanged");
	for (size_t len = 0; len < whole; len++)
		all &= damaged(4, 1, len) == FT_FAULT_SHORT;
	tap_ok(all, "cut short anywhere");
	tap_is_int(damaged(4, 1, whole + 1), FT_FAULT_SHORT, "a byte more");
	tap_is_int(damaged(0, 'w', whole), FT_FAULT_MAGIC, "another magic");
	tap_is_int(damaged(4, 2, whole), FT_FAULT_VERSION, "another version");
	tap_is_int(damaged(150, 1, whole), FT_FAULT_JOB, "another secret");
	tap_is_int(damaged(5, 0, whole), FT_FAULT_TYPE, "no type");
	tap_is_int(damaged(5, FT_TYPE_END, whole), FT_FAULT_TYPE, "an unknown type");
	tap_is_int(damaged(5, FT_STATUS, whole), FT_FAULT_ZERO, "a list that is not due");
	tap_is_int(damaged(15, 0, whole), FT_FAULT_RANGE, "nobody's id");
	tap_is_int(damaged(23, 0, whole), FT_FAULT_RANGE, "no term");
	tap_is_int(damaged(55, 9, whole), FT_FAULT_RANGE, "an epoch that follows itself");
	tap_is_int(damaged(128, 1, whole), FT_FAULT_RANGE, "too many members");
	tap_is_int(damaged(131, 1, whole), FT_FAULT_SHORT, "a list that is not there");
	tap_is_int(damaged(136, 1, whole), FT_FAULT_ZERO, "a reserved byte");
	tap_is_int(damaged(FT_HDR_LEN + 11, 3, whole), FT_FAULT_LIST, "not sorted");
	tap_is_int(damaged(FT_HDR_LEN + 15, 97, whole), FT_FAULT_RANGE,
		   "a card too long");
	tap_is_int(damaged(FT_HDR_LEN + 40, 1, whole), FT_FAULT_ZERO, "behind a card");
	tap_is_int(damaged(FT_HDR_LEN + 31, 10, whole), FT_FAULT_LIST,
		   "in since a later epoch");
}

int main(void)
{
	golden();
	both_lists();
	refused();
	return tap_done();
}
