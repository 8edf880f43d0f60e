/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a plan: instances, dependencies, offsets and pieces. The executor calls these
 * for every instance, so nothing here allocates or walks what arithmetic can give.
 */
#include "config.h"

#include <stdlib.h>

#include "coll/plan/plan.h"

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	for (uint32_t i = 0; plan->part && i < plan->part_count; i++)
		free((void *)(uintptr_t)plan->part[i].disp);
	free(plan->part);
	free(plan->step);
	free(plan->dep);
	free(plan->loop);
	free(plan);
}

/* (value + advance * trip) mod modulus, for signed advances. */
static uint32_t moved(uint32_t value, int32_t advance, uint32_t trip, uint32_t modulus)
{
	int64_t m = modulus, v;

	if (!advance)
		return value;
	v = ((int64_t)value + (int64_t)advance * trip) % m;
	return (uint32_t)(v < 0 ? v + m : v);
}

static void range_move(const struct plan *plan, struct plan_range *r, int32_t advance,
		       uint32_t trip)
{
	if (r->count && r->block)
		r->first = moved(r->first, advance, trip, plan->part[r->part].parts);
}

/* The last loop that begins at or before the instance. A loop of no trips shares its base
 * with its successor, so that the last one is the one that holds the instance. */
static const struct plan_loop *loop_of_instance(const struct plan *plan, uint64_t number)
{
	uint32_t lo = 0, hi = plan->loop_count;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (plan->loop[mid].base <= number)
			lo = mid;
		else
			hi = mid;
	}
	return &plan->loop[lo];
}

const struct plan_loop *plan_loop_of(const struct plan *plan, uint32_t step)
{
	uint32_t lo = 0, hi = plan->loop_count;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (plan->loop[mid].first <= step)
			lo = mid;
		else
			hi = mid;
	}
	return &plan->loop[lo];
}

void plan_instance_at(const struct plan *plan, uint64_t number, struct plan_instance *out)
{
	const struct plan_loop *l = loop_of_instance(plan, number);
	uint64_t at = number - l->base;
	const struct plan_step *s;

	out->number = number;
	out->trip = (uint32_t)(at / l->count);
	out->step = l->first + (uint32_t)(at % l->count);
	s = &plan->step[out->step];
	out->kind = s->kind;
	out->flags = s->flags;
	out->peer = (int32_t)moved((uint32_t)s->peer, s->peer_advance, out->trip,
				   (uint32_t)plan->size);
	out->dst = s->dst;
	out->src = s->src;
	out->src2 = s->src2;
	range_move(plan, &out->dst, s->dst_advance, out->trip);
	range_move(plan, &out->src, s->src_advance, out->trip);
	range_move(plan, &out->src2, s->src2_advance, out->trip);
}

bool plan_dep_instance(const struct plan *plan, const struct plan_dep *d,
		       const struct plan_instance *i, uint64_t *number)
{
	const struct plan_loop *l = plan_loop_of(plan, d->step);
	int64_t trip = d->trip0 + (int64_t)d->advance * i->trip;

	if (trip < 0 || trip >= l->trips)
		return false;
	*number = l->base + (uint64_t)trip * l->count + (d->step - l->first);
	return true;
}

bool plan_binding_valid(const struct plan *plan, const struct plan_binding *bind)
{
	for (uint32_t p = 0; p < plan->part_count; p++) {
		const struct plan_part *part = &plan->part[p];
		const uint64_t *disp;

		if (part->kind != PLAN_LATE)
			continue;
		disp = bind && bind->disp ? bind->disp[p] : NULL;
		if (!disp)
			return false;
		for (uint32_t i = 0; i < part->parts; i++) {
			if (disp[i] > disp[i + 1])
				return false;
		}
		if (disp[part->parts] > part->total)
			return false;
	}
	return true;
}

uint64_t plan_part_offset(const struct plan *plan, const struct plan_binding *bind,
			  uint8_t part, uint32_t i)
{
	const struct plan_part *p = &plan->part[part];

	switch (p->kind) {
	case PLAN_TABLE:
		return p->disp[i];
	case PLAN_LATE:
		return bind->disp[part][i];
	case PLAN_FOLDED:
		return p->base + (i % p->slots) * ((p->total - p->base) / p->slots);
	case PLAN_SHIFTED:
		return p->base + plan_part_offset(plan, bind, p->of, i);
	case PLAN_BALANCED:
		break;
	}
	/* floor(i * total / parts) without the product, which may not fit. */
	return p->total / p->parts * i + p->total % p->parts * i / p->parts;
}

uint64_t plan_part_length(const struct plan *plan, const struct plan_binding *bind,
			  uint8_t part, uint32_t i)
{
	const struct plan_part *p = &plan->part[part];

	if (p->kind == PLAN_FOLDED)
		part = p->of;
	return plan_part_offset(plan, bind, part, i + 1) -
	       plan_part_offset(plan, bind, part, i);
}

