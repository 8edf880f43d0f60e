/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranks of one `weft run`: started, watched, stopped. Each rank leads a process group
 * of its own, so that stopping it stops what it started; it dies with the launcher.
 */
#ifndef WEFT_CLI_RUN_JOB_H
#define WEFT_CLI_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>

enum { RUN_RANKS_MAX = 4096 };

enum run_bind_mode { RUN_BIND_DEFAULT, RUN_BIND_CORE, RUN_BIND_NONE };

struct run_opts {
	int32_t size;
	int64_t timeout_us; /* 0: none */
	enum run_bind_mode bind;
	bool prefix;
	char **argv; /* of the program; ends with NULL */
};

/* Runs the job to its end; returns the exit status. */
int run_job(const struct run_opts *opts);

#endif
