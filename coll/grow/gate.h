/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How newcomers come to a communicator: its first rank listens at a place that all know,
 * looks at who says hello, and answers when as many have come as are let in; newcomers
 * dial, again and again, until somebody lets them in or says why not.
 */
#ifndef WEFT_GROW_GATE_H
#define WEFT_GROW_GATE_H

#include "coll/grow/gate_wire.h"

enum { GATE_WHY = 300 };

/* Listens at the first of the places ("host:port,host:port") that is an address of this
 * host; fills the card of the answer. The descriptor, or -1 with why. */
int gate_listen(const char *places, struct gate_answer *answer, char why[GATE_WHY]);

struct gate;

struct gate_attr {
	int listener;
	int32_t first;		  /* rank that the first newcomer becomes */
	int32_t count;		  /* of newcomers */
	struct gate_hello wanted; /* what they must say; not `drawn` */
	int64_t until;		  /* boot_clock_us() */
};

/* Waits for all of them; who has gone by then does not count. What they are told is the
 * answer, but for their ranks. SUCCESS, TIMEOUT or NOMEM with why. */
enum weft_result gate_admit(const struct gate_attr *attr,
			    const struct gate_answer *answer, char why[GATE_WHY]);

/* A newcomer's side. SUCCESS: the answer; else why: ARG, TIMEOUT, or what the other side
 * refuses with. */
enum weft_result gate_ask(const char *places, const struct gate_hello *hello,
			  int64_t until, struct gate_answer *answer, char why[GATE_WHY]);

#endif
