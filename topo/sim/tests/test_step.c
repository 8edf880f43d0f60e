/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps over layers: by hand, and against a clock that ticks, over lists by chance. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "topo/sim/step.h"
#include "util/tap.h"

/* Costs are the bytes, and one more for who is gathered: operations are told apart. */
static double cost(void *arg, enum step_op op, uint64_t bytes)
{
	(void)arg;
	return (double)(bytes + (op == STEP_ALLGATHER));
}

static double none(void *arg, enum step_op op, uint64_t bytes)
{
	(void)op;
	return bytes == *(uint64_t *)arg ? -1 : 0;
}

static struct step_result run(const struct layers *l, struct step_ask ask)
{
	struct step_result r;

	ask.cost = cost;
	if (ask.lag < 1)
		ask.lag = 1;
	if (!step_run(l, &ask, &r))
		tap_bail("a cost that is known");
	return r;
}

static void test_by_hand(void)
{
	struct layer layer[] = {{10, 1, 2}, {20, 3, 4}, {5, 5, 6}};
	const struct layers l = {layer, 3};
	struct step_result r = run(&l, (struct step_ask){.kind = STEP_BUCKETS});

	/* Backward ends at 15, 19, 21; 5, 20, 10 bytes: 15-20, 20-40, 40-50. */
	tap_ok(r.time == 50 && r.compute == 21 && r.busy == 35 && r.exposed == 29 &&
		       r.collectives == 3 && r.efficiency == 21.0 / 50,
	       "each layer a bucket");
	r = run(&l, (struct step_ask){.kind = STEP_BUCKETS, .bucket = 25});
	/* 25 bytes at 19, 10 behind. */
	tap_ok(r.time == 54 && r.collectives == 2, "buckets of 25");
	r = run(&l, (struct step_ask){.kind = STEP_BUCKETS, .bucket = 1000});
	tap_ok(r.time == 21 + 35 && r.collectives == 1 && r.exposed == 35,
	       "one bucket: nothing overlaps");
	r = run(&l, (struct step_ask){.kind = STEP_BUCKETS, .bucket = 1000, .lag = 2});
	tap_ok(r.time == 42 + 35 && r.compute == 21 && r.exposed == 35,
	       "a rank that takes twice as long");
	r = run(&l, (struct step_ask){.kind = STEP_SHARDS, .prefetch = 0});
	/* Forward: 11+1, 21+3, 6+5 = 47; backward 6 at 53; gather 21 and scatter 5:
	 * gather first, 74, scatter until 79; computed until 78, gather 79-90, scatter 20
	 * -110; computed 92, scatter 110-120. */
	tap_ok(r.time == 120 && r.collectives == 8, "shards, one after the other");
	r = run(&l, (struct step_ask){.kind = STEP_SHARDS, .prefetch = 100});
	/* Gathered at 11, 32, 38, 59 (the second again), 70; computed at 12, 35, 43, 49,
	 * 63, 72; scattered 70-75, 75-95, 95-105. */
	tap_ok(r.time == 105 && r.busy == 11 + 21 + 6 + 21 + 11 + 35,
	       "all asked for at once");
}

static void test_nothing(void)
{
	struct layer layer[] = {{0, 1, 2}, {0, 3, 4}};
	const struct layers l = {layer, 2};
	struct step_result r =
		run(&l, (struct step_ask){.kind = STEP_SHARDS, .prefetch = 1});
	uint64_t bad = 7;
	struct step_ask ask = {.lag = 1, .cost = none, .arg = &bad};

	tap_ok(r.time == 10 && r.efficiency == 1 && !r.collectives && r.exposed == 0,
	       "layers without bytes have no collectives");
	layer[1] = (struct layer){0, 0, 0};
	layer[0] = layer[1];
	r = run(&l, (struct step_ask){.kind = STEP_BUCKETS});
	tap_ok(r.time == 0 && r.efficiency == 1, "nothing at all");
	layer[0].bytes = bad;
	for (unsigned k = 0; k < 2; k++) {
		ask.kind = (enum step_kind)k;
		tap_ok(!step_run(&l, &ask, &r), "a cost that cannot be said, %u", k);
	}
}

