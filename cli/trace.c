/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft trace: what flight recorders wrote. "dump" prints it as text, "json" in the format
 * of Chrome's trace events, which Perfetto and chrome://tracing show: a process for each
 * rank, a thread for each communicator, calls as bars, the rest as marks.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analyze.h"
#include "cli/cmd.h"
#include "cli/json.h"
#include "cli/trace_src.h"
#include "cli/usage.h"
#include "coll/trace/trace_file.h"

static const char help_text[] =
	"usage: weft trace dump [--out FOLDER] WHAT...\n"
	"       weft trace json [--out FILE] WHAT...\n"
	"       weft trace analyze [OPTIONS] [WHAT...]\n"
	"  dump        prints how things stand and the events, one dump after the "
	"other;\n"
	"              with --out it writes the dumps of processes there instead\n"
	"  json        all events as Chrome trace events, for ui.perfetto.dev\n"
	"  analyze     which collective stopped first, and which rank or link holds it\n"
	"WHAT is a dump, a folder of them (*.trace), or the number of a process of this "
	"host,\n"
	"whose recorder is read as it is: it need not answer, and may be stopped.\n"
	"  --out       where JSON goes (default: standard output), or dumps of "
	"processes\n"
	"  --pids A,B  processes, as WHAT\n"
	"  --job PID   all processes below this one, such as weft run's\n"
	"  --stuck S   a call that has not moved for S seconds stands still (default 1)\n"
	"  --json      the verdict as JSON\n"
	"Dumps are what weft_trace_dump() writes, and, where WEFT_TRACE names a folder, "
	"every\n"
	"rank at its first call that fails, at SIGUSR2, and when it crashes. The status "
	"of\n"
	"analyze is 0 where nothing stands still or is slow, 3 where something is.\n";

static bool has_peer(const struct trace_event *e)
{
	const bool local = e->kind == TRACE_STEP && e->what > 1; /* reduce, copy */

	return e->peer >= 0 && !local && e->kind != TRACE_END;
}

static void print_event(const struct trace_head *head, const struct trace_event *e)
{
	const double ms = (double)(trace_when(head, e->ticks) - head->real[1]) / 1e6;
	const char *what = trace_what_name(e);

	printf("%14.6f  %-13s %u.%u", ms, trace_kind_name(e->kind), e->comm, e->call);
	if (*what)
		printf("  %s", what);
	if (has_peer(e))
		printf("  %s %" PRId32, e->kind == TRACE_CALL ? "root" : "rank", e->peer);
	if (e->kind == TRACE_CALL)
		printf("  count %" PRIu64, e->bytes);
	else if (e->kind == TRACE_NET)
		printf("  value %" PRIu64, e->bytes);
	else if (e->bytes)
		printf("  %s %" PRIu64, e->kind == TRACE_SIGNAL ? "adds" : "bytes",
		       e->bytes);
	printf("\n");
}

/* One that is not over. */
static void print_call(const struct trace_head *h, const struct trace_call *c)
{
	const struct trace_event e = {.kind = TRACE_CALL, .what = c->coll};

	if (c->state != TRACE_CALL_OPEN && c->state != TRACE_CALL_FAILED)
		return;
	printf("  %s: %u.%u %s, count %" PRIu64 ": %u of %u steps, last %.6f s ago",
	       c->state == TRACE_CALL_OPEN ? "open" : "failed", c->comm, c->call,
	       trace_what_name(&e), c->count, c->steps, c->all,
	       c->moved ? (double)trace_span(h, h->ticks[1] - c->moved) * 1e-9 : 0.0);
	if (c->waits >= 0)
		printf("; waits for rank %" PRId32, c->waits);
	if (c->state == TRACE_CALL_FAILED)
		printf("; %s", weft_strerror((enum weft_result)c->result));
	printf("\n");
}

static void print_tables(const struct trace_dump *dump)
{
	const struct trace_head *h = &dump->head;

	for (uint32_t i = 0; i < h->comm_count; i++) {
		const struct trace_comm *c = &dump->comm[i];
		const double busy = (double)trace_span(h, c->busy);

		printf("  communicator %u: rank %" PRId32 " of %" PRId32
		       ", %u calls started, %u ended; sent %" PRIu64
		       " bytes at %.3f GB/s%s\n",
		       c->number, c->self, c->size, c->started, c->ended, c->sent,
		       busy > 0 ? (double)c->sent / busy : 0,
		       c->state == TRACE_COMM_BAD ? "; it failed" : "");
	}
	for (uint32_t i = 0; i < h->call_count; i++)
		print_call(h, &dump->call[i]);
	for (uint32_t i = 0; i < h->peer_count; i++) {
		const struct trace_peer *p = &dump->peer[i];

		printf("  rank %" PRId32 ": puts %" PRIu64 " (%" PRIu64
		       " completed, %" PRIu64 " told), notified %" PRIu64
		       "; messages %" PRIu64 " (%" PRIu64 " completed), received %" PRIu64
		       "%s\n",
		       p->rank, p->puts, p->put, p->told, p->notes, p->sends, p->sent,
		       p->recvs, p->lost ? "; lost" : "");
	}
}

