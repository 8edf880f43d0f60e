/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver alone: against a model under drawn arrivals, and rule by rule. */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "prov/dqplb/rx.h"
#include "util/tap.h"

enum { WINDOW = 64, FIRST = 0xffff80, NUMBERS = 20000, RECEIVES = 1 << 20 };

struct side {
	struct dqplb_rx *rx;
	struct dqplb_rq rq;
	uint32_t events;
	struct dqplb_event last;
};

static void on_event(void *arg, const struct dqplb_event *ev)
{
	struct side *s = arg;

	s->events++;
	s->last = *ev;
}

static size_t ack(struct side *s, struct dqplb_msg *m)
{
	uint8_t bytes[DQPLB_MSG_MAX];
	size_t len = dqplb_rx_ack(s->rx, bytes, dqplb_msg_max(WINDOW));

	if (len == 0 || dqplb_msg_parse(bytes, len, m))
		tap_bail("what the receiver says is not valid");
	return len;
}

/* Two lanes with a queue each. */
static void open_side(struct side *s, uint32_t receives, uint32_t target)
{
	struct dqplb_rx_config c = {.window = WINDOW,
				    .records = 4,
				    .gen = 1,
				    .first = FIRST,
				    .ack_bytes = 100000,
				    .event = on_event,
				    .arg = s};
	struct dqplb_msg m;

	memset(s, 0, sizeof(*s));
	dqplb_rq_posted(&s->rq, receives);
	if (dqplb_rx_open(&c, &s->rx) || dqplb_rx_queue(s->rx, 0, &s->rq, target) ||
	    dqplb_rx_lane_open(s->rx, 0, 1, 0) || dqplb_rx_lane_open(s->rx, 1, 1, 0))
		tap_bail("a receiver can't be opened");
	ack(s, &m);
}

static int imm(struct side *s, uint32_t offset, uint32_t flags)
{
	return dqplb_rx_imm(s->rx, 0, 1, dqplb_imm_make(FIRST + offset, 1, flags), 10);
}

static int record(struct side *s, uint32_t own, bool ordered, uint32_t first,
		  uint32_t count)
{
	struct dqplb_msg m = {.kind = DQPLB_MSG_RECORD,
			      .gen = 1,
			      .flags = ordered ? DQPLB_MSG_F_ORDERED : 0,
			      .number = (FIRST + own) & DQPLB_SEQ_MASK,
			      .data = own,
			      .len = 1000,
			      .op = 7,
			      .runs = count ? 1 : 0,
			      .run = {{(FIRST + first) & DQPLB_SEQ_MASK, count}}};

	return dqplb_rx_msg(s->rx, &m);
}

static int voids(struct side *s, uint32_t first, uint32_t count)
{
	struct dqplb_msg m = {.kind = DQPLB_MSG_VOID,
			      .gen = 1,
			      .runs = 1,
			      .run = {{(FIRST + first) & DQPLB_SEQ_MASK, count}}};

	return dqplb_rx_msg(s->rx, &m);
}

static uint32_t cum(struct side *s)
{
	struct dqplb_msg m;

	ack(s, &m);
	return dqplb_seq_widen(FIRST, m.number) - FIRST;
}

/* Every number several times in any order within the window; a set says what is new. */
static void test_model(uint64_t seed)
{
	static bool seen[NUMBERS + WINDOW];
	uint64_t state = seed * 2 + 1, news = 0, duplicates = 0, steps = 0;
	uint32_t low = 0, wrong = 0;
	struct dqplb_msg m;
	struct side s;

	memset(seen, 0, sizeof(seen));
	open_side(&s, RECEIVES, RECEIVES);
	while (low < NUMBERS) {
		uint32_t n;

		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		n = low + (uint32_t)(state * UINT64_C(0x2545f4914f6cdd1d) >> 40) % WINDOW;
		if (state % 16 == 0)
			n = low - (uint32_t)(state % WINDOW) % (low + 1);
		if (seen[n])
			duplicates++;
		else
			news++;
		seen[n] = true;
		wrong += imm(&s, n, 0) != 0;
		dqplb_rq_posted(&s.rq, 1);
		while (seen[low])
			low++;
		if (++steps % 7 == 0 || dqplb_rx_due(s.rx, false)) {
			ack(&s, &m);
			wrong += m.number != ((FIRST + low) & DQPLB_SEQ_MASK);
			for (uint32_t i = 0; i < WINDOW; i++)
				wrong += (m.words > 0 && m.word[0] >> i & 1) !=
					 (low + i < NUMBERS + WINDOW && seen[low + i]);
		}
	}
	tap_ok(wrong == 0, "A5: what arrived is what the model says, over the wrap");
	tap_is_int((int64_t)dqplb_rx_stats(s.rx)->duplicates, (int64_t)duplicates,
		   "A5: each duplicate is counted and dropped");
	tap_is_int((int64_t)dqplb_rx_stats(s.rx)->numbers, (int64_t)news,
		   "A5: each number counts once");
	dqplb_rx_close(s.rx);
}

