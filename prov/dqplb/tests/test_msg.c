/* SPDX-License-Identifier: BSD-2-Clause */
/* The control messages' bytes, and what the validator refuses. */
#include "config.h"

#include <errno.h>

#include "prov/dqplb/msg.h"
#include "util/tap.h"

static const struct dqplb_msg record = {.kind = DQPLB_MSG_RECORD,
					.gen = 5,
					.flags = DQPLB_MSG_F_ORDERED,
					.number = 0x0a0b0c,
					.data = 0x1122334455667788,
					.len = 4096,
					.op = 9,
					.runs = 1,
					.run = {{0x0a0b00, 12}}};
static const uint8_t record_bytes[] = {
	1,    5,    1, 0,    0x0c, 0x0b, 0x0a, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
	0x22, 0x11, 0, 0x10, 0,	   0,	 0,    0, 0,	0,    9,    0,	  0,	0,
	1,    0,    0, 0,    0x00, 0x0b, 0x0a, 0, 12,	0,    0,    0};

static const struct dqplb_msg voids = {
	.kind = DQPLB_MSG_VOID, .gen = 63, .runs = 1, .run = {{0xffffff, 2}}};
static const uint8_t void_bytes[] = {2, 63, 0, 0, 0,	0,    0,    0, 1, 0, 0, 0,
				     0, 0,  0, 0, 0xff, 0xff, 0xff, 0, 2, 0, 0, 0};

static const struct dqplb_msg report = {.kind = DQPLB_MSG_REPORT,
					.number = 3,
					.lanes = 1,
					.grants = 1,
					.words = 1,
					.lane = {{7, 2}},
					.grant = {{1, 100}},
					.word = {0x8000000000000001}};
static const uint8_t report_bytes[] = {4,   0, 0, 0, 3, 0, 0, 0, 1, 1, 1, 0,   0, 0,
				       0,   0, 7, 0, 0, 0, 2, 0, 0, 0, 1, 0,   0, 0,
				       100, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80};

static void golden(const struct dqplb_msg *m, const uint8_t *bytes, size_t len)
{
	const char *name = dqplb_msg_kind_name(m->kind);
	uint8_t out[DQPLB_MSG_MAX], again[DQPLB_MSG_MAX];
	struct dqplb_msg back;
	size_t put = dqplb_msg_put(out, sizeof(out), m);

	tap_is_int((int64_t)put, (int64_t)len, name);
	tap_is_mem(out, bytes, len, name);
	tap_ok(dqplb_msg_parse(bytes, len, &back) == 0, "%s is accepted", name);
	tap_ok(dqplb_msg_put(again, sizeof(again), &back) == len &&
		       memcmp(again, bytes, len) == 0,
	       "%s survives the way there and back", name);
	tap_ok(dqplb_msg_put(out, len - 1, m) == 0, "%s: no room", name);
	for (size_t i = 0; i < len; i++)
		if (dqplb_msg_parse(bytes, i, &back) != -EINVAL)
			tap_ok(false, "%s: %zu bytes of it are refused", name, i);
	memcpy(out, bytes, len);
	out[len] = 0;
	tap_ok(dqplb_msg_parse(out, len + 1, &back) == -EINVAL, "%s: a byte too many",
	       name);
}

static void refused(const char *what, const struct dqplb_msg *m)
{
	uint8_t out[DQPLB_MSG_MAX + 64];
	struct dqplb_msg back;
	size_t len = dqplb_msg_put(out, sizeof(out), m);

	tap_ok(len > 0 && dqplb_msg_parse(out, len, &back) == -EINVAL, "refused: %s",
	       what);
}

static void test_refused(void)
{
	struct dqplb_msg m;

	m = record;
	m.gen = 64;
	refused("a generation of 7 bits", &m);
	m = record;
	m.len = DQPLB_LEN_MAX + 1;
	refused("too long a transfer", &m);
	m = record;
	m.flags = 2;
	refused("an unknown flag", &m);
	m = record;
	m.run[0].count = 0;
	refused("an empty run", &m);
	m = record;
	m.run[0].count = DQPLB_WINDOW_MAX + 1;
	refused("a run longer than any window", &m);
	m = voids;
	m.runs = 0;
	refused("a void of nothing", &m);
	m = voids;
	m.number = 1;
	refused("a void with a number", &m);
	m = report;
	m.kind = DQPLB_MSG_ACK;
	refused("an acknowledgement that names lanes", &m);
	m = report;
	m.lane[0].lane = DQPLB_LANES_MAX;
	refused("a lane out of range", &m);
	m = report;
	m.lanes = 2;
	m.lane[1] = m.lane[0];
	refused("a lane twice", &m);
	m = report;
	m.grants = 2;
	m.grant[1] = m.grant[0];
	refused("a queue twice", &m);
}

static void test_imm(void)
{
	uint32_t imm = dqplb_imm_make(0x1ffffff, 0x2a, DQPLB_IMM_FAST);

	tap_is_int(imm, 0x6affffff, "A1: number, generation and fast in their bits");
	tap_is_int(dqplb_imm_make(1, 0x3f, DQPLB_IMM_FAST | DQPLB_IMM_ORDERED),
		   0xff000001, "A1: ordered in bit 31");
	tap_is_int(dqplb_imm_gen(imm), 0x2a, "A1: the generation comes back");
	tap_is_int(dqplb_seq_widen(0xffffff, 0), 0x1000000, "behind the wrap");
	tap_is_int(dqplb_seq_widen(0x1000000, 0xffffff), 0xffffff, "before the wrap");
	tap_is_int((int32_t)dqplb_seq_widen(0, 0xffffff), -1, "before the first");
}

int main(void)
{
	golden(&record, record_bytes, sizeof(record_bytes));
	golden(&voids, void_bytes, sizeof(void_bytes));
	golden(&report, report_bytes, sizeof(report_bytes));
	test_refused();
	test_imm();
	tap_is_str(dqplb_msg_kind_name(0), "?", "no such kind");
	tap_is_str(dqplb_msg_kind_name(DQPLB_MSG_KINDS), "?", "no such kind");
	return tap_done();
}
