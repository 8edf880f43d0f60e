/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of weft sim. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"
#include "cli/sim.h"
#include "cli/usage.h"

enum {
	OPT_ALGORITHM = 256,
	OPT_RANKS,
	OPT_BYTES,
	OPT_FABRIC,
	OPT_PLACEMENT,
	OPT_SEED,
	OPT_EAGER,
	OPT_CHUNK,
	OPT_GAP,
	OPT_WORK,
	OPT_SLOW,
	OPT_DEAD,
	OPT_LATE,
	OPT_LAG,
	OPT_ON,
	OPT_GROUPS,
	OPT_STRIDED,
	OPT_ALSO,
	OPT_JSON,
	OPT_SHAPE,
	OPT_LAYERS,
	OPT_BUCKET,
	OPT_SHARDED,
	OPT_PREFETCH,
	OPT_CSV,
	OPT_SVG,
	OPT_EXPLAIN,
	OPT_FULL
};

static const char help_text[] =
	"usage: weft sim OPERATION --ranks N --bytes B --fabric FILE [OPTIONS]\n"
	"       weft sim step --layers FILE --ranks N --fabric FILE [--bucket B | "
	"--sharded "
	"[--prefetch N]]\n"
	"\n"
	"How long a collective takes on a network that a fabric map describes: the plans "
	"that\n"
	"the library runs, message by message, with links shared fairly.\n"
	"\n"
	"      --ranks N[,N...]       how many ranks\n"
	"      --bytes B[,B...]       of the vector (allreduce, broadcast, reduce), else "
	"of "
	"a\n"
	"                             rank's block: 64K, 140G\n"
	"      --fabric FILE          the map, with tiers\n"
	"      --algorithm A[,A...]   or all; default: the library's choice\n"
	"      --placement P          packed (default), scattered, rails\n"
	"      --seed S               of scattered; default 1\n"
	"      --eager B              messages of more bytes wait until their place is "
	"free;\n"
	"                             default 16K\n"
	"      --chunk B              pieces of a pipeline; default: the algorithm's "
	"own\n"
	"      --gap US               microseconds that each message takes its sender; "
	"default 0\n"
	"      --work RATE            bytes that a rank adds or copies in a second, as "
	"in "
	"10G;\n"
	"                             default: that takes no time\n"
	"      --slow NAME=PART       that has that part of its rate: a host's ports, or "
	"what\n"
	"                             weft(1) names: HOST, HOST:RAIL, PLACE, "
	"PLACE:RAIL,\n"
	"                             PLACE:PLACE; 32 times at most, with --dead\n"
	"      --dead NAME            that is gone around where there is a way; dead "
	"hosts "
	"have\n"
	"                             no ranks\n"
	"      --shape AxB[xC]        of the job's hosts, where a tier is an optical "
	"torus\n"
	"      --late RANK=US         the rank begins that much later\n"
	"      --lag RANK=FACTOR      its --gap and --work take so many times as long; "
	"16 "
	"times\n"
	"                             at most, with --late\n"
	"      --on FIRST-LAST[/STEP] of all ranks only those\n"
	"      --groups N             in N groups at once, of ranks that are neighbours\n"
	"      --strided N            the same, of ranks that are N apart\n"
	"      --also "
	"OPERATION,bytes=B[,algorithm=A][,ranks=FIRST-LAST[/STEP]][,begin=US]"
	"[,chunk=B]\n"
	"                             at the same time; 16 times at most\n"
	"      --layers FILE          a list of layers: a step of training over them, "
	"whose\n"
	"                             collectives overlap with computing\n"
	"      --bucket B             gradients are reduced that many bytes at a time; "
	"default 32M;\n"
	"                             0: layer by layer\n"
	"      --sharded              parameters are gathered, and gradients scattered, "
	"layer by\n"
	"                             layer\n"
	"      --prefetch N           gathered so many layers ahead; default 1\n"
	"      --csv FILE             one line for each result\n"
	"      --json                 one JSON document in place of the table\n"
	"      --svg FILE             times against ranks, or bytes where those are one "
	"number\n"
	"      --full                 message by message also where a ring's symmetry "
	"would do\n"
	"      --explain              tiers, what they carry, what limits\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0, 1 when it cannot be simulated, 2 for wrong usage.\n";

