/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker, rule by rule (F6): small plans made by hand, each wrong in one way, and
 * the same plan put right.
 */
#include "config.h"

#include <errno.h>

#include "coll/algo/algo.h"
#include "coll/plan/check_expr.h"
#include "coll/plan/check_mem.h"
#include "coll/plan/checker.h"
#include "util/tap.h"

#define RANKS_MAX 4

/* Plans of a call, built rank by rank. */
struct set {
	struct plan_call call;
	enum plan_goal goal;
	uint64_t window;
	struct plan *plans[RANKS_MAX];
	struct plan_builder *b; /* of the rank being built */
	int32_t built;
	uint8_t whole; /* its partition of one part of count elements */
};

static struct set set_open(enum plan_goal goal, int32_t size, uint64_t count)
{
	return (struct set){.call = {.size = size, .count = count, .elem_size = 4},
			    .goal = goal};
}

static struct plan_builder *rank_begin(struct set *s)
{
	s->call.rank = s->built;
	s->b = plan_builder_open("hand-made", &s->call);
	s->whole = plan_add_balanced(s->b, s->call.count, 1);
	return s->b;
}

static void rank_end(struct set *s)
{
	const char *why = "";

	if (plan_builder_finish(s->b, &s->plans[s->built++], &why))
		tap_bail("the plan is refused: %s", why);
}

static struct plan_range whole(const struct set *s, enum plan_buf buf)
{
	return plan_run(buf, s->whole, 0, 1);
}

/* Checks and frees. want NULL: proven; else the sentence must contain it. */
static void set_expect(struct set *s, const char *want, const char *name)
{
	struct plan_check check = {.goal = s->goal,
				   .call = &s->call,
				   .plans = s->plans,
				   .window = s->window};
	char why[256];
	int ret = plan_check(&check, why, sizeof(why));

	if (!tap_ok(want ? ret == -EINVAL && strstr(why, want) : !ret, "%s", name))
		tap_diag("%d: \"%s\"", ret, why);
	else if (want)
		tap_diag("%s", why);
	for (int32_t r = 0; r < s->built; r++)
		plan_free(s->plans[r]);
}

/* A broadcast of two ranks, in place; what is wrong with it is told by flags. */
enum twist { RIGHT, NO_RECV, OTHER_RANGE, SHORT, EMPTY, TOO_LONG };

static struct set broadcast_make(enum twist t)
{
	struct set s = set_open(PLAN_GOAL_BROADCAST, 2, 10);
	struct plan_range half;
	uint8_t halves;

	s.call.in_place = true;
	rank_begin(&s);
	halves = plan_add_balanced(s.b, 10, 2);
	half = plan_run(PLAN_DST, halves, 0, 1);
	if (t != EMPTY)
		plan_add_send(s.b, 1, t == SHORT ? half : whole(&s, PLAN_DST),
			      t == OTHER_RANGE ? half : whole(&s, PLAN_DST));
	rank_end(&s);
	rank_begin(&s);
	if (t == TOO_LONG)
		s.whole = plan_add_balanced(s.b, 11, 1);
	if (t != NO_RECV && t != EMPTY)
		plan_add_recv(s.b, 0, whole(&s, PLAN_DST));
	rank_end(&s);
	return s;
}

static void pairing_tests(void)
{
	struct set s = broadcast_make(RIGHT);

	set_expect(&s, NULL, "F6: a right broadcast is proven");
	s = broadcast_make(NO_RECV);
	set_expect(&s, "pairing: rank 0 sends 1 times to rank 1", "F6: a SEND alone");
	s = broadcast_make(OTHER_RANGE);
	set_expect(&s, "in another range", "F6: a pair with two ranges");
	s = broadcast_make(SHORT);
	set_expect(&s, "length: 5 elements are sent", "F6: a pair with two lengths");
	s = broadcast_make(EMPTY);
	set_expect(&s, "contents: element 0", "F6: a broadcast of nothing");
	s = broadcast_make(TOO_LONG);
	set_expect(&s, "11 elements of the result, which has 10", "F6: beyond a buffer");
}

