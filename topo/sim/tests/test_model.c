/* SPDX-License-Identifier: BSD-2-Clause */
/* Terms of tiers, and formulas against the simulation of what they are about. */
#include "config.h"

#include <math.h>

#include "topo/sim/engine.h"
#include "topo/sim/model.h"
#include "util/tap.h"

/* 4 zones of 4 hosts of 4 ranks; a port has 10 GB/s, a host's own network 100; zones
 * have half of what their ports bring. */
static const char text[] = "weft-fabric 1\nrail r0 320G\nranks 4\n"
			   "grid n[01-16] 1/4/1\n"
			   "tier host latency=1us rate=800G\n"
			   "tier zone latency=3us\ntier building latency=5us over=2\n";

static struct sim_net *net_of(int32_t ranks)
{
	struct sim_net_options o = {.ranks = ranks};
	struct fabric_map *map = NULL;
	struct fabric_error error;
	struct sim_net *net = NULL;

	if (fabric_map_parse(text, strlen(text), &map, &error) ||
	    sim_net_open(map, &o, &net, &error))
		tap_bail("line %u: %s", error.line, error.text);
	fabric_map_free(map);
	return net;
}

static bool near(double got, double want)
{
	if (fabs(got - want) <= want * 1e-6)
		return true;
	tap_diag("got %g, want %g", got, want);
	return false;
}

static void test_terms(void)
{
	struct sim_net *net = net_of(64);
	struct model m;

	if (!model_make(net, &m))
		tap_bail("no memory");
	tap_is_int(m.tiers, 3, "ranks meet at three tiers");
	tap_ok(m.tier[0].ranks == 4 && m.tier[0].groups == 16 &&
		       near(m.tier[0].latency, 1e-6) && near(m.tier[0].shared, 100e9) &&
		       m.tier[0].bound == FABRIC_UNKNOWN,
	       "on a host: its own network");
	tap_ok(m.tier[1].ranks == 16 && near(m.tier[1].alone, 10e9) &&
		       near(m.tier[1].shared, 10e9),
	       "in a zone: a port each");
	tap_ok(m.tier[2].ranks == 64 && near(m.tier[2].alone, 10e9) &&
		       near(m.tier[2].shared, 5e9) &&
		       m.tier[2].bound == FABRIC_OTHER_ZONE,
	       "between zones: half of it where all send, bound by that tier");
	sim_net_close(net);
	net = net_of(8);
	tap_ok(model_make(net, &m) && m.tiers == 2 && m.tier[1].ranks == 8,
	       "a tier where no more meet is left out");
	sim_net_close(net);
	net = net_of(1);
	tap_ok(model_make(net, &m) && m.tiers == 0, "one rank meets nobody");
	sim_net_close(net);
}

static double simulated(const struct sim_net *net, const char *coll, const char *name,
			uint64_t bytes)
{
	const struct sim_options o = {.eager = UINT64_MAX};
	const struct sim_job job = {.algo = algo_find(coll, name),
				    .call = {.size = net->ranks,
					     .count = bytes,
					     .elem_size = 1,
					     .chunk_bytes = 1 << 30}};
	struct sim_result r;
	char why[256];

	if (sim_run(net, &job, 1, &o, &r, NULL, why, sizeof(why)))
		tap_bail("%s", why);
	return r.time;
}

static struct model_answer answer_of(const struct sim_net *net, const char *coll,
				     double bytes)
{
	struct model_answer a;
	struct model m;

	if (!model_make(net, &m) || !model_answer(&m, coll, bytes, 0, &a))
		tap_bail("no answer for %s", coll);
	return a;
}

static void test_answers(void)
{
	struct sim_net *host = net_of(4), *all = net_of(64);
	struct model_answer a = answer_of(host, "allreduce", 1 << 24);
	const double inside = a.inside.s;
	struct model m;

	tap_ok(a.domain == 4 && a.domains == 1 &&
		       fabs(a.inside.s / simulated(host, "allreduce", "ring", 1 << 24) -
			    1) < 0.001,
	       "inside a host: as the ring there");
	a = answer_of(all, "allreduce", 1 << 24);
	tap_ok(a.domain == 4 && a.domains == 16 && near(a.inside.s, inside),
	       "sixteen of them: inside it is the same");
	tap_ok(near(a.both.s, a.inside.s + a.across.s), "both one after the other");
	/* 2 (16 - 1) steps of 5 us with a 64th of the bytes each, at a port's rate. */
	tap_ok(near(a.across.s, 30 * (5e-6 + (1 << 18) / 10e9)),
	       "across: four lanes of a zone have the ports' rate");
	tap_ok(a.across.bytes && a.across.tier == FABRIC_OTHER_ZONE &&
		       a.across.bound == FABRIC_UNKNOWN,
	       "of which the ports' rate is most");
	a = answer_of(all, "allreduce", 64);
	tap_ok(!a.across.bytes, "of a short vector latencies are most");
	tap_ok(a.flat.s > a.both.s, "around all takes longer");
	a = answer_of(all, "allgather", 1 << 20);
	tap_ok(fabs(a.flat.s / simulated(all, "allgather", "ring", 1 << 20) - 1) < 0.05,
	       "around all: as the ring there");
	a = answer_of(all, "alltoall", 1 << 16);
	tap_ok(a.flat.bytes && a.flat.bound == FABRIC_OTHER_ZONE,
	       "all to all: links between zones are the limit");
	tap_ok(model_make(all, &m) && !model_answer(&m, "barrier", 0, 0, &a),
	       "of a barrier it says nothing");
	sim_net_close(host);
	sim_net_close(all);
}

int main(void)
{
	test_terms();
	test_answers();
	return tap_done();
}
