/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: runs all ranks together, symbolically, in one order that their
 * dependencies allow. It shows three things at once.
 *
 * Deadlock. A SEND and its RECV are done together, when the dependencies of both are done
 * and both are within their rank's window (rendezvous). Whatever is done never makes
 * anything else impossible: more instances done only means more dependencies met and
 * windows further on. So every schedule that goes on while it can does the same instances
 * in the end, and one schedule decides for all; a wider window allows all that a narrower
 * one does. An eager executor, whose SENDs need no READY, may do at each moment whatever
 * is done here: it finishes when this finishes.
 *
 * Contents. check_conflicts() has shown that accesses to a place of which one writes are
 * ordered by dependencies. So any two orders that the dependencies allow differ by
 * exchanges of neighbours that do not touch each other's places, and leave the same
 * contents: one order decides for all.
 *
 * Pairing. The ranges of both halves are compared when they meet.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_job.h"

/* What became of an instance within the window. */
enum slot_state {
	SLOT_WAITS, /* for dependencies */
	SLOT_READY, /* half of a pair: for the other half */
	SLOT_DONE,
};

struct slot {
	struct check_instance in;
	struct slot *partner; /* NULL: not within its window yet */
	uint64_t k;	      /* in the channel */
	uint32_t channel;     /* UINT32_MAX: no pair */
	uint32_t deps_met;    /* the first so many are */
	uint8_t kind;	      /* enum plan_kind */
	uint8_t state;	      /* enum slot_state */
};

struct runner {
	struct check_walk walk;
	struct slot *slot; /* instance i in slot i & mask */
	uint64_t head;	   /* oldest unfinished */
	uint64_t seen;	   /* next to come into the window */
	bool queued;
	struct check_set own;	 /* barrier: the rank itself */
	struct check_set heard;	 /* barrier: of all instances done */
	struct check_set *knows; /* barrier: by instance, ranks heard of when done */
};

struct run {
	struct check_job *job;
	struct runner *runner;
	uint64_t window;
	uint64_t mask; /* slots of a rank, a power of two that holds the window, less 1 */
	int32_t *queue; /* ranks to look at, a ring of size entries */
	int32_t queue_head, queue_used;
	struct check_runs a, b, out;
	int64_t apart; /* as in a channel, of the last pair of all */
};

/* ---- contents -----------------------------------------------------------------------
 */

static struct check_mem *mem_of(struct check_rank *rank, uint8_t buf, uint64_t *shift)
{
	*shift = check_shift(rank, buf);
	return check_mem_of(rank, buf);
}

static bool range_read(struct check_rank *rank, const struct check_range *r,
		       struct check_runs *out)
{
	struct check_pieces it;
	uint64_t off, len, shift;
	struct check_mem *m;

	check_runs_clear(out);
	if (!r->space)
		return true;
	m = mem_of(rank, r->buf, &shift);
	if (check_range_single(r)) {
		off = check_space_begin(r->space, r->first);
		len = check_space_length(r->space, r->first);
		return !len || check_mem_read(m, off + shift, len, out);
	}
	check_pieces_begin(&it, r);
	while (check_piece_next(&it, &off, &len)) {
		if (!check_mem_read(m, off + shift, len, out))
			return false;
	}
	return true;
}

static uint64_t range_length(const struct check_range *r)
{
	struct check_pieces it;
	uint64_t off, len, sum = 0;

	if (check_range_single(r))
		return check_space_length(r->space, r->first);
	check_pieces_begin(&it, r);
	while (check_piece_next(&it, &off, &len))
		sum += len;
	return sum;
}

/* runs have the range's length. */
static bool range_write(struct check_rank *rank, const struct check_range *r,
			const struct check_runs *runs)
{
	struct check_cursor cursor = {0, 0};
	struct check_pieces it;
	uint64_t off, len, shift;
	struct check_mem *m;

	if (!r->space)
		return true;
	m = mem_of(rank, r->buf, &shift);
	if (check_range_single(r)) {
		off = check_space_begin(r->space, r->first);
		len = check_space_length(r->space, r->first);
		return !len || check_mem_write(m, off + shift, len, runs, &cursor);
	}
	check_pieces_begin(&it, r);
	while (check_piece_next(&it, &off, &len)) {
		if (!check_mem_write(m, off + shift, len, runs, &cursor))
			return false;
	}
	return true;
}

