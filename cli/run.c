/* SPDX-License-Identifier: BSD-2-Clause */
/* weft run: the command line. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/parse.h"
#include "cli/run_job.h"
#include "cli/usage.h"

static const char help_text[] =
	"usage: weft run -n N [OPTIONS] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Starts N ranks of PROGRAM on this host and waits for them. A program that opens "
	"a\n"
	"Weft context finds the other ranks through the variables WEFT_RANK, WEFT_SIZE,\n"
	"WEFT_ROOT, WEFT_ROOT_FD (rank 0) and WEFT_JOB; WEFT_LOCAL_RANK and "
	"WEFT_LOCAL_SIZE are\n"
	"set as well, and WEFT_TTY=1 where standard error is a terminal.\n"
	"\n"
	"  -n, --ranks N        how many ranks, 1 to 4096\n"
	"      --timeout SECONDS  stop everything after this time; exit status 124\n"
	"      --bind core|none   bind each rank to a core, round-robin over the cores "
	"that\n"
	"                         this process may use, or leave it to the system. "
	"Default:\n"
	"                         core when there are at most as many ranks as CPUs, "
	"else none\n"
	"      --no-prefix        ranks write straight to this command's output; without "
	"it,\n"
	"                         each line is preceded by [RANK]\n"
	"  -h, --help\n"
	"\n"
	"Rank 0 reads standard input, if that is no terminal; the others read nothing. "
	"When a\n"
	"rank fails, the others get SIGTERM and, 2 s later, SIGKILL. SIGINT, SIGTERM, "
	"SIGHUP and\n"
	"SIGQUIT are passed on to all ranks, and followed by SIGKILL after 2 s; a second "
	"one\n"
	"kills at once. What a rank left running is killed when the rank ends.\n"
	"\n"
	"Exit status: 0 when all ranks returned 0; else that of the first rank that "
	"failed,\n"
	"128 + the signal where a signal ended it, 124 after --timeout, 126 or 127 when "
	"PROGRAM\n"
	"cannot be run, 2 for wrong usage.\n";

static int wrong(const char *what, const char *value)
{
	return usage_error("run", what, value);
}

static bool parse_bind(const char *text, enum run_bind_mode *mode)
{
	*mode = strcmp(text, "core") == 0 ? RUN_BIND_CORE : RUN_BIND_NONE;
	return *mode == RUN_BIND_CORE || strcmp(text, "none") == 0;
}

int cmd_run(int argc, char **argv)
{
	enum { OPT_TIMEOUT = 256, OPT_BIND, OPT_NO_PREFIX };
	static const struct option options[] = {
		{"ranks", required_argument, NULL, 'n'},
		{"timeout", required_argument, NULL, OPT_TIMEOUT},
		{"bind", required_argument, NULL, OPT_BIND},
		{"no-prefix", no_argument, NULL, OPT_NO_PREFIX},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct run_opts opts = {.prefix = true};
	int64_t ranks;
	int c;

	optind = 0; /* glibc: start anew; '+' stops at PROGRAM */
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:n:h", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			if (!parse_int(optarg, 1, RUN_RANKS_MAX, &ranks))
				return wrong("the number of ranks must be 1 to 4096, not",
					     optarg);
			opts.size = (int32_t)ranks;
			break;
		case OPT_TIMEOUT:
			if (!parse_seconds(optarg, &opts.timeout_us))
				return wrong("--timeout must be seconds, not", optarg);
			break;
		case OPT_BIND:
			if (!parse_bind(optarg, &opts.bind))
				return wrong("--bind must be core or none, not", optarg);
			break;
		case OPT_NO_PREFIX:
			opts.prefix = false;
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		default:
			return usage_option("run", c, argv);
		}
	}
	if (opts.size == 0)
		return wrong("-n N is missing: how many ranks?", NULL);
	if (optind >= argc)
		return wrong("no PROGRAM to run", NULL);
	opts.argv = argv + optind;
	return run_job(&opts);
}
