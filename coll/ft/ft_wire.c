/* SPDX-License-Identifier: BSD-2-Clause */
/* See ft_wire.h. */
#include "config.h"

#include <string.h>

#include "coll/ft/ft_wire.h"
#include "util/be.h"

struct be_epoch {
	struct be64 term, seq;
};

struct hdr {
	uint8_t magic[4]; /* "WEFF" */
	uint8_t version;
	uint8_t type;
	uint8_t reason;
	uint8_t answer;
	struct be64 id;
	struct be64 term;
	struct be64 prior;
	struct be64 sign;
	struct be_epoch active;
	struct be_epoch pending;
	struct be_epoch commit;
	struct be64 commit_step;
	struct be_epoch vote;
	struct be64 vote_step;
	struct be64 suspect;
	struct be32 active_count;
	struct be32 pending_count;
	uint8_t zero[8];
	uint8_t job[FT_JOB_LEN];
};

struct wire_entry {
	struct be64 id;
	struct be32 group;
	struct be32 card_len;
	struct be_epoch since;
	uint8_t card[FT_CARD_MAX];
};

_Static_assert(sizeof(struct hdr) == FT_HDR_LEN, "header has no holes");
_Static_assert(offsetof(struct hdr, job) == 144, "secret at byte 144");
_Static_assert(sizeof(struct wire_entry) == FT_ENTRY_LEN, "entry has no holes");

static const uint8_t wire_magic[4] = {'W', 'E', 'F', 'F'};

/* Which fields a type has; the validator and the names come from here. */
enum has {
	HAS_TERM = 1 << 0, /* above 0; else it may be 0 where HAS_TERM0 */
	HAS_TERM0 = 1 << 1,
	HAS_PRIOR = 1 << 2,
	HAS_SIGN = 1 << 3,
	HAS_ACTIVE = 1 << 4,
	HAS_PENDING = 1 << 5,
	HAS_COMMIT = 1 << 6,
	HAS_VOTE = 1 << 7,
	HAS_REASON = 1 << 8,
	HAS_ACTIVE_LIST = 1 << 9,
	HAS_PENDING_LIST = 1 << 10,
	HAS_ACTIVE_LIST0 = 1 << 11, /* may be empty though the epoch is named */
};

struct type_row {
	const char *name;
	unsigned has;
};

static const struct type_row type_table[FT_TYPE_END] = {
	[FT_JOIN] = {"join", HAS_TERM0 | HAS_SIGN | HAS_PENDING_LIST},
	[FT_STATUS] = {"status",
		       HAS_TERM | HAS_ACTIVE | HAS_PENDING | HAS_COMMIT | HAS_VOTE},
	[FT_STATE] = {"state", HAS_TERM | HAS_PRIOR | HAS_SIGN | HAS_ACTIVE |
				       HAS_PENDING | HAS_COMMIT | HAS_VOTE |
				       HAS_ACTIVE_LIST | HAS_PENDING_LIST},
	[FT_REFUSED] = {"refused", HAS_TERM},
	[FT_LEAVE] = {"leave", HAS_TERM | HAS_ACTIVE},
	[FT_QUERY] = {"query", HAS_TERM},
	[FT_PREPARE] = {"prepare", HAS_TERM | HAS_ACTIVE | HAS_PENDING | HAS_COMMIT |
					   HAS_ACTIVE_LIST0 | HAS_PENDING_LIST},
	[FT_START] = {"start", HAS_TERM | HAS_ACTIVE | HAS_COMMIT},
	[FT_COMMIT] = {"commit", HAS_TERM | HAS_ACTIVE | HAS_COMMIT},
	[FT_FENCED] = {"fenced", HAS_TERM | HAS_REASON},
	[FT_WAIT] = {"wait", HAS_TERM},
};

