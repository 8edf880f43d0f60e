/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that their target hears of, over links that have notices: once each, when all is
 * there, and done when it was heard. test_notice SEED repeats one random case.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/proto/ep.h"
#include "prov/proto/tests/mock_link.h"
#include "prov/proto/tests/sim.h"
#include "util/tap.h"

#define KEY   1 /* of sim: all of its region */
#define PLACE 16384
#define DATA  (PROTO_WRITE | PROTO_DATA | PROTO_REPORT)

static uint8_t heard[SIM_OPS + 1]; /* by the operation's id */
static uint64_t last_heard;	   /* id */
static int wrong, early, disorder;

/* At the target. */
static void on_remote(struct sim_ep *e, const struct proto_done *d)
{
	const struct sim_op *op;

	if (d->data == 0 || d->data > (uint64_t)e->sim->op_count) {
		wrong++;
		return;
	}
	op = &e->sim->ops[d->data - 1];
	wrong += op->to != e->index || d->len != op->len || heard[op->id]++ ||
		 !(op->flags & PROTO_DATA) ||
		 !sim_is_pattern(e->region + op->remote_off, op->len, op->id);
	disorder += op->id < last_heard;
	last_heard = op->id;
}

/* At the initiator: rule A9. What leaves as a packet may be heard later. */
static void on_done(struct sim *s, const struct sim_op *op)
{
	early += s->one_piece && s->net.caps.local && !op->err &&
		 (op->flags & PROTO_DATA) && !heard[op->id];
}

static void notice_init(struct sim *s, uint64_t seed, int eps, bool local)
{
	sim_init(s, seed, eps);
	for (int i = 0; i < eps; i++) {
		proto_ep_close(s->eps[i].ep);
	}
	s->attr.wire = mock_wire_local();
	s->net.caps.local = local;
	s->net.caps.bulk = 0;
	s->net.caps.notify = true;
	s->net.late_segment = 50;
	s->one_piece = true;
	s->on_remote = on_remote;
	s->on_done = on_done;
	memset(heard, 0, sizeof(heard));
	wrong = early = disorder = 0;
	last_heard = 0;
}

static void eps_open(struct sim *s)
{
	for (int i = 0; i < s->ep_count; i++) {
		sim_ep_open(s, i);
	}
}

/* Each write has a place of its own in the region. */
static void round_run(struct sim *s, int count, uint32_t kills)
{
	for (int i = 0; i < count; i++) {
		int from = (int)(mock_random(&s->net) % (uint64_t)s->ep_count);
		size_t len = mock_random(&s->net) % (PLACE + 1);
		uint32_t flags = PROTO_WRITE | PROTO_REPORT |
				 (mock_chance(&s->net, 60) ? PROTO_DATA : 0);

		sim_rma(s, from, (from + 1) % s->ep_count, len, (uint64_t)i * PLACE, KEY,
			flags);
		if (mock_chance(&s->net, 40)) {
			sim_step(s, mock_random(&s->net) % 1000);
		}
		if (mock_chance(&s->net, kills)) {
			mock_kill_pair(&s->net);
		}
	}
	sim_settle(s);
}

/* Every one that succeeded was heard of. A packet may be lost with its link, after the
 * operation whose event it is was done. */
static bool all_heard(const struct sim *s)
{
	bool sure = !s->net.links_killed || (s->one_piece && s->net.caps.local);

	for (int i = 0; i < s->op_count; i++) {
		const struct sim_op *op = &s->ops[i];

		if (!op->done ||
		    (sure && !op->err && (op->flags & PROTO_DATA) && !heard[op->id])) {
			return false;
		}
	}
	return s->open == 0 && wrong == 0 && early == 0;
}

static bool storm(uint64_t seed)
{
	struct sim s;
	bool good = true;

	notice_init(&s, seed, 2 + (int)(seed % 2), seed & 2);
	s.attr.order_rma = seed & 4;
	s.net.refuse_segment = 15;
	s.net.refuse_room = seed & 8 ? 30 : 0;
	s.net.refuse_mem = seed % 5 == 0 ? 20 : 0;
	s.net.events = (uint32_t)(seed / 16 % 4);
	s.one_piece = seed % 11 != 0;
	eps_open(&s);
	for (int i = 0; i < 3; i++) {
		round_run(&s, 60, seed % 3 == 0 ? 3 : 0);
		good &= all_heard(&s);
	}
	if (s.ep_count == 2 && s.attr.order_rma && s.net.caps.local && s.one_piece &&
	    !s.net.links_killed) {
		uint64_t first = last_heard;

		/* One sender: what was granted is heard in order. */
		disorder = 0;
		last_heard = 0;
		for (int i = 0; i < 30; i++) {
			sim_rma(&s, 0, 1, 100, (uint64_t)i * PLACE, KEY, DATA);
		}
		sim_settle(&s);
		good &= disorder == 0 && all_heard(&s) && last_heard > first;
	}
	good &= !s.one_piece || s.net.notices > 0;
	if (!good) {
		tap_diag("wrong %d, early %d, out of order %d, open %d, %" PRIu64
			 " notices",
			 wrong, early, disorder, s.open, s.net.notices);
	}
	sim_fini(&s);
	return good && s.net.mems == s.net.mems_dropped;
}

