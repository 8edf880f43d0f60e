/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests whose call goes by lines (lines.h) in place of the steps of its plan. They are
 * requests as others are, with a deadline, a signature and a number; they have no slots,
 * no peers that send to them, and no memory that a peer may write. The calls of a
 * communicator that go by lines take their turns in the order in which they started: one
 * is published when the one before is done here.
 */
#ifndef WEFT_EXEC_LINES_REQ_H
#define WEFT_EXEC_LINES_REQ_H

#include "coll/exec/engine.h"
#include "coll/exec/lines.h"

/* Of a communicator. */
struct exec_lines {
	struct lines lines;
	struct list queue; /* requests by turn; the first may be published */
	bool broken;	   /* one of them failed: none behind it can be done */
};

void lines_comm_close(struct exec_comm *comm);

/* Whether a call that starts goes this way. */
bool lines_take(const struct exec *x, const struct exec_call *call);

/* What req_run() is for others: true when something moved. */
bool lines_run(struct exec_req *req);
/* The request has begun; it is done or has failed. */
void lines_begin(struct exec_req *req);
void lines_end(struct exec_req *req);

/* Rank of the context that the request waits for, or -1; whether for this one. */
int32_t lines_waits_for(const struct exec_req *req);
bool lines_needs(const struct exec_req *req, int32_t rank);
/* Asks all whom the request waits for what they do. */
void lines_probe(struct exec_req *req);
/* Sends to all other ranks of the communicator. */
void lines_tell(struct exec_req *req, struct ctl_msg *msg);
/* Its deadline has passed. */
void lines_timed_out(struct exec_req *req);

#endif
