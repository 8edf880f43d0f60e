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
#include "cli/perf_stages.h"
#include "cli/usage.h"
#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/trace/recorder.h"

#define BUDGET_US ((int64_t)20000000)
#define SIZES_MAX 64
#define SIZE_LAST ((uint64_t)1 << 40)

static const char help_head[] = "usage: weft perf OPERATION|all [OPTIONS]\n"
				"\n"
				"Measures collectives on the ranks that weft run started "
				"(alone: on one rank), and\n"
				"checks the result of each on every rank. Operations "
				"(all: those without\n"
				"counts; allv: those whose blocks have counts, which are "
				"all the same here):";

static const char help_text[] =
	"\n"
	"      --sizes A:B    from A to B bytes, by factors of 4, B included; K, M, G "
	"are\n"
	"                     powers of 1024. Multiples of an element. What a size "
	"means is\n"
	"                     in each table's title.\n"
	"                     Default 8:16M, up to 1024G\n"
	"      --type T       element type, default fp32\n"
	"      --op OP        what reductions do, default sum\n"
	"      --algo NAME    this algorithm, not the library's choice\n"
	"      --memory M     host, the default, or cuda: of GPUs, which the ranks of "
	"a\n"
	"                     host take in turn\n"
	"      --in-place     source and destination in one, where they can be\n"
	"      --budget SECONDS   what all measurements together may take, about; "
	"default 20\n"
	"      --iters N      calls per measurement, 1 to 2000, whatever they take\n"
	"      --explain      why each algorithm was chosen, behind its row\n"
	"      --overlap      how much of a call passes while its caller computes, with "
	"a\n"
	"                     progress thread (WEFT_PROGRESS_CPUS says where)\n"
	"      --breakdown    what a call is spent on: control messages, issuing, "
	"waiting\n"
	"      --stats        what was moved how, per operation\n"
	"      --json         one JSON document in place of the tables\n"
	"  -h, --help\n"
	"\n"
	"A time is that of the slowest rank; rank 0 is the root. Algorithm bandwidth is "
	"the\n"
	"call's bytes (of all blocks, where there is one per rank) per time; bus "
	"bandwidth is\n"
	"what of them each link must carry at least: 2(n-1)/n for all-reduce, 1 for "
	"broadcast\n"
	"and reduce, (n-1)/n for the others.\n"
	"Exit status: 0 good, 1 a result was wrong or a call failed, 2 wrong usage.\n";

static void help(void)
{
	puts(help_head);
	for (size_t i = 0; i < perf_op_count; i++)
		printf("  %s\n", perf_op_table[i].name);
	fputs(help_text, stdout);
}

static int wrong(const char *what, const char *value)
{
	return usage_error("perf", what, value);
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
	OPT_MEMORY,
	OPT_IN_PLACE,
	OPT_BUDGET,
	OPT_ITERS,
	OPT_STATS,
	OPT_EXPLAIN,
	OPT_OVERLAP,
	OPT_BREAKDOWN,
	OPT_JSON
};

/* A bit for each option: whether it was given. */
#define GIVEN(option) (1u << ((option)-OPT_SIZES))

static const struct option option_table[] = {
	{"sizes", required_argument, NULL, OPT_SIZES},
	{"type", required_argument, NULL, OPT_TYPE},
	{"op", required_argument, NULL, OPT_OP},
	{"algo", required_argument, NULL, OPT_ALGO},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"in-place", no_argument, NULL, OPT_IN_PLACE},
	{"budget", required_argument, NULL, OPT_BUDGET},
	{"iters", required_argument, NULL, OPT_ITERS},
	{"stats", no_argument, NULL, OPT_STATS},
	{"explain", no_argument, NULL, OPT_EXPLAIN},
	{"overlap", no_argument, NULL, OPT_OVERLAP},
	{"breakdown", no_argument, NULL, OPT_BREAKDOWN},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

enum { FAULT_TEXT = 256 };

/* "--type must be int8, ..., not": for one of `count` names. */
static const char *none_of(const char *option, int count, const char *(*name)(int i),
			   char text[FAULT_TEXT])
{
	int used = snprintf(text, FAULT_TEXT, "%s must be", option);

	for (int i = 0; i < count && used < FAULT_TEXT; i++)
		used += snprintf(text + used, (size_t)(FAULT_TEXT - used), " %s,",
				 name(i));
	if (used < FAULT_TEXT)
		snprintf(text + used, (size_t)(FAULT_TEXT - used), " not");
	return text;
}

