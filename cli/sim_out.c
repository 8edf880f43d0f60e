/* SPDX-License-Identifier: BSD-2-Clause */
/* What weft sim says of a result: a line of the table, of a CSV file, a row of a JSON
 * document. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/parse.h"
#include "cli/sim.h"

/* ---- CSV -----------------------------------------------------------------------------
 */

void sim_csv_head(FILE *csv)
{
	fprintf(csv, "operation,algorithm,ranks,bytes,placement,time_s,first_s,"
		     "messages,events,busiest_link,busiest_port,wall_s,job,begin_s,"
		     "alone_s\n");
}

static void csv_common(FILE *csv, const struct sim_ask *ask, const struct sim_job *job,
		       int32_t ranks, uint64_t bytes, double time)
{
	fprintf(csv, "%s,%s,%d,%" PRIu64 ",%s,%.9g", job->algo->coll, job->algo->name,
		ranks, bytes, sim_placement_name(ask->placement), time);
}

void sim_csv_row(FILE *csv, const struct sim_ask *ask, const struct sim_row *row)
{
	const struct sim_set *set = row->set;
	const struct sim_result *r = &row->r;

	csv_common(csv, ask, &set->job[0], row->ranks, row->bytes, r->time);
	fprintf(csv, ",%.9g,%" PRIu64 ",%" PRIu64 ",%.6g,%.6g,%.3f,0,0,\n", r->first,
		r->messages, r->events, r->busiest, r->port, row->wall);
	for (unsigned i = 0; set->jobs > 1 && i < set->jobs; i++) {
		csv_common(csv, ask, &set->job[i], set->job[i].call.size, set->bytes[i],
			   set->end[i] - set->job[i].begin);
		fprintf(csv, ",,,,,,,%u,%.9g,", i + 1, set->job[i].begin);
		if (set->alone[i] >= 0)
			fprintf(csv, "%.9g", set->alone[i]);
		fprintf(csv, "\n");
	}
}

/* ---- JSON ----------------------------------------------------------------------------
 */

void sim_json_begin(struct json *j, const struct sim_ask *ask)
{
	json_init(j, stdout);
	json_object_begin(j, NULL);
	json_text(j, "program", "weft sim");
	json_int(j, "schema", 1);
	json_text(j, "operation", ask->coll);
	json_text(j, "fabric", ask->fabric);
	json_text(j, "placement", sim_placement_name(ask->placement));
	json_array_begin(j, "faults");
	for (unsigned i = 0; i < ask->faults; i++) {
		json_object_begin(j, NULL);
		json_text(j, "name", ask->fault[i].name);
		json_real(j, "part", ask->fault[i].part);
		json_object_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "stragglers");
	for (unsigned i = 0; i < ask->late_count; i++) {
		json_object_begin(j, NULL);
		json_int(j, "rank", ask->late[i].rank);
		json_real(j, "late_s", ask->late[i].by);
		json_real(j, "factor", ask->late[i].factor);
		json_object_end(j);
	}
	json_array_end(j);
	if (ask->layers) {
		json_text(j, "layers", ask->layers);
		json_bool(j, "sharded", ask->sharded);
		if (ask->sharded)
			json_uint(j, "prefetch", ask->prefetch);
		else
			json_uint(j, "bucket", ask->bucket);
	}
	json_array_begin(j, "results");
}

void sim_json_end(struct json *j)
{
	json_array_end(j);
	json_object_end(j);
	json_fini(j);
}

