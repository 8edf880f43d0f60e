/* SPDX-License-Identifier: BSD-2-Clause */
/* See shape.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "topo/sim/shape.h"

/* Whether all parts are as long as the first. */
static bool part_even(const struct plan *plan, uint8_t part)
{
	const struct plan_part *p = &plan->part[part];

	if (p->kind == PLAN_FOLDED || p->kind == PLAN_SHIFTED)
		return part_even(plan, p->of);
	return p->kind == PLAN_BALANCED && (p->parts == 0 || p->total % p->parts == 0);
}

static const struct plan_range *range_of(const struct plan_instance *i)
{
	return i->kind == PLAN_SEND ? &i->src : &i->dst;
}

/* Elements without a walk over the runs where parts are even. */
static uint64_t elements_of(const struct plan *plan, const struct plan_range *r)
{
	if (!r->count || !r->block)
		return 0;
	if (part_even(plan, r->part))
		return plan_part_length(plan, NULL, r->part, 0) * r->count * r->block;
	return plan_range_elements(plan, NULL, r);
}

uint64_t shape_bytes(const struct plan *plan, uint64_t number, uint32_t elem)
{
	struct plan_instance i;

	plan_instance_at(plan, number, &i);
	return elements_of(plan, range_of(&i)) * elem;
}

/* Bytes of all trips, or SHAPE_VARIES. */
static uint64_t step_bytes(const struct plan *plan, const struct shape_step *s,
			   uint32_t elem)
{
	struct plan_instance i;
	const struct plan_range *r;

	if (!s->trips)
		return 0;
	plan_instance_at(plan, s->base, &i);
	r = range_of(&i);
	if (r->count && r->block && s->trips > 1 && !part_even(plan, r->part))
		return SHAPE_VARIES;
	return elements_of(plan, r) * elem;
}

/* Room for all of it, in one piece: the struct, steps, dependencies, both ways, loops. */
static struct shape *shape_alloc(const struct plan *plan)
{
	const size_t steps = plan->step_count * sizeof(struct shape_step);
	const size_t deps = plan->dep_count * sizeof(struct plan_dep);
	const size_t nexts = plan->dep_count * sizeof(struct shape_next);
	const size_t loops = plan->loop_count * sizeof(struct plan_loop);
	const size_t size = sizeof(struct shape) + steps + deps + nexts + loops;
	struct shape *s = calloc(1, size);
	char *at;

	if (!s)
		return NULL;
	at = (char *)(s + 1);
	s->size = size;
	s->step = (struct shape_step *)(void *)at;
	s->loop = (struct plan_loop *)(void *)(at + steps);
	s->dep = (struct plan_dep *)(void *)(at + steps + loops);
	s->next = (struct shape_next *)(void *)(at + steps + loops + deps);
	/* Field by field: what lies between them is nobody's. */
	for (uint32_t i = 0; i < plan->loop_count; i++)
		((struct plan_loop *)(void *)(at + steps))[i] =
			(struct plan_loop){.first = plan->loop[i].first,
					   .count = plan->loop[i].count,
					   .trips = plan->loop[i].trips,
					   .base = plan->loop[i].base};
	if (deps)
		memcpy(at + steps + loops, plan->dep, deps);
	s->steps = plan->step_count;
	s->deps = plan->dep_count;
	s->loops = plan->loop_count;
	s->instances = plan->instances;
	return s;
}

static void steps_set(struct shape *s, const struct plan *plan, uint32_t elem)
{
	for (uint32_t l = 0; l < plan->loop_count; l++) {
		const struct plan_loop *loop = &plan->loop[l];

		for (uint32_t i = 0; i < loop->count; i++) {
			const struct plan_step *p = &plan->step[loop->first + i];
			struct shape_step *to = &s->step[loop->first + i];

			to->kind = p->kind;
			to->base = loop->base + i;
			to->trips = loop->trips;
			to->body = loop->count;
			to->dep = p->dep_first;
			to->deps = p->dep_count;
			to->proof = p->kind == PLAN_SEND ? p->proof : PLAN_NO_PROOF;
			to->peer_advance = p->peer_advance;
			to->bytes = step_bytes(plan, to, elem);
			s->varies = s->varies || to->bytes == SHAPE_VARIES;
		}
	}
}

static void nexts_set(struct shape *s)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->steps; i++)
		for (uint32_t d = 0; d < s->step[i].deps; d++)
			s->step[s->dep[s->step[i].dep + d].step].nexts++;
	for (uint32_t i = 0; i < s->steps; i++) {
		s->step[i].next = at;
		at += s->step[i].nexts;
		s->step[i].nexts = 0;
	}
	for (uint32_t i = 0; i < s->steps; i++) {
		for (uint32_t d = 0; d < s->step[i].deps; d++) {
			const struct plan_dep *dep = &s->dep[s->step[i].dep + d];
			struct shape_step *on = &s->step[dep->step];

			s->next[on->next + on->nexts++] =
				(struct shape_next){i, dep->trip0, dep->advance};
		}
	}
}

static uint32_t hash_of(const struct shape *s)
{
	const unsigned char *at = (const unsigned char *)(s + 1);
	uint64_t h = s->size;

	for (size_t i = 0; i + 8 <= s->size - sizeof(*s); i += 8) {
		uint64_t v;

		memcpy(&v, at + i, sizeof(v));
		h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return (uint32_t)h;
}

static bool same(const struct shape *a, const struct shape *b)
{
	return a->hash == b->hash && a->size == b->size && a->steps == b->steps &&
	       memcmp(a + 1, b + 1, a->size - sizeof(*a)) == 0;
}

uint32_t shape_add(struct shapes *list, const struct plan *plan, uint32_t elem)
{
	struct shape *s = shape_alloc(plan);

	if (!s)
		return UINT32_MAX;
	steps_set(s, plan, elem);
	nexts_set(s);
	s->hash = hash_of(s);
	/* The last ones are the likeliest; there are few. */
	for (uint32_t i = list->count; i-- > 0;) {
		if (same(list->shape[i], s)) {
			free(s);
			return i;
		}
	}
	if (list->count == list->room) {
		const uint32_t room = list->room ? list->room * 2 : 16;
		struct shape **more = realloc(list->shape, room * sizeof(*more));

		if (!more) {
			free(s);
			return UINT32_MAX;
		}
		list->shape = more;
		list->room = room;
	}
	list->shape[list->count] = s;
	return list->count++;
}

void shapes_free(struct shapes *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->shape[i]);
	free(list->shape);
}
