/* SPDX-License-Identifier: BSD-2-Clause */
/* See check_space.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_space.h"

static bool space_is(const struct check_space *s, const struct plan *plan, uint8_t part,
		     const struct check_space *of)
{
	const struct plan_part *p = &plan->part[part];

	if (s->parts != p->parts || (p->kind == PLAN_FOLDED) != !s->begin)
		return false;
	if (p->kind == PLAN_FOLDED)
		return s->of == of && s->slots == p->slots && s->base == p->base &&
		       s->slot_len == (p->total - p->base) / p->slots;
	if (s->begin[p->parts] != p->total)
		return false;
	for (uint32_t i = 0; i <= p->parts; i++) {
		if (s->begin[i] != plan_part_offset(plan, NULL, part, i))
			return false;
	}
	return true;
}

static struct check_space *space_make(const struct plan *plan, uint8_t part,
				      const struct check_space *of)
{
	const struct plan_part *p = &plan->part[part];
	struct check_space *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->parts = p->parts;
	if (p->kind == PLAN_FOLDED) {
		s->of = of;
		s->slots = p->slots;
		s->base = p->base;
		s->slot_len = (p->total - p->base) / p->slots;
		return s;
	}
	s->begin = malloc(((size_t)p->parts + 1) * sizeof(*s->begin));
	if (!s->begin) {
		free(s);
		return NULL;
	}
	for (uint32_t i = 0; i <= p->parts; i++)
		s->begin[i] = plan_part_offset(plan, NULL, part, i);
	return s;
}

const struct check_space *check_space_get(struct check_space **list,
					  const struct plan *plan, uint8_t part)
{
	const struct plan_part *p = &plan->part[part];
	const struct check_space *of = NULL;
	struct check_space *s;

	if (p->kind == PLAN_FOLDED) {
		of = check_space_get(list, plan, p->of);
		if (!of)
			return NULL;
	}
	for (s = *list; s; s = s->next) {
		if (space_is(s, plan, part, of))
			return s;
	}
	s = space_make(plan, part, of);
	if (!s)
		return NULL;
	s->next = *list;
	*list = s;
	return s;
}

void check_space_free(struct check_space *list)
{
	while (list) {
		struct check_space *next = list->next;

		free(list->begin);
		free(list);
		list = next;
	}
}

bool check_piece_next(struct check_pieces *it, uint64_t *offset, uint64_t *length)
{
	const struct check_range *r = &it->range;
	const struct check_space *s = r->space;

	while (s && it->run < r->count) {
		const uint64_t part = r->first + (uint64_t)it->run * r->stride + it->done;
		/* Dividing takes longer than all the rest, and few ranges wrap. */
		const uint32_t at = (uint32_t)(part < s->parts ? part : part % s->parts);
		uint32_t n = r->block - it->done;

		if (n > s->parts - at)
			n = s->parts - at;
		if (!s->begin)
			n = 1;
		*offset = check_space_begin(s, at);
		*length =
			s->begin ? s->begin[at + n] - *offset : check_space_length(s, at);
		it->done += n;
		if (it->done == r->block) {
			it->done = 0;
			it->run++;
		}
		if (*length)
			return true;
	}
	return false;
}

static bool range_empty(const struct check_range *r)
{
	struct check_pieces it;
	uint64_t offset, length;

	check_pieces_begin(&it, r);
	return !check_piece_next(&it, &offset, &length);
}

bool check_range_same(const struct check_range *a, const struct check_range *b)
{
	if (a->space == b->space && (!a->space || a->buf == b->buf) &&
	    a->first == b->first && a->block == b->block && a->count == b->count &&
	    (a->stride == b->stride || a->count < 2))
		return true;
	/* Without any element they are the same wherever they are. */
	return check_range_coincides(a, 0, b, 0) && (a->buf == b->buf || range_empty(a));
}

bool check_range_coincides(const struct check_range *a, uint64_t a_at,
			   const struct check_range *b, uint64_t b_at)
{
	struct check_pieces x, y;
	uint64_t xo, xn = 0, yo, yn = 0;

	check_pieces_begin(&x, a);
	check_pieces_begin(&y, b);
	for (;;) {
		uint64_t n;
		bool more_x = xn || check_piece_next(&x, &xo, &xn);
		bool more_y = yn || check_piece_next(&y, &yo, &yn);

		if (!more_x || !more_y)
			return more_x == more_y;
		if (xo + a_at != yo + b_at)
			return false;
		n = xn < yn ? xn : yn;
		xo += n;
		xn -= n;
		yo += n;
		yn -= n;
	}
}
