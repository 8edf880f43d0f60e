/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine over the mock wire: random operations between two or three endpoints on a
 * virtual clock. Whatever the wire does, every operation completes exactly once, order
 * per peer is kept and the bytes are right. Run with a seed to repeat one case:
 * test_engine SEED.
 */
#include "config.h"

#include <arpa/inet.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"
#include "prov/proto/tests/sim.h"
#include "prov/proto/wire_pkt.h"
#include "util/tap.h"

static size_t random_len(struct sim *s)
{
	switch (mock_random(&s->net) % 6) {
	case 0:
		return 0;
	case 1:
	case 2:
		return mock_random(&s->net) % 64;
	case 3:
		return mock_random(&s->net) % 2500;
	case 4:
		return mock_random(&s->net) % 20000;
	default:
		return mock_random(&s->net) % 200000;
	}
}

static void random_send(struct sim *s)
{
	uint32_t flags = PROTO_DATA | PROTO_REPORT;
	size_t len = random_len(s);

	flags |= mock_chance(&s->net, 70) ? PROTO_TAGGED : 0;
	if (s->plain && mock_chance(&s->net, 50)) { /* what small.h is made for */
		len = 8 + mock_random(&s->net) % 100;
		flags &= ~PROTO_DATA;
		sim_send(s, mock_random(&s->net) % s->ep_count,
			 mock_random(&s->net) % s->ep_count, len,
			 (flags & PROTO_TAGGED) ? mock_random(&s->net) % 4 : 0, flags);
		return;
	}
	flags |= mock_chance(&s->net, 20) ? PROTO_DELIVERY : 0;
	flags |= len <= 256 && mock_chance(&s->net, 30) ? PROTO_INJECT : 0;
	sim_send(s, mock_random(&s->net) % s->ep_count,
		 mock_random(&s->net) % s->ep_count, len,
		 (flags & PROTO_TAGGED) ? mock_random(&s->net) % 4 : 0, flags);
}

static void random_recv(struct sim *s)
{
	int from =
		mock_chance(&s->net, 50) ? -1 : (int)(mock_random(&s->net) % s->ep_count);
	uint32_t flags = PROTO_REPORT | (mock_chance(&s->net, 70) ? PROTO_TAGGED : 0);
	uint64_t tag = mock_random(&s->net) % 4;
	uint64_t ignore = mock_chance(&s->net, 30) ? mock_random(&s->net) % 4 : 0;
	size_t len = mock_chance(&s->net, 70) ? 200000 : random_len(s);

	if (!(flags & PROTO_TAGGED)) {
		tag = 0;
		ignore = 0;
	}
	if (s->plain && len < 8) {
		len = 8;
	}
	sim_recv(s, mock_random(&s->net) % s->ep_count, from, len, tag, ignore, flags);
}

static void random_rma(struct sim *s)
{
	size_t len = random_len(s);
	uint32_t flags = PROTO_REPORT;
	uint64_t key = mock_chance(&s->net, 5) ? 2 + mock_random(&s->net) % 2 : 1;

	flags |= mock_chance(&s->net, 50) ? PROTO_WRITE : 0;
	flags |= (flags & PROTO_WRITE) && mock_chance(&s->net, 30) ? PROTO_DATA : 0;
	flags |= (flags & PROTO_WRITE) && len <= 256 && mock_chance(&s->net, 30)
			 ? PROTO_INJECT
			 : 0;
	sim_rma(s, mock_random(&s->net) % s->ep_count, mock_random(&s->net) % s->ep_count,
		len, mock_random(&s->net) % (SIM_REGION - 200000), key, flags);
}

/* Over all cases. */
static uint64_t small_sent, small_received, small_special, moved_now;

