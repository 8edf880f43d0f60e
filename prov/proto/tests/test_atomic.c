/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of the engine over the mock wire: what they do, what they are refused
 * for, their place among messages and RMA, that each is carried out exactly once whatever
 * the wire does (rules B1, E4), and peers that lie.
 */
#include "config.h"

#include "prov/proto/tests/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/proto/atomic_op.h"
#include "prov/proto/ep.h"
#include "prov/proto/wire_atomic.h"
#include "util/tap.h"

static uint64_t *words(struct sim *s, int ep)
{
	return (uint64_t *)(void *)s->eps[ep].region;
}

static struct sim_op *add(struct sim *s, int ep, int to, uint64_t word)
{
	return sim_atomic(s, ep, to,
			  &(struct sim_atomic){.mode = ATOMIC_FETCH,
					       .op = FI_SUM,
					       .count = 1,
					       .arg = 1,
					       .off = 8 * word,
					       .key = 1,
					       .flags = PROTO_REPORT});
}

/* ---- what they do */

static void test_results(void)
{
	struct sim_atomic a = {.mode = ATOMIC_FETCH,
			       .op = FI_SUM,
			       .count = 3,
			       .arg = 10,
			       .off = 80,
			       .key = 1,
			       .flags = PROTO_REPORT};
	struct sim_op *op;
	struct sim s;

	sim_init(&s, 1, 2);
	words(&s, 1)[11] = 5;
	op = sim_atomic(&s, 0, 1, &a);
	sim_settle(&s);
	tap_ok(op->done && !op->err && op->result[0] == 0 && op->result[1] == 5,
	       "fetch: what was there");
	tap_ok(words(&s, 1)[10] == 10 && words(&s, 1)[11] == 16 && words(&s, 1)[12] == 12,
	       "fetch: what is there");
	a = (struct sim_atomic){.mode = ATOMIC_COMPARE,
				.op = FI_CSWAP,
				.count = 2,
				.arg = 100,
				.cmp = 16,
				.off = 88,
				.key = 1,
				.flags = PROTO_REPORT | PROTO_INJECT};
	op = sim_atomic(&s, 0, 1, &a);
	sim_settle(&s);
	tap_ok(op->done && !op->err && op->result[0] == 16 && op->result[1] == 12,
	       "compare: what was there");
	tap_ok(words(&s, 1)[11] == 100 && words(&s, 1)[12] == 12,
	       "compare: swapped where it was equal, from injected memory");
	a = (struct sim_atomic){.mode = ATOMIC_FETCH,
				.op = FI_ATOMIC_READ,
				.count = 2,
				.off = 88,
				.key = 2,
				.flags = PROTO_REPORT};
	op = sim_atomic(&s, 0, 1, &a);
	sim_settle(&s);
	tap_ok(op->done && !op->err && op->result[0] == 100,
	       "read: by a key that allows no more");
	a = (struct sim_atomic){.op = FI_ATOMIC_WRITE,
				.count = 1,
				.arg = 77,
				.off = 0,
				.key = 1,
				.flags = PROTO_REPORT | PROTO_WRITE | PROTO_DATA};
	op = sim_atomic(&s, 1, 1, &a);
	sim_settle(&s);
	tap_ok(op->done && !op->err && words(&s, 1)[0] == 77, "to oneself");
	tap_ok(s.eps[1].atomics == 4 && s.eps[1].remote_events == 1 &&
		       s.eps[1].remote_bytes == 8,
	       "each was counted, the one with data reported");
	sim_check(&s);
	tap_is_int(s.bad, 0, "nothing else happened");
	sim_fini(&s);
}

