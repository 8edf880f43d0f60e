/* SPDX-License-Identifier: BSD-2-Clause */
/* weft sim: one simulation for each algorithm, number of ranks and length asked for. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/parse.h"
#include "cli/sim.h"
#include "coll/plan/nodes.h"
#include "topo/draw/plot.h"
#include "topo/sim/ring.h"

struct run {
	const struct sim_ask *ask;
	const struct fabric_map *map;
	FILE *csv;
	struct plot plot;
	struct model model; /* of the network at hand */
	bool terminal;	    /* stderr: somebody watches */
	unsigned results;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* "FILE:LINE: what". */
static int map_wrong(const struct sim_ask *ask, const struct fabric_error *error)
{
	if (error->line)
		fprintf(stderr, "weft sim: %s:%u: %s\n", ask->fabric, error->line,
			error->text);
	else
		fprintf(stderr, "weft sim: %s: %s\n", ask->fabric, error->text);
	return 1;
}

static void progress_show(void *arg, uint64_t done, uint64_t all, double time)
{
	enum { WIDTH = 30 };
	const unsigned full = (unsigned)((double)done / (double)(all ? all : 1) * WIDTH);
	double *last = arg;
	const double now = seconds();

	if (now < *last + 0.2)
		return;
	*last = now;
	fprintf(stderr, "\r[%.*s%*s] %3u %%, %.3f ms ", (int)full,
		"##############################", (int)(WIDTH - full), "",
		(unsigned)((double)done * 100 / (double)(all ? all : 1)), time * 1e3);
}

/* Of ranks on one host: the lowest of them. NULL: no memory. */
static struct plan_nodes *nodes_of(const struct sim_net *net)
{
	int32_t *lead = malloc((size_t)net->ranks * sizeof(*lead)), *first = NULL;
	struct plan_nodes *nodes = NULL;
	uint32_t most = 0;

	for (int32_t r = 0; r < net->ranks; r++)
		most = net->host[r] > most ? net->host[r] : most;
	first = malloc(((size_t)most + 1) * sizeof(*first));
	if (lead && first) {
		memset(first, 0xff, ((size_t)most + 1) * sizeof(*first));
		for (int32_t r = 0; r < net->ranks; r++) {
			if (first[net->host[r]] < 0)
				first[net->host[r]] = r;
			lead[r] = first[net->host[r]];
		}
		nodes = plan_nodes_make(lead, net->ranks);
	}
	free(lead);
	free(first);
	return nodes;
}

static void csv_row(FILE *csv, const struct sim_ask *ask, const struct sim_row *row)
{
	if (csv)
		fprintf(csv,
			"%s,%s,%d,%" PRIu64 ",%s,%.9g,%.9g,%" PRIu64 ",%" PRIu64
			",%.6g,%.6g,%.3f\n",
			row->algo->coll, row->algo->name, row->ranks, row->bytes,
			sim_placement_name(ask->placement), row->r.time, row->r.first,
			row->r.messages, row->r.events, row->r.busiest, row->r.port,
			row->wall);
}

/* A curve for each algorithm, and each length or number that is not the axis. What does
 * not fit any more is left out: the table has it. */
static void plot_row(struct run *run, const struct sim_row *row)
{
	const struct sim_ask *ask = run->ask;
	char name[64], bytes[PARSE_SIZE_TEXT];
	struct plot_curve *curve;

	parse_size_print(row->bytes, bytes);
	if (ask->ranks_count > 1 && ask->bytes_count > 1)
		snprintf(name, sizeof(name), "%s, %s", row->algo->name, bytes);
	else
		snprintf(name, sizeof(name), "%s", row->algo->name);
	curve = plot_curve(&run->plot, name);
	if (curve && row->r.time > 0)
		plot_point(curve, ask->ranks_count > 1 ? row->ranks : (double)row->bytes,
			   row->r.time * 1e6);
}