static void test_events(void)
{
	struct side s;

	open_side(&s, 64, 64);
	record(&s, 3, false, 0, 3);
	imm(&s, 2, 0);
	imm(&s, 0, 0);
	tap_is_int(s.events, 0, "A8: no event while a number is missing");
	imm(&s, 1, 0);
	tap_is_int(s.events, 1, "A8: the last number raises it");
	tap_ok(s.last.data == 3 && s.last.len == 1000 && s.last.op == 7 && !s.last.fast,
	       "A8: it says what the record says");
	imm(&s, 9, DQPLB_IMM_FAST);
	tap_ok(s.events == 2 && s.last.fast && s.last.len == 10 &&
		       s.last.number == ((FIRST + 9) & DQPLB_SEQ_MASK),
	       "A8: a fast one waits for nobody where order was not granted");
	imm(&s, 8, DQPLB_IMM_FAST | DQPLB_IMM_ORDERED);
	record(&s, 7, true, 5, 2);
	imm(&s, 5, 0);
	imm(&s, 6, 0);
	tap_is_int(s.events, 2, "A8: ordered ones wait for every number before them");
	imm(&s, 4, DQPLB_IMM_FAST);
	tap_is_int(s.events, 5, "A8: and follow it");
	tap_is_int(s.last.number, (FIRST + 8) & DQPLB_SEQ_MASK, "A8: in order");
	tap_is_int(cum(&s), 10, "A6: all is acknowledged");
	dqplb_rx_close(s.rx);
}

static void test_voids(void)
{
	struct side s;

	open_side(&s, 64, 64);
	record(&s, 3, false, 0, 3);
	imm(&s, 1, 0);
	record(&s, 5, true, 4, 1);
	imm(&s, 4, 0);
	voids(&s, 0, 3);
	tap_ok(s.events == 1 && s.last.data == 5,
	       "A10: voided numbers raise no event and hold nobody up");
	tap_is_int(cum(&s), 6, "A10: they count as arrived");
	tap_is_int((int64_t)dqplb_rx_stats(s.rx)->voided, 2,
		   "A10: those that were missing");
	tap_is_int(imm(&s, 0, 0), 0, "A10: one that comes after all is a duplicate");
	tap_is_int(s.events, 1, "A10: and raises nothing");
	for (uint32_t i = 0; i < 20; i++) {
		record(&s, 7 + i * 2, true, 6 + i * 2, 1);
		voids(&s, 6 + i * 2, 1);
	}
	tap_is_int(s.events, 1, "A10: dead records give their places back");
	tap_is_int(cum(&s), 46, "A10: their own numbers count");
	dqplb_rx_close(s.rx);
}

static void broken(const char *what, int (*act)(struct side *s))
{
	struct side s;

	open_side(&s, 64, 64);
	tap_is_int(act(&s), -EPROTO, what);
	tap_ok(imm(&s, 0, 0) == -EPROTO && record(&s, 1, false, 0, 0) == -EPROTO &&
		       s.events == 0 && !dqplb_rx_due(s.rx, true),
	       "and nothing goes on after that");
	dqplb_rx_close(s.rx);
}

static int act_ahead(struct side *s)
{
	return imm(s, WINDOW, 0);
}

static int act_record_ahead(struct side *s)
{
	return record(s, WINDOW, false, 0, 1);
}

static int act_run_behind_own(struct side *s)
{
	return record(s, 5, false, 5, 1);
}

static int act_run_far(struct side *s)
{
	return record(s, 5, false, 5 - WINDOW, 3);
}

static int act_claim_twice(struct side *s)
{
	record(s, 5, false, 1, 2);
	return record(s, 6, false, 2, 2);
}

static int act_fast_claimed(struct side *s)
{
	record(s, 5, false, 1, 2);
	return imm(s, 1, DQPLB_IMM_FAST);
}

static int act_too_many(struct side *s)
{
	for (uint32_t i = 0; i < 4; i++)
		record(s, 9 + i * 2, false, 8 + i * 2, 1);
	return record(s, 40, false, 39, 1);
}

static int act_ordered_alone(struct side *s)
{
	return imm(s, 0, DQPLB_IMM_ORDERED);
}

static int act_void_ahead(struct side *s)
{
	return voids(s, WINDOW, 1);
}

static int act_no_credit(struct side *s)
{
	int rc = 0;

	for (uint32_t i = 0; i < 65 && rc == 0; i++)
		rc = imm(s, 0, 0);
	return rc;
}

