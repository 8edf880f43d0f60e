/* SPDX-License-Identifier: BSD-2-Clause */
/* See perf_report.h. Whole lines are flushed, so that weft run passes them on at once. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/parse.h"
#include "cli/perf_report.h"
#include "coll/trace/trace_file.h"

enum {
	SCHEMA = 1, /* of the JSON document; grows when a field changes its meaning */
	FIGURE_TEXT = 32,
	CALLS_FEW = 5, /* the times of fewer say little */
};

/* Four digits that matter, never with an exponent: fits a narrow column. */
static const char *figure(double v, char text[FIGURE_TEXT])
{
	int digits = v >= 1000 ? 0 : v >= 100 ? 1 : v >= 10 ? 2 : v >= 1 ? 3 : 4;

	snprintf(text, FIGURE_TEXT, "%.*f", digits, v);
	return text;
}

/* A bandwidth with its unit, powers of 1000: "12.34G", "3.100k". */
static const char *bandwidth(double gbps, char text[FIGURE_TEXT])
{
	static const char unit[] = "GMk";
	int k = 0;

	for (; gbps > 0 && gbps < 1 && unit[k + 1]; k++)
		gbps *= 1000;
	figure(gbps, text);
	snprintf(text + strlen(text), FIGURE_TEXT - strlen(text), "%c", unit[k]);
	return text;
}

static void host_name(char *text, size_t len)
{
	if (gethostname(text, len) != 0)
		snprintf(text, len, "?");
	text[len - 1] = '\0';
}

static void head_text(struct perf_report *r, const char *host)
{
	const struct perf *p = r->perf;

	printf("weft %s, %" PRId32 " rank%s on %s, provider %s: weft", weft_version(),
	       p->size, p->size == 1 ? "" : "s", host, p->provider);
	for (int i = 0; i < p->opts->argc; i++)
		printf(" %s", p->opts->argv[i]);
	printf("\n");
}

static void head_json(struct perf_report *r, const char *host)
{
	const struct perf *p = r->perf;

	json_init(&r->json, stdout);
	json_object_begin(&r->json, NULL);
	json_int(&r->json, "schema", SCHEMA);
	json_text(&r->json, "program", "weft perf");
	json_text(&r->json, "version", weft_version());
	json_text(&r->json, "host", host);
	json_text(&r->json, "provider", p->provider);
	json_int(&r->json, "ranks", p->size);
	json_array_begin(&r->json, "command");
	json_text(&r->json, NULL, "weft");
	for (int i = 0; i < p->opts->argc; i++)
		json_text(&r->json, NULL, p->opts->argv[i]);
	json_array_end(&r->json);
	json_array_begin(&r->json, "collectives");
}

void perf_report_begin(struct perf_report *r, const struct perf *p, int total)
{
	const char *tty = getenv("WEFT_TTY"); /* weft run's stderr, which ours leads to */
	char host[128];

	memset(r, 0, sizeof(*r));
	r->perf = p;
	r->total = total;
	r->on = p->rank == 0;
	r->tty = r->on && (isatty(STDERR_FILENO) || (tty && strcmp(tty, "1") == 0));
	if (!r->on)
		return;
	host_name(host, sizeof(host));
	if (p->opts->json)
		head_json(r, host);
	else
		head_text(r, host);
	fflush(stdout);
}

void perf_report_op_begin(struct perf_report *r, const struct perf_op *op)
{
	const struct perf_opts *o = r->perf->opts;
	bool in_place = o->in_place && op->in_place;

	r->op_best = 0;
	if (!r->on)
		return;
	if (o->json) {
		json_object_begin(&r->json, NULL);
		json_text(&r->json, "name", op->name);
		json_text(&r->json, "type", op->sized ? weft_type_name(o->type) : NULL);
		json_text(&r->json, "op", op->reduces ? weft_op_name(o->op) : NULL);
		json_bool(&r->json, "in_place", in_place);
		json_text(&r->json, "memory", o->cuda && op->sized ? "cuda" : "host");
		json_array_begin(&r->json, "results");
		return;
	}
	printf("\n%s", op->name);
	if (op->sized)
		printf(", %s%s%s%s%s (%s; k, M, G of B/s are 1000s)",
		       weft_type_name(o->type), op->reduces ? " " : "",
		       op->reduces ? weft_op_name(o->op) : "",
		       in_place ? ", in place" : "", o->cuda ? ", memory of GPUs" : "",
		       op->size_means);
	printf("\n");
	printf("%6s %-18s %5s %9s %9s %8s %8s %6s\n", "size", "algorithm", "calls",
	       "median us", "p99 us", "alg B/s", "bus B/s", "result");
	fflush(stdout);
}

