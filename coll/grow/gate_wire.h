/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a newcomer and the first rank of a communicator that grows say to each other. All
 * fields are big-endian. Only this file and gate_wire.c know the layout; nothing is used
 * before it was checked in full.
 *
 *   hello    magic "WFG1", wire version, version of the library, what all must have alike
 *            (sign), a number that the newcomer drew, the job's secret, in clear: it
 *            keeps strangers and other jobs away, not somebody who reads the network
 *   answer   magic, result; BUSY: wait, and say by a byte that you are still there;
 *            of a success: rank and size in what it becomes, a word that
 *            was drawn for it, the card (coll/ftar/meet_wire.h) of where its ranks meet;
 *            else a sentence
 */
#ifndef WEFT_GROW_GATE_WIRE_H
#define WEFT_GROW_GATE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/ft/roster.h"
#include "weft/weft.h"

enum { GATE_JOB_LEN = 64, GATE_HELLO_LEN = 96, GATE_ANSWER_LEN = 256, GATE_TEXT = 200 };

struct gate_hello {
	uint16_t major, minor; /* of the library */
	uint64_t sign;
	uint64_t drawn; /* not 0 */
	uint8_t job[GATE_JOB_LEN];
};

struct gate_answer {
	enum weft_result result;
	int32_t rank, size;
	uint64_t word; /* not 0 */
	uint8_t card[FT_CARD_MAX];
	uint32_t card_len;
	char text[GATE_TEXT];
};

void gate_hello_put(void *buf, const struct gate_hello *hello);

/* Of GATE_HELLO_LEN bytes. False: it is no hello, or of another version of the wire. */
bool gate_hello_get(const void *buf, struct gate_hello *hello);

void gate_answer_put(void *buf, const struct gate_answer *answer);

/* Of GATE_ANSWER_LEN bytes. False: it is none, or names what can't be. */
bool gate_answer_get(const void *buf, struct gate_answer *answer);

#endif
