/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that is promised about order and completion, over a wire that keeps as
 * little of it as it may: segments of different operations, and of one, take effect in
 * any order and any time later (or, where caps.ordered says so, in the order of the
 * calls), packets wait, room and segments are refused. Random operations of one endpoint
 * on the memory of another, which must look at every moment as a model says that does one
 * after the other. The bits that are granted are random too; where one isn't, the same
 * schedules must break what it promises, or the wire were too kind to prove anything.
 *
 * Random from a printed seed; test_order SEED repeats one.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "prov/proto/atomic_op.h"
#include "prov/proto/tests/sim.h"
#include "util/tap.h"

#define OPS   120
#define CROWD 1024 /* bytes that all operations fight for */
#define WORDS 2048 /* where words for atomics are, if these keep no order with RMA */
#define CELLS 4096 /* where each operation has 8 bytes for itself */
#define FLAGS (PROTO_REPORT)

enum what { READS, AFTER_RMA, WHATS };

struct order {
	struct sim *s;
	char model[CELLS]; /* of the first bytes of endpoint 1's memory */
	char *expected[SIM_OPS];
	bool cell[SIM_OPS]; /* the operation's cell is written by it */
	uint64_t broken[WHATS];
	uint64_t promises; /* that something was done when it was said to be */
	int bad;
};

/* Of all seeds: how often what wasn't promised was not so, and what was checked. */
static uint64_t disorder[WHATS], checked[WHATS], fences, deliveries;

static void broken(struct order *o, const struct sim_op *op, const char *what)
{
	if (o->bad++ == 0) {
		tap_diag("operation %d (kind %d, %zu bytes, flags %x, err %d): %s",
			 (int)(op - o->s->ops), op->kind, op->len, op->flags, op->err,
			 what);
	}
}

static char *cell_of(const struct order *o, int i)
{
	return o->s->eps[1].region + CELLS + (size_t)i * 8;
}

/* All that was posted before operation `end` has happened to endpoint 1's memory, and
 * reads have what they came for. */
static bool is_past(const struct order *o, int end)
{
	for (int i = 0; i < end; i++) {
		const struct sim_op *op = &o->s->ops[i];

		if (o->cell[i] && memcmp(cell_of(o, i), op->buf, 8) != 0) {
			return false;
		}
		if (op->kind == SIM_READ && !op->done) {
			return false;
		}
	}
	return true;
}

static void on_read(struct order *o, const struct sim_op *op)
{
	const char *got = op->kind == SIM_READ ? op->buf : (const char *)op->result;
	const char *want = o->expected[op - o->s->ops];
	size_t len = op->kind == SIM_READ ? op->len : op->len / 3;

	if (!want) {
		return;
	}
	if (memcmp(got, want, len) == 0) {
		checked[READS]++;
	} else if (op->kind == SIM_ATOMIC || o->s->attr.order_rma) {
		broken(o, op, "RAW, WAR, WAW: it saw another past");
	} else {
		disorder[READS]++;
	}
}

/* got_id is the message, which is an operation of its sender. */
static void on_recv(struct order *o, const struct sim_op *op)
{
	bool past = is_past(o, (int)op->got_id - 1);

	if (past) {
		checked[AFTER_RMA]++;
	} else if (o->s->attr.order_msg_after_rma) {
		broken(o, op, "SAR, SAW: the message came before what was before it");
	} else {
		disorder[AFTER_RMA]++;
	}
}

static bool is_received(const struct order *o, const struct sim_op *send)
{
	for (int i = 0; i < o->s->op_count; i++) {
		const struct sim_op *r = &o->s->ops[i];

		if (r->kind == SIM_RECV && r->done && r->got_id == send->id) {
			return true;
		}
	}
	return false;
}

static void on_done(struct sim *s, const struct sim_op *op)
{
	struct order *o = s->on_done_arg;
	int i = (int)(op - s->ops);

	if (op->err) {
		broken(o, op, "an error");
	} else if (op->kind == SIM_RECV) {
		on_recv(o, op);
	} else if (op->kind == SIM_SEND) {
		if (op->flags & PROTO_DELIVERY) {
			deliveries++;
			if (!is_received(o, op)) {
				broken(o, op, "complete, and not delivered");
			}
		}
	} else if (op->kind == SIM_WRITE) {
		/* Whatever the level: it is there. */
		if (o->cell[i] && memcmp(cell_of(o, i), op->buf, 8) != 0) {
			broken(o, op, "complete, and not in memory");
		}
	} else {
		on_read(o, op);
	}
}

