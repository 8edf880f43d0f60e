/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams through a switch on a virtual clock: a path that swallows everything in the
 * middle of one, and many senders at one receiver's queue. Nothing depends on this
 * machine. --data writes what happened in each interval of one run, for a plot:
 *
 *   test_uet_switch --senders N [--seed N] [--unmarked] --data FILE
 */
#include "config.h"

#include "prov/wire/uet/tests/uet_switch.h"
#include "util/tap.h"

#include <stdlib.h>
#include <string.h>

#define US	  UINT64_C(1000)
#define MS	  UINT64_C(1000000)
#define RATE	  UINT64_C(1250000000)
#define TICK	  (100 * US)
#define TICKS_MAX 20000u
#define RTO	  (20 * MS)
#define MANY	  128u /* senders */

/* As endpoints configure it. */
static const struct uet_switch_config usual = {
	.senders = 1,
	.paths = 8,
	.bytes = 4096,
	.rate = RATE,
	.base_rtt = 40 * US,
	.room = 1 << 20,
	.jitter_ns = 5 * US,
	.run_ns = 100 * MS,
	.hole = UINT32_MAX,
	.pds = {.contexts = UET_SWITCH_SENDERS,
		.half_open = UET_SWITCH_SENDERS,
		.mtu = 4096,
		.window = 512,
		.piece = 65000,
		.ack_bytes = 65536,
		.ack_most = 262144,
		.rto_init = RTO,
		.cc = {.link = RATE, .widest = 4, .first_rtt = 100 * US},
		.path = {.paths = 8,
			 .burst = 4,
			 .burst_max = 44,
			 .strikes = 3,
			 .retry_min = 10 * MS,
			 .retry_max = 1000 * MS}}};

struct record {
	uint32_t ticks;
	uint32_t senders;
	struct uet_switch_tick tick[TICKS_MAX];
	uint64_t got[TICKS_MAX]; /* payload of all */
	FILE *to;
	uint64_t late_from; /* from then on: */
	uint64_t late[UET_SWITCH_SENDERS];
	uint64_t late_passed, late_queue, queue;
};

static struct record record;
static struct uet_switch_result result;

static void watch(void *arg, uint64_t from, const struct uet_switch_tick *tick,
		  const uint64_t *got)
{
	struct record *r = arg;

	if (r->ticks == TICKS_MAX)
		tap_bail("a run has too many intervals");
	r->tick[r->ticks] = *tick;
	r->queue = tick->queue > r->queue ? tick->queue : r->queue;
	for (uint32_t i = 0; i < r->senders; i++)
		r->got[r->ticks] += got[i];
	r->ticks++;
	if (from >= r->late_from) {
		r->late_passed += tick->passed;
		r->late_queue = tick->queue > r->late_queue ? tick->queue : r->late_queue;
		for (uint32_t i = 0; i < r->senders; i++)
			r->late[i] += got[i];
	}
	if (!r->to)
		return;
	fprintf(r->to, "%.1f\t%lu", (double)from / 1000, (unsigned long)tick->queue);
	for (uint32_t i = 0; i < r->senders; i++)
		fprintf(r->to, "\t%lu", (unsigned long)got[i]);
	fprintf(r->to, "\n");
}

static void run(const struct uet_switch_config *c, uint64_t seed, uint64_t late_from,
		FILE *to)
{
	memset(&record, 0, sizeof(record));
	record.senders = c->senders;
	record.late_from = late_from;
	record.to = to;
	if (!uet_switch_run(c, seed, TICK, watch, &record, &result))
		tap_bail("out of memory");
}

/* ---- a path that swallows everything ----------------------------------------------- */

static uint64_t bytes_between(uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (uint64_t i = from / TICK; i < to / TICK && i < record.ticks; i++)
		sum += record.got[i];
	return sum;
}

/* When the stream is back above 90 % of what it was, for as long as a timeout. */
static uint64_t back_after(uint64_t hole, uint64_t before, uint64_t until)
{
	for (uint64_t t = hole; t + RTO <= until; t += MS / 2)
		if (bytes_between(t, t + RTO) * 10 >= before * 9)
			return t - hole;
	return UINT64_MAX;
}