static void test_credits(void)
{
	struct dqplb_msg m;
	struct side s;

	open_side(&s, 6, 8);
	tap_is_int(dqplb_rx_outstanding(s.rx, 0), 6,
		   "A7: no more is granted than is posted");
	tap_ok(!dqplb_rx_due(s.rx, false), "A6: nothing is due at first");
	imm(&s, 0, 0);
	tap_ok(!dqplb_rx_due(s.rx, false) && dqplb_rx_due(s.rx, true),
	       "A6: before going idle it is");
	imm(&s, 1, 0);
	tap_ok(dqplb_rx_due(s.rx, false), "A6: at a quarter of a queue it is");
	ack(&s, &m);
	tap_ok(m.grants == 0, "A7: nothing new is granted before receives are posted");
	tap_ok(!dqplb_rx_due(s.rx, true), "A6: and nothing is due");
	dqplb_rq_posted(&s.rq, 2);
	tap_ok(dqplb_rx_due(s.rx, false),
	       "A7: receives for a queue that is short are news");
	ack(&s, &m);
	tap_ok(m.grants == 1 && m.grant[0].granted == 8, "A7: and are granted");
	dqplb_rx_resend(s.rx);
	ack(&s, &m);
	tap_ok(m.grants == 1 && m.grant[0].granted == 8,
	       "A6: a lost message is repeated");
	dqplb_rx_imm(s.rx, 0, 1, dqplb_imm_make(FIRST + 2, 1, 0), 100000);
	tap_ok(dqplb_rx_due(s.rx, false), "A6: at the limit of bytes it is due");
	dqplb_rx_close(s.rx);
	tap_is_int(s.rq.free, 5, "A7: grants that were not used come back");
}

static void test_lanes(void)
{
	struct dqplb_msg m;
	struct side s;

	open_side(&s, 64, 64);
	imm(&s, 2, 0);
	tap_is_int(dqplb_rx_lane_drained(s.rx, 0, 2), -EINVAL, "C1: of that incarnation");
	tap_is_int(dqplb_rx_lane_drained(s.rx, 0, 1), 0, "C2: a lane is quiet");
	tap_ok(dqplb_rx_due(s.rx, false), "C3: a report is due");
	tap_is_int(imm(&s, 3, DQPLB_IMM_FAST), 0, "C3: what comes after all");
	tap_ok(s.events == 0 && dqplb_rx_stats(s.rx)->stale == 1, "C3: does not count");
	ack(&s, &m);
	tap_ok(m.kind == DQPLB_MSG_REPORT && m.lanes == 1 && m.lane[0].lane == 0 &&
		       m.lane[0].incarnation == 1 && m.words == 1 && m.word[0] == 4,
	       "C3: number, bitmap and lane");
	ack(&s, &m);
	tap_ok(m.kind == DQPLB_MSG_ACK && m.words == 1, "C3: once");
	tap_is_int(dqplb_rx_lane_open(s.rx, 0, 1, 0), -EINVAL, "C1: a used incarnation");
	tap_is_int(dqplb_rx_lane_open(s.rx, 0, 2, 5), -EINVAL, "no such queue");
	tap_is_int(dqplb_rx_lane_open(s.rx, 0, 2, 0), 0, "C1: the next one");
	tap_ok(imm(&s, 3, DQPLB_IMM_FAST) == 0 && s.events == 0,
	       "C1: the old one's does not count");
	dqplb_rx_imm(s.rx, 0, 2, dqplb_imm_make(FIRST + 3, 2, DQPLB_IMM_FAST), 1);
	tap_is_int(s.events, 0, "C5: nor another generation's");
	dqplb_rx_imm(s.rx, 0, 2, dqplb_imm_make(FIRST + 3, 1, DQPLB_IMM_FAST), 1);
	tap_is_int(s.events, 1, "C1: the new one's does");
	dqplb_rx_close(s.rx);
}

static void test_config(void)
{
	struct dqplb_rx_config c = {
		.window = WINDOW, .records = 4, .event = on_event, .arg = NULL};
	struct dqplb_rx *rx;

	c.window = 96;
	tap_is_int(dqplb_rx_open(&c, &rx), -EINVAL, "a window that is no power of two");
	c.window = DQPLB_WINDOW_MAX * 2;
	tap_is_int(dqplb_rx_open(&c, &rx), -EINVAL, "a window that is too large");
	c.window = WINDOW;
	c.records = 0;
	tap_is_int(dqplb_rx_open(&c, &rx), -EINVAL, "no records");
	c.records = 4;
	c.gen = 64;
	tap_is_int(dqplb_rx_open(&c, &rx), -EINVAL, "a generation of 7 bits");
	tap_ok(dqplb_rx_size(4096, 256) < 48 * 1024,
	       "a link's memory is bounded: %zu bytes", dqplb_rx_size(4096, 256));
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);

	tap_diag("seed %" PRIu64, seed);
	test_model(seed);
	test_events();
	test_voids();
	test_credits();
	test_lanes();
	test_config();
	broken("A5: a number outside the window", act_ahead);
	broken("A5: a record outside the window", act_record_ahead);
	broken("A8: a record whose numbers are not before it", act_run_behind_own);
	broken("A8: numbers a window before their record", act_run_far);
	broken("A8: a number of two transfers", act_claim_twice);
	broken("A8: a fast number that is another transfer's", act_fast_claimed);
	broken("A8: more events than may wait", act_too_many);
	broken("A1: ordered without fast", act_ordered_alone);
	broken("A10: a void outside the window", act_void_ahead);
	broken("A7: more immediates than receives were granted", act_no_credit);
	return tap_done();
}
