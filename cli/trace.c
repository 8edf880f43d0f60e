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

#include "cli/cmd.h"
#include "cli/json.h"
#include "cli/usage.h"
#include "coll/trace/trace_file.h"

static const char help_text[] =
	"usage: weft trace dump FILE...\n"
	"       weft trace json [--out FILE] FILE...\n"
	"  dump        prints the events of dumps, one after the other, as text\n"
	"  json        all of them as Chrome trace events, for ui.perfetto.dev\n"
	"  --out FILE  where the JSON goes (default: standard output)\n"
	"Dumps are what weft_trace_dump() writes, and, where WEFT_TRACE names a folder, "
	"every\n"
	"rank at its first call that fails and at SIGUSR2.\n";

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
	else if (e->bytes)
		printf("  %s %" PRIu64, e->kind == TRACE_SIGNAL ? "adds" : "bytes",
		       e->bytes);
	printf("\n");
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

static int dump_text(int count, char **path)
{
	int status = 0;

	for (int i = 0; i < count; i++) {
		struct trace_dump dump;

		if (trace_load(path[i], &dump) == WEFT_SUCCESS) {
			print_dump(path[i], &dump);
			trace_free(&dump);
		} else {
			fprintf(stderr, "weft trace: %s\n", weft_error_detail());
			status = 1;
		}
	}
	return status;
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
static int dump_json(int count, char **path, const char *name)
{
	struct trace_dump *dump = calloc((size_t)count, sizeof(*dump));
	int loaded = 0, status = 0;

	if (!dump) {
		fprintf(stderr, "weft trace: no memory\n");
		return 1;
	}
	for (int i = 0; i < count; i++) {
		if (trace_load(path[i], &dump[loaded]) == WEFT_SUCCESS) {
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

int cmd_trace(int argc, char **argv)
{
	static const struct option longs[] = {{"out", required_argument, NULL, 'o'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	const char *out = NULL, *what;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		if (c != 'o')
			return usage_option("trace", c, argv);
		out = optarg;
	}
	what = optind < argc ? argv[optind] : "";
	if (strcmp(what, "dump") != 0 && strcmp(what, "json") != 0)
		return usage_error("trace", "dump or json is wanted, not", what);
	if (optind + 1 == argc)
		return usage_error("trace", "no FILE is named", NULL);
	if (strcmp(what, "json") == 0)
		return dump_json(argc - optind - 1, argv + optind + 1, out);
	if (out)
		return usage_error("trace", "--out is for json:", out);
	return dump_text(argc - optind - 1, argv + optind + 1);
}
