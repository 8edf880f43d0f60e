/* SPDX-License-Identifier: BSD-2-Clause */
/* See seen.h. */
#include "config.h"

#include <string.h>

#include "coll/exec/lines_req.h"
#include "coll/exec/seen.h"

/* The union of the times in which something flies. */
static void fly(uint32_t *flying, uint64_t *since, uint64_t now)
{
	if ((*flying)++ == 0)
		*since = now;
}

static void land(uint32_t *flying, uint64_t *busy, uint64_t since, uint64_t now)
{
	if (*flying && --*flying == 0)
		*busy += now - since;
}

/* A call by lines takes less time than it takes to read a clock some times: it is told
 * when it is over, its start only if it was waited for (seen_dated()). A place where such
 * a call was has zeros already wherever one has them. */
static void seen_short(const struct exec_call *call, struct trace_call *c)
{
	const struct sig_call *id = &call->id;

	if (c->flags != TRACE_CALL_LINES || c->start)
		*c = (struct trace_call){.flags = TRACE_CALL_LINES,
					 .culprit = -1,
					 .waits = -1,
					 .all = (uint32_t)call->plan->instances,
					 .on = TRACE_STAGE_WAIT};
	c->end = 0;
	c->count = id->count;
	c->comm = call->comm;
	c->call = call->call;
	c->root = id->root;
	c->coll = id->coll;
	c->type = id->type;
	c->op = id->op;
	c->algorithm = id->algorithm;
	c->told = 0;
	c->state = TRACE_CALL_OPEN;
}

void seen_dated(struct exec_req *req)
{
	struct trace_call *c = req->seen;

	if (!(c->flags & TRACE_CALL_LINES) || c->start)
		return;
	c->start = ticks_now(req->x->trace->counter);
	c->moved = c->start;
	c->since = c->start;
}

void seen_call(struct exec_req *req)
{
	const struct exec_call *call = &req->call;
	struct recorder *r = req->x->trace;
	const int32_t root = call->pair ? call->peer : call->id.root;
	struct trace_call *c = recorder_call(r);
	uint64_t now;

	req->seen = c;
	if (!TRACE_ON)
		return;
	c->state = TRACE_CALL_NONE;
	if (req->line.el) {
		seen_short(call, c);
		recorder_comm(r, call->comm)->started = call->call + 1;
		return;
	}
	now = trace_put(r, TRACE_CALL, call->id.coll, call->comm, call->call, root,
			call->id.count);
	*c = (struct trace_call){
		.start = now,
		.moved = now,
		.since = now,
		.count = call->id.count,
		.comm = call->comm,
		.call = call->call,
		.root = root >= -1 && root < r->image->head.size ? root : -1,
		.coll = call->id.coll,
		.type = call->id.type,
		.op = call->id.op,
		.algorithm = call->id.algorithm,
		.state = TRACE_CALL_OPEN,
		.flags = (uint8_t)((call->pair ? TRACE_CALL_PAIR : 0) |
				   (call->pair && call->id.root == req->x->rank
					    ? TRACE_CALL_SENDS
					    : 0)),
		.culprit = -1,
		.waits = -1,
		.all = (uint32_t)call->plan->instances,
		.on = TRACE_STAGE_WAIT,
	};
	if (!call->pair)
		recorder_comm(r, call->comm)->started = call->call + 1;
}

void seen_failed(struct exec_req *req, int32_t culprit)
{
	if (!TRACE_ON)
		return;
	struct trace_call *c = req->seen;

	trace_put(req->x->trace, TRACE_FAIL, (uint8_t)req->result, req->call.comm,
		  req->call.call, culprit, 0);
	seen_dated(req);
	c->result = (uint8_t)req->result;
	c->culprit = culprit;
	c->waits = req_waits_for(req, NULL);
	c->state = TRACE_CALL_FAILED;
	if (!req->call.pair)
		recorder_comm(req->x->trace, req->call.comm)->state = TRACE_COMM_BAD;
}

void seen_still(struct exec_req *req)
{
	seen_dated(req);
	req->seen->waits = req_waits_for(req, NULL);
}

/* What failed is not sent any more. */
static void seen_drop(struct exec_req *req, uint64_t now)
{
	struct trace_comm *m = recorder_comm(req->x->trace, req->call.comm);

	for (uint64_t i = req->base; i < req->next; i++) {
		struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (!slot->seen_flies)
			continue;
		slot->seen_flies = false;
		land(&slot->peer->seen->flying, &slot->peer->seen->busy,
		     slot->peer->seen->since, now);
		land(&m->flying, &m->busy, m->since, now);
	}
}

/* A call that is over, to those that were. */
static void seen_sum(struct trace_sum *sum, const struct trace_call *c)
{
	sum->ticks += c->end - c->start;
	sum->sent += c->sent;
	sum->got += c->got;
	for (int i = 0; i < TRACE_STAGES; i++)
		sum->stage[i] += c->stage[i];
}