/* Of what is cut evenly it is known without a look at the parts, of which there can be
 * many more than a plan has steps. */
uint64_t plan_part_longest(const struct plan_part *part)
{
	uint64_t longest = 0;

	if (part->kind == PLAN_BALANCED)
		return part->total / part->parts + (part->total % part->parts != 0);
	if (part->kind != PLAN_TABLE)
		return part->total;
	for (uint32_t i = 0; i < part->parts; i++) {
		const uint64_t len = part->disp[i + 1] - part->disp[i];

		longest = len > longest ? len : longest;
	}
	return longest;
}

static uint32_t run_first(const struct plan_range *r, uint32_t run, uint32_t parts)
{
	return (uint32_t)((r->first + (uint64_t)run * r->stride) % parts);
}

uint64_t plan_range_elements(const struct plan *plan, const struct plan_binding *bind,
			     const struct plan_range *r)
{
	uint64_t sum = 0;
	uint8_t part;
	uint32_t parts;

	if (!r->count || !r->block)
		return 0;
	part = plan->part[r->part].kind == PLAN_FOLDED ? plan->part[r->part].of : r->part;
	parts = plan->part[part].parts;
	for (uint32_t j = 0; j < r->count; j++) {
		uint32_t first = run_first(r, j, parts);
		uint64_t end = (uint64_t)first + r->block;

		if (end > parts) {
			sum += plan_part_offset(plan, bind, part, (uint32_t)end - parts) -
			       plan_part_offset(plan, bind, part, 0);
			end = parts;
		}
		sum += plan_part_offset(plan, bind, part, (uint32_t)end) -
		       plan_part_offset(plan, bind, part, first);
	}
	return sum;
}

void plan_piece_begin(struct plan_piece_iter *it, const struct plan *plan,
		      const struct plan_binding *bind, const struct plan_range *r)
{
	*it = (struct plan_piece_iter){.plan = plan, .bind = bind, .range = *r};
	if (!r->block)
		it->range.count = 0;
}

/* The next stretch that one partition lookup gives: up to the end of the run or of the
 * partition, or one part of a folded one. May be empty. */
static bool stretch_next(struct plan_piece_iter *it, uint64_t *offset, uint64_t *length)
{
	const struct plan_range *r = &it->range;
	const struct plan_part *p;
	uint32_t at, n;

	if (it->run >= r->count)
		return false;
	p = &it->plan->part[r->part];
	at = (uint32_t)(((uint64_t)run_first(r, it->run, p->parts) + it->done) %
			p->parts);
	n = r->block - it->done;
	if (n > p->parts - at)
		n = p->parts - at;
	*offset = plan_part_offset(it->plan, it->bind, r->part, at);
	if (p->kind == PLAN_FOLDED) {
		n = 1;
		*length = plan_part_length(it->plan, it->bind, r->part, at);
	} else {
		*length = plan_part_offset(it->plan, it->bind, r->part, at + n) - *offset;
	}
	it->done += n;
	if (it->done == r->block) {
		it->done = 0;
		it->run++;
	}
	return true;
}

/* The map of the range's partition, where it has one. */
static const struct plan_map *map_of(const struct plan_piece_iter *it)
{
	return it->bind && it->bind->map ? it->bind->map[it->range.part] : NULL;
}

/* Pieces of a map are as long as they can be already. */
static bool mapped_next(struct plan_piece_iter *it, const struct plan_map *map,
			uint64_t *offset, uint64_t *length)
{
	const struct plan_range *r = &it->range;
	const uint32_t parts = it->plan->part[r->part].parts;

	while (it->run < r->count) {
		const uint32_t at =
			(uint32_t)(((uint64_t)run_first(r, it->run, parts) + it->done) %
				   parts);
		const uint64_t next = map->first[at] + it->piece;

		if (next < map->first[at + 1]) {
			it->piece++;
			*offset = map->piece[next].at;
			*length = map->piece[next].length;
			return true;
		}
		it->piece = 0;
		if (++it->done == r->block) {
			it->done = 0;
			it->run++;
		}
	}
	return false;
}

bool plan_piece_next(struct plan_piece_iter *it, uint64_t *offset, uint64_t *length)
{
	const struct plan_map *map = map_of(it);
	uint64_t next, len;

	if (map)
		return mapped_next(it, map, offset, length);
	do {
		if (!stretch_next(it, offset, length))
			return false;
	} while (!*length);
	for (;;) {
		uint32_t run = it->run, done = it->done;

		if (!stretch_next(it, &next, &len))
			return true;
		if (len && next != *offset + *length) {
			it->run = run;
			it->done = done;
			return true;
		}
		*length += len;
	}
}
