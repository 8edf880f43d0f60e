/* SPDX-License-Identifier: BSD-2-Clause */
/* Building and reading plans: instances, dependencies, pieces, and what is refused. */
#include "config.h"

#include <errno.h>

#include "coll/plan/plan.h"
#include "util/tap.h"

static const struct plan_call call3 = {.rank = 1, .size = 3, .count = 10, .elem_size = 4};

static struct plan *finish(struct plan_builder *b)
{
	const char *why = "";
	struct plan *plan;

	if (plan_builder_finish(b, &plan, &why))
		tap_bail("the plan is refused: %s", why);
	return plan;
}

static void refused(struct plan_builder *b, const char *want)
{
	const char *why = "(accepted)";
	struct plan *plan;
	int ret = plan_builder_finish(b, &plan, &why);

	if (!tap_ok(ret == -EINVAL && !strcmp(why, want), "refused: %s", want))
		tap_diag("got %d, %s", ret, why);
	if (!ret)
		plan_free(plan);
}

/* "0+3 7+3": offset+length of each piece. */
static const char *pieces(const struct plan *plan, const struct plan_binding *bind,
			  struct plan_range r)
{
	static char text[256];
	struct plan_piece_iter it;
	uint64_t off, len, sum = 0;
	size_t at = 0;

	text[0] = '\0';
	plan_piece_begin(&it, plan, bind, &r);
	while (plan_piece_next(&it, &off, &len) && at < sizeof(text) - 48) {
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%s%" PRIu64 "+%" PRIu64, at ? " " : "", off, len);
		sum += len;
	}
	if (sum != plan_range_elements(plan, bind, &r))
		snprintf(text + at, sizeof(text) - at, " != %" PRIu64,
			 plan_range_elements(plan, bind, &r));
	return text;
}

static struct plan_range strided(uint8_t part, uint32_t first, uint32_t block,
				 uint32_t stride, uint32_t count)
{
	return (struct plan_range){PLAN_DST, part, first, block, stride, count};
}

static void piece_tests(void)
{
	static const uint64_t table[] = {0, 4, 4, 5, 9};
	static const uint64_t late[] = {0, 1, 3, 3};
	static const uint64_t falling[] = {0, 3, 1, 3};
	static const uint64_t beyond[] = {0, 1, 2, 8};
	static const uint64_t first[] = {0, 1, 3, 3};
	static const struct plan_piece piece[] = {{6, 1}, {9, 1}, {4, 1}};
	static const struct plan_map scattered = {first, piece};
	const uint64_t *disp[4] = {[2] = late};
	const struct plan_map *map[4] = {NULL};
	struct plan_binding bind = {.disp = disp, .map = map};
	struct plan_builder *b = plan_builder_open("pieces", &call3);
	uint8_t even = plan_add_balanced(b, 10, 4); /* 0 2 5 7 10 */
	uint8_t tab = plan_add_table(b, table, 4);
	uint8_t lat = plan_add_late(b, 7, 3);
	uint8_t fold = plan_add_folded(b, even, 2); /* slots of 3 */
	struct plan *p = finish(b);

	tap_is_str(pieces(p, NULL, plan_run(PLAN_DST, even, 1, 2)), "2+5", "two parts");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_DST, even, 3, 2)), "7+3 0+2",
		   "a run that wraps is two pieces");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_DST, even, 2, 4)), "5+5 0+5",
		   "all parts from the middle");
	tap_is_str(pieces(p, NULL, strided(even, 0, 1, 2, 2)), "0+2 5+2", "strided runs");
	tap_is_str(pieces(p, NULL, strided(even, 0, 1, 1, 4)), "0+10",
		   "adjacent runs are one piece");
	tap_is_str(pieces(p, NULL, strided(even, 3, 1, 3, 2)), "7+3 5+2",
		   "a stride that wraps");
	tap_is_str(pieces(p, NULL, plan_nothing()), "", "nothing has no piece");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_DST, tab, 0, 4)), "0+9", "a table");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_DST, tab, 1, 1)), "",
		   "an empty part has no piece");
	tap_is_str(pieces(p, NULL, strided(tab, 0, 1, 2, 2)), "0+5",
		   "pieces merge across an empty part");
	tap_is_str(pieces(p, &bind, plan_run(PLAN_DST, lat, 1, 2)), "1+2",
		   "F1: a late table is read from the binding");
	tap_ok(plan_binding_valid(p, &bind), "F1: a late table that ascends is good");
	/* Parts of 1, 2 and nothing, in no order; the second is two pieces. */
	map[2] = &scattered;
	tap_is_str(pieces(p, &bind, plan_run(PLAN_DST, lat, 1, 1)), "9+1 4+1",
		   "a map says where a part lies");
	tap_is_str(pieces(p, &bind, plan_run(PLAN_DST, lat, 1, 3)), "9+1 4+1 6+1",
		   "of several parts, one behind the other");
	tap_is_str(pieces(p, &bind, plan_run(PLAN_DST, lat, 2, 1)), "",
		   "of one of nothing");
	map[2] = NULL;
	disp[2] = falling;
	tap_ok(!plan_binding_valid(p, &bind), "F1: one that falls is not");
	disp[2] = beyond;
	tap_ok(!plan_binding_valid(p, &bind), "F1: one beyond the most is not");
	disp[2] = NULL;
	tap_ok(!plan_binding_valid(p, &bind) && !plan_binding_valid(p, NULL),
	       "F1: one that is not there is not");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_SCRATCH, fold, 0, 1)), "0+2",
		   "folded: length of the part, place of the slot");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_SCRATCH, fold, 3, 1)), "3+3",
		   "folded: odd parts in the second slot");
	tap_is_str(pieces(p, NULL, plan_run(PLAN_SCRATCH, fold, 1, 2)), "3+3 0+2",
		   "folded: parts are pieces of their own");
	tap_is_int((int64_t)p->buf_len[PLAN_SCRATCH], 6, "folded: scratch is asked for");
	plan_free(p);
}

