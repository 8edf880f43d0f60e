/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: every algorithm comes to an end on every kind of network, at sizes that are
 * no powers of two, and carries what its plans say; what is late, slow or beside another
 * call takes longer by what it must.
 */
#include "config.h"

#include <errno.h>
#include <math.h>

#include "coll/plan/nodes.h"
#include "topo/sim/engine.h"
#include "util/tap.h"

static const char *const maps[] = {
	/* narrow above each rack and zone, buildings pair by pair */
	"weft-fabric 1\nrail r0 100G\nranks 2\ngrid n[01-48] 2/3/4\n"
	"tier host latency=0.5us rate=900G\ntier rack latency=1us\n"
	"tier zone latency=7us over=2\ntier building latency=15us over=3\n"
	"tier far latency=30us over=4 mesh\n",
	/* groups of routers, all pair by pair */
	"weft-fabric 1\nrail r0 100G\ngrid n[01-96] 1/8/6\ntier rack latency=1us\n"
	"tier zone latency=2us mesh\ntier building latency=3us over=2 mesh\n",
	/* by rails */
	"weft-fabric 1\nrail r0 100G\nrail r1 100G\nranks 2\ngrid n[01-48] 1/2/2\n"
	"tier host latency=0.5us rate=900G\ntier rack latency=1us rails\n"
	"tier zone latency=2us over=2 rails\ntier building latency=3us over=2\n",
};
#define MAPS (sizeof(maps) / sizeof(maps[0]))

static struct fabric_map *map_of(const char *text)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;

	if (fabric_map_parse(text, strlen(text), &map, &error))
		tap_bail("line %u: %s", error.line, error.text);
	return map;
}

static struct sim_net *net_of(const struct fabric_map *map, struct sim_net_options o)
{
	struct fabric_error error;
	struct sim_net *net = NULL;

	if (sim_net_open(map, &o, &net, &error))
		tap_bail("line %u: %s", error.line, error.text);
	return net;
}

/* What all plans together send, instance by instance. */
static double plans_bytes(const struct sim_job *job, uint64_t *messages)
{
	double sum = 0;

	*messages = 0;
	for (int32_t r = 0; r < job->call.size; r++) {
		struct plan_call call = job->call;
		struct plan *plan;
		const char *why;

		call.rank = r;
		if (job->algo->build(&call, &plan, &why))
			tap_bail("rank %d: %s", r, why);
		for (uint64_t i = 0; i < plan->instances; i++) {
			struct plan_instance in;

			plan_instance_at(plan, i, &in);
			if (in.kind != PLAN_SEND)
				continue;
			sum += (double)plan_range_elements(plan, NULL, &in.src) *
			       call.elem_size;
			++*messages;
		}
		plan_free(plan);
	}
	return sum;
}

static bool run_right(const struct sim_net *net, const struct sim_job *job,
		      const struct sim_options *o)
{
	struct sim_result r;
	char why[256] = "";
	uint64_t messages;
	double bytes = plans_bytes(job, &messages), got = 0;
	int rc = sim_run(net, job, 1, o, &r, NULL, why, sizeof(why));

	for (unsigned i = 0; i < SIM_LEVELS_MAX; i++)
		got += r.level_bytes[i];
	if (!rc && r.messages == messages && got == bytes && isfinite(r.time) &&
	    r.first <= r.time && r.busiest <= 1 + 1e-6 && r.port <= 1 + 1e-6)
		return true;
	tap_diag(
		"%s/%s, %d ranks, %llu elements: rc %d (%s), %llu of %llu messages, %.0f "
		"of %.0f bytes, busiest %.6f %.6f",
		job->algo->coll, job->algo->name, job->call.size,
		(unsigned long long)job->call.count, rc, why,
		(unsigned long long)r.messages, (unsigned long long)messages, got, bytes,
		r.busiest, r.port);
	return false;
}

/* All algorithms on one map, in all shapes. */
static void test_all(size_t m, const struct sim_options *o, const char *name)
{
	static const int32_t sizes[] = {1, 2, 3, 7, 16, 33, 96};
	static const uint64_t counts[] = {0, 1, 1000, 100001};
	struct fabric_map *map = map_of(maps[m]);
	unsigned runs = 0, wrong = 0;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct plan_nodes *nodes =
			plan_nodes_fake(PLAN_LAYOUT_BLOCKS, sizes[s], 2);
		struct sim_net *net = net_of(
			map,
			(struct sim_net_options){.ranks = sizes[s],
						 .placement = (enum sim_placement)(s % 3),
						 .seed = 3});

		for (size_t i = 0; i < algo_count * 4; i++) {
			const struct sim_job job = {
				.algo = &algo_table[i / 4],
				.call = {.size = sizes[s],
					 .count = counts[i % 4],
					 .elem_size = 4,
					 .chunk_bytes = s % 2 ? 0 : 65536,
					 .in_place = i % 8 > 4,
					 .nodes = nodes}};

			if (job.algo->vector || !job.algo->supports(&job.call))
				continue;
			runs++;
			wrong += !run_right(net, &job, o);
		}
		sim_net_close(net);
		free(nodes);
	}
	fabric_map_free(map);
	tap_ok(runs > 100 && !wrong, "%s: %u runs end and carry what plans say", name,
	       runs);
}

