/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines_req.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/lines_far.h"
#include "coll/exec/lines_near.h"
#include "coll/exec/lines_req.h"

/* ---- communicators -------------------------------------------------------------------
 */

bool exec_lines_open(struct exec *x, uint32_t comm, bool *reads)
{
	struct exec_comm *c = &x->comms[comm];
	const struct lines_mem *mem = &x->lines;
	struct exec_lines *el;

	*reads = false;
	if (mem->good == LINES_NONE || comm >= LINES_AREAS || c->members < 2 ||
	    c->members > LINES_RANKS)
		return false;
	for (int32_t i = 0; i < c->members; i++) {
		if (x->lead[exec_comm_rank(c, i)] != x->lead[x->rank])
			return false;
	}
	el = calloc(1, sizeof(*el));
	if (!el)
		return false;
	list_init(&el->queue);
	el->lines.size = c->members;
	el->lines.self = c->self;
	el->lines.own = lines_mem_own(mem, comm);
	for (int32_t i = 0; i < c->members; i++)
		el->lines.of[i] = lines_mem_of(mem, exec_comm_rank(c, i), comm);
	/* Without it all calls are requests. */
	el->quick = calloc(1, sizeof(*el->quick));
	if (el->quick)
		el->quick->x = x;
	c->lines = el;
	*reads = mem->good == LINES_FAR;
	return true;
}

void lines_comm_close(struct exec_comm *comm)
{
	if (comm->lines)
		free(comm->lines->quick);
	free(comm->lines);
	comm->lines = NULL;
}

/* ---- a request -----------------------------------------------------------------------
 */

bool lines_take(const struct exec *x, const struct exec_call *call)
{
	return call->plan->lines && x->comms[call->comm].lines && !call->pair &&
	       !call->follow;
}

size_t lines_scratch(const struct exec *x, const struct exec_call *call)
{
	return call->plan->lines == PLAN_LINES_FAR ? far_scratch(x, call) : 0;
}

bool lines_hold(const struct exec *x, const void *addr, size_t len)
{
	const uintptr_t from = (uintptr_t)addr;

	list_foreach (pos, &x->reqs) {
		const struct exec_req *req = container_of(pos, struct exec_req, link);

		for (int i = PLAN_SRC; req->line.el && i <= PLAN_DST; i++) {
			if (req->buf[i] && (uintptr_t)req->buf[i] - from < len)
				return true;
		}
	}
	return false;
}

/* Goes on with what has begun without a request. */
static void lines_adopt(struct exec_req *req)
{
	struct exec_lines *el = req->x->comms[req->call.comm].lines;
	const struct list link = req->line.link;

	req->line = el->quick->line;
	req->line.link = link;
	req->seen = el->quick->seen;
	el->ahead = false;
}

bool lines_begin(struct exec_req *req)
{
	const struct exec_call *call = &req->call;
	struct req_line *line = &req->line;

	req->base = req->next = 0;
	req->bind = (struct plan_binding){.disp = NULL};
	line->el = req->x->comms[call->comm].lines;
	if (line->el->ahead) {
		lines_adopt(req);
		list_push_back(&line->el->queue, &line->link);
		return true;
	}
	line->published = false;
	line->turn = 0;
	line->turns = 1;
	line->lost = -1;
	line->left = 0;
	line->far = call->plan->lines == PLAN_LINES_FAR;
	if (line->far) {
		/* Of a doubled call, too, which has memory of its own otherwise. */
		req->buf[PLAN_SCRATCH] = req->scratch ? req->scratch->memory : NULL;
		line->block = call->id.count * req->elem_size;
		line->turns =
			far_turns((enum weft_coll)call->id.coll, line->el->lines.size);
		line->bytes = sizeof(line->addr[0]);
		far_aim(req);
	} else {
		near_begin(req);
	}
	list_push_back(&line->el->queue, &line->link);
	return false;
}

void lines_end(struct exec_req *req)
{
	list_remove(&req->line.link);
	if (req->result != WEFT_SUCCESS)
		req->line.el->broken = true;
	if (req->result != WEFT_SUCCESS)
		lines_withdraw(&req->line.el->lines,
			       req->line.turn + (uint32_t)req->line.published);
	req->line.el = NULL;
}

/* Reads who has come; true when something moved. */
static bool near_run(struct exec_req *req)
{
	struct req_line *line = &req->line;
	const int32_t begin = line->next;
	struct lines_call other = {0};
	const enum lines_look look = near_look(req, &other);
	int32_t rank;

	if (look == LINES_THERE || look == LINES_NOT_YET)
		return line->next > begin;
	rank = exec_comm_rank(&req->x->comms[req->call.comm],
			      lines_rank(req, line->next));
	if (look == LINES_OTHER)
		accord_line(req, rank, other.call, other.sig);
	else
		req_fail(req, WEFT_ERR_INTERNAL, rank,
			 "%s: the lines of rank %d are at a turn that cannot be",
			 exec_req_what(req), rank);
	return true;
}

/* Gives what this rank has, once it may. */
static bool lines_give(struct exec_req *req)
{
	struct req_line *line = &req->line;
	struct lines *l = &line->el->lines;

	if (line->el->queue.next != &line->link || lines_behind(l) >= 0)
		return false;
	line->gives = line->far ? far_give(req, lines_place(l, line->bytes))
				: near_give(req, lines_place(l, line->bytes));
	lines_publish(l, req->call.call, req->sig);
	line->published = true;
	req->seen->told = 1;
	return true;
}