static const char *type_name(int i)
{
	return weft_type_name((enum weft_type)i);
}

static const char *op_name(int i)
{
	return weft_op_name((enum weft_op)i);
}

/* One option with its value; NULL, or what is wrong, which may be in text. */
static const char *take_option(struct perf_opts *o, int c, const char *value,
			       char text[FAULT_TEXT])
{
	switch (c) {
	case OPT_SIZES:
		o->sizes = value;
		return parse_size_range(value, &o->first, &o->last);
	case OPT_TYPE:
		return parse_type(value, &o->type)
			       ? NULL
			       : none_of("--type", WEFT_TYPE_COUNT, type_name, text);
	case OPT_OP:
		return parse_op(value, &o->op)
			       ? NULL
			       : none_of("--op", WEFT_OP_COUNT, op_name, text);
	case OPT_ALGO:
		o->algorithm = value;
		return NULL;
	case OPT_MEMORY:
		o->cuda = strcmp(value, "cuda") == 0;
		return o->cuda || strcmp(value, "host") == 0
			       ? NULL
			       : "--memory must be host or cuda, not";
	case OPT_IN_PLACE:
		o->in_place = true;
		return NULL;
	case OPT_BUDGET:
		return parse_seconds(value, &o->budget_us)
			       ? NULL
			       : "--budget must be seconds above 0, not";
	case OPT_ITERS:
		return parse_int(value, 1, PERF_ITERS_MAX, &o->iters)
			       ? NULL
			       : "--iters must be 1 to 2000, not";
	case OPT_STATS:
		o->stats = true;
		return NULL;
	case OPT_EXPLAIN:
		o->explain = true;
		return NULL;
	case OPT_OVERLAP:
		o->overlap = true;
		return NULL;
	case OPT_BREAKDOWN:
		o->breakdown = true;
		return NULL;
	default:
		o->json = true;
		return NULL;
	}
}

static bool op_wanted(const struct perf_opts *o, const struct perf_op *op)
{
	return strcmp(o->operation, op->counts ? "allv" : "all") == 0 ||
	       strcmp(o->operation, op->name) == 0;
}

/* 0, or the status after saying which option does nothing for what is to be measured. */
static int check_options(const struct perf_opts *o, unsigned given)
{
	bool sized = false, reduces = false, in_place = false;

	for (size_t i = 0; i < perf_op_count; i++) {
		const struct perf_op *op = &perf_op_table[i];

		if (!op_wanted(o, op))
			continue;
		sized = sized || op->sized;
		reduces = reduces || op->reduces;
		in_place = in_place || op->in_place;
	}
	if (given & GIVEN(OPT_SIZES) && !sized)
		return wrong("--sizes does nothing where no data are moved: leave it out "
			     "for",
			     o->operation);
	if (given & GIVEN(OPT_TYPE) && !sized)
		return wrong("--type does nothing where no data are moved: leave it out "
			     "for",
			     o->operation);
	if (given & GIVEN(OPT_MEMORY) && !sized)
		return wrong("--memory does nothing where no data are moved: leave it "
			     "out for",
			     o->operation);
	if (given & GIVEN(OPT_OP) && !reduces)
		return wrong("--op is what reductions do: leave it out for",
			     o->operation);
	if (given & GIVEN(OPT_IN_PLACE) && !in_place)
		return wrong("--in-place is for all-gather and all-reduce: leave it out "
			     "for",
			     o->operation);
	return 0;
}

/* Whether there are such sizes of elements of such a type. */
static int check_sizes(const struct perf_opts *o)
{
	uint64_t elem = weft_type_size(o->type);
	char what[96];

	if (o->first == 0)
		return wrong("--sizes must begin above 0, not at", o->sizes);
	if (o->last > SIZE_LAST)
		return wrong("--sizes must end at 1024G or below, not at", o->sizes);
	if (o->first % elem == 0 && o->last % elem == 0)
		return 0;
	snprintf(what, sizeof(what),
		 "--sizes must be multiples of %" PRIu64 " bytes, an element of %s, not",
		 elem, weft_type_name(o->type));
	return wrong(what, o->sizes);
}

