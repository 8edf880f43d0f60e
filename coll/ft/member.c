/* SPDX-License-Identifier: BSD-2-Clause */
/* See member.h. */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "coll/ft/member.h"

static const char *const phase_name[FT_PHASE_END] = {
	[FT_PHASE_JOINING] = "joining",
	[FT_PHASE_ACTIVE] = "active",
	[FT_PHASE_SEALED] = "sealed",
	[FT_PHASE_OUT] = "out",
};

/* May a phase follow another? */
static const bool phase_follows[FT_PHASE_END][FT_PHASE_END] = {
	[FT_PHASE_JOINING] = {[FT_PHASE_ACTIVE] = true, [FT_PHASE_OUT] = true},
	[FT_PHASE_ACTIVE] = {[FT_PHASE_SEALED] = true, [FT_PHASE_OUT] = true},
	[FT_PHASE_SEALED] = {[FT_PHASE_ACTIVE] = true, [FT_PHASE_OUT] = true},
};

static void set_phase(struct ft_member *m, enum ft_phase phase)
{
	assert(phase_follows[m->phase][phase]);
	m->phase = phase;
}

static void tell(struct ft_member *m, enum ft_event event)
{
	m->out.tell(m->out.arg, event, m);
}

static void say(struct ft_member *m, enum ft_type type)
{
	struct ft_msg msg = {.type = type, .id = m->attr.self.id, .term = m->promised};
	struct ft_roster self = {.count = 1, .room = 1, .entry = &m->attr.self};

	switch (type) {
	case FT_JOIN:
		msg.sign = m->attr.sign;
		msg.pending_list = &self;
		break;
	case FT_STATE:
		msg.prior = m->prior;
		msg.sign = m->attr.sign;
		msg.active_list = &m->active;
		msg.pending_list = &m->pending;
		/* fallthrough */
	case FT_STATUS:
		msg.pending = m->pending.epoch;
		msg.commit = m->commit;
		msg.vote = m->vote;
		/* fallthrough */
	case FT_LEAVE:
		msg.active = m->active.epoch;
		break;
	default:
		break;
	}
	m->out.say(m->out.arg, &msg);
}

void ft_member_init(struct ft_member *m, const struct ft_member_attr *attr,
		    const struct ft_member_out *out)
{
	memset(m, 0, sizeof(*m));
	m->attr = *attr;
	m->attr.self.since = (struct ft_epoch){0, 0};
	m->out = *out;
	m->said = INT64_MIN;
}

void ft_member_fini(struct ft_member *m)
{
	ft_roster_fini(&m->active);
	ft_roster_fini(&m->pending);
}

static void go_out(struct ft_member *m, enum ft_reason reason)
{
	set_phase(m, FT_PHASE_OUT);
	m->work = FT_WORK_NONE;
	m->reason = reason;
	tell(m, FT_FENCED_OUT);
}

int64_t ft_member_next_tick(const struct ft_member *m)
{
	if (m->phase == FT_PHASE_OUT)
		return INT64_MAX;
	return m->said == INT64_MIN ? INT64_MIN : m->said + m->attr.beat_us;
}

void ft_member_tick(struct ft_member *m, int64_t now)
{
	if (m->phase == FT_PHASE_OUT || now < ft_member_next_tick(m))
		return;
	m->said = now;
	if (m->phase == FT_PHASE_JOINING)
		say(m, FT_JOIN);
	if (m->promised && (m->phase != FT_PHASE_JOINING || m->pending.count))
		say(m, FT_STATUS);
	if (m->leaving && m->phase != FT_PHASE_JOINING)
		say(m, FT_LEAVE);
}

bool ft_member_begin(struct ft_member *m)
{
	if (m->phase == FT_PHASE_OUT || m->work != FT_WORK_NONE || m->leaving)
		return false;
	m->work = FT_WORK_RUN;
	if (m->phase == FT_PHASE_ACTIVE)
		tell(m, FT_RUN);
	return true;
}