static void balance_tests(void)
{
	struct plan_builder *b = plan_builder_open("balance", &call3);
	uint8_t huge = plan_add_balanced(b, UINT64_MAX, 3);
	uint8_t few = plan_add_balanced(b, 2, 5);
	struct plan *p = finish(b);
	bool good = true;

	tap_is_int((int64_t)plan_part_offset(p, NULL, huge, 3), -1,
		   "the last offset is the total, up to 64 bits");
	tap_ok(plan_part_offset(p, NULL, huge, 2) == UINT64_MAX / 3 * 2,
	       "no product overflows");
	for (uint32_t i = 0; i <= 5; i++)
		good &= plan_part_offset(p, NULL, few, i) == i * 2 / 5;
	tap_ok(good, "part i begins at floor(i * total / parts)");
	plan_free(p);
}

static void instance_tests(void)
{
	struct plan_builder *b = plan_builder_open("instances", &call3);
	uint8_t part = plan_add_balanced(b, 10, 5);
	uint32_t copy, recv, send;
	struct plan_instance in;
	struct plan_dep *d;
	struct plan *p;
	uint64_t on;

	copy = plan_add_copy(b, plan_run(PLAN_DST, part, 0, 1),
			     plan_run(PLAN_SRC, part, 0, 1));
	plan_loop_begin(b, 4);
	recv = plan_add_recv(b, 0, plan_run(PLAN_DST, part, 1, 1));
	send = plan_add_send(b, 2, plan_run(PLAN_DST, part, 1, 1),
			     plan_run(PLAN_DST, part, 3, 1));
	plan_set_advance(b, recv, 2, -1, 0, 0);
	plan_set_advance(b, send, -1, 2, -3, 0);
	plan_add_dep(b, send, recv, -1, 1);
	plan_add_dep_same(b, send, copy);
	plan_loop_end(b);
	/* Peers 0, 2 in turn would meet rank 1 itself: only even turns are taken. */
	plan_set_advance(b, recv, 0, -1, 0, 0);
	plan_set_advance(b, send, 0, 2, -3, 0);
	p = finish(b);
	tap_is_int((int64_t)p->instances, 9, "instances of all loops");
	tap_is_int((int64_t)p->buf_len[PLAN_DST], 10, "lengths are set");
	plan_instance_at(p, 0, &in);
	tap_ok(in.step == copy && in.trip == 0, "a straight step is a loop of one trip");
	plan_instance_at(p, 5, &in);
	tap_ok(in.step == recv && in.trip == 2 && in.dst.first == 4,
	       "trip-major, parts advance and wrap below 0");
	plan_instance_at(p, 8, &in);
	tap_ok(in.step == send && in.trip == 3 && in.dst.first == 4 && in.src.first == 2,
	       "parts wrap above the end");
	d = &p->dep[p->step[send].dep_first];
	tap_ok(plan_dep_instance(p, d, &in, &on) && on == 5, "a dependency one trip ago");
	tap_ok(plan_dep_instance(p, d + 1, &in, &on) && on == 0, "one outside the loop");
	plan_instance_at(p, 2, &in);
	tap_ok(!plan_dep_instance(p, d, &in, &on), "a trip that is none is ignored");
	plan_free(p);
}