void perf_report_skip(struct perf_report *r, const struct perf_op *op, const char *why)
{
	if (r->on && !r->perf->opts->json)
		printf("\n%s: left out: %s\n", op->name, why);
	fflush(stdout);
}

/* A line that overwrites itself; with nothing, it disappears. */
static void progress_line(struct perf_report *r, const char *text)
{
	if (!r->tty)
		return;
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
}

void perf_report_progress(struct perf_report *r, const struct perf_op *op, uint64_t bytes)
{
	char size[PARSE_SIZE_TEXT], text[96];

	parse_size_print(bytes, size);
	snprintf(text, sizeof(text), "%s %s (%d of %d)", op->name, op->sized ? size : "",
		 r->done + 1, r->total);
	progress_line(r, text);
}

static void stages_json(struct perf_report *r, const struct perf_stage_times *s)
{
	json_real(&r->json, "call_us", s->call_us);
	json_real(&r->json, "control_us", s->control_us);
	json_real(&r->json, "issue_us", s->issue_us);
	json_real(&r->json, "wait_us", s->wait_us);
	json_real(&r->json, "control_messages", s->readys);
}

static void row_json(struct perf_report *r, const struct perf_row *row)
{
	json_object_begin(&r->json, NULL);
	json_uint(&r->json, "bytes", row->bytes);
	json_uint(&r->json, "count", row->count);
	json_text(&r->json, "algorithm", row->algorithm);
	json_int(&r->json, "calls", row->iters);
	json_real(&r->json, "median_us", row->median_us);
	json_real(&r->json, "median_low_us", row->low_us);
	json_real(&r->json, "median_high_us", row->high_us);
	json_real(&r->json, "p99_us", row->p99_us);
	json_real(&r->json, "algorithm_gb_per_s", row->alg_gbps);
	json_real(&r->json, "bus_gb_per_s", row->bus_gbps);
	if (row->why[0])
		json_text(&r->json, "why", row->why);
	json_bool(&r->json, "ok", row->wrong == 0);
	if (r->perf->opts->overlap) {
		json_real(&r->json, "overlap", row->overlap.part);
		json_real(&r->json, "overlap_alone_us", row->overlap.alone_us);
		json_real(&r->json, "overlap_work_us", row->overlap.work_us);
		json_real(&r->json, "overlap_together_us", row->overlap.together_us);
		json_real(&r->json, "overlap_early", row->overlap.early);
	}
	if (r->perf->opts->breakdown)
		stages_json(r, &row->stages);
	if (r->perf->opts->breakdown && row->has_doubled) {
		json_object_begin(&r->json, "doubled");
		stages_json(r, &row->doubled);
		json_object_end(&r->json);
	}
	json_object_end(&r->json);
}

/* Below the row, where they were asked for. */
static void stages_text(const struct perf_report *r, const struct perf_row *row)
{
	const struct perf_overlap *o = &row->overlap;
	char a[FIGURE_TEXT], b[FIGURE_TEXT], c[FIGURE_TEXT], d[FIGURE_TEXT];

	if (r->perf->opts->overlap)
		printf("       overlap %.0f %%: alone %s us, work %s us, together %s us; "
		       "%.0f %% were done before the wait\n",
		       o->part * 100, figure(o->alone_us, a), figure(o->work_us, b),
		       figure(o->together_us, c), o->early * 100);
	for (int i = 0; r->perf->opts->breakdown && i < 1 + row->has_doubled; i++) {
		const struct perf_stage_times *s = i ? &row->doubled : &row->stages;

		printf("       %scall %s us, control %s us, issue %s us, wait %s us; "
		       "%.1f "
		       "control messages a call\n",
		       i ? "doubled: " : "", figure(s->call_us, a),
		       figure(s->control_us, b), figure(s->issue_us, c),
		       figure(s->wait_us, d), s->readys);
	}
}