void ft_member_done(struct ft_member *m, struct ft_epoch epoch, bool good,
		    uint64_t suspect)
{
	if (m->phase != FT_PHASE_ACTIVE || m->work != FT_WORK_RUN ||
	    !ft_epoch_same(epoch, m->active.epoch))
		return;
	m->work = FT_WORK_VOTED;
	m->live = m->active.count;
	m->vote = (struct ft_vote){
		.epoch = epoch,
		.step = m->commit.step + 1,
		.answer = good ? FT_VOTE_YES : FT_VOTE_NO,
		.suspect = good ? 0 : suspect,
	};
	say(m, FT_STATUS);
}

bool ft_member_leave(struct ft_member *m)
{
	if (m->work != FT_WORK_NONE)
		return false;
	if (m->phase == FT_PHASE_OUT || m->leaving)
		return true;
	m->leaving = true;
	if (m->phase == FT_PHASE_JOINING)
		go_out(m, FT_REASON_LEFT);
	else
		say(m, FT_LEAVE);
	return true;
}

bool ft_member_give_up(struct ft_member *m)
{
	if (m->work == FT_WORK_VOTED && m->vote.answer == FT_VOTE_YES)
		return false;
	m->work = FT_WORK_NONE;
	return ft_member_leave(m);
}

/* Whether the commit is what this member voted yes upon. */
static bool voted_for(const struct ft_member *m, const struct ft_commit *commit)
{
	return m->work == FT_WORK_VOTED && m->vote.answer == FT_VOTE_YES &&
	       m->vote.step == commit->step &&
	       ft_epoch_same(m->vote.epoch, commit->epoch);
}

static void take_commit(struct ft_member *m, const struct ft_commit *commit)
{
	m->commit = *commit;
	m->work = FT_WORK_NONE;
	tell(m, FT_COMMITTED);
}

/* The pending epoch is on, with what counts in it. false: that contradicts what this
 * member knows to count, so it is out. */
static bool start_pending(struct ft_member *m, const struct ft_commit *commit)
{
	bool joins = m->phase == FT_PHASE_JOINING;

	if (joins) {
		m->commit = *commit;
		m->since = m->pending.epoch;
	} else if (!ft_commit_same(*commit, m->commit) && !voted_for(m, commit)) {
		go_out(m, FT_REASON_CONFLICT);
		return false;
	}
	ft_roster_swap(&m->active, &m->pending);
	ft_roster_clear(&m->pending);
	set_phase(m, FT_PHASE_ACTIVE);
	if (joins)
		tell(m, FT_JOINED);
	else if (!ft_commit_same(*commit, m->commit))
		take_commit(m, commit);
	if (m->work != FT_WORK_NONE) {
		m->work = FT_WORK_RUN;
		tell(m, FT_RUN);
	}
	return true;
}

/* Whether the epoch that is on is one that this member prepared for, did not hear to be
 * started, and does not know any more, since it prepared for another one after it. That
 * it takes part in it for as long as in its own says so. */
static bool missed_epoch(const struct ft_member *m, const struct ft_msg *msg)
{
	int at;

	if (m->phase != FT_PHASE_SEALED || !msg->active_list ||
	    ft_epoch_cmp(msg->active, m->active.epoch) <= 0)
		return false;
	at = ft_roster_find(msg->active_list, m->attr.self.id);
	return at >= 0 && ft_epoch_same(msg->active_list->entry[at].since, m->since);
}

/* What the epoch to be says of this member must be what it knows of itself: one that was
 * out and let in again by an old JOIN would take votes and commits along that are not of
 * this line. */
