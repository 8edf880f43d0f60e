/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine over a wire that wants local memory registered: the mock aborts when a
 * segment names memory that isn't, from its beginning to its end, or when something stays
 * registered. test_local SEED repeats one random case.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/regcache.h"
#include "prov/proto/ep.h"
#include "prov/proto/tests/sim.h"
#include "util/tap.h"

#define FLAGS (PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)
#define KEY   1 /* of sim: all of its region */

static void local_init(struct sim *s, uint64_t seed, int eps, bool local)
{
	sim_init(s, seed, eps);
	/* sim_init has opened them over the other one. */
	for (int i = 0; i < eps; i++) {
		proto_ep_close(s->eps[i].ep);
	}
	s->attr.wire = mock_wire_local();
	s->net.caps.local = local;
	s->net.caps.bulk = 0;
	s->net.late_segment = 50;
	for (int i = 0; i < eps; i++) {
		sim_ep_open(s, i);
	}
}

/* Nothing is under way: no registration is held for anything. */
static bool nothing_held(struct sim *s)
{
	for (int i = 0; i < s->ep_count; i++) {
		mem_regcache_flush(s->eps[i].ep->regs);
	}
	return s->net.mems == s->net.mems_dropped;
}

static bool local_fini(struct sim *s)
{
	bool good;

	sim_check(s);
	good = s->bad == 0 && s->open == 0 && nothing_held(s);
	sim_fini(s);
	return good && s->net.mems == s->net.mems_dropped;
}

static struct mem_regcache_stats stats_of(const struct sim *s, int e)
{
	struct mem_regcache_stats stats;

	mem_regcache_stats(s->eps[e].ep->regs, &stats);
	return stats;
}

static uint64_t errors_of(const struct sim *s)
{
	uint64_t errors = 0;

	for (int i = 0; i < s->op_count; i++) {
		errors += s->ops[i].err != 0;
	}
	return errors;
}

/* Everything that moves by segments: pulled messages, writes, reads. */
static void traffic(struct sim *s, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		size_t len = 5000 + (size_t)i * 30011 % 200000;

		sim_recv(s, 1, 0, len, (uint64_t)i, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(s, 0, 1, len, (uint64_t)i, FLAGS);
		sim_rma(s, 0, 1, len, 64, KEY, PROTO_WRITE | PROTO_REPORT);
		sim_rma(s, 1, 0, len, 64, KEY, PROTO_REPORT);
		sim_settle(s);
	}
}

static void test_all(void)
{
	struct mem_regcache_stats a, b;
	uint64_t mems;
	struct sim s;

	local_init(&s, 1, 2, true);
	traffic(&s, 20);
	a = stats_of(&s, 0);
	b = stats_of(&s, 1);
	mems = s.net.mems;
	tap_is_int((int64_t)errors_of(&s), 0, "messages, writes and reads: no error");
	tap_ok(a.misses > 0 && b.misses > 0 && mems > 0, "by registered memory");
	tap_ok(s.net.named > 0 && s.net.named_late == 0,
	       "what is pulled has a name until that is over");
	tap_ok(mems == a.misses + b.misses, "each that was not known was registered");
	tap_diag("%" PRIu64 " registrations, %" PRIu64 " found again", mems,
		 a.hits + b.hits);
	tap_ok(local_fini(&s), "and all were dropped at the end");

	local_init(&s, 1, 2, false);
	traffic(&s, 20);
	tap_is_int((int64_t)errors_of(&s), 0, "a link that needs none: no error");
	tap_is_int((int64_t)s.net.mems, 0, "nothing is registered");
	tap_ok(local_fini(&s), "nothing is left");
}

/* The same buffer again and again. */
static void test_again(void)
{
	struct mem_regcache_stats stats;
	struct sim s;
	bool kept;

	local_init(&s, 7, 2, true);
	kept = mem_regcache_keeps(s.eps[0].ep->regs);
	for (int i = 0; i < 40; i++) {
		sim_rma(&s, 0, 1, 100000, 0, KEY, PROTO_WRITE | PROTO_REPORT);
	}
	sim_settle(&s);
	stats = stats_of(&s, 0);
	tap_is_int((int64_t)errors_of(&s), 0, "40 writes at once: no error");
	tap_ok(stats.hits + stats.misses >= 40, "each asked");
	if (kept) {
		tap_ok(stats.count > 0, "%u are kept when nothing is under way",
		       stats.count);
	} else {
		tap_is_int((int64_t)s.net.mems, (int64_t)s.net.mems_dropped,
			   "nothing is kept");
	}
	tap_ok(local_fini(&s), "all are dropped at the end");
}

