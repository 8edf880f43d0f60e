/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A communicator goes on without its dead: the decision of agree.h, over control
 * messages. It begins where a rank joins, or hears of it; what was decided is answered as
 * long as the context lives, also when the communicator has been destroyed here: somebody
 * may come late, and is told that the others went on.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/agree.h"
#include "coll/exec/engine.h"

/* How often it is asked which processes have ended: a system call for each. */
#define ENDED_AGAIN_US 20000
#define MISSING_NAMED  8

struct shrink {
	struct exec *x;
	uint32_t comm;
	int64_t ended_at; /* when it is asked next */
	int32_t *ranks;	  /* of the context, by member; NULL: the same */
	struct agree agree;
};

static int32_t shrink_rank(const struct shrink *s, int32_t member)
{
	return s->ranks ? s->ranks[member] : member;
}

/* -1: the rank is no member. */
static int32_t shrink_member(const struct shrink *s, int32_t rank)
{
	for (int32_t i = 0; i < s->agree.members; i++) {
		if (shrink_rank(s, i) == rank)
			return i;
	}
	return -1;
}

/* What can't be sent for want of memory is said again, as what got lost is. */
static void shrink_send(void *arg, int32_t to, const struct agree_msg *agree)
{
	const struct shrink *s = arg;
	struct ctl_msg msg = {.kind = CTL_AGREE, .comm = s->comm, .agree = *agree};

	ctl_io_send(s->x, shrink_rank(s, to), &msg);
}

/* NULL: no memory, or more members than a list has. */
static struct shrink *shrink_get(struct exec *x, uint32_t number)
{
	struct exec_comm *comm = &x->comms[number];
	struct shrink *s;

	if (comm->shrink || comm->members > AGREE_MEMBERS_MAX)
		return comm->shrink;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (comm->ranks) {
		s->ranks = malloc((size_t)comm->members * sizeof(*s->ranks));
		if (!s->ranks) {
			free(s);
			return NULL;
		}
		memcpy(s->ranks, comm->ranks, (size_t)comm->members * sizeof(*s->ranks));
	}
	s->x = x;
	s->comm = number;
	agree_init(&s->agree, comm->members, comm->self, shrink_send, s);
	comm->shrink = s;
	return s;
}

void shrink_event(struct exec *x, const struct ctl_msg *msg)
{
	struct exec_comm *comm = msg->comm < x->comms_max ? &x->comms[msg->comm] : NULL;
	struct shrink *s;
	int32_t from;

	/* Who has not made it yet hears of it again; who has destroyed it before anybody
	 * asked takes no part. */
	if (!comm || (comm->state != COMM_OPEN && !comm->shrink))
		return;
	s = shrink_get(x, msg->comm);
	from = s ? shrink_member(s, msg->src) : -1;
	if (from < 0 || !agree_fits(&msg->agree, s->agree.members)) {
		x->garbage++;
		return;
	}
	agree_hear(&s->agree, from, &msg->agree, exec_now());
}

void shrinks_peer_lost(struct exec *x, int32_t rank)
{
	for (uint32_t i = 0; i < x->comms_max; i++) {
		struct shrink *s = x->comms[i].shrink;
		const int32_t member = s ? shrink_member(s, rank) : -1;

		if (member >= 0)
			agree_lost(&s->agree, member);
	}
}

void shrinks_fini(struct exec *x)
{
	for (uint32_t i = 0; i < x->comms_max; i++) {
		if (!x->comms[i].shrink)
			continue;
		free(x->comms[i].shrink->ranks);
		free(x->comms[i].shrink);
	}
}

/* Whoever has ended writes nothing any more: what waited for its word is safe. */
static void shrink_end(struct shrink *s, int32_t member)
{
	agree_ended(&s->agree, member);
	event_peer_lost(s->x, shrink_rank(s, member), "its process has ended");
}

static void shrink_ended(struct shrink *s, int64_t now)
{
	if (now < s->ended_at)
		return;
	s->ended_at = now + ENDED_AGAIN_US;
	for (int32_t i = 0; i < s->agree.members; i++) {
		if (i != s->agree.self && !agree_bit(s->agree.ended, i) &&
		    lines_mem_ended(&s->x->lines, shrink_rank(s, i)))
			shrink_end(s, i);
	}
}

enum weft_result exec_shrink_join(struct exec *x, uint32_t comm, uint32_t number,
				  int64_t wait_until)
{
	struct shrink *s = shrink_get(x, comm);
	const int64_t now = exec_now();

	if (x->comms[comm].members > AGREE_MEMBERS_MAX)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_comm_shrink: communicator %u has %d ranks, the "
				 "most are %d",
				 comm, x->comms[comm].members, AGREE_MEMBERS_MAX);
	if (!s)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d ranks",
				 x->comms[comm].members);
	shrink_ended(s, now);
	agree_join(&s->agree, number, now, wait_until);
	return WEFT_SUCCESS;
}

bool exec_shrink_look(struct exec *x, uint32_t comm)
{
	struct shrink *s = x->comms[comm].shrink;
	const int64_t now = exec_now();

	if (agree_decision(&s->agree))
		return true;
	shrink_ended(s, now);
	agree_tick(&s->agree, now);
	return agree_decision(&s->agree) != NULL;
}

int32_t exec_shrink_members(const struct exec *x, uint32_t comm, int32_t *ranks,
			    int32_t *self, uint32_t *number)
{
	const struct shrink *s = x->comms[comm].shrink;
	const struct agree_value *value = agree_decision(&s->agree);
	int32_t count = 0;

	*self = -1;
	*number = value->number;
	for (int32_t i = 0; i < s->agree.members; i++) {
		if (!agree_bit(value->list, i))
			continue;
		if (i == s->agree.self)
			*self = count;
		ranks[count++] = shrink_rank(s, i);
	}
	return count;
}

void exec_shrink_missing(const struct exec *x, uint32_t comm, char *text, size_t len)
{
	const struct shrink *s = x->comms[comm].shrink;
	const int32_t members = s->agree.members;
	const int32_t count = agree_count(s->agree.joined, members);
	int named = 0;
	size_t at;

	at = (size_t)snprintf(text, len, "%d of %d ranks have called it%s", count,
			      members, count < members ? ", not rank" : "");
	for (int32_t i = 0; i < members && at < len; i++) {
		if (agree_bit(s->agree.joined, i))
			continue;
		if (named == MISSING_NAMED) {
			snprintf(text + at, len - at, " and others");
			return;
		}
		at += (size_t)snprintf(text + at, len - at, "%s %d%s", named ? "," : "",
				       shrink_rank(s, i),
				       agree_bit(s->agree.ended, i)  ? " (has ended)"
				       : agree_bit(s->agree.lost, i) ? " (is lost)"
								     : "");
		named++;
	}
}