static bool prepare_fits(const struct ft_member *m, const struct ft_msg *msg)
{
	int at = ft_roster_find(msg->pending_list, m->attr.self.id);
	struct ft_epoch since;

	if (at < 0 || ft_epoch_cmp(msg->pending, m->pending.epoch) <= 0 ||
	    ft_epoch_cmp(msg->pending, m->active.epoch) <= 0)
		return false;
	since = msg->pending_list->entry[at].since;
	if (!ft_epoch_none(m->pending.epoch) &&
	    ft_epoch_same(msg->active, m->pending.epoch)) {
		int was = ft_roster_find(&m->pending, m->attr.self.id);

		return was >= 0 && ft_epoch_same(since, m->pending.entry[was].since);
	}
	if (m->phase == FT_PHASE_JOINING)
		return ft_epoch_same(since, msg->pending);
	return ft_epoch_same(since, m->since) &&
	       (ft_epoch_same(msg->active, m->active.epoch) || missed_epoch(m, msg));
}

static void hear_prepare(struct ft_member *m, const struct ft_msg *msg)
{
	/* Only QUERY makes a member that is in an epoch change its coordinator. */
	if (msg->term > m->promised && m->phase != FT_PHASE_JOINING)
		return;
	if (!prepare_fits(m, msg)) {
		if (ft_epoch_same(msg->pending, m->pending.epoch))
			say(m, FT_STATUS);
		return;
	}
	if (msg->term > m->promised) {
		if (ft_lineage(msg->term) != ft_lineage(m->promised))
			m->prior = m->promised;
		m->promised = msg->term;
	}
	if (missed_epoch(m, msg) && !ft_epoch_same(msg->active, m->pending.epoch) &&
	    !ft_roster_copy(&m->pending, msg->active_list))
		return; /* no memory: it does not answer, and is taken for dead */
	/* That an epoch follows the pending one says that the pending one was started. */
	if (ft_epoch_same(msg->active, m->pending.epoch) &&
	    !ft_epoch_none(m->pending.epoch) && !start_pending(m, &msg->commit))
		return;
	if (!ft_roster_copy(&m->pending, msg->pending_list))
		return; /* no memory, as above */
	if (m->phase == FT_PHASE_ACTIVE) {
		set_phase(m, FT_PHASE_SEALED);
		if (m->work == FT_WORK_RUN)
			tell(m, FT_STOP);
	}
	say(m, FT_STATUS);
}

static void hear_query(struct ft_member *m, const struct ft_msg *msg)
{
	if (msg->term > m->promised) {
		if (ft_lineage(msg->term) != ft_lineage(m->promised))
			m->prior = m->promised;
		m->promised = msg->term;
	}
	say(m, FT_STATE);
}

static void hear_start(struct ft_member *m, const struct ft_msg *msg)
{
	if (msg->term != m->promised || ft_epoch_none(m->pending.epoch) ||
	    !ft_epoch_same(msg->active, m->pending.epoch))
		return;
	if (start_pending(m, &msg->commit))
		say(m, FT_STATUS);
}

static void hear_commit(struct ft_member *m, const struct ft_msg *msg)
{
	if (msg->term == m->promised && voted_for(m, &msg->commit))
		take_commit(m, &msg->commit);
}

void ft_member_hear(struct ft_member *m, const struct ft_msg *msg)
{
	if (m->phase == FT_PHASE_OUT || msg->id != m->attr.self.id)
		return;
	/* A newcomer may be turned away by any coordinator: it has nothing to lose, and
	 * as a new member it has promised nothing. So may one that leaves: those that go
	 * on without it may follow an earlier one than it promised to follow. */
	if (msg->term < m->promised &&
	    !(msg->type == FT_FENCED && (m->phase == FT_PHASE_JOINING || m->leaving))) {
		say(m, FT_REFUSED);
		return;
	}
	switch (msg->type) {
	case FT_QUERY:
		hear_query(m, msg);
		break;
	case FT_PREPARE:
		hear_prepare(m, msg);
		break;
	case FT_START:
		hear_start(m, msg);
		break;
	case FT_COMMIT:
		hear_commit(m, msg);
		break;
	case FT_FENCED:
		go_out(m, m->leaving ? FT_REASON_LEFT : msg->reason);
		break;
	default: /* what only members say */
		break;
	}
}

const char *ft_phase_name(enum ft_phase phase)
{
	return (unsigned)phase >= FT_PHASE_END ? "?" : phase_name[phase];
}