/* Longer than a packet, than the window and than the ring together take. */
static void test_long(void)
{
	bool good = true;
	struct sim s;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim_atomic a = {.mode = seed % 2 ? ATOMIC_FETCH : ATOMIC_COMPARE,
				       .op = seed % 2 ? FI_SUM : FI_MSWAP,
				       .count = 8192,
				       .arg = 1000,
				       .cmp = UINT64_MAX - 9000,
				       .off = 4096,
				       .key = 1,
				       .flags = PROTO_REPORT | PROTO_DATA};
		struct sim_op *op;

		sim_init(&s, seed, 2);
		s.net.ring = 3;
		s.net.refuse_room = 20;
		for (int i = 0; i < 8192; i++) {
			words(&s, 1)[512 + i] = 7;
		}
		op = sim_atomic(&s, 0, 1, &a);
		sim_settle(&s);
		good &= op->done == 1 && !op->err && s.eps[1].atomics == 1 &&
			s.eps[1].remote_bytes == 65536;
		for (uint64_t i = 0; i < 8192; i++) {
			uint64_t mask = a.cmp + i, arg = a.arg + i;

			good &= op->result[i] == 7;
			good &= words(&s, 1)[512 + i] ==
				(seed % 2 ? 7 + arg : (arg & mask) | (7 & ~mask));
		}
		good &= words(&s, 1)[511] == 0 && words(&s, 1)[512 + 8192] == 0;
		sim_fini(&s);
	}
	tap_ok(good, "64 KiB in many requests: one operation, one event");
}

/* ---- what is refused */

static void test_refusals(void)
{
	char *gap = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mem_region r = {.iov = {{gap, 3 * 4096}},
			       .iov_count = 1,
			       .access = FI_REMOTE_READ | FI_REMOTE_WRITE};
	const struct {
		const char *what;
		uint64_t off, key;
		size_t count;
		int err;
	} rows[] = {
		{"unknown key", 0, 99, 1, FI_ENOKEY},
		{"memory that may be read only", 0, 2, 1, FI_EACCES},
		{"behind the end", SIM_REGION - 8, 1, 2, FI_EINVAL},
		{"an address that isn't aligned", 12, 1, 1, FI_EINVAL},
		{"memory that isn't there", 8192, 3, 1, FI_EFAULT},
		{"memory that can't be written", 0, 3, 1, FI_EFAULT},
		{"half of it behind the end, after much", SIM_REGION - 32768, 1, 8192,
		 FI_EINVAL},
	};
	struct sim_op *op;
	struct sim s;

	if (mprotect(gap, 4096, PROT_READ)) {
		tap_bail("mprotect");
	}
	sim_init(&s, 3, 3);
	mem_keytab_insert_at(s.eps[1].keys, &r, 3);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_atomic a = {.mode = ATOMIC_FETCH,
				       .op = FI_SUM,
				       .count = rows[i].count,
				       .arg = 1,
				       .off = rows[i].off,
				       .key = rows[i].key,
				       .flags = PROTO_REPORT};

		op = sim_atomic(&s, 0, 1, &a);
		sim_settle(&s);
		tap_ok(op->done == 1 && op->err == rows[i].err, "refused: %s",
		       rows[i].what);
	}
	op = sim_atomic(&s, 0, 1,
			&(struct sim_atomic){.mode = ATOMIC_FETCH,
					     .op = FI_ATOMIC_READ,
					     .count = 2,
					     .key = 3,
					     .flags = PROTO_REPORT});
	sim_settle(&s);
	tap_ok(op->done && !op->err && op->result[1] == 0, "the first page can be read");
	mem_keytab_remove(s.eps[1].keys, 3);
	if (mprotect(gap, 4096, PROT_NONE)) {
		tap_bail("mprotect");
	}
	mem_keytab_insert_at(s.eps[1].keys, &r, 3);
	op = sim_atomic(&s, 0, 1,
			&(struct sim_atomic){.mode = ATOMIC_FETCH,
					     .op = FI_ATOMIC_READ,
					     .count = 2,
					     .key = 3,
					     .flags = PROTO_REPORT});
	sim_settle(&s);
	tap_is_int(op->err, FI_EFAULT, "registered anew, it is looked at anew");
	tap_is_int((int64_t)s.eps[1].atomics, 1, "what was refused left no trace");
	op = add(&s, 0, 1, 4);
	sim_settle(&s);
	tap_ok(op->done && !op->err, "the peer is served on");
	sim_fini(&s);
	munmap(gap, 3 * 4096);
}

