/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts that the wire takes at once and that end later (put_soon), among others, messages,
 * and links that die: each ends once, in order, and what went well is in the peer's
 * memory.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "prov/proto/small.h"
#include "prov/proto/tests/mock_link.h"
#include "prov/proto/tests/sim.h"
#include "util/tap.h"

#define INLINED 64u
#define STEPS	300
#define SOON_AT (SIM_REGION / 2) /* each has a place of its own from there on */

/* What the wire has taken, and how it ended. */
static struct {
	void *cookie[SIM_OPS];
	unsigned count;
	uint64_t taken, refused, over, usual;
	/* The bytes go with the request; each is taken once. */
	uint8_t bytes[SIM_OPS][INLINED];
	unsigned bytes_used;
} soon;

static const struct wire_events *engine; /* the engine's own */
static const struct proto_up *ledger;	 /* the simulation's own */
static uint64_t ok_calls;
static int disorder, early;
static bool ordered, killing;
static uint64_t last[SIM_EPS];

/* ---- a wire that has it -------------------------------------------------------------
 */

/* What a link that was given up never ended. */
static void forget(const void *cookie)
{
	for (unsigned i = 0; i < soon.count; i++) {
		if (soon.cookie[i] == cookie) {
			soon.cookie[i--] = soon.cookie[--soon.count];
		}
	}
}

static int put(struct wire_link *link, const struct wire_segment *seg)
{
	forget(seg->cookie);
	return mock_wire.put(link, seg);
}

static int get(struct wire_link *link, const struct wire_segment *seg)
{
	forget(seg->cookie);
	return mock_wire.get(link, seg);
}

static bool put_soon(struct wire_link *link, uint64_t key, uint64_t addr,
		     const void *from, size_t len, void *cookie)
{
	struct mock_link *l = (struct mock_link *)(void *)link;
	struct mock_seg *seg;

	if (l->dying || mock_chance(l->ep->net, 20)) {
		soon.refused++;
		return false;
	}
	seg = calloc(1, sizeof(*seg));
	seg->local[0].iov_base =
		memcpy(soon.bytes[soon.bytes_used++ % SIM_OPS], from, len);
	seg->local[0].iov_len = len;
	seg->put = true;
	seg->seg = (struct wire_segment){.local = seg->local,
					 .local_count = 1,
					 .remote = {.addr = addr, .key = key},
					 .len = len,
					 .cookie = cookie};
	seg->due = l->ep->net->now + mock_random(l->ep->net) % 1000;
	list_push_back(&l->segs, &seg->node);
	forget(cookie);
	soon.cookie[soon.count++] = cookie;
	soon.taken++;
	return true;
}

static void segment_done(void *arg, struct wire_link *link, void *cookie, int err)
{
	for (unsigned i = 0; i < soon.count; i++) {
		if (soon.cookie[i] != cookie) {
			continue;
		}
		soon.cookie[i] = soon.cookie[--soon.count];
		if (err || mock_chance(((struct mock_link *)(void *)link)->ep->net, 20)) {
			break; /* for any reason */
		}
		soon.over++;
		engine->put_over(arg, link, cookie);
		return;
	}
	soon.usual++;
	engine->segment_done(arg, link, cookie, err);
}

static int ep_open(const struct wire_ep_attr *attr, struct wire_ep **ep)
{
	static struct wire_events events;
	struct wire_ep_attr with = *attr;

	engine = attr->events;
	events = *attr->events;
	events.segment_done = segment_done;
	with.events = &events;
	return mock_wire.ep_open(&with, ep);
}

/* ---- the engine above it ------------------------------------------------------------
 */

static void put_ok(void *arg, void *context, bool report)
{
	struct proto_done d = {.context = context, .report = report};

	ok_calls++;
	ledger->tx_done(arg, &d);
}

static void on_done(struct sim *s, const struct sim_op *op)
{
	if (op->kind == SIM_RECV && !op->err && !killing) {
		/* Rule E2: all that was written before the message was sent is there. */
		for (uint64_t i = 0; i + 1 < op->got_id; i++) {
			early += s->ops[i].kind == SIM_WRITE && s->ops[i].ep != op->ep &&
				 !s->ops[i].done;
		}
	}
	if (op->kind != SIM_WRITE || op->err || !ordered) {
		return;
	}
	disorder += op->id < last[op->ep];
	last[op->ep] = op->id;
}

static void soon_init(struct sim *s, uint64_t seed, struct wire_ops *ops,
		      struct proto_up *up)
{
	sim_init(s, seed, 2);
	for (int i = 0; i < 2; i++) {
		proto_ep_close(s->eps[i].ep);
	}
	*ops = mock_wire;
	ops->put_soon = put_soon;
	ops->put = put;
	ops->get = get;
	ops->ep_open = ep_open;
	ledger = s->attr.up;
	*up = *ledger;
	up->put_ok = put_ok;
	s->attr.up = up;
	s->attr.wire = s->net.ops = ops;
	s->net.caps.inlined = INLINED;
	s->net.late_segment = 50;
	s->on_done = on_done;
	ordered = seed % 4 < 2;
	killing = seed % 2;
	s->attr.order_rma = ordered;
	for (int i = 0; i < 2; i++) {
		sim_ep_open(s, i);
	}
}