static double time_of(const struct sim_net *net, const struct sim_job *job, unsigned jobs,
		      const struct sim_options *o, double *end)
{
	struct sim_result r;
	char why[256];

	if (sim_run(net, job, jobs, o, &r, end, why, sizeof(why)))
		tap_bail("%s", why);
	return r.time;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= b * 1e-6;
}

/* One switch; 8 ranks; 10 GB/s. */
static void test_beside(void)
{
	struct fabric_map *map = map_of("weft-fabric 1\nrail r0 80G\ngrid n[1-8] 1/1/1\n"
					"tier rack latency=10us\n");
	struct sim_net *net = net_of(map, (struct sim_net_options){.ranks = 8});
	const struct sim_fault slow = {"n3", 0.1};
	struct sim_net *bad = net_of(
		map, (struct sim_net_options){.ranks = 8, .fault = &slow, .faults = 1});
	const struct sim_options o = {.eager = UINT64_MAX};
	struct sim_options late = o;
	double delay[8] = {0, 0, 0, 0, 0, 0.5, 0, 0}, end[2];
	static const int32_t swapped[] = {7, 6, 5, 4, 3, 2, 1, 0};
	struct sim_job job[2] = {{.algo = algo_find("allgather", "ring"),
				  .call = {.size = 8,
					   .count = 10000000,
					   .elem_size = 1,
					   .chunk_bytes = 1 << 30}}};
	const double one = time_of(net, job, 1, &o, NULL);

	job[1] = job[0];
	tap_ok(near(one, 7 * 1.01e-3), "a ring alone takes 7 (L + m b)");
	tap_ok(near(time_of(net, job, 2, &o, end), 7 * 2.01e-3) && near(end[0], end[1]),
	       "two of them by the same ports take 7 (L + 2 m b)");
	job[1].at = swapped;
	tap_ok(near(time_of(net, job, 2, &o, end), 7 * 2.01e-3),
	       "the same the other way round");
	job[1].begin = 1;
	tap_ok(near(time_of(net, job, 2, &o, end), 1 + one) && near(end[0], one),
	       "one after the other: each takes what it takes alone");
	late.delay = delay;
	tap_ok(near(time_of(net, job, 1, &late, NULL), 0.5 + one),
	       "who is late makes a ring late by as much");
	/* At least 7 blocks through that port, at most 7 steps as slow as it is. */
	tap_ok(time_of(bad, job, 1, &o, NULL) >= 7 * 10e-3 &&
		       time_of(bad, job, 1, &o, NULL) <= 7 * 10.01e-3 * (1 + 1e-9),
	       "a port of a tenth makes it ten times slower");
	sim_net_close(bad);
	sim_net_close(net);
	fabric_map_free(map);
}

static void test_refused(void)
{
	struct fabric_map *map = map_of(maps[0]);
	struct sim_net *net = net_of(map, (struct sim_net_options){.ranks = 8});
	struct sim_job job = {.algo = algo_find("allgather", "ring"),
			      .call = {.size = 9, .count = 1, .elem_size = 1}};
	struct sim_result r;
	char why[256];

	tap_ok(sim_run(net, &job, 1, &(struct sim_options){0}, &r, NULL, why,
		       sizeof(why)) == -EINVAL &&
		       strstr(why, "9 ranks, but the network has 8"),
	       "more ranks than the network has");
	job.call.size = 8;
	job.algo = algo_find("alltoallv", "direct");
	tap_ok(sim_run(net, &job, 1, &(struct sim_options){0}, &r, NULL, why,
		       sizeof(why)) == -EINVAL &&
		       strstr(why, "not simulated"),
	       "a (v) form");
	sim_net_close(net);
	fabric_map_free(map);
}

int main(void)
{
	static const struct sim_options told = {.eager = 4096},
					plain = {.eager = UINT64_MAX},
					slow = {.eager = 0, .gap = 1e-6, .work = 1e10};

	test_all(0, &told, "buildings");
	test_all(1, &plain, "a dragonfly");
	test_all(2, &slow, "rails, gaps and work");
	test_beside();
	test_refused();
	return tap_done();
}