/* ---- posting ----------------------------------------------------------------------- */

/* What is fenced is taken only when all before it is over. */
static void check_fence(struct order *o, const struct sim_op *op)
{
	fences++;
	for (const struct sim_op *b = o->s->ops; b < op; b++) {
		if (b->ep == 0 && b->kind != SIM_RECV && !b->done) {
			broken(o, op, "FENCE: older operations are not over");
			return;
		}
	}
}

static uint32_t random_flags(struct order *o)
{
	return FLAGS | (mock_chance(&o->s->net, 15) ? PROTO_FENCE : 0);
}

/* A write of the whole, or a read, somewhere in the crowd. */
static struct sim_op *post_rma(struct order *o, bool write)
{
	struct sim *s = o->s;
	size_t len = 1 + mock_random(&s->net) % 300;
	size_t off = mock_random(&s->net) % (CROWD - len);
	struct sim_op *op = sim_rma(s, 0, 1, len, off, 1,
				    random_flags(o) | (write ? PROTO_WRITE : 0));
	int i = op ? (int)(op - s->ops) : 0;

	if (!op) {
		return NULL;
	}
	if (write) {
		sim_pattern(o->model + off, len, op->id);
		return op;
	}
	o->expected[i] = malloc(len);
	memcpy(o->expected[i], o->model + off, len);
	if (op->done) { /* in the call, before it was known what to expect */
		on_read(o, op);
	}
	return op;
}

/* A write into a cell of its own. */
static struct sim_op *post_cell(struct order *o)
{
	struct sim *s = o->s;
	int i = s->op_count;
	struct sim_op *op = sim_rma(s, 0, 1, 8, CELLS + (uint64_t)i * 8, 1,
				    random_flags(o) | PROTO_WRITE);

	if (op) {
		o->cell[i] = true;
	}
	return op;
}

static struct sim_op *post_atomic(struct order *o)
{
	struct sim *s = o->s;
	size_t count = 1 + mock_random(&s->net) % 8, at = mock_random(&s->net) % 100;
	size_t base = s->attr.order_atomic && s->attr.order_rma ? 0 : WORDS;
	struct sim_atomic a = {.mode = ATOMIC_FETCH,
			       .op = FI_SUM,
			       .count = count,
			       .arg = mock_random(&s->net),
			       .off = base + at * 8,
			       .key = 1,
			       .flags = random_flags(o)};
	struct sim_op *op = sim_atomic(s, 0, 1, &a);
	int i = op ? (int)(op - s->ops) : 0;

	if (!op) {
		return NULL;
	}
	o->expected[i] = malloc(count * 8);
	memcpy(o->expected[i], o->model + base + at * 8, count * 8);
	for (size_t k = 0; k < count; k++) {
		uint64_t word;
		char *word_at = o->model + base + (at + k) * 8;

		memcpy(&word, word_at, 8);
		word += a.arg + k;
		memcpy(word_at, &word, 8);
	}
	return op;
}

static struct sim_op *post_send(struct order *o)
{
	static const size_t sizes[] = {8, 8, 64, 1000, 3000, 20000};
	struct sim *s = o->s;
	size_t len = sizes[mock_random(&s->net) % 6];
	uint32_t flags = random_flags(o) | PROTO_TAGGED | PROTO_DATA |
			 (mock_chance(&s->net, 30) ? PROTO_DELIVERY : 0);

	return sim_send(s, 0, 1, len, 1, flags);
}

static bool post(struct order *o)
{
	struct sim *s = o->s;
	uint64_t what = mock_random(&s->net) % 10;
	struct sim_op *op = what < 2   ? post_rma(o, true)
			    : what < 4 ? post_rma(o, false)
			    : what < 6 ? post_cell(o)
			    : what < 8 ? post_atomic(o)
				       : post_send(o);

	if (op && (op->flags & PROTO_FENCE)) {
		check_fence(o, op);
	}
	return op && op->kind == SIM_SEND;
}