/* Rule: no place is read before it is written. */
static int runs_written(struct run *run, int32_t rank, uint64_t number,
			const struct check_runs *runs)
{
	for (size_t i = 0; i < runs->used; i++) {
		if (!runs->run[i].expr.node)
			return check_fault_at(run->job, rank, number,
					      "contents: it reads a place that nobody "
					      "has written");
	}
	return 0;
}

static int expr_fault(struct run *run, int32_t rank, uint64_t number,
		      enum check_expr_fault fault, uint32_t twice)
{
	switch (fault) {
	case CHECK_EXPR_GOOD:
		return 0;
	case CHECK_EXPR_NOMEM:
		return -ENOMEM;
	case CHECK_EXPR_TWICE:
		return check_fault_at(run->job, rank, number,
				      "contributions: rank %u's would go in twice",
				      twice);
	case CHECK_EXPR_SCALED:
		return check_fault_at(run->job, rank, number,
				      "scale: an operand is divided already");
	case CHECK_EXPR_ORDER:
		return check_fault_at(run->job, rank, number,
				      "order: rank %u's comes behind one of a higher "
				      "rank, and the operation does not commute",
				      twice);
	case CHECK_EXPR_PART:
		break;
	}
	return check_fault_at(run->job, rank, number,
			      "scale: it divides before every rank has gone in");
}

static int runs_scale(struct run *run, int32_t rank, uint64_t number,
		      struct check_runs *runs)
{
	for (size_t i = 0; i < runs->used; i++) {
		enum check_expr_fault f = check_expr_scale(
			&run->job->exprs, runs->run[i].expr, &runs->run[i].expr);

		if (f)
			return expr_fault(run, rank, number, f, 0);
	}
	return 0;
}

/* out = a op b, element by element. */
static int runs_reduce(struct run *run, int32_t rank, uint64_t number)
{
	const struct check_run *a = run->a.run, *b = run->b.run;
	uint64_t a_done = 0, b_done = 0;
	struct check_run r;

	check_runs_clear(&run->out);
	while (run->out.length < run->a.length) {
		enum check_expr_fault f;
		uint32_t twice = 0;

		r.length = a->length - a_done;
		if (b->length - b_done < r.length)
			r.length = b->length - b_done;
		r.pos = a->pos + a_done;
		if (r.pos != b->pos + b_done)
			return check_fault_at(run->job, rank, number,
					      "contributions: element %" PRIu64
					      " meets element %" PRIu64,
					      r.pos, b->pos + b_done);
		f = check_expr_reduce(&run->job->exprs, a->expr, b->expr, &r.expr,
				      &twice);
		if (f)
			return expr_fault(run, rank, number, f, twice);
		if (!check_runs_add(&run->out, r))
			return -ENOMEM;
		a_done += r.length;
		b_done += r.length;
		if (a_done == a->length) {
			a++;
			a_done = 0;
		}
		if (b_done == b->length) {
			b++;
			b_done = 0;
		}
	}
	return 0;
}