static void row_text(const struct perf_report *r, const struct perf_row *row)
{
	char size[PARSE_SIZE_TEXT] = "-", median[FIGURE_TEXT], p99[FIGURE_TEXT];
	char alg[FIGURE_TEXT] = "-", bus[FIGURE_TEXT] = "-", calls[FIGURE_TEXT];

	if (row->op->sized) {
		parse_size_print(row->bytes, size);
		bandwidth(row->alg_gbps, alg);
	}
	if (row->op->sized && r->perf->size > 1)
		bandwidth(row->bus_gbps, bus);
	snprintf(calls, sizeof(calls), "%" PRId64 "%s", row->iters,
		 row->iters < CALLS_FEW ? "*" : "");
	printf("%6s %-18s %5s %9s %9s %8s %8s %6s%s%s\n", size, row->algorithm, calls,
	       figure(row->median_us, median), figure(row->p99_us, p99), alg, bus,
	       row->wrong ? "WRONG" : "ok", row->why[0] ? "  " : "", row->why);
	stages_text(r, row);
	fflush(stdout);
}

void perf_report_row(struct perf_report *r, const struct perf_row *row)
{
	double best;

	r->done++;
	r->wrong += row->wrong > 0;
	r->few += row->iters < CALLS_FEW;
	best = r->perf->size > 1 ? row->bus_gbps : row->alg_gbps;
	if (row->op->sized && best > r->op_best)
		r->op_best = best;
	if (!row->op->sized && (r->op_best == 0 || row->median_us < r->op_best))
		r->op_best = row->median_us;
	progress_line(r, "");
	if (!r->on)
		return;
	if (r->perf->opts->json)
		row_json(r, row);
	else
		row_text(r, row);
}

struct moved_row {
	const char *key, *text;
	size_t offset;
};

#define MOVED(field, text)                                       \
	{                                                        \
#field, text, offsetof(struct weft_stats, field) \
	}

static const struct moved_row moved_table[] = {
	MOVED(puts, "puts (remote writes)"),
	MOVED(put_bytes, "bytes put"),
	MOVED(msgs, "messages with payload"),
	MOVED(msg_bytes, "bytes in messages"),
	MOVED(readys, "READY messages"),
	MOVED(handles, "handles that travelled"),
	MOVED(staged_bytes, "bytes staged by coll"),
	MOVED(plan_copy_bytes, "bytes copied by plans (the caller's own block)"),
	MOVED(reduced_bytes, "bytes of reduced results"),
};

/* Of each call of each rank, where it has stages. */
static void report_spent(struct perf_report *r, const struct perf_op *op,
			 const struct perf_spent *s)
{
	const double staged = (double)(s->calls - s->lines),
		     each = staged > 0 ? staged : 1;
	const double rate = s->busy ? (double)s->sent / (double)s->busy : 0;

	if (r->perf->opts->json) {
		json_object_begin(&r->json, "spent");
		json_uint(&r->json, "calls", s->calls);
		json_uint(&r->json, "calls_by_lines", s->lines);
		json_real(&r->json, "call_us", (double)s->time / each / 1e3);
		for (unsigned i = 0; i < PERF_STAGES; i++)
			json_real(&r->json, trace_stage_name(i),
				  (double)s->stage[i] / each / 1e3);
		json_real(&r->json, "busy_gbps", rate);
		json_object_end(&r->json);
		return;
	}
	printf("a call of %s was spent on, on average over %.0f of %" PRIu64
	       " (the rest by shared lines):\n",
	       op->name, staged, s->calls);
	for (unsigned i = 0; i < PERF_STAGES; i++)
		printf("%20.3f  us %s\n", (double)s->stage[i] / each / 1e3,
		       trace_stage_name(i));
	printf("%20.3f  us in all\n", (double)s->time / each / 1e3);
	printf("%20.3f  GB/s that a rank sends while something of the communicator is on "
	       "its way\n",
	       rate);
}

