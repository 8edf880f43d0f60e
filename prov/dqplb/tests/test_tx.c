/* SPDX-License-Identifier: BSD-2-Clause */
/* The transmitter alone, rule by rule. */
#include "config.h"

#include <errno.h>

#include "prov/dqplb/tx_quick.h"
#include "util/tap.h"

enum { SEG = 1000, POSTS = 256 };

struct side {
	struct dqplb_tx *tx;
	struct dqplb_post post[POSTS];
	struct dqplb_msg msg[POSTS];
	uint32_t posts;
};

static const struct dqplb_tx_config usual = {.window = 64,
					     .records = 8,
					     .gen = 2,
					     .max_segment = SEG,
					     .turn = 4,
					     .lane_segments = 4,
					     .lane_bytes = 1 << 20,
					     .link_bytes = 1 << 30,
					     .lanes = 4};

static int say(struct side *s, uint8_t kind, uint32_t cum, uint64_t word, int lane,
	       uint32_t incarnation)
{
	struct dqplb_msg m = {.kind = kind, .gen = 2, .number = cum};

	if (word) {
		m.words = 1;
		m.word[0] = word;
	}
	if (lane >= 0) {
		m.lanes = 1;
		m.lane[0] = (struct dqplb_lane_name){(uint32_t)lane, incarnation};
	}
	return dqplb_tx_msg(s->tx, &m);
}

static int grant(struct side *s, uint32_t queue, uint32_t granted)
{
	struct dqplb_msg m = {.kind = DQPLB_MSG_ACK,
			      .gen = 2,
			      .grants = 1,
			      .grant = {{queue, granted}}};

	return dqplb_tx_msg(s->tx, &m);
}

/* Lane i on rail i % 2, all fed from queue 0. */
static void open_side(struct side *s, const struct dqplb_tx_config *c, uint32_t receives)
{
	memset(s, 0, sizeof(*s));
	if (dqplb_tx_open(c, &s->tx))
		tap_bail("a transmitter can't be opened");
	for (uint32_t i = 0; i < c->lanes; i++)
		if (dqplb_tx_lane_open(s->tx, i, 1, 0, i % 2))
			tap_bail("a lane can't be opened");
	grant(s, 0, receives);
}

static uint32_t pump(struct side *s)
{
	s->posts = 0;
	while (s->posts < POSTS &&
	       dqplb_tx_next(s->tx, &s->post[s->posts], &s->msg[s->posts]))
		s->posts++;
	return s->posts;
}

static struct dqplb_xfer xfer(uint8_t kind, uint64_t len)
{
	return (struct dqplb_xfer){.kind = kind, .len = len, .data = 5, .op = 6};
}

static void test_segments(void)
{
	struct dqplb_xfer x = xfer(DQPLB_NUMBERED, 2500), zero = xfer(DQPLB_NUMBERED, 0);
	struct side s;

	open_side(&s, &usual, 100);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 4, "A4: three segments and a record");
	tap_ok(s.post[0].len == 1000 && s.post[2].len == 500 && s.post[2].offset == 2000,
	       "A4: of the largest size, the last has the rest");
	tap_ok(s.post[0].lane != s.post[1].lane && s.post[1].lane != s.post[2].lane,
	       "A4: over the lanes");
	tap_ok(s.post[0].imm == 0x02000000 && s.post[2].imm == 0x02000002,
	       "A1: numbers from 0, generation 2");
	tap_ok(s.post[3].kind == DQPLB_POST_MSG && s.msg[3].number == 3 &&
		       s.msg[3].runs == 1 && s.msg[3].run[0].first == 0 &&
		       s.msg[3].run[0].count == 3 && s.msg[3].data == 5 &&
		       s.msg[3].op == 6 && s.msg[3].len == 2500,
	       "A8: the record says data, operation, length and numbers");
	zero.bare = true;
	dqplb_tx_start(s.tx, &zero);
	tap_ok(pump(&s) == 1 && s.post[0].len == 0 &&
		       s.post[0].imm == (0x02000004 | DQPLB_IMM_FAST),
	       "A1: one segment with nothing to say is fast, and numbered");
	dqplb_tx_close(s.tx);
}