static int local_do(struct run *run, int32_t rank, const struct check_instance *in)
{
	struct check_rank *r = &run->job->rank[rank];
	const struct plan_step *s = &r->plan->step[in->step];
	struct check_range dst = check_range_of(r, &s->dst, in->dst);
	struct check_range src = check_range_of(r, &s->src, in->src);
	struct check_range src2 = check_range_of(r, &s->src2, in->src2);
	struct check_runs *result = &run->a;
	int ret;

	if (!range_read(r, &src, &run->a) ||
	    (s->kind == PLAN_REDUCE && !range_read(r, &src2, &run->b)))
		return -ENOMEM;
	if (range_length(&dst) != run->a.length ||
	    (s->kind == PLAN_REDUCE && run->b.length != run->a.length))
		return check_fault_at(run->job, rank, in->number,
				      "length: operands and result differ");
	ret = runs_written(run, rank, in->number, &run->a);
	if (!ret && s->kind == PLAN_REDUCE) {
		ret = runs_written(run, rank, in->number, &run->b);
		if (!ret)
			ret = runs_reduce(run, rank, in->number);
		result = &run->out;
	}
	if (!ret && s->flags & PLAN_SCALE)
		ret = runs_scale(run, rank, in->number, result);
	if (!ret && !range_write(r, &dst, result))
		ret = -ENOMEM;
	return ret;
}

static int pair_do(struct run *run, int32_t from, const struct check_instance *send,
		   int32_t to, const struct check_instance *recv)
{
	struct check_rank *a = &run->job->rank[from], *b = &run->job->rank[to];
	const struct plan_step *s = &a->plan->step[send->step];
	const struct plan_step *r = &b->plan->step[recv->step];
	struct check_range src = check_range_of(a, &s->src, send->src);
	struct check_range there = check_range_of(a, &s->dst, send->dst);
	struct check_range dst = check_range_of(b, &r->dst, recv->dst);
	int ret;

	if (s->dst.buf != PLAN_ANYBUF && !check_range_same(&there, &dst))
		return check_fault_at(run->job, from, send->number,
				      "pairing: rank %d receives it, instance %" PRIu64
				      ", in another range",
				      to, recv->number);
	if (!range_read(a, &src, &run->a))
		return -ENOMEM;
	if (run->a.length != range_length(&dst))
		return check_fault_at(run->job, from, send->number,
				      "length: %" PRIu64
				      " elements are sent, the pair has %" PRIu64,
				      run->a.length, range_length(&dst));
	ret = runs_written(run, from, send->number, &run->a);
	if (!ret && !range_write(b, &dst, &run->a))
		ret = -ENOMEM;
	return ret;
}

/* ---- what a barrier needs: who has been heard of ------------------------------------
 */

/* told: the instance of `by` that a RECV heard; NULL otherwise. */
static int knows_set(struct run *run, int32_t rank, const struct check_instance *in,
		     const struct runner *by, const struct check_instance *told)
{
	struct runner *me = &run->runner[rank];
	struct check_set_pool *pool = &run->job->exprs.pool;
	const struct check_rank *r = &run->job->rank[rank];
	const struct plan_step *s = &r->plan->step[in->step];
	struct check_set set = me->own;
	uint32_t both;

	for (uint32_t i = 0; i < s->dep_count; i++) {
		uint64_t on;

		if (check_dep_on(&r->dep[s->dep_first + i], in->trip, &on) &&
		    !check_set_union(pool, set, me->knows[on], &set, &both))
			return -ENOMEM;
	}
	if (told && !check_set_union(pool, set, by->knows[told->number], &set, &both))
		return -ENOMEM;
	me->knows[in->number] = set;
	return check_set_union(pool, me->heard, set, &me->heard, &both) ? 0 : -ENOMEM;
}

/* ---- the run ------------------------------------------------------------------------
 */

static void queue_put(struct run *run, int32_t rank)
{
	int32_t size = run->job->size;

	if (run->runner[rank].queued)
		return;
	run->runner[rank].queued = true;
	run->queue[(run->queue_head + run->queue_used++) % size] = rank;
}

static int32_t queue_get(struct run *run)
{
	int32_t rank = run->queue[run->queue_head];

	run->queue_head = (run->queue_head + 1) % run->job->size;
	run->queue_used--;
	run->runner[rank].queued = false;
	return rank;
}

static struct slot *slot_of(const struct run *run, const struct runner *r,
			    uint64_t number)
{
	return &r->slot[number & run->mask];
}

static bool partner_is(const struct slot *slot, const struct slot *other)
{
	return other->channel == slot->channel && other->k == slot->k && other != slot;
}

