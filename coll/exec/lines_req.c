/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines_req.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/reduce.h"

/* What a rank gives and takes in a collective. */
enum lines_give { GIVE_NOTHING, GIVE_BLOCK, GIVE_BLOCKS };
enum lines_do { DO_NOTHING, DO_FOLD, DO_GATHER, DO_COPY };

struct lines_kind {
	uint8_t root_gives, others_give;
	uint8_t root_does, others_do; /* with what each rank has given; DO_NOTHING: waits
				       * for nobody, unless... */
	bool meets;		      /* ...all wait for all */
	bool own_block;		      /* of what is read only the reader's block counts */
};

static const struct lines_kind kinds[WEFT_COLL_COUNT] = {
	[WEFT_COLL_BARRIER] = {.meets = true},
	[WEFT_COLL_BROADCAST] = {.root_gives = GIVE_BLOCK, .others_do = DO_COPY},
	[WEFT_COLL_ALLGATHER] = {.root_gives = GIVE_BLOCK,
				 .others_give = GIVE_BLOCK,
				 .root_does = DO_GATHER,
				 .others_do = DO_GATHER},
	[WEFT_COLL_ALLREDUCE] = {.root_gives = GIVE_BLOCK,
				 .others_give = GIVE_BLOCK,
				 .root_does = DO_FOLD,
				 .others_do = DO_FOLD},
	[WEFT_COLL_REDUCE_SCATTER] = {.root_gives = GIVE_BLOCKS,
				      .others_give = GIVE_BLOCKS,
				      .root_does = DO_FOLD,
				      .others_do = DO_FOLD,
				      .own_block = true},
	[WEFT_COLL_ALLTOALL] = {.root_gives = GIVE_BLOCKS,
				.others_give = GIVE_BLOCKS,
				.root_does = DO_GATHER,
				.others_do = DO_GATHER,
				.own_block = true},
	[WEFT_COLL_REDUCE] = {.root_gives = GIVE_BLOCK,
			      .others_give = GIVE_BLOCK,
			      .root_does = DO_FOLD},
	[WEFT_COLL_GATHER] = {.root_gives = GIVE_BLOCK,
			      .others_give = GIVE_BLOCK,
			      .root_does = DO_GATHER},
	[WEFT_COLL_SCATTER] = {.root_gives = GIVE_BLOCKS,
			       .root_does = DO_COPY,
			       .others_do = DO_COPY,
			       .own_block = true},
};

/* ---- communicators -------------------------------------------------------------------
 */

