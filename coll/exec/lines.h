/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short collectives in memory that the ranks of a host share: each rank writes what it
 * has for a call into lines of its own, and all others read there. Pure: no file, no
 * clock.
 *
 * Calls of a communicator that go this way take turns, counted from 1, the same on all
 * ranks, one or several each. A rank *publishes* a turn: its data, its signature, then
 * the word that says so. It does so only when it has read all that it needs of the turn
 * before. So whoever sees turn t of a rank knows that this rank needs nothing of the
 * turns before t any more, and no acknowledgement is needed: turn t may overwrite turn t
 * - LINES_SLOTS when every rank was seen at turn t - LINES_SLOTS + 1 or later. Calls in
 * which each rank reads from all others never have to look; a broadcast may run
 * LINES_SLOTS - 1 turns ahead.
 *
 * Nothing that is read decides where or how much is read: places and lengths are those of
 * the reader's own call, and what a peer writes meanwhile changes values only.
 */
#ifndef WEFT_EXEC_LINES_H
#define WEFT_EXEC_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/plan/plan.h"

#define LINES_SLOTS 4		     /* turns that a rank can have published at a time */
#define LINES_RANKS PLAN_LINES_RANKS /* of a communicator, at most */
#define LINES_BYTES 16384	     /* that a rank publishes in a turn, at most */
#define LINES_SHORT 48		     /* bytes that lie in the line of the word itself */
#define LINES_APART 128		     /* bytes: processors fetch lines in pairs */
#define LINES_PAGE  4096
#define LINES_AREAS 256 /* communicators of a context that can have lines */

struct lines_head {
	_Atomic uint64_t word; /* call << 32 | turn; 0: nothing yet */
	uint64_t sig;
	char data[LINES_SHORT];
	char pad[LINES_APART - 16 - LINES_SHORT];
};

/* Of one rank in one communicator. Zero at first. */
struct lines_area {
	struct lines_head head[LINES_SLOTS];
	char pad[LINES_PAGE - LINES_SLOTS * LINES_APART];
	char data[LINES_SLOTS][LINES_BYTES]; /* of turns that are not short */
};

_Static_assert(sizeof(struct lines_area) == LINES_PAGE + LINES_SLOTS * LINES_BYTES,
	       "ranks that were built apart agree about where things lie");

/* A communicator as one rank has it. */
struct lines {
	struct lines_area *own;
	const struct lines_area *of[LINES_RANKS]; /* by rank, our own too */
	int32_t size, self;
	uint32_t turn; /* that we published last */
	uint32_t seen; /* every rank has published this one, or a later one */
};

/* Where the data of the next turn goes. */
void *lines_place(const struct lines *l, size_t bytes);

/* Whether the next turn's slot is free; -1, or the rank that is behind. */
int32_t lines_behind(struct lines *l);

/* After lines_behind() said -1 and the data was written. */
void lines_publish(struct lines *l, uint32_t call, uint64_t sig);

/* The last turns, so many, count for nobody who has not seen them: the call has failed
 * here, and others shall not end well by it. Nothing follows. */
void lines_withdraw(struct lines *l, uint32_t turns);

enum lines_look {
	LINES_NOT_YET,
	LINES_THERE, /* what it publishes with the same call and signature */
	LINES_OTHER, /* of another call, or with another signature: *other */
	LINES_WRONG, /* a turn that it could not be at */
};

/* Whose call it is that a rank has published. */
struct lines_call {
	uint32_t call;
	uint64_t sig;
};

/* How far the ranks of a node have each other's memory in common. */
enum lines_level {
	LINES_NONE,
	LINES_NEAR, /* the lines */
	LINES_FAR,  /* and what a caller gives can be read where it lies */
};

/* What `rank` has published for our turn `turn`, the last or one before it that we still
 * need; *data is good until we publish the next turn. */
enum lines_look lines_look(const struct lines *l, int32_t rank, uint32_t call,
			   uint64_t sig, size_t bytes, const void **data,
			   struct lines_call *other);

/* All ranks were seen at our turn. */
static inline void lines_seen(struct lines *l)
{
	l->seen = l->turn;
}

#endif