static void test_finish(void)
{
	struct dqplb_xfer x = xfer(DQPLB_NUMBERED, 2000);
	struct side s;

	open_side(&s, &usual, 100);
	dqplb_tx_start(s.tx, &x);
	pump(&s);
	dqplb_tx_done(s.tx, s.post[0].cookie);
	dqplb_tx_done(s.tx, s.post[1].cookie);
	tap_ok(!dqplb_tx_take(s.tx), "A9: the lanes' word is not enough");
	say(&s, DQPLB_MSG_ACK, 2, 0, -1, 0);
	tap_ok(!dqplb_tx_take(s.tx), "A9: nor are its segments");
	say(&s, DQPLB_MSG_ACK, 3, 0, -1, 0);
	tap_ok(dqplb_tx_take(s.tx) == &x && x.error == 0,
	       "A9: its record is acknowledged");
	tap_ok(dqplb_tx_idle(s.tx), "nothing is left");
	dqplb_tx_start(s.tx, &x);
	pump(&s);
	say(&s, DQPLB_MSG_ACK, 6, 0, -1, 0);
	dqplb_tx_done(s.tx, s.post[1].cookie);
	tap_ok(!dqplb_tx_take(s.tx),
	       "A9: while a lane may read its memory it is not finished");
	dqplb_tx_done(s.tx, s.post[0].cookie);
	tap_ok(dqplb_tx_take(s.tx) == &x, "A9: then it is");
	tap_is_int(dqplb_tx_done(s.tx, s.post[0].cookie), -EINVAL,
		   "a cookie counts once");
	dqplb_tx_close(s.tx);
}

static void test_limits(void)
{
	struct dqplb_tx_config c = usual;
	struct dqplb_xfer x = xfer(DQPLB_WRITE, 100 * SEG), r = xfer(DQPLB_READ, SEG);
	struct side s;
	uint8_t lane;

	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 16, "A4: four segments on each of four lanes");
	lane = s.post[5].lane;
	dqplb_tx_done(s.tx, s.post[5].cookie);
	tap_ok(pump(&s) == 1 && s.post[0].lane == lane,
	       "A4: the lane that completes one takes the next");
	dqplb_tx_start(s.tx, &r);
	tap_ok(pump(&s) == 0, "A2: plain ones wait for lanes only");
	dqplb_tx_close(s.tx);

	c.lane_bytes = 1500;
	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 8, "A4: a lane takes more while below its bytes");
	dqplb_tx_close(s.tx);

	c = usual;
	c.link_bytes = 3500;
	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 4, "A4: the link has a limit of its own");
	dqplb_tx_close(s.tx);

	open_side(&s, &usual, 3);
	x = xfer(DQPLB_NUMBERED, 10 * SEG);
	dqplb_tx_start(s.tx, &x);
	dqplb_tx_start(s.tx, &r);
	tap_is_int(pump(&s), 4,
		   "A7: three receives, three immediates; a read needs none");
	grant(&s, 0, 4);
	tap_is_int(pump(&s), 1, "A7: one more is granted, one more leaves");
	tap_is_int(grant(&s, 0, 4 + DQPLB_GRANT_MAX + 1), -EPROTO, "A7: too many");
	dqplb_tx_close(s.tx);
}

static void test_window(void)
{
	struct dqplb_tx_config c = usual;
	struct dqplb_xfer x = xfer(DQPLB_NUMBERED, 100 * SEG);
	struct side s;

	c.lane_segments = 64;
	open_side(&s, &c, 1000);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 64, "A6: never a window ahead of what is acknowledged");
	for (uint32_t i = 0; i < 64; i++)
		dqplb_tx_done(s.tx, s.post[i].cookie);
	tap_is_int(pump(&s), 0, "A6: whatever the lanes say");
	say(&s, DQPLB_MSG_ACK, 0, 2, -1, 0);
	tap_is_int(pump(&s), 0, "A6: a number behind the first missing moves nothing");
	say(&s, DQPLB_MSG_ACK, 10, 0, -1, 0);
	tap_is_int(pump(&s), 10, "A6: what is acknowledged does");
	tap_is_int(say(&s, DQPLB_MSG_ACK, 9, 0, -1, 0), 0, "A6: an old one says nothing");
	tap_is_int(say(&s, DQPLB_MSG_ACK, 75, 0, -1, 0), -EPROTO,
		   "A6: one of what was not sent is refused");
	tap_is_int(say(&s, DQPLB_MSG_ACK, 11, UINT64_C(1) << 63, -1, 0), -EPROTO,
		   "A6: in the bitmap too");
	dqplb_tx_close(s.tx);
}