/* Whether the other half is instance i of its rank, within the window. */
static bool partner_at(const struct run *run, const struct runner *r,
		       const struct slot *slot, uint64_t i)
{
	return i >= r->head && i < r->seen && partner_is(slot, slot_of(run, r, i));
}

/* Looks for the other half of a pair in its rank's window; both then know each other. It
 * is mostly as far from here as in the last pair of the channel, or of all. */
static void partner_find(struct run *run, struct slot *slot, struct check_channel *c,
			 int32_t peer)
{
	const struct runner *r = &run->runner[peer];
	const int64_t sign = slot->kind == PLAN_SEND ? 1 : -1;
	uint64_t i = slot->in.number + (uint64_t)(sign * c->apart);

	if (!partner_at(run, r, slot, i))
		i = slot->in.number + (uint64_t)(sign * run->apart);
	if (!partner_at(run, r, slot, i)) {
		for (i = r->seen; i-- > r->head;) {
			if (partner_is(slot, slot_of(run, r, i)))
				break;
		}
	}
	c->apart = run->apart = sign * (int64_t)(i - slot->in.number);
	slot->partner = slot_of(run, r, i);
	slot->partner->partner = slot;
}

static int slot_enter(struct run *run, int32_t rank, const struct check_instance *in)
{
	const struct check_rank *me = &run->job->rank[rank];
	struct slot *slot = slot_of(run, &run->runner[rank], in->number);
	const struct plan_step *s = &me->plan->step[in->step];
	struct check_channel *c;

	*slot = (struct slot){.in = *in, .kind = s->kind, .channel = UINT32_MAX};
	if (s->kind != PLAN_SEND && s->kind != PLAN_RECV)
		return 0;
	slot->channel = me->channel[in->step];
	if (s->peer_advance)
		slot->channel = s->kind == PLAN_SEND
					? check_channel_get(run->job, rank, in->peer)
					: check_channel_get(run->job, in->peer, rank);
	if (slot->channel == UINT32_MAX)
		return -ENOMEM;
	c = &run->job->channel[slot->channel];
	slot->k = s->kind == PLAN_SEND ? c->sends_seen++ : c->recvs_seen++;
	/* The other half, if it came before, still waits for this one: within the window.
	 */
	if (slot->k < (s->kind == PLAN_SEND ? c->recvs_seen : c->sends_seen))
		partner_find(run, slot, c, in->peer);
	return 0;
}

static int window_fill(struct run *run, int32_t rank)
{
	struct runner *r = &run->runner[rank];
	struct check_instance in;
	int ret = 0;

	while (!ret && r->seen - r->head < run->window &&
	       check_walk_next(&r->walk, &in)) {
		ret = slot_enter(run, rank, &in);
		r->seen++;
	}
	return ret;
}

static bool deps_met(const struct run *run, int32_t rank, struct slot *slot)
{
	const struct runner *r = &run->runner[rank];
	const struct check_rank *k = &run->job->rank[rank];
	const struct plan_step *s = &k->plan->step[slot->in.step];

	for (; slot->deps_met < s->dep_count; slot->deps_met++) {
		uint64_t on;

		if (!check_dep_on(&k->dep[s->dep_first + slot->deps_met], slot->in.trip,
				  &on))
			continue;
		if (on >= r->head && slot_of(run, r, on)->state != SLOT_DONE)
			return false;
	}
	return true;
}

/* The pair of a ready half, if the other is ready, too. */
static int pair_try(struct run *run, int32_t rank, struct slot *slot, bool *moved)
{
	struct slot *other = slot->partner;
	bool sends = slot->kind == PLAN_SEND;
	int32_t peer = slot->in.peer, from = sends ? rank : peer,
		to = sends ? peer : rank;
	const struct check_instance *send, *recv;
	int ret;

	if (!other || other->state != SLOT_READY)
		return 0;
	send = sends ? &slot->in : &other->in;
	recv = sends ? &other->in : &slot->in;
	ret = pair_do(run, from, send, to, recv);
	if (!ret && run->runner[from].knows) {
		ret = knows_set(run, from, send, NULL, NULL);
		if (!ret)
			ret = knows_set(run, to, recv, &run->runner[from], send);
	}
	if (run->job->proofs) {
		run->job->rank[from].pair[send->number] = recv->number;
		run->job->rank[to].pair[recv->number] = send->number;
	}
	slot->state = other->state = SLOT_DONE;
	queue_put(run, peer);
	*moved = true;
	return ret;
}

