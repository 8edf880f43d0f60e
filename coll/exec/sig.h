/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signature of a call: 64 bits that travel with every message (as its CQ data), READY
 * and probe, so that whoever gets something of another call than its own sees it at once,
 * by one comparison, and can say what the other one runs. From the top:
 *
 *   collective 4 | type 4 | operation 5 | algorithm 4 | past 11 | root r | count 36 - r
 *
 * r is what the number of ranks needs. The count field has its top bit set where the
 * count does not fit: then it is a hash. `past` is a hash of all earlier calls of the
 * communicator: where ranks disagreed about one that all of them finished, the next call
 * shows it.
 */
#ifndef WEFT_EXEC_SIG_H
#define WEFT_EXEC_SIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

/* What a rank believes that the call is. */
struct sig_call {
	uint64_t count;
	int32_t root;
	uint8_t coll;
	uint8_t type;
	uint8_t op;	   /* sig_op() */
	uint8_t algorithm; /* algo_index() */
};

#define SIG_COLL_PAIR  15 /* no collective: root sends to another rank */
#define SIG_OPS	       32 /* operations that can be told apart */
#define SIG_ALGORITHMS 16 /* and algorithms of one collective */

#define SIG_PAST_SHIFT 36
#define SIG_PAST_MASK  (UINT64_C(0x7ff) << SIG_PAST_SHIFT)

/* Those of the caller are behind the library's. */
static inline uint8_t sig_op(enum weft_op op)
{
	return (uint8_t)(op < WEFT_OP_USER ? (unsigned)op
					   : (unsigned)op - WEFT_OP_USER + WEFT_OP_COUNT);
}

uint64_t sig_pack(const struct sig_call *call, uint64_t past, int32_t size);

/* False where the count is not known exactly; then it is the least that it can be. */
bool sig_unpack(uint64_t sig, int32_t size, struct sig_call *call);

bool sig_call_same(const struct sig_call *a, const struct sig_call *b);

/* 14 bits of what the lengths of messages depend on. */
uint32_t sig_length_hash(const struct sig_call *call);

/* The hash of the calls so far, with one more. */
static inline uint64_t sig_past_add(uint64_t past, uint64_t sig)
{
	const uint64_t mixed =
		(past ^ (sig & ~SIG_PAST_MASK)) * UINT64_C(0x9e3779b97f4a7c15);

	return mixed ^ mixed >> 29;
}

/* "allreduce (ring) of 1000 fp32 sum"; exact as sig_unpack() says. Bytes from anywhere:
 * values that name nothing are shown as "?". */
void sig_call_print(const struct sig_call *call, bool exact, char *text, size_t len);

#endif
