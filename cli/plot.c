/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft plot: what weft perf --json wrote, as a picture: a curve for each operation, of
 * two files beside each other, with the bands that their medians are in.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/usage.h"
#include "coll/tune/json_read.h"
#include "topo/draw/plot.h"

enum { FILES_MAX = 2, DOCUMENT_MAX = 64 << 20 };

static const char help_text[] =
	"usage: weft plot [--what time|bandwidth] [--op NAME] [--out FILE] A.json "
	"[B.json]\n"
	"Draws documents of weft perf as SVG: a curve for each operation, by size; "
	"of "
	"two\n"
	"files beside each other. Around a curve is the band that its median is in, with "
	"95 %\n"
	"confidence: bands that do not meet are different.\n"
	"  --what      time: microseconds (default); bandwidth: of the bus, GB/s\n"
	"  --op NAME   this operation alone\n"
	"  --out FILE  where the picture goes (default: standard output)\n";

struct plot_opts {
	const char *out, *op;
	bool bandwidth;
};

/* One document that is read. */
struct plot_doc {
	const char *path;
	struct json_read in;
	char provider[JSON_READ_TEXT];
	uint64_t ranks, schema;
	bool is_perf;
};

struct plot_row {
	uint64_t bytes;
	double median, low, high, bus;
};

struct plot_run {
	const struct plot_opts *opts;
	struct plot plot;
	char title[192];
	const char
		*label; /* put before the operations' names where there are two files */
	int64_t points, left_out;
};

/* ---- reading ------------------------------------------------------------------------
 */

/* The whole file, or NULL: it was said. The caller's. */
static char *read_all(const char *path, size_t *len)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	long end;

	if (!in) {
		fprintf(stderr, "weft plot: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	if (fseek(in, 0, SEEK_END) || (end = ftell(in)) < 0 || end > DOCUMENT_MAX ||
	    fseek(in, 0, SEEK_SET)) {
		fprintf(stderr, "weft plot: %s: it is no file, or has more than 64 MiB\n",
			path);
		fclose(in);
		return NULL;
	}
	text = malloc((size_t)end + 1);
	*len = text ? fread(text, 1, (size_t)end, in) : 0;
	if (!text || ferror(in)) {
		fprintf(stderr, "weft plot: %s: %s\n", path,
			text ? strerror(errno) : "no memory for it");
		free(text);
		text = NULL;
	}
	fclose(in);
	return text;
}

/* The next member of an object that was begun; false: its end, or a fault. */
static bool member(struct json_read *in, bool *first, char name[JSON_READ_TEXT])
{
	if (json_read_is(in, '}'))
		return false;
	if (!*first && !json_read_mark(in, ','))
		return false;
	*first = false;
	return json_read_text(in, name) && json_read_mark(in, ':');
}

/* Likewise of an array. */
static bool element(struct json_read *in, bool *first)
{
	if (json_read_is(in, ']'))
		return false;
	if (!*first && !json_read_mark(in, ','))
		return false;
	*first = false;
	return !in->fault;
}

static bool read_row(struct json_read *in, struct plot_row *row)
{
	const struct {
		const char *name;
		double *value;
	} reals[] = {{"median_us", &row->median},
		     {"median_low_us", &row->low},
		     {"median_high_us", &row->high},
		     {"bus_gb_per_s", &row->bus}};
	char name[JSON_READ_TEXT];
	bool first = true;

	row->bytes = 0;
	row->median = row->low = row->high = row->bus = NAN;
	if (!json_read_mark(in, '{'))
		return false;
	while (member(in, &first, name)) {
		bool known = false;

		for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
			if (strcmp(name, reals[i].name) == 0) {
				json_read_real(in, reals[i].value);
				known = true;
			}
		}
		if (strcmp(name, "bytes") == 0)
			json_read_number(in, &row->bytes);
		else if (!known)
			json_read_skip(in);
	}
	return !in->fault;
}

/* What is 0 has no place on an axis by powers. */
static void add_row(struct plot_run *run, const char *op, const struct plot_row *row)
{
	const bool bus = run->opts->bandwidth;
	const double scale = bus ? row->bus * row->median : 0;
	const double y = bus ? row->bus : row->median;
	/* A longer time is less of a rate. */
	const double low = bus ? scale / row->high : row->low,
		     high = bus ? scale / row->low : row->high;
	struct plot_curve *curve;
	char name[160];

	if (!row->bytes || !(y > 0) || (run->opts->op && strcmp(op, run->opts->op) != 0))
		return;
	snprintf(name, sizeof(name), "%s%s%s", run->label, *run->label ? ": " : "", op);
	curve = plot_curve(&run->plot, name);
	if (!curve) {
		run->left_out++;
		return;
	}
	/* Few calls have none, nor have documents of older versions. */
	if (low > 0 && high >= low && isfinite(high))
		run->left_out += !plot_band(curve, (double)row->bytes, y, low, high);
	else
		run->left_out += !plot_point(curve, (double)row->bytes, y);
	run->points++;
}

static bool read_op(struct plot_run *run, struct json_read *in)
{
	char name[JSON_READ_TEXT], op[JSON_READ_TEXT] = "?";
	bool first = true;

	if (!json_read_mark(in, '{'))
		return false;
	while (member(in, &first, name)) {
		bool first_row = true;

		if (strcmp(name, "name") == 0) {
			json_read_text(in, op);
		} else if (strcmp(name, "results") == 0 && json_read_mark(in, '[')) {
			struct plot_row row;

			while (element(in, &first_row) && read_row(in, &row))
				add_row(run, op, &row);
		} else {
			json_read_skip(in);
		}
	}
	return !in->fault;
}

