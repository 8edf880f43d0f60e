/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member's side of membership and commit (PROTOCOL.md, G): a machine without I/O and
 * without a clock. Whoever owns it hands it messages, the time, and what became of its
 * own work; it answers by messages (say) and by events (tell).
 *
 * A step is run from an input that stays untouched until the step is over: it may have to
 * be run again in another epoch (FT_RUN), as often as epochs change. After a vote of yes
 * a member ends as committed, told to run again, or fenced; it never decides by itself
 * (G3).
 *
 * Not thread-safe. Nothing is allocated but room for lists that grow.
 */
#ifndef WEFT_FT_MEMBER_H
#define WEFT_FT_MEMBER_H

#include "coll/ft/ft_wire.h"

enum ft_phase {
	FT_PHASE_JOINING, /* in no epoch yet; may have prepared for its first */
	FT_PHASE_ACTIVE,
	FT_PHASE_SEALED, /* prepared for the next epoch: nothing of this one counts any
			  * more but what the coordinator already committed */
	FT_PHASE_OUT,	 /* for good; a process that wants in again is a new member */
	FT_PHASE_END
};

enum ft_work {
	FT_WORK_NONE,
	FT_WORK_RUN,   /* of step commit + 1; stopped while sealed */
	FT_WORK_VOTED, /* waits for what the coordinator says */
	FT_WORK_END
};

/* What the owner is told, from within a call of this machine. It may call nothing of the
 * machine then. */
enum ft_event {
	FT_JOINED,    /* the first epoch is on; steps up to commit were done by others */
	FT_RUN,	      /* run the step in the active epoch, from the untouched input */
	FT_STOP,      /* stop running: the epoch is over */
	FT_COMMITTED, /* the step counts; `live` members contributed */
	FT_FENCED_OUT /* reason */
};

struct ft_member;

struct ft_member_out {
	void *arg;
	void (*say)(void *arg, const struct ft_msg *msg); /* to the coordinator */
	void (*tell)(void *arg, enum ft_event event, const struct ft_member *m);
};

struct ft_member_attr {
	struct ft_entry self; /* since is ignored */
	uint64_t sign;
	int64_t beat_us; /* how often it shows that it lives */
};

/* One writer: this machine. Others read. */
struct ft_member {
	struct ft_member_attr attr;
	struct ft_member_out out;
	enum ft_phase phase;
	enum ft_work work;
	enum ft_reason reason;
	bool leaving;
	uint64_t promised, prior;
	struct ft_epoch since;
	struct ft_roster active, pending; /* pending: prepared, not started */
	struct ft_commit commit;
	struct ft_vote vote;
	uint32_t live; /* members of the epoch of the vote; then of the commit (G5) */
	int64_t said;  /* when it showed last that it lives */
};

/* attr is copied. */
void ft_member_init(struct ft_member *m, const struct ft_member_attr *attr,
		    const struct ft_member_out *out);
void ft_member_fini(struct ft_member *m);

/* The time goes on: joins, shows that it lives. Microseconds, from any origin. */
void ft_member_tick(struct ft_member *m, int64_t now);
int64_t ft_member_next_tick(const struct ft_member *m);

void ft_member_hear(struct ft_member *m, const struct ft_msg *msg);

/* Wants to run the next step: FT_RUN comes at once, or when an epoch starts. false: a
 * step is under way, or the member is out or leaves. */
bool ft_member_begin(struct ft_member *m);

/* What became of running the step in an epoch: good, or not, and then whom it waited for
 * (an id, or 0). Of an epoch that is over: ignored. */
void ft_member_done(struct ft_member *m, struct ft_epoch epoch, bool good,
		    uint64_t suspect);

/* Wants out, between two steps: FT_FENCED_OUT comes when it is. false: a step is under
 * way. */
bool ft_member_leave(struct ft_member *m);

/* The same within a step, which this member does not run any more: what became of it is
 * for the others. false: it has voted yes, and does not decide that alone (G3). */
bool ft_member_give_up(struct ft_member *m);

const char *ft_phase_name(enum ft_phase phase);

#endif
