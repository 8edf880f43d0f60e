/* SPDX-License-Identifier: BSD-2-Clause */
/* See analyze.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/analyze.h"
#include "cli/json.h"
#include "cli/usage.h"
#include "coll/analyze/pace.h"
#include "coll/analyze/stuck.h"

/* More clocks than that nobody reads. */
enum { STATUS_FOUND = 3, CLOCKS_SHOWN = 64 };

/* Dumps in the order that folders have them in: the verdict is the same in any other. */
static int read_dumps(struct job *job, const struct trace_src *src)
{
	int status = 0;

	for (int64_t i = 0; i < src->count; i++) {
		if (job_add(job, src->path[i], src->state[i]) == WEFT_SUCCESS)
			continue;
		fprintf(stderr, "weft %s: %s\n", src->who, weft_error_detail());
		status = 1;
	}
	if (job->others)
		fprintf(stderr,
			"weft %s: %" PRIu64 " dumps are of another context than the "
			"first one and were left out\n",
			src->who, job->others);
	if (job->again)
		fprintf(stderr,
			"weft %s: %" PRIu64 " dumps are of ranks that had given one and "
			"were left out\n",
			src->who, job->again);
	return status;
}

/* The next ranks from *at on that gave no dump: first to last. */
static bool missing_next(const struct job *job, int32_t *at, int32_t *first,
			 int32_t *last)
{
	while (*at < job->size && job->seat[*at].there)
		++*at;
	*first = *at;
	while (*at < job->size && !job->seat[*at].there)
		++*at;
	*last = *at - 1;
	return *first < job->size;
}

static void print_missing(const struct job *job)
{
	int32_t at = 0, first, last;
	const char *between = "no dump of rank ";

	while (missing_next(job, &at, &first, &last)) {
		printf("%s%" PRId32, between, first);
		if (last > first)
			printf("-%" PRId32, last);
		between = ", ";
	}
	if (*between == ',')
		printf(": ended, on another host, or another user's\n");
}

static void json_missing(struct json *j, const struct job *job)
{
	int32_t at = 0, first, last;

	json_array_begin(j, "missing");
	while (missing_next(job, &at, &first, &last)) {
		json_object_begin(j, NULL);
		json_int(j, "first", first);
		json_int(j, "last", last);
		json_object_end(j);
	}
	json_array_end(j);
}

static void print_verdict(const struct job *job, const struct verdict *v)
{
	printf("%" PRId32 " of %" PRId32 " ranks gave a dump\n", job->present, job->size);
	print_missing(job);
	if (v->stopped)
		printf("first to stop: call %u of communicator %u: %s\n", v->call,
		       v->comm, v->what);
	printf("verdict: %s", verdict_name(v->kind));
	if (v->rank >= 0)
		printf(": rank %" PRId32, v->rank);
	if (v->to >= 0)
		printf(" to rank %" PRId32, v->to);
	printf("\n");
	for (int i = 0; i < v->lines; i++)
		printf("  %s\n", v->line[i]);
	if (*v->nic)
		printf("  network: %s\n", v->nic);
}

static void json_verdict(const struct job *job, const struct verdict *v)
{
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_uint(&j, "schema", 1);
	json_int(&j, "ranks", job->size);
	json_int(&j, "dumps", job->present);
	json_missing(&j, job);
	json_text(&j, "verdict", verdict_name(v->kind));
	json_int(&j, "rank", v->rank);
	json_int(&j, "to", v->to);
	if (v->stopped) {
		json_object_begin(&j, "stopped");
		json_uint(&j, "communicator", v->comm);
		json_int(&j, "first_rank", v->first);
		json_uint(&j, "call", v->call);
		json_text(&j, "what", v->what);
		json_object_end(&j);
	}
	if (*v->nic)
		json_text(&j, "network", v->nic);
	json_array_begin(&j, "evidence");
	for (int i = 0; i < v->lines; i++)
		json_text(&j, NULL, v->line[i]);
	json_array_end(&j);
	json_array_begin(&j, "clocks");
	for (int32_t r = 0; r < job->size && job->present <= CLOCKS_SHOWN; r++) {
		if (!job->seat[r].clocked)
			continue;
		json_object_begin(&j, NULL);
		json_int(&j, "rank", r);
		json_int(&j, "offset_ns", job->seat[r].clock.offset);
		json_real(&j, "drift", job->seat[r].clock.drift);
		json_real(&j, "width_ns", job->seat[r].clock.width);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_fini(&j);
}

int analyze_run(const struct trace_src *src, const char *stuck, bool json)
{
	struct verdict *v;
	double seconds = 1;
	struct job job;
	char *end = NULL;
	int status;

	if (stuck)
		seconds = strtod(stuck, &end);
	if (stuck && (end == stuck || *end || !(seconds > 0 && seconds < 1e6)))
		return usage_error(src->who, "--stuck wants seconds, not", stuck);
	v = calloc(1, sizeof(*v));
	if (!v) {
		fprintf(stderr, "weft %s: no memory\n", src->who);
		return 1;
	}
	job_begin(&job, (int64_t)(seconds * 1e9));
	status = read_dumps(&job, src);
	if (!job.present) {
		fprintf(stderr,
			"weft %s: there is no dump to analyze: name processes that have "
			"opened a context, or, with weft trace analyze, files of dumps\n",
			src->who);
		job_end(&job);
		free(v);
		return 1;
	}
	job_clocks(&job);
	if (!stuck_find(&job, v))
		pace_find(&job, v);
	if (json)
		json_verdict(&job, v);
	else
		print_verdict(&job, v);
	if (v->kind != VERDICT_NONE)
		status = STATUS_FOUND;
	job_end(&job);
	free(v);
	return status;
}