/* How many of the large one's segments left before that of the small one. */
static uint32_t wait_of_small(bool ordered)
{
	struct dqplb_xfer large = xfer(DQPLB_NUMBERED, UINT64_C(1) << 30);
	struct dqplb_xfer small = xfer(DQPLB_NUMBERED, 8);
	uint32_t count = 0, cum = 0;
	struct side s;

	open_side(&s, &usual, 1 << 19);
	small.bare = true;
	small.ordered = ordered;
	dqplb_tx_start(s.tx, &large);
	pump(&s);
	dqplb_tx_start(s.tx, &small);
	while (count < 5000) {
		for (uint32_t i = 0; i < s.posts; i++)
			dqplb_tx_done(s.tx, s.post[i].cookie);
		cum += s.posts;
		say(&s, DQPLB_MSG_ACK, cum, 0, -1, 0);
		pump(&s);
		for (uint32_t i = 0; i < s.posts; i++, count++)
			if (s.post[i].xfer == &small) {
				dqplb_tx_close(s.tx);
				return count;
			}
	}
	dqplb_tx_close(s.tx);
	return count;
}

static void test_turns(void)
{
	tap_ok(wait_of_small(false) <= usual.turn,
	       "A3: a small one waits a turn of a 1 GiB one that is under way");
	tap_ok(wait_of_small(true) >= 5000, "A8: an ordered one waits for its numbers");
}

static void test_lane_loss(bool report_first)
{
	struct dqplb_xfer x = xfer(DQPLB_NUMBERED, 8 * SEG),
			  w = xfer(DQPLB_WRITE, 4 * SEG);
	struct dqplb_xfer r = xfer(DQPLB_READ, 4 * SEG);
	uint32_t numbered = 0, plain = 0, reads = 0, lost = 0;
	struct dqplb_tx_config c = usual;
	struct side s;

	/* So that the lane has some of each. */
	c.lanes = 3;
	c.lane_segments = 8;
	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &x);
	dqplb_tx_start(s.tx, &w);
	dqplb_tx_start(s.tx, &r);
	pump(&s);
	for (uint32_t i = 0; i < s.posts; i++)
		if (s.post[i].kind != DQPLB_POST_MSG && s.post[i].lane == 1)
			lost++;
	tap_ok(lost > 3, "%u segments are on the lane that dies", lost);
	for (uint32_t i = 0; i < s.posts; i++)
		if (s.post[i].kind != DQPLB_POST_MSG && s.post[i].lane != 1)
			dqplb_tx_done(s.tx, s.post[i].cookie);
	tap_is_int(dqplb_tx_lane_down(s.tx, 1, 2), -EINVAL, "C1: of that incarnation");
	dqplb_tx_lane_down(s.tx, 1, 1);
	if (report_first) {
		/* Everything but the lane's second number has arrived. */
		uint64_t has = 0x1ff;

		for (uint32_t i = 0, seen = 0; i < s.posts; i++)
			if (s.post[i].kind == DQPLB_POST_WRITE_IMM &&
			    s.post[i].lane == 1 && ++seen == 1)
				has &= ~(UINT64_C(1) << (s.post[i].imm & 63));
		say(&s, DQPLB_MSG_REPORT, 0, has, 1, 1);
		tap_is_int(pump(&s), 0,
			   "C3: nothing is posted again before it is drained");
		tap_is_str(dqplb_tx_lane_state(s.tx, 1), "reported",
			   "C2: it is waited for");
		dqplb_tx_lane_drained(s.tx, 1, 1);
		pump(&s);
		for (uint32_t i = 0; i < s.posts; i++)
			numbered += s.post[i].kind == DQPLB_POST_WRITE_IMM;
		tap_is_int(numbered, 1, "C3: only what the report misses goes again");
	} else {
		dqplb_tx_lane_drained(s.tx, 1, 1);
		pump(&s);
		for (uint32_t i = 0; i < s.posts; i++)
			reads += s.post[i].kind == DQPLB_POST_READ;
		tap_ok(s.posts == reads && reads > 0,
		       "C4: reads go again once the own end is drained, nothing else");
		say(&s, DQPLB_MSG_REPORT, 0, 0, 1, 1);
		pump(&s);
		for (uint32_t i = 0; i < s.posts; i++) {
			numbered += s.post[i].kind == DQPLB_POST_WRITE_IMM;
			plain += s.post[i].kind == DQPLB_POST_WRITE;
		}
		tap_ok(numbered > 0 && plain > 0 && numbered + plain + reads == lost,
		       "C4: the others with the report: %u numbered, %u plain", numbered,
		       plain);
		tap_ok(s.post[0].again && s.post[0].lane != 1, "C3: on other lanes");
	}
	tap_is_str(dqplb_tx_lane_state(s.tx, 1), "closed", "the lane is over");
	tap_is_int(dqplb_tx_lane_open(s.tx, 1, 1, 0, 1), -EINVAL,
		   "C1: not under its name");
	tap_is_int(dqplb_tx_lane_open(s.tx, 1, 2, 0, 1), 0, "C1: it comes back");
	tap_is_int(say(&s, DQPLB_MSG_REPORT, 0, 0, 1, 1), 0, "C1: an old report");
	tap_ok(dqplb_tx_lane_up(s.tx, 1), "C1: doesn't touch it");
	dqplb_tx_close(s.tx);
}

