/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls by lines that are short: what a rank gives goes through its lines, in pieces of a
 * turn each where it is more than a turn carries.
 */
#ifndef WEFT_EXEC_LINES_NEAR_H
#define WEFT_EXEC_LINES_NEAR_H

#include "coll/exec/engine.h"
#include "coll/exec/lines.h"

/* Sets up the first turn of the request's call; the one after that which is over. */
void near_begin(struct exec_req *req);
void near_next(struct exec_req *req);

/* Writes what this turn gives to others; returns how many bytes. */
size_t near_give(const struct exec_req *req, char *place);

/* Reads who has come, one after the other. THERE: all that this turn needs; else what
 * there is of the next one, and what it runs in *other. */
enum lines_look near_look(struct exec_req *req, struct lines_call *other);

#endif
