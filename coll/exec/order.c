/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that call the collectives of two communicators in different orders wait for each
 * other until their deadlines. A rank that is asked about a call that it has not started
 * answers with the one that it waits in; so the sentence of the deadline can name both.
 */
#include "config.h"

#include <stdio.h>

#include "coll/exec/engine.h"

/* What this rank waits in, if it is not the call itself or one between two ranks. */
static struct exec_req *order_waiting(struct exec *x)
{
	list_foreach (pos, &x->reqs) {
		struct exec_req *req = container_of(pos, struct exec_req, link);

		if (req->state == EXEC_RUNNING && !req->call.pair)
			return req;
	}
	return NULL;
}

void order_answer(struct exec *x, const struct ctl_msg *probe)
{
	struct exec_req *req = order_waiting(x);
	struct ctl_msg answer = {
		.kind = CTL_ELSEWHERE, .comm = probe->comm, .call = probe->call};

	if (!req || probe->pair)
		return;
	answer.elsewhere = (struct ctl_elsewhere){.id = req->call.id,
						  .comm = req->call.comm,
						  .call = req->call.call,
						  .waits_for = req_waits_for(req, NULL)};
	ctl_io_send(x, probe->src, &answer);
}

void order_take(struct exec_req *req, const struct ctl_msg *msg)
{
	if (req->state != EXEC_RUNNING)
		return;
	req->elsewhere = msg->elsewhere;
	req->elsewhere_rank = msg->src;
}

/* Whether the call that the other rank waits in has started here. */
static bool order_started_here(const struct exec *x, const struct ctl_elsewhere *e)
{
	return e->comm < x->comms_max && x->comms[e->comm].state == COMM_OPEN &&
	       (int32_t)(e->call - x->comms[e->comm].next_call) < 0;
}

bool order_explain(const struct exec_req *req, char *text, size_t len)
{
	const struct ctl_elsewhere *e = &req->elsewhere;
	char other[96];
	bool each;

	if (req->elsewhere_rank < 0)
		return false;
	sig_call_print(&e->id, true, other, sizeof(other));
	each = e->comm != req->call.comm && e->waits_for == req->x->rank &&
	       !order_started_here(req->x, e);
	snprintf(text, len,
		 "rank %d has not called it: it waits for rank %d in call %u of "
		 "communicator %u, %s%s",
		 req->elsewhere_rank, e->waits_for, e->call, e->comm, other,
		 each ? ", which this rank has not called: a deadlock. Call the "
			"collectives of both communicators in one order"
		      : "");
	return true;
}
