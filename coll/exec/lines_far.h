/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls by lines that are not short: what a rank gives stays where it is, its lines say
 * where, and the others read it there, once, straight to where they want it
 * (lines_mem_read()). A call takes two or three turns: in the last one each rank says
 * that it has read all it needs, and whoever gave something waits for that, since the
 * memory is the caller's again afterwards.
 *
 * Nobody writes into memory of another rank, so there is nothing to revoke (rule D3). A
 * rank whose call fails takes back what it has published, and may change its memory then:
 * whoever has read from it looks once more whether it still stands.
 */
#ifndef WEFT_EXEC_LINES_FAR_H
#define WEFT_EXEC_LINES_FAR_H

#include "coll/exec/engine.h"

/* Turns of a call. */
uint32_t far_turns(enum weft_coll coll, int32_t ranks);

/* Bytes of memory of our own that a call of so many elements needs. */
size_t far_scratch(const struct exec *x, const struct exec_call *call);

/* Sets up the turn `line->turn`. */
void far_aim(struct exec_req *req);

/* Writes what this turn says to others, at most LINES_SHORT bytes; returns how many. */
size_t far_give(const struct exec_req *req, void *place);

/* Reads what is there; true when something moved. The turn is over when line->next is
 * line->end and line->left is 0. */
bool far_run(struct exec_req *req);

#endif