/* What nothing was added to is left out of the table. */
static void report_counted(struct perf_report *r, const struct perf_counts *c)
{
	const bool json = r->perf->opts->json;

	if (json)
		json_object_begin(&r->json, "provider");
	else if (c->n)
		printf("the provider counted, on all ranks together:\n");
	for (uint32_t i = 0; i < c->n; i++) {
		if (json)
			json_uint(&r->json, c->name[i], c->value[i]);
		else if (c->value[i])
			printf("%20" PRIu64 "  %s\n", c->value[i], c->name[i]);
	}
	if (json)
		json_object_end(&r->json);
}

static void report_moved(struct perf_report *r, const struct perf_op *op,
			 const struct weft_stats *moved, uint64_t calls)
{
	bool json = r->perf->opts->json;

	if (json) {
		json_object_begin(&r->json, "stats");
		json_uint(&r->json, "calls", calls);
	} else {
		printf("%s moved, in %" PRIu64 " calls, all ranks together:\n", op->name,
		       calls);
	}
	for (size_t i = 0; i < sizeof(moved_table) / sizeof(moved_table[0]); i++) {
		const struct moved_row *row = &moved_table[i];
		uint64_t v;

		memcpy(&v, (const char *)moved + row->offset, sizeof(v));
		if (json)
			json_uint(&r->json, row->key, v);
		else
			printf("%20" PRIu64 "  %s\n", v, row->text);
	}
	report_spent(r, op, &r->perf->spent);
	report_counted(r, &r->perf->counted);
	if (json)
		json_object_end(&r->json);
}

void perf_report_op_end(struct perf_report *r, const struct perf_op *op,
			const struct weft_stats *moved, uint64_t calls)
{
	char *list = op->sized ? r->best : r->fastest;
	size_t len = op->sized ? sizeof(r->best) : sizeof(r->fastest);
	size_t used = strlen(list);

	char text[FIGURE_TEXT];

	/* Where bandwidths are small, in any digits that they need. */
	if (op->sized && r->op_best < 1)
		snprintf(text, sizeof(text), "%.4g", r->op_best);
	else
		figure(r->op_best, text);
	snprintf(list + used, len - used, "%s%s %s%s", used ? ", " : "", op->name, text,
		 op->sized ? "" : " us");
	if (!r->on)
		return;
	if (r->perf->opts->json)
		json_array_end(&r->json);
	if (r->perf->opts->stats)
		report_moved(r, op, moved, calls);
	if (r->perf->opts->json)
		json_object_end(&r->json);
	fflush(stdout);
}

/* The last line: what people compare. */
static void figures_text(const struct perf_report *r, double seconds)
{
	int32_t ranks = r->perf->size;

	if (r->few > 0)
		printf("\n* fewer than %d calls: these times say little; --budget or "
		       "--iters gives more\n",
		       CALLS_FEW);
	printf("\n%" PRId32 " rank%s over %s: %d measurement%s in %.1f s, %" PRIu64
	       " wrong",
	       ranks, ranks == 1 ? "" : "s", r->perf->provider, r->done,
	       r->done == 1 ? "" : "s", seconds, r->wrong);
	if (r->fastest[0])
		printf("; fastest %s", r->fastest);
	if (r->best[0])
		printf("; best %s GB/s: %s", ranks == 1 ? "alg" : "bus", r->best);
	printf("\n");
}

/* Leaves the last words to the flush at the end of main, which tells when it fails. */
void perf_report_end(struct perf_report *r, double seconds)
{
	if (!r->on)
		return;
	if (r->perf->opts->json) {
		json_array_end(&r->json);
		json_int(&r->json, "measurements", r->done);
		json_uint(&r->json, "wrong", r->wrong);
		json_real(&r->json, "seconds", seconds);
		json_object_end(&r->json);
		json_fini(&r->json);
	} else {
		figures_text(r, seconds);
	}
}