/* An endpoint that was not made for atomics, or for one direction only. */
/* Of an operation of many requests the last would be refused: none is carried out. */
static void test_all_or_none(void)
{
	const size_t half = 32u << 10;
	struct sim_atomic a = {.mode = ATOMIC_FETCH,
			       .op = FI_SUM,
			       .count = 2 * half / 8,
			       .arg = 1,
			       .off = SIM_REGION - half,
			       .key = 1,
			       .flags = PROTO_REPORT};
	bool good = true;

	for (uint64_t seed = 1; seed <= 30 && good; seed++) {
		struct sim_op *out, *fine;
		struct sim s;

		sim_init(&s, seed, 2);
		s.net.refuse_room = seed % 3 ? 40 : 0;
		s.net.ring = 4 + seed % 20;
		out = sim_atomic(&s, 0, 1, &a);
		fine = add(&s, 0, 1, 5);
		sim_settle(&s);
		good &= out->done == 1 && out->err == FI_EINVAL && fine->done == 1 &&
			!fine->err && words(&s, 1)[5] == 1;
		for (size_t i = 0; i < half; i++) {
			good &= s.eps[1].region[SIM_REGION - half + i] == 0;
		}
		a.off -= half; /* and all of it where all is well */
		out = sim_atomic(&s, 0, 1, &a);
		a.off += half;
		sim_settle(&s);
		good &= out->done == 1 && !out->err && s.open == 0 && s.bad == 0 &&
			words(&s, 1)[SIM_REGION / 8 - 1] == 2 * half / 8;
		sim_fini(&s);
	}
	tap_ok(good, "refused in its last request: nothing of it was carried out");
}

static void test_no_access(void)
{
	struct sim_op *op;
	struct sim s;

	sim_init(&s, 4, 2);
	proto_ep_close(s.eps[1].ep);
	s.attr.atomic_access = 0;
	sim_ep_open(&s, 1);
	op = add(&s, 0, 1, 0);
	sim_settle(&s);
	tap_is_int(op->err, FI_EOPNOTSUPP, "an endpoint without atomics");
	proto_ep_close(s.eps[1].ep);
	s.attr.atomic_access = FI_REMOTE_READ;
	sim_ep_open(&s, 1);
	sim_settle(&s);
	op = add(&s, 0, 1, 0);
	sim_settle(&s);
	tap_is_int(op->err, FI_EOPNOTSUPP, "a change where reading is allowed");
	tap_ok(words(&s, 1)[0] == 0, "nothing was changed");
	sim_fini(&s);
}

/* ---- order */

/* E2 with RMA: each sees what the other did before it. */
static void test_order_rma(void)
{
	bool good = true;

	for (uint64_t seed = 1; seed <= 50 && good; seed++) {
		struct sim_op *read, *was, *write;
		struct sim s;

		sim_init(&s, seed, 2);
		/* Connected, some of them are done in the call. */
		if (seed % 2 == 0) {
			add(&s, 0, 1, 0);
			sim_settle(&s);
		}
		s.net.late_segment = seed % 4 ? 80 : 0;
		s.net.refuse_room = seed % 3 ? 30 : 0;
		s.net.caps.ordered = seed % 2;
		write = sim_rma(&s, 0, 1, 8, 800, 1, PROTO_WRITE | PROTO_REPORT);
		was = add(&s, 0, 1, 100);
		read = sim_rma(&s, 0, 1, 8, 800, 1, PROTO_REPORT);
		sim_rma(&s, 0, 1, 8, 800, 1, PROTO_WRITE | PROTO_REPORT);
		sim_settle(&s);
		good &= was->done && memcmp(was->result, write->buf, 8) == 0;
		good &= read->done &&
			*(uint64_t *)(void *)read->buf == was->result[0] + 1;
		sim_check(&s);
		good &= s.bad == 0;
		sim_fini(&s);
	}
	tap_ok(good,
	       "E2: writes, atomics and reads see each other in order (50 schedules)");
}

/* E2 with messages: whoever has the message finds the memory changed. */
static void test_order_msg(void)
{
	bool good = true;

	for (uint64_t seed = 1; seed <= 50 && good; seed++) {
		struct sim_op *recv;
		struct sim s;

		sim_init(&s, seed, 2);
		s.net.refuse_room = 40;
		s.net.refuse_dial = seed % 2 ? 40 : 0;
		s.net.ring = 2 + seed % 8;
		recv = sim_recv(&s, 1, -1, 64, 1, 0, PROTO_REPORT | PROTO_TAGGED);
		for (int i = 0; i < 20; i++) {
			add(&s, 0, 1, 5);
		}
		sim_send(&s, 0, 1, seed % 3 ? 8 : 30000, 1, PROTO_REPORT | PROTO_TAGGED);
		for (int step = 0; step < 100000 && !recv->done; step++) {
			sim_step(&s, 20000);
		}
		good &= recv->done && words(&s, 1)[5] == 20;
		sim_settle(&s);
		good &= s.bad == 0 && s.open == 0;
		sim_fini(&s);
	}
	tap_ok(good, "E2: a message after atomics finds them done (50 schedules)");
}

