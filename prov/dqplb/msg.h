/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two machines of a link tell each other over the control channel: little-endian
 * fields, sizes asserted, one validator. Nobody else looks into these bytes.
 *
 *   RECORD  transmitter: what a transfer's event says, and its numbers. Has a number
 *           itself, the highest of its transfer.
 *   VOID    transmitter: numbers of a transfer that failed; nothing comes any more, no
 *           event. Has no number: a window that is full because of the gap must not
 *           stop the message that closes it.
 *   ACK     receiver: every number before `cum` was consumed, and those of the bitmap;
 *           receives that are granted. May be lost: the next one says the same and more.
 *   REPORT  receiver: the same, once lanes are quiet: nothing of them comes any more.
 *
 * RECORD, VOID and REPORT go exactly once and in order (rule B1); all four at the
 * channel's own credits (B3).
 */
#ifndef WEFT_DQPLB_MSG_H
#define WEFT_DQPLB_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "prov/dqplb/imm.h"
#include "util/le.h"

enum dqplb_msg_kind {
	DQPLB_MSG_RECORD = 1,
	DQPLB_MSG_VOID,
	DQPLB_MSG_ACK,
	DQPLB_MSG_REPORT,
	DQPLB_MSG_KINDS
};

/* RECORD: its event waits for every number before it. */
#define DQPLB_MSG_F_ORDERED 0x01

#define DQPLB_RUNS_MAX	16u
#define DQPLB_WORDS_MAX (DQPLB_WINDOW_MAX / 64)
/* Longest transfer. */
#define DQPLB_LEN_MAX (UINT64_C(1) << 48)
/* Receives that are granted and not used, of one queue. */
#define DQPLB_GRANT_MAX (1u << 20)

struct dqplb_msg_head {
	uint8_t kind;
	uint8_t gen;
	uint8_t flags;
	uint8_t zero;
	struct le32 number; /* RECORD: its own; ACK, REPORT: cum; else 0. 24 bits */
};

/* Numbers first to first + count - 1. */
struct dqplb_msg_run {
	struct le32 first; /* 24 bits */
	struct le32 count; /* at least 1 */
};

struct dqplb_msg_record {
	struct dqplb_msg_head head;
	struct le64 data;
	struct le64 len; /* bytes of the transfer */
	struct le32 op;
	struct le32 runs;
	struct dqplb_msg_run run[];
};

struct dqplb_msg_void {
	struct dqplb_msg_head head;
	struct le32 runs; /* at least 1 */
	struct le32 zero;
	struct dqplb_msg_run run[];
};

struct dqplb_msg_lane {
	struct le32 lane;
	struct le32 incarnation;
};

struct dqplb_msg_grant {
	struct le32 queue;
	struct le32 granted; /* since the link came up, modulo 2^32 */
};

/* Then lanes, grants, bitmap words (bit 0 of the first is number cum). */
struct dqplb_msg_ack {
	struct dqplb_msg_head head;
	uint8_t lanes; /* REPORT: at least 0; ACK: 0 */
	uint8_t grants;
	struct le16 words;
	struct le32 zero;
};

_Static_assert(sizeof(struct dqplb_msg_head) == 8, "dqplb_msg_head");
_Static_assert(sizeof(struct dqplb_msg_run) == 8, "dqplb_msg_run");
_Static_assert(sizeof(struct dqplb_msg_record) == 32, "dqplb_msg_record");
_Static_assert(sizeof(struct dqplb_msg_void) == 16, "dqplb_msg_void");
_Static_assert(sizeof(struct dqplb_msg_lane) == 8, "dqplb_msg_lane");
_Static_assert(sizeof(struct dqplb_msg_grant) == 8, "dqplb_msg_grant");
_Static_assert(sizeof(struct dqplb_msg_ack) == 16, "dqplb_msg_ack");

/* No message of a link with this window is longer. */
static inline size_t dqplb_msg_max(uint32_t window)
{
	return sizeof(struct dqplb_msg_ack) + window / 8 +
	       DQPLB_LANES_MAX *
		       (sizeof(struct dqplb_msg_lane) + sizeof(struct dqplb_msg_grant));
}

#define DQPLB_MSG_MAX 3088u
_Static_assert(DQPLB_MSG_MAX == 16 + DQPLB_WINDOW_MAX / 8 + DQPLB_LANES_MAX * 16,
	       "DQPLB_MSG_MAX");
_Static_assert(32 + DQPLB_RUNS_MAX * 8 <= 256, "a record fits a small packet");

struct dqplb_run {
	uint32_t first;
	uint32_t count;
};

struct dqplb_lane_name {
	uint32_t lane;
	uint32_t incarnation;
};

struct dqplb_grant {
	uint32_t queue;
	uint32_t granted;
};

/* A message in host order. Fields that its kind lacks are not looked at, and not set. */
struct dqplb_msg {
	uint8_t kind;
	uint8_t gen;
	uint8_t flags;
	uint32_t number;
	uint64_t data;
	uint64_t len;
	uint32_t op;
	uint32_t runs;
	uint32_t lanes;
	uint32_t grants;
	uint32_t words;
	struct dqplb_run run[DQPLB_RUNS_MAX];
	struct dqplb_lane_name lane[DQPLB_LANES_MAX];
	struct dqplb_grant grant[DQPLB_LANES_MAX];
	uint64_t word[DQPLB_WORDS_MAX];
};

/*
 * 0, or -EINVAL: short, long, out of range, unknown. Each field is copied once and the
 * copy is checked, so the bytes may change meanwhile. What needs the link's state (is
 * the number in the window?) is checked by whom it is for.
 */
int dqplb_msg_parse(const void *bytes, size_t len, struct dqplb_msg *m);

/* Writes a message that dqplb_msg_parse accepts; returns its length, at most `room`; 0
 * when it is longer than that. */
size_t dqplb_msg_put(void *bytes, size_t room, const struct dqplb_msg *m);

/* "record", "void", "ack", "report"; "?" for anything else. */
const char *dqplb_msg_kind_name(uint8_t kind);

#endif