/* Whether an operation that is wanted has the algorithm. */
static int check_algorithm(const struct perf_opts *o)
{
	char what[1024];
	size_t used;

	used = (size_t)snprintf(what, sizeof(what), "--algo: there are");
	for (size_t i = 0; i < perf_op_count; i++) {
		const struct perf_op *op = &perf_op_table[i];
		char list[128];

		if (!op_wanted(o, op))
			continue;
		if (algo_find(op->name, o->algorithm))
			return 0;
		algo_list(op->name, list, sizeof(list));
		if (used < sizeof(what))
			used += (size_t)snprintf(what + used, sizeof(what) - used,
						 " %s (for %s),", list, op->name);
	}
	if (used < sizeof(what))
		snprintf(what + used, sizeof(what) - used, " but no");
	return wrong(what, o->algorithm);
}

/* -1: go on; else the exit status. */
static int parse_args(int argc, char **argv, struct perf_opts *o)
{
	unsigned given = 0;
	char text[FAULT_TEXT];
	const char *fault;
	bool known = false;
	int c, status;

	*o = (struct perf_opts){.first = 8,
				.last = 16 << 20,
				.who = "perf",
				.budget_us = BUDGET_US,
				.type = WEFT_FP32,
				.op = WEFT_SUM,
				.argc = argc,
				.argv = argv};
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", option_table, NULL)) != -1) {
		if (c == 'h') {
			help();
			return 0;
		}
		if (c < OPT_SIZES)
			return usage_option("perf", c, argv);
		fault = take_option(o, c, optarg, text);
		if (fault)
			return wrong(fault, optarg);
		given |= GIVEN(c);
	}
	if (optind + 1 != argc)
		return wrong(optind == argc ? "no OPERATION" : "one OPERATION, no more:",
			     optind == argc ? NULL : argv[optind + 1]);
	o->operation = argv[optind];
	for (size_t i = 0; i < perf_op_count; i++)
		known = known || op_wanted(o, &perf_op_table[i]);
	if (!known)
		return wrong("OPERATION must be one that --help lists, all or allv, not",
			     o->operation);
	status = check_options(o, given);
	if (!status && given & GIVEN(OPT_SIZES))
		status = check_sizes(o);
	if (!status && o->algorithm)
		status = check_algorithm(o);
	return status ? status : -1;
}

/* ---- measuring -------------------------------------------------------------------- */

