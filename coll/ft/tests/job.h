/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job for tests: a coordinator and members, a process each, which run steps that
 * compute nothing. What they do and are told lies in memory that all share; the test
 * itself has no threads, waits for events, and gives up after JOB_WAIT_S.
 */
#ifndef WEFT_FT_TESTS_JOB_H
#define WEFT_FT_TESTS_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coll/ft/link.h"
#include "coll/ft/server.h"

enum { JOB_MEMBERS = 12, JOB_COORDS = 3, JOB_STEPS = 4096, JOB_WAIT_S = 60 };

/* One writer each: the member's process, but for orders. */
struct job_member {
	pid_t pid; /* the test's */
	uint64_t id;
	_Atomic uint64_t joined, runs, stops, step, fenced; /* joined: 1 + step then */
	_Atomic uint32_t reason, live, count;		    /* count: of the last RUN */
	_Atomic uint64_t connects;
	/* Of each step that counted: epoch and how many contributed. */
	struct {
		uint64_t term, seq, live;
	} counted[JOB_STEPS];
	/* orders */
	_Atomic uint64_t until; /* begins steps up to this one */
	atomic_bool hold;	/* stays within a step, until told to stop */
	atomic_bool fail;	/* says that the next step was not good, once */
	_Atomic uint64_t suspect;
	atomic_bool leave;
};

struct job_coord {
	pid_t pid;
	char address[FT_SERVER_ADDRESS];
	char state[300];
	_Atomic int up; /* 1: it serves; else negative errno */
	char why[FT_SERVER_WHY];
	struct ft_server_attr attr; /* what may be changed before job_coord_start() */
	/* what it says of itself, again and again */
	_Atomic uint32_t is, members, conns;
	_Atomic uint64_t refused, slow;
	_Atomic uint64_t turns; /* of saying so */
};

struct job {
	char folder[200];
	uint8_t secret[FT_JOB_LEN];
	char names[256]; /* of all coordinators */
	struct job_coord coord[JOB_COORDS];
	struct job_member member[JOB_MEMBERS];
};

struct job *job_make(uint32_t size); /* bails out where there is none */
void job_end(struct job *job);	     /* kills what runs */

/* Listens where it listened before, or anywhere. False: it did not come up; why says. */
bool job_coord_start(struct job *job, int coord, bool first);
void job_coord_kill(struct job *job, int coord);
/* What it ended with: 0, or a negative errno. Waits for that. */
int job_coord_wait(struct job *job, int coord);
/* Takes its file away. */
void job_coord_forget(struct job *job, int coord);

void job_member_start(struct job *job, int member, uint64_t sign);
void job_member_kill(struct job *job, int member);

/* Lets these members, a bit each, run steps up to `step`. */
void job_run(struct job *job, uint32_t members, uint64_t step);
/* They have. */
bool job_ran(struct job *job, uint32_t members, uint64_t step);
/* Waits until *value is at least `least`; false: not in time. */
bool job_wait(const _Atomic uint64_t *value, uint64_t least);

/* Whether all who counted a step counted the same, and as many as the live count says
 * but those that died. */
bool job_agrees(const struct job *job);

/* Everybody leaves; the coordinator ends. */
bool job_leave(struct job *job, uint32_t members, int coord);

#endif