/* Rank 1 gets rank 0's vector into scratch and copies it on: read before it is there. */
static void readiness_tests(void)
{
	for (int right = 0; right < 2; right++) {
		struct set s = set_open(PLAN_GOAL_BROADCAST, 2, 10);
		uint32_t recv, copy;

		s.call.in_place = true;
		rank_begin(&s);
		plan_add_send(s.b, 1, whole(&s, PLAN_DST), whole(&s, PLAN_SCRATCH));
		rank_end(&s);
		rank_begin(&s);
		plan_need_scratch(s.b, 10);
		recv = plan_add_recv(s.b, 0, whole(&s, PLAN_SCRATCH));
		copy = plan_add_copy(s.b, whole(&s, PLAN_DST), whole(&s, PLAN_SCRATCH));
		if (right)
			plan_add_dep_same(s.b, copy, recv);
		rank_end(&s);
		set_expect(&s, right ? NULL : "readiness: it reads what is written by",
			   right ? "F6: a COPY after its RECV"
				 : "F6: a COPY that does not wait for its RECV");
	}
	/* Two arrivals at one place: the second waits for the first, or is refused. */
	for (int right = 0; right < 2; right++) {
		struct set s = set_open(PLAN_GOAL_BROADCAST, 2, 10);
		uint32_t first, second;

		s.call.in_place = true;
		rank_begin(&s);
		plan_add_send(s.b, 1, whole(&s, PLAN_DST), whole(&s, PLAN_DST));
		plan_add_send(s.b, 1, whole(&s, PLAN_DST), whole(&s, PLAN_DST));
		rank_end(&s);
		rank_begin(&s);
		first = plan_add_recv(s.b, 0, whole(&s, PLAN_DST));
		second = plan_add_recv(s.b, 0, whole(&s, PLAN_DST));
		if (right)
			plan_add_dep_same(s.b, second, first);
		rank_end(&s);
		set_expect(&s, right ? NULL : "readiness: it writes what is written by",
			   right ? "F6: a place that arrives twice, one after the other"
				 : "F6: a place that arrives twice at once");
	}
}

/* An exchange of two ranks: all-reduce, in place; the sum goes over what is sent. */
enum exchange { WAITS, RACES, DOUBLE, SCALED, SCALED_EARLY, SWAPPED };

static struct set exchange_make(enum exchange e, bool average)
{
	struct set s = set_open(PLAN_GOAL_ALLREDUCE, 2, 10);

	s.call.in_place = true;
	s.call.average = average;
	for (int32_t r = 0; r < 2; r++) {
		uint32_t recv, send, sum, copy;
		bool own_first = r == 0 || e == SWAPPED;

		rank_begin(&s);
		plan_need_scratch(s.b, 10);
		recv = plan_add_recv(s.b, !r, whole(&s, PLAN_SCRATCH));
		send = plan_add_send(s.b, !r, whole(&s, PLAN_DST),
				     whole(&s, PLAN_SCRATCH));
		if (e == SCALED_EARLY) {
			copy = plan_add_copy(s.b, whole(&s, PLAN_DST),
					     whole(&s, PLAN_DST));
			plan_set_scale(s.b, copy);
			plan_add_dep_same(s.b, copy, send);
		}
		sum = plan_add_reduce(
			s.b, whole(&s, PLAN_DST),
			whole(&s, own_first ? PLAN_DST : PLAN_SCRATCH),
			whole(&s, own_first || e == DOUBLE ? PLAN_SCRATCH : PLAN_DST));
		plan_add_dep_same(s.b, sum, recv);
		if (e == SCALED_EARLY)
			plan_add_dep_same(s.b, sum, copy);
		if (e != RACES)
			plan_add_dep_same(s.b, sum, send);
		if (e == SCALED)
			plan_set_scale(s.b, sum);
		rank_end(&s);
	}
	return s;
}

static void contribution_tests(void)
{
	struct set s = exchange_make(WAITS, false);

	set_expect(&s, NULL, "F6: an exchange is proven");
	s = exchange_make(WAITS, false);
	s.call.ordered = true;
	set_expect(&s, NULL, "F6: lower ranks first is proven in order");
	s = exchange_make(SWAPPED, false);
	s.call.ordered = true;
	set_expect(&s, "order: rank 0's comes behind", "F6: its own first is not");
	s = exchange_make(RACES, false);
	set_expect(&s, "readiness: it writes what is read by",
		   "F6: a sum over what is still being sent");
	s = exchange_make(DOUBLE, false);
	set_expect(&s, "contributions: rank 0's would go in twice",
		   "F6: a contribution twice");
	s = exchange_make(SWAPPED, false);
	set_expect(&s, "bits: element 0", "F6: ranks that add in different orders");
	s = exchange_make(SCALED, true);
	set_expect(&s, NULL, "F2: an average is proven");
	s = exchange_make(WAITS, true);
	set_expect(&s, "scale: element 0 was not divided", "F2: an average not divided");
	s = exchange_make(SCALED, false);
	set_expect(&s, "scale: element 0 was divided", "F2: a sum divided");
	s = exchange_make(SCALED_EARLY, true);
	set_expect(&s, "scale: it divides before every rank", "F2: divided too early");
}