static void test_rail(void)
{
	struct dqplb_tx_config c = usual;
	struct dqplb_xfer x = xfer(DQPLB_WRITE, 8 * SEG);
	uint32_t rail_1 = 0;
	uint64_t lanes;
	struct side s;

	open_side(&s, &usual, 100);
	tap_is_int(dqplb_tx_rail_down(s.tx, 0, &lanes), 2, "two lanes are on the rail");
	tap_is_int((int64_t)lanes, 5, "lanes 0 and 2");
	dqplb_tx_start(s.tx, &x);
	pump(&s);
	for (uint32_t i = 0; i < s.posts; i++)
		rail_1 += s.post[i].lane % 2;
	tap_ok(s.posts == 8 && rail_1 == 8, "a rail that lives takes everything");
	dqplb_tx_close(s.tx);

	c.small = 100;
	c.home_rail = 1;
	open_side(&s, &c, 100);
	for (uint32_t i = 0; i < 4; i++) {
		struct dqplb_xfer small[4];

		small[i] = xfer(DQPLB_WRITE, 100);
		dqplb_tx_start(s.tx, &small[i]);
		if (pump(&s) != 1 || s.post[0].lane % 2 != 1)
			tap_ok(false, "a small one stays on the home rail");
		dqplb_tx_done(s.tx, s.post[0].cookie);
		dqplb_tx_take(s.tx);
	}
	tap_ok(true, "small ones stay on the home rail");
	dqplb_tx_close(s.tx);
}

static void test_fault(void)
{
	struct dqplb_xfer x = xfer(DQPLB_NUMBERED, 4 * SEG),
			  y = xfer(DQPLB_NUMBERED, SEG);
	struct side s;

	open_side(&s, &usual, 100);
	dqplb_tx_start(s.tx, &x);
	dqplb_tx_start(s.tx, &y);
	pump(&s);
	tap_is_int(dqplb_tx_cancel(s.tx, &x, -ECANCELED), -EALREADY,
		   "what has all its numbers is not cancelled");
	dqplb_tx_fault(s.tx, s.post[1].cookie, -EACCES);
	dqplb_tx_lane_down(s.tx, s.post[1].lane, 1);
	for (uint32_t i = 0; i < s.posts; i++)
		if (i != 1 && s.post[i].kind != DQPLB_POST_MSG)
			dqplb_tx_done(s.tx, s.post[i].cookie);
	say(&s, DQPLB_MSG_ACK, 1, 0x3e, -1, 0);
	tap_ok(dqplb_tx_take(s.tx) == &y && y.error == 0, "C6: others finish");
	tap_is_int(dqplb_tx_next(s.tx, &s.post[9], &s.msg[9]), false,
		   "A10: not voided before the lane's end is known");
	dqplb_tx_lane_drained(s.tx, s.post[1].lane, 1);
	say(&s, DQPLB_MSG_REPORT, 1, 0x3e, s.post[1].lane, 1);
	tap_ok(dqplb_tx_next(s.tx, &s.post[9], &s.msg[9]) &&
		       s.msg[9].kind == DQPLB_MSG_VOID && s.msg[9].run[0].first == 1,
	       "A10: its numbers are voided, not posted again");
	tap_ok(x.error == -EACCES && !dqplb_tx_take(s.tx),
	       "C6: it waits until that is acknowledged");
	say(&s, DQPLB_MSG_ACK, 7, 0, -1, 0);
	tap_ok(dqplb_tx_take(s.tx) == &x && x.error == -EACCES, "C6: and fails");
	dqplb_tx_close(s.tx);
}

