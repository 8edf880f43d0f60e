/* SPDX-License-Identifier: BSD-2-Clause */
/* The weft command: finds the subcommand and hands over. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/entry.h"
#include "cli/place.h"
#include "cli/usage.h"

const struct cmd cmd_table[] = {
	{"run", "start the ranks of a program on this host", cmd_run, true},
	{"check-plans", "prove every algorithm's plans at many sizes", cmd_check_plans,
	 false},
	{"perf", "measure collectives, and check their results", cmd_perf, false},
	{"tune", "measure algorithms, and write which are the fastest", cmd_tune, false},
	{"coordinator", "decide who takes part in a fault-tolerant job", cmd_coordinator,
	 true},
	{"trace", "show what flight recorders wrote", cmd_trace, false},
	{"stat", "how running processes stand, and who holds those that hang", cmd_stat,
	 false},
	{"plot", "draw what weft perf --json measured", cmd_plot, false},
	{"sim", "how long a collective takes on a network that a map describes", cmd_sim,
	 false},
	{"topo", "this host's cores, GPUs and NICs, and which for which rank", cmd_topo,
	 false},
	{"doctor", "what of this host, or of a job's hosts, is not as it should be",
	 cmd_doctor, false},
	{"info", "what this build can do on this host", cmd_info, false},
	{NULL, NULL, NULL, false},
};

static void usage(FILE *out)
{
	fprintf(out,
		"weft %s\n"
		"usage: weft COMMAND [ARGUMENTS]; weft COMMAND --help or weft help "
		"COMMAND\n\n",
		PACKAGE_VERSION);
	for (const struct cmd *c = cmd_table; c->name; c++)
		fprintf(out, "  %-12s %s\n", c->name, c->what);
}

static const struct cmd *cmd_find(const char *name)
{
	for (const struct cmd *c = cmd_table; c->name; c++)
		if (strcmp(name, c->name) == 0)
			return c;
	fprintf(stderr, "weft: there is no command \"%s\"; those there are:\n", name);
	usage(stderr);
	return NULL;
}

/* weft help [COMMAND] */
static int help(int argc, char **argv)
{
	char option[] = "--help";
	char *for_cmd[] = {argv[argc - 1], option, NULL};
	const struct cmd *c;

	if (argc < 2) {
		usage(stdout);
		return 0;
	}
	if (argc > 2) {
		fprintf(stderr, "weft help: one COMMAND, no more: \"%s\"\n", argv[2]);
		return 2;
	}
	c = cmd_find(argv[1]);
	return c ? c->run(2, for_cmd) : 2;
}

int main(int argc, char **argv)
{
	const struct cmd *c;

	entry_descriptors();
	place_provider();
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		entry_signals_release();
		return usage_finish("help", help(argc - 1, argv + 1));
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("weft %s\n", PACKAGE_VERSION);
		return usage_finish("--version", 0);
	}
	c = cmd_find(argv[1]);
	if (!c)
		return 2;
	if (!c->signals)
		entry_signals_release();
	return usage_finish(c->name, c->run(argc - 1, argv + 1));
}
