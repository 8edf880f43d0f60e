/* SPDX-License-Identifier: BSD-2-Clause */
/* See usage.h. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/usage.h"

#define SILENT_MS 10000

static bool is_spokesman(void)
{
	const char *rank = getenv("WEFT_RANK");

	return !rank || strcmp(rank, "0") == 0;
}

int usage_error(const char *command, const char *what, const char *value)
{
	if (is_spokesman())
		fprintf(stderr, "weft %s: %s%s%s%s; see weft %s --help\n", command, what,
			value ? " \"" : "", value ? value : "", value ? "\"" : "",
			command);
	return 2;
}

int usage_option(const char *command, int c, char *const *argv)
{
	const char *given = argv[optind - 1];
	char letter[] = {'-', (char)optopt, '\0'};

	/* For a long option that exists optopt is its value, above every letter. */
	if (optopt > 0 && optopt < 256 && strncmp(given, "--", 2) != 0)
		given = letter;
	if (c == ':')
		return usage_error(command, "a value must follow the option", given);
	if (optopt && strncmp(given, "--", 2) == 0)
		return usage_error(command, "no value belongs to the option", given);
	return usage_error(command, "there is no option", given);
}

/* The launcher stops all ranks when the first has failed: who has nothing to say leaves
 * that to rank 0, which else might be stopped before it has said what is wrong. */
static void leave_to_spokesman(void)
{
	if (!is_spokesman())
		poll(NULL, 0, SILENT_MS);
}

int usage_finish(const char *command, int status)
{
	bool failed;

	if (status == 2)
		leave_to_spokesman();
	errno = 0;
	failed = fflush(stdout) != 0 || ferror(stdout);
	/* What failed may have been written long ago, with nothing left to write now, and
	 * its cause is gone: one byte more meets it again. */
	if (failed && !errno && putchar('\n') != EOF)
		fflush(stdout);
	/* Some file systems tell only now. Nothing was written where it was closed. */
	if (close(STDOUT_FILENO) != 0 && errno != EBADF)
		failed = true;
	if (!failed)
		return status;
	fprintf(stderr, "weft %s: write error%s%s\n", command, errno ? ": " : "",
		errno ? strerror(errno) : "");
	return status ? status : 1;
}