/* ---- exactly once */

#define COUNTERS 4

/* One of these is used: every add that succeeded got a number of its own. */
static bool counter_check(struct sim *s, int ep, uint64_t word, bool deaths)
{
	uint64_t final = words(s, ep)[word], good = 0, posted = 0;
	uint8_t *seen = calloc(1, final + 1);
	bool ok = true;

	for (int i = 0; i < s->op_count; i++) {
		const struct sim_op *op = &s->ops[i];

		if (op->kind != SIM_ATOMIC || op->to != ep ||
		    op->remote_off != 8 * word) {
			continue;
		}
		posted++;
		if (op->err) {
			continue;
		}
		good++;
		if (op->result[0] >= final || seen[op->result[0]]++) {
			tap_diag("endpoint %d, counter %d: %" PRIu64
				 " twice, or of %" PRIu64,
				 ep, (int)word, op->result[0], final);
			ok = false;
		}
	}
	free(seen);
	if (deaths ? good > final || final > posted : good != final) {
		tap_diag("endpoint %d, counter %d: %" PRIu64 " adds of %" PRIu64
			 " succeeded, the counter has %" PRIu64,
			 ep, (int)word, good, posted, final);
		ok = false;
	}
	return ok;
}

/* Atomics among everything else. Counters are the first words; the rest of the region is
 * RMA's. */
static void random_step(struct sim *s, bool deaths)
{
	int from = (int)(mock_random(&s->net) % (uint64_t)s->ep_count);
	int to = (int)(mock_random(&s->net) % (uint64_t)s->ep_count);
	uint64_t what = mock_random(&s->net) % 100;
	size_t len = 8 + mock_random(&s->net) % 4992; /* messages say whose they are */

	if (what < 50) {
		add(s, from, to, mock_random(&s->net) % COUNTERS);
	} else if (what < 58) {
		sim_send(s, from, to, len, 1, PROTO_REPORT | PROTO_TAGGED);
	} else if (what < 66) {
		sim_recv(s, from, -1, 5000, 1, 0, PROTO_REPORT | PROTO_TAGGED);
	} else if (what < 74) {
		sim_rma(s, from, to, len, 4096, 1,
			PROTO_REPORT | (what & 1 ? PROTO_WRITE : 0));
	} else if (deaths && what == 99 && mock_chance(&s->net, 50)) {
		mock_kill_random(&s->net);
	} else {
		sim_step(s, mock_random(&s->net) % 2000);
	}
}

static bool random_case(uint64_t seed, bool deaths)
{
	bool good = true;
	uint64_t shape;
	struct sim s;

	sim_init(&s, seed, 2 + (int)(seed % 2));
	shape = mock_random(&s.net);
	s.net.caps.ordered = shape & 1;
	s.net.refuse_room = shape & 2 ? 40 : 0;
	s.net.refuse_dial = shape & 4 ? 40 : 0;
	s.net.late_segment = shape & 8 ? 70 : 0;
	s.net.ring = shape & 16 ? 2 : 32;
	for (int i = 0; i < 500; i++) {
		random_step(&s, deaths);
	}
	for (int round = 0; round < 50 && s.open; round++) {
		sim_settle(&s);
		sim_cancel_all(&s);
		for (int i = 0; i < s.op_count; i++) {
			if (s.ops[i].kind == SIM_SEND && !s.ops[i].done) {
				sim_recv(&s, s.ops[i].to, -1, 5000, 1, 0,
					 PROTO_REPORT | PROTO_TAGGED);
			}
		}
		if (deaths && s.open) {
			mock_kill_pair(&s.net);
		}
	}
	sim_settle(&s);
	sim_check(&s);
	good &= s.bad == 0 && s.open == 0;
	for (int ep = 0; ep < s.ep_count; ep++) {
		for (uint64_t word = 0; word < COUNTERS; word++) {
			good &= counter_check(&s, ep, word, deaths);
		}
	}
	if (!good) {
		tap_diag("seed %" PRIu64 "%s: %d open, %d bad", seed,
			 deaths ? ", links die" : "", s.open, s.bad);
	}
	sim_fini(&s);
	return good;
}