static int wrong(const char *what, const char *value)
{
	return usage_error("sim", what, value);
}

static int ranks_parse(struct sim_ask *ask, char *text)
{
	for (char *item; (item = sim_item(&text));) {
		int64_t n;

		if (ask->ranks_count == SIM_LIST_MAX)
			return wrong("--ranks has at most 32 numbers; one too many is",
				     item);
		if (!parse_int(item, 1, SIM_RANKS_MAX, &n))
			return wrong("--ranks must be 1 to 16777216, not", item);
		ask->ranks[ask->ranks_count++] = (int32_t)n;
	}
	return 0;
}

static int bytes_parse(struct sim_ask *ask, char *text)
{
	for (char *item; (item = sim_item(&text));) {
		if (ask->bytes_count == SIM_LIST_MAX)
			return wrong("--bytes has at most 32 numbers; one too many is",
				     item);
		if (!parse_size(item, &ask->bytes[ask->bytes_count]) ||
		    ask->bytes[ask->bytes_count] > UINT64_C(1) << 50)
			return wrong("--bytes must be like 64K, up to 1048576G, not",
				     item);
		ask->bytes_count++;
	}
	return 0;
}

/* Of one operation; those that cannot do a number of ranks are left out later. */
static int algos_parse(struct sim_ask *ask, char *text)
{
	char list[512];

	if (strcmp(text, "all") == 0) {
		for (size_t i = 0; i < algo_count && ask->algos < SIM_LIST_MAX; i++)
			if (strcmp(algo_table[i].coll, ask->coll) == 0)
				ask->algo[ask->algos++] = &algo_table[i];
		return 0;
	}
	for (char *item; (item = sim_item(&text));) {
		const struct algo *algo = algo_find(ask->coll, item);

		if (!algo) {
			algo_list(ask->coll, list, sizeof(list));
			fprintf(stderr,
				"weft sim: %s has no algorithm \"%s\"; there are: %s\n",
				ask->coll, item, list);
			return 2;
		}
		if (ask->algos == SIM_LIST_MAX)
			return wrong("--algorithm has at most 32 names; one too many is",
				     item);
		ask->algo[ask->algos++] = algo;
	}
	return 0;
}

static int placement_parse(struct sim_ask *ask, const char *text)
{
	for (unsigned p = 0; p < SIM_PLACEMENTS; p++) {
		if (strcmp(text, sim_placement_name((enum sim_placement)p)) == 0) {
			ask->placement = (enum sim_placement)p;
			return 0;
		}
	}
	return wrong("--placement is packed, scattered or rails, not", text);
}

static int groups_parse(struct sim_ask *ask, const char *text, bool strided)
{
	int64_t n;

	if (ask->groups)
		return wrong("--groups or --strided can be given once; one too many is",
			     text);
	if (!parse_int(text, 1, SIM_GROUPS_MAX, &n))
		return wrong("--groups and --strided must be 1 to 65536, not", text);
	ask->groups = (int32_t)n;
	ask->strided = strided;
	return 0;
}