static int slot_try(struct run *run, int32_t rank, struct slot *slot, bool *moved)
{
	int ret;

	if (slot->state != SLOT_WAITS || !deps_met(run, rank, slot))
		return 0;
	if (slot->kind == PLAN_SEND || slot->kind == PLAN_RECV) {
		slot->state = SLOT_READY;
		return pair_try(run, rank, slot, moved);
	}
	ret = local_do(run, rank, &slot->in);
	if (!ret && run->runner[rank].knows)
		ret = knows_set(run, rank, &slot->in, NULL, NULL);
	slot->state = SLOT_DONE;
	*moved = true;
	return ret;
}

/* Does what a rank can do now. A half that meets its partner only when the partner enters
 * its window is found from the partner's side, so only waiting instances are looked at.
 */
static int rank_do(struct run *run, int32_t rank)
{
	struct runner *r = &run->runner[rank];
	bool moved = true;

	while (moved) {
		int ret;

		while (r->head < r->seen && slot_of(run, r, r->head)->state == SLOT_DONE)
			r->head++;
		ret = window_fill(run, rank);
		moved = false;
		for (uint64_t i = r->head; !ret && i < r->seen; i++)
			ret = slot_try(run, rank, slot_of(run, r, i), &moved);
		if (ret)
			return ret;
	}
	return 0;
}

/* Rule: everybody finishes. Names the first rank that does not. */
static int stuck_fault(struct run *run)
{
	for (int32_t rank = 0; rank < run->job->size; rank++) {
		const struct runner *r = &run->runner[rank];
		const struct slot *s = slot_of(run, r, r->head);

		if (r->head >= run->job->rank[rank].plan->instances)
			continue;
		if (s->state == SLOT_WAITS)
			return check_fault_at(run->job, rank, r->head,
					      "deadlock: it waits for ever");
		return check_fault_at(
			run->job, rank, r->head,
			"deadlock: rank %d, whose turn it is, is at its instance %" PRIu64
			" and looks %" PRIu64 " ahead",
			s->in.peer, run->runner[s->in.peer].head, run->window);
	}
	return 0;
}

/* ---- begin and end ------------------------------------------------------------------
 */

static bool mem_cut_parts(struct check_rank *rank, uint8_t buf)
{
	const struct check_space *best = NULL;

	/* Cutting beforehand what the plan will cut anyway saves moving cells about. */
	for (uint32_t i = 0; i < rank->plan->step_count; i++) {
		const struct plan_step *s = &rank->plan->step[i];
		const struct check_space *space;

		if (s->kind == PLAN_SEND || s->dst.buf != buf || !s->dst.count)
			continue;
		space = rank->space[s->dst.part];
		if (!best || space->parts > best->parts)
			best = space;
	}
	return !best || !best->begin ||
	       check_mem_cut_new(&rank->mem[buf], best->begin, best->parts);
}

/* The caller's elements, where the call has them. */
static bool source_place(struct check_job *job, int32_t r)
{
	struct check_rank *rank = &job->rank[r];
	struct check_cursor cursor = {0, 0};
	struct check_runs runs = {.run = NULL};
	uint64_t count = plan_goal_length(job->check->goal, job->call, r, PLAN_SRC),
		 shift;
	struct check_mem *m = mem_of(rank, PLAN_SRC, &shift);
	bool good;

	if (!count || (job->check->goal == PLAN_GOAL_BROADCAST && r != job->call->root))
		return true;
	good = check_runs_add(&runs,
			      (struct check_run){.length = count,
						 .expr = check_expr_leaf(&job->exprs,
									 (uint32_t)r)}) &&
	       check_mem_write(m, shift, count, &runs, &cursor);
	free(runs.run);
	return good;
}

