/* SPDX-License-Identifier: BSD-2-Clause */
/* weft sim step: a step of training over a list of layers, for each number of ranks. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"
#include "cli/sim.h"
#include "topo/sim/ring.h"
#include "topo/sim/step.h"

/* Collectives whose times are known, so that layers that are alike are simulated once. */
struct known {
	enum step_op op;
	uint64_t bytes;
	double time;
};

struct costs {
	const struct sim_ask *ask;
	const struct sim_net *net;
	struct sim_options o;
	struct known *known;
	uint32_t count, room;
	const struct algo *used[STEP_OPS]; /* of the longest collective */
	uint64_t longest[STEP_OPS];
	char why[256];
};

static const char *const op_name[STEP_OPS] = {"allreduce", "allgather", "reduce_scatter"};

static bool known_add(struct costs *c, enum step_op op, uint64_t bytes, double time)
{
	if (c->count == c->room) {
		const uint32_t room = c->room ? 2 * c->room : 64;
		struct known *more = realloc(c->known, room * sizeof(*more));

		if (!more)
			return false;
		c->known = more;
		c->room = room;
	}
	c->known[c->count++] = (struct known){op, bytes, time};
	return true;
}

/* An all-reduce is over a vector; the others are over a block for each rank. */
static uint64_t block_of(enum step_op op, uint64_t bytes, int32_t ranks)
{
	const uint64_t n = op == STEP_ALLREDUCE ? 1 : (uint64_t)ranks;
	const uint64_t block = (bytes + n - 1) / n;

	return (block + 3) / 4 * 4;
}

static double cost(void *arg, enum step_op op, uint64_t bytes)
{
	struct costs *c = arg;
	const uint64_t block = block_of(op, bytes, c->net->ranks);
	const struct algo *algo = NULL;
	struct sim_ask ask = *c->ask;
	struct sim_result r;
	struct sim_set set;
	int32_t period;
	int rc;

	for (uint32_t i = 0; i < c->count; i++)
		if (c->known[i].op == op && c->known[i].bytes == block)
			return c->known[i].time;
	ask.coll = op_name[op];
	ask.groups = 0;
	if (ask.step_algorithm) {
		algo = algo_find(ask.coll, ask.step_algorithm);
		if (!algo) {
			snprintf(c->why, sizeof(c->why),
				 "%s has no algorithm \"%.100s\"; leave --algorithm out "
				 "for the library's choice",
				 ask.coll, ask.step_algorithm);
			return -1;
		}
	}
	rc = sim_set_make(&set, &ask, c->net, algo, block, c->why, sizeof(c->why));
	if (!rc)
		rc = sim_one(&ask, c->net, &set, &c->o, &r, &period, c->why,
			     sizeof(c->why));
	if (!rc && block >= c->longest[op]) {
		c->longest[op] = block;
		c->used[op] = set.job[0].algo;
	}
	sim_set_free(&set);
	if (!rc && !known_add(c, op, block, r.time)) {
		snprintf(c->why, sizeof(c->why), "no memory");
		rc = -ENOMEM;
	}
	return rc ? -1 : r.time;
}

/* "allreduce ring", "allgather ring + reduce_scatter ring". */
static void used_print(const struct costs *c, char *text, size_t len)
{
	size_t at = 0;

	snprintf(text, len, "none");
	for (unsigned i = 0; i < STEP_OPS; i++)
		if (c->used[i] && at < len)
			at += (size_t)snprintf(text + at, len - at, "%s%s %s",
					       at ? " + " : "", op_name[i],
					       c->used[i]->name);
}

static void text_show(const struct step_result *r, int32_t ranks, const char *used,
		      bool head)
{
	if (head)
		printf("%9s %14s %14s %14s %14s %11s %11s  %s\n", "ranks", "step us",
		       "compute us", "busy us", "exposed us", "collectives", "efficiency",
		       "by");
	printf("%9d %14.3f %14.3f %14.3f %14.3f %11u %9.2f %%  %s\n", ranks,
	       r->time * 1e6, r->compute * 1e6, r->busy * 1e6, r->exposed * 1e6,
	       r->collectives, r->efficiency * 100, used);
	fflush(stdout);
}

static void json_row(struct json *j, const struct step_result *r, int32_t ranks,
		     const char *used, double setup)
{
	json_object_begin(j, NULL);
	json_int(j, "ranks", ranks);
	json_real(j, "step_s", r->time);
	json_real(j, "compute_s", r->compute);
	json_real(j, "busy_s", r->busy);
	json_real(j, "exposed_s", r->exposed);
	json_uint(j, "collectives", r->collectives);
	json_real(j, "efficiency", r->efficiency);
	json_text(j, "by", used);
	if (setup > 0)
		json_real(j, "setup_s", setup);
	json_object_end(j);
}

void sim_step_csv_head(FILE *csv)
{
	fprintf(csv, "ranks,step_s,compute_s,busy_s,exposed_s,collectives,efficiency\n");
}

static void csv_row(FILE *csv, const struct step_result *r, int32_t ranks)
{
	fprintf(csv, "%d,%.9g,%.9g,%.9g,%.9g,%u,%.6g\n", ranks, r->time, r->compute,
		r->busy, r->exposed, r->collectives, r->efficiency);
}

int sim_step(const struct sim_ask *ask, const struct sim_net *net,
	     const struct layers *layers, const struct sim_step_out *out)
{
	struct costs c = {.ask = ask,
			  .net = net,
			  .o = {.eager = ask->eager, .gap = ask->gap, .work = ask->work},
			  .why = "no memory"};
	struct step_ask step = {.kind = ask->sharded ? STEP_SHARDS : STEP_BUCKETS,
				.bucket = ask->bucket,
				.prefetch = ask->prefetch,
				.lag = 1,
				.cost = cost,
				.arg = &c};
	struct step_result r;
	char used[160];
	bool good;

	/* The slowest of all decides when things are handed over. */
	for (unsigned i = 0; i < ask->late_count; i++)
		if (ask->late[i].factor > step.lag)
			step.lag = ask->late[i].factor;
	good = step_run(layers, &step, &r);
	free(c.known);
	if (!good) {
		fprintf(stderr, "weft sim: %s\n", c.why);
		return 1;
	}
	used_print(&c, used, sizeof(used));
	if (ask->json)
		json_row(out->json, &r, net->ranks, used, sim_net_setup(net));
	else
		text_show(&r, net->ranks, used, out->first);
	if (out->csv)
		csv_row(out->csv, &r, net->ranks);
	if (out->curve)
		plot_point(out->curve, net->ranks, r.efficiency * 100);
	return 0;
}
