/* SPDX-License-Identifier: BSD-2-Clause */
/* The weft command: finds the subcommand and hands over. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

const struct cmd cmd_table[] = {
	{"run", "start the ranks of a program on this host", cmd_run},
	{"check-plans", "prove every algorithm's plans at many sizes", cmd_check_plans},
	{"perf", "measure collectives, and check their results", cmd_perf},
	{"info", "what this build can do on this host", cmd_info},
	{NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fprintf(out, "weft %s\nusage: weft COMMAND [ARGUMENTS]; weft COMMAND --help\n\n",
		PACKAGE_VERSION);
	for (const struct cmd *c = cmd_table; c->name; c++)
		fprintf(out, "  %-12s %s\n", c->name, c->what);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("weft %s\n", PACKAGE_VERSION);
		return 0;
	}
	for (const struct cmd *c = cmd_table; c->name; c++) {
		if (strcmp(argv[1], c->name) == 0)
			return c->run(argc - 1, argv + 1);
	}
	fprintf(stderr, "weft: no command \"%s\"\n", argv[1]);
	usage(stderr);
	return 2;
}
