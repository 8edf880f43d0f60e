/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two endpoints against each other under schedules that are drawn: every rule of
 * uet_sim.c holds whatever the network and the peers do. Nothing depends on this machine,
 * so each run sees the same schedules; arguments SEED [COUNT] show others, or one again.
 */
#include "config.h"

#include "prov/wire/uet/tests/uet_sim.h"
#include "util/tap.h"

#define FIRST_SEED	1u
#define SCHEDULES	10000u
#define SCHEDULES_SHORT 800u

static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint32_t pick(uint64_t *state, const uint32_t *of, uint32_t count)
{
	return of[mix(state) % count];
}

#define PICK(state, ...)                             \
	pick(state, (const uint32_t[]){__VA_ARGS__}, \
	     sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* What goes wrong in a schedule. */
static struct uet_sim_config config_of(uint64_t seed)
{
	uint64_t r = seed;
	struct uet_sim_config c = {
		.window = PICK(&r, 8, 16, 32, 128),
		.paths = PICK(&r, 1, 2, 8, 8, 16),
		.contexts = PICK(&r, 1, 1, 2, 3),
		.packets = PICK(&r, 1, 2, 5, 20, 60),
		.bytes = PICK(&r, 0, 8, 250, 250),
		.ordered = PICK(&r, 0, 0, 500, 1000),
		.reverse = PICK(&r, 0, 0, 200),
		.drop = PICK(&r, 0, 0, 10, 50, 200, 300),
		.drop_acks = PICK(&r, 0, 0, 0, 100, 400),
		.repeat = PICK(&r, 0, 0, 50, 300),
		.mark = PICK(&r, 0, 0, 100, 1000),
		.slow = PICK(&r, 0, 0, 50, 300),
		.slow_ns = PICK(&r, 100000, 1000000, 60000000),
		.jitter_ns = PICK(&r, 0, 1000, 20000, 500000),
		.refuse = PICK(&r, 0, 0, 0, 50, 300),
		.reply = PICK(&r, 0, 0, 100, 1000),
		.later = PICK(&r, 0, 0, 0, 200),
		.asked = PICK(&r, 0, 0, 500),
		.backlog = PICK(&r, 0, 1),
	};

	switch (mix(&r) % 8) {
	case 0:
		c.hole = c.paths > 1;
		break;
	case 1:
		c.heals = true;
		break;
	case 2:
		c.pause = true;
		break;
	case 3:
		c.dies = true;
		c.asked = 0;
		break;
	case 4:
		c.restarts = true;
		c.asked = 0;
		break;
	case 5:
		/* Strangers' contexts go soon here, so ours must be proven soon. */
		c.flood = true;
		c.drop = c.drop > 10 ? 10 : c.drop;
		c.drop_acks = c.slow = 0;
		break;
	default:
		break;
	}
	return c;
}

static void add(struct uet_sim_result *to, const struct uet_sim_result *r)
{
	const uint64_t *f = (const uint64_t *)&r->stats;
	uint64_t *t = (uint64_t *)&to->stats;

	for (size_t i = 0; i < sizeof(r->stats) / sizeof(*t); i++)
		t[i] += f[i];
	to->delivered += r->delivered;
	to->failed += r->failed;
	to->ended += r->ended;
	to->ns += r->ns;
	to->datagrams += r->datagrams;
	to->retired += r->retired;
	to->returned += r->returned;
}

/* All that schedules are there for has happened, somewhere. */
static void happened(const struct uet_sim_result *r)
{
	const struct uet_pds_stats *s = &r->stats;

	tap_ok(s->resent > 0 && s->timeouts > 0, "packets were lost, and sent again");
	tap_ok(s->inferred > 0 && s->probes > 0, "losses were inferred, and probed for");
	tap_ok(s->duplicates > 0, "packets arrived again");
	tap_ok(s->refused > 0 && s->refusals > 0, "packets were refused");
	tap_ok(s->failed > 0 && r->failed > 0, "contexts failed where they had to");
	tap_ok(s->closed > 0 && s->opened > 0, "contexts were opened and closed");
	tap_ok(s->reaped > 0 && s->stray > 0, "strangers' contexts came and went");
	tap_ok(r->retired > 0 && r->returned > 0, "paths were retired, and came back");
	tap_diag("delivered %" PRIu64 " of %" PRIu64 " datagrams, sent %" PRIu64
		 ", again %" PRIu64 ", timeouts %" PRIu64 ", inferred %" PRIu64
		 ", probes %" PRIu64 ", duplicates %" PRIu64 ", refused %" PRIu64
		 ", paths retired %" PRIu64 " and back %" PRIu64,
		 r->delivered, r->datagrams, s->sent, s->resent, s->timeouts, s->inferred,
		 s->probes, s->duplicates, s->refused, r->retired, r->returned);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : FIRST_SEED;
	uint64_t count = argc > 2      ? strtoull(argv[2], NULL, 0)
			 : argc > 1    ? 1
			 : tap_short() ? SCHEDULES_SHORT
				       : SCHEDULES;
	struct uet_sim_result sum = {0};
	unsigned wrong = 0;

	tap_diag("seed %" PRIu64 ", %" PRIu64 " schedules", seed, count);
	for (uint64_t i = 0; i < count && wrong < 10; i++) {
		struct uet_sim_config c = config_of(seed + i);
		struct uet_sim_result r;

		if (!uet_sim_run(&c, seed + i, &r))
			tap_bail("out of memory");
		add(&sum, &r);
		if (!r.error)
			continue;
		wrong++;
		tap_diag("seed %" PRIu64 ": %s", seed + i, r.error);
	}
	tap_ok(wrong == 0, "every rule held in all schedules");
	if (argc <= 1)
		happened(&sum);
	return tap_done();
}