/* Options that say what is not as it should be, and what else runs. -1: none of those. */
static int more_parse(struct sim_ask *ask, int opt, char *text)
{
	int64_t ahead;

	switch (opt) {
	case OPT_SLOW:
	case OPT_DEAD:
		return sim_fault_parse(ask, text, opt == OPT_DEAD);
	case OPT_LATE:
	case OPT_LAG:
		return sim_late_parse(ask, text, opt == OPT_LAG);
	case OPT_ALSO:
		return sim_also_parse(ask, text);
	case OPT_ON:
		return sim_some_parse(&ask->on, "--on", text);
	case OPT_SHAPE:
		return fabric_torus_take(text, strlen(text), ask->shape)
			       ? 0
			       : wrong("--shape must be like 4x4x2, each 2 or more, up "
				       "to 65536 in all and 32 links of the longest "
				       "way, not",
				       text);
	case OPT_LAYERS:
		ask->layers = text;
		return 0;
	case OPT_BUCKET:
		ask->bucketed = true;
		return parse_size(text, &ask->bucket)
			       ? 0
			       : wrong("--bucket must be like 32M, not", text);
	case OPT_SHARDED:
		ask->sharded = true;
		return 0;
	case OPT_PREFETCH:
		if (!parse_int(text, 0, LAYERS_MAX, &ahead))
			return wrong("--prefetch must be 0 to 65536 layers, not", text);
		ask->prefetch = (uint32_t)ahead;
		ask->prefetched = true;
		return 0;
	case OPT_GROUPS:
	case OPT_STRIDED:
		return groups_parse(ask, text, opt == OPT_STRIDED);
	default:
		return -1;
	}
}

static int option_parse(struct sim_ask *ask, int opt, char *text, char **algorithms)
{
	uint64_t work;
	int64_t seed;

	switch (opt) {
	case OPT_ALGORITHM:
		*algorithms = text;
		return 0;
	case OPT_RANKS:
		return ranks_parse(ask, text);
	case OPT_BYTES:
		return bytes_parse(ask, text);
	case OPT_FABRIC:
		ask->fabric = text;
		return 0;
	case OPT_PLACEMENT:
		return placement_parse(ask, text);
	case OPT_SEED:
		if (!parse_int(text, 1, INT64_MAX, &seed))
			return wrong("--seed must be a whole number above 0, not", text);
		ask->seed = (uint64_t)seed;
		return 0;
	case OPT_EAGER:
		return parse_size(text, &ask->eager)
			       ? 0
			       : wrong("--eager must be like 16K, not", text);
	case OPT_CHUNK:
		return parse_size(text, &ask->chunk) && ask->chunk
			       ? 0
			       : wrong("--chunk must be like 64K, not", text);
	case OPT_GAP:
		if (!sim_number(text, 0, 1e6, &ask->gap))
			return wrong("--gap must be microseconds up to 1000000, not",
				     text);
		ask->gap *= 1e-6;
		return 0;
	case OPT_WORK:
		if (!parse_size(text, &work) || !work)
			return wrong("--work must be like 10G, not", text);
		ask->work = (double)work;
		return 0;
	case OPT_SVG:
		ask->svg = text;
		return 0;
	case OPT_CSV:
		ask->csv = text;
		return 0;
	case OPT_FULL:
		ask->full = true;
		return 0;
	case OPT_JSON:
		ask->json = true;
		return 0;
	case OPT_EXPLAIN:
		ask->explain = true;
		return 0;
	default:
		return more_parse(ask, opt, text);
	}
}

static int operation_parse(struct sim_ask *ask, int argc, char **argv)
{
	char list[512] = "";
	size_t used = 0;

	if (optind >= argc)
		return wrong("an operation is missing, as in weft sim allreduce", NULL);
	if (optind + 1 < argc)
		return wrong("this argument is one too many:", argv[optind + 1]);
	ask->coll = argv[optind];
	if (strcmp(ask->coll, "step") == 0)
		return 0;
	for (size_t i = 0; i < algo_count; i++) {
		if (strcmp(algo_table[i].coll, ask->coll) == 0 && !algo_table[i].vector)
			return 0;
		if (algo_table[i].vector ||
		    (i && strcmp(algo_table[i].coll, algo_table[i - 1].coll) == 0))
			continue;
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", algo_table[i].coll);
	}
	fprintf(stderr,
		"weft sim: \"%s\" is no operation that it knows; there are: %s, step\n",
		ask->coll, list);
	return 2;
}