static void read_doc(struct plot_run *run, struct plot_doc *doc)
{
	struct json_read *in = &doc->in;
	char name[JSON_READ_TEXT], program[JSON_READ_TEXT] = "";
	bool first = true, first_op = true;

	if (!json_read_mark(in, '{'))
		return;
	while (member(in, &first, name)) {
		if (strcmp(name, "schema") == 0)
			json_read_number(in, &doc->schema);
		else if (strcmp(name, "program") == 0)
			json_read_text(in, program);
		else if (strcmp(name, "provider") == 0)
			json_read_text(in, doc->provider);
		else if (strcmp(name, "ranks") == 0)
			json_read_number(in, &doc->ranks);
		else if (strcmp(name, "collectives") == 0 && json_read_mark(in, '['))
			while (element(in, &first_op) && read_op(run, in))
				;
		else
			json_read_skip(in);
	}
	doc->is_perf = strcmp(program, "weft perf") == 0 && doc->schema == 1;
	json_read_end(in);
}

static bool add_file(struct plot_run *run, const char *path)
{
	struct plot_doc doc = {.path = path};
	const size_t used = strlen(run->title);
	int line, column;
	char *text = read_all(path, &doc.in.len);

	if (!text)
		return false;
	doc.in.text = text;
	read_doc(run, &doc);
	json_read_where(&doc.in, &line, &column);
	if (doc.in.fault)
		fprintf(stderr,
			"weft plot: %s, line %d, column %d: %s was wanted: it must be "
			"what weft "
			"perf --json wrote, whole\n",
			path, line, column, doc.in.fault);
	else if (!doc.is_perf)
		fprintf(stderr,
			"weft plot: %s: it is JSON, but not what weft perf --json of "
			"this version "
			"writes\n",
			path);
	snprintf(run->title + used, sizeof(run->title) - used, "%s%s%s%llu ranks over %s",
		 used ? "; " : "", run->label, *run->label ? ": " : "",
		 (unsigned long long)doc.ranks, doc.provider);
	free(text);
	return !doc.in.fault && doc.is_perf;
}

/* ---- writing ------------------------------------------------------------------------
 */

static int write_plot(struct plot_run *run)
{
	const char *out = run->opts->out;
	FILE *file = out ? fopen(out, "we") : stdout;
	bool good;

	if (!file) {
		fprintf(stderr, "weft plot: %s: %s\n", out, strerror(errno));
		return 1;
	}
	run->plot.title = run->title;
	run->plot.x = "bytes";
	run->plot.bytes_x = true;
	run->plot.y = run->opts->bandwidth ? "bus bandwidth, GB/s" : "microseconds";
	good = plot_write(&run->plot, file);
	if (!out)
		return 0; /* usage_finish() sees to standard output */
	if (fclose(file) || !good) {
		fprintf(stderr, "weft plot: %s: it can't be written\n", out);
		return 1;
	}
	return 0;
}

/* ---- the command line ---------------------------------------------------------------
 */

/* 0: go on; else the status to end with, or -1: with 0. */
static int read_opts(int argc, char **argv, struct plot_opts *o)
{
	static const struct option longs[] = {{"what", required_argument, NULL, 'w'},
					      {"op", required_argument, NULL, 'p'},
					      {"out", required_argument, NULL, 'o'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help_text, stdout);
			return -1;
		case 'w':
			o->bandwidth = strcmp(optarg, "bandwidth") == 0;
			if (!o->bandwidth && strcmp(optarg, "time") != 0)
				return usage_error("plot",
						   "--what is time or bandwidth, not",
						   optarg);
			break;
		case 'p':
			o->op = optarg;
			break;
		case 'o':
			o->out = optarg;
			break;
		default:
			return usage_option("plot", c, argv);
		}
	}
	return 0;
}

static int draw(struct plot_run *run, int files, char **file)
{
	static const char *const label[FILES_MAX] = {"A", "B"};

	for (int i = 0; i < files; i++) {
		run->label = files > 1 ? label[i] : "";
		if (!add_file(run, file[i]))
			return 1;
	}
	if (!run->points) {
		fprintf(stderr,
			"weft plot: there is nothing to draw: no row%s%s has a size%s\n",
			run->opts->op ? " of " : "", run->opts->op ? run->opts->op : "",
			run->opts->bandwidth
				? " and a bandwidth (of one rank there is none)"
				: "");
		return 1;
	}
	if (run->left_out)
		fprintf(stderr,
			"weft plot: %lld points were left out: no more than %d curves of "
			"%d "
			"points; --op NAME takes one operation\n",
			(long long)run->left_out, PLOT_CURVES_MAX, PLOT_POINTS_MAX);
	return write_plot(run);
}

int cmd_plot(int argc, char **argv)
{
	struct plot_opts opts = {0};
	struct plot_run *run;
	int status = read_opts(argc, argv, &opts);

	if (status)
		return status < 0 ? 0 : status;
	if (optind == argc || argc - optind > FILES_MAX)
		return usage_error(
			"plot", "one or two files of weft perf --json are wanted", NULL);
	run = calloc(1, sizeof(*run));
	if (!run) {
		fprintf(stderr, "weft plot: no memory\n");
		return 1;
	}
	run->opts = &opts;
	status = draw(run, argc - optind, argv + optind);
	free(run);
	return status;
}