static void test_abort(void)
{
	struct dqplb_xfer x = xfer(DQPLB_NUMBERED, 40 * SEG), w = xfer(DQPLB_WRITE, SEG);
	struct dqplb_xfer held = xfer(DQPLB_NUMBERED, SEG);
	uint32_t taken = 0;
	struct side s;

	open_side(&s, &usual, 100);
	held.ordered = true;
	dqplb_tx_start(s.tx, &x);
	dqplb_tx_start(s.tx, &w);
	dqplb_tx_start(s.tx, &held);
	pump(&s);
	tap_is_int(dqplb_tx_abort(s.tx, -ECONNRESET), -EBUSY,
		   "D3: memory is not given back while a lane may read it");
	for (uint32_t i = 0; i < usual.lanes; i++)
		dqplb_tx_lane_drained(s.tx, i, 1);
	tap_is_int(dqplb_tx_abort(s.tx, -ECONNRESET), 0, "the link is over");
	while (dqplb_tx_take(s.tx))
		taken++;
	tap_ok(taken == 3 && x.error == -ECONNRESET && held.error == -ECONNRESET,
	       "everything fails");
	tap_ok(pump(&s) == 0 && dqplb_tx_start(s.tx, &x) == -EINVAL, "nothing goes on");
	dqplb_tx_close(s.tx);
}

static void test_start(void)
{
	struct dqplb_xfer x = xfer(DQPLB_KINDS, 1);
	struct dqplb_tx_config c = usual;
	struct dqplb_tx *tx;
	struct side s;

	open_side(&s, &usual, 1);
	tap_is_int(dqplb_tx_start(s.tx, &x), -EINVAL, "no such kind");
	x = xfer(DQPLB_WRITE, DQPLB_LEN_MAX + 1);
	tap_is_int(dqplb_tx_start(s.tx, &x), -EINVAL, "too long");
	x = xfer(DQPLB_READ, 1);
	x.ordered = true;
	tap_is_int(dqplb_tx_start(s.tx, &x), -EINVAL, "a plain one has no event");
	c.turn = 17;
	tap_is_int(dqplb_tx_open(&c, &tx), -EINVAL,
		   "A3: turns of at most a quarter window");
	c = usual;
	c.lanes = DQPLB_LANES_MAX + 1;
	tap_is_int(dqplb_tx_open(&c, &tx), -EINVAL, "too many lanes");
	c = usual;
	c.window = 4096;
	c.lanes = 16;
	c.lane_segments = 128;
	tap_ok(dqplb_tx_size(&c) < 112 * 1024, "a link's memory is bounded: %zu bytes",
	       dqplb_tx_size(&c));
	dqplb_tx_close(s.tx);
}

/* The only lane ends and comes back. */
static void lane_again(struct side *s, uint32_t incarnation)
{
	dqplb_tx_lane_down(s->tx, 0, incarnation);
	dqplb_tx_lane_drained(s->tx, 0, incarnation);
	say(s, DQPLB_MSG_REPORT, 0, 0, 0, incarnation);
	if (dqplb_tx_lane_open(s->tx, 0, incarnation + 1, 0, 0))
		tap_bail("the lane doesn't come back");
}

/* A target that makes no call reports nothing; that its end is in the error state is
 * enough for plain writes. */
