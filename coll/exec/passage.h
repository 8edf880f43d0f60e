/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a call in a stream of the caller: the call does not begin before the
 * stream has come there, and the stream does not go on before the call is over. Passages
 * of one stream open in its order; one whose call failed early opens when those before it
 * are over, which the stream would have waited for in any case.
 */
#ifndef WEFT_EXEC_PASSAGE_H
#define WEFT_EXEC_PASSAGE_H

#include "gpu/gate.h"
#include "util/list.h"
#include "weft/weft.h"

struct exec;
struct exec_req;
struct gpus;

/* The passages of one stream. */
struct stream_gate {
	struct list link; /* gpus.gates */
	struct gate gate;
	int32_t device;
	void *stream;
	void *memory;		/* pinned: the words of the gate, and... */
	_Atomic uint64_t *left; /* ...the number of the last that the stream has left */
	uint64_t issued;
	struct list passages; /* in the stream's order */
	struct list idle;
};

struct passage {
	struct list link; /* stream_gate.passages or idle */
	struct stream_gate *gate;
	struct exec_replay *replay; /* in place of the gate; NULL: none */
	uint64_t n;
	bool over;
};

/* A place in a stream that became part of a graph: each launch of the graph comes there,
 * and begin() starts the call, with the passage, or closes that. */
struct exec_replay {
	struct list link; /* exec.replays */
	struct gate gate;
	void *words; /* pinned */
	struct passage passage;
	bool taken; /* the graph is there, and not let go */
	_Atomic bool gone;
	void (*begin)(void *arg);
	void *arg;
};

/* Puts one on the stream, of a device that is there. DEVICE, UNSUPPORTED, NOMEM. */
enum weft_result passage_open(struct exec *x, int32_t device, void *stream,
			      struct passage **passage);
/* The call is over, well or not: the passage is gone. */
void passage_close(struct passage *passage);

/* The stream is there. */
static inline bool passage_is_reached(const struct passage *passage)
{
	return passage->replay || gate_arrived(&passage->gate->gate) >= passage->n;
}

/* Begins the calls of graphs that have come to theirs; true when there was one. */
bool replays_run(struct exec *x);

/* The request is over as its stream sees it, which goes on. */
void req_pass_on(struct exec_req *req);
/* The same, of one that failed, once none of its copies go on. */
void req_let_stream(struct exec_req *req);

/* When all are closed. False: a stream has not left its last one after a while, so that
 * its words have to stay, and the backend. */
bool passages_close(struct gpus *gpus);

#endif