static void peer_tests(void)
{
	struct plan_call call = {.rank = 2, .size = 5, .count = 1, .elem_size = 4};
	struct plan_builder *b = plan_builder_open("peers", &call);
	struct plan_instance in;
	uint32_t send;
	struct plan *p;

	plan_loop_begin(b, 4);
	send = plan_add_send(b, 3, plan_nothing(), plan_nothing());
	plan_set_advance(b, send, 1, 0, 0, 0);
	plan_loop_end(b);
	p = finish(b);
	plan_instance_at(p, 3, &in);
	tap_is_int(in.peer, 1, "F2: peers advance modulo the ranks");
	plan_free(p);
	b = plan_builder_open("peers", &call);
	plan_loop_begin(b, 5);
	send = plan_add_send(b, 3, plan_nothing(), plan_nothing());
	plan_set_advance(b, send, 1, 0, 0, 0);
	plan_loop_end(b);
	refused(b, "a rank sends to or receives from itself (COPY does that)");
	b = plan_builder_open("peers", &call);
	plan_add_recv(b, 5, plan_nothing());
	refused(b, "a peer is no rank");
}

/* A builder with one loop of a RECV and a SEND of 4 trips. */
static struct plan_builder *loop_open(uint32_t *recv, uint32_t *send)
{
	struct plan_builder *b = plan_builder_open("loop", &call3);
	uint8_t part = plan_add_balanced(b, 10, 5);

	plan_loop_begin(b, 4);
	*recv = plan_add_recv(b, 0, plan_run(PLAN_DST, part, 1, 1));
	*send = plan_add_send(b, 2, plan_run(PLAN_DST, part, 1, 1),
			      plan_run(PLAN_DST, part, 1, 1));
	plan_loop_end(b);
	return b;
}

static void dep_tests(void)
{
	const char *forward = "a dependency points forward in program order";
	struct plan_builder *b;
	uint32_t recv, send, copy;

	b = loop_open(&recv, &send);
	plan_add_dep(b, recv, send, 0, 1);
	refused(b, forward);
	b = loop_open(&recv, &send);
	plan_add_dep(b, send, recv, 1, 1);
	refused(b, forward);
	b = loop_open(&recv, &send);
	plan_add_dep(b, send, send, 0, 1);
	refused(b, forward);
	/* 0, 2, 4: trip 1 would wait for trip 2. */
	b = loop_open(&recv, &send);
	plan_add_dep(b, recv, send, 0, 2);
	refused(b, forward);
	/* 3, 2, 1, 0: trips 0 and 1 would wait for later ones. */
	b = loop_open(&recv, &send);
	plan_add_dep(b, send, recv, 3, -1);
	refused(b, forward);
	b = loop_open(&recv, &send);
	copy = plan_add_copy(b, plan_nothing(), plan_nothing());
	plan_add_dep(b, recv, copy, 0, 0);
	refused(b, "a dependency points to a later loop");
	b = loop_open(&recv, &send);
	copy = plan_add_copy(b, plan_nothing(), plan_nothing());
	plan_add_dep_same(b, copy, recv);
	refused(b, "a dependency on \"the same trip\" of another loop");
	b = loop_open(&recv, &send);
	plan_add_dep(b, send, 7, 0, 1);
	refused(b, "a step is changed that was not added");
	/* Never a trip: allowed wherever it points. */
	b = loop_open(&recv, &send);
	plan_add_dep(b, recv, send, 9, 1);
	plan_add_dep(b, recv, send, -1, 1);
	plan_add_dep(b, recv, recv, -5, 2);
	plan_free(finish(b));
	tap_ok(true, "dependencies that never point to a later trip are good");
}

static void range_tests(void)
{
	struct plan_builder *b;
	uint32_t copy, send, recv;
	uint8_t part;

	b = plan_builder_open("ranges", &call3);
	part = plan_add_balanced(b, 10, 4);
	plan_add_recv(b, 0, plan_run(PLAN_DST, part, 4, 1));
	refused(b, "a range begins after the last part");
	b = plan_builder_open("ranges", &call3);
	part = plan_add_balanced(b, 10, 4);
	plan_add_recv(b, 0, strided(part, 0, 2, 2, 3));
	refused(b, "a range has more parts than its partition (or slots)");
	b = plan_builder_open("ranges", &call3);
	plan_add_recv(b, 0, plan_run(PLAN_DST, 3, 0, 1));
	refused(b, "a range names no partition");
	b = plan_builder_open("ranges", &call3);
	part = plan_add_balanced(b, 10, 4);
	plan_add_recv(b, 0, plan_run(PLAN_SRC, part, 0, 1));
	refused(b, "the source buffer is written");
	b = plan_builder_open("ranges", &call3);
	part = plan_add_balanced(b, 10, 4);
	plan_add_recv(b, 0, plan_run(PLAN_SCRATCH, part, 0, 1));
	refused(b, "a range's partition is longer than its buffer");
	b = plan_builder_open("ranges", &call3);
	part = plan_add_balanced(b, 10, 4);
	part = plan_add_folded(b, part, 2);
	plan_add_recv(b, 0, plan_run(PLAN_SCRATCH, part, 0, 3));
	refused(b, "a range has more parts than its partition (or slots)");
	b = plan_builder_open("proof", &call3);
	copy = plan_add_copy(b, plan_nothing(), plan_nothing());
	send = plan_add_send(b, 0, plan_nothing(), plan_nothing());
	plan_set_proof(b, send, copy, 0, 0);
	refused(b, "a proof is no RECV");
	b = plan_builder_open("proof", &call3);
	recv = plan_add_recv(b, 0, plan_nothing());
	send = plan_add_send(b, 0, plan_nothing(), plan_nothing());
	plan_set_proof(b, send, recv, 0, 0);
	plan_set_proof(b, send, recv, 0, 0);
	refused(b, "a SEND has two proofs");
	b = plan_builder_open("scale", &call3);
	recv = plan_add_recv(b, 0, plan_nothing());
	plan_set_scale(b, recv);
	refused(b, "a step is scaled that is no REDUCE and no COPY");
}