/* ---- a case ------------------------------------------------------------------------ */

static void shape(struct sim *s, uint64_t seed)
{
	s->attr.order_rma = seed % 4 != 0;
	s->attr.order_atomic = seed % 3 != 0;
	s->attr.order_msg_after_rma = seed % 5 != 0;
	s->net.max_delay = seed % 2 ? 100000 : 5000;
	s->net.late_segment = (uint32_t)(mock_random(&s->net) % 101);
	s->net.refuse_segment = (uint32_t)(mock_random(&s->net) % 50);
	s->net.refuse_room = (uint32_t)(mock_random(&s->net) % 50);
	s->net.refuse_dial = seed % 7 ? 0 : 50;
	s->net.ring = 4 + (uint32_t)(mock_random(&s->net) % 40);
	s->net.caps.ordered = mock_random(&s->net) % 2;
	s->net.caps.max_segment = mock_random(&s->net) % 2 ? 64 : 1 << 20;
	s->net.caps.raw = mock_random(&s->net) % 2;
	s->net.caps.bulk = mock_random(&s->net) % 2 ? MOCK_SLOT_SIZE : 0;
	s->net.caps.joints = mock_random(&s->net) % 2 ? MOCK_CELLS : 0;
}

static void reopen(struct sim *s)
{
	for (int i = 0; i < 2; i++) {
		proto_ep_close(s->eps[i].ep);
		sim_ep_open(s, i);
	}
}

static bool run(uint64_t seed)
{
	struct order *o = calloc(1, sizeof(*o));
	struct sim s;
	bool good;

	if (!o) {
		tap_bail("no memory");
	}
	sim_init(&s, seed, 2);
	o->s = &s;
	shape(&s, seed);
	reopen(&s);
	s.on_done = on_done;
	s.on_done_arg = o;
	for (int i = 0; i < OPS; i++) {
		if (post(o)) {
			sim_recv(&s, 1, mock_random(&s.net) % 2 ? 0 : -1, 20000, 1, 0,
				 PROTO_TAGGED | FLAGS);
		}
		if (mock_chance(&s.net, 40)) {
			sim_step(&s, mock_random(&s.net) % s.net.max_delay);
		}
		for (int k = 0; k < 40 && mock_chance(&s.net, 95); k++) { /* mostly few */
			sim_step(&s, i % 16 ? 0 : s.net.max_delay / 8);
		}
	}
	good = sim_settle(&s) && s.open == 0;
	if (!good) {
		tap_diag("%d operations never ended", s.open);
	}
	if (s.attr.order_rma && memcmp(o->model, s.eps[1].region, CROWD) != 0) {
		good = false;
		tap_diag("WAW: the memory is not what the model has");
	}
	sim_check(&s); /* SAS, every byte, once */
	good &= s.bad == 0 && o->bad == 0;
	for (int i = 0; i < SIM_OPS; i++) {
		free(o->expected[i]);
	}
	sim_fini(&s);
	free(o);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : tap_short() ? 60 : 240;
	uint64_t bad = 0;

	for (uint64_t seed = first; seed < first + count && !bad; seed++) {
		bad = run(seed) ? 0 : seed;
	}
	tap_ok(!bad,
	       "order and completion under random schedules, seeds %" PRIu64
	       " to %" PRIu64,
	       first, first + count - 1);
	if (bad) {
		tap_diag("repeat with: test_order %" PRIu64, bad);
	}
	if (argc > 1) {
		return tap_done();
	}
	tap_ok(checked[READS] > count && checked[AFTER_RMA] > count &&
		       fences > count / 4 && deliveries > count,
	       "checked: %" PRIu64 " reads, %" PRIu64 " messages, %" PRIu64
	       " fences, %" PRIu64 " deliveries",
	       checked[READS], checked[AFTER_RMA], fences, deliveries);
	tap_ok(disorder[READS] > 0 && disorder[AFTER_RMA] > 0,
	       "the wire keeps no order of its own: %" PRIu64 " reads, %" PRIu64
	       " messages where none was promised",
	       disorder[READS], disorder[AFTER_RMA]);
	return tap_done();
}
