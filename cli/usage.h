/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all commands say in the same way: wrong usage, in one line that names the command
 * and its --help, and output that could not be written.
 */
#ifndef WEFT_CLI_USAGE_H
#define WEFT_CLI_USAGE_H

/* "weft COMMAND: WHAT "VALUE"; see weft COMMAND --help". value may be NULL. Returns 2,
 * the status of wrong usage. Of the ranks of a job only rank 0 says it; the others end
 * when they are stopped, or after 10 s (usage_finish()). */
int usage_error(const char *command, const char *what, const char *value);

/* What getopt_long() refused: c is '?' or ':', which the option string asks for by its
 * first colon; opterr must be 0. Returns 2. */
int usage_option(const char *command, int c, char *const *argv);

/* To be called when all has been said on stdout. The status to exit with: the one given,
 * or 1 when something could not be written, which is said. */
int usage_finish(const char *command, int status);

#endif