/* False: it cannot be written, which has been said. */
static bool svg_write(struct run *run)
{
	const struct sim_ask *ask = run->ask;
	char title[160], bytes[PARSE_SIZE_TEXT];
	FILE *file = fopen(ask->svg, "we");
	bool good = file;

	parse_size_print(ask->bytes[0], bytes);
	if (ask->ranks_count > 1)
		snprintf(title, sizeof(title), "%s, %s%s, %s", ask->coll, bytes,
			 ask->bytes_count > 1 ? " and more" : "",
			 sim_placement_name(ask->placement));
	else
		snprintf(title, sizeof(title), "%s, %d ranks, %s", ask->coll,
			 ask->ranks[0], sim_placement_name(ask->placement));
	run->plot.title = title;
	run->plot.x = ask->ranks_count > 1 ? "ranks" : "bytes";
	run->plot.y = "microseconds";
	if (good)
		good = plot_write(&run->plot, file);
	if (file && fclose(file))
		good = false;
	if (!good)
		fprintf(stderr, "weft sim: %s: %s\n", ask->svg, strerror(errno));
	return good;
}

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
			       l->mesh ? ", pair by pair" : "");
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

static void row_show(struct run *run, const struct sim_net *net,
		     const struct sim_row *row)
{
	char bytes[PARSE_SIZE_TEXT];

	if (run->terminal)
		fprintf(stderr, "\r%60s\r", "");
	if (!run->results++)
		printf("%-32s %9s %9s %14s %14s %10s %8s\n", "algorithm", "ranks",
		       "bytes", "time us", "first us", "messages", "wall s");
	parse_size_print(row->bytes, bytes);
	printf("%-15s %-16s %9d %9s %14.3f %14.3f %10" PRIu64 " %8.2f\n", row->algo->coll,
	       row->algo->name, row->ranks, bytes, row->r.time * 1e6, row->r.first * 1e6,
	       row->r.messages, row->wall);
	if (run->ask->explain) {
		explain(net, row);
		sim_terms_show(run->ask, &run->model);
	}
	fflush(stdout);
	csv_row(run->csv, run->ask, row);
	plot_row(run, row);
}

/* More messages than anybody waits for: about an hour. */
#define MESSAGES_MOST UINT64_C(4000000000)
/* Than anybody does who asked for no algorithm, and has the answer by formula. */
#define MESSAGES_UNASKED UINT64_C(20000000)

/* What all ranks together send, by what the first one does: more than that? */
static bool too_many(const struct sim_job *job, uint64_t most)
{
	struct plan *plan = NULL;
	const char *why;
	double sends = 0;

	if (job->algo->build(&job->call, &plan, &why))
		return false; /* the engine says what is wrong */
	for (uint32_t l = 0; l < plan->loop_count; l++)
		for (uint32_t i = 0; i < plan->loop[l].count; i++)
			if (plan->step[plan->loop[l].first + i].kind == PLAN_SEND)
				sends += plan->loop[l].trips;
	plan_free(plan);
	return sends * job->call.size > (double)most;
}

/* By symmetry where that is so, else message by message. */
static int simulate(const struct sim_ask *ask, const struct sim_net *net,
		    const struct sim_job *job, const struct sim_options *o,
		    struct sim_row *row, char *why, size_t why_len)
{
	char symmetry[128];
	int rc = -ENOTSUP;

	snprintf(symmetry, sizeof(symmetry), "--full was given");
	if (!ask->full)
		rc = sim_ring(net, job, o, &row->r, &row->period, symmetry,
			      sizeof(symmetry));
	if (rc != -ENOTSUP) {
		snprintf(why, why_len, "%s", rc == -ENOMEM ? "no memory" : symmetry);
		return rc;
	}
	if (too_many(job, MESSAGES_MOST)) {
		snprintf(why, why_len,
			 "%s/%s, %d ranks: more than 4000 million messages, and no "
			 "symmetry to spare them (%s); fewer ranks, or larger --chunk",
			 job->algo->coll, job->algo->name, job->call.size, symmetry);
		return -EINVAL;
	}
	return sim_run(net, job, 1, o, &row->r, NULL, why, why_len);
}

/* One of them; 0, or the exit status. */
static int one(struct run *run, const struct sim_net *net, const struct algo *algo,
	       struct plan_call call, uint64_t bytes)
{
	const struct sim_ask *ask = run->ask;
	double shown = seconds(), begin = shown;
	struct sim_options o = {.eager = ask->eager, .gap = ask->gap, .work = ask->work};
	struct sim_row row = {.algo = algo, .ranks = net->ranks, .bytes = bytes};
	struct sim_job job = {.algo = algo, .call = call};
	double *delay = NULL;
	char why[256];
	int rc;

