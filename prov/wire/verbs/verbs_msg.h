/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two ends of a link tell each other about lanes, in packets of the control channel
 * (VERBS_CTL_LANE): bytes in one place, one validator.
 *
 *   OPEN    dialler: my queue pair of the lane, on this rail of my card, can receive
 *   OPENED  answerer: so can mine
 *   READY   dialler: it can send as well (rule C7)
 *   REFUSED answerer: I can't just now; the incarnation is used up all the same
 *   DOWN    mine is in the error state (rule C2); a report follows
 *   WANT    answerer: so many lanes are needed
 *   RAIL    a rail of mine is up or down, with what its card says now
 *
 * and in words at the door (verbs_stop.h):
 *
 *   STOP    end yours: nothing that I posted on mine may be written any more (rule C4)
 *   STOPPED nothing is
 *
 * (verbs_spare.h):
 *
 *   SPARE   make a queue pair for mine, on this rail, which is reached by this LID and
 * GID SPARED  it is there; with no number: it isn't
 *
 * (verbs_port.h):
 *
 *   RAIL    (up only) as above
 *
 * (verbs_resume.h):
 *
 *   CALL    answerer: my end of the control channel of this round (as incarnation) died:
 *           call again
 */
#ifndef WEFT_WIRE_VERBS_VERBS_MSG_H
#define WEFT_WIRE_VERBS_VERBS_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "util/le.h"

enum verbs_msg_op {
	VERBS_MSG_OPEN = 1,
	VERBS_MSG_OPENED,
	VERBS_MSG_READY,
	VERBS_MSG_REFUSED,
	VERBS_MSG_DOWN,
	VERBS_MSG_WANT,
	VERBS_MSG_RAIL,
	VERBS_MSG_STOP,
	VERBS_MSG_STOPPED,
	VERBS_MSG_SPARE,
	VERBS_MSG_SPARED,
	VERBS_MSG_CALL,
	VERBS_MSG_OPS
};

struct verbs_msg_bytes {
	uint8_t op;
	uint8_t rail;	  /* OPEN, OPENED, RAIL, SPARE, SPARED */
	struct le16 lane; /* WANT: how many; RAIL: 0 or 1: down, up */
	struct le32 incarnation;
	struct le32 qpn; /* OPEN, OPENED, SPARE, SPARED */
	struct le32 psn;
	struct le16 lid; /* RAIL, SPARE */
	uint8_t zero[6];
	uint8_t gid[16]; /* RAIL, SPARE */
};

_Static_assert(sizeof(struct verbs_msg_bytes) == 40, "verbs_msg_bytes");

struct verbs_msg {
	enum verbs_msg_op op;
	uint8_t rail;
	uint16_t lane;
	uint32_t incarnation;
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
	uint8_t gid[16];
};

/* 0 or -EPROTO. Whether lane and rail are there is for whom it is for. */
int verbs_msg_read(const void *bytes, size_t len, struct verbs_msg *m);
/* Writes sizeof(struct verbs_msg_bytes) bytes. */
void verbs_msg_write(void *bytes, const struct verbs_msg *m);

#endif