static bool contents_init(struct check_job *job, int32_t r)
{
	struct check_rank *rank = &job->rank[r];
	const enum plan_goal goal = job->check->goal;

	for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++)
		check_mem_fini(&rank->mem[b]);
	return check_mem_init(&rank->mem[PLAN_SRC],
			      plan_goal_length(goal, job->call, r, PLAN_SRC)) &&
	       check_mem_init(&rank->mem[PLAN_DST],
			      plan_goal_length(goal, job->call, r, PLAN_DST)) &&
	       check_mem_init(&rank->mem[PLAN_SCRATCH],
			      rank->plan->buf_len[PLAN_SCRATCH]) &&
	       mem_cut_parts(rank, PLAN_DST) && mem_cut_parts(rank, PLAN_SCRATCH) &&
	       source_place(job, r);
}

static int run_init(struct run *run)
{
	struct check_job *job = run->job;
	size_t n = (size_t)job->size;

	run->runner = calloc(n, sizeof(*run->runner));
	run->queue = calloc(n, sizeof(*run->queue));
	if (!run->runner || !run->queue)
		return -ENOMEM;
	while (run->mask + 1 < run->window)
		run->mask = run->mask * 2 + 1;
	for (size_t i = 0; i < job->channels; i++)
		job->channel[i].sends_seen = job->channel[i].recvs_seen = 0;
	for (int32_t r = 0; r < job->size; r++) {
		struct runner *me = &run->runner[r];
		size_t all = (size_t)job->rank[r].plan->instances + 1;

		me->slot = calloc((size_t)run->mask + 1, sizeof(*me->slot));
		if (!me->slot || !check_walk_init(&me->walk, &job->rank[r]) ||
		    !contents_init(job, r))
			return -ENOMEM;
		if (job->check->goal == PLAN_GOAL_BARRIER) {
			me->knows = calloc(all, sizeof(*me->knows));
			if (!check_set_single(&job->exprs.pool, (uint32_t)r, &me->own))
				return -ENOMEM;
			me->heard = me->own;
		}
		if (job->proofs && !job->rank[r].pair)
			job->rank[r].pair = calloc(all, sizeof(*job->rank[r].pair));
		if ((job->check->goal == PLAN_GOAL_BARRIER && !me->knows) ||
		    (job->proofs && !job->rank[r].pair))
			return -ENOMEM;
		queue_put(run, r);
	}
	return 0;
}

static void run_fini(struct run *run)
{
	for (int32_t r = 0; run->runner && r < run->job->size; r++) {
		free(run->runner[r].slot);
		free(run->runner[r].knows);
		check_walk_fini(&run->runner[r].walk);
	}
	free(run->runner);
	free(run->queue);
	free(run->a.run);
	free(run->b.run);
	free(run->out.run);
}

/* Rule of a barrier: nobody leaves before everybody came. */
static int barrier_result(struct run *run)
{
	for (int32_t r = 0; r < run->job->size; r++) {
		const struct check_set *heard = &run->runner[r].heard;

		if (heard->size != (uint32_t)run->job->size)
			return check_fault(
				run->job,
				"rank %d: barrier: it finishes without having "
				"heard of rank %u",
				r, check_set_missing(&run->job->exprs.pool, *heard));
	}
	return 0;
}

int check_run(struct check_job *job, uint64_t window, bool *stuck)
{
	struct run run = {.job = job, .window = window};
	int ret = run_init(&run);

	*stuck = false;
	while (!ret && run.queue_used)
		ret = rank_do(&run, queue_get(&run));
	if (!ret) {
		ret = stuck_fault(&run);
		*stuck = ret != 0;
	}
	if (!ret && job->check->goal == PLAN_GOAL_BARRIER)
		ret = barrier_result(&run);
	run_fini(&run);
	return ret;
}
