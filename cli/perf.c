/* SPDX-License-Identifier: BSD-2-Clause */
/* weft perf: the command line, and the way through operations and sizes. */
#include "config.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/parse.h"
#include "cli/perf_report.h"
#include "coll/comm/comm.h"

#define BUDGET_US ((int64_t)20000000)
#define SIZES_MAX 64

static const char help_head[] = "usage: weft perf OPERATION|all [OPTIONS]\n"
				"\n"
				"Measures collectives on the ranks that weft run started "
				"(alone: on one rank), and\n"
				"checks the result of each on every rank. Operations:";

static const char help_text[] =
	"\n"
	"      --sizes A:B    from A to B bytes, by factors of 4, B included; K, M, G "
	"are\n"
	"                     powers of 1024. What a size means is in each table's "
	"title.\n"
	"                     Default 8:16M\n"
	"      --type T       element type, default fp32\n"
	"      --op OP        what reductions do, default sum\n"
	"      --algo NAME    this algorithm, not the library's choice\n"
	"      --in-place     all-gather and all-reduce with source and destination in "
	"one\n"
	"      --budget SECONDS   what all measurements together may take, about; "
	"default 20\n"
	"      --iters N      calls per measurement, 1 to 2000, whatever they take\n"
	"      --stats        what was moved how, per operation\n"
	"      --json         one JSON document in place of the tables\n"
	"  -h, --help\n"
	"\n"
	"A time is that of the slowest rank. Algorithm bandwidth is the call's bytes "
	"(for\n"
	"all-gather those of all ranks) per time; bus bandwidth is what of them each "
	"link must\n"
	"carry at least: 2(n-1)/n for all-reduce, (n-1)/n for all-gather, 1 for "
	"broadcast.\n"
	"Exit status: 0 good, 1 a result was wrong or a call failed, 2 wrong usage.\n";

static void help(void)
{
	puts(help_head);
	for (size_t i = 0; i < perf_op_count; i++)
		printf("  %s\n", perf_op_table[i].name);
	fputs(help_text, stdout);
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "weft perf: %s%s%s%s; see weft perf --help\n", what,
		value ? " \"" : "", value ? value : "", value ? "\"" : "");
	return 2;
}

/* ---- the command line ------------------------------------------------------------- */

static bool parse_type(const char *text, enum weft_type *type)
{
	for (int t = 0; t < WEFT_TYPE_COUNT; t++) {
		*type = (enum weft_type)t;
		if (strcmp(text, weft_type_name(*type)) == 0)
			return true;
	}
	return false;
}

static bool parse_op(const char *text, enum weft_op *op)
{
	for (int o = 0; o < WEFT_OP_COUNT; o++) {
		*op = (enum weft_op)o;
		if (strcmp(text, weft_op_name(*op)) == 0)
			return true;
	}
	return false;
}

enum {
	OPT_SIZES = 256,
	OPT_TYPE,
	OPT_OP,
	OPT_ALGO,
	OPT_IN_PLACE,
	OPT_BUDGET,
	OPT_ITERS,
	OPT_STATS,
	OPT_JSON
};