/* A wire without room: operations end in an error or go another way, nothing hangs. */
static void test_no_room(void)
{
	struct sim s;

	local_init(&s, 3, 2, true);
	s.net.refuse_mem = 100;
	sim_rma(&s, 0, 1, 9000, 0, KEY, PROTO_WRITE | PROTO_REPORT);
	sim_settle(&s);
	tap_is_int(s.ops[0].err, FI_ENOMEM, "a write without room for its memory");
	s.net.refuse_mem = 0;
	sim_rma(&s, 0, 1, 9000, 0, KEY, PROTO_WRITE | PROTO_REPORT);
	sim_settle(&s);
	tap_ok(s.ops[1].done && !s.ops[1].err, "and with room again");
	tap_ok(local_fini(&s), "nothing is left");
}

/* Messages arrive all the same: streamed. Which side has no room, and when: from the
 * beginning, or for the receiver once it was announced. */
static void test_streamed(void)
{
	struct sim s;

	local_init(&s, 4, 2, true);
	s.net.refuse_mem = 100;
	for (int i = 0; i < 5; i++) {
		sim_recv(&s, 1, 0, 100000, (uint64_t)i, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, 100000, (uint64_t)i, FLAGS);
	}
	sim_settle(&s);
	tap_is_int((int64_t)errors_of(&s), 0, "no room at the sender: no error");
	tap_is_int((int64_t)s.net.named, 0, "nothing was pulled");
	s.net.refuse_mem = 0;
	for (int i = 0; i < 5; i++) {
		sim_send(&s, 0, 1, 100000, 10 + (uint64_t)i, FLAGS);
	}
	sim_settle(&s);
	tap_ok(!nothing_held(&s), "announced: the names are kept");
	s.net.refuse_mem = 100;
	for (int i = 0; i < 5; i++) {
		sim_recv(&s, 1, 0, 100000, 10 + (uint64_t)i, 0,
			 PROTO_TAGGED | PROTO_REPORT);
	}
	sim_settle(&s);
	tap_is_int((int64_t)errors_of(&s), 0, "no room at the receiver: no error");
	tap_is_int((int64_t)s.net.named, 0, "nothing was pulled");
	tap_ok(local_fini(&s), "nothing is left");

	local_init(&s, 5, 2, true);
	s.net.raw_refused = true;
	traffic(&s, 5);
	tap_is_int((int64_t)errors_of(&s), 0, "names that are refused: no error");
	tap_ok(local_fini(&s), "nothing is left");
}

/* Several pieces, one of them empty; each is registered and named by itself. */
static void test_pieces(void)
{
	static char from[300000], to[300000];
	const struct iovec iov[4] = {{from, 70000},
				     {from + 70000, 0},
				     {from + 70000, 130000},
				     {from + 200000, 100000}};
	struct iovec into[2] = {{to, 1000}, {to + 1000, 299000}};
	struct proto_recv r = {.iov = into, .count = 2, .tag = 1, .flags = PROTO_TAGGED};
	struct proto_msg m = {.iov = iov,
			      .count = 4,
			      .len = sizeof(from),
			      .tag = 1,
			      .flags = PROTO_TAGGED};
	struct sim s;

	local_init(&s, 6, 2, true);
	sim_pattern(from, sizeof(from), 77);
	proto_send(s.eps[0].ep, sim_peer(&s, 0, 1), &m);
	sim_settle(&s);
	proto_recv(s.eps[1].ep, &r);
	sim_settle(&s);
	tap_ok(sim_is_pattern(to, sizeof(to), 77), "pieces of a message arrive");
	tap_ok(s.net.named > 0 && s.net.named_late == 0, "by their names");
	tap_ok(nothing_held(&s), "which are given back");
	sim_fini(&s);
}

/* Its receiver dies, or never says that it is done, or the sender's end closes. */
static void test_names_end(void)
{
	struct sim s;

	local_init(&s, 8, 2, true);
	sim_send(&s, 0, 1, 100000, 1, FLAGS);
	sim_settle(&s);
	tap_ok(!nothing_held(&s) && s.open == 1, "announced");
	while (s.net.links_killed == 0) {
		mock_kill_pair(&s.net);
	}
	sim_settle(&s);
	tap_ok(s.ops[0].done && s.ops[0].err, "its link dies: an error");
	tap_ok(local_fini(&s), "nothing is held any more");

	local_init(&s, 9, 2, true);
	sim_send(&s, 0, 1, 100000, 1, FLAGS);
	sim_settle(&s);
	sim_fini(&s);
	tap_ok(s.net.mems > 0 && s.net.mems == s.net.mems_dropped,
	       "closed while it is announced: all is dropped");
}

