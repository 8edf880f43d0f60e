/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step in one epoch: an all-reduce in chunks of a fixed size, a few of them under way
 * at a time, each a ring in place in the staging of the epoch. The input is copied there
 * behind the transfers of the chunks before; nothing is ever sent from it, or received
 * into the destination.
 */
#ifndef WEFT_FTAR_PIPE_H
#define WEFT_FTAR_PIPE_H

#include "coll/ftar/epoch.h"

enum { PIPE_DEPTH = 4 };
_Static_assert((int)PIPE_DEPTH < (int)EPOCH_REQS, "and one for the tally");

struct pipe_call {
	const void *src; /* NULL: this member contributes nothing */
	void *dst;	 /* written as chunks are done; NULL: when the step counts */
	uint64_t count;
	enum weft_type type;
	enum weft_op op;
	size_t chunk; /* bytes; a multiple of every type's size */
	int64_t timeout_us;
	bool (*stopped)(void *arg);
	void *arg;
};

struct pipe_end {
	uint32_t contributors;
};

enum pipe_result { PIPE_GOOD, PIPE_STOPPED, PIPE_FAILED, PIPE_REFUSED };

/* STOPPED: the epoch is over. FAILED: weft_error_detail() says why, epoch_suspect() whom.
 * REFUSED: members disagree, or the arguments are wrong: *result, for good. Requests that
 * are not over stay with the epoch, which must be stopped then. */
enum pipe_result pipe_run(struct epoch *e, const struct pipe_call *call,
			  struct pipe_end *end, enum weft_result *result);

/* Writes the destination from the staging. */
void pipe_take(const struct epoch *e, const struct pipe_call *call,
	       const struct pipe_end *end, void *dst);

#endif
