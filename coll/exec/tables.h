/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of a call: arrays of the caller that say what is to be done, and that are read
 * when the call is executed: when its stream has come to it, and, where they lie in
 * device memory, when they have been brought to the host. Some say where others end, so
 * they come in stages. What the call tells its caller in such arrays goes back before it
 * is over, and before its stream goes on.
 */
#ifndef WEFT_EXEC_TABLES_H
#define WEFT_EXEC_TABLES_H

#include "coll/exec/exec.h"

struct exec_req;

/* The call starts: nothing has come yet. */
void tables_start(struct exec_tables *t);

/* Whether steps may begin. Brings what is missing; a request whose tables do not come
 * fails here. Not before its stream has come to the call. */
bool tables_are_there(struct exec_req *req);

/* The steps are done, well: takes back what the caller is told. */
void tables_leave(struct exec_req *req);
/* All that was taken back has arrived. */
bool tables_are_back(const struct exec_req *req);

/* What was copied has arrived: ends the request, if its steps are done, or what has
 * failed. True when something moved. */
bool tables_run(struct exec_req *req);

/* The request failed: it may not end before its copies have. */
void tables_fail(struct exec_req *req);
/* Nothing has moved for a while: asks whether the device still works. */
void tables_check(struct exec_req *req);

#endif