static void test_hole(const char *what, uint64_t path_rate, uint64_t seed)
{
	struct uet_switch_config c = usual;
	const struct uet_switch_sender *s = &result.sender[0];
	uint64_t before, back;

	c.path_rate = path_rate;
	c.run_ns = 2000 * MS;
	c.hole = 5;
	c.hole_from = 100 * MS;
	c.hole_to = 100 * MS + 11 * RTO;
	run(&c, seed, c.hole_to, NULL);
	before = bytes_between(c.hole_from - RTO, c.hole_from);
	back = back_after(c.hole_from, before, c.hole_to);
	tap_diag("%s: %.2f GB/s before, back after %.1f ms; retired %lu, returned %lu, "
		 "timeouts %lu, sent again %lu",
		 what, (double)before / (double)RTO,
		 back == UINT64_MAX ? -1.0 : (double)back / 1e6,
		 (unsigned long)s->paths.retirements, (unsigned long)s->paths.returns,
		 (unsigned long)s->stats.timeouts, (unsigned long)s->stats.resent);
	tap_ok(before > RTO / 1000000000 * RATE / 2, "%s: it streams", what);
	tap_ok(back < 10 * RTO,
	       "%s: one of eight paths swallows everything: back above 90 %% within ten "
	       "timeouts",
	       what);
	tap_ok(s->paths.retirements >= 1 && s->paths.returns >= 1 &&
		       s->paths.retired == 0,
	       "%s: it was retired, and came back", what);
	tap_ok(s->path_used_late == 0xff, "%s: healed, it carries data again", what);
	tap_ok(bytes_between(c.run_ns - RTO, c.run_ns) * 10 >= before * 9,
	       "%s: and all is as before", what);
	tap_ok(!s->failed && !result.twice, "%s: nothing failed or came twice", what);
}

/* ---- a link that is wider than what windows begin with ------------------------------
 */

static void test_wide(const char *what, uint64_t path_rate, uint64_t seed)
{
	struct uet_switch_config c = usual;
	const struct uet_switch_sender *s = &result.sender[0];
	double use;

	c.rate = 3 * RATE;
	c.path_rate = path_rate;
	c.base_rtt = 130 * US;
	run(&c, seed, c.run_ns / 2, NULL);
	use = (double)record.late_passed /
	      ((double)c.rate * (double)(c.run_ns / 2) / 1e9);
	tap_diag("three times as wide, %s: use %.3f, queue %lu (at first %lu), window "
		 "%lu to %lu, bursts of %u, sent again %lu, retired %lu",
		 what, use, (unsigned long)record.late_queue, (unsigned long)record.queue,
		 (unsigned long)s->cc.first_wnd, (unsigned long)s->cc.cwnd,
		 s->paths.burst, (unsigned long)s->stats.resent,
		 (unsigned long)s->paths.retirements);
	tap_ok(use > 0.9 && use < 1.01, "three times as wide, %s: it is used", what);
	tap_ok(s->paths.burst > 4, "three times as wide, %s: by long bursts", what);
	tap_ok(s->paths.retirements == 0 && s->stats.resent * 1000 <= s->stats.sent,
	       "three times as wide, %s: which aren't taken for lost", what);
}

/* ---- links that are slower, and answers that wait behind what others send -------------
 */

/* Packets of Ethernet's length. No answer says how long the shortest round trip is: each
 * waits as long as others' data happens to, up to back_ns. */
