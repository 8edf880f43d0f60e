/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subcommands of weft: one file each, one row each in the table of main.c. A command gets
 * its own arguments (argv[0] is its name) and returns the exit status: 0 good, 1
 * something was wrong, 2 wrong usage. Data goes to stdout, everything else to stderr; of
 * perf, info and check-plans the last line on stdout is one line of figures.
 */
#ifndef WEFT_CLI_CMD_H
#define WEFT_CLI_CMD_H

#include <stdbool.h>

struct cmd {
	const char *name;
	const char *what; /* one line for the overview */
	int (*run)(int argc, char **argv);
	bool signals; /* reads SIGINT and SIGTERM by itself: see entry.h */
};

extern const struct cmd cmd_table[];

int cmd_run(int argc, char **argv);
int cmd_check_plans(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_coordinator(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_topo(int argc, char **argv);

#endif