static void json_jobs(struct json *j, const struct sim_set *set)
{
	json_array_begin(j, "jobs");
	for (unsigned i = 0; i < set->jobs; i++) {
		const struct sim_job *job = &set->job[i];
		const struct sim_some *some = &set->some[i];

		json_object_begin(j, NULL);
		json_text(j, "operation", job->algo->coll);
		json_text(j, "algorithm", job->algo->name);
		json_uint(j, "bytes", set->bytes[i]);
		json_int(j, "ranks", job->call.size);
		json_int(j, "first", some->first);
		json_int(j, "last", some->last);
		json_int(j, "step", some->step);
		json_real(j, "begin_s", job->begin);
		json_real(j, "time_s", set->end[i] - job->begin);
		if (set->alone[i] >= 0)
			json_real(j, "alone_s", set->alone[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

void sim_json_row(struct json *j, const struct sim_net *net, const struct sim_row *row)
{
	const struct sim_result *r = &row->r;

	json_object_begin(j, NULL);
	json_text(j, "algorithm", row->set->job[0].algo->name);
	json_int(j, "ranks", row->ranks);
	json_uint(j, "bytes", row->bytes);
	json_real(j, "time_s", r->time);
	json_real(j, "first_s", r->first);
	json_uint(j, "messages", r->messages);
	json_uint(j, "events", r->events);
	json_real(j, "busiest_link", r->busiest);
	json_real(j, "busiest_port", r->port);
	json_int(j, "period", row->period);
	json_real(j, "wall_s", row->wall);
	if (sim_net_setup(net) > 0)
		json_real(j, "setup_s", sim_net_setup(net));
	json_array_begin(j, "tiers");
	for (unsigned i = 0; i < net->levels; i++) {
		if (!net->level[i].said)
			continue;
		json_object_begin(j, NULL);
		json_text(j, "tier", fabric_distance_name(net->level[i].tier));
		json_real(j, "bytes", r->level_bytes[i]);
		json_object_end(j);
	}
	json_array_end(j);
	if (row->set->jobs > 1)
		json_jobs(j, row->set);
	json_object_end(j);
}

/* ---- text ----------------------------------------------------------------------------
 */

/* The tiers of the way up, what met there, what the links between are. */
static void explain(const struct sim_net *net, const struct sim_row *row)
{
	static const char *const met[] = {"on one host", "in one rack", "in one zone",
					  "in one building", "in two buildings"};

	for (unsigned i = 0; i < net->levels; i++) {
		const struct sim_level *l = &net->level[i];

		if (!l->said)
			continue;
		printf("  %-16s latency %7.2f us, %.4g GB", met[l->tier],
		       l->latency * 1e6, row->r.level_bytes[i] / 1e9);
		if (i > 0)
			printf("; links below %.4g GB/s%s", l->width / 1e9,
			       l->mesh	  ? ", pair by pair"
			       : l->torus ? ", each to its neighbours in a torus"
					  : "");
		if (l->deads)
			printf(", %u of them dead", l->deads);
		printf("\n");
	}
	printf("  the busiest port is used %.1f %% of the time", row->r.port * 100);
	if (row->r.link != SHARE_NONE)
		printf(", the busiest link %.1f %%: of tier %s, %.4g GB/s",
		       row->r.busiest * 100,
		       fabric_distance_name(net->level[net->tier_of[row->r.link]].tier),
		       net->capacity[row->r.link] / 1e9);
	if (row->period) {
		printf("\n  by symmetry: the same times every %d ranks\n", row->period);
		return;
	}
	printf("\n  %" PRIu64 " messages, %" PRIu64 " events, %" PRIu64
	       " shapes of plans; rates found %" PRIu64 " times, for %" PRIu64
	       " classes\n",
	       row->r.messages, row->r.events, row->r.shapes, row->r.share.settled,
	       row->r.share.classes);
}

static void job_show(const struct sim_set *set, unsigned i)
{
	const struct sim_job *job = &set->job[i];
	const struct sim_some *some = &set->some[i];
	char bytes[PARSE_SIZE_TEXT], step[16] = "";
	const double time = set->end[i] - job->begin;

	parse_size_print(set->bytes[i], bytes);
	if (some->step > 1)
		snprintf(step, sizeof(step), "/%d", some->step);
	printf("  job %u: %s %s, %s, ranks %d-%d%s, from %.3f us: %.3f us", i + 1,
	       job->algo->coll, job->algo->name, bytes, some->first, some->last, step,
	       job->begin * 1e6, time * 1e6);
	if (set->alone[i] > 0)
		printf(", alone %.3f us (%.2f times)", set->alone[i] * 1e6,
		       time / set->alone[i]);
	printf("\n");
}

/* Each; of many the first and the last to be through. */
static void jobs_show(const struct sim_set *set)
{
	enum { SHOWN = 16 };
	unsigned first = 0, last = 0;

	for (unsigned i = 0; i < set->jobs; i++) {
		if (set->jobs <= SHOWN)
			job_show(set, i);
		if (set->end[i] < set->end[first])
			first = i;
		if (set->end[i] > set->end[last])
			last = i;
	}
	if (set->jobs <= SHOWN)
		return;
	job_show(set, first);
	job_show(set, last);
	printf("  %u others are through between these\n", set->jobs - 2);
}

void sim_row_show(const struct sim_ask *ask, const struct sim_net *net,
		  const struct model *model, const struct sim_row *row, bool head)
{
	const struct algo *algo = row->set->job[0].algo;
	char bytes[PARSE_SIZE_TEXT];

	if (head)
		printf("%-32s %9s %9s %14s %14s %10s %8s\n", "algorithm", "ranks",
		       "bytes", "time us", "first us", "messages", "wall s");
	parse_size_print(row->bytes, bytes);
	printf("%-15s %-16s %9d %9s %14.3f %14.3f %10" PRIu64 " %8.2f\n", algo->coll,
	       algo->name, row->ranks, bytes, row->r.time * 1e6, row->r.first * 1e6,
	       row->r.messages, row->wall);
	if (sim_net_setup(net) > 0)
		printf("  before it, once: %.3f us until circuits are switched\n",
		       sim_net_setup(net) * 1e6);
	if (row->set->jobs > 1)
		jobs_show(row->set);
	if (ask->explain) {
		explain(net, row);
		sim_terms_show(ask, model);
	}
	fflush(stdout);
}
