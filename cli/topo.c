/* SPDX-License-Identifier: BSD-2-Clause */
/* weft topo: the command line. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cli/cmd.h"
#include "cli/parse.h"
#include "cli/topo.h"
#include "cli/usage.h"
#include "topo/draw/machine.h"

enum { RANKS_MAX = 4096 };

static const char help_text[] =
	"usage: weft topo [--json] [--svg FILE] [--ranks N] [--xml FILE | --sys DIR]\n"
	"\n"
	"Shows this host: NUMA nodes, cores and which of them may be used, GPUs, NICs, "
	"how\n"
	"near those are to each other on PCI express, and what follows from that for "
	"ranks:\n"
	"which GPU, which NIC, which core, and which for a progress thread. What cannot "
	"be\n"
	"found out is named.\n"
	"\n"
	"      --json      one JSON document\n"
	"      --svg FILE  draws it, too\n"
	"      --ranks N   for so many ranks; default: one for each GPU, without GPUs "
	"for\n"
	"                  each NUMA node\n"
	"      --xml FILE  instead of this host the one that hwloc wrote down (lstopo "
	"FILE)\n"
	"      --sys DIR   the one that a copy of /sys is from\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0, 1 when nothing can be found out or written, 2 for wrong "
	"usage.\n";

struct ask {
	struct host_options host;
	const char *svg;
	int64_t ranks;
	bool json;
};

static int ask_option(struct ask *ask, int c, char *const *argv)
{
	switch (c) {
	case 'j':
		ask->json = true;
		return 0;
	case 'g':
		ask->svg = optarg;
		return 0;
	case 'x':
		ask->host.xml = optarg;
		return 0;
	case 's':
		ask->host.sys = optarg;
		return 0;
	case 'n':
		if (parse_int(optarg, 1, RANKS_MAX, &ask->ranks))
			return 0;
		return usage_error("topo", "--ranks must be 1 to 4096, not", optarg);
	default:
		return usage_option("topo", c, argv);
	}
}

/* Into a file of its own name when all of it is there. */
static int draw(const struct topo *topo, const char *path)
{
	FILE *f = fopen(path, "we");
	bool good = f;

	if (f) {
		good = machine_draw(topo->host, topo->name, topo->share, topo->ranks, f);
		good = fclose(f) == 0 && good;
	}
	if (good)
		return 0;
	fprintf(stderr, "weft topo: %s cannot be written: %s\n", path, strerror(errno));
	return 1;
}

static int show(const struct ask *ask, const struct host *host)
{
	struct topo topo = {.host = host, .ranks = (unsigned)ask->ranks};
	struct host_share *share;
	struct utsname un;
	int status = 1;

	if (!topo.ranks)
		topo.ranks = host_count(host, HOST_GPU);
	if (!topo.ranks)
		topo.ranks = host->nodes ? host->nodes : 1;
	share = calloc(topo.ranks, sizeof(*share));
	topo.share = share;
	if (host->here && uname(&un) == 0)
		topo.name = un.nodename;
	if (!share || !host_shares(host, topo.ranks, share)) {
		fprintf(stderr, "weft topo: no memory\n");
	} else {
		status = ask->svg ? draw(&topo, ask->svg) : 0;
		if (ask->json)
			topo_show_json(&topo);
		else
			topo_show_text(&topo);
	}
	free(share);
	return status;
}

int cmd_topo(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"svg", required_argument, NULL, 'g'},
		{"ranks", required_argument, NULL, 'n'},
		{"xml", required_argument, NULL, 'x'},
		{"sys", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct ask ask = {.svg = NULL};
	struct host *host;
	char why[HOST_WHY];
	int c, status;

	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		status = ask_option(&ask, c, argv);
		if (status)
			return status;
	}
	if (optind != argc)
		return usage_error("topo",
				   "this argument is one too many:", argv[optind]);
	if (ask.host.xml && ask.host.sys)
		return usage_error("topo", "not together:", "--xml --sys");
	if (host_open(&ask.host, &host, why) != 0) {
		fprintf(stderr, "weft topo: %s\n", why);
		return 1;
	}
	status = show(&ask, host);
	host_close(host);
	return status;
}