static void test_stopped(void)
{
	struct dqplb_xfer plain = xfer(DQPLB_WRITE, SEG), n = xfer(DQPLB_NUMBERED, SEG);
	struct dqplb_tx_config c = usual;
	uint32_t lost, other;
	struct side s;

	n.bare = true;
	c.lanes = 2;
	c.lane_segments = 1;
	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &plain);
	pump(&s);
	lost = s.post[0].lane;
	other = 1 - lost;
	dqplb_tx_start(s.tx, &n);
	pump(&s);
	tap_is_int(dqplb_tx_lane_stopped(s.tx, lost, 1), -EINVAL,
		   "C4: a lane that is up isn't stopped");
	dqplb_tx_lane_down(s.tx, lost, 1);
	tap_is_int(dqplb_tx_lane_stopped(s.tx, lost, 1), -EINVAL,
		   "C4: nor one that may still send");
	dqplb_tx_lane_drained(s.tx, lost, 1);
	dqplb_tx_lane_down(s.tx, other, 1);
	dqplb_tx_lane_drained(s.tx, other, 1);
	tap_ok(pump(&s) == 0 && dqplb_tx_lane_unstopped(s.tx, lost),
	       "C4: a plain write waits for the peer's word");
	say(&s, DQPLB_MSG_REPORT, 0, 0, (int)other, 1);
	dqplb_tx_lane_open(s.tx, other, 2, 0, 0);
	pump(&s);
	tap_ok(s.posts == 1 && s.post[0].xfer == &n, "C3: what was reported goes again");
	dqplb_tx_done(s.tx, s.post[0].cookie);
	tap_is_int(dqplb_tx_lane_stopped(s.tx, lost, 2), -EINVAL,
		   "C1: another incarnation");
	tap_is_int(dqplb_tx_lane_stopped(s.tx, lost, 1), 0, "C4: it is stopped");
	pump(&s);
	tap_ok(s.posts == 1 && s.post[0].xfer == &plain && s.post[0].again &&
		       s.post[0].lane == other,
	       "C4: the plain write goes again, on the other lane");
	tap_ok(!dqplb_tx_lane_closed(s.tx, lost) &&
		       dqplb_tx_lane_drained(s.tx, lost, 1) == -EINVAL,
	       "C3: the lane still waits for its report");
	say(&s, DQPLB_MSG_REPORT, 0, 0, (int)lost, 1);
	tap_ok(dqplb_tx_lane_closed(s.tx, lost), "C3: which closes it");
	dqplb_tx_done(s.tx, s.post[0].cookie);
	tap_ok(dqplb_tx_take(s.tx) == &plain && plain.error == 0, "and it finishes");
	dqplb_tx_close(s.tx);
}

/* A lane that has no receives is for plain transfers, and closed without a report. */
static void test_no_queue(void)
{
	struct dqplb_xfer plain = xfer(DQPLB_WRITE, SEG), n = xfer(DQPLB_NUMBERED, SEG);
	struct dqplb_tx_config c = usual;
	struct side s;
	uint32_t incarnation = 1;

	n.bare = true;
	c.lanes = 2;
	open_side(&s, &c, 100);
	for (uint32_t i = 0; i < 2; i++) {
		dqplb_tx_lane_down(s.tx, i, 1);
		dqplb_tx_lane_drained(s.tx, i, 1);
		say(&s, DQPLB_MSG_REPORT, 0, 0, (int)i, 1);
	}
	for (; incarnation < 4; incarnation++) {
		tap_is_int(
			dqplb_tx_lane_open(s.tx, 1, incarnation + 1, DQPLB_QUEUE_NONE, 0),
			0, "it is opened");
		if (incarnation == 1) {
			dqplb_tx_start(s.tx, &n);
			dqplb_tx_start(s.tx, &plain);
		}
		tap_ok(pump(&s) == 1 && s.post[0].xfer == &plain && s.post[0].lane == 1 &&
			       s.post[0].again == (incarnation > 1),
		       "A2: what has no number goes on it, and nothing else");
		dqplb_tx_lane_down(s.tx, 1, incarnation + 1);
		dqplb_tx_lane_drained(s.tx, 1, incarnation + 1);
		tap_ok(!dqplb_tx_lane_closed(s.tx, 1) && pump(&s) == 0,
		       "C4: it may still be written");
		tap_ok(dqplb_tx_lane_stopped(s.tx, 1, incarnation + 1) == 0 &&
			       dqplb_tx_lane_closed(s.tx, 1),
		       "C4: it is stopped, and closed");
	}
	dqplb_tx_lane_open(s.tx, 0, 2, 0, 0);
	tap_ok(pump(&s) == 1 && s.post[0].xfer == &plain &&
		       dqplb_tx_done_take(s.tx, s.post[0].cookie) == &plain,
	       "another lane takes what it lost");
	tap_ok(pump(&s) == 1 && s.post[0].xfer == &n, "and what has a number");
	dqplb_tx_abort(s.tx, -ECONNRESET);
	dqplb_tx_close(s.tx);
}