static void random_case(uint64_t seed, bool deaths)
{
	struct sim s;
	uint64_t shape;
	bool settled;

	sim_init(&s, seed, 2 + seed % 2);
	shape = mock_random(&s.net);
	s.net.caps.raw = shape & 1;
	s.net.raw_refused = (shape & 6) == 6;
	s.net.caps.ordered = shape & 8;
	s.net.refuse_room = shape & 16 ? 30 : 0;
	s.net.refuse_dial = shape & 32 ? 40 : 0;
	s.net.late_segment = shape & 64 ? 70 : 0;
	s.net.refuse_segment = shape & 128 ? 30 : 0;
	s.net.ring = shape & 256 ? 2 : 32;
	s.net.caps.bulk = shape & 512 ? MOCK_SLOT_SIZE : 0;
	s.net.refuse_slot = (shape & 3072) == 1024 ? 30 : 0;
	s.net.refuse_slot = (shape & 3072) == 2048 ? 100 : s.net.refuse_slot;
	s.plain = shape & 4096;
	for (int i = 0; i < 400; i++) {
		uint64_t what = mock_random(&s.net) % 100;

		if (what < 35) {
			random_send(&s);
		} else if (what < 70) {
			random_recv(&s);
		} else if (what < 80) {
			random_rma(&s);
		} else if (what < 82) {
			struct sim_op *op =
				&s.ops[mock_random(&s.net) % (s.op_count + 1)];

			if (op->kind == SIM_RECV && !op->done &&
			    op < s.ops + s.op_count) {
				proto_cancel(s.eps[op->ep].ep, op);
			}
		} else if (deaths && what == 99 && mock_chance(&s.net, 50)) {
			mock_kill_random(&s.net);
		} else {
			sim_step(&s, mock_random(&s.net) % 2000);
		}
	}
	settled = sim_settle(&s);
	/* What is left: receives without a message, messages without a receive. */
	for (int round = 0; round < 50 && s.open; round++) {
		for (int e = 0; e < s.ep_count; e++) {
			sim_recv(&s, e, -1, 200000, 0, ~0ULL,
				 PROTO_TAGGED | PROTO_REPORT);
			sim_recv(&s, e, -1, 200000, 0, 0, PROTO_REPORT);
		}
		settled &= sim_settle(&s);
	}
	sim_cancel_all(&s);
	settled &= sim_settle(&s);
	sim_check(&s);
	small_sent += s.small_sent;
	moved_now += s.moved_now;
	small_received += s.small_received;
	small_special += s.small_special;
	for (int e = 0; e < s.ep_count; e++) {
		s.bad += mock_slots_taken(proto_wire_ep(s.eps[e].ep));
	}
	if (!settled || s.bad || s.open) {
		tap_ok(false, "seed %" PRIu64 "%s: settled %d, open %d, bad %d", seed,
		       deaths ? " with deaths" : "", settled, s.open, s.bad);
	}
	sim_fini(&s);
}

static int failed_errs(struct sim *s, bool deaths)
{
	int n = 0;

	for (int i = 0; i < s->op_count; i++) {
		n += s->ops[i].err != 0;
	}
	return deaths ? 0 : n;
}

/* Without deaths and bad keys nothing may fail at all. */
static void test_no_false_errors(void)
{
	struct sim s;

	sim_init(&s, 7, 2);
	for (int i = 0; i < 300; i++) {
		sim_recv(&s, 1, 0, 100000, 5, 0, PROTO_TAGGED | PROTO_REPORT);
		while (!sim_send(&s, 0, 1, i * 37, 5,
				 PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)) {
			sim_step(&s, 100);
		}
		sim_step(&s, 100);
	}
	sim_settle(&s);
	sim_check(&s);
	tap_ok(s.open == 0 && s.bad == 0 && failed_errs(&s, false) == 0,
	       "300 tagged messages of growing size: no error, in order");
	sim_fini(&s);
}

/* Rule B2: a flood without receives stays within the window, headers still arrive, and
 * receives posted in reverse order all find theirs. */