static const char *const reason_name[FT_REASON_END] = {
	[FT_REASON_NONE] = "nothing",
	[FT_REASON_EXCLUDED] = "declared dead, or a member of its group was, or left",
	[FT_REASON_LEFT] = "left as it asked for",
	[FT_REASON_SIGN] = "reduces another type or count than the others",
	[FT_REASON_FULL] = "there are as many members as there can be",
	[FT_REASON_CONFLICT] = "was told what cannot be",
	[FT_REASON_TERM] =
		("promised to follow another coordinator before it came to this one; "
		 "come again as a new member"),
};

void ft_inbox_fini(struct ft_inbox *inbox)
{
	ft_roster_fini(&inbox->active);
	ft_roster_fini(&inbox->pending);
}

static struct be_epoch put_epoch(struct ft_epoch e)
{
	return (struct be_epoch){be64_of(e.term), be64_of(e.seq)};
}

static struct ft_epoch get_epoch(struct be_epoch e)
{
	return (struct ft_epoch){be64_get(e.term), be64_get(e.seq)};
}

static uint32_t list_count(const struct ft_roster *list)
{
	return list ? list->count : 0;
}

size_t ft_wire_len(const struct ft_msg *msg)
{
	return FT_HDR_LEN +
	       ((size_t)list_count(msg->active_list) + list_count(msg->pending_list)) *
		       FT_ENTRY_LEN;
}

static uint8_t *put_list(uint8_t *at, const struct ft_roster *list)
{
	for (uint32_t i = 0; i < list_count(list); i++) {
		const struct ft_entry *e = &list->entry[i];
		struct wire_entry w = {
			.id = be64_of(e->id),
			.group = be32_of(e->group),
			.card_len = be32_of(e->card_len),
			.since = put_epoch(e->since),
		};

		memcpy(w.card, e->card, e->card_len);
		memcpy(at, &w, sizeof(w));
		at += sizeof(w);
	}
	return at;
}

void ft_wire_put(void *buf, const struct ft_msg *msg, const uint8_t *job)
{
	struct hdr h = {
		.version = FT_WIRE_VERSION,
		.type = (uint8_t)msg->type,
		.reason = (uint8_t)msg->reason,
		.answer = (uint8_t)msg->vote.answer,
		.id = be64_of(msg->id),
		.term = be64_of(msg->term),
		.prior = be64_of(msg->prior),
		.sign = be64_of(msg->sign),
		.active = put_epoch(msg->active),
		.pending = put_epoch(msg->pending),
		.commit = put_epoch(msg->commit.epoch),
		.commit_step = be64_of(msg->commit.step),
		.vote = put_epoch(msg->vote.epoch),
		.vote_step = be64_of(msg->vote.step),
		.suspect = be64_of(msg->vote.suspect),
		.active_count = be32_of(list_count(msg->active_list)),
		.pending_count = be32_of(list_count(msg->pending_list)),
	};
	uint8_t *at = buf;

	memcpy(h.magic, wire_magic, sizeof(wire_magic));
	memcpy(h.job, job, FT_JOB_LEN);
	memcpy(at, &h, sizeof(h));
	at = put_list(at + sizeof(h), msg->active_list);
	put_list(at, msg->pending_list);
}

/* Takes the same time wherever the first difference is. */
static bool secret_equal(const uint8_t *a, const uint8_t *b)
{
	unsigned diff = 0;

	for (int i = 0; i < FT_JOB_LEN; i++)
		diff |= a[i] ^ b[i];
	return diff == 0;
}

static enum ft_fault check_frame(const struct hdr *h, const uint8_t *job)
{
	if (memcmp(h->magic, wire_magic, sizeof(wire_magic)) != 0)
		return FT_FAULT_MAGIC;
	if (h->version != FT_WIRE_VERSION)
		return FT_FAULT_VERSION;
	if (!secret_equal(h->job, job))
		return FT_FAULT_JOB;
	if (h->type == 0 || h->type >= FT_TYPE_END)
		return FT_FAULT_TYPE;
	if (be32_get(h->active_count) > FT_MEMBERS_MAX ||
	    be32_get(h->pending_count) > FT_MEMBERS_MAX)
		return FT_FAULT_RANGE;
	return FT_FAULT_NONE;
}

