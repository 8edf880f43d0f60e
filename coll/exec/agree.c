/* SPDX-License-Identifier: BSD-2-Clause */
/* See agree.h. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "coll/exec/agree.h"

/* JOIN is repeated, at first soon: it may have come before the communicator was there, or
 * went with a connection that broke. */
#define SAY_US	   INT64_C(50000)
#define SAY_MAX_US INT64_C(800000)
/* A proposal that is not decided by then is made again; who is later in the list lets
 * each of those before it have so long for theirs. */
#define PROPOSE_US INT64_C(300000)
#define TRIES_MAX  3 /* that make it twice as long each */

/* ---- lists ----------------------------------------------------------------------------
 */

static void bit_set(uint8_t *list, int32_t i)
{
	list[i / 8] = (uint8_t)(list[i / 8] | 1u << i % 8);
}

int32_t agree_count(const uint8_t *list, int32_t members)
{
	int32_t count = 0;

	for (int32_t i = 0; i < members; i++)
		count += agree_bit(list, i);
	return count;
}

bool agree_fits(const struct agree_msg *msg, int32_t members)
{
	for (int32_t i = members; i < AGREE_MEMBERS_MAX; i++) {
		if (agree_bit(msg->value.list, i))
			return false;
	}
	return true;
}

/* ---- saying ---------------------------------------------------------------------------
 */

static void agree_say(struct agree *a, int32_t to, const struct agree_msg *msg,
		      int64_t now)
{
	if (to == a->self)
		agree_hear(a, to, msg, now);
	else
		a->send(a->arg, to, msg);
}

/* To all that may hear; to oneself last, since the answer may change everything. */
static void agree_say_all(struct agree *a, const struct agree_msg *msg, bool self,
			  int64_t now)
{
	for (int32_t i = 0; i < a->members; i++) {
		if (i != a->self && !agree_bit(a->ended, i))
			a->send(a->arg, i, msg);
	}
	if (self)
		agree_hear(a, a->self, msg, now);
}

static void agree_say_decision(struct agree *a, int32_t to)
{
	const struct agree_msg msg = {.phase = AGREE_DECIDED, .value = a->value};

	if (to != a->self)
		a->send(a->arg, to, &msg);
}

/* ---- joining --------------------------------------------------------------------------
 */

void agree_init(struct agree *a, int32_t members, int32_t self, agree_send_fn send,
		void *arg)
{
	memset(a, 0, sizeof(*a));
	a->members = members;
	a->self = self;
	a->send = send;
	a->arg = arg;
	a->state = AGREE_QUIET;
}

void agree_join(struct agree *a, uint32_t number, int64_t now, int64_t wait_until)
{
	if (a->state == AGREE_OVER)
		return;
	if (number > a->number)
		a->number = number;
	bit_set(a->joined, a->self);
	a->wait_until = wait_until;
	a->say_at = now;
	a->say_us = SAY_US;
	a->propose_at = 0;
	a->tries = 0;
	a->state = AGREE_JOINED;
	agree_tick(a, now);
}

void agree_lost(struct agree *a, int32_t member)
{
	bit_set(a->lost, member);
}

void agree_ended(struct agree *a, int32_t member)
{
	bit_set(a->lost, member);
	bit_set(a->ended, member);
}

/* Nobody is missing who may come. */
static bool agree_all_here(const struct agree *a)
{
	for (int32_t i = 0; i < a->members; i++) {
		if (!agree_bit(a->joined, i) && !agree_bit(a->lost, i))
			return false;
	}
	return true;
}

/* How many before this one would propose sooner. */
static int32_t agree_turn(const struct agree *a)
{
	int32_t before = 0;

	for (int32_t i = 0; i < a->self; i++)
		before += agree_bit(a->joined, i) && !agree_bit(a->lost, i);
	return before;
}

/* ---- proposing ------------------------------------------------------------------------
 */

/* More than half, or all that are not known to have ended; of the lists that answered. */
static bool agree_enough(const struct agree *a)
{
	bool all = true;

	if (agree_count(a->yes, a->members) > a->members / 2)
		return true;
	for (int32_t i = 0; i < a->members && all; i++)
		all = agree_bit(a->yes, i) || agree_bit(a->without, i);
	return all;
}

/* How long a proposal has, one's own or another's. Members have times of their own, so
 * that no two go on disturbing each other, and they get longer, for answers may take
 * long. */
static int64_t agree_patience(struct agree *a, int32_t turns)
{
	const int64_t time = (PROPOSE_US * (turns + agree_turn(a))) << a->tries;

	if (a->tries < TRIES_MAX)
		a->tries++;
	return time;
}

static void agree_propose(struct agree *a, int64_t now)
{
	struct agree_msg msg = {.phase = AGREE_ASK};

	a->round++;
	a->ballot = a->round * (uint64_t)a->members + (uint64_t)a->self + 1;
	a->best = 0;
	a->state = AGREE_ASKING;
	memset(a->yes, 0, sizeof(a->yes));
	memcpy(a->without, a->ended, sizeof(a->without));
	a->propose_at = now + agree_patience(a, 2);
	msg.ballot = a->ballot;
	memcpy(msg.value.list, a->without, sizeof(msg.value.list));
	agree_say_all(a, &msg, true, now);
}