static const struct option option_table[] = {
	{"sizes", required_argument, NULL, OPT_SIZES},
	{"type", required_argument, NULL, OPT_TYPE},
	{"op", required_argument, NULL, OPT_OP},
	{"algo", required_argument, NULL, OPT_ALGO},
	{"in-place", no_argument, NULL, OPT_IN_PLACE},
	{"budget", required_argument, NULL, OPT_BUDGET},
	{"iters", required_argument, NULL, OPT_ITERS},
	{"stats", no_argument, NULL, OPT_STATS},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* One option with its value; NULL, or what is wrong. */
static const char *take_option(struct perf_opts *o, int c, const char *value)
{
	switch (c) {
	case OPT_SIZES:
		return parse_size_range(value, &o->first, &o->last) && o->first > 0 &&
				       o->last <= (uint64_t)1 << 40
			       ? NULL
			       : "--sizes must be like 8:16M, not";
	case OPT_TYPE:
		return parse_type(value, &o->type) ? NULL : "--type: there is no type";
	case OPT_OP:
		return parse_op(value, &o->op) ? NULL : "--op: there is no operation";
	case OPT_ALGO:
		o->algorithm = value;
		return NULL;
	case OPT_IN_PLACE:
		o->in_place = true;
		return NULL;
	case OPT_BUDGET:
		return parse_seconds(value, &o->budget_us)
			       ? NULL
			       : "--budget must be seconds, not";
	case OPT_ITERS:
		return parse_int(value, 1, PERF_ITERS_MAX, &o->iters)
			       ? NULL
			       : "--iters must be 1 to 2000, not";
	case OPT_STATS:
		o->stats = true;
		return NULL;
	case OPT_JSON:
		o->json = true;
		return NULL;
	default:
		return "wrong option";
	}
}

static bool op_wanted(const struct perf_opts *o, const struct perf_op *op)
{
	return strcmp(o->operation, "all") == 0 || strcmp(o->operation, op->name) == 0;
}

/* -1: go on; else the exit status. */
static int parse_args(int argc, char **argv, struct perf_opts *o)
{
	const char *wrong;
	bool known = false;
	int c;

	*o = (struct perf_opts){.first = 8,
				.last = 16 << 20,
				.budget_us = BUDGET_US,
				.type = WEFT_FP32,
				.op = WEFT_SUM,
				.argc = argc,
				.argv = argv};
	optind = 0; /* glibc: start anew */
	while ((c = getopt_long(argc, argv, "h", option_table, NULL)) != -1) {
		if (c == 'h') {
			help();
			return 0;
		}
		wrong = take_option(o, c, optarg);
		if (wrong)
			return usage_error(wrong, c == '?' ? NULL : optarg);
	}
	if (optind + 1 != argc)
		return usage_error(optind == argc ? "no OPERATION"
						  : "one OPERATION, no more:",
				   optind == argc ? NULL : argv[optind + 1]);
	o->operation = argv[optind];
	for (size_t i = 0; i < perf_op_count; i++)
		known = known || op_wanted(o, &perf_op_table[i]);
	return known ? -1 : usage_error("there is no operation", o->operation);
}

/* ---- measuring -------------------------------------------------------------------- */

/* Element counts for the sizes asked for: each at least one element, none twice. */
static int size_counts(const struct perf *p, const struct perf_op *op,
		       uint64_t counts[SIZES_MAX])
{
	const struct perf_opts *o = p->opts;
	int n = 0;

	counts[n++] = op->sized ? (o->first + p->elem - 1) / p->elem : 0;
	for (uint64_t bytes = o->first * 4; op->sized && bytes < o->last * 4;
	     bytes *= 4) {
		uint64_t count = (bytes < o->last ? bytes : o->last) / p->elem;

		if (count > counts[n - 1] && n < SIZES_MAX)
			counts[n++] = count;
	}
	return n;
}

/* Whether the operation can be run as asked; *why otherwise. */
static bool op_possible(struct perf *p, const struct perf_op *op, const char **why)
{
	uint64_t counts[SIZES_MAX];

	size_counts(p, op, counts);
	*why = perf_algorithm(p, op, counts[0]) ? "" : weft_error_detail();
	return !**why;
}

/* Sums what all ranks moved. */
static bool moved_sum(struct perf *p, struct weft_stats *sum)
{
	enum weft_result result = weft_allreduce(
		p->comm, &p->moved.calls, &sum->calls,
		(sizeof(*sum) - offsetof(struct weft_stats, calls)) / sizeof(uint64_t),
		WEFT_UINT64, WEFT_SUM, NULL);

	if (result)
		perf_say_error(p, "all-reduce of the counters", result);
	return result == WEFT_SUCCESS;
}

static bool measure_op(struct perf *p, struct perf_report *r, const struct perf_op *op)
{
	struct weft_stats sum = {.size = sizeof(sum)};
	uint64_t counts[SIZES_MAX];
	int n = size_counts(p, op, counts);

	memset(&p->moved, 0, sizeof(p->moved));
	p->moved_calls = 0;
	perf_report_op_begin(r, op);
	for (int i = 0; i < n; i++) {
		int64_t left = p->opts->budget_us - (exec_now() - p->begin_us);
		struct perf_row row;

		perf_report_progress(r, op, counts[i] * p->elem);
		if (!perf_measure(p, op, counts[i], left / (r->total - r->done), &row))
			return false;
		perf_report_row(r, &row);
	}
	if (!moved_sum(p, &sum))
		return false;
	perf_report_op_end(r, op, &sum, p->moved_calls);
	return true;
}

/* How it went; after a failed call peers may still write into our memory. */
enum outcome { GOOD, NOT_GOOD, CALL_FAILED };

static enum outcome measure_all(struct perf *p)
{
	const struct perf_opts *o = p->opts;
	bool all = strcmp(o->operation, "all") == 0, any = false;
	uint64_t counts[SIZES_MAX];
	struct perf_report report;
	const char *why = "";
	int total = 0;

	for (size_t i = 0; i < perf_op_count; i++)
		if (op_wanted(o, &perf_op_table[i]) &&
		    op_possible(p, &perf_op_table[i], &why))
			total += size_counts(p, &perf_op_table[i], counts);
	if (total == 0) {
		fprintf(stderr, "weft perf: %s\n", why);
		return NOT_GOOD;
	}
	p->begin_us = exec_now();
	perf_report_begin(&report, p, total);
	for (size_t i = 0; i < perf_op_count; i++) {
		const struct perf_op *op = &perf_op_table[i];

		if (!op_wanted(o, op))
			continue;
		if (all && !op_possible(p, op, &why)) {
			perf_report_skip(&report, op, why);
			continue;
		}
		if (!measure_op(p, &report, op))
			return CALL_FAILED;
		any = true;
	}
	perf_report_end(&report, (double)(exec_now() - p->begin_us) * 1e-6);
	return any && report.wrong == 0 ? GOOD : NOT_GOOD;
}

/* ---- begin and end ---------------------------------------------------------------- */

static bool perf_alloc(struct perf *p)
{
	size_t len = (size_t)p->opts->last + p->elem;
	size_t times = (PERF_FLAGS + PERF_ITERS_MAX) * sizeof(*p->times);
	size_t blocks = 1;

	for (size_t i = 0; i < perf_op_count; i++)
		if (op_wanted(p->opts, &perf_op_table[i]) &&
		    perf_op_table[i].dst_blocks == 0)
			blocks = (size_t)p->size;
	p->src = malloc(len);
	p->dst = len <= SIZE_MAX / blocks ? malloc(len * blocks) : NULL;
	p->times = malloc(times);
	p->all = calloc((size_t)p->size, times);
	if (p->src && p->dst && p->times && p->all)
		return true;
	fprintf(stderr,
		"weft perf: rank %" PRId32
		": no memory for %zu blocks of %zu bytes: choose "
		"smaller --sizes\n",
		p->rank, blocks + 1, len);
	return false;
}

static bool perf_open(struct perf *p, const struct perf_opts *o)
{
	enum weft_result result;

	memset(p, 0, sizeof(*p));
	p->opts = o;
	p->elem = weft_type_size(o->type);
	result = weft_ctx_open(NULL, &p->ctx);
	if (!result)
		result = weft_comm_create(p->ctx, NULL, &p->comm);
	if (result) {
		fprintf(stderr, "weft perf: %s: %s\n", weft_strerror(result),
			weft_error_detail());
		return false;
	}
	p->rank = weft_comm_rank(p->comm);
	p->size = weft_comm_size(p->comm);
	/* The public interface does not say it: here is the one look inside. */
	p->provider = exec_provider(p->ctx->exec);
	data_init(&p->data, o->type, o->op, p->size);
	return perf_alloc(p);
}

static bool perf_close(struct perf *p)
{
	enum weft_result result = WEFT_SUCCESS;

	if (p->comm)
		result = weft_comm_destroy(p->comm);
	if (!result && p->ctx)
		result = weft_ctx_close(p->ctx);
	free(p->src);
	free(p->dst);
	free(p->times);
	free(p->all);
	if (result)
		perf_say_error(p, "close", result);
	return result == WEFT_SUCCESS;
}

int cmd_perf(int argc, char **argv)
{
	struct perf *p = malloc(sizeof(*p));
	char **as_given = calloc((size_t)argc, sizeof(*as_given));
	struct perf_opts opts;
	enum outcome outcome;
	int status;

	if (!p || !as_given) {
		fprintf(stderr, "weft perf: no memory\n");
		return 1;
	}
	memcpy(as_given, argv, (size_t)argc * sizeof(*as_given)); /* getopt reorders */
	status = parse_args(argc, argv, &opts);
	opts.argv = as_given;
	if (status < 0) {
		outcome = perf_open(p, &opts) ? measure_all(p) : CALL_FAILED;
		status = outcome == GOOD ? 0 : 1;
		if (outcome == CALL_FAILED)
			return status; /* leaving the process is the only safe end */
		if (!perf_close(p))
			status = 1;
	}
	free(as_given);
	free(p);
	return status;
}
