/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests whose buffers lie in device memory. Their plans run on mirrors: pinned host
 * memory as long as the buffers. What steps touch of the source comes there first (a
 * *fill*), what they have written of the destination goes back (a *drain*), both piece by
 * piece by copy engines, while other pieces are on their way; a step waits for the fills
 * that it needs and for nothing else. So every algorithm, operation and provider works on
 * device memory as it does on host memory, peers write mirrors only (rule D3), and
 * nothing of a device is touched but what the call may read and write.
 *
 * What is filled is cut into grains, each filled once, before the first step that reads
 * or writes any of it: so in place no fill comes over what a step has written. What is
 * drained is cut into grains as well where every byte of the destination is the result's:
 * a grain goes back when the last step that writes any of it is done. Where blocks have
 * room between them, which must stay as it is, each step's own ranges go back. Short
 * calls, and those that go by lines, are filled as a whole before they begin, and drained
 * as a whole at their end.
 */
#ifndef WEFT_EXEC_MIRROR_H
#define WEFT_EXEC_MIRROR_H

#include "coll/exec/exec.h"
#include "coll/exec/gpus.h"
#include "util/list.h"

struct exec_req;
struct slot;

/* A buffer of the caller in device memory. */
struct mirror_side {
	int32_t device; /* -1: there is none, or it is host memory */
	char *user;
	char *memory; /* its mirror, of which... */
	size_t len;   /* ...so much is its */
	struct pinned *pinned;
	struct gpu_queue *queue; /* of fills (source), of drains (destination) */
	size_t grain;
	size_t grains;
};

/* Of a call that is started many times, one start at a time. */
struct exec_kept {
	struct pinned *side[2]; /* in place: the first is both */
};

struct mirror {
	struct mirror_side side[2]; /* PLAN_SRC, PLAN_DST */
	bool in, out;		    /* the source is read; the destination is written */
	bool whole;	  /* filled before the first step, drained after the last */
	bool sparse;	  /* there is room between blocks */
	bool shared;	  /* the call is in place: both sides are in one mirror */
	bool filled;	  /* all of it was asked for */
	bool ending;	  /* the steps are done */
	bool flies;	  /* it failed, and copies go on: counted in req->ops */
	bool late;	  /* some grains wait for fills before they are drained */
	uint64_t *fill;	  /* by grain of the source: number in the queue, 0: not asked */
	uint32_t *writes; /* by grain of the destination: steps that will write there */
	size_t fill_max, writes_max;
	uint64_t asked;	     /* number of the last fill; 0: none was made */
	uint64_t seen;	     /* fills that were done when we looked last */
	uint64_t drained;    /* number of the last drain in its queue; 0: none was made */
	struct list waiting; /* slots that wait for fills */
	char fault[256];     /* of the device, when it was found; "": none */
};

/* Takes mirrors for the call and puts them in place of its buffers; *mirror is made where
 * there is none. NOMEM, BUSY, DEVICE. */
enum weft_result mirror_open(struct exec_req *req, const struct exec_call *call);
/* Gives them back; nothing uses them any more. */
void mirror_close(struct exec_req *req);
void mirror_free(struct mirror *mirror);

/* What was copied is there: lets those go on that have waited. True when something moved.
 * Ends the request once its steps and drains are done. */
bool mirror_run(struct exec_req *req);
/* Whether steps, or lines, may begin. */
bool mirror_is_open(struct exec_req *req);
/* A slot was admitted: makes it wait for fills of what it touches. */
void mirror_admit(struct slot *slot);
/* A slot is done: what it has written goes back. */
void mirror_written(struct slot *slot);
/* All steps are done. The request ends when the results are there. */
void mirror_end(struct exec_req *req);
/* The request failed: it may not end, nor its stream go on, before its copies have. */
void mirror_fail(struct exec_req *req);
/* Nothing has moved for a while: asks whether the device still works. */
void mirror_check(struct exec_req *req);

#endif
