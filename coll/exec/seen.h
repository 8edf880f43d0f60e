/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the executor writes into the flight recorder's tables: how its calls stand, and
 * what went to whom and came from whom. The one place that knows both.
 */
#ifndef WEFT_EXEC_SEEN_H
#define WEFT_EXEC_SEEN_H

#include "coll/exec/engine.h"

/* A call starts, or fails; it is over. */
void seen_call(struct exec_req *req);
void seen_failed(struct exec_req *req, int32_t culprit);
void seen_end(struct exec_req *req);
/* It is waited for: what goes by lines has a time from here on. */
void seen_dated(struct exec_req *req);
/* It has stood still: whom does it wait for? */
void seen_still(struct exec_req *req);

/* A SEND begins to be sent, with the first operation; another operation of it. */
void seen_send(struct slot *slot, uint64_t now);
void seen_put(struct slot *slot, uint64_t bytes, bool last);
void seen_message(struct slot *slot);
/* The step is done. */
void seen_step(struct slot *slot);
/* A SEND waits for its place; it is there. */
void seen_blocked(struct slot *slot);
void seen_ready(struct slot *slot);
/* A RECV was filled by a message; by a put. */
static inline void seen_received(struct slot *slot)
{
	slot->peer->seen->recvs++;
}
static inline void seen_note(struct slot *slot)
{
	slot->peer->seen->notes++;
}

/* Something else begins: registering, reducing. Until seen_stage_end(). */
static inline void seen_stage(struct exec_req *req, enum trace_stage stage)
{
	trace_stage(req->seen, stage, ticks_now(req->x->trace->counter));
}
static inline void seen_stage_end(struct exec_req *req)
{
	trace_stage_find(req->seen, ticks_now(req->x->trace->counter));
}

#endif