/* Element counts for the sizes asked for, which are multiples of an element. */
static int size_counts(const struct perf *p, const struct perf_op *op,
		       uint64_t counts[SIZES_MAX])
{
	const struct perf_opts *o = p->opts;
	int n = 0;

	counts[n++] = op->sized ? o->first / p->elem : 0;
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

/* So far, by the flight recorder. */
static void spent_so_far(const struct perf *p, const struct perf_op *op,
			 struct perf_spent *spent)
{
	struct recorder *r = exec_trace(p->ctx->exec);
	const struct trace_sum *sum = &r->image->live.sum[op->coll];
	const struct trace_comm *comm = recorder_comm(r, p->comm->number);
	struct trace_head head;

	ctx_lock(p->ctx);
	head = r->image->head;
	head.ticks[1] = ticks_now(r->counter);
	head.mono[1] = ticks_clock_ns(CLOCK_MONOTONIC);
	*spent = (struct perf_spent){.calls = sum->calls,
				     .lines = sum->lines,
				     .time = (uint64_t)trace_span(&head, sum->ticks),
				     .sent = comm->sent,
				     .busy = (uint64_t)trace_span(&head, comm->busy)};
	for (int i = 0; i < TRACE_STAGES; i++)
		spent->stage[i] = (uint64_t)trace_span(&head, sum->stage[i]);
	ctx_unlock(p->ctx);
}

/* What was spent since then, by all ranks. */
static bool spent_sum(struct perf *p, const struct perf_op *op,
		      const struct perf_spent *since)
{
	enum { FIELDS = sizeof(struct perf_spent) / sizeof(uint64_t) };
	uint64_t a[FIELDS], b[FIELDS];
	enum weft_result result;
	struct perf_spent now;

	spent_so_far(p, op, &now);
	memcpy(a, since, sizeof(a));
	memcpy(b, &now, sizeof(b));
	for (int i = 0; i < FIELDS; i++)
		b[i] = b[i] > a[i] ? b[i] - a[i] : 0;
	result = weft_allreduce(p->comm, b, a, FIELDS, WEFT_UINT64, WEFT_SUM, NULL);
	if (result)
		perf_say_error(p, "all-reduce of what calls were spent on", result);
	memcpy(&p->spent, a, sizeof(p->spent));
	return result == WEFT_SUCCESS;
}

static bool measure_op(struct perf *p, struct perf_report *r, const struct perf_op *op)
{
	struct weft_stats sum = {.size = sizeof(sum)};
	uint64_t counts[SIZES_MAX];
	struct perf_counts counted;
	struct perf_spent since;
	int n = size_counts(p, op, counts);

	memset(&p->moved, 0, sizeof(p->moved));
	p->moved_calls = 0;
	spent_so_far(p, op, &since);
	perf_counts_now(p, &counted);
	perf_report_op_begin(r, op);
	for (int i = 0; i < n; i++) {
		int64_t left = p->opts->budget_us - (exec_now() - p->begin_us);
		struct perf_row row;

		perf_report_progress(r, op, counts[i] * p->elem);
		if (!perf_measure(p, op, counts[i], left / (r->total - r->done), &row) ||
		    !perf_stages(p, op, &row))
			return false;
		perf_report_row(r, &row);
	}
	if (p->opts->stats &&
	    (!spent_sum(p, op, &since) || !perf_counts_sum(p, &counted, &p->counted)))
		return false;
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
	bool all = strcmp(o->operation, "all") == 0 || strcmp(o->operation, "allv") == 0,
	     any = false;
	uint64_t counts[SIZES_MAX];
	struct perf_report report;
	const char *why = "";
	int total = 0;

	for (size_t i = 0; i < perf_op_count; i++)
		if (op_wanted(o, &perf_op_table[i]) &&
		    op_possible(p, &perf_op_table[i], &why))
			total += size_counts(p, &perf_op_table[i], counts);
	if (total == 0) {
		fprintf(stderr, "weft %s: %s\n", p->opts->who, why);
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
	size_t src = 1, dst = 1;

	for (size_t i = 0; i < perf_op_count; i++) {
		const struct perf_op *op = &perf_op_table[i];

		if (!op_wanted(p->opts, op))
			continue;
		src = op->src_blocks ? src : (size_t)p->size;
		dst = op->dst_blocks ? dst : (size_t)p->size;
	}
	p->times = malloc(times);
	p->all = calloc((size_t)p->size, times);
	p->even = calloc((size_t)p->size, sizeof(*p->even));
	p->got = calloc((size_t)p->size, sizeof(*p->got));
	if (len <= SIZE_MAX / src && len <= SIZE_MAX / dst && p->times && p->all &&
	    p->even && p->got)
		return perf_memory_open(p, len * src, len * dst);
	fprintf(stderr,
		"weft %s: rank %" PRId32
		": no memory for %zu blocks of %zu bytes: choose "
		"smaller --sizes\n",
		p->opts->who, p->rank, src + dst, len);
	return false;
}

bool perf_open(struct perf *p, const struct perf_opts *o)
{
	struct weft_ctx_opts ctx = WEFT_CTX_OPTS_INIT;
	enum weft_result result;

	memset(p, 0, sizeof(*p));
	p->opts = o;
	p->elem = weft_type_size(o->type);
	if (o->overlap)
		ctx.progress = WEFT_PROGRESS_THREAD;
	result = weft_ctx_open(&ctx, &p->ctx);
	if (!result)
		result = weft_comm_create(p->ctx, NULL, &p->comm);
	if (result) {
		fprintf(stderr, "weft %s: %s: %s\n", p->opts->who, weft_strerror(result),
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

bool perf_close(struct perf *p)
{
	enum weft_result result = WEFT_SUCCESS;

	if (p->comm)
		result = weft_comm_destroy(p->comm);
	if (!result && p->ctx)
		result = weft_ctx_close(p->ctx);
	perf_memory_close(p);
	free(p->times);
	free(p->all);
	free(p->even);
	free(p->got);
	if (result)
		perf_say_error(p, "close", result);
	return result == WEFT_SUCCESS;
}

int cmd_perf(int argc, char **argv)
{
	/* Static: after a failed call the process ends with all of it held, and leak
	 * checkers are to see that. */
	static struct perf *p;
	static char **as_given;
	struct perf_opts opts;
	enum outcome outcome;
	int status;

	p = malloc(sizeof(*p));
	as_given = calloc((size_t)argc, sizeof(*as_given));
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