/* Lanes that end over and over, each after a few segments. */
static void test_caution(void)
{
	struct dqplb_tx_config c = usual;
	struct dqplb_xfer x = xfer(DQPLB_WRITE, 100 * SEG), y = x;
	struct side s;

	c.lanes = 1;
	c.lane_segments = 8;
	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 8, "C3: at first a lane takes all that it may");
	lane_again(&s, 1);
	tap_is_int(pump(&s), 1, "C3: one where nothing got through comes back with one");
	dqplb_tx_done(s.tx, s.post[0].cookie);
	tap_is_int(pump(&s), 2, "C3: takes one more with each that is done");
	dqplb_tx_done(s.tx, s.post[0].cookie);
	dqplb_tx_done(s.tx, s.post[1].cookie);
	tap_is_int(pump(&s), 4, "C3: and so on");
	lane_again(&s, 2);
	tap_is_int(pump(&s), 2, "C3: one that was worth something with half of that");
	dqplb_tx_fault(s.tx, s.post[0].cookie, -EACCES);
	lane_again(&s, 3);
	tap_ok(dqplb_tx_take(s.tx) == &x && x.error == -EACCES, "C6: one is refused");
	dqplb_tx_start(s.tx, &y);
	tap_is_int(pump(&s), 1, "C6: what was refused got nowhere");
	for (int i = 0; i < 40; i++) {
		for (uint32_t k = 0; k < s.posts; k++)
			dqplb_tx_done(s.tx, s.post[k].cookie);
		pump(&s);
	}
	tap_ok(dqplb_tx_take(s.tx) == &y && y.error == 0, "A1: all of it gets through");
	tap_ok(y.lanes == 1, "E3: and says by which lanes");
	y.len = SEG;
	dqplb_tx_start(s.tx, &y);
	tap_ok(pump(&s) == 1 && y.lanes == 0, "E3: of what was done there");
	lane_again(&s, 4);
	tap_ok(pump(&s) == 1 && y.lanes == 0, "E3: and not of what was lost");
	dqplb_tx_done(s.tx, s.post[0].cookie);
	tap_ok(dqplb_tx_take(s.tx) == &y && y.lanes == 1, "E3: until it went again");
	y.len = 100 * SEG;
	dqplb_tx_start(s.tx, &y);
	pump(&s);
	dqplb_tx_done(s.tx, s.post[0].cookie);
	dqplb_tx_lane_unproven(s.tx, 0);
	lane_again(&s, 5);
	tap_is_int(pump(&s), 1,
		   "E3: one whose writes were worth nothing begins with one");
	dqplb_tx_close(s.tx);
}

static void test_quick(void)
{
	struct dqplb_tx_config c = usual;
	struct dqplb_xfer b = xfer(DQPLB_WRITE, 8);
	struct side s;

	c.lane_segments = 1;
	c.lanes = 1;
	open_side(&s, &c, 100);
	tap_ok(dqplb_tx_quick(s.tx, SEG + 1) == DQPLB_NO_LANE,
	       "quick: not of more than a segment");
	tap_is_int(dqplb_tx_quick(s.tx, 8), 0, "quick: posted in the call");
	tap_ok(pump(&s) == 0 && !dqplb_tx_waits(s.tx) &&
		       dqplb_tx_stats(s.tx)->segments == 1,
	       "quick: nothing is left to be posted");
	tap_ok(dqplb_tx_quick(s.tx, 8) == DQPLB_NO_LANE,
	       "quick: not beyond a lane's limit");
	dqplb_tx_start(s.tx, &b);
	tap_ok(pump(&s) == 0 && dqplb_tx_waits(s.tx), "quick: that one waits");
	tap_ok(dqplb_tx_quick_done(s.tx, 0), "quick: done, and something waits");
	tap_ok(dqplb_tx_quick(s.tx, 8) == DQPLB_NO_LANE,
	       "quick: not before one that waits");
	tap_is_int(pump(&s), 1, "quick: which leaves now");
	tap_ok(dqplb_tx_done_take(s.tx, s.post[0].cookie + 1) == NULL,
	       "quick: another cookie is nobody's");
	tap_ok(dqplb_tx_done_take(s.tx, s.post[0].cookie) == &b && !dqplb_tx_take(s.tx),
	       "quick: done and taken at once");
	tap_ok(dqplb_tx_quick(s.tx, 8) == 0 && !dqplb_tx_quick_done(s.tx, 0) &&
		       dqplb_tx_idle(s.tx) && dqplb_tx_stats(s.tx)->finished == 3,
	       "quick: done, and nothing waits");
	dqplb_tx_close(s.tx);
}

