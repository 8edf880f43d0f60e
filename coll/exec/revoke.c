/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A communicator that a rank takes back: all that is open on it fails here at once, as
 * any call fails (fail.c), and nothing starts on it any more. Every member is told by
 * whoever began, and tells a few others when it hears of it first (distances of powers of
 * two), so that all hear although the one that began may die while it speaks.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "coll/exec/engine.h"
#include "coll/exec/win.h"

/* The first call that does not end well: the oldest that is open, or the next. */
static uint32_t revoke_first_call(const struct exec *x, uint32_t number)
{
	uint32_t first = x->comms[number].next_call;

	list_foreach (pos, &x->reqs) {
		const struct exec_req *req = container_of(pos, struct exec_req, link);

		if (req->call.comm == number && !req->call.pair &&
		    req->state == EXEC_RUNNING && (int32_t)(req->call.call - first) < 0)
			first = req->call.call;
	}
	return first;
}

static void revoke_reqs(struct exec *x, uint32_t number, int32_t culprit)
{
	const struct exec_comm *comm = &x->comms[number];

	list_foreach_safe (pos, tmp, &x->reqs) {
		struct exec_req *req = container_of(pos, struct exec_req, link);

		if (req->call.comm == number)
			req_fail(req, WEFT_ERR_REVOKED, culprit, "%s: %s",
				 exec_req_what(req), comm->revoke_text);
	}
}

/* What waits for calls that will not start is answered now. */
static void revoke_stash(struct exec *x, uint32_t number)
{
	struct list mine;
	struct list *node;

	list_init(&mine);
	list_foreach_safe (pos, tmp, &x->stash) {
		struct stash *stash = container_of(pos, struct stash, link);

		if (stash->msg.comm != number)
			continue;
		list_remove(&stash->link);
		x->stashed--;
		list_push_back(&mine, &stash->link);
	}
	while ((node = list_pop_front(&mine))) {
		struct stash *stash = container_of(node, struct stash, link);

		event_ctl(x, &stash->msg);
		pool_put(&x->stashes, stash);
	}
}

/* Without memory a rank is not told: its calls end by what their peers say, or by their
 * deadlines. */
static void revoke_tell(struct exec *x, uint32_t number, int32_t culprit, int32_t member)
{
	const struct exec_comm *comm = &x->comms[number];
	struct ctl_msg msg = {.kind = CTL_REVOKE,
			      .comm = number,
			      .fail = {.result = WEFT_ERR_REVOKED, .culprit = culprit}};

	snprintf(msg.fail.text, sizeof(msg.fail.text), "%.*s", CTL_TEXT_MAX - 1,
		 comm->revoke_text);
	if (member != comm->self)
		ctl_io_send(x, exec_comm_rank(comm, member), &msg);
}

static void revoke_spread(struct exec *x, uint32_t number, int32_t culprit, bool all)
{
	const struct exec_comm *comm = &x->comms[number];

	for (int32_t i = 0; all && i < comm->members; i++)
		revoke_tell(x, number, culprit, i);
	for (int32_t far = 1; !all && far < comm->members; far *= 2)
		revoke_tell(x, number, culprit, (comm->self + far) % comm->members);
}

static void revoke_apply(struct exec *x, uint32_t number, int32_t culprit,
			 const char *text)
{
	struct exec_comm *comm = &x->comms[number];

	comm->revoked = true;
	snprintf(comm->revoke_text, sizeof(comm->revoke_text), "%s", text);
	trace_put(x->trace, TRACE_FAIL, WEFT_ERR_REVOKED, number,
		  revoke_first_call(x, number), culprit, 0);
	exec_comm_fail(x, number, revoke_first_call(x, number), WEFT_ERR_REVOKED, culprit,
		       text);
	revoke_reqs(x, number, culprit);
	win_revoked(x, number, text);
	revoke_stash(x, number);
}

void exec_comm_revoke(struct exec *x, uint32_t number, const char *reason)
{
	struct exec_comm *comm = &x->comms[number];
	char text[CTL_TEXT_MAX];

	if (comm->revoked)
		return;
	/* What failed first says more than the reason for giving up. */
	if (comm->failed != WEFT_SUCCESS)
		snprintf(
			text, sizeof(text),
			"rank %d revoked communicator %u (%.80s) after a failure: %.180s",
			x->rank, number, reason, comm->text);
	else
		snprintf(text, sizeof(text), "rank %d revoked communicator %u: %.240s",
			 x->rank, number, reason);
	revoke_apply(x, number, x->rank, text);
	revoke_spread(x, number, x->rank, true);
}

bool exec_comm_revoked(const struct exec *x, uint32_t number)
{
	return x->comms[number].revoked;
}

void exec_hush(struct exec *x)
{
	x->hushed = true;
}

void revoke_event(struct exec *x, const struct ctl_msg *msg)
{
	const struct exec_comm *comm =
		msg->comm < x->comms_max ? &x->comms[msg->comm] : NULL;

	/* Not open here yet: it will be, by exec_comm_open(). */
	if (!comm || comm->state == COMM_UNKNOWN) {
		event_stash(x, msg);
		return;
	}
	if (comm->state != COMM_OPEN || comm->revoked)
		return;
	revoke_apply(x, msg->comm, msg->fail.culprit, msg->fail.text);
	revoke_spread(x, msg->comm, msg->fail.culprit, false);
}

void revoke_opened(struct exec *x, uint32_t number)
{
	int32_t culprit;

	list_foreach (pos, &x->stash) {
		const struct stash *stash = container_of(pos, struct stash, link);

		if (stash->msg.comm != number || stash->msg.kind != CTL_REVOKE)
			continue;
		/* Takes it out of the stash, too. */
		culprit = stash->msg.fail.culprit;
		revoke_apply(x, number, culprit, stash->msg.fail.text);
		revoke_spread(x, number, culprit, false);
		return;
	}
}
