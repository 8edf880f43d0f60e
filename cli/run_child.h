/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of one rank from fork to exec. */
#ifndef WEFT_CLI_RUN_CHILD_H
#define WEFT_CLI_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run_bind.h"

/* The same for all ranks; everything is set before the first fork. */
struct run_child_attr {
	char **argv;
	int32_t size;
	const char *root;	     /* WEFT_ROOT */
	const char *job;	     /* WEFT_JOB */
	int listen_fd;		     /* WEFT_ROOT_FD of rank 0; close-on-exec */
	const struct run_bind *bind; /* NULL: do not bind */
	const sigset_t *mask;	     /* to be restored */
	bool tty;		     /* the launcher's stderr is a terminal */
	bool stdin_tty;
};

/*
 * Starts a rank with these descriptors as its stdout and stderr (-1: inherited). Waits
 * until it has exec'ed. Returns its process id, or -1 with errno and *what saying which
 * step failed (static storage).
 */
pid_t run_child_start(const struct run_child_attr *attr, int32_t rank, int out_fd,
		      int err_fd, const char **what);

#endif