/* over: the turn is. */
static bool turn_run(struct exec_req *req, bool *over)
{
	struct req_line *line = &req->line;
	const struct exec_comm *comm = &req->x->comms[req->call.comm];
	bool moved = false;

	if (!line->published) {
		if (line->el->broken) {
			req_fail(req, WEFT_ERR_COMM, -1,
				 "communicator %u failed earlier (%s): %s",
				 req->call.comm, weft_strerror(comm->failed), comm->text);
			return true;
		}
		moved = lines_give(req);
		if (!moved)
			return false;
	}
	if (line->far ? far_run(req) : near_run(req)) {
		req->moved = 0;
		moved = true;
	}
	if (req->state != EXEC_RUNNING || req->accord.on || line->next < line->end ||
	    line->left)
		return moved;
	/* Whoever read from all has seen all at this turn. */
	if (line->all)
		lines_seen(&line->el->lines);
	*over = true;
	return true;
}

bool lines_run(struct exec_req *req)
{
	struct req_line *line = &req->line;
	bool moved = false, over;

	for (;;) {
		over = false;
		if (turn_run(req, &over))
			moved = true;
		if (!over)
			return moved;
		if (line->turn + 1 == line->turns) {
			req_end(req);
			return true;
		}
		line->turn++;
		line->published = false;
		if (line->far)
			far_aim(req);
		else
			near_next(req);
	}
}

/* ---- waiting -------------------------------------------------------------------------
 */

static bool has_come(const struct exec_req *req, int32_t rank)
{
	const void *data;
	struct lines_call other;

	return lines_look(&req->line.el->lines, rank, req->call.call, req->sig,
			  req->line.bytes, &data, &other) != LINES_NOT_YET;
}

/* Rank of the communicator. */
static int32_t lines_waits(const struct exec_req *req)
{
	const struct req_line *line = &req->line;
	const struct list *head = line->el->queue.next;

	if (head != &line->link)
		return lines_waits(container_of(head, struct exec_req, line.link));
	if (!line->published)
		return lines_behind(&line->el->lines);
	return line->lost >= 0		? line->lost
	       : line->next < line->end ? lines_rank(req, line->next)
					: -1;
}

int32_t lines_waits_for(const struct exec_req *req)
{
	const int32_t rank = lines_waits(req);

	return rank < 0 ? -1 : exec_comm_rank(&req->x->comms[req->call.comm], rank);
}

bool lines_needs(const struct exec_req *req, int32_t rank)
{
	const struct exec_comm *comm = &req->x->comms[req->call.comm];
	const struct req_line *line = &req->line;

	if (!line->published)
		return lines_waits_for(req) == rank;
	for (int32_t k = line->next; k < line->end; k++) {
		const int32_t i = lines_rank(req, k);

		if (exec_comm_rank(comm, i) == rank)
			return !has_come(req, i);
	}
	return line->lost >= 0 && exec_comm_rank(comm, line->lost) == rank;
}

/* A rank may have ended that the provider has no connection to, which says nothing then.
 */
static bool lines_ended(struct exec_req *req, int32_t rank)
{
	if (!lines_mem_ended(&req->x->lines, rank))
		return false;
	req_fail(req, WEFT_ERR_PEER, rank, "rank %d is lost in %s: its process has ended",
		 rank, exec_req_what(req));
	return true;
}

void lines_probe(struct exec_req *req)
{
	const struct exec_comm *comm = &req->x->comms[req->call.comm];
	const struct req_line *line = &req->line;

	if (!line->published && lines_waits_for(req) >= 0) {
		if (!lines_ended(req, lines_waits_for(req)))
			req_probe(req, lines_waits_for(req));
		return;
	}
	for (int32_t k = line->next; line->published && k < line->end; k++) {
		const int32_t i = lines_rank(req, k);
		const int32_t rank = exec_comm_rank(comm, i);

		if (i == comm->self || has_come(req, i))
			continue;
		if (lines_ended(req, rank))
			return;
		req_probe(req, rank);
	}
}

void lines_tell(struct exec_req *req, struct ctl_msg *msg)
{
	const struct exec_comm *comm = &req->x->comms[req->call.comm];

	for (int32_t i = 0; i < comm->members; i++) {
		if (i != comm->self)
			ctl_io_send(req->x, exec_comm_rank(comm, i), msg);
	}
}

void lines_timed_out(struct exec_req *req)
{
	const int32_t rank = lines_waits_for(req);
	char behind[64] = "";

	if (req->blame >= 0 && req->blame != rank)
		snprintf(behind, sizeof(behind), ", which waits for rank %d", req->blame);
	req_fail(req, WEFT_ERR_TIMEOUT, req->blame >= 0 ? req->blame : rank,
		 "%s, call %u of communicator %u: no answer from rank %d within %.3f s "
		 "(waiting for %s)%s",
		 exec_req_what(req), req->call.call, req->call.comm, rank,
		 (double)req->call.timeout_us * 1e-6,
		 req->line.published ? "its lines" : "it to read ours", behind);
}
