/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages through bulk slots, over the mock wire: pieces, slots that come back exactly
 * once (the mock aborts else, and spoils what was given back), a side that stops calling,
 * a side that dies. test_bulk SEED repeats one random case.
 */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/tests/sim.h"
#include "util/tap.h"

#define FLAGS (PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)

static int slots_taken(struct sim *s)
{
	int taken = 0;

	for (int e = 0; e < s->ep_count; e++) {
		taken += mock_slots_taken(proto_wire_ep(s->eps[e].ep));
	}
	return taken;
}

static void bulk_init(struct sim *s, uint64_t seed, int eps, bool raw)
{
	sim_init(s, seed, eps);
	s->net.caps.raw = raw;
	s->net.caps.bulk = MOCK_SLOT_SIZE;
}

static bool bulk_fini(struct sim *s)
{
	bool good;

	sim_check(s);
	good = s->bad == 0 && s->open == 0 && slots_taken(s) == 0;
	sim_fini(s);
	return good;
}

/* Every size around a piece, a slot and several, both directions at once. */
static void test_sizes(bool raw)
{
	static const size_t sizes[] = {4096,  4097,  16383, 16384,  16385,   32768,
				       49151, 65536, 65537, 200000, 3000001, 1 << 20};
	struct sim s;

	bulk_init(&s, 3, 2, raw);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int e = 0; e < 2; e++) {
			sim_recv(&s, 1 - e, e, sizes[i] + i % 3, i, 0,
				 PROTO_TAGGED | PROTO_REPORT);
			sim_send(&s, e, 1 - e, sizes[i], i, FLAGS);
		}
	}
	sim_settle(&s);
	for (int i = 0; i < s.op_count; i++) {
		s.bad += s.ops[i].err != 0;
	}
	tap_ok(bulk_fini(&s), "all sizes, %s", raw ? "or pulled" : "slots only");
}

/* The sender makes no call from its step k on. */
static bool stall_case(int k, bool raw)
{
	struct sim s;
	struct sim_op *r, *m;
	uint64_t begun;
	bool good;

	bulk_init(&s, 100 + (uint64_t)k, 2, raw);
	r = sim_recv(&s, 1, 0, 300000, 1, 0, PROTO_TAGGED | PROTO_REPORT);
	m = sim_send(&s, 0, 1, 300000, 1, FLAGS);
	for (int i = 0; i < k; i++) {
		sim_step(&s, 100);
	}
	begun = s.net.now;
	s.eps[0].paused = true;
	for (int i = 0; i < 400; i++) {
		sim_step(&s, 1000);
	}
	/* Announced before the pause: then it can be had without the sender. */
	good = k < 30 || !raw || r->done == 1;
	if (raw && r->done && r->done_at > begun) {
		uint64_t late = r->done_at - begun;

		/* What was under way arrives; what wasn't is pulled, but not at once. */
		good &= late < 5000 || (late >= 90000 && late < 150000);
	}
	s.eps[0].paused = false;
	sim_settle(&s);
	good &= r->done == 1 && !r->err && m->done == 1 && !m->err;
	return bulk_fini(&s) && good;
}

static void test_stall(void)
{
	int bad = 0;

	for (int k = 0; k < 120; k++) {
		bool pulled = stall_case(k, true), waited = stall_case(k, false);

		if (!pulled || !waited) {
			tap_diag("stopped at step %d: %d %d", k, pulled, waited);
			bad++;
		}
	}
	tap_is_int(bad, 0, "a sender that stops: taken over after 100 us, or waited for");
}

/* All pulls are refused although they were offered: the slots go on. */
static void test_refused_pull(void)
{
	int bad = 0;

	for (int k = 20; k < 80; k++) {
		struct sim s;

		bulk_init(&s, 500 + (uint64_t)k, 2, true);
		s.net.raw_refused = true;
		sim_recv(&s, 1, 0, 300000, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, 300000, 1, FLAGS);
		for (int i = 0; i < k; i++) {
			sim_step(&s, 100);
		}
		s.eps[0].paused = true;
		for (int i = 0; i < 300; i++) {
			sim_step(&s, 1000);
		}
		s.eps[0].paused = false;
		sim_settle(&s);
		bad += s.ops[0].err || s.ops[1].err;
		bad += !bulk_fini(&s);
	}
	tap_is_int(bad, 0, "a pull that is refused in the middle: the stream goes on");
}

/* A receiver that stops holds slots; nobody else waits for them. */
static void test_exhausted(void)
{
	struct sim s;
	int there = 0;

	bulk_init(&s, 5, 3, false);
	for (int i = 0; i < 4; i++) {
		sim_recv(&s, 1, 0, 200000, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, 200000, 1, FLAGS);
	}
	while (mock_slots_taken(proto_wire_ep(s.eps[0].ep)) == 0) {
		sim_step(&s, 100);
	}
	s.eps[1].paused = true;
	for (int i = 0; i < 1000; i++) {
		sim_step(&s, 100);
	}
	tap_is_int(mock_slots_taken(proto_wire_ep(s.eps[0].ep)), MOCK_SLOTS,
		   "a receiver that stopped holds every slot");
	for (int i = 0; i < 5; i++) {
		sim_recv(&s, 2, 0, 200000, 2, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 2, 200000, 2, FLAGS);
	}
	sim_settle(&s);
	for (int i = 0; i < s.op_count; i++) {
		there += s.ops[i].kind == SIM_RECV && s.ops[i].ep == 2 && s.ops[i].done;
	}
	tap_is_int(there, 5, "another receiver gets its messages all the same");
	s.eps[1].paused = false;
	sim_settle(&s);
	tap_ok(bulk_fini(&s), "and the first one when it comes back");
}

static void test_fair(void)
{
	struct sim s;
	struct sim_op *big, *small;

	bulk_init(&s, 7, 2, false);
	big = sim_recv(&s, 1, 0, 16 << 20, 1, 0, PROTO_TAGGED | PROTO_REPORT);
	small = sim_recv(&s, 1, 0, 100000, 2, 0, PROTO_TAGGED | PROTO_REPORT);
	sim_send(&s, 0, 1, 16 << 20, 1, FLAGS);
	sim_send(&s, 0, 1, 100000, 2, FLAGS);
	while (!small->done) {
		sim_step(&s, 300);
	}
	tap_ok(!big->done, "a small message doesn't wait for the large one before it");
	sim_settle(&s);
	tap_ok(bulk_fini(&s), "which arrives as well");
}

/* Pauses, deaths, refusals, anything, in any order. */
static bool random_case(uint64_t seed)
{
	struct sim s;
	uint64_t shape;
	bool good;

	bulk_init(&s, seed, 3, seed & 1);
	shape = mock_random(&s.net);
	s.net.late_segment = shape & 1 ? 50 : 0;
	s.net.refuse_room = shape & 2 ? 20 : 0;
	s.net.refuse_slot = shape & 4 ? 40 : 0;
	s.net.raw_refused = (shape & 24) == 24;
	s.net.ring = shape & 32 ? 3 : 32;
	good = sim_storm(&s, 300, shape & 64 ? 2 : 0);
	return bulk_fini(&s) && good;
}

int main(int argc, char **argv)
{
	uint64_t base = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : 100;
	int bad = 0;

	test_sizes(true);
	test_sizes(false);
	test_stall();
	test_refused_pull();
	test_exhausted();
	test_fair();
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