/* Both ranks send first, then receive. */
static void deadlock_tests(void)
{
	for (uint64_t window = 0; window < 3; window++) {
		struct set s = set_open(PLAN_GOAL_BARRIER, 2, 0);

		s.window = window;
		for (int32_t r = 0; r < 2; r++) {
			rank_begin(&s);
			plan_add_send(s.b, !r, plan_nothing(), plan_nothing());
			plan_add_recv(s.b, !r, plan_nothing());
			rank_end(&s);
		}
		set_expect(&s, window == 1 ? "deadlock: rank 1, whose turn it is" : NULL,
			   window == 1 ? "F6: one instance ahead is a deadlock"
				       : "F6: two instances ahead are none");
	}
	struct set s = set_open(PLAN_GOAL_BARRIER, 2, 0);

	for (int32_t r = 0; r < 2; r++) {
		uint32_t recv, send;

		rank_begin(&s);
		recv = plan_add_recv(s.b, !r, plan_nothing());
		send = plan_add_send(s.b, !r, plan_nothing(), plan_nothing());
		plan_add_dep_same(s.b, send, recv);
		rank_end(&s);
	}
	set_expect(&s, "deadlock", "F6: both wait for the other, at any window");
}

static void barrier_tests(void)
{
	struct set s = set_open(PLAN_GOAL_BARRIER, 3, 0);

	/* A token goes 0, 1, 2, 0, 1: every hop waits for the one before. */
	for (int32_t r = 0; r < 3; r++) {
		uint32_t recv, send;

		rank_begin(&s);
		if (r == 0)
			plan_add_send(s.b, 1, plan_nothing(), plan_nothing());
		recv = plan_add_recv(s.b, (r + 2) % 3, plan_nothing());
		send = plan_add_send(s.b, (r + 1) % 3, plan_nothing(), plan_nothing());
		plan_add_dep_same(s.b, send, recv);
		if (r == 1)
			plan_add_recv(s.b, 0, plan_nothing());
		rank_end(&s);
	}
	set_expect(&s, NULL, "F6: everybody has heard of everybody");
	s = set_open(PLAN_GOAL_BARRIER, 3, 0);
	for (int32_t r = 0; r < 3; r++) {
		rank_begin(&s);
		plan_add_send(s.b, (r + 1) % 3, plan_nothing(), plan_nothing());
		plan_add_recv(s.b, (r + 2) % 3, plan_nothing());
		rank_end(&s);
	}
	set_expect(&s, "rank 0: barrier: it finishes without having heard of rank 1",
		   "F6: a barrier that leaves early");
}

/* Rank 0 sends to 1 after having heard from it; whether that proves READY is a matter of
 * what rank 1's RECV waits for. */
enum waits_for { NOTHING, ITS_COPY, ITS_SEND, A_LATER_COPY };

static struct set proof_make(enum waits_for w)
{
	struct set s = set_open(PLAN_GOAL_BROADCAST, 2, 10);
	uint32_t recv, send, copy = 0;

	s.call.in_place = true;
	rank_begin(&s);
	recv = plan_add_recv(s.b, 1, plan_nothing());
	send = plan_add_send(s.b, 1, whole(&s, PLAN_DST), whole(&s, PLAN_DST));
	plan_set_proof(s.b, send, recv, 0, 0);
	rank_end(&s);
	rank_begin(&s);
	if (w == ITS_COPY)
		copy = plan_add_copy(s.b, plan_nothing(), plan_nothing());
	send = plan_add_send(s.b, 0, plan_nothing(), plan_nothing());
	if (w == ITS_COPY)
		plan_add_dep_same(s.b, send, copy);
	if (w == A_LATER_COPY)
		copy = plan_add_copy(s.b, plan_nothing(), plan_nothing());
	recv = plan_add_recv(s.b, 0, whole(&s, PLAN_DST));
	if (w != NOTHING)
		plan_add_dep_same(s.b, recv, w == ITS_SEND ? send : copy);
	rank_end(&s);
	return s;
}

static void proof_tests(void)
{
	struct set s = proof_make(NOTHING);

	set_expect(&s, NULL, "F3: any message proves a RECV that waits for nothing");
	s = proof_make(ITS_COPY);
	set_expect(&s, NULL, "F3: a message after all that the RECV waits for");
	s = proof_make(ITS_SEND);
	set_expect(&s, "proof: rank 1's instance 0 proves nothing",
		   "F3: a message does not prove that its own SEND is done");
	s = proof_make(A_LATER_COPY);
	set_expect(&s, "also waits for instance 1", "F3: a RECV that waits for more");
}

