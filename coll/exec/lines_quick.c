/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls by lines that end before anybody looks at the network. Most blocking calls are
 * over when the slowest rank has come, in less time than it takes to set up a request, to
 * link it, to link it out and to give it back: such a call is done at once. Where it does
 * not end within a moment, or anything is not as it should be, it becomes a request,
 * which goes on where it stands: it alone waits, fails and explains.
 */
#include "config.h"

#include "coll/exec/lines_near.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/seen.h"

/* Looks before the rest of the engine gets its turn, some microseconds of them; and calls
 * in a row that may end without the network being looked at. */
#define LINES_LOOKS 200
#define LINES_CALLS 32

static void processor_rests(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Nobody but this call wants anything of the engine. */
LOCK_HELD(lock_context)
static bool engine_is_quiet(const struct exec *x)
{
	return list_empty(&x->wins) && !ctl_io_waits(x) && !exec_has_words(x);
}

bool exec_ends_by_lines(struct exec_req *req)
{
	struct exec *x = req->x;

	if (++x->unseen % LINES_CALLS == 0 || !engine_is_quiet(x))
		return false;
	if (req->line.el && !req->mirror && !x->tight && x->reqs.next == &req->link &&
	    x->reqs.prev == &req->link) {
		for (int i = 0; i < LINES_LOOKS && req->state == EXEC_RUNNING; i++) {
			if (!req_run(req))
				processor_rests();
		}
	}
	return req->state == EXEC_DONE && req->result == WEFT_SUCCESS &&
	       list_empty(&x->reqs);
}

LOCK_HELD(lock_context)
static bool quick_may(const struct exec *x, const struct exec_comm *comm)
{
	return !x->tight && list_empty(&x->reqs) && comm->state == COMM_OPEN &&
	       comm->failed == WEFT_SUCCESS && !comm->revoked && comm->lines->quick &&
	       !comm->lines->broken && engine_is_quiet(x) && list_empty(&x->stash) &&
	       list_empty(&x->earlies) && !x->times && (x->unseen + 1) % LINES_CALLS != 0;
}

static void quick_begin(struct exec_req *req, const struct exec_call *call,
			struct exec_comm *comm)
{
	struct req_line *line = &req->line;

	req->call = *call;
	req->buf[PLAN_SRC] = call->src;
	req->buf[PLAN_DST] = call->dst;
	req->elem_size = weft_type_size(call->type);
	req->sig = sig_pack(&call->id, comm->past, req->x->size);
	line->el = comm->lines;
	line->published = false;
	line->far = false;
	line->turn = 0;
	line->lost = -1;
	line->left = 0;
	near_begin(req);
}

/* The turn that comes next: false, as long as its slot is not free. */
static bool quick_give(struct exec_req *req)
{
	struct req_line *line = &req->line;
	struct lines *l = &line->el->lines;

	if (lines_behind(l) >= 0)
		return false;
	line->gives = near_give(req, lines_place(l, line->bytes));
	lines_publish(l, req->call.call, req->sig);
	line->published = true;
	return true;
}

/* One look. over: the call is. False: it is not for here. */
static bool quick_look(struct exec_req *req, bool *over)
{
	struct req_line *line = &req->line;
	struct lines_call other;

	if (!line->published && !quick_give(req))
		return true;
	switch (near_look(req, &other)) {
	case LINES_NOT_YET:
		return true;
	case LINES_THERE:
		break;
	case LINES_OTHER:
	case LINES_WRONG:
		return false;
	}
	/* Whoever read from all has seen all at this turn. */
	if (line->all)
		lines_seen(&line->el->lines);
	*over = line->turn + 1 == line->turns;
	if (*over)
		return true;
	line->turn++;
	line->published = false;
	near_next(req);
	return true;
}

bool exec_quick(struct exec *x, const struct exec_call *call)
{
	struct exec_comm *comm = &x->comms[call->comm];
	struct exec_req *req;
	bool over = false;

	if (!quick_may(x, comm))
		return false;
	x->unseen++;
	req = comm->lines->quick;
	quick_begin(req, call, comm);
	if (!quick_give(req))
		return false;
	/* Meanwhile the others come. */
	seen_call(req);
	req->seen->told = 1;
	for (int i = 0; i < LINES_LOOKS && !over; i++) {
		const uint32_t turn = req->line.turn;

		if (!quick_look(req, &over))
			break;
		if (!over && req->line.turn == turn)
			processor_rests();
	}
	if (!over) {
		comm->lines->ahead = true;
		return false;
	}
	exec_comm_started(comm, req);
	seen_end(req);
	x->stats.calls++;
	return true;
}