size_t ft_wire_whole(const void *hdr, const uint8_t *job)
{
	struct hdr h;

	memcpy(&h, hdr, sizeof(h));
	if (check_frame(&h, job) != FT_FAULT_NONE)
		return 0;
	return FT_HDR_LEN +
	       ((size_t)be32_get(h.active_count) + be32_get(h.pending_count)) *
		       FT_ENTRY_LEN;
}

/* Fields that the type has no use for. */
static bool idle_fields_zero(const struct ft_msg *m, const struct hdr *h, unsigned has)
{
	static const uint8_t zero[sizeof(h->zero)];

	return ((has & (HAS_TERM | HAS_TERM0)) || !m->term) &&
	       ((has & HAS_PRIOR) || !m->prior) && ((has & HAS_SIGN) || !m->sign) &&
	       ((has & HAS_ACTIVE) || ft_epoch_none(m->active)) &&
	       ((has & HAS_PENDING) || ft_epoch_none(m->pending)) &&
	       ((has & HAS_COMMIT) ||
		(!m->commit.step && ft_epoch_none(m->commit.epoch))) &&
	       ((has & HAS_VOTE) || (!m->vote.step && !m->vote.suspect && !h->answer &&
				     ft_epoch_none(m->vote.epoch))) &&
	       ((has & HAS_REASON) || !h->reason) &&
	       ((has & (HAS_ACTIVE_LIST | HAS_ACTIVE_LIST0)) ||
		!be32_get(h->active_count)) &&
	       ((has & HAS_PENDING_LIST) || !be32_get(h->pending_count)) &&
	       memcmp(h->zero, zero, sizeof(zero)) == 0;
}

/* An epoch has both numbers or neither. */
static bool epoch_whole(struct ft_epoch e)
{
	return (e.term == 0) == (e.seq == 0);
}

static bool vote_fits(const struct ft_vote *v)
{
	bool none = v->answer == FT_VOTE_NONE;

	return epoch_whole(v->epoch) && none == ft_epoch_none(v->epoch) &&
	       none == (v->step == 0) && (v->answer == FT_VOTE_NO || v->suspect == 0);
}

static bool fields_fit(const struct ft_msg *m, const struct hdr *h, unsigned has)
{
	bool needs_pending = m->type == FT_PREPARE;
	bool needs_active = m->type == FT_START || m->type == FT_COMMIT;

	return m->id != 0 && (!(has & HAS_TERM) || m->term != 0) &&
	       h->reason < FT_REASON_END && (!(has & HAS_REASON) || h->reason != 0) &&
	       h->answer < FT_ANSWER_END && vote_fits(&m->vote) &&
	       epoch_whole(m->active) && epoch_whole(m->pending) &&
	       epoch_whole(m->commit.epoch) &&
	       (m->commit.step == 0) == ft_epoch_none(m->commit.epoch) &&
	       (m->type != FT_COMMIT || m->commit.step != 0) &&
	       (!needs_active || !ft_epoch_none(m->active)) &&
	       (!needs_pending || ft_epoch_cmp(m->active, m->pending) < 0);
}

/* An epoch with a list has members, none has no list. A list is sorted, so nobody is in
 * it twice but with two groups, which is looked for too. */