static void builder_tests(void)
{
	static const uint64_t falling[] = {0, 4, 3};
	struct plan_call outside = {.rank = 3, .size = 3};
	const char *why = NULL;
	struct plan_builder *b;
	struct plan *plan;

	b = plan_builder_open("loops", &call3);
	plan_loop_begin(b, 1);
	refused(b, "a loop was not ended");
	b = plan_builder_open("loops", &call3);
	plan_loop_begin(b, 1);
	plan_loop_begin(b, 1);
	refused(b, "a loop begins inside a loop");
	b = plan_builder_open("loops", &call3);
	plan_loop_begin(b, 1);
	plan_loop_end(b);
	refused(b, "a loop has no step");
	b = plan_builder_open("loops", &call3);
	plan_loop_end(b);
	refused(b, "a loop ends that did not begin");
	b = plan_builder_open("parts", &call3);
	plan_add_balanced(b, 10, 0);
	refused(b, "a partition has no part");
	b = plan_builder_open("parts", &call3);
	plan_add_table(b, falling, 2);
	refused(b, "a table partition's displacements do not ascend");
	b = plan_builder_open("parts", &call3);
	plan_add_folded(b, 0, 2);
	refused(b, "a folded partition is not of a plain partition");
	b = plan_builder_open("parts", &call3);
	for (int i = 0; i < 257; i++)
		plan_add_balanced(b, 1, 1);
	refused(b, "a plan has more than 256 partitions");
	refused(plan_builder_open("rank", &outside),
		"the rank is not in the communicator");
	plan_add_copy(NULL, plan_nothing(), plan_nothing());
	plan_loop_begin(NULL, 1);
	plan_loop_end(NULL);
	plan_set_proof(NULL, 0, 0, 0, 0);
	tap_ok(plan_builder_finish(NULL, &plan, &why) == -ENOMEM && why,
	       "no builder: out of memory, reported once, at the end");
	plan_free(NULL);
}

struct lines {
	char text[2048];
};

static void line_add(void *arg, const char *text)
{
	struct lines *l = arg;
	size_t at = strlen(l->text);

	snprintf(l->text + at, sizeof(l->text) - at, "%s\n", text);
}

static void print_tests(void)
{
	struct lines l = {""};
	struct plan_builder *b;
	uint32_t recv, send, sum;
	struct plan *p;

	b = loop_open(&recv, &send);
	plan_set_advance(b, send, 0, 1, -1, 0);
	plan_add_dep(b, send, recv, -2, 1);
	sum = plan_add_reduce(b, plan_run(PLAN_DST, 0, 0, 1), plan_run(PLAN_SRC, 0, 0, 1),
			      plan_run(PLAN_DST, 0, 0, 1));
	plan_set_scale(b, sum);
	p = finish(b);
	plan_print(p, line_add, &l);
	tap_is_str(l.text,
		   "loop: rank 1 of 3, 9 instances, src 10 dst 10 scratch 0 elements\n"
		   " p0 10 elements in 5 parts\n"
		   " 4 trips from instance 0\n"
		   "  #0 recv from 0: dst[p0: 1+1]\n"
		   "  #1 send to 2: dst[p0: 1+1 -1/trip] -> dst[p0: 1+1 +1/trip] after "
		   "#0(t-2)\n"
		   "  #2 reduce dst[p0: 0+1] = src[p0: 0+1] op dst[p0: 0+1] / 3\n",
		   "a plan as text");
	plan_free(p);
}

int main(void)
{
	piece_tests();
	balance_tests();
	instance_tests();
	peer_tests();
	dep_tests();
	range_tests();
	builder_tests();
	print_tests();
	return tap_done();
}