static void test_b2_flood(void)
{
	struct sim s;
	int sent = 0;

	sim_init(&s, 11, 2);
	while (sent < 64 + 32 && sim_send(&s, 0, 1, 2000, 100 + sent,
					  PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)) {
		sent++;
		sim_step(&s, 2000);
	}
	sim_settle(&s);
	tap_ok(sent > 60 && s.open > 0, "B2: %d messages, %d announced by header", sent,
	       s.open);
	for (int i = sent - 1; i >= 0; i--) {
		while (!sim_recv(&s, 1, 0, 2000, 100 + i, 0,
				 PROTO_TAGGED | PROTO_REPORT)) {
			sim_step(&s, 1000);
		}
		sim_step(&s, 1000);
	}
	sim_settle(&s);
	sim_check(&s);
	tap_ok(s.open == 0 && s.bad == 0, "B2: received in reverse order");
	sim_fini(&s);
}

/* A peer that announces messages for ever, and takes no notice of anything: it is given
 * up before it has used what the others need. */
static void test_b2_announced_flood(void)
{
	struct sim_op *in;
	struct sim s;

	sim_init(&s, 12, 3);
	sim_send(&s, 0, 1, 8, 1, PROTO_TAGGED | PROTO_REPORT);
	sim_settle(&s);
	for (uint64_t i = 0; i < 2 * ARRIVALS_PEER_MAX; i++) {
		struct wire_link *link = mock_some_link(proto_wire_ep(s.eps[1].ep));
		uint8_t pkt[64] = {0};

		if (!link) {
			break;
		}
		mock_inject(link, pkt,
			    pkt_put_rts(pkt, PKT_F_TAGGED, 2, 0, i, 100, NULL, NULL, 0));
		if (i % 32 == 0) {
			sim_step(&s, 1000);
		}
	}
	sim_settle(&s);
	tap_ok(pool_limit(&s.eps[1].ep->arrivals) < ARRIVALS_PEER_MAX + 1024,
	       "B2: endless announcements, %" PRIu32 " chunks of arrivals",
	       s.eps[1].ep->arrivals.chunk_count);
	tap_ok(s.eps[1].ep->bad_packets > 0, "B2: their sender is given up");
	in = sim_recv(&s, 1, -1, 8, 3, 0, PROTO_TAGGED | PROTO_REPORT);
	sim_send(&s, 2, 1, 8, 3, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
	sim_settle(&s);
	tap_ok(in->done == 1 && !in->err, "B2: an honest peer is served");
	sim_fini(&s);
}

/* The same on a link of an epoch that has ended, where there is no credit. */
static void test_b2_late_flood(void)
{
	struct proto_peer *pp;
	struct wire_link *link;
	struct sim s;
	int sent = 0;

	sim_init(&s, 14, 2);
	s.net.refuse_dial = 0;
	/* Both dial, so that there are two links. */
	sim_send(&s, 0, 1, 8, 1, PROTO_TAGGED | PROTO_REPORT);
	sim_send(&s, 1, 0, 8, 1, PROTO_TAGGED | PROTO_REPORT);
	sim_settle(&s);
	pp = sim_peer(&s, 1, 0);
	link = pp->peer.extra[0];
	if (!link) {
		tap_bail("there is one link only");
	}
	pp->peer.extra_epoch[0] = pp->peer.epoch - 1;
	while (sent < 10000 && pp->peer.extra[0] == link) {
		uint8_t pkt[2100] = {0};
		size_t len = pkt_eager_head(PKT_F_TAGGED) + 2000;

		pkt_put_eager(pkt, PKT_F_TAGGED, 2000, 2, 0, 0);
		mock_inject(link, pkt, len);
		if (sent++ % 16 == 0) {
			sim_step(&s, 1000);
		}
	}
	tap_ok(sent * 2000 < (int)(2 * LATE_MAX) && s.eps[1].ep->bad_packets == 1,
	       "B2: what comes late is bounded: %d messages", sent);
	sim_fini(&s);
}

static void test_rma(void)
{
	struct sim s;
	struct sim_op *w, *r, *bad;

	sim_init(&s, 13, 2);
	s.net.late_segment = 50;
	w = sim_rma(&s, 0, 1, 150000, 10, 1, PROTO_WRITE | PROTO_DATA | PROTO_REPORT);
	r = sim_rma(&s, 0, 1, 150000, 10, 1, PROTO_REPORT);
	sim_settle(&s);
	tap_ok(w->done == 1 && !w->err && r->done == 1 && !r->err, "write, then read");
	tap_ok(sim_is_pattern(s.eps[1].region + 10, 150000, w->id), "written");
	tap_ok(sim_is_pattern(r->buf, 150000, w->id),
	       "E2: the read sees the write before it");
	tap_ok(s.eps[1].remote_events == 1 && s.eps[1].remote_bytes == 150000,
	       "one remote event with the length");
	bad = sim_rma(&s, 0, 1, 8, 0, 2, PROTO_WRITE | PROTO_REPORT);
	sim_settle(&s);
	tap_is_int(bad->err, FI_EACCES, "write to read-only memory");
	bad = sim_rma(&s, 0, 1, 8, 0, 99, PROTO_WRITE | PROTO_REPORT);
	sim_settle(&s);
	tap_is_int(bad->err, FI_ENOKEY, "unknown key");
	bad = sim_rma(&s, 0, 1, 80, SIM_REGION - 8, 1, PROTO_REPORT);
	sim_settle(&s);
	tap_is_int(bad->err, FI_EINVAL, "out of bounds");
	tap_is_int(s.eps[1].remote_events, 1, "failed writes raise no event");
	sim_fini(&s);
}

/* Rule E2: a message posted after a write arrives after it is done. */
static void test_e2_message_after_rma(void)
{
	bool good = true;

	for (uint64_t seed = 1; seed < 50; seed++) {
		struct sim s;
		struct sim_op *w, *m, *r;

		sim_init(&s, seed, 2);
		s.net.late_segment = 90;
		r = sim_recv(&s, 1, 0, 8, 1, 0, PROTO_TAGGED | PROTO_REPORT);
		w = sim_rma(&s, 0, 1, 100000, 0, 1, PROTO_WRITE | PROTO_REPORT);
		m = sim_send(&s, 0, 1, 8, 1, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
		while (!r->done) {
			sim_step(&s, 50);
		}
		good &= sim_is_pattern(s.eps[1].region, 100000, w->id) && m->done;
		sim_fini(&s);
	}
	tap_ok(good, "E2: a message after a write finds the data there (50 schedules)");
}

/* Rule E2: nor does a put that could be done at once overtake one that is under way. */
static void test_e2_put_after_put(void)
{
	uint64_t now = 0;
	bool good = true;

	for (uint64_t seed = 1; seed < 50; seed++) {
		struct sim s;
		struct sim_op *first, *then, *last;

		sim_init(&s, seed, 2);
		sim_rma(&s, 0, 1, 8, 0, 1, PROTO_WRITE | PROTO_REPORT);
		sim_settle(&s);
		s.net.late_segment = 50;
		first = sim_rma(&s, 0, 1, 5000, 0, 1, PROTO_WRITE | PROTO_REPORT);
		then = sim_rma(&s, 0, 1, 8, 0, 1, PROTO_WRITE | PROTO_REPORT);
		last = sim_rma(&s, 0, 1, 8, 0, 1, PROTO_REPORT);
		sim_settle(&s);
		good &= first->done && sim_is_pattern(s.eps[1].region, 8, then->id) &&
			sim_is_pattern(last->buf, 8, then->id);
		now += s.moved_now;
		sim_fini(&s);
	}
	tap_ok(good, "E2: put, put and get of the same bytes keep their order");
	tap_ok(now > 0, "some of them done at once (%" PRIu64 ")", now);
}

/* Messages of every protocol into multi-receive buffers: each arrives once, none overlaps
 * another, each buffer is released once, with its last message or by a cancel. */
static bool multi_recv_case(uint64_t seed)
{
	struct sim s;
	int sent = 0;
	bool good;

	sim_init(&s, seed, 2);
	s.net.late_segment = seed % 2 ? 70 : 0;
	s.net.caps.raw = seed % 3;
	proto_set_min_multi_recv(s.eps[1].ep, 8000);
	for (int i = 0; i < 200; i++) {
		/* At most min_multi_recv long, so that none is truncated. */
		size_t len = mock_random(&s.net) % (mock_chance(&s.net, 50) ? 100 : 8000);

		if (mock_chance(&s.net, 15)) {
			sim_recv(&s, 1, -1, 30000, 0, 0, PROTO_MULTI | PROTO_REPORT);
		}
		sent += sim_send(&s, 0, 1, len, 0, PROTO_DATA | PROTO_REPORT) != NULL;
		sim_step(&s, mock_random(&s.net) % 1000);
	}
	for (int i = 0; i < 60; i++) {
		sim_recv(&s, 1, -1, 30000, 0, 0, PROTO_MULTI | PROTO_REPORT);
		sim_settle(&s);
	}
	sim_cancel_all(&s);
	sim_settle(&s);
	sim_check(&s);
	good = s.open == 0 && s.bad == 0 && sent > 50;
	for (int i = 0; i < s.op_count; i++) {
		const struct sim_op *op = &s.ops[i];

		good &= op->kind != SIM_SEND || op->messages == 1;
		good &= op->kind != SIM_RECV || !op->err || op->err == FI_ECANCELED;
		good &= op->kind != SIM_RECV || op->err || op->len - op->used < 8000;
	}
	sim_fini(&s);
	return good;
}

static void test_multi_recv(void)
{
	bool good = true;

	for (uint64_t seed = 1; seed <= 40 && good; seed++) {
		good = multi_recv_case(seed);
		if (!good) {
			tap_diag("seed %" PRIu64, seed);
		}
	}
	tap_ok(good, "multi-receive: every message once, every buffer released once");
}

static void test_peer_never_there(void)
{
	struct sim s;
	struct sim_op *m;
	struct proto_ep *gone;

	sim_init(&s, 19, 2);
	gone = s.eps[1].ep;
	s.eps[1].ep = NULL;
	proto_ep_close(gone);
	m = sim_send(&s, 0, 1, 8, 1, PROTO_TAGGED | PROTO_REPORT);
	sim_settle(&s);
	tap_is_int(m->err, FI_ECONNREFUSED, "nobody there: refused");
	tap_ok(m->done_at > 9900000000ULL && m->done_at < 10100000000ULL,
	       "after the connect timeout (%" PRIu64 " ms)", m->done_at / 1000000);
	sim_ep_open(&s, 1);
	sim_recv(&s, 1, 0, 8, 1, 0, PROTO_TAGGED | PROTO_REPORT);
	m = sim_send(&s, 0, 1, 8, 1, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
	sim_settle(&s);
	tap_ok(m->done == 1 && m->err == 0 && s.open == 0,
	       "there now: the next send arrives");
	sim_fini(&s);
}

static void test_restart(void)
{
	struct sim s;
	struct sim_op *big, *recv;
	bool good = true;

	sim_init(&s, 23, 2);
	for (int round = 0; round < 20; round++) {
		struct proto_ep *old = s.eps[1].ep;

		big = sim_send(&s, 0, 1, 150000, 1,
			       PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
		sim_settle(&s); /* announced, no receive */
		good &= big && !big->done;
		recv = sim_recv(&s, 0, 1, 100, 2, 0, PROTO_TAGGED | PROTO_REPORT);
		s.eps[1].ep = NULL;
		proto_ep_close(old);
		sim_step(&s, 10);
		good &= big->done == 1 && big->err != 0 && !recv->done;
		sim_ep_open(&s, 1);
		sim_send(&s, 1, 0, 100, 2, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
		sim_settle(&s);
		good &= recv->done == 1 && recv->err == 0;
	}
	sim_check(&s);
	tap_ok(good && s.bad == 0, "a peer restarts 20 times at its address");
	sim_fini(&s);
}

/* Injected operations are promised: to a peer that is still being dialled, without
 * credit, behind others. Then their endpoint is closed at once. */
static void test_close_after_inject(void)
{
	const uint32_t flags = PROTO_TAGGED | PROTO_INJECT | PROTO_DATA;
	struct sim_op *in[60];
	struct sim s;
	int good = 0, steps = 0;

	sim_init(&s, 31, 2);
	s.net.refuse_dial = 50;
	s.net.late_segment = 50;
	s.attr.eager_size = 64; /* longer ones are announced and pulled */
	proto_ep_close(s.eps[0].ep);
	sim_ep_open(&s, 0);
	for (int i = 0; i < 60; i++) {
		in[i] = sim_recv(&s, 1, -1, 256, (uint64_t)i, 0,
				 PROTO_TAGGED | PROTO_REPORT);
	}
	for (int i = 0; i < 60; i++) {
		if (i % 8 == 7) {
			sim_rma(&s, 0, 1, 200, (uint64_t)i * 256, 1,
				PROTO_WRITE | PROTO_INJECT | PROTO_DATA);
			continue;
		}
		sim_send(&s, 0, 1, (size_t)i * 4, (uint64_t)i, flags);
	}
	proto_set_closing(s.eps[0].ep);
	while (!proto_is_drained(s.eps[0].ep) && steps++ < 10000) {
		sim_step(&s, 10000);
	}
	proto_ep_close(s.eps[0].ep);
	s.eps[0].ep = NULL;
	sim_settle(&s);
	for (int i = 0; i < 60; i++) {
		good += in[i]->done == 1 && !in[i]->err &&
			sim_is_pattern(in[i]->buf, in[i]->got_len, in[i]->got_id);
	}
	tap_is_int(good, 53, "injected, then closed at once: every message arrives");
	tap_is_int((int64_t)s.eps[1].remote_events, 7, "and every write");
	sim_fini(&s);
}

/* Endpoint 1 answers on the link that it dialled, which endpoint 0 has under the door's
 * name; what is answered was posted under the other one. */
static void answers_find_their_way(struct sim *s)
{
	const uint32_t flags = PROTO_TAGGED | PROTO_DATA | PROTO_REPORT;
	static const size_t sizes[] = {8, 3000, 100000, 400000};

	for (int raw = 0; raw < 2; raw++) {
		for (size_t i = 0; i < 16; i++) {
			size_t len = sizes[i % 4];

			sim_recv(s, 1, 0, len, 7, 0, PROTO_TAGGED | PROTO_REPORT);
			sim_send(s, 0, 1, len, 7, flags | (i & 4 ? PROTO_DELIVERY : 0));
			if (i & 8) {
				sim_recv(s, 0, 1, len, 8, 0, PROTO_TAGGED | PROTO_REPORT);
				sim_send(s, 1, 0, len, 8, flags | PROTO_DELIVERY);
			}
			sim_settle(s);
		}
		tap_is_int(s->open, 0,
			   raw ? "streamed: every answer found its operation"
			       : "every answer found its operation");
		s->net.raw_refused = true;
	}
}

/* Credit comes back for messages by either name. */
static void credit_finds_its_way(struct sim *s)
{
	const uint32_t flags = PROTO_TAGGED | PROTO_DATA | PROTO_REPORT;
	int64_t least = INT64_MAX;

	for (int i = 0; i < 200; i++) {
		sim_recv(s, 1, 0, 2000, 7, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(s, 0, 1, 2000, 7, flags);
		sim_settle(s);
		least = s->other_name->credit < least ? s->other_name->credit : least;
	}
	tap_ok(s->open == 0 && least > 0, "credit comes back: never less than %" PRId64,
	       least);
}

/* A peer is known by another name of its host than the one that its door has. Receives
 * directed at that name match messages on a link that the peer opened itself. */
static void test_other_name(void)
{
	struct sim_op *early, *there, *late;
	struct wire_addr other;
	struct sim s;

	sim_init(&s, 29, 2);
	s.net.alias_host = INADDR_LOOPBACK + 1;
	s.net.caps.bulk = MOCK_SLOT_SIZE;
	s.net.caps.joints = MOCK_CELLS;
	other = s.eps[1].addr;
	other.in.sin_addr.s_addr = htonl(s.net.alias_host);
	/* Endpoint 1 dials first; its messages come on that link from here on. */
	sim_recv(&s, 0, -1, 8, 9, 0, PROTO_TAGGED | PROTO_REPORT);
	sim_send(&s, 1, 0, 8, 9, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
	sim_settle(&s);
	s.other_name = proto_map(s.eps[0].ep, 40, &other);
	early = sim_recv(&s, 0, 1, 8, 5, 0, PROTO_TAGGED | PROTO_REPORT);
	there = sim_recv(&s, 1, 0, 8, 6, 0, PROTO_TAGGED | PROTO_REPORT);
	sim_send(&s, 0, 1, 8, 6, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
	sim_settle(&s);
	tap_ok(there->done == 1 && !there->err, "reached by its other name");
	late = sim_recv(&s, 0, 1, 8, 5, 0, PROTO_TAGGED | PROTO_REPORT);
	sim_send(&s, 1, 0, 8, 5, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
	sim_send(&s, 1, 0, 8, 5, PROTO_TAGGED | PROTO_DATA | PROTO_REPORT);
	sim_settle(&s);
	tap_ok(early->done == 1 && late->done == 1 && early->got_id < late->got_id,
	       "directed receives of before and after match its messages, in order");
	answers_find_their_way(&s);
	credit_finds_its_way(&s);
	proto_removed(s.eps[0].ep, 40, &other);
	sim_check(&s);
	tap_is_int(s.bad, 0, "nothing else happened");
	sim_fini(&s);
}

/* A peer that lies: well-formed packets about operations that it guesses, and garbage.
 * Nothing may crash, and every operation still completes exactly once. */
static void lie(struct sim *s)
{
	struct wire_link *link = mock_some_link(proto_wire_ep(s->eps[1].ep));
	uint64_t id = (uint64_t)(1 + 2 * (mock_random(&s->net) % 4)) << 32 |
		      mock_random(&s->net) % 64;
	uint8_t pkt[256] = {0};
	size_t len;

	if (!link) {
		return;
	}
	switch (mock_random(&s->net) % 9) {
	case 0:
		len = pkt_put_cts(pkt, mock_random(&s->net) % 2 ? PKT_F_BULK : 0, id,
				  mock_random(&s->net), mock_random(&s->net) % 100000);
		break;
	case 1:
		len = pkt_put_data(pkt, id, mock_random(&s->net) % 3000, 8) + 8;
		break;
	case 2:
		len = pkt_put_fin(pkt, id, mock_random(&s->net) % 100);
		break;
	case 3:
		len = pkt_put_ack(pkt, id);
		break;
	case 4:
		len = pkt_put_credit(pkt, mock_random(&s->net));
		break;
	case 5:
		len = pkt_put_rts(pkt, PKT_F_TAGGED, 0, 1, id, 5000, NULL, NULL, 0);
		break;
	case 6:
		len = pkt_put_chunk(pkt, id, mock_random(&s->net) % 3 * MOCK_SLOT_SIZE,
				    1 + mock_random(&s->net) % (MOCK_SLOT_SIZE + 9),
				    mock_random(&s->net) % (MOCK_SLOTS + 1),
				    mock_random(&s->net) % 9);
		break;
	case 7:
		len = pkt_put_taken(pkt, id, mock_random(&s->net) % 100000);
		break;
	default:
		len = mock_random(&s->net) % sizeof(pkt);
		for (size_t i = 0; i < len; i++) {
			pkt[i] = mock_random(&s->net);
		}
		if (len) {
			pkt[0] = mock_random(&s->net) % (PKT_KINDS + 1);
		}
	}
	mock_inject(link, pkt, len);
}

static void test_liar(void)
{
	bool good = true;

	for (uint64_t seed = 1; seed <= 60 && good; seed++) {
		struct sim s;

		sim_init(&s, seed, 2);
		s.net.caps.raw = seed & 1;
		s.net.caps.bulk = seed & 4 ? MOCK_SLOT_SIZE : 0;
		s.net.late_segment = seed & 2 ? 50 : 0;
		for (int i = 0; i < 300; i++) {
			random_send(&s);
			random_recv(&s);
			sim_step(&s, mock_random(&s.net) % 2000);
			if (mock_chance(&s.net, 20)) {
				lie(&s);
			}
		}
		for (int round = 0; round < 50 && s.open; round++) {
			for (int e = 0; e < 2; e++) {
				sim_recv(&s, e, -1, 200000, 0, ~0ULL,
					 PROTO_TAGGED | PROTO_REPORT);
				sim_recv(&s, e, -1, 200000, 0, 0, PROTO_REPORT);
			}
			sim_settle(&s);
		}
		sim_cancel_all(&s);
		sim_settle(&s);
		/* What a liar announced may never come; the end of the links ends it. */
		for (int i = 0; i < 10000 && s.open; i++) {
			mock_kill_random(&s.net);
			sim_step(&s, 1000);
		}
		sim_cancel_all(&s);
		sim_settle(&s);
		for (int i = 0; i < s.op_count; i++) {
			good &= s.ops[i].done == 1;
		}
		if (!good) {
			tap_diag("seed %" PRIu64, seed);
		}
		sim_fini(&s);
	}
	tap_ok(good, "a peer that lies: every operation completes exactly once");
}

/* Both dial at once. One link ends while its message lies there unread: its sender is
 * told so and has its memory back, which then must not be pulled by the other link. */
static void test_pull_link(void)
{
	const uint32_t flags = PROTO_TAGGED | PROTO_DATA | PROTO_REPORT;
	struct sim_op *in, *out;
	struct sim s;

	sim_init(&s, 21, 2);
	s.net.caps.raw = true;
	s.net.caps.bulk = 0;
	for (int i = 0; i < 2; i++) {
		proto_ep_close(s.eps[i].ep);
		sim_ep_open(&s, i);
	}
	in = sim_recv(&s, 1, 0, 200000, 1, 0, flags);
	sim_send(&s, 1, 0, 8, 2, flags);
	s.eps[1].paused = true; /* in the middle of its dial */
	out = sim_send(&s, 0, 1, 200000, 1, flags);
	for (int i = 0; i < 1000 && s.net.packets == 0; i++) {
		sim_step(&s, 1000);
	}
	for (int i = 0; i < 1000 && s.net.links_killed == 0; i++) {
		mock_kill_pair(&s.net);
	}
	for (int i = 0; i < 1000 && !out->done; i++) {
		sim_step(&s, 1000);
	}
	tap_is_int(out->err, FI_ECONNRESET, "a link ends under an announced message");
	s.eps[1].paused = false;
	sim_settle(&s);
	tap_ok(in->done && in->err, "which isn't had by the other link");
	sim_cancel_all(&s);
	sim_settle(&s);
	sim_check(&s);
	tap_is_int((int64_t)s.bad, 0, "no wrong bytes");
	sim_fini(&s);
}

int main(int argc, char **argv)
{
	uint64_t base = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : tap_short() ? 30 : 120;
	int before;

	test_no_false_errors();
	test_b2_flood();
	test_b2_announced_flood();
	test_b2_late_flood();
	test_rma();
	test_e2_message_after_rma();
	test_e2_put_after_put();
	test_multi_recv();
	test_peer_never_there();
	test_restart();
	test_other_name();
	test_close_after_inject();
	test_liar();
	test_pull_link();
	before = tap_state.failed;
	for (uint64_t seed = base; seed < base + count; seed++) {
		random_case(seed, false);
		random_case(seed, true);
	}
	tap_ok(tap_state.failed == before, "property: seeds %" PRIu64 " to %" PRIu64,
	       base, base + count - 1);
	tap_ok(count == 1 || (small_sent > count && small_received > 10 * count &&
			      small_special > 10 * count && moved_now > count),
	       "the frequent ways were among them: %" PRIu64 " sent, %" PRIu64
	       " received, %" PRIu64 " put or got",
	       small_sent, small_received, moved_now);
	return tap_done();
}
