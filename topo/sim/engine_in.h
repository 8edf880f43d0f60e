/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the engine: ranks (actors), tracks between them, events. */
#ifndef WEFT_TOPO_SIM_ENGINE_IN_H
#define WEFT_TOPO_SIM_ENGINE_IN_H

#include "topo/sim/engine.h"
#include "topo/sim/shape.h"

/* Instances that a rank looks ahead of its oldest unfinished one, as the executor does.
 */
#define ENGINE_WINDOW 256u

enum slot_flag {
	SLOT_OPEN = 1 << 0,  /* all that it waits for is done */
	SLOT_THERE = 1 << 1, /* RECV: its message has come. SEND: READY has */
	SLOT_DONE = 1 << 2,
};

/* An instance in a rank's window. */
struct slot {
	int32_t peer; /* actor */
	uint32_t step;
	uint32_t turn;	/* so many of its track came before it */
	uint16_t waits; /* dependencies that are not done */
	uint8_t flags;
	uint8_t kind;
};

/* A rank in one job. */
struct actor {
	uint64_t head; /* the oldest instance that is not done */
	uint64_t next; /* the first that is not in the window yet */
	struct slot *slot;
	struct plan *plan; /* where lengths vary, else NULL */
	int32_t *peer;	   /* by step: its rank in the job, in trip 0 */
	double busy_send, busy_work;
	uint32_t shape;
	uint32_t mask; /* of the window's slots */
	int32_t rank;  /* on the network */
	uint32_t job;
};

/* A thing in a list of a track. */
struct note {
	uint64_t number; /* of an instance, or a turn */
	uint32_t next;
};

/* Messages from one actor to another. */
struct track {
	int32_t from, to;
	uint32_t sends, recvs; /* that have been in a window */
	uint32_t queue, tail;  /* notes: sends that wait for the one under way */
	uint32_t early;	       /* notes: turns that came before their RECV was open... */
	uint32_t ready;	       /* ...and READY before the SEND was */
	uint32_t chain;	       /* of the hash table */
	bool busy;
};

/* A message under way. */
struct carried {
	uint64_t number; /* of the SEND */
	double latency;
	uint32_t track;
	uint32_t turn;
	uint32_t next; /* that is free */
};

enum event_kind { EVENT_BEGIN, EVENT_ARRIVE, EVENT_READY, EVENT_ISSUE, EVENT_WORK };

/* Of those of one moment the one that was made first comes first. */
#define EVENT_KIND_BITS 3
struct event {
	double at;
	uint64_t order; /* of making, then the kind in the lowest bits */
	uint64_t what;	/* instance or turn */
	uint32_t who;	/* actor or track */
};

/* What can begin. */
struct todo {
	uint32_t actor;
	uint64_t number;
};

struct engine {
	const struct sim_net *net;
	const struct sim_job *job;
	const struct sim_options *o;
	struct share *share;
	struct shapes shapes;
	struct actor *actor;
	uint32_t actors;
	uint32_t *job_first; /* by job: its first actor */
	uint32_t *job_left;  /* by job: ranks that are not through */
	double *job_end;
	struct event *event;
	uint32_t events, event_room;
	uint64_t event_order;
	struct track *track;
	uint32_t tracks, track_room, *track_hash;
	struct note *note;
	uint32_t notes, note_room, note_free;
	struct carried *carried;
	uint32_t carries, carry_room, carry_free;
	struct todo *todo;
	uint32_t todos, todo_room;
	double now;
	double *link_bytes; /* by shared link */
	double *port_bytes; /* by port */
	uint64_t done, all; /* instances */
	uint32_t left;	    /* actors that are not through */
	bool failed;	    /* no memory */
	struct sim_result *result;
};

/* ---- engine.c ---- */
void engine_event(struct engine *e, double at, enum event_kind kind, uint32_t who,
		  uint64_t what);
void engine_todo(struct engine *e, uint32_t actor, uint64_t number);

/* ---- actor.c ---- */
void actor_begin(struct engine *e, uint32_t actor);
/* An instance whose dependencies are done goes on. */
void actor_start(struct engine *e, uint32_t actor, uint64_t number);
void actor_done(struct engine *e, uint32_t actor, uint64_t number);
uint64_t actor_bytes(const struct engine *e, const struct actor *a, uint64_t number,
		     const struct slot *slot);

/* ---- track.c ---- */
/* SHARE_NONE: no memory. */
uint32_t track_of(struct engine *e, int32_t from, int32_t to);
void track_send(struct engine *e, uint32_t track, uint64_t number);
void track_flown(struct engine *e, uint32_t carried);
void track_arrived(struct engine *e, uint32_t track, uint32_t turn);
void track_ready(struct engine *e, uint32_t track, uint32_t turn);
/* The notes of one list have that turn: it is taken out. */
bool track_take(struct engine *e, uint32_t *list, uint32_t turn);

static inline struct slot *actor_slot(const struct actor *a, uint64_t number)
{
	return &a->slot[number & a->mask];
}

#endif