/* ---- peers that lie */

static size_t forged(struct sim *s, uint8_t *pkt, uint64_t id)
{
	struct pkt_view v = {.id = id,
			     .flags = mock_random(&s->net) % 2 ? PKT_F_MORE : PKT_F_DATA,
			     .len = 16,
			     .total = 16 + mock_random(&s->net) % 2 * 8,
			     .mode = ATOMIC_FETCH,
			     .op = FI_SUM,
			     .type = FI_UINT64,
			     .count = 2};

	for (int i = 0; i < 2; i++) {
		v.iov[i].addr = mock_random(&s->net) % (SIM_REGION + 64);
		v.iov[i].len = 8;
		v.keys[i] = mock_random(&s->net) % 4;
		if (mock_chance(&s->net, 20)) {
			v.iov[i].addr = mock_random(&s->net) >> 1;
		}
	}
	return pkt_put_atomic(pkt, &v) + 16;
}

static void lie(struct sim *s)
{
	int to = (int)(mock_random(&s->net) % 2);
	struct wire_link *link = mock_some_link(proto_wire_ep(s->eps[to].ep));
	uint64_t id = (uint64_t)(1 + 2 * (mock_random(&s->net) % 8)) << 32 |
		      mock_random(&s->net) % 64;
	uint8_t pkt[256] = {0};
	uint32_t len = mock_random(&s->net) % 3 * 8;
	size_t size;

	if (!link) {
		return;
	}
	switch (mock_random(&s->net) % 3) {
	case 0:
		size = forged(s, pkt, id);
		break;
	case 1:
		size = pkt_put_result(pkt, id, 0, len) + len;
		break;
	default:
		size = pkt_put_result(pkt, id, FI_EINVAL, 0);
	}
	mock_inject(link, pkt, size);
}

static void test_liar(void)
{
	bool good = true;

	for (uint64_t seed = 1; seed <= 60 && good; seed++) {
		struct sim s;

		sim_init(&s, seed, 2);
		for (int i = 0; i < 400; i++) {
			struct sim_atomic a = {
				.mode = seed % 2 ? ATOMIC_FETCH : ATOMIC_BASE,
				.op = FI_SUM,
				.count = 1 + mock_random(&s.net) % 2000,
				.off = 8,
				.key = 1,
				.flags = PROTO_REPORT | (seed % 2 ? 0 : PROTO_WRITE)};

			sim_atomic(&s, i % 2, 1 - i % 2, &a);
			sim_step(&s, mock_random(&s.net) % 2000);
			if (mock_chance(&s.net, 20)) {
				lie(&s);
			}
		}
		sim_settle(&s);
		sim_check(&s);
		good &= s.bad == 0 && s.open == 0;
		sim_fini(&s);
	}
	tap_ok(good, "a peer that lies: every operation completes exactly once");
}

/* No operation has the name 0: such a request is judged as any other. */
static void test_nameless(void)
{
	const uint64_t one[2] = {1, 1};
	struct pkt_view v = {.len = sizeof(one),
			     .total = sizeof(one),
			     .mode = ATOMIC_BASE,
			     .op = FI_SUM,
			     .type = FI_UINT64,
			     .count = 2,
			     .iov = {{0, 8}, {0, 8}},
			     .keys = {1, 99}};
	uint8_t pkt[256];
	struct sim s;
	size_t head;

	sim_init(&s, 12, 2);
	add(&s, 0, 1, 0);
	sim_settle(&s);
	head = pkt_put_atomic(pkt, &v);
	memcpy(pkt + head, one, sizeof(one));
	mock_inject(mock_some_link(proto_wire_ep(s.eps[1].ep)), pkt, head + sizeof(one));
	sim_settle(&s);
	tap_ok(words(&s, 1)[0] == 1 && s.eps[1].atomics == 1,
	       "a request without a name and with a wrong key: nothing is done");
	sim_fini(&s);
}

/* Requests without end by a peer that takes no result: it is given up before it has cost
 * more than its window, and others are served. */
