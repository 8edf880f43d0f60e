/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two machines against each other under drawn schedules: every rule of sim.c holds
 * whatever stalls, is mixed up, is lost or dies. The seed is printed; give it as the
 * first argument to see the same again.
 */
#include "config.h"

#include <time.h>

#include "prov/dqplb/tests/sim.h"
#include "util/tap.h"

/* With so few under way at a time there is often nothing that waits, so that much is
 * posted in the call that starts it. */
#define FEW 6

struct scene {
	const char *name;
	struct sim_config c;
};

#define TX(window_, lanes_, first_)                                                     \
	{                                                                               \
		.window = (window_), .records = 16, .gen = 5, .first = (first_),        \
		.max_segment = 1000, .turn = 4, .lane_segments = 8, .lane_bytes = 6000, \
		.link_bytes = 40000, .small = 100, .lanes = (lanes_),                   \
	}

static const struct scene scenes[] = {
	{"A: lanes in order, nothing breaks",
	 {.tx = TX(256, 8, 0),
	  .rails = 2,
	  .receives = 32,
	  .transfers = 3000,
	  .unfinished = 40,
	  .pieces = 20,
	  .plain = 200,
	  .ordered = 300,
	  .bare = 500}},
	{"A: mixed up within and across lanes that stall, over the wrap of numbers",
	 {.tx = TX(128, 8, 0xfffe00),
	  .rails = 4,
	  .receives = 16,
	  .mixed_up = true,
	  .transfers = 3000,
	  .unfinished = 64,
	  .pieces = 60,
	  .stall = 5,
	  .reset = 2,
	  .plain = 100,
	  .ordered = 500,
	  .bare = 300}},
	{"A7: few receives, shared by a rail's lanes",
	 {.tx = TX(64, 6, 0xffffffc0),
	  .rails = 2,
	  .receives = 5,
	  .shared_queues = true,
	  .mixed_up = true,
	  .transfers = 2000,
	  .unfinished = 30,
	  .pieces = 30,
	  .stall = 3,
	  .reset = 5,
	  .plain = 100,
	  .ordered = 300,
	  .bare = 400}},
	{"C1 to C5: lanes die",
	 {.tx = TX(128, 8, 0xffff00),
	  .rails = 2,
	  .receives = 16,
	  .mixed_up = true,
	  .transfers = 3000,
	  .unfinished = 40,
	  .pieces = 40,
	  .die = 4,
	  .stall = 3,
	  .reset = 4,
	  .plain = 200,
	  .ordered = 300,
	  .bare = 400}},
	{"C4: lanes die, and their receivers are slow to say so",
	 {.tx = TX(128, 8, 0xffff00),
	  .rails = 2,
	  .receives = 16,
	  .mixed_up = true,
	  .transfers = 3000,
	  .unfinished = 40,
	  .pieces = 40,
	  .die = 4,
	  .stop = 500,
	  .fault = 3,
	  .cancel = 10,
	  .stall = 3,
	  .reset = 4,
	  .plain = 600,
	  .ordered = 300,
	  .bare = 400}},
	{"C: rails die, with shared receive queues",
	 {.tx = TX(128, 8, 0),
	  .rails = 2,
	  .receives = 24,
	  .shared_queues = true,
	  .mixed_up = true,
	  .transfers = 3000,
	  .unfinished = 40,
	  .pieces = 40,
	  .rail_die = 3,
	  .stall = 2,
	  .reset = 3,
	  .plain = 200,
	  .ordered = 300,
	  .bare = 400}},
	{"A10, C6: faults and cancels, while lanes die",
	 {.tx = TX(64, 4, 0xffffe0),
	  .rails = 2,
	  .receives = 16,
	  .mixed_up = true,
	  .transfers = 3000,
	  .unfinished = 40,
	  .pieces = 40,
	  .die = 2,
	  .fault = 10,
	  .cancel = 30,
	  .stall = 2,
	  .reset = 3,
	  .plain = 200,
	  .ordered = 400,
	  .bare = 300}},
	{"C6: faults with shared receive queues, everything ordered",
	 {.tx = TX(64, 4, 0),
	  .rails = 1,
	  .receives = 8,
	  .shared_queues = true,
	  .transfers = 2000,
	  .unfinished = 40,
	  .pieces = 90,
	  .fault = 20,
	  .cancel = 20,
	  .reset = 3,
	  .ordered = 1000,
	  .bare = 500}},
	{"C1 to C6: writes that nothing is in front of, while lanes die",
	 {.tx = TX(128, 8, 0),
	  .rails = 2,
	  .receives = 16,
	  .mixed_up = true,
	  .transfers = 3000,
	  .unfinished = FEW,
	  .pieces = 3,
	  .die = 4,
	  .fault = 10,
	  .cancel = 10,
	  .stall = 3,
	  .reset = 3,
	  .plain = 800,
	  .ordered = 300,
	  .bare = 400}},
};

/* What a scene is there for has happened. */
static bool happened(const struct scene *scene, const struct sim_result *r)
{
	const struct sim_config *c = &scene->c;

	return r->finished == c->transfers && (!c->die || r->lanes_died > 0) &&
	       (!c->rail_die || r->lanes_died > 0) &&
	       (!c->stop || r->lanes_stopped > 0) &&
	       (!(c->die || c->rail_die) || r->tx.again > 0) &&
	       (!c->fault || (r->failed > 0 && r->tx.voids > 0 && r->rx.voided > 0)) &&
	       (c->ordered == 1000 || r->overtaken > 0) && r->tx.fast > 0 &&
	       r->tx.records > 0 && (c->unfinished > FEW || r->quick > 100);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	unsigned rounds = argc > 2	? (unsigned)strtoul(argv[2], NULL, 0)
			  : tap_short() ? 1
					: 3;

	tap_diag("seed %" PRIu64, seed);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		for (unsigned k = 0; k < rounds; k++) {
			struct sim_result r;

			if (!sim_run(&scenes[i].c, seed + k, &r))
				tap_bail("out of memory");
			if (!tap_ok(!r.error && happened(&scenes[i], &r), "%s",
				    scenes[i].name))
				tap_diag("seed %" PRIu64 ": %s", seed + k,
					 r.error ? r.error : "not what it is there for");
			tap_diag("steps %" PRIu64 ", numbers %" PRIu64 ", fast %" PRIu64
				 ", records %" PRIu64 ", lanes died %" PRIu64
				 ", again %" PRIu64 ", failed %" PRIu64
				 ", overtaken %" PRIu64 ", quick %" PRIu64,
				 r.steps, r.tx.numbers, r.tx.fast, r.tx.records,
				 r.lanes_died, r.tx.again, r.failed, r.overtaken,
				 r.quick);
		}
	return tap_done();
}
