/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft tune: measures every algorithm of every collective, on the ranks that weft run
 * started, and writes which was the fastest for which length: a table for WEFT_TUNE. All
 * ranks come to the same, from times that all of them have; rank 0 writes.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/json.h"
#include "cli/parse.h"
#include "cli/perf.h"
#include "cli/usage.h"
#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/comm/measure.h"
#include "coll/tune/tune.h"

#define BUDGET_US ((int64_t)60000000)
#define SIZE_LAST ((uint64_t)1 << 30)

/* The one before stays unless another is so much faster: times scatter. */
#define TUNE_BETTER 0.95

static const char help_text[] =
	"usage: weft tune OPERATION|all [OPTIONS]\n"
	"\n"
	"Measures every algorithm on the ranks that weft run started, and writes a table "
	"of the\n"
	"fastest for each length, which the library chooses by where WEFT_TUNE names "
	"it.\n"
	"With it go the terms of the model that chooses what the table doesn't have.\n"
	"\n"
	"      --out FILE     where the table goes, on the host of rank 0; standard "
	"output\n"
	"                     unless given\n"
	"      --sizes A:B    from A to B bytes, by factors of 4; multiples of 8, up to "
	"1G;\n"
	"                     default 8:4M\n"
	"      --budget SECONDS   what all measurements together may take, about; "
	"default 60\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 good, 1 a result was wrong or a call failed, 2 wrong usage.\n";

struct tune_opts {
	struct perf_opts perf;
	const char *out;
};

static int wrong(const char *what, const char *value)
{
	return usage_error("tune", what, value);
}

static bool op_wanted(const struct tune_opts *o, const struct perf_op *op)
{
	return !op->counts && (!strcmp(o->perf.operation, "all") ||
			       !strcmp(o->perf.operation, op->name));
}

static int sizes_check(const struct perf_opts *o)
{
	if (o->first == 0 || o->last > SIZE_LAST || o->first % 8 || o->last % 8)
		return wrong("--sizes must be multiples of 8 from 8 to 1G, not",
			     o->sizes);
	return 0;
}

