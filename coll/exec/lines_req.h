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
	struct list queue;	/* requests by turn; the first may be published */
	bool broken;		/* one of them failed: none behind it can be done */
	bool ahead;		/* the next one has begun, see lines_quick.c: */
	struct exec_req *quick; /* what there is of it; NULL: nothing begins there */
};

void lines_comm_close(struct exec_comm *comm);

/* Whether a call that starts goes this way; and how much memory of ours it needs. */
bool lines_take(const struct exec *x, const struct exec_call *call);
size_t lines_scratch(const struct exec *x, const struct exec_call *call);

/* What req_run() is for others: true when something moved. */
bool lines_run(struct exec_req *req);
/* The request has begun; true: a part of it is done, and the flight recorder has it. It
 * is done or has failed. */
bool lines_begin(struct exec_req *req);
void lines_end(struct exec_req *req);

/* The rank of the communicator that a request reads as its k-th one. */
static inline int32_t lines_rank(const struct exec_req *req, int32_t k)
{
	const int32_t rank = req->line.first + k, size = req->line.el->lines.size;

	return rank < size ? rank : rank - size;
}

/* Where this rank's own contribution lies: a broadcast has one buffer. */
static inline const void *lines_source(const struct exec_req *req)
{
	return req->buf[PLAN_SRC] ? req->buf[PLAN_SRC] : req->buf[PLAN_DST];
}

/* Rank of the context that the request waits for, or -1; whether for this one. */
int32_t lines_waits_for(const struct exec_req *req);
bool lines_needs(const struct exec_req *req, int32_t rank);
/* Asks all whom the request waits for what they do. */
void lines_probe(struct exec_req *req);
/* Sends to all other ranks of the communicator. */
void lines_tell(struct exec_req *req, struct ctl_msg *msg);
/* Whether a call works in these bytes, for which nothing is registered. */
bool lines_hold(const struct exec *x, const void *addr, size_t len);
/* Its deadline has passed. */
void lines_timed_out(struct exec_req *req);

#endif