static void agree_promised(struct agree *a, int32_t from, const struct agree_msg *msg,
			   int64_t now)
{
	struct agree_msg take = {.phase = AGREE_TAKE};

	if (a->state != AGREE_ASKING || msg->ballot != a->ballot)
		return;
	bit_set(a->yes, from);
	if (msg->taken > a->best) {
		a->best = msg->taken;
		a->proposal = msg->value;
	}
	if (!agree_enough(a))
		return;
	/* What may have been decided already is what is proposed. */
	if (!a->best) {
		a->proposal.number = a->number;
		for (size_t i = 0; i < sizeof(a->joined); i++)
			a->proposal.list[i] = (uint8_t)(a->joined[i] & ~a->lost[i]);
	}
	a->state = AGREE_TAKING;
	memset(a->yes, 0, sizeof(a->yes));
	take.ballot = a->ballot;
	take.value = a->proposal;
	agree_say_all(a, &take, true, now);
}

static void agree_decide(struct agree *a, const struct agree_value *value)
{
	if (a->state == AGREE_OVER)
		return;
	a->value = *value;
	a->state = AGREE_OVER;
}

static void agree_was_taken(struct agree *a, int32_t from, const struct agree_msg *msg)
{
	if (a->state != AGREE_TAKING || msg->ballot != a->ballot)
		return;
	bit_set(a->yes, from);
	if (!agree_enough(a))
		return;
	agree_decide(a, &a->proposal);
	for (int32_t i = 0; i < a->members; i++) {
		if (!agree_bit(a->ended, i))
			agree_say_decision(a, i);
	}
}

/* ---- being asked ----------------------------------------------------------------------
 */

static void agree_asked(struct agree *a, int32_t from, const struct agree_msg *msg,
			int64_t now)
{
	struct agree_msg answer = {.phase = AGREE_NO, .ballot = a->promised};

	if (msg->ballot > a->promised) {
		a->promised = msg->ballot;
		answer.phase = AGREE_PROMISE;
		answer.ballot = msg->ballot;
		answer.taken = a->taken;
		if (a->taken)
			answer.value = a->value;
		for (int32_t i = 0; i < a->members; i++) {
			if (agree_bit(msg->value.list, i) && i != a->self)
				agree_ended(a, i);
		}
	}
	agree_say(a, from, &answer, now);
}

static void agree_take(struct agree *a, int32_t from, const struct agree_msg *msg,
		       int64_t now)
{
	struct agree_msg answer = {.phase = AGREE_NO, .ballot = a->promised};

	if (msg->ballot >= a->promised) {
		a->promised = a->taken = msg->ballot;
		a->value = msg->value;
		answer.phase = AGREE_TAKEN;
		answer.ballot = msg->ballot;
	}
	agree_say(a, from, &answer, now);
}

/* Somebody is ahead: its proposal has time, then there is a higher one. */
static void agree_refused(struct agree *a, const struct agree_msg *msg, int64_t now)
{
	const uint64_t round = msg->ballot / (uint64_t)a->members;

	if ((a->state != AGREE_ASKING && a->state != AGREE_TAKING) ||
	    msg->ballot <= a->ballot)
		return;
	if (round > a->round)
		a->round = round;
	a->state = AGREE_JOINED;
	a->propose_at = now + agree_patience(a, 1);
}

static void agree_heard_join(struct agree *a, int32_t from, const struct agree_msg *msg)
{
	bit_set(a->joined, from);
	if (msg->value.number > a->number)
		a->number = msg->value.number;
}

void agree_hear(struct agree *a, int32_t from, const struct agree_msg *msg, int64_t now)
{
	/* What somebody may have said who is known to have ended: agree.h says why. */
	if (agree_bit(a->ended, from))
		return;
	a->lost[from / 8] = (uint8_t)(a->lost[from / 8] & ~(1u << from % 8));
	if (a->state == AGREE_OVER) {
		if (msg->phase == AGREE_JOIN || msg->phase == AGREE_ASK ||
		    msg->phase == AGREE_TAKE)
			agree_say_decision(a, from);
		return;
	}
	switch ((enum agree_phase)msg->phase) {
	case AGREE_JOIN:
		agree_heard_join(a, from, msg);
		break;
	case AGREE_ASK:
		agree_asked(a, from, msg, now);
		break;
	case AGREE_PROMISE:
		agree_promised(a, from, msg, now);
		break;
	case AGREE_TAKE:
		agree_take(a, from, msg, now);
		break;
	case AGREE_TAKEN:
		agree_was_taken(a, from, msg);
		break;
	case AGREE_NO:
		agree_refused(a, msg, now);
		break;
	case AGREE_DECIDED:
		agree_decide(a, &msg->value);
		break;
	case AGREE_PHASES:
		break;
	}
}

void agree_tick(struct agree *a, int64_t now)
{
	const struct agree_msg join = {.phase = AGREE_JOIN, .value.number = a->number};

	if (a->state == AGREE_QUIET || a->state == AGREE_OVER)
		return;
	if (now >= a->say_at) {
		a->say_at = now + a->say_us;
		a->say_us = a->say_us * 2 < SAY_MAX_US ? a->say_us * 2 : SAY_MAX_US;
		agree_say_all(a, &join, false, now);
	}
	/* The time of one's turn counts from when all are here. */
	if (!a->propose_at && (agree_all_here(a) || now >= a->wait_until))
		a->propose_at = now + PROPOSE_US * agree_turn(a);
	if (a->propose_at && now >= a->propose_at)
		agree_propose(a, now);
}

const struct agree_value *agree_decision(const struct agree *a)
{
	return a->state == AGREE_OVER ? &a->value : NULL;
}