/* -1: go on; else the exit status. */
static int parse_args(int argc, char **argv, struct tune_opts *o)
{
	static const struct option table[] = {
		{"out", required_argument, NULL, 'o'},
		{"sizes", required_argument, NULL, 's'},
		{"budget", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *fault;
	bool known = false;
	int c;

	*o = (struct tune_opts){.perf = {.first = 8,
					 .last = 4 << 20,
					 .sizes = "8:4M",
					 .who = "tune",
					 .budget_us = BUDGET_US,
					 .type = WEFT_FP32,
					 .op = WEFT_SUM}};
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		switch (c) {
		case 'o':
			o->out = optarg;
			break;
		case 's':
			o->perf.sizes = optarg;
			fault = parse_size_range(optarg, &o->perf.first, &o->perf.last);
			if (fault)
				return wrong(fault, optarg);
			break;
		case 'b':
			if (!parse_seconds(optarg, &o->perf.budget_us))
				return wrong("--budget must be seconds above 0, not",
					     optarg);
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		default:
			return usage_option("tune", c, argv);
		}
	}
	if (optind + 1 != argc)
		return wrong(optind == argc ? "no OPERATION" : "one OPERATION, no more:",
			     optind == argc ? NULL : argv[optind + 1]);
	o->perf.operation = argv[optind];
	for (size_t i = 0; i < perf_op_count; i++)
		known = known || op_wanted(o, &perf_op_table[i]);
	if (!known)
		return wrong("OPERATION must be one without counts that weft perf "
			     "--help lists, or all, not",
			     o->perf.operation);
	c = sizes_check(&o->perf);
	return c ? c : -1;
}

/* ---- measuring --------------------------------------------------------------------- */

struct tuning {
	struct perf perf;
	struct tune_opts *opts;
	struct json json; /* at rank 0 */
	FILE *out;	  /* NULL elsewhere */
	int cells;	  /* measurements to be done... */
	int done;	  /* ...and done */
	uint64_t wrong;
	struct cost_terms cost; /* alpha_ps 0: with one rank there are none */
};

/* The fastest for one length. */
struct best {
	const struct algo *algo;
	double us;
	uint64_t up_to;
};

static bool algo_is_of(const struct algo *algo, const struct perf_op *op)
{
	return !strcmp(algo->coll, op->name);
}

static uint64_t next_size(const struct perf_opts *o, uint64_t bytes)
{
	if (bytes == o->last)
		return 0;
	return bytes * 4 < o->last ? bytes * 4 : o->last;
}

static int cells_of(const struct tuning *t, const struct perf_op *op)
{
	int cells = 0, sizes = 0;

	for (uint64_t b = t->opts->perf.first; b; b = next_size(&t->opts->perf, b))
		sizes++;
	for (size_t i = 0; i < algo_count; i++)
		cells += algo_is_of(&algo_table[i], op);
	return cells * (op->sized ? sizes : 1);
}

/* False: a call failed. */
static bool algo_measure(struct tuning *t, const struct perf_op *op, uint64_t count,
			 const struct algo *algo, const struct algo *before,
			 struct best *best)
{
	struct perf *p = &t->perf;
	const int64_t left = t->opts->perf.budget_us - (exec_now() - p->begin_us);
	struct perf_row row;

	t->opts->perf.algorithm = algo->name;
	/* It cannot do that, or a table with it would not count: lines of ranks that do
	 * not share memory are messages, and of those others are as good. */
	if (!perf_algorithm(p, op, count) || !perf_table_counts(p, op, count, algo)) {
		t->done++;
		return true;
	}
	if (!perf_measure(p, op, count, left / (t->cells - t->done), &row))
		return false;
	t->done++;
	t->wrong += row.wrong;
	/* Who is best already gets what counts for less than a scatter. */
	if (algo == before)
		row.median_us *= TUNE_BETTER;
	if (!best->algo || row.median_us < best->us) {
		best->algo = algo;
		best->us = row.median_us;
	}
	return true;
}

static void choice_write(struct tuning *t, const struct best *best)
{
	if (!t->out)
		return;
	json_object_begin(&t->json, NULL);
	json_text(&t->json, "collective", best->algo->coll);
	json_int(&t->json, "ranks", t->perf.size);
	json_uint(&t->json, "up_to", best->up_to);
	json_text(&t->json, "algorithm", best->algo->name);
	json_real(&t->json, "us", best->us);
	json_object_end(&t->json);
}

/* Lengths in a row that one algorithm is best for are one choice. */
static bool op_measure(struct tuning *t, const struct perf_op *op)
{
	struct best last = {.algo = NULL};
	uint64_t bytes = t->opts->perf.first;

	while (bytes) {
		struct best best = {.up_to = bytes};

		for (size_t i = 0; i < algo_count; i++) {
			if (algo_is_of(&algo_table[i], op) &&
			    !algo_measure(t, op, op->sized ? bytes / t->perf.elem : 0,
					  &algo_table[i], last.algo, &best))
				return false;
		}
		if (!best.algo)
			return true;
		if (last.algo && last.algo != best.algo)
			choice_write(t, &last);
		last = best;
		bytes = op->sized ? next_size(&t->opts->perf, bytes) : 0;
	}
	choice_write(t, &last);
	return true;
}

static void head_write(struct tuning *t)
{
	json_init(&t->json, t->out);
	json_object_begin(&t->json, NULL);
	json_int(&t->json, "schema", TUNE_SCHEMA);
	json_text(&t->json, "kind", TUNE_KIND);
	json_text(&t->json, "weft", PACKAGE_VERSION);
	json_text(&t->json, "provider", t->perf.provider);
	if (t->cost.alpha_ps) {
		json_object_begin(&t->json, "cost");
		json_uint(&t->json, "alpha_ps", t->cost.alpha_ps);
		json_uint(&t->json, "beta_fs", t->cost.beta_fs);
		json_uint(&t->json, "gamma_fs", t->cost.gamma_fs);
		json_object_end(&t->json);
	}
	json_array_begin(&t->json, "choices");
}

/* False: a call failed, and nothing may be freed. */
static bool measure_all(struct tuning *t)
{
	for (size_t i = 0; i < perf_op_count; i++)
		t->cells += op_wanted(t->opts, &perf_op_table[i])
				    ? cells_of(t, &perf_op_table[i])
				    : 0;
	t->perf.begin_us = exec_now();
	if (measure_terms(t->perf.comm, &t->cost) != WEFT_SUCCESS) {
		fprintf(stderr, "weft tune: %s\n", weft_error_detail());
		return false;
	}
	if (t->out)
		head_write(t);
	for (size_t i = 0; i < perf_op_count; i++) {
		if (op_wanted(t->opts, &perf_op_table[i]) &&
		    !op_measure(t, &perf_op_table[i]))
			return false;
	}
	if (t->out) {
		json_array_end(&t->json);
		json_object_end(&t->json);
		json_fini(&t->json);
	}
	return true;
}

/* 0, or the exit status: rank 0 opens the file before anything is measured. */
static int out_open(struct tuning *t)
{
	if (t->perf.rank)
		return 0;
	t->out = t->opts->out ? fopen(t->opts->out, "we") : stdout;
	if (t->out)
		return 0;
	fprintf(stderr,
		"weft tune: --out %s: %s; name a file in a folder that can be written "
		"to\n",
		t->opts->out, strerror(errno));
	return 1;
}

static int out_close(struct tuning *t)
{
	const bool bad = t->out && (ferror(t->out) || fflush(t->out));

	if (t->out && t->out != stdout && fclose(t->out))
		return 1;
	if (bad)
		fprintf(stderr, "weft tune: the table could not be written\n");
	return bad;
}

int cmd_tune(int argc, char **argv)
{
	/* Static: after a failed call the process ends with all of it held. */
	static struct tuning *t;
	static struct tune_opts opts;
	int status = parse_args(argc, argv, &opts);

	if (status >= 0)
		return status;
	t = calloc(1, sizeof(*t));
	if (!t) {
		fprintf(stderr, "weft tune: no memory\n");
		return 1;
	}
	t->opts = &opts;
	if (!perf_open(&t->perf, &opts.perf))
		return 1;
	status = out_open(t);
	/* The others hear of it when rank 0 is gone. */
	if (status || !measure_all(t))
		return 1;
	status = out_close(t);
	if (t->wrong)
		status = 1;
	if (!perf_close(&t->perf))
		status = 1;
	free(t);
	return status;
}