/* Closed in the middle: what is registered is dropped all the same. */
static void lend_init(struct sim *s, uint64_t seed)
{
	sim_init(s, seed, 2);
	for (int i = 0; i < 2; i++) {
		proto_ep_close(s->eps[i].ep);
	}
	s->attr.wire = s->net.ops = mock_wire_lends();
	s->net.caps.lends = true;
	s->net.caps.bulk = 0;
	s->net.late_segment = 50;
	for (int i = 0; i < 2; i++) {
		sim_ep_open(s, i);
	}
}

/* What is announced is lent, until it is done; nothing else is. */
static void test_lent(void)
{
	struct sim s;

	lend_init(&s, 11);
	traffic(&s, 12);
	tap_is_int((int64_t)errors_of(&s), 0, "over a wire that lends: no error");
	tap_diag("%" PRIu64 " lent, %" PRIu64 " taken back, %" PRIu64 " read", s.net.mems,
		 s.net.mems_dropped, s.net.named);
	tap_ok(s.net.named >= 12 && s.net.named_late == 0,
	       "messages are pulled while they are lent");
	tap_ok(s.net.mems >= 12 && s.net.mems_dropped == s.net.mems,
	       "each piece is taken back");
	s.net.refuse_mem = 100;
	s.net.named = 0;
	traffic(&s, 5);
	tap_ok(s.net.named == 0 && errors_of(&s) == 0, "without room they are streamed");
	s.net.refuse_mem = 0;
	sim_send(&s, 0, 1, 100000, 1, FLAGS);
	sim_settle(&s);
	tap_ok(s.net.mems > s.net.mems_dropped, "announced: lent");
	while (s.net.links_killed == 0) {
		mock_kill_pair(&s.net);
	}
	sim_settle(&s);
	tap_ok(s.net.mems == s.net.mems_dropped, "its link dies: taken back");
	sim_fini(&s);
}

static void test_close(void)
{
	bool good = true;

	for (int steps = 0; steps < 60; steps++) {
		struct sim s;

		local_init(&s, 100 + (uint64_t)steps, 2, true);
		s.net.late_segment = 100;
		sim_recv(&s, 1, 0, 300000, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(&s, 0, 1, 300000, 1, FLAGS);
		sim_rma(&s, 0, 1, 300000, 0, KEY, PROTO_WRITE | PROTO_REPORT);
		for (int i = 0; i < steps; i++) {
			sim_step(&s, 200);
		}
		sim_fini(&s); /* the mock aborts if something is left */
		good &= s.net.mems == s.net.mems_dropped;
	}
	tap_ok(good, "endpoints that close in the middle leave nothing registered");
}

static bool storm(uint64_t seed)
{
	struct sim s;
	bool good;

	local_init(&s, seed, 3, true);
	s.net.refuse_mem = seed % 3 == 0 ? 20 : 0;
	s.net.refuse_segment = 10;
	s.net.raw_refused = seed % 7 == 0;
	good = sim_storm(&s, 150, seed % 2 ? 3 : 0);
	sim_check(&s);
	good &= s.bad == 0 && s.open == 0 && nothing_held(&s);
	/* A name outlives its last reader, unless the reader's link isn't the one that
	 * died. */
	good &= s.net.links_killed || s.net.named_late == 0;
	sim_fini(&s);
	return good && s.net.mems == s.net.mems_dropped;
}

int main(int argc, char **argv)
{
	uint64_t first = (uint64_t)time(NULL), bad = 0;
	int count = tap_short() ? 10 : 60;

	if (argc > 1) {
		tap_ok(storm(strtoull(argv[1], NULL, 0)), "storm of seed %s", argv[1]);
		return tap_done();
	}
	test_all();
	test_again();
	test_no_room();
	test_streamed();
	test_pieces();
	test_names_end();
	test_lent();
	test_close();
	for (int i = 0; i < count; i++) {
		if (!storm(first + (uint64_t)i)) {
			tap_diag("test_local %" PRIu64, first + (uint64_t)i);
			bad++;
		}
	}
	tap_is_int((int64_t)bad, 0, "random schedules, with and without deaths");
	return tap_done();
}