/* ---- a clock that ticks --------------------------------------------------------------
 */

struct work {
	double left;
	int gates; /* the computing that waits for it; -1: none */
};

struct clock {
	struct work queue[512];
	unsigned head, count;
	bool there[512]; /* by place: may be computed */
};

static void put(struct clock *c, uint64_t bytes, bool gather, int gates)
{
	if (bytes)
		c->queue[c->count++] = (struct work){(double)(bytes + gather), gates};
	else if (gates >= 0)
		c->there[gates] = true;
}

static void ask_for(struct clock *c, const struct layers *l, uint32_t k)
{
	const uint32_t n = l->count;

	if (k == n)
		c->there[k] = true;
	else
		put(c, l->layer[k < n ? k : 2 * n - 1 - k].bytes, true, (int)k);
}

/* What happens between two ticks: everything that takes no time. Then one tick of the
 * collective and one of the computing. */
static double ticks(const struct layers *l, const struct step_ask *ask)
{
	const uint32_t n = l->count, all = 2 * n;
	const bool shards = ask->kind == STEP_SHARDS;
	struct clock c = {.head = 0};
	uint32_t at = 0;
	uint64_t bucket = 0;
	double left = -1, time = 0;

	for (uint32_t k = 0; k < all; k++)
		c.there[k] = !shards;
	for (uint32_t k = 0; shards && k < all && (k < ask->prefetch || !k); k++)
		ask_for(&c, l, k);
	for (;;) {
		bool moved = true;

		while (moved) {
			moved = false;
			if (c.head < c.count && c.queue[c.head].left <= 0) {
				if (c.queue[c.head].gates >= 0)
					c.there[c.queue[c.head].gates] = true;
				c.head++;
				moved = true;
			}
			if (at < all && left < 0 && c.there[at]) {
				const struct layer *a =
					&l->layer[at < n ? at : all - 1 - at];

				left = at < n ? a->forward : a->backward;
				if (shards && ask->prefetch && ask->prefetch < all - at)
					ask_for(&c, l, at + ask->prefetch);
				moved = true;
			}
			if (at < all && left == 0) {
				const struct layer *a =
					&l->layer[at < n ? at : all - 1 - at];

				if (shards && !ask->prefetch && at + 1 < all)
					ask_for(&c, l, at + 1);
				if (shards && at >= n)
					put(&c, a->bytes, false, -1);
				bucket += at >= n ? a->bytes : 0;
				if (!shards && at >= n &&
				    (at == all - 1 || bucket >= ask->bucket)) {
					put(&c, bucket, false, -1);
					bucket = 0;
				}
				at++;
				left = -1;
				moved = true;
			}
		}
		if (at == all && c.head == c.count)
			return time;
		time++;
		left -= left > 0;
		if (c.head < c.count)
			c.queue[c.head].left--;
	}
}

static uint64_t chance(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (*seed * UINT64_C(0x2545f4914f6cdd1d)) >> 16;
}

static void test_chance(void)
{
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	unsigned wrong = 0, bounds = 0;

	tap_diag("WEFT_SEED=%" PRIu64, seed);
	seed += !seed;
	for (unsigned round = 0; round < 2000; round++) {
		struct layer layer[12];
		const struct layers l = {layer, 1 + (uint32_t)(chance(&seed) % 12)};
		const struct step_ask ask = {.kind = (enum step_kind)(round % 2),
					     .bucket = chance(&seed) % 30,
					     .prefetch = (uint32_t)(chance(&seed) % 5)};
		struct step_result r;

		for (uint32_t i = 0; i < l.count; i++)
			layer[i] = (struct layer){chance(&seed) % 12,
						  (double)(chance(&seed) % 8),
						  (double)(chance(&seed) % 12)};
		r = run(&l, ask);
		wrong += r.time != ticks(&l, &ask);
		bounds += r.time < r.compute || r.time < r.busy ||
			  r.time > r.compute + r.busy;
	}
	tap_is_int(wrong, 0, "2000 lists: as by a clock that ticks");
	tap_is_int(bounds, 0, "never less than computing, never more than all in a row");
}

int main(void)
{
	test_by_hand();
	test_nothing();
	test_chance();
	return tap_done();
}