static int complete(struct sim_ask *ask)
{
	const bool step = strcmp(ask->coll, "step") == 0;
	const bool empty = step || strcmp(ask->coll, "barrier") == 0;
	int status = step ? sim_step_check(ask) : -1;

	if (status >= 0)
		return status;
	if (!step && (ask->layers || ask->bucketed || ask->sharded || ask->prefetched))
		return wrong("--layers, --bucket, --sharded and --prefetch are for weft "
			     "sim step",
			     NULL);

	if (!ask->ranks_count)
		return wrong("--ranks is missing, as in --ranks 1024", NULL);
	if (!ask->bytes_count && !empty)
		return wrong("--bytes is missing, as in --bytes 1M", NULL);
	if (!ask->bytes_count)
		ask->bytes[ask->bytes_count++] = 0;
	if (!ask->fabric)
		return wrong("--fabric is missing: a map of the network, as README.md of "
			     "topo/fabric describes",
			     NULL);
	if (ask->on.step && ask->groups)
		return wrong("--on and --groups or --strided cannot be given together",
			     NULL);
	for (unsigned i = 0; i < ask->late_count; i++) {
		if (!step && ask->late[i].factor > 1 && ask->gap <= 0 && ask->work <= 0)
			return wrong("--lag needs --gap or --work: without those, ranks "
				     "take no time of their own",
				     NULL);
		for (unsigned j = 0; j < ask->ranks_count; j++)
			if (ask->late[i].rank >= ask->ranks[j])
				return wrong("--late and --lag must name ranks that "
					     "there are, 0 to --ranks less one",
					     NULL);
	}
	return -1;
}

int sim_args(struct sim_ask *ask, int argc, char **argv)
{
	static const struct option longs[] = {
		{"algorithm", required_argument, NULL, OPT_ALGORITHM},
		{"ranks", required_argument, NULL, OPT_RANKS},
		{"bytes", required_argument, NULL, OPT_BYTES},
		{"fabric", required_argument, NULL, OPT_FABRIC},
		{"placement", required_argument, NULL, OPT_PLACEMENT},
		{"seed", required_argument, NULL, OPT_SEED},
		{"eager", required_argument, NULL, OPT_EAGER},
		{"chunk", required_argument, NULL, OPT_CHUNK},
		{"gap", required_argument, NULL, OPT_GAP},
		{"work", required_argument, NULL, OPT_WORK},
		{"slow", required_argument, NULL, OPT_SLOW},
		{"dead", required_argument, NULL, OPT_DEAD},
		{"late", required_argument, NULL, OPT_LATE},
		{"lag", required_argument, NULL, OPT_LAG},
		{"on", required_argument, NULL, OPT_ON},
		{"groups", required_argument, NULL, OPT_GROUPS},
		{"strided", required_argument, NULL, OPT_STRIDED},
		{"also", required_argument, NULL, OPT_ALSO},
		{"json", no_argument, NULL, OPT_JSON},
		{"shape", required_argument, NULL, OPT_SHAPE},
		{"layers", required_argument, NULL, OPT_LAYERS},
		{"bucket", required_argument, NULL, OPT_BUCKET},
		{"sharded", no_argument, NULL, OPT_SHARDED},
		{"prefetch", required_argument, NULL, OPT_PREFETCH},
		{"csv", required_argument, NULL, OPT_CSV},
		{"svg", required_argument, NULL, OPT_SVG},
		{"explain", no_argument, NULL, OPT_EXPLAIN},
		{"full", no_argument, NULL, OPT_FULL},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	char *algorithms = NULL;
	int opt, status;

	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		status = opt < OPT_ALGORITHM
				 ? usage_option("sim", opt, argv)
				 : option_parse(ask, opt, optarg, &algorithms);
		if (status)
			return status;
	}
	status = operation_parse(ask, argc, argv);
	if (!status && algorithms && strcmp(ask->coll, "step") == 0)
		ask->step_algorithm = algorithms;
	else if (!status && algorithms)
		status = algos_parse(ask, algorithms);
	return status ? status : complete(ask);
}