/* What is quick on a lane that ends. */
static void test_kept(void)
{
	struct dqplb_tx_config c = usual;
	struct dqplb_xfer a = xfer(DQPLB_WRITE, 8), b = a, x = xfer(DQPLB_WRITE, 4 * SEG);
	struct dqplb_xfer more[8];
	uint64_t cookie, other;
	struct side s;

	c.lanes = 2;
	c.lane_segments = 4;
	open_side(&s, &c, 100);
	dqplb_tx_start(s.tx, &x);
	tap_is_int(pump(&s), 4, "kept: half of all places are taken");
	for (uint32_t i = 0; i < 2; i++)
		tap_is_int(dqplb_tx_quick(s.tx, 8), i, "kept: and one more of each lane");
	cookie = dqplb_tx_quick_keep(s.tx, &a, 0);
	tap_ok(!dqplb_tx_idle(s.tx) && !dqplb_tx_waits(s.tx),
	       "kept: it is one of others");
	tap_ok(dqplb_tx_done_take(s.tx, cookie) == &a && a.lanes == 1,
	       "kept: done and taken as they are");
	tap_ok(dqplb_tx_done(s.tx, cookie) == -EINVAL, "kept: once");
	dqplb_tx_quick(s.tx, 8);
	cookie = dqplb_tx_quick_keep(s.tx, &a, 0);
	other = dqplb_tx_quick_keep(s.tx, &b, 1);
	tap_ok(dqplb_tx_fault(s.tx, other, -EACCES) == 0 && dqplb_tx_take(s.tx) == &b &&
		       b.error == -EACCES,
	       "kept: refused");
	dqplb_tx_lane_drained(s.tx, 0, 1);
	tap_ok(!dqplb_tx_waits(s.tx), "kept: not again before the peer's end is over");
	say(&s, DQPLB_MSG_REPORT, 0, 0, 0, 1);
	tap_ok(dqplb_tx_quick(s.tx, 8) == DQPLB_NO_LANE,
	       "kept: nothing is quick before what was lost");
	tap_ok(dqplb_tx_done(s.tx, cookie) == -EINVAL, "kept: its lane is gone");
	tap_is_int(pump(&s), 2, "kept: as many go again as there is room for");
	dqplb_tx_lane_open(s.tx, 0, 2, 0, 0);
	tap_ok(pump(&s) == 1 && s.post[0].again && s.post[0].lane == 0,
	       "kept: and what is left when there is more");
	for (uint32_t i = 0; i < 8; i++)
		more[i] = xfer(DQPLB_WRITE, 8);
	dqplb_tx_close(s.tx);
	/* All places of all lanes, and a slot for each. */
	open_side(&s, &c, 100);
	for (uint32_t i = 0; i < 8; i++)
		dqplb_tx_quick(s.tx, 8);
	tap_ok(dqplb_tx_quick(s.tx, 8) == DQPLB_NO_LANE, "kept: no more than all places");
	for (uint32_t i = 0; i < 8; i++)
		dqplb_tx_quick_keep(s.tx, &more[i], i % 2);
	for (uint32_t i = 0; i < 2; i++) {
		dqplb_tx_lane_drained(s.tx, i, 1);
		say(&s, DQPLB_MSG_REPORT, 0, 0, (int)i, 1);
		dqplb_tx_lane_open(s.tx, i, 2, 0, i);
	}
	for (uint32_t i = 0; i < 8; i++) {
		pump(&s);
		for (uint32_t k = 0; k < s.posts; k++)
			dqplb_tx_done(s.tx, s.post[k].cookie);
	}
	for (uint32_t i = 0; i < 8; i++)
		tap_ok(dqplb_tx_take(s.tx), "kept: %u of 8 gets through", i + 1);
	tap_ok(dqplb_tx_idle(s.tx), "kept: nothing is left");
	dqplb_tx_close(s.tx);
}

int main(void)
{
	test_segments();
	test_finish();
	test_limits();
	test_window();
	test_turns();
	test_lane_loss(true);
	test_lane_loss(false);
	test_rail();
	test_fault();
	test_abort();
	test_start();
	test_stopped();
	test_no_queue();
	test_caution();
	test_quick();
	test_kept();
	return tap_done();
}