static void test_flood(void)
{
	struct pkt_view v = {.id = 1,
			     .len = 2048,
			     .total = 2048,
			     .mode = ATOMIC_FETCH,
			     .op = FI_ATOMIC_READ,
			     .type = FI_UINT64,
			     .count = 1,
			     .iov = {{0, 2048}},
			     .keys = {1}};
	uint64_t kept = 0;
	struct sim_op *op;
	struct sim s;

	sim_init(&s, 9, 3);
	s.net.ring = 4;
	add(&s, 0, 1, 0);
	sim_settle(&s);
	s.eps[0].paused = true;
	for (int i = 0; i < 2000; i++) {
		struct wire_link *link = mock_some_link(proto_wire_ep(s.eps[1].ep));
		uint8_t pkt[256];

		if (!link) {
			break;
		}
		mock_inject(link, pkt, pkt_put_atomic(pkt, &v));
		sim_step(&s, 2000);
		if (sim_peer(&s, 1, 0)->results_kept > kept) {
			kept = sim_peer(&s, 1, 0)->results_kept;
		}
	}
	tap_ok(kept > ATOMIC_WINDOW / 2 && kept <= ATOMIC_WINDOW + ATOMIC_CHUNK_MAX,
	       "a flood: %d bytes are kept at most", (int)kept);
	tap_ok(s.eps[1].ep->bad_packets > 0 && sim_peer(&s, 1, 0)->results_kept == 0,
	       "then its sender is given up, and nothing is kept");
	op = add(&s, 2, 1, 1);
	sim_settle(&s);
	tap_ok(op->done && !op->err, "an honest peer is served");
	sim_fini(&s);
}

/* An honest peer that doesn't read for long: all of its results come, in order. */
static void test_sleeper(void)
{
	struct sim_op *ops[60];
	bool good = true;
	struct sim s;

	sim_init(&s, 10, 2);
	s.net.ring = 4;
	add(&s, 0, 1, 0);
	sim_settle(&s);
	for (int i = 0; i < 60; i++) {
		ops[i] = add(&s, 0, 1, 1);
		s.eps[0].paused = true;
		sim_step(&s, 2000);
		sim_step(&s, 2000);
		s.eps[0].paused = false;
	}
	sim_settle(&s);
	for (int i = 0; i < 60; i++) {
		good &= ops[i] && ops[i]->done == 1 && !ops[i]->err &&
			ops[i]->result[0] == (uint64_t)i &&
			(i == 0 || ops[i]->done_at >= ops[i - 1]->done_at);
	}
	tap_ok(good, "B1: results that found no room come later, in order");
	tap_ok(proto_is_drained(s.eps[1].ep) && sim_peer(&s, 1, 0)->results_kept == 0,
	       "nothing is kept");
	sim_fini(&s);
}

/* Injected ones leave although their endpoint closes; what answers them is taken. */
static void test_close(void)
{
	struct sim s;

	sim_init(&s, 11, 2);
	s.net.ring = 2;
	add(&s, 0, 1, 1);
	sim_settle(&s);
	for (int i = 0; i < 40; i++) {
		sim_atomic(&s, 0, 1,
			   &(struct sim_atomic){.op = FI_SUM,
						.count = 1,
						.arg = 1,
						.off = 0,
						.key = 1,
						.flags = PROTO_WRITE | PROTO_INJECT});
	}
	proto_set_closing(s.eps[0].ep);
	for (int i = 0; i < 100000 && !proto_is_drained(s.eps[0].ep); i++) {
		sim_step(&s, 1000);
	}
	proto_ep_close(s.eps[0].ep);
	s.eps[0].ep = NULL;
	sim_settle(&s);
	tap_is_int((int64_t)words(&s, 1)[0], 40,
		   "injected, then closed: all are carried out");
	sim_fini(&s);
}

int main(int argc, char **argv)
{
	uint64_t base = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : tap_short() ? 40 : 150;
	bool good = true;

	test_results();
	test_long();
	test_refusals();
	test_all_or_none();
	test_no_access();
	test_order_rma();
	test_order_msg();
	test_liar();
	test_nameless();
	test_flood();
	test_sleeper();
	test_close();
	for (uint64_t seed = base; seed < base + count; seed++) {
		good &= random_case(seed, false);
		good &= random_case(seed, true);
	}
	tap_ok(good,
	       "B1, E4: each is carried out exactly once, seeds %" PRIu64 " to %" PRIu64,
	       base, base + count - 1);
	return tap_done();
}