bool exec_lines_open(struct exec *x, uint32_t comm)
{
	struct exec_comm *c = &x->comms[comm];
	const struct lines_mem *mem = &x->lines;
	struct exec_lines *el;

	if (!mem->good || comm >= LINES_AREAS || c->members < 2 ||
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
	c->lines = el;
	return true;
}

void lines_comm_close(struct exec_comm *comm)
{
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

static bool is_root(const struct exec_req *req)
{
	return req->line.el->lines.self == req->call.id.root;
}

static const struct lines_kind *kind_of(const struct exec_req *req)
{
	return &kinds[req->call.id.coll];
}

/* The ranks [first, end) are those that the request reads. */
static void lines_aim(struct exec_req *req)
{
	const struct lines_kind *kind = kind_of(req);
	const uint8_t does = is_root(req) ? kind->root_does : kind->others_do;
	struct req_line *line = &req->line;

	line->does = does;
	line->next = 0;
	line->end = kind->meets || does ? line->el->lines.size : 0;
	if (does == DO_COPY) {
		line->next = req->call.id.root;
		line->end = line->next + 1;
	}
}

void lines_begin(struct exec_req *req)
{
	const struct exec_call *call = &req->call;
	const struct lines_kind *kind = kind_of(req);
	struct req_line *line = &req->line;
	uint8_t gives;

	req->base = req->next = 0;
	req->bind = (struct plan_binding){.disp = NULL};
	line->el = req->x->comms[call->comm].lines;
	line->published = false;
	line->block = call->id.count * req->elem_size;
	gives = is_root(req) ? kind->root_gives : kind->others_give;
	/* As long as the longest that anybody gives: it says where the data lies. */
	line->bytes =
		line->block *
		(kind->root_gives == GIVE_BLOCKS ? (size_t)line->el->lines.size : 1);
	line->gives = gives == GIVE_NOTHING ? 0 : line->bytes;
	lines_aim(req);
	list_push_back(&line->el->queue, &line->link);
}

void lines_end(struct exec_req *req)
{
	list_remove(&req->line.link);
	if (req->result != WEFT_SUCCESS)
		req->line.el->broken = true;
	if (req->result != WEFT_SUCCESS && req->line.published)
		lines_withdraw(&req->line.el->lines);
	req->line.el = NULL;
}

/* Where this rank's own contribution lies: in place that is the destination. */
static const void *lines_source(const struct exec_req *req)
{
	return req->buf[PLAN_SRC] ? req->buf[PLAN_SRC] : req->buf[PLAN_DST];
}

/* What `data`, of the rank that is next, is for. */
static void lines_use(struct exec_req *req, const char *data)
{
	struct req_line *line = &req->line;
	const struct exec_call *call = &req->call;
	char *dst = req->buf[PLAN_DST];

	if (kind_of(req)->own_block)
		data += (size_t)line->el->lines.self * line->block;
	switch ((enum lines_do)line->does) {
	case DO_NOTHING:
		return;
	case DO_COPY:
		memcpy(dst, data, line->block);
		return;
	case DO_GATHER:
		memcpy(dst + (size_t)line->next * line->block, data, line->block);
		return;
	case DO_FOLD:
		break;
	}
	/* In the order of ranks, so that all come to the same bits. */
	if (line->next == 0) {
		line->first = data;
		return;
	}
	if (call->apply)
		call->apply(call->apply_arg, call->type, dst,
			    line->next == 1 ? line->first : dst, data, call->id.count);
	else
		reduce_apply(call->type, call->op, dst,
			     line->next == 1 ? line->first : dst, data, call->id.count);
	req->x->stats.reduced_bytes += line->block;
	if (call->op == WEFT_AVG && line->next + 1 == line->end)
		reduce_scale(call->type, dst, dst, call->id.count,
			     (uint64_t)line->el->lines.size);
}

/* Reads who has come; true when something moved. */
static bool lines_read_on(struct exec_req *req)
{
	struct req_line *line = &req->line;
	const int32_t begin = line->next;

	while (line->next < line->end) {
		const int32_t rank =
			exec_comm_rank(&req->x->comms[req->call.comm], line->next);
		const void *data;
		uint64_t sig;

		switch (lines_look(&line->el->lines, line->next, req->call.call, req->sig,
				   line->bytes, &data, &sig)) {
		case LINES_NOT_YET:
			return line->next > begin;
		case LINES_THERE:
			lines_use(req, data);
			line->next++;
			break;
		case LINES_OTHER:
			accord_signature(req, rank, sig);
			return true;
		case LINES_WRONG:
			req_fail(req, WEFT_ERR_INTERNAL, rank,
				 "%s: the lines of rank %d are at a turn that cannot be",
				 exec_req_what(req), rank);
			return true;
		}
	}
	return line->next > begin;
}

/* Gives what this rank has, once it may. */
static bool lines_give(struct exec_req *req)
{
	struct req_line *line = &req->line;
	struct lines *l = &line->el->lines;

	if (line->el->queue.next != &line->link || lines_behind(l) >= 0)
		return false;
	if (line->gives)
		memcpy(lines_place(l, line->bytes), lines_source(req), line->gives);
	lines_publish(l, req->call.call, req->sig);
	line->published = true;
	req->seen->told = 1;
	return true;
}

bool lines_run(struct exec_req *req)
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
	if (lines_read_on(req)) {
		req->moved = 0;
		moved = true;
	}
	if (req->state != EXEC_RUNNING || req->accord.on || line->next < line->end)
		return moved;
	/* Whoever read from all has seen all at this turn. */
	if (line->does != DO_COPY && line->end)
		lines_seen(&line->el->lines);
	req_settle(req);
	return true;
}

/* ---- waiting -------------------------------------------------------------------------
 */

static bool has_come(const struct exec_req *req, int32_t rank)
{
	const void *data;
	uint64_t sig;

	return lines_look(&req->line.el->lines, rank, req->call.call, req->sig,
			  req->line.bytes, &data, &sig) != LINES_NOT_YET;
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
	return line->next < line->end ? line->next : -1;
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
	for (int32_t i = line->next; i < line->end; i++) {
		if (exec_comm_rank(comm, i) == rank)
			return !has_come(req, i);
	}
	return false;
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
	for (int32_t i = line->next; line->published && i < line->end; i++) {
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
