/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that both sides copy at once, over the mock wire, where what the sender pushed
 * may land late, even after its link: every byte is there when a receive completes, and
 * nothing is written after one that failed (rules D3, D4; the ledger checks both).
 * test_joint SEED repeats one random case.
 */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/tests/sim.h"
#include "util/tap.h"

#define FLAGS (PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)
#define LONG  300000

static void joint_init(struct sim *s, uint64_t seed, int eps)
{
	sim_init(s, seed, eps);
	s->net.caps.raw = true;
	s->net.caps.bulk = 0;
	s->net.caps.joints = MOCK_CELLS;
	s->net.refuse_segment = 80; /* a receiver that is slow enough to be helped */
}

static bool joint_fini(struct sim *s)
{
	bool good;

	sim_check(s);
	good = s->bad == 0 && s->open == 0 && mock_cells_used(&s->net) == 0;
	if (mock_cells_used(&s->net)) {
		tap_diag("%d cells were not given back", mock_cells_used(&s->net));
	}
	sim_fini(s);
	return good;
}

static bool all_good(const struct sim *s)
{
	for (int i = 0; i < s->op_count; i++) {
		if (s->ops[i].err) {
			return false;
		}
	}
	return true;
}

/* Every size around a piece and several, both directions at once, receives that are
 * longer and shorter. */
static void test_sizes(void)
{
	static const size_t sizes[] = {32768,  32769,  65535,  65536,	65537,	131071,
				       131072, 131073, 262144, 1048576, 2097153};
	struct sim s;
	bool good = true;

	joint_init(&s, 3, 2);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int e = 0; e < 2; e++) {
			sim_recv(&s, 1 - e, e, sizes[i] + i % 3, i, 0,
				 PROTO_TAGGED | PROTO_REPORT);
			sim_send(&s, e, 1 - e, sizes[i], i, FLAGS);
		}
	}
	sim_settle(&s);
	good = all_good(&s);
	tap_ok(s.net.pushed > 1, "senders take part: %" PRIu64 " pieces", s.net.pushed);
	tap_ok(joint_fini(&s) && good, "all sizes");

	joint_init(&s, 4, 2);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		sim_recv(&s, 1, 0, sizes[i] * 2 / 3, i, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, sizes[i], i, FLAGS);
	}
	sim_settle(&s);
	tap_ok(joint_fini(&s), "messages that are longer than their receives");
}

/* The sender makes no call from its step k on: the receiver needs none, once it was
 * announced. */
static void test_absent(void)
{
	int bad = 0;

	for (int k = 0; k < 60; k++) {
		struct sim s;
		struct sim_op *r;
		bool good;

		joint_init(&s, 100 + (uint64_t)k, 2);
		r = sim_recv(&s, 1, 0, LONG, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, LONG, 1, FLAGS);
		for (int i = 0; i < k; i++) {
			sim_step(&s, 100);
		}
		s.eps[0].paused = true;
		for (int i = 0; i < 100; i++) {
			sim_step(&s, 1000);
		}
		good = k < 30 || r->done == 1;
		s.eps[0].paused = false;
		sim_settle(&s);
		good &= all_good(&s);
		if (!joint_fini(&s) || !good) {
			tap_diag("stopped at step %d", k);
			bad++;
		}
	}
	tap_is_int(bad, 0, "a sender that is elsewhere delays nothing");
}

/* What the sender pushed is on its way: neither success nor failure before it is there.
 */
static void test_late(void)
{
	struct sim s;
	struct sim_op *r;
	uint64_t pushed = 0;
	int bad = 0;

	for (int k = 0; k < 100; k++) {
		joint_init(&s, 200 + (uint64_t)k, 2);
		s.net.late_push = 100;
		r = sim_recv(&s, 1, 0, LONG, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, LONG, 1, FLAGS);
		for (int i = 0; i < k; i++) {
			sim_step(&s, 100);
		}
		if (k % 2) {
			mock_kill_pair(&s.net);
		}
		sim_settle(&s);
		/* Killed before it was announced: nobody heard of it. */
		if (!r->done) {
			sim_cancel_all(&s);
			sim_settle(&s);
		}
		pushed += s.net.pushed;
		bad += !joint_fini(&s);
	}
	tap_ok(pushed > 50, "pieces that land late: %" PRIu64, pushed);
	tap_is_int(bad, 0, "D3, D4: a receive waits for what its sender is writing");
}