static void test_slow(uint64_t rate, uint64_t back_ns, double least, uint64_t seed)
{
	struct uet_switch_config c = usual;
	const struct uet_switch_sender *s = &result.sender[0];
	double use;

	c.rate = rate;
	c.back_ns = back_ns;
	c.bytes = c.payload = 1412;
	c.pds.mtu = UET_PAYLOAD_MAX;
	c.pds.window = 1024;
	c.pds.cc.mtu = 8296;
	c.run_ns = 1000 * MS;
	run(&c, seed, c.run_ns / 2, NULL);
	use = (double)record.late_passed / ((double)rate * (double)(c.run_ns / 2) / 1e9);
	tap_diag("%lu MB/s, answers wait up to %lu us: use %.3f, queue %lu (at first "
		 "%lu), "
		 "window %lu, a packet takes %lu ns, quick %lu, late %lu, sent again %lu",
		 (unsigned long)(rate / 1000000), (unsigned long)(back_ns / US), use,
		 (unsigned long)record.late_queue, (unsigned long)record.queue,
		 (unsigned long)s->cc.cwnd,
		 (unsigned long)(s->cc.spread * s->cc.packet / 1024),
		 (unsigned long)s->cc.count.quick, (unsigned long)s->cc.count.late,
		 (unsigned long)s->stats.resent);
	tap_ok(use > least && use < 1.01,
	       "%lu MB/s, answers wait up to %lu us: over %.0f %% of it is used",
	       (unsigned long)(rate / 1000000), (unsigned long)(back_ns / US),
	       least * 100);
	tap_ok(record.late_queue < 128 << 10,
	       "%lu MB/s, answers wait up to %lu us: the queue is short",
	       (unsigned long)(rate / 1000000), (unsigned long)(back_ns / US));
}

static void test_slows(uint64_t seed)
{
	for (uint64_t back = 0; back <= 1000 * US; back += 500 * US) {
		test_slow(12500000, back, 0.95, seed);
		test_slow(50000000, back, 0.95, seed);
		test_slow(125000000, back, 0.95, seed);
	}
}

/* ---- a network that loses what it likes, with nothing waiting anywhere ---------------
 */

/* 0: nothing is lost. A long way also without: acks of much at once would be a queue. */
static void test_lossy(uint32_t one_in, uint64_t base, double least, uint64_t seed)
{
	struct uet_switch_config c = usual;
	const struct uet_switch_sender *s = &result.sender[0];
	double use;

	c.loss = one_in;
	c.base_rtt = base;
	c.run_ns = 400 * MS;
	run(&c, seed, c.run_ns / 4, NULL);
	use = (double)record.late[0] / ((double)RATE * (double)(c.run_ns / 4 * 3) / 1e9);
	tap_diag("one in %u lost, %lu us: use %.3f, window %lu of %lu, sent %lu, again "
		 "%lu, probes %lu, timeouts %lu, retired %lu",
		 one_in, (unsigned long)(base / US), use, (unsigned long)s->cc.cwnd,
		 (unsigned long)s->cc.first_wnd, (unsigned long)s->stats.sent,
		 (unsigned long)s->stats.resent, (unsigned long)s->stats.probes,
		 (unsigned long)s->stats.timeouts, (unsigned long)s->paths.retirements);
	tap_ok(use > least, "one in %u lost, %lu us: over %.0f %% of the link is used",
	       one_in, (unsigned long)(base / US), least * 100);
	tap_ok(s->stats.resent * one_in <= s->stats.sent * 3 && !s->failed &&
		       !s->stats.timeouts,
	       "one in %u lost, %lu us: little else is sent again, nothing by a timeout",
	       one_in, (unsigned long)(base / US));
}

static void test_losses(uint64_t seed)
{
	test_lossy(0, 200 * US, 0.85, seed);
	test_lossy(100, 40 * US, 0.9, seed);
	test_lossy(100, 200 * US, 0.8, seed);
	test_lossy(20, 40 * US, 0.9, seed);
	test_lossy(20, 100 * US, 0.7, seed);
}

/* ---- many at one queue ------------------------------------------------------------- */

struct verdict {
	double use, jain;
	uint64_t queue;
};

static struct verdict verdict_of(const struct uet_switch_config *c, uint64_t late_from)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < c->senders; i++) {
		sum += (double)record.late[i];
		squares += (double)record.late[i] * (double)record.late[i];
	}
	return (struct verdict){
		(double)record.late_passed /
			((double)c->rate * (double)(c->run_ns - late_from) / 1e9),
		squares > 0 ? sum * sum / (c->senders * squares) : 0, record.late_queue};
}

static struct uet_switch_config crowd_of(uint32_t senders, bool marks)
{
	struct uet_switch_config c = usual;

	c.senders = senders;
	c.mark = marks ? 128 << 10 : 0;
	/* What so many lose when they begin at once takes a while to be sent again. */
	c.run_ns = (senders > MANY ? 500 : 200) * MS;
	return c;
}

