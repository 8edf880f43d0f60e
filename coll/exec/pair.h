/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between two ranks: the k-th that one sends to the other is the k-th that this
 * one receives from it, on their communicator. Each is a request whose plan has one SEND
 * or RECV; it travels as a tagged message, whatever its length. The call number has k
 * and, in its lowest bit, the direction (1: from the higher rank to the lower), so that
 * with the other rank it names one message. A failure is of the pair: with other ranks,
 * and in collectives, the communicator goes on.
 */
#ifndef WEFT_EXEC_PAIR_H
#define WEFT_EXEC_PAIR_H

#include "coll/exec/engine.h"

#define PAIR_PAST 8 /* messages of each direction that are remembered */

struct exec_pair {
	uint32_t next[2]; /* k of the next message, by direction; 31 bits */
	enum weft_result failed;
	char text[EXEC_TEXT_MAX];
	struct sig_call recent[2][PAIR_PAST]; /* by k */
};

/* The request starts: counts and remembers it. */
void pair_link(struct exec_req *req);
void pairs_free(struct exec *x, uint32_t comm);

/* Keeps the first cause. */
void pair_fail(struct exec *x, uint32_t comm, int32_t peer, enum weft_result result,
	       const char *text);

/* Whether the call of the message may still start here. */
bool pair_is_early(const struct exec_comm *comm, const struct ctl_msg *msg);

/* A control message of a call that is over here, or will never start. */
void pair_over(struct exec *x, const struct ctl_msg *msg);

/* The other rank gave other arguments; its message has another length. */
void pair_mismatch(struct exec_req *req, const struct sig_call *other, bool exact);
void pair_lengths(struct slot *slot, uint64_t theirs);

/* Writes req->what: "message 3 to rank 1". */
void pair_what(struct exec_req *req);

#endif