static bool is_under_way(const struct sim *s)
{
	return s->net.pushes.next && !list_empty(&s->net.pushes);
}

/* The receiver's endpoint closes in the middle. */
static void test_close(void)
{
	int waited = 0, bad = 0;

	for (int k = 0; k < 100; k++) {
		struct sim s;
		int i;

		joint_init(&s, 400 + (uint64_t)k, 2);
		s.net.late_push = 100;
		sim_recv(&s, 1, 0, LONG, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, LONG, 1, FLAGS);
		for (i = 0; i < k; i++) {
			sim_step(&s, 100);
		}
		proto_set_closing(s.eps[1].ep);
		waited += is_under_way(&s);
		for (i = 0; i < 10000 && !proto_is_drained(s.eps[1].ep); i++) {
			bad += is_under_way(&s) && !proto_is_written(s.eps[1].ep);
			sim_step(&s, 100);
		}
		bad += i == 10000 || is_under_way(&s) || mock_cells_used(&s.net);
		proto_ep_close(s.eps[1].ep);
		s.eps[1].ep = NULL;
		sim_settle(&s);
		sim_fini(&s);
	}
	tap_ok(waited > 10, "closed while pieces are under way: %d times", waited);
	tap_is_int(bad, 0,
		   "D3, D4: an endpoint is drained when nobody can write any more");
}

static void test_broken(void)
{
	struct sim s;
	bool good;

	joint_init(&s, 5, 2);
	s.net.break_push = 100;
	for (int i = 0; i < 5; i++) {
		sim_recv(&s, 1, 0, LONG, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, LONG, 1, FLAGS);
		sim_settle(&s);
	}
	good = all_good(&s);
	tap_ok(s.net.pushed > 0 && s.net.pushed <= 4,
	       "a sender that can't push is not asked again");
	tap_ok(joint_fini(&s) && good, "and its messages are pulled");
}

/* No piece is to be had although some are left: the link is about to end. */
static void test_refused(void)
{
	struct sim s;
	int bad = 0;

	for (int k = 0; k < 20; k++) {
		joint_init(&s, 300 + (uint64_t)k, 2);
		s.net.refuse_take = 40;
		sim_recv(&s, 1, 0, LONG, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, LONG, 1, FLAGS);
		sim_settle(&s);
		bad += !all_good(&s);
		bad += !joint_fini(&s);
	}
	tap_is_int(bad, 0, "what nobody took is pulled");
}

/* Pauses, deaths, refusals, anything, in any order. */
static bool random_case(uint64_t seed)
{
	struct sim s;
	uint64_t shape;
	bool good;

	joint_init(&s, seed, 3);
	shape = mock_random(&s.net);
	s.net.refuse_segment = shape & 1 ? 90 : 50;
	s.net.refuse_room = shape & 2 ? 20 : 0;
	s.net.refuse_cell = shape & 4 ? 40 : 0;
	s.net.late_push = shape & 8 ? 50 : 0;
	s.net.break_push = (shape & 48) == 48 ? 10 : 0;
	s.net.refuse_take = (shape & 0xf000) == 0xf000 ? 30 : 0;
	s.net.raw_refused = (shape & 0xf00) == 0xf00;
	s.net.ring = shape & 64 ? 3 : 32;
	good = sim_storm(&s, 200, shape & 128 ? 2 : 0);
	return joint_fini(&s) && good;
}

int main(int argc, char **argv)
{
	uint64_t base = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : getenv("WEFT_TEST_SHORT") ? 20 : 80;
	int bad = 0;

	test_sizes();
	test_absent();
	test_late();
	test_close();
	test_broken();
	test_refused();
	for (uint64_t seed = base; seed < base + count; seed++) {
		if (!random_case(seed)) {
			tap_diag("seed %" PRIu64, seed);
			bad++;
		}
	}
	tap_ok(bad == 0, "property: seeds %" PRIu64 " to %" PRIu64, base,
	       base + count - 1);
	return tap_done();
}