static enum ft_fault get_list(const uint8_t *at, uint32_t count, struct ft_epoch epoch,
			      bool joining, struct ft_roster *list)
{
	ft_roster_clear(list);
	for (uint32_t i = 0; i < count; i++, at += FT_ENTRY_LEN) {
		struct ft_entry e = {0};
		struct wire_entry w;

		memcpy(&w, at, sizeof(w));
		e.id = be64_get(w.id);
		e.group = be32_get(w.group);
		e.card_len = be32_get(w.card_len);
		e.since = get_epoch(w.since);
		if (e.id == 0 || e.card_len > FT_CARD_MAX || !epoch_whole(e.since))
			return FT_FAULT_RANGE;
		for (uint32_t k = e.card_len; k < FT_CARD_MAX; k++) {
			if (w.card[k])
				return FT_FAULT_ZERO;
		}
		if (joining ? !ft_epoch_none(e.since)
			    : ft_epoch_none(e.since) || ft_epoch_cmp(e.since, epoch) > 0)
			return FT_FAULT_LIST;
		memcpy(e.card, w.card, e.card_len);
		if (ft_roster_find(list, e.id) >= 0)
			return FT_FAULT_LIST;
		if (!ft_roster_add(list, &e))
			return FT_FAULT_MEMORY;
		if (list->entry[i].id != e.id)
			return FT_FAULT_LIST;
	}
	list->epoch = epoch;
	return FT_FAULT_NONE;
}

static enum ft_fault get_lists(const uint8_t *at, const struct hdr *h, unsigned has,
			       struct ft_msg *m, struct ft_inbox *inbox)
{
	uint32_t active = be32_get(h->active_count), pending = be32_get(h->pending_count);
	bool joining = m->type == FT_JOIN;
	enum ft_fault fault;

	if ((has & HAS_ACTIVE_LIST) && (active == 0) != ft_epoch_none(m->active))
		return FT_FAULT_LIST;
	if (active && ft_epoch_none(m->active))
		return FT_FAULT_LIST;
	if ((has & HAS_PENDING_LIST) &&
	    (joining ? pending != 1 : (pending == 0) != ft_epoch_none(m->pending)))
		return FT_FAULT_LIST;
	fault = get_list(at, active, m->active, false, &inbox->active);
	if (fault == FT_FAULT_NONE)
		fault = get_list(at + (size_t)active * FT_ENTRY_LEN, pending, m->pending,
				 joining, &inbox->pending);
	if (fault == FT_FAULT_NONE && joining && inbox->pending.entry[0].id != m->id)
		return FT_FAULT_LIST;
	m->active_list = &inbox->active;
	m->pending_list = &inbox->pending;
	return fault;
}

enum ft_fault ft_wire_get(const void *buf, size_t len, const uint8_t *job,
			  struct ft_msg *msg, struct ft_inbox *inbox)
{
	enum ft_fault fault;
	unsigned has;
	struct hdr h;

	if (len < sizeof(h))
		return FT_FAULT_SHORT;
	memcpy(&h, buf, sizeof(h));
	fault = check_frame(&h, job);
	if (fault != FT_FAULT_NONE)
		return fault;
	if (len != ft_wire_whole(buf, job))
		return FT_FAULT_SHORT;
	has = type_table[h.type].has;
	*msg = (struct ft_msg){
		.type = (enum ft_type)h.type,
		.id = be64_get(h.id),
		.term = be64_get(h.term),
		.prior = be64_get(h.prior),
		.sign = be64_get(h.sign),
		.active = get_epoch(h.active),
		.pending = get_epoch(h.pending),
		.commit = {get_epoch(h.commit), be64_get(h.commit_step)},
		.vote = {get_epoch(h.vote), be64_get(h.vote_step), be64_get(h.suspect),
			 (enum ft_answer)h.answer},
		.reason = (enum ft_reason)h.reason,
	};
	if (!idle_fields_zero(msg, &h, has))
		return FT_FAULT_ZERO;
	if (!fields_fit(msg, &h, has))
		return FT_FAULT_RANGE;
	return get_lists((const uint8_t *)buf + sizeof(h), &h, has, msg, inbox);
}

const char *ft_type_name(enum ft_type type)
{
	return type == 0 || (unsigned)type >= FT_TYPE_END ? "?" : type_table[type].name;
}

const char *ft_reason_name(enum ft_reason reason)
{
	return (unsigned)reason >= FT_REASON_END ? "?" : reason_name[reason];
}