void seen_end(struct exec_req *req)
{
	struct recorder *r = req->x->trace;
	struct trace_call *c = req->seen;
	struct trace_sum *sum = &r->image->live.sum[c->coll & (TRACE_SUMS - 1)];
	const bool lines = c->flags & TRACE_CALL_LINES;

	if (!TRACE_ON)
		return;
	if (lines && req->result == WEFT_SUCCESS)
		c->end = trace_put(r, TRACE_SHORT, c->coll, c->comm, c->call, c->root,
				   c->count);
	else
		c->end = trace_put(r, TRACE_END, (uint8_t)req->result, req->call.comm,
				   req->call.call, -1, 0);
	if (!lines) {
		c->stage[c->on] += c->end - c->since;
		c->since = c->end;
		c->moved = c->end;
		seen_sum(sum, c);
	}
	sum->calls++;
	sum->lines += lines;
	sum->failed += req->result != WEFT_SUCCESS;
	if (req->result == WEFT_SUCCESS)
		c->state = TRACE_CALL_DONE;
	else if (!lines)
		seen_drop(req, c->end);
	if (!req->call.pair)
		recorder_comm(r, req->call.comm)->ended++;
}

/* ---- steps ------------------------------------------------------------------------- */

static uint32_t seen_pair(const struct slot *slot)
{
	return slot->req->call.pair ? TRACE_PAIR_ALONE : slot->k & TRACE_PAIR_MASK;
}

void seen_send(struct slot *slot, uint64_t now)
{
	struct exec_req *req = slot->req;
	struct trace_peer *p = slot->peer->seen;
	struct trace_comm *m = recorder_comm(req->x->trace, req->call.comm);

	if (slot->seen_flies)
		return;
	slot->seen_flies = true;
	req->seen->sending++;
	trace_stage_find(req->seen, now);
	fly(&p->flying, &p->since, now);
	fly(&m->flying, &m->since, now);
}

void seen_message(struct slot *slot)
{
	if (!TRACE_ON)
		return;
	struct exec_req *req = slot->req;
	struct trace_peer *p = slot->peer->seen;
	const uint64_t now = trace_put_pair(req->x->trace, TRACE_SEND, 0, req->call.comm,
					    req->call.call, slot->inst.peer, slot->bytes,
					    seen_pair(slot));

	/* One that is sent again was counted. */
	if (!slot->tries)
		p->sends++;
	p->last_out = now;
	seen_send(slot, now);
}

void seen_put(struct slot *slot, uint64_t bytes, bool last)
{
	if (!TRACE_ON)
		return;
	struct exec_req *req = slot->req;
	struct trace_peer *p = slot->peer->seen;
	const uint64_t now =
		trace_put_pair(req->x->trace, TRACE_PUT, 0, req->call.comm,
			       req->call.call, slot->inst.peer, bytes, seen_pair(slot));

	p->puts++;
	if (last)
		p->told++;
	p->last_out = now;
	seen_send(slot, now);
}

static void seen_sent(struct slot *slot, uint64_t now)
{
	struct exec_req *req = slot->req;
	struct trace_comm *m = recorder_comm(req->x->trace, req->call.comm);
	struct trace_peer *p = slot->peer->seen;

	if (slot->seg_count)
		p->put += slot->seg_count;
	else
		p->sent++;
	p->bytes_out += slot->bytes;
	m->sent += slot->bytes;
	req->seen->sent += slot->bytes;
	if (!slot->seen_flies)
		return;
	slot->seen_flies = false;
	req->seen->sending--;
	land(&p->flying, &p->busy, p->since, now);
	land(&m->flying, &m->busy, m->since, now);
}

static void seen_got(struct slot *slot, uint64_t now)
{
	struct exec_req *req = slot->req;
	struct trace_peer *p = slot->peer->seen;

	p->bytes_in += slot->bytes;
	p->last_in = now;
	recorder_comm(req->x->trace, req->call.comm)->got += slot->bytes;
	req->seen->got += slot->bytes;
}

void seen_step(struct slot *slot)
{
	if (!TRACE_ON)
		return;
	struct exec_req *req = slot->req;
	struct trace_call *c = req->seen;
	uint64_t now;

	c->steps++;
	/* Short copies and reductions are part of the step before. */
	if (slot->inst.kind > PLAN_RECV && slot->bytes <= TRACE_LOCAL_MIN)
		return;
	now = trace_put_pair(req->x->trace, TRACE_STEP, slot->inst.kind, req->call.comm,
			     req->call.call, slot->inst.peer, slot->bytes,
			     seen_pair(slot));
	c->moved = now;
	if (slot->inst.kind == PLAN_SEND)
		seen_sent(slot, now);
	else if (slot->inst.kind == PLAN_RECV)
		seen_got(slot, now);
	if (c->on != TRACE_STAGE_REDUCE)
		trace_stage_find(c, now);
}

void seen_blocked(struct slot *slot)
{
	if (!TRACE_ON)
		return;
	struct trace_call *c = slot->req->seen;

	c->waiting++;
	seen_stage_end(slot->req);
}

void seen_ready(struct slot *slot)
{
	if (!TRACE_ON)
		return;
	struct exec_req *req = slot->req;
	const uint64_t now = trace_put_pair(req->x->trace, TRACE_READY, 0, req->call.comm,
					    req->call.call, slot->inst.peer, slot->bytes,
					    seen_pair(slot));

	req->seen->waiting--;
	trace_stage_find(req->seen, now);
}