static void header_tests(void)
{
	static const uint64_t disp[] = {0, 10};
	struct set s = set_open(PLAN_GOAL_BROADCAST, 1, 10);

	rank_begin(&s);
	plan_add_late(s.b, 10, 1);
	rank_end(&s);
	set_expect(&s, "partition 1 is bound late", "F1: a late partition is refused");
	s = set_open(PLAN_GOAL_BROADCAST, 1, 10);
	rank_begin(&s);
	s.whole = plan_add_table(s.b, disp, 1);
	plan_add_copy(s.b, whole(&s, PLAN_DST), whole(&s, PLAN_SRC));
	rank_end(&s);
	set_expect(&s, NULL, "a table partition is proven");
	s = broadcast_make(RIGHT);
	s.call.in_place = false;
	set_expect(&s, "the plan is in place, the call is not", "in place or not");
	s = broadcast_make(RIGHT);
	s.plans[1]->puts = true;
	set_expect(&s, "rank 1: the plan prefers puts, the one of rank 0",
		   "ranks that go different ways");
	s = broadcast_make(RIGHT);
	s.plans[1]->lines = true;
	set_expect(&s, "rank 1: the plan is for lines, the one of rank 0",
		   "ranks that disagree about lines");
	s = broadcast_make(RIGHT);
	s.plans[1]->rank = 0;
	set_expect(&s, "the plan is of rank 0 of 2", "a plan of another rank");
	s = broadcast_make(RIGHT);
	s.plans[1]->step[0].dst.first = 99;
	set_expect(&s, "rank 1: a range begins after the last part",
		   "a malformed plan is refused before it is walked");
}

/* An operand that overlaps the result, shifted. */
static void overlap_tests(void)
{
	struct set s = set_open(PLAN_GOAL_BROADCAST, 1, 10);
	uint8_t fine;

	s.call.in_place = true;
	rank_begin(&s);
	fine = plan_add_balanced(s.b, 10, 10);
	plan_add_copy(s.b, plan_run(PLAN_DST, fine, 0, 5),
		      plan_run(PLAN_DST, fine, 1, 5));
	rank_end(&s);
	set_expect(&s, "range: an operand overlaps the result", "F6: a shifted overlap");
	s = set_open(PLAN_GOAL_BROADCAST, 1, 10);
	s.call.in_place = true;
	rank_begin(&s);
	fine = plan_add_balanced(s.b, 10, 10);
	plan_add_copy(s.b, (struct plan_range){PLAN_DST, fine, 0, 3, 2, 2},
		      plan_run(PLAN_SRC, fine, 0, 6));
	rank_end(&s);
	set_expect(&s, "range: it writes a place twice", "F6: runs that overlap");
}

static void set_tests(void)
{
	struct check_set_pool pool = {.span = NULL};
	struct check_set a, b, c, d;
	uint32_t twice;

	if (!check_set_single(&pool, 3, &a) || !check_set_single(&pool, 5, &b) ||
	    !check_set_union(&pool, a, b, &c, &twice))
		tap_bail("out of memory");
	tap_ok(c.size == 2 && c.count == 2 && twice == UINT32_MAX, "a set of two parts");
	if (!check_set_single(&pool, 4, &a) || !check_set_union(&pool, a, c, &d, &twice))
		tap_bail("out of memory");
	tap_ok(d.size == 3 && d.count == 1, "a gap that is filled joins them");
	tap_is_int(check_set_missing(&pool, d), 0, "the first that is missing");
	if (!check_set_union(&pool, c, d, &a, &twice))
		tap_bail("out of memory");
	tap_ok(twice == 3 && a.size == 3, "a rank in both is told");
	check_set_pool_fini(&pool);
}

/* Cuts of one buffer, one by one and all at once. */
static void memory_tests(void)
{
	static const uint64_t at[] = {0, 0, 3, 3, 7, 9, 12};
	const size_t count = sizeof(at) / sizeof(at[0]);
	struct check_mem one, all;
	bool same = check_mem_init(&one, 9) && check_mem_init(&all, 9) &&
		    check_mem_cut_new(&all, at, count);

	for (size_t i = 0; i < count; i++)
		same = same && check_mem_cut(&one, at[i]);
	same = same && one.cells == 3 && all.cells == 3;
	for (size_t i = 0; same && i <= 3; i++)
		same = one.cell[i].at == all.cell[i].at && !all.cell[i].expr.node;
	tap_ok(same, "cuts all at once are those one by one");
	check_mem_fini(&one);
	check_mem_fini(&all);
	tap_ok(check_mem_init(&one, 0) && check_mem_cut_new(&one, at, count) &&
		       one.cells == 0,
	       "a buffer of nothing has no cell");
	check_mem_fini(&one);
}

int main(void)
{
	pairing_tests();
	readiness_tests();
	contribution_tests();
	deadlock_tests();
	barrier_tests();
	proof_tests();
	header_tests();
	overlap_tests();
	set_tests();
	memory_tests();
	return tap_done();
}
