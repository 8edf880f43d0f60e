/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the plans of many ranks have in common, kept once: kinds, lengths, loops and
 * dependencies of steps. Of a rank's own there are only its peers. A ring of 100,000
 * ranks has one shape; a tree has one for each number of children.
 */
#ifndef WEFT_TOPO_SIM_SHAPE_H
#define WEFT_TOPO_SIM_SHAPE_H

#include "coll/plan/plan.h"

/* Bytes of a step whose trips have different lengths: asked of the plan. */
#define SHAPE_VARIES UINT64_MAX

struct shape_step {
	uint64_t bytes; /* that are carried, added or copied */
	uint64_t base;	/* number of the loop's first instance, and of the step in it */
	uint32_t trips;
	uint32_t body; /* steps of the loop */
	uint32_t dep, deps;
	uint32_t next, nexts; /* who waits for it */
	uint32_t proof;	      /* index into the dependencies, or PLAN_NO_PROOF */
	int32_t peer_advance;
	uint8_t kind; /* enum plan_kind */
};

/* A dependency as the step before has it: trip t of `step` waits for trip0 + advance * t
 * of it. */
struct shape_next {
	uint32_t step;
	int32_t trip0, advance;
};

struct shape {
	struct shape_step *step;
	const struct plan_dep *dep;
	struct shape_next *next;
	const struct plan_loop *loop;
	uint32_t steps, deps, loops;
	uint64_t instances;
	uint32_t hash;
	size_t size; /* bytes from the struct on: shapes that are equal are so byte by
		      * byte */
	bool varies; /* some step does */
};

struct shapes {
	struct shape **shape;
	uint32_t count, room;
};

/* The number of the plan's shape in the list; UINT32_MAX: no memory. elem: bytes of an
 * element. */
uint32_t shape_add(struct shapes *list, const struct plan *plan, uint32_t elem);
void shapes_free(struct shapes *list);

/* Bytes of an instance that varies. */
uint64_t shape_bytes(const struct plan *plan, uint64_t number, uint32_t elem);

/* The step of an instance. */
static inline uint32_t shape_step_of(const struct shape *s, uint64_t number)
{
	uint32_t lo = 0, hi = s->loops;
	const struct plan_loop *l;

	if (s->instances == s->steps)
		return (uint32_t)number;
	while (hi - lo > 1) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (s->loop[mid].base <= number)
			lo = mid;
		else
			hi = mid;
	}
	l = &s->loop[lo];
	return l->first + (uint32_t)((number - l->base) % l->count);
}

static inline uint32_t shape_trip_of(const struct shape_step *s, uint64_t number)
{
	return s->trips == 1 ? 0 : (uint32_t)((number - s->base) / s->body);
}

static inline uint64_t shape_number(const struct shape_step *s, uint32_t trip)
{
	return s->base + (uint64_t)trip * s->body;
}

#endif
