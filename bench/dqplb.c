/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What prov/dqplb costs: nanoseconds for each immediate at the receiver and for each
 * segment at the transmitter, the machines alone, in one thread.
 *
 *   dqplb [--ops N] [--rounds N]
 *
 * Receiver: N immediates in order; mixed up within blocks of 16, as lanes mix them up;
 * fast ones in order, each with its event. Acknowledgements are written when due, and
 * each receive counts as posted again.
 * Transmitter: a long transfer's segments over 16 lanes (posted, completed, acknowledged
 * 16 at a time); fast transfers of one segment, started and taken; the same with records.
 * N operations of each, shared out over the rounds. Figures are processor time: the mean
 * of all, and of the round that was least disturbed.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/say.h"
#include "prov/dqplb/rx.h"
#include "prov/dqplb/tx.h"

enum { WINDOW = 4096, BATCH = 16, LANES = 16, SEGMENT = 1 << 19, RECEIVES = 1 << 16 };

static uint64_t events;

/* Of this thread: others on the processor don't count. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_event(void *arg, const struct dqplb_event *ev)
{
	(void)arg;
	events += ev->fast;
}

static void require(bool good, const char *what)
{
	if (!good)
		bench_die("%s", what);
}

/* The receiver: number i of the run is order[i % BATCH] of its block. */
static double rx_ns(uint64_t ops, const uint8_t order[BATCH], uint32_t flags)
{
	struct dqplb_rx_config c = {.window = WINDOW, .records = 256, .event = on_event};
	uint8_t bytes[DQPLB_MSG_MAX];
	struct dqplb_rq rq = {0};
	struct dqplb_rx *rx;
	uint64_t begin, end;

	dqplb_rq_posted(&rq, RECEIVES);
	require(!dqplb_rx_open(&c, &rx) && !dqplb_rx_queue(rx, 0, &rq, RECEIVES),
		"no receiver");
	for (uint32_t i = 0; i < LANES; i++)
		require(!dqplb_rx_lane_open(rx, i, 1, 0), "no lane");
	dqplb_rx_ack(rx, bytes, sizeof(bytes));
	begin = cpu_ns();
	for (uint64_t at = 0; at < ops; at += BATCH) {
		int rc = 0;

		for (uint32_t i = 0; i < BATCH; i++)
			rc |= dqplb_rx_imm(
				rx, i, 1,
				dqplb_imm_make((uint32_t)at + order[i], 0, flags),
				SEGMENT);
		dqplb_rq_posted(&rq, BATCH);
		if (rc)
			bench_die("an immediate was refused");
		if (dqplb_rx_due(rx, false))
			dqplb_rx_ack(rx, bytes, sizeof(bytes));
	}
	end = cpu_ns();
	require(dqplb_rx_stats(rx)->numbers == ops, "numbers were lost");
	dqplb_rx_close(rx);
	return (double)(end - begin) / (double)ops;
}

static struct dqplb_tx *tx_get(void)
{
	struct dqplb_tx_config c = {.window = WINDOW,
				    .records = 256,
				    .max_segment = SEGMENT,
				    .turn = 8,
				    .lane_segments = 128,
				    .lane_bytes = UINT64_C(1) << 40,
				    .link_bytes = UINT64_C(1) << 40,
				    .lanes = LANES};
	struct dqplb_msg m = {
		.kind = DQPLB_MSG_ACK, .grants = 1, .grant = {{0, RECEIVES}}};
	struct dqplb_tx *tx;

	require(!dqplb_tx_open(&c, &tx), "no transmitter");
	for (uint32_t i = 0; i < LANES; i++)
		require(!dqplb_tx_lane_open(tx, i, 1, 0, i % 2), "no lane");
	require(!dqplb_tx_msg(tx, &m), "no receives");
	return tx;
}

struct sent {
	uint32_t numbers;
	uint32_t segments;
};

/* Posts what there is, completes it, acknowledges it. Returns the segments. */
static uint32_t tx_round(struct dqplb_tx *tx, struct dqplb_msg *m, struct sent *sent)
{
	uint64_t cookie[2 * BATCH];
	struct dqplb_post post;
	uint32_t segments = 0, numbers = 0;

	while (numbers < 2 * BATCH && dqplb_tx_next(tx, &post, m)) {
		numbers++;
		if (post.kind != DQPLB_POST_MSG)
			cookie[segments++] = post.cookie;
	}
	for (uint32_t i = 0; i < segments; i++)
		if (dqplb_tx_done(tx, cookie[i]))
			bench_die("a completion was refused");
	sent->numbers += numbers;
	sent->segments += segments;
	m->kind = DQPLB_MSG_ACK;
	m->gen = 0;
	m->number = sent->numbers & DQPLB_SEQ_MASK;
	m->words = m->lanes = 0;
	m->grants = 1;
	m->grant[0] = (struct dqplb_grant){0, RECEIVES + sent->segments};
	if (dqplb_tx_msg(tx, m))
		bench_die("an acknowledgement was refused");
	return segments;
}