	if (ask->late_by > 0 && ask->late < net->ranks) {
		delay = calloc((size_t)net->ranks, sizeof(*delay));
		if (!delay)
			return 1;
		delay[ask->late] = ask->late_by;
		o.delay = delay;
	}
	if (run->terminal) {
		o.progress = progress_show;
		o.progress_arg = &shown;
	}
	rc = simulate(ask, net, &job, &o, &row, why, sizeof(why));
	free(delay);
	row.wall = seconds() - begin;
	if (rc) {
		fprintf(stderr, "%sweft sim: %s\n", run->terminal ? "\r" : "", why);
		return 1;
	}
	row_show(run, net, &row);
	return 0;
}

/* No algorithm was asked for: what formulas say, and the library's choice where that does
 * not take long. */
static int unasked(struct run *run, const struct sim_net *net, struct plan_call call,
		   uint64_t bytes)
{
	const struct sim_job job = {.algo = algo_choose(run->ask->coll, &call),
				    .call = call};
	const bool said = sim_answer_show(run->ask, &run->model, bytes);

	if (!said || !too_many(&job, MESSAGES_UNASKED))
		return one(run, net, job.algo, call, bytes);
	if (run->ask->explain)
		sim_terms_show(run->ask, &run->model);
	printf("  not simulated: %s has more than 20 million messages; ask for it by "
	       "--algorithm\n",
	       job.algo->name);
	return 0;
}

/* All algorithms and lengths at one number of ranks. */
static int ranks_do(struct run *run, const struct sim_net *net)
{
	const struct sim_ask *ask = run->ask;
	struct plan_nodes *nodes = nodes_of(net);
	int status = nodes && model_make(net, &run->model) ? 0 : 1;

	if (status)
		fprintf(stderr, "weft sim: no memory\n");

	for (unsigned i = 0; !status && i < ask->bytes_count; i++) {
		const uint64_t bytes = ask->bytes[i];
		const uint32_t elem = bytes % 4 ? 1 : 4;
		const struct plan_call call = {.size = net->ranks,
					       .count = bytes / elem,
					       .elem_size = elem,
					       .chunk_bytes = ask->chunk,
					       .nodes = nodes};

		if (!ask->algos)
			status = unasked(run, net, call, bytes);
		for (unsigned a = 0; !status && a < ask->algos; a++)
			if (ask->algos == 1 || ask->algo[a]->supports(&call))
				status = one(run, net, ask->algo[a], call, bytes);
	}
	free(nodes);
	return status;
}

static int all_do(struct run *run)
{
	const struct sim_ask *ask = run->ask;
	int status = 0;

	for (unsigned i = 0; !status && i < ask->ranks_count; i++) {
		const struct sim_net_options o = {.ranks = ask->ranks[i],
						  .placement = ask->placement,
						  .seed = ask->seed,
						  .slow = ask->slow,
						  .slows = ask->slows};
		struct fabric_error error;
		struct sim_net *net;

		if (sim_net_open(run->map, &o, &net, &error))
			return map_wrong(ask, &error);
		status = ranks_do(run, net);
		sim_net_close(net);
	}
	return status;
}

int cmd_sim(int argc, char **argv)
{
	struct sim_ask ask = {.seed = 1, .eager = 16384};
	struct run run = {.ask = &ask, .terminal = isatty(STDERR_FILENO)};
	int status = sim_args(&ask, argc, argv);
	struct fabric_error error;
	struct fabric_map *map;

	if (status >= 0)
		return status;
	if (fabric_map_load(ask.fabric, &map, &error))
		return map_wrong(&ask, &error);
	run.map = map;
	if (ask.csv) {
		run.csv = fopen(ask.csv, "we");
		if (!run.csv) {
			fprintf(stderr, "weft sim: %s: %s\n", ask.csv, strerror(errno));
			fabric_map_free(map);
			return 1;
		}
		fprintf(run.csv,
			"operation,algorithm,ranks,bytes,placement,time_s,first_s,"
			"messages,events,busiest_link,busiest_port,wall_s\n");
	}
	status = all_do(&run);
	if (run.csv && (ferror(run.csv) | fclose(run.csv))) {
		fprintf(stderr, "weft sim: %s: cannot be written\n", ask.csv);
		status = 1;
	}
	if (ask.svg && !status && !svg_write(&run))
		status = 1;
	fabric_map_free(map);
	return status;
}