static void print_dump(const char *path, const struct trace_dump *dump)
{
	const struct trace_head *h = &dump->head;

	printf("%s: rank %" PRId32 " of %" PRId32 " on %s, process %" PRId64 ", %s; %s\n",
	       path, h->rank, h->size, h->host, h->pid,
	       h->provider[0] ? h->provider : "provider not known",
	       trace_reason_name(h->reason));
	printf("  the last %" PRIu64 " of %" PRIu64
	       " events; ms before the dump, what, communicator.call\n",
	       h->count, h->total);
	print_tables(dump);
	for (uint64_t i = 0; i < h->count; i++)
		print_event(h, &dump->event[i]);
}

/* ---- JSON -------------------------------------------------------------------------- */

/* Viewers take microseconds; `base` is the first event of all dumps. */
static void json_when(struct json *j, const struct trace_head *head,
		      const struct trace_event *e, int64_t base)
{
	json_int(j, "pid", head->rank);
	json_uint(j, "tid", e->comm);
	json_real(j, "ts", (double)(trace_when(head, e->ticks) - base) / 1e3);
}

static void json_mark(struct json *j, const struct trace_head *head,
		      const struct trace_event *e, int64_t base)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s%.40s", trace_kind_name(e->kind),
		 *trace_what_name(e) ? " " : "", trace_what_name(e));
	json_object_begin(j, NULL);
	json_text(j, "name", name);
	json_text(j, "ph", "i");
	json_text(j, "s", "t");
	json_when(j, head, e, base);
	json_object_begin(j, "args");
	json_uint(j, "call", e->call);
	if (has_peer(e))
		json_int(j, "rank", e->peer);
	json_uint(j, "bytes", e->bytes);
	json_object_end(j);
	json_object_end(j);
}

static void json_names(struct json *j, const struct trace_head *head)
{
	char name[TRACE_NAME + 40];

	snprintf(name, sizeof(name), "rank %" PRId32 " on %s", head->rank, head->host);
	json_object_begin(j, NULL);
	json_text(j, "name", "process_name");
	json_text(j, "ph", "M");
	json_int(j, "pid", head->rank);
	json_object_begin(j, "args");
	json_text(j, "name", name);
	json_object_end(j);
	json_object_end(j);
}

/* The start of the call that ends here; NULL: the dump does not reach back to it. */
static const struct trace_event *call_start(const struct trace_dump *dump, uint64_t end)
{
	const struct trace_event *e = &dump->event[end];

	for (uint64_t i = end; i-- > 0;) {
		const struct trace_event *b = &dump->event[i];

		if (b->kind == TRACE_CALL && b->comm == e->comm && b->call == e->call)
			return b;
	}
	return NULL;
}

/* Calls of a communicator may overlap: their bars are of the kind that has an id. */
static void json_bar(struct json *j, const struct trace_head *head,
		     const struct trace_event *start, const struct trace_event *e,
		     int64_t base)
{
	char id[64];

	snprintf(id, sizeof(id), "%" PRId32 ".%u.%u", head->rank, e->comm, e->call);
	json_object_begin(j, NULL);
	json_text(j, "name", trace_what_name(start));
	json_text(j, "cat", "call");
	json_text(j, "id", id);
	json_text(j, "ph", e == start ? "b" : "e");
	json_when(j, head, e, base);
	json_object_begin(j, "args");
	if (e == start)
		json_uint(j, "count", e->bytes);
	else
		json_text(j, "result", trace_what_name(e));
	json_object_end(j);
	json_object_end(j);
}

static void json_dump(struct json *j, const struct trace_dump *dump, int64_t base)
{
	json_names(j, &dump->head);
	for (uint64_t i = 0; i < dump->head.count; i++) {
		const struct trace_event *e = &dump->event[i], *start = e;

		if (e->kind == TRACE_END)
			start = call_start(dump, i);
		if (e->kind != TRACE_CALL && e->kind != TRACE_END)
			json_mark(j, &dump->head, e, base);
		else if (start)
			json_bar(j, &dump->head, start, e, base);
	}
}

/* ---- the command ------------------------------------------------------------------- */

static int dump_text(const struct trace_src *src)
{
	int status = 0;

	for (int64_t i = 0; i < src->count; i++) {
		struct trace_dump dump;

		if (trace_load(src->path[i], &dump) == WEFT_SUCCESS) {
			print_dump(src->path[i], &dump);
			trace_free(&dump);
		} else {
			fprintf(stderr, "weft trace: %s\n", weft_error_detail());
			status = 1;
		}
	}
	return status;
}

static int dump_names(const struct trace_src *src)
{
	for (int64_t i = 0; i < src->count; i++)
		printf("%s\n", src->path[i]);
	return 0;
}

