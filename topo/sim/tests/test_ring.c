/* SPDX-License-Identifier: BSD-2-Clause */
/* Symmetry does not change the answer: ring.h says what the engine says, or nothing. */
#include "config.h"

#include <errno.h>
#include <math.h>

#include "topo/sim/ring.h"
#include "util/tap.h"

static const char *const maps[] = {
	("weft-fabric 1\nrail r0 100G\nranks 2\ngrid n[01-48] 2/3/4\n"
	 "tier host latency=0.5us rate=900G\ntier rack latency=1us\n"
	 "tier zone latency=7us\ntier building latency=15us over=3\n"
	 "tier far latency=30us over=4 mesh\n"),
	"weft-fabric 1\nrail r0 100G\ngrid n[01-96] 1/1/1\ntier rack latency=2us\n",
	/* buildings so far apart that READY and the window can count */
	("weft-fabric 1\nrail r0 100G\ngrid n[01-96] 2/1/1\ntier rack latency=1us\n"
	 "tier far latency=900us\n"),
	/* a torus, whose links are wide enough for neighbours */
	("weft-fabric 1\nrail r0 100G\ngrid n[01-96] 1/1/1\n"
	 "tier rack latency=1us rate=200G torus=4x4x6\n"),
};

static bool near(double a, double b)
{
	return fabs(a - b) <= fabs(b) * 1e-9;
}

struct tally {
	unsigned done, not_here, wrong;
	int32_t shortest;
};

static void compare(struct tally *t, const struct sim_net *net, const struct sim_job *job,
		    const struct sim_options *o)
{
	struct sim_result full, fast;
	char why[256];
	int32_t period = 0;
	int rc = sim_ring(net, job, o, &fast, &period, why, sizeof(why));

	if (rc == -ENOTSUP) {
		t->not_here++;
		return;
	}
	if (rc || sim_run(net, job, 1, o, &full, NULL, why, sizeof(why)))
		tap_bail("%d: %s", rc, why);
	t->done++;
	if (period < t->shortest)
		t->shortest = period;
	if (near(fast.time, full.time) && near(fast.first, full.first) &&
	    fast.messages == full.messages && near(fast.port, full.port))
		return;
	t->wrong++;
	tap_diag("%s/%s, %d ranks, %llu, period %d: %.9g and %.9g, in full %.9g and %.9g",
		 job->algo->coll, job->algo->name, job->call.size,
		 (unsigned long long)job->call.count, period, fast.time, fast.first,
		 full.time, full.first);
}

static void map_compare(struct tally *t, const char *text, enum sim_placement placement,
			const struct sim_fault *fault, unsigned faults)
{
	static const int32_t sizes[] = {2, 3, 8, 24, 48, 96};
	static const uint64_t each[] = {1, 64, 5000, 600000};
	static const struct sim_options options[] = {
		{.eager = UINT64_MAX}, {.eager = 0}, {.eager = 16384, .work = 5e9}};
	/* The larger ones take most of the time. */
	const size_t count = sizeof(sizes) / sizeof(sizes[0]) - (tap_short() ? 2 : 0);
	struct fabric_map *map = NULL;
	struct fabric_error error;

	if (fabric_map_parse(text, strlen(text), &map, &error))
		tap_bail("line %u: %s", error.line, error.text);
	for (size_t i = 0; i < count; i++) {
		const struct sim_net_options where = {.ranks = sizes[i],
						      .placement = placement,
						      .seed = 5,
						      .fault = fault,
						      .faults = faults};
		struct sim_net *net;

		if (sim_net_open(map, &where, &net, &error))
			tap_bail("line %u: %s", error.line, error.text);
		for (size_t j = 0; j < algo_count * 24; j++) {
			const struct algo *algo = &algo_table[j / 24];
			const bool sum = !strcmp(algo->coll, "allreduce");
			const struct sim_job job = {
				.algo = algo,
				.call = {.size = sizes[i],
					 .count = each[j % 4] *
						  (sum ? (uint64_t)sizes[i] : 1),
					 .elem_size = 1,
					 .chunk_bytes = j % 24 < 12 ? 0 : 100000,
					 .roomy = j % 8 > 3}};

			if (strstr(algo->name, "ring") && !algo->vector)
				compare(t, net, &job, &options[j / 4 % 3]);
		}
		sim_net_close(net);
	}
	fabric_map_free(map);
}

static void test_compare(void)
{
	for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++) {
		for (unsigned p = 0; p < SIM_PLACEMENTS; p++) {
			struct tally t = {.shortest = INT32_MAX};

			map_compare(&t, maps[m], (enum sim_placement)p, NULL, 0);
			tap_ok(!t.wrong && t.done, "map %zu, %s: %u as in full", m,
			       sim_placement_name((enum sim_placement)p), t.done);
			tap_diag("%u are left to the engine; shortest period %d",
				 t.not_here, t.shortest);
		}
	}
}

/* Slow things, and a dead link that is gone around, are so in both. */
static void test_faults(void)
{
	static const char mesh[] =
		"weft-fabric 1\nrail r0 100G\ngrid n[001-120] 4/1/1\n"
		"tier rack latency=1us\ntier far latency=9us rate=2T mesh\n";
	static const char torus[] = "weft-fabric 1\nrail r0 100G\ngrid n[001-100] 1/1/1\n"
				    "tier rack latency=1us rate=200G torus=5x20\n";
	static const struct sim_fault fault[] = {{"b1/z1/k1:b2/z1/k1", 0},
						 {"b2/z1/k1:b3/z1/k1", 0.5},
						 {"n007", 0.25},
						 {"n002", 0}};
	struct tally t = {.shortest = INT32_MAX};

	map_compare(&t, mesh, SIM_PACKED, fault, 4);
	map_compare(&t, mesh, SIM_RAILS, fault, 4);
	map_compare(&t, torus, SIM_PACKED, fault + 2, 2);
	tap_ok(!t.wrong && t.done, "with things slow and dead: %u as in full", t.done);
	tap_diag("%u are left to the engine", t.not_here);
}

int main(void)
{
	test_compare();
	test_faults();
	return tap_done();
}