/* One more in the ledger, if it may leave just now. */
static void soon_put(struct sim *s)
{
	static const uint32_t flags[] = {0, PROTO_REPORT, PROTO_INJECT};
	struct sim_op *op = &s->ops[s->op_count];
	size_t len = 1 + mock_random(&s->net) % INLINED;
	int from = (int)(mock_random(&s->net) % 2);
	struct proto_peer *pp;

	sim_peer(s, from, !from);
	pp = proto_soon_open(s->eps[from].ep, (uint64_t)!from, len);
	if (!pp || s->op_count == SIM_OPS) {
		return;
	}
	*op = (struct sim_op){.kind = SIM_WRITE,
			      .ep = from,
			      .to = !from,
			      .len = len,
			      .flags = flags[mock_random(&s->net) % 3],
			      .id = (uint64_t)s->op_count + 1,
			      .remote_off = SOON_AT + (size_t)s->op_count * INLINED,
			      .buf = malloc(len)};
	s->op_count++;
	s->open++;
	sim_pattern(op->buf, len, op->id);
	if (!proto_soon_put(s->eps[from].ep, pp, 1, op->remote_off, op->buf, len, op,
			    op->flags)) {
		free(op->buf);
		s->op_count--;
		s->open--;
	}
}

static void others(struct sim *s)
{
	int from = (int)(mock_random(&s->net) % 2);
	uint64_t off = mock_random(&s->net) % (SOON_AT - 5000);

	switch (mock_random(&s->net) % 4) {
	case 0:
		sim_rma(s, from, !from, 100 + mock_random(&s->net) % 4000, off, 1,
			PROTO_WRITE | PROTO_REPORT);
		break;
	case 1:
		sim_rma(s, from, !from, 100 + mock_random(&s->net) % 4000, off, 1,
			PROTO_REPORT);
		break;
	case 2:
		if (sim_recv(s, !from, -1, 4096, 7, 0, PROTO_REPORT)) {
			sim_send(s, from, !from, 200, 7, PROTO_REPORT);
		}
		break;
	default:
		break;
	}
}

static bool run(uint64_t seed)
{
	struct wire_ops ops;
	struct proto_up up;
	struct sim s;
	bool good;
	int wrong = 0;

	memset(&soon.cookie, 0, sizeof(soon.cookie));
	soon.count = soon.bytes_used = 0;
	memset(last, 0, sizeof(last));
	soon_init(&s, seed, &ops, &up);
	for (int i = 0; i < STEPS; i++) {
		for (uint64_t k = mock_random(&s.net) % 4; k > 0; k--) {
			soon_put(&s);
		}
		others(&s);
		if (killing && mock_chance(&s.net, 3)) {
			mock_kill_random(&s.net);
		}
		sim_step(&s, mock_random(&s.net) % 400);
	}
	good = sim_settle(&s);
	sim_cancel_all(&s); /* receives whose message died */
	good = sim_settle(&s) && good;
	for (int i = 0; i < s.op_count; i++) {
		const struct sim_op *op = &s.ops[i];

		if (op->kind == SIM_WRITE && op->remote_off >= SOON_AT && !op->err) {
			wrong += !sim_is_pattern(s.eps[op->to].region + op->remote_off,
						 op->len, op->id);
		}
	}
	good = good && s.open == 0 && s.bad == 0 && wrong == 0 && disorder == 0 &&
	       early == 0;
	for (int i = 0; i < 2; i++) {
		good = good && s.eps[i].ep->injected == 0;
	}
	if (!good) {
		tap_diag("open %d, bad %d, wrong %d, out of order %d, early %d", s.open,
			 s.bad, wrong, disorder, early);
	}
	sim_fini(&s);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : 40, bad = 0;

	for (uint64_t seed = first; seed < first + count && !bad; seed++) {
		bad = run(seed) ? 0 : seed;
	}
	tap_ok(!bad, "each ends once, in order, and is there: %u seeds", (unsigned)count);
	if (bad) {
		tap_diag("repeat with: test_soon %llu", (unsigned long long)bad);
	}
	tap_ok(soon.taken > 10 * count && soon.refused > count && soon.over > count,
	       "the wire took %llu, refused %llu", (unsigned long long)soon.taken,
	       (unsigned long long)soon.refused);
	tap_ok(ok_calls > count && ok_calls < soon.taken && soon.usual > 0,
	       "%llu of them ended the short way, others as all do",
	       (unsigned long long)ok_calls);
	return tap_done();
}