static double tx_long_ns(uint64_t ops)
{
	struct dqplb_xfer x = {.kind = DQPLB_NUMBERED, .len = ops * SEGMENT};
	struct dqplb_tx *tx = tx_get();
	uint64_t begin, segments = 0;
	static struct dqplb_msg m;
	struct sent sent = {0};
	double ns;

	require(!dqplb_tx_start(tx, &x), "a transfer was refused");
	begin = cpu_ns();
	while (segments < ops)
		segments += tx_round(tx, &m, &sent);
	ns = (double)(cpu_ns() - begin) / (double)ops;
	tx_round(tx, &m, &sent);
	require(dqplb_tx_take(tx) == &x, "a transfer is unfinished");
	dqplb_tx_close(tx);
	return ns;
}

static double tx_small_ns(uint64_t ops, bool bare)
{
	static struct dqplb_xfer x[BATCH];
	static struct dqplb_msg m;
	struct dqplb_tx *tx = tx_get();
	struct sent sent = {0};
	uint64_t begin;
	double ns;

	begin = cpu_ns();
	for (uint64_t at = 0; at < ops; at += BATCH) {
		uint32_t taken = 0;

		for (uint32_t i = 0; i < BATCH; i++) {
			x[i].kind = DQPLB_NUMBERED;
			x[i].bare = bare;
			x[i].len = 8;
			dqplb_tx_start(tx, &x[i]);
		}
		tx_round(tx, &m, &sent);
		while (dqplb_tx_take(tx))
			taken++;
		if (taken != BATCH)
			bench_die("transfers are unfinished");
	}
	ns = (double)(cpu_ns() - begin) / (double)ops;
	dqplb_tx_close(tx);
	return ns;
}

static double measure(int what, uint64_t ops)
{
	static const uint8_t in_order[BATCH] = {0, 1, 2,  3,  4,  5,  6,  7,
						8, 9, 10, 11, 12, 13, 14, 15};
	static const uint8_t mixed[BATCH] = {8, 3,  12, 0,  7, 15, 4, 9,
					     1, 14, 6,	11, 2, 13, 5, 10};

	switch (what) {
	case 0:
		return rx_ns(ops, in_order, 0);
	case 1:
		return rx_ns(ops, mixed, 0);
	case 2:
		return rx_ns(ops, in_order, DQPLB_IMM_FAST);
	case 3:
		return tx_long_ns(ops);
	case 4:
		return tx_small_ns(ops, true);
	default:
		return tx_small_ns(ops, false);
	}
}

int main(int argc, char **argv)
{
	static const char *const name[] = {
		"receiver: immediate in order",
		"receiver: immediate, lanes mixed up",
		"receiver: fast immediate with its event",
		"transmitter: segment of a long transfer",
		"transmitter: fast transfer of one segment",
		"transmitter: transfer of one segment and a record",
	};
	/* Rounds so long that numbers wrap in each. */
	uint64_t ops = 100000000, rounds = 4, share;
	double least[6];

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--ops") == 0 &&
		    bench_number(argv[i + 1], BATCH, 1000000000, &ops))
			continue;
		if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0 &&
		    bench_number(argv[i + 1], 1, 100, &rounds))
			continue;
		fprintf(stderr, "usage: dqplb [--ops %d..1000000000] [--rounds 1..100]\n",
			BATCH);
		return 2;
	}
	share = ops / rounds / BATCH * BATCH;
	if (!share)
		share = BATCH;
	printf("# %" PRIu64 " operations of each in %" PRIu64 " rounds; window %d, %d "
	       "lanes; ns of all, and in the least round\n",
	       share * rounds, rounds, WINDOW, LANES);
	for (int i = 0; i < 6; i++) {
		double sum = least[i] = measure(i, share);

		for (uint64_t k = 1; k < rounds; k++) {
			double ns = measure(i, share);

			sum += ns;
			least[i] = ns < least[i] ? ns : least[i];
		}
		printf("%-52s %8.1f %8.1f\n", name[i], sum / (double)rounds, least[i]);
		/* Seen at once, also by who reads it from a pipe. */
		fflush(stdout);
	}
	printf("dqplb: immediate %.1f ns, mixed up %.1f, fast %.1f; segment %.1f, fast "
	       "%.1f, with record %.1f\n",
	       least[0], least[1], least[2], least[3], least[4], least[5]);
	return 0;
}