static void json_all(FILE *out, const struct trace_dump *dump, int count)
{
	int64_t base = INT64_MAX;
	struct json j;

	for (int i = 0; i < count; i++) {
		const struct trace_head *head = &dump[i].head;

		if (head->count && trace_when(head, dump[i].event[0].ticks) < base)
			base = trace_when(head, dump[i].event[0].ticks);
	}
	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_text(&j, "displayTimeUnit", "ns");
	json_array_begin(&j, "traceEvents");
	for (int i = 0; i < count; i++)
		json_dump(&j, &dump[i], base);
	json_array_end(&j);
	json_object_end(&j);
	json_fini(&j);
}

static int write_json(const struct trace_dump *dump, int count, const char *name)
{
	FILE *out = name ? fopen(name, "w") : stdout;
	bool bad;

	if (!out) {
		fprintf(stderr, "weft trace: %s: %s\n", name, strerror(errno));
		return 1;
	}
	json_all(out, dump, count);
	if (!name)
		return 0; /* usage_finish() sees to standard output */
	bad = ferror(out);
	if (fclose(out) || bad) {
		fprintf(stderr, "weft trace: %s: it can't be written\n", name);
		return 1;
	}
	return 0;
}

/* A file that is none is left out, and makes the status 1. */
static int dump_json(const struct trace_src *src, const char *name)
{
	struct trace_dump *dump = calloc((size_t)src->count + 1, sizeof(*dump));
	int loaded = 0, status = 0;

	if (!dump) {
		fprintf(stderr, "weft trace: no memory\n");
		return 1;
	}
	for (int64_t i = 0; i < src->count; i++) {
		if (trace_load(src->path[i], &dump[loaded]) == WEFT_SUCCESS) {
			loaded++;
		} else {
			fprintf(stderr, "weft trace: %s\n", weft_error_detail());
			status = 1;
		}
	}
	if (loaded)
		status |= write_json(dump, loaded, name);
	for (int i = 0; i < loaded; i++)
		trace_free(&dump[i]);
	free(dump);
	return status;
}

enum word { WORD_NONE, WORD_DUMP, WORD_JSON, WORD_ANALYZE };

struct trace_opts {
	enum word word;
	const char *out, *pids, *job, *stuck;
	bool json;
};

static enum word word_of(const char *text)
{
	return strcmp(text, "dump") == 0      ? WORD_DUMP
	       : strcmp(text, "json") == 0    ? WORD_JSON
	       : strcmp(text, "analyze") == 0 ? WORD_ANALYZE
					      : WORD_NONE;
}

/* Status 0: go on; else what to end with, or -1: with 0. */
static int read_opts(int argc, char **argv, struct trace_opts *opts)
{
	static const struct option longs[] = {{"out", required_argument, NULL, 'o'},
					      {"pids", required_argument, NULL, 'p'},
					      {"job", required_argument, NULL, 'j'},
					      {"stuck", required_argument, NULL, 's'},
					      {"json", no_argument, NULL, 'J'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help_text, stdout);
			return -1;
		case 'o':
			opts->out = optarg;
			break;
		case 'p':
			opts->pids = optarg;
			break;
		case 'j':
			opts->job = optarg;
			break;
		case 's':
			opts->stuck = optarg;
			break;
		case 'J':
			opts->json = true;
			break;
		default:
			return usage_option("trace", c, argv);
		}
	}
	return 0;
}

static int check_opts(const struct trace_opts *opts, int argc, char **argv)
{
	const bool analyze = opts->word == WORD_ANALYZE;

	if (opts->word == WORD_NONE)
		return usage_error("trace", "dump, json or analyze is wanted, not",
				   optind < argc ? argv[optind] : "");
	if (!analyze && (opts->stuck || opts->json))
		return usage_error("trace", "--stuck and --json are for analyze", NULL);
	if (analyze && opts->out)
		return usage_error("trace", "--out is for dump and json:", opts->out);
	if (optind + 1 == argc && !opts->pids && !opts->job)
		return usage_error("trace", "no dump is named, and no process", NULL);
	return 0;
}

static int run_word(const struct trace_opts *opts, const struct trace_src *src)
{
	switch (opts->word) {
	case WORD_JSON:
		return dump_json(src, opts->out);
	case WORD_ANALYZE:
		return analyze_run(src, opts->stuck, opts->json);
	default:
		return opts->out ? dump_names(src) : dump_text(src);
	}
}

int cmd_trace(int argc, char **argv)
{
	struct trace_opts opts = {.word = WORD_NONE};
	struct trace_src src;
	int status = read_opts(argc, argv, &opts);

	if (status)
		return status < 0 ? 0 : status;
	opts.word = word_of(optind < argc ? argv[optind] : "");
	status = check_opts(&opts, argc, argv);
	if (status)
		return status;
	trace_src_begin(&src, "trace", opts.word == WORD_DUMP ? opts.out : NULL);
	for (int i = optind + 1; i < argc; i++)
		trace_src_add(&src, argv[i]);
	if (opts.pids)
		trace_src_pids(&src, opts.pids);
	if (opts.job)
		trace_src_job(&src, opts.job);
	status = run_word(&opts, &src);
	if (src.bad && !status)
		status = 1;
	trace_src_end(&src);
	return status;
}