static void test_crowd(uint32_t senders, bool marks, uint64_t start_ns, uint64_t seed)
{
	struct uet_switch_config c = crowd_of(senders, marks);
	char how[64];
	struct verdict v;
	uint64_t timeouts = 0, resent = 0;
	bool failed = false;

	c.start_ns = start_ns;
	snprintf(how, sizeof(how), "%s%s", marks ? "marked" : "never marked",
		 start_ns ? ", one after the other" : "");
	run(&c, seed, c.run_ns / 2, NULL);
	v = verdict_of(&c, c.run_ns / 2);
	for (uint32_t i = 0; i < senders; i++) {
		failed |= result.sender[i].failed;
		timeouts += result.sender[i].stats.timeouts;
		resent += result.sender[i].stats.resent;
	}
	tap_diag("%u senders, %s: use %.3f, fairness %.3f, queue %lu of %lu (at first "
		 "%lu), "
		 "dropped %lu, marked %lu, sent again %lu, timeouts %lu",
		 senders, how, v.use, v.jain, (unsigned long)v.queue,
		 (unsigned long)c.room, (unsigned long)record.queue,
		 (unsigned long)result.dropped, (unsigned long)result.marked,
		 (unsigned long)resent, (unsigned long)timeouts);
	tap_ok(v.use > 0.9 && v.use < 1.01, "%u senders, %s: they use the link", senders,
	       how);
	tap_ok(v.jain > 0.95, "%u senders, %s: and share it", senders, how);
	tap_ok(v.queue<c.room / 4 * (senders > MANY ? 3 : 2),
		       "%u senders, %s: the queue stays below %s its room", senders, how,
		       senders>
			       MANY
		       ? "three quarters of"
		       : "half");
	tap_ok(!failed && !result.twice, "%u senders, %s: nothing failed or came twice",
	       senders, how);
}

static int write_data(uint32_t senders, uint64_t seed, bool marks, const char *path)
{
	struct uet_switch_config c = crowd_of(senders, marks);
	FILE *to = fopen(path, "w");
	struct verdict v;

	if (!to) {
		fprintf(stderr, "test_uet_switch: %s can't be written\n", path);
		return 1;
	}
	run(&c, seed, c.run_ns / 2, to);
	v = verdict_of(&c, c.run_ns / 2);
	fprintf(to, "# rate %lu room %lu use %.4f fairness %.4f queue %lu\n",
		(unsigned long)c.rate, (unsigned long)c.room, v.use, v.jain,
		(unsigned long)v.queue);
	return fclose(to) ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint64_t senders = 8, seed = 1;
	const char *data = NULL;
	bool marks = true;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--unmarked") == 0)
			marks = false;
		else if (i + 1 < argc && strcmp(argv[i], "--senders") == 0)
			senders = strtoull(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--data") == 0)
			data = argv[++i];
		else
			senders = 0;
	}
	if (senders < 1 || senders > UET_SWITCH_SENDERS || (argc > 1 && !data)) {
		fprintf(stderr,
			"usage: test_uet_switch [--senders 1..%u] [--seed N] "
			"[--unmarked] "
			"--data FILE\n",
			UET_SWITCH_SENDERS);
		return 2;
	}
	if (data)
		return write_data((uint32_t)senders, seed, marks, data);
	test_hole("paths with room", 0, seed);
	test_hole("paths that are as wide as needed", RATE / 6, seed);
	test_losses(seed);
	test_slows(seed);
	test_wide("paths with room", 0, seed);
	test_wide("narrow paths", 3 * RATE / 6, seed);
	for (int i = 0; i < 2; i++) {
		test_crowd(1, i == 0, 0, seed);
		test_crowd(2, i == 0, 0, seed);
		test_crowd(8, i == 0, 0, seed);
		test_crowd(32, i == 0, 0, seed);
		test_crowd(8, i == 0, 2 * MS, seed);
		test_crowd(32, i == 0, 2 * MS, seed);
		/* One packet of each is more than the target has room for. */
		test_crowd(64, i == 0, 0, seed);
		test_crowd(48, i == 0, 2 * MS, seed);
		test_crowd(96, i == 0, 0, seed);
		test_crowd(128, i == 0, 0, seed);
		/* Of each one packet is all of the queue's room. */
		test_crowd(256, i == 0, 0, seed);
	}
	return tap_done();
}
