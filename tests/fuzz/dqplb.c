/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of prov/dqplb, as a peer may forge them: what dqplb_msg_parse accepts is
 * within its limits and encodes to the same bytes; a receiver and a transmitter in the
 * middle of their work take it or refuse it, and go on, or say that the link is over.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "prov/dqplb/rx.h"
#include "prov/dqplb/tx.h"
#include "tests/fuzz/fuzz.h"

enum { WINDOW = 64, GEN = 1, RECEIVES = 32 };

static void on_event(void *arg, const struct dqplb_event *ev)
{
	unsigned *events = arg;

	fuzz_require(ev->len <= DQPLB_LEN_MAX);
	++*events;
}

/* Some numbers arrived, one record waits, one ordered event waits. */
static void try_rx(const struct dqplb_msg *m)
{
	const struct dqplb_msg wait = {.kind = DQPLB_MSG_RECORD,
				       .gen = GEN,
				       .number = 8,
				       .runs = 1,
				       .run = {{5, 3}}};
	unsigned events = 0;
	struct dqplb_rx_config c = {.window = WINDOW,
				    .records = 2,
				    .gen = GEN,
				    .event = on_event,
				    .arg = &events};
	uint8_t bytes[DQPLB_MSG_MAX];
	struct dqplb_rq rq = {RECEIVES};
	struct dqplb_rx *rx;
	int rc;

	fuzz_require(dqplb_rx_open(&c, &rx) == 0);
	fuzz_require(dqplb_rx_queue(rx, 0, &rq, RECEIVES) == 0);
	fuzz_require(dqplb_rx_lane_open(rx, 0, 1, 0) == 0);
	dqplb_rx_ack(rx, bytes, sizeof(bytes));
	for (uint32_t i = 0; i < 3; i++)
		dqplb_rx_imm(rx, 0, 1, dqplb_imm_make(i, GEN, 0), 8);
	dqplb_rx_imm(rx, 0, 1, dqplb_imm_make(4, GEN, DQPLB_IMM_FAST | DQPLB_IMM_ORDERED),
		     8);
	dqplb_rx_msg(rx, &wait);
	rc = dqplb_rx_msg(rx, m);
	fuzz_require(rc == 0 || rc == -EPROTO ||
		     (rc == -EINVAL && m->kind >= DQPLB_MSG_ACK));
	for (uint32_t i = 3; i < 20; i++)
		if (dqplb_rx_imm(rx, 0, 1, dqplb_imm_make(i, GEN, 0), 8))
			rc = -EPROTO;
	fuzz_require(events <= 3);
	fuzz_require(rc == -EPROTO || dqplb_rx_ack(rx, bytes, sizeof(bytes)) > 0);
	dqplb_rx_close(rx);
	fuzz_require(rq.free <= RECEIVES);
}

static void post_all(struct dqplb_tx *tx)
{
	struct dqplb_post post;
	struct dqplb_msg m;

	for (unsigned i = 0; i < 1000; i++)
		if (!dqplb_tx_next(tx, &post, &m))
			return;
	fuzz_require(false);
}

/* Two transfers are under way over two lanes, of which one is drained. */
static void try_tx(const struct dqplb_msg *m)
{
	struct dqplb_xfer x = {.kind = DQPLB_NUMBERED, .len = 5000};
	struct dqplb_xfer y = {.kind = DQPLB_NUMBERED, .len = 10, .bare = true};
	const struct dqplb_tx_config c = {.window = WINDOW,
					  .records = 2,
					  .gen = GEN,
					  .max_segment = 1000,
					  .turn = 2,
					  .lane_segments = 8,
					  .lane_bytes = 1 << 20,
					  .link_bytes = 1 << 20,
					  .lanes = 2};
	const struct dqplb_msg grant = {
		.kind = DQPLB_MSG_ACK, .gen = GEN, .grants = 1, .grant = {{0, RECEIVES}}};
	struct dqplb_tx *tx;
	int rc;

	fuzz_require(dqplb_tx_open(&c, &tx) == 0);
	fuzz_require(dqplb_tx_lane_open(tx, 0, 1, 0, 0) == 0);
	fuzz_require(dqplb_tx_lane_open(tx, 1, 1, 0, 1) == 0);
	fuzz_require(dqplb_tx_msg(tx, &grant) == 0);
	fuzz_require(dqplb_tx_start(tx, &x) == 0 && dqplb_tx_start(tx, &y) == 0);
	post_all(tx);
	fuzz_require(dqplb_tx_lane_drained(tx, 0, 1) == 0);
	rc = dqplb_tx_msg(tx, m);
	fuzz_require(rc == 0 || rc == -EPROTO ||
		     (rc == -EINVAL && m->kind < DQPLB_MSG_ACK));
	post_all(tx);
	if (dqplb_tx_lane_up(tx, 1))
		fuzz_require(dqplb_tx_abort(tx, -EIO) == -EBUSY);
	dqplb_tx_lane_drained(tx, 1, 1);
	fuzz_require(dqplb_tx_abort(tx, -EIO) == 0);
	while (dqplb_tx_take(tx))
		;
	fuzz_require(dqplb_tx_idle(tx));
	dqplb_tx_close(tx);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t again[DQPLB_MSG_MAX];
	struct dqplb_msg m;

	if (dqplb_msg_parse(data, size, &m))
		return false;
	fuzz_require(m.kind > 0 && m.kind < DQPLB_MSG_KINDS && m.gen <= DQPLB_GEN_MASK);
	fuzz_require(dqplb_msg_put(again, sizeof(again), &m) == size);
	fuzz_require(memcmp(again, data, size) == 0);
	try_rx(&m);
	try_tx(&m);
	return true;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const struct dqplb_msg seeds[] = {
		{.kind = DQPLB_MSG_RECORD,
		 .gen = GEN,
		 .number = 9,
		 .len = 100,
		 .runs = 2,
		 .run = {{0, 3}, {3, 1}}},
		{.kind = DQPLB_MSG_RECORD,
		 .gen = GEN,
		 .flags = DQPLB_MSG_F_ORDERED,
		 .number = 12,
		 .data = 1,
		 .op = 2,
		 .runs = 1,
		 .run = {{9, 2}}},
		{.kind = DQPLB_MSG_VOID, .gen = GEN, .runs = 1, .run = {{5, 3}}},
		{.kind = DQPLB_MSG_ACK,
		 .gen = GEN,
		 .number = 3,
		 .grants = 1,
		 .words = 1,
		 .grant = {{0, 40}},
		 .word = {0x12}},
		{.kind = DQPLB_MSG_REPORT,
		 .gen = GEN,
		 .number = 1,
		 .lanes = 2,
		 .lane = {{0, 1}, {1, 1}}},
	};

	if (number >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	return dqplb_msg_put(room, FUZZ_ROOM, &seeds[number]);
}
