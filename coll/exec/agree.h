/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One decision of the members of a communicator: who of them goes on, and by which number
 * the communicator of those is called. It is made once. A machine without I/O and without
 * a clock: whoever owns it hands it messages and the time, and sends what it says.
 *
 * The decision is that of the single-decree Paxos algorithm (L. Lamport, "Paxos made
 * simple", 2001): every member answers, also one that has not joined; those that joined
 * may propose, with ballots of their own, the one that is first in the list soonest. A
 * proposal is the list of all that joined. Nothing is durable, since a process that ended
 * does not come back.
 *
 * It takes more than half of all members; or, all of those that are not known to have
 * ended, where "known" is a proof (the kernel says so), not a silence. For the second the
 * proposer says whom it knows to have ended, and who promises hears nothing of those any
 * more: what they may have decided together, nobody that lives has heard, or else it
 * answers with that, and nobody will.
 */
#ifndef WEFT_EXEC_AGREE_H
#define WEFT_EXEC_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#define AGREE_MEMBERS_MAX 3072
#define AGREE_LIST_BYTES  (AGREE_MEMBERS_MAX / 8)

/* More are never reached; so sums of rounds don't run over. */
#define AGREE_BALLOT_MAX (UINT64_C(1) << 48)

enum agree_phase {
	AGREE_JOIN = 1, /* the sender wants to go on; number: the least that it can use */
	AGREE_ASK,     /* promise to take nothing of lower ballots; list: who has ended */
	AGREE_PROMISE, /* taken: the ballot of the number and list, or 0 */
	AGREE_TAKE,    /* a proposal: number, list */
	AGREE_TAKEN,
	AGREE_NO,      /* a higher ballot is promised: this one */
	AGREE_DECIDED, /* number, list */
	AGREE_PHASES
};

struct agree_value {
	uint32_t number;
	uint8_t list[AGREE_LIST_BYTES]; /* a bit of each member */
};

struct agree_msg {
	uint8_t phase; /* enum agree_phase */
	uint64_t ballot;
	uint64_t taken;
	struct agree_value value;
};

/* Whether a phase has a list; the number is there always. */
static inline bool agree_has_list(const struct agree_msg *msg)
{
	return msg->phase == AGREE_ASK || msg->phase == AGREE_TAKE ||
	       msg->phase == AGREE_DECIDED || (msg->phase == AGREE_PROMISE && msg->taken);
}

typedef void (*agree_send_fn)(void *arg, int32_t to, const struct agree_msg *msg);

enum agree_state {
	AGREE_QUIET,  /* answers only */
	AGREE_JOINED, /* and wants to go on; waits for others, or for their proposals */
	AGREE_ASKING,
	AGREE_TAKING,
	AGREE_OVER, /* decided */
};

struct agree {
	int32_t members, self;
	agree_send_fn send;
	void *arg;
	enum agree_state state;

	/* what is known of the others */
	uint8_t joined[AGREE_LIST_BYTES];
	uint8_t lost[AGREE_LIST_BYTES]; /* can't be reached, for all that is known */
	uint8_t ended[AGREE_LIST_BYTES];
	uint32_t number;	/* the most that who joined said */
	int64_t wait_until;	/* for those that are not lost and have not joined */
	int64_t say_at, say_us; /* JOIN is said again */

	/* as one that is asked */
	uint64_t promised;
	uint64_t taken;
	struct agree_value value; /* taken, or decided */

	/* as one that proposes */
	uint64_t round;
	uint64_t ballot;
	int64_t propose_at; /* 0: not yet; then again, with a higher ballot */
	uint8_t tries;	    /* proposals that came to nothing, of one's own or others */
	uint8_t yes[AGREE_LIST_BYTES];
	uint8_t without[AGREE_LIST_BYTES]; /* known to have ended, when asked */
	uint64_t best; /* the highest ballot of what was taken, of those that promised */
	struct agree_value proposal;
};

static inline bool agree_bit(const uint8_t *list, int32_t i)
{
	return list[i / 8] & 1u << i % 8;
}

/* members: AGREE_MEMBERS_MAX at most. */
void agree_init(struct agree *a, int32_t members, int32_t self, agree_send_fn send,
		void *arg);

/* This member joins. number: the least that it can use; it waits until then for members
 * that are not lost. Again: goes on. */
void agree_join(struct agree *a, uint32_t number, int64_t now, int64_t wait_until);

/* What a member says; its lists have been checked by agree_fits(). */
void agree_hear(struct agree *a, int32_t from, const struct agree_msg *msg, int64_t now);

/* A list has no bits behind those of the members. */
bool agree_fits(const struct agree_msg *msg, int32_t members);

/* A member can't be reached. What it says all the same is heard. */
void agree_lost(struct agree *a, int32_t member);
/* It is proven that the process of a member has ended. */
void agree_ended(struct agree *a, int32_t member);

/* To be called at times by one that joined. */
void agree_tick(struct agree *a, int64_t now);

/* NULL: not yet. */
const struct agree_value *agree_decision(const struct agree *a);

int32_t agree_count(const uint8_t *list, int32_t members);

#endif
