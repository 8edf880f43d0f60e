/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guard: a small process that outlives a launcher that was killed by SIGKILL just
 * long enough to kill the process groups of its ranks. The ranks themselves die by
 * PR_SET_PDEATHSIG; what they have started does not inherit that.
 */
#ifndef WEFT_CLI_RUN_GUARD_H
#define WEFT_CLI_RUN_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

struct run_guard {
	pid_t pid; /* 0: there is none */
	int fd;	   /* write end of its pipe; when it closes unsaid, the guard acts */
};

/* To be called before anything is opened that the guard must not hold. A guard that
 * cannot be had is no reason not to run. */
void run_guard_init(struct run_guard *guard);

/* Stops and reaps it; it kills the groups that are still in its list. */
void run_guard_fini(struct run_guard *guard);

/* A process group exists from here on, or does not any more. */
void run_guard_add(struct run_guard *guard, pid_t group);
void run_guard_remove(struct run_guard *guard, pid_t group);

#endif
