/* SPDX-License-Identifier: BSD-2-Clause */
/* weft sim: one simulation for each algorithm, number of ranks and length asked for. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/parse.h"
#include "cli/sim.h"
#include "topo/draw/plot.h"
#include "topo/sim/ring.h"

struct run {
	const struct sim_ask *ask;
	const struct fabric_map *map;
	FILE *csv;
	struct json json;
	struct plot plot;
	struct model model;   /* of the network at hand */
	struct layers layers; /* of a step */
	bool terminal;	      /* stderr: somebody watches */
	unsigned results;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* "FILE:LINE: what". */
static int file_wrong(const char *file, const struct fabric_error *error)
{
	if (error->line)
		fprintf(stderr, "weft sim: %s:%u: %s\n", file, error->line, error->text);
	else
		fprintf(stderr, "weft sim: %s: %s\n", file, error->text);
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

/* A curve for each algorithm, and each length or number that is not the axis. What does
 * not fit any more is left out: the table has it. */
static void plot_row(struct run *run, const struct sim_row *row)
{
	const struct sim_ask *ask = run->ask;
	char name[64], bytes[PARSE_SIZE_TEXT];
	struct plot_curve *curve;

	parse_size_print(row->bytes, bytes);
	if (ask->ranks_count > 1 && ask->bytes_count > 1)
		snprintf(name, sizeof(name), "%s, %s", row->set->job[0].algo->name,
			 bytes);
	else
		snprintf(name, sizeof(name), "%s", row->set->job[0].algo->name);
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
	if (ask->layers) {
		snprintf(title, sizeof(title), "step, %s, %s",
			 ask->sharded ? "sharded" : "replicated",
			 sim_placement_name(ask->placement));
		run->plot.linear_y = true;
	}
	run->plot.x = ask->layers || ask->ranks_count > 1 ? "ranks" : "bytes";
	run->plot.bytes_x = !ask->layers && ask->ranks_count <= 1;
	run->plot.y = ask->layers ? "efficiency, percent" : "microseconds";
	if (good)
		good = plot_write(&run->plot, file);
	if (file && fclose(file))
		good = false;
	if (!good)
		fprintf(stderr, "weft sim: %s: %s\n", ask->svg, strerror(errno));
	return good;
}

static void row_show(struct run *run, const struct sim_net *net,
		     const struct sim_row *row)
{
	if (run->terminal)
		fprintf(stderr, "\r%60s\r", "");
	if (run->ask->json)
		sim_json_row(&run->json, net, row);
	else
		sim_row_show(run->ask, net, &run->model, row, !run->results);
	run->results++;
	if (run->csv)
		sim_csv_row(run->csv, run->ask, row);
	plot_row(run, row);
}

/* More messages than anybody waits for: about an hour. */
#define MESSAGES_MOST UINT64_C(4000000000)
/* Than anybody does who asked for no algorithm, and has the answer by formula. */
#define MESSAGES_UNASKED UINT64_C(20000000)

/* What all ranks together send, by what the first one of each job does: more than that?
 */
static bool too_many(const struct sim_set *set, uint64_t most)
{
	double all = 0;

	for (unsigned j = 0; j < set->jobs; j++) {
		const struct sim_job *job = &set->job[j];
		struct plan *plan = NULL;
		const char *why;
		double sends = 0;

		/* Groups are alike. */
		if (j && j < set->mains) {
			all += all / j;
			continue;
		}
		if (job->algo->build(&job->call, &plan, &why))
			return false; /* the engine says what is wrong */
		for (uint32_t l = 0; l < plan->loop_count; l++)
			for (uint32_t i = 0; i < plan->loop[l].count; i++)
				if (plan->step[plan->loop[l].first + i].kind == PLAN_SEND)
					sends += plan->loop[l].trips;
		plan_free(plan);
		all += sends * job->call.size;
	}
	return all > (double)most;
}

int sim_one(const struct sim_ask *ask, const struct sim_net *net, struct sim_set *set,
	    const struct sim_options *o, struct sim_result *result, int32_t *period,
	    char *why, size_t why_len)
{
	const struct sim_job *job = &set->job[0];
	char symmetry[128];
	int rc = -ENOTSUP;

	*period = 0;
	snprintf(symmetry, sizeof(symmetry), "%s",
		 ask->full ? "--full was given" : "several collectives run at once");
	if (!ask->full && set->jobs == 1)
		rc = sim_ring(net, job, o, result, period, symmetry, sizeof(symmetry));
	if (rc != -ENOTSUP) {
		snprintf(why, why_len, "%s", rc == -ENOMEM ? "no memory" : symmetry);
		return rc;
	}
	if (too_many(set, MESSAGES_MOST)) {
		snprintf(why, why_len,
			 "%s/%s, %d ranks: more than 4000 million messages, and no "
			 "symmetry to spare them (%s); fewer ranks, or larger --chunk",
			 job->algo->coll, job->algo->name, net->ranks, symmetry);
		return -EINVAL;
	}
	if (set->jobs > 1)
		return sim_set_run(set, net, o, result, why, why_len);
	return sim_run(net, job, 1, o, result, NULL, why, why_len);
}

/* Who is late, and who is slow, by rank. False: no memory. */
static bool late_set(const struct sim_ask *ask, const struct sim_net *net, double **delay,
		     double **lag)
{
	const size_t n = (size_t)net->ranks;

	*delay = ask->late_count ? calloc(n, sizeof(**delay)) : NULL;
	*lag = ask->late_count ? calloc(n, sizeof(**lag)) : NULL;
	if (ask->late_count && (!*delay || !*lag))
		return false;
	for (size_t r = 0; ask->late_count && r < n; r++)
		(*lag)[r] = 1;
	for (unsigned i = 0; i < ask->late_count; i++) {
		(*delay)[ask->late[i].rank] += ask->late[i].by;
		(*lag)[ask->late[i].rank] *= ask->late[i].factor;
	}
	return true;
}

/* One of them; 0, or the exit status. */
static int one(struct run *run, const struct sim_net *net, struct sim_set *set,
	       uint64_t bytes)
{
	const struct sim_ask *ask = run->ask;
	double shown = seconds(), begin = shown, *delay = NULL, *lag = NULL;
	struct sim_options o = {.eager = ask->eager, .gap = ask->gap, .work = ask->work};
	struct sim_row row = {.set = set, .ranks = net->ranks, .bytes = bytes};
	char why[256] = "no memory";
	int rc = late_set(ask, net, &delay, &lag) ? 0 : -ENOMEM;

	o.delay = delay;
	o.lag = lag;
	if (run->terminal) {
		o.progress = progress_show;
		o.progress_arg = &shown;
	}
	if (!rc)
		rc = sim_one(ask, net, set, &o, &row.r, &row.period, why, sizeof(why));
	free(delay);
	free(lag);
	row.wall = seconds() - begin;
	if (rc) {
		fprintf(stderr, "%sweft sim: %s\n", run->terminal ? "\r" : "", why);
		return 1;
	}
	row_show(run, net, &row);
	return 0;
}

/* No algorithm was asked for: what formulas say, where all ranks do one thing, and the
 * library's choice where that does not take long. */
static int unasked(struct run *run, const struct sim_net *net, struct sim_set *set,
		   uint64_t bytes)
{
	const struct sim_ask *ask = run->ask;
	const bool said = !ask->json && set->jobs == 1 && !set->job[0].at &&
			  sim_answer_show(ask, &run->model, bytes);

	if (!said || !too_many(set, MESSAGES_UNASKED))
		return one(run, net, set, bytes);
	if (ask->explain)
		sim_terms_show(ask, &run->model);
	printf("  not simulated: %s has more than 20 million messages; ask for it by "
	       "--algorithm\n",
	       set->job[0].algo->name);
	return 0;
}

/* An algorithm (NULL: the library's choice) at one length. */
static int algo_do(struct run *run, const struct sim_net *net, const struct algo *algo,
		   uint64_t bytes)
{
	struct sim_set set;
	char why[256];
	int rc = sim_set_make(&set, run->ask, net, algo, bytes, why, sizeof(why));
	int status = 0;

	if (rc) {
		fprintf(stderr, "weft sim: %s\n", why);
		status = 1;
	} else if (!algo) {
		status = unasked(run, net, &set, bytes);
	} else if (run->ask->algos == 1 || algo->supports(&set.job[0].call)) {
		status = one(run, net, &set, bytes);
	}
	sim_set_free(&set);
	return status;
}

static int step_do(struct run *run, const struct sim_net *net)
{
	const struct sim_step_out out = {.json = &run->json,
					 .csv = run->csv,
					 .curve = plot_curve(&run->plot, "efficiency"),
					 .first = !run->results++};

	return sim_step(run->ask, net, &run->layers, &out);
}

/* All algorithms and lengths at one number of ranks. */
static int ranks_do(struct run *run, const struct sim_net *net)
{
	const struct sim_ask *ask = run->ask;
	int status = model_make(net, &run->model) ? 0 : 1;

	if (status)
		fprintf(stderr, "weft sim: no memory\n");
	for (unsigned i = 0; !status && i < ask->bytes_count; i++) {
		if (!ask->algos)
			status = algo_do(run, net, NULL, ask->bytes[i]);
		for (unsigned a = 0; !status && a < ask->algos; a++)
			status = algo_do(run, net, ask->algo[a], ask->bytes[i]);
	}
	return status;
}

static int all_do(struct run *run)
{
	const struct sim_ask *ask = run->ask;
	int status = 0;

	for (unsigned i = 0; !status && i < ask->ranks_count; i++) {
		struct sim_net_options o = {.ranks = ask->ranks[i],
					    .placement = ask->placement,
					    .seed = ask->seed,
					    .fault = ask->fault,
					    .faults = ask->faults};
		struct fabric_error error;
		struct sim_net *net;

		memcpy(o.shape, ask->shape, sizeof(o.shape));
		if (sim_net_open(run->map, &o, &net, &error))
			return file_wrong(ask->fabric, &error);
		status = ask->layers ? step_do(run, net) : ranks_do(run, net);
		sim_net_close(net);
	}
	return status;
}

/* The files that are written, around all that is done. */
static int outputs_do(struct run *run)
{
	const struct sim_ask *ask = run->ask;
	int status;

	if (ask->csv) {
		run->csv = fopen(ask->csv, "we");
		if (!run->csv) {
			fprintf(stderr, "weft sim: %s: %s\n", ask->csv, strerror(errno));
			return 1;
		}
		if (ask->layers)
			sim_step_csv_head(run->csv);
		else
			sim_csv_head(run->csv);
	}
	if (ask->json)
		sim_json_begin(&run->json, ask);
	status = all_do(run);
	if (ask->json)
		sim_json_end(&run->json);
	if (run->csv && (ferror(run->csv) | fclose(run->csv))) {
		fprintf(stderr, "weft sim: %s: cannot be written\n", ask->csv);
		status = 1;
	}
	if (ask->svg && !status && !svg_write(run))
		status = 1;
	return status;
}

int cmd_sim(int argc, char **argv)
{
	struct sim_ask ask = {
		.seed = 1, .eager = 16384, .bucket = 32 << 20, .prefetch = 1};
	struct run run = {.ask = &ask, .terminal = isatty(STDERR_FILENO)};
	int status = sim_args(&ask, argc, argv);
	struct fabric_error error;
	struct fabric_map *map;

	if (status >= 0)
		return status;
	if (fabric_map_load(ask.fabric, &map, &error))
		return file_wrong(ask.fabric, &error);
	run.map = map;
	status = ask.layers && layers_load(ask.layers, &run.layers, &error)
			 ? file_wrong(ask.layers, &error)
			 : outputs_do(&run);
	layers_free(&run.layers);
	fabric_map_free(map);
	return status;
}