static void test_once(void)
{
	struct sim s;

	notice_init(&s, 5, 2, true);
	eps_open(&s);
	sim_rma(&s, 0, 1, 100000, 0, KEY, DATA);
	sim_rma(&s, 0, 1, 0, 0, KEY, DATA);
	sim_settle(&s);
	tap_ok(all_heard(&s) && heard[1] == 1 && heard[2] == 1,
	       "a write with data and one of nothing: heard of once");
	tap_is_int((int64_t)s.net.notices, 2, "by notices");
	sim_rma(&s, 0, 1, 1000, 0, 77, DATA);
	sim_settle(&s);
	tap_ok(s.ops[2].err == FI_ENOKEY && !heard[3], "a key that isn't: not heard of");
	s.one_piece = false;
	sim_rma(&s, 0, 1, 1000, 0, KEY, DATA);
	sim_settle(&s);
	tap_ok(heard[4] == 1 && all_heard(&s) && s.net.notices == 2,
	       "two pieces: told afterwards");
	sim_fini(&s);
}

/* Only those with data need their target. */
static void test_passive(void)
{
	struct sim s;

	notice_init(&s, 6, 2, true);
	s.net.events = MEM_EVENTS_EP | MEM_EVENTS_MR;
	eps_open(&s);
	sim_rma(&s, 0, 1, 100, 0, KEY, DATA);
	sim_settle(&s);
	s.eps[1].paused = true;
	sim_rma(&s, 0, 1, 1000, PLACE, KEY, PROTO_WRITE | PROTO_REPORT);
	sim_settle(&s);
	tap_ok(s.ops[1].done && !s.ops[1].err,
	       "a counted write to a target that makes no call is done");
	sim_rma(&s, 0, 1, 1000, 2 * PLACE, KEY, DATA);
	sim_settle(&s);
	tap_ok(!s.ops[2].done, "one with data waits for it");
	s.eps[1].paused = false;
	sim_settle(&s);
	tap_ok(all_heard(&s) && s.eps[1].counted == 1 && s.eps[1].counted_regions == 3,
	       "all is heard of when it does");
	sim_fini(&s);
}

/* What counters of the target hear: each access once for each of them that wants it. */
static void test_counted(void)
{
	for (uint32_t events = 1; events <= 3; events++) {
		uint64_t all = 20, with_data = 10;
		struct sim s;

		notice_init(&s, 9 + events, 2, true);
		s.net.events = events;
		eps_open(&s);
		for (uint64_t i = 0; i < all; i++) {
			sim_rma(&s, 0, 1, 500, i * PLACE, KEY,
				i < with_data ? DATA : PROTO_WRITE | PROTO_REPORT);
		}
		sim_settle(&s);
		tap_ok(all_heard(&s) && s.net.notices == with_data,
		       "those with data have notices");
		tap_is_int((int64_t)s.eps[1].counted,
			   events & MEM_EVENTS_EP ? (int64_t)(all - with_data) : 0,
			   "the endpoint's counter: those without data");
		tap_is_int((int64_t)s.eps[1].counted_regions,
			   events & MEM_EVENTS_MR ? (int64_t)all : 0,
			   "the region's counter: all");
		sim_rma(&s, 0, 1, 500, 0, KEY, PROTO_REPORT);
		sim_settle(&s);
		tap_is_int((int64_t)s.net.notices, (int64_t)with_data, "a read has none");
		sim_fini(&s);
	}
}

/* Nothing that a peer says is believed. */
static void test_lies(void)
{
	static const uint32_t ops[] = {0, 1, PKT_NOTICE_EVENT | 1, UINT32_MAX};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const struct wire_notice n = {.data = 1, .op = ops[i]};
		struct wire_link *link;
		struct sim s;

		notice_init(&s, 11, 2, false);
		eps_open(&s);
		sim_rma(&s, 0, 1, 100, 0, KEY, DATA);
		sim_settle(&s);
		link = mock_some_link(proto_wire_ep(s.eps[1].ep));
		link_of(link)->ep->attr.events->arrived(s.eps[1].ep, link, &n, 5);
		sim_settle(&s);
		tap_ok(s.eps[1].ep->bad_packets == 1 && s.eps[1].remote_events == 1,
		       "notice 0x%x: the link is given up", ops[i]);
		sim_fini(&s);
	}
}

int main(int argc, char **argv)
{
	uint64_t first = (uint64_t)time(NULL), bad = 0;
	int count = tap_short() ? 20 : 100;

	if (argc > 1) {
		tap_ok(storm(strtoull(argv[1], NULL, 0)), "storm of seed %s", argv[1]);
		return tap_done();
	}
	test_once();
	test_passive();
	test_counted();
	test_lies();
	for (int i = 0; i < count; i++) {
		if (!storm(first + (uint64_t)i)) {
			tap_diag("test_notice %" PRIu64, first + (uint64_t)i);
			bad++;
		}
	}
	tap_is_int((int64_t)bad, 0, "A8, A9: random schedules, with and without deaths");
	return tap_done();
}
