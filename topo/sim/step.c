/* SPDX-License-Identifier: BSD-2-Clause */
/* See step.h. */
#include "config.h"

#include <stdlib.h>

#include "topo/sim/step.h"

struct step {
	const struct layers *layers;
	const struct step_ask *ask;
	struct step_result *result;
	double now;  /* computing has come so far */
	double free; /* so have collectives */
	bool failed;
};

/* Handed over at that moment; when it has ended. */
static double hand_over(struct step *s, double at, enum step_op op, uint64_t bytes)
{
	double cost;

	if (!bytes || s->failed)
		return at;
	cost = s->ask->cost(s->ask->arg, op, bytes);
	if (!(cost >= 0)) {
		s->failed = true;
		return at;
	}
	s->free = (s->free > at ? s->free : at) + cost;
	s->result->busy += cost;
	s->result->collectives++;
	return s->free;
}

static void compute(struct step *s, double time)
{
	s->result->compute += time;
	s->now += time * s->ask->lag;
}

static void buckets(struct step *s)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->layers->count; i++)
		compute(s, s->layers->layer[i].forward);
	for (uint32_t i = s->layers->count; i-- > 0 && !s->failed;) {
		compute(s, s->layers->layer[i].backward);
		bytes += s->layers->layer[i].bytes;
		if (i && bytes < s->ask->bucket)
			continue;
		hand_over(s, s->now, STEP_ALLREDUCE, bytes);
		bytes = 0;
	}
}

/* Of the way forward and backward together. */
static const struct layer *layer_at(const struct layers *l, uint32_t at)
{
	return &l->layer[at < l->count ? at : 2 * l->count - 1 - at];
}

static double gather(struct step *s, double at, uint32_t k)
{
	/* The last layer's parameters are there from the way forward. */
	if (k == s->layers->count)
		return at;
	return hand_over(s, at, STEP_ALLGATHER, layer_at(s->layers, k)->bytes);
}

static bool shards(struct step *s)
{
	const uint32_t n = s->layers->count, all = 2 * n, ahead = s->ask->prefetch;
	double *there = calloc(all, sizeof(*there));

	if (!there)
		return false;
	for (uint32_t k = 0; k < all && (k < ahead || k == 0); k++)
		there[k] = gather(s, 0, k);
	for (uint32_t k = 0; k < all && !s->failed; k++) {
		const struct layer *l = layer_at(s->layers, k);

		s->now = there[k] > s->now ? there[k] : s->now;
		if (ahead && ahead < all - k)
			there[k + ahead] = gather(s, s->now, k + ahead);
		compute(s, k < n ? l->forward : l->backward);
		if (!ahead && k + 1 < all)
			there[k + 1] = gather(s, s->now, k + 1);
		if (k >= n)
			hand_over(s, s->now, STEP_REDUCE_SCATTER, l->bytes);
	}
	free(there);
	return true;
}

bool step_run(const struct layers *layers, const struct step_ask *ask,
	      struct step_result *result)
{
	struct step s = {.layers = layers, .ask = ask, .result = result};
	bool good = true;

	*result = (struct step_result){0};
	if (ask->kind == STEP_BUCKETS)
		buckets(&s);
	else
		good = shards(&s);
	result->time = s.now > s.free ? s.now : s.free;
	/* Whenever nothing is computed, a collective goes on. */
	result->exposed = result->time - result->compute * ask->lag;
	if (result->exposed < 0)
		result->exposed = 0;
	result->efficiency = result->time > 0 ? result->compute / result->time : 1;
	return good && !s.failed;
}
