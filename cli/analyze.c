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
		fprintf(stderr, "weft trace: %s\n", weft_error_detail());
		status = 1;
	}
	if (job->others)
		fprintf(stderr,
			"weft trace: %" PRIu64 " dumps are of another context than the "
			"first one and were left out\n",
			job->others);
	if (job->again)
		fprintf(stderr,
			"weft trace: %" PRIu64
			" dumps are of ranks that had given one and "
			"were left out\n",
			job->again);
	return status;
}

static void print_verdict(const struct job *job, const struct verdict *v)
{
	printf("%" PRId32 " of %" PRId32 " ranks gave a dump\n", job->present, job->size);
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
		return usage_error("trace", "--stuck wants seconds, not", stuck);
	v = calloc(1, sizeof(*v));
	if (!v) {
		fprintf(stderr, "weft trace: no memory\n");
		return 1;
	}
	job_begin(&job, (int64_t)(seconds * 1e9));
	status = read_dumps(&job, src);
	if (!job.present) {
		fprintf(stderr, "weft trace: there is no dump to analyze\n");
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
