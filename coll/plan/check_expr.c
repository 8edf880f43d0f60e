/* SPDX-License-Identifier: BSD-2-Clause */
/* See check_expr.h. */
#include "config.h"

#include <stdlib.h>

#include "coll/plan/check_expr.h"

bool check_exprs_init(struct check_exprs *e, uint32_t size, bool ordered)
{
	const uint32_t leaves = ordered ? size : 1;

	*e = (struct check_exprs){.slots = 1024, .size = size, .ordered = ordered};
	e->slot = calloc(e->slots, sizeof(*e->slot));
	if (!e->slot ||
	    !check_reserve(&e->expr, &e->room, (size_t)leaves + 1, sizeof(*e->expr)))
		return false;
	e->expr[e->used++] = (struct check_expr){.a = 0};
	for (uint32_t r = 0; r < leaves; r++) {
		e->expr[e->used] = (struct check_expr){.a = 0};
		if (!check_set_single(&e->pool, r, &e->expr[e->used].set))
			return false;
		e->used++;
	}
	return true;
}

void check_exprs_fini(struct check_exprs *e)
{
	free(e->expr);
	free(e->slot);
	check_set_pool_fini(&e->pool);
}

static size_t slot_of(const struct check_exprs *e, uint32_t a, uint32_t b, uint32_t turn)
{
	uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i;

	h = (h ^ turn) * UINT64_C(0x9e3779b97f4a7c15);
	i = (size_t)(h >> 20) & (e->slots - 1);
	while (e->slot[i]) {
		const struct check_expr *x = &e->expr[e->slot[i]];

		if (x->a == a && x->b == b && x->turn == turn)
			break;
		i = (i + 1) & (e->slots - 1);
	}
	return i;
}

static size_t slot_of_expr(const struct check_exprs *e, const struct check_expr *x)
{
	return slot_of(e, x->a, x->b, x->turn);
}

/* Keeps the table at most half full. */
static bool slots_grow(struct check_exprs *e)
{
	uint32_t *old = e->slot;
	size_t n = e->slots;

	if (e->used * 2 < n)
		return true;
	e->slot = calloc(n * 2, sizeof(*e->slot));
	if (!e->slot) {
		e->slot = old;
		return false;
	}
	e->slots = n * 2;
	for (size_t i = 0; i < n; i++) {
		if (old[i])
			e->slot[slot_of_expr(e, &e->expr[old[i]])] = old[i];
	}
	free(old);
	return true;
}

static bool expr_add(struct check_exprs *e, struct check_expr x, uint32_t *out)
{
	if (!check_reserve(&e->expr, &e->room, e->used + 1, sizeof(x)) || !slots_grow(e))
		return false;
	*out = (uint32_t)e->used++;
	e->expr[*out] = x;
	e->slot[slot_of_expr(e, &x)] = *out;
	return true;
}

/* Whether an operand comes before the other: all ranks of a below all of b. */
static bool sets_ascend(const struct check_exprs *e, struct check_set a,
			struct check_set b)
{
	const struct check_set_span *span = e->pool.span;

	return span[a.at + a.count - 1].hi <= span[b.at].lo;
}

static uint32_t turned(const struct check_exprs *e, uint32_t rank, uint32_t turn)
{
	return (uint32_t)(((uint64_t)rank + turn) % e->size);
}

enum check_expr_fault check_expr_reduce(struct check_exprs *e, struct check_term a,
					struct check_term b, struct check_term *out,
					uint32_t *twice)
{
	struct check_expr x = {.a = a.node, .b = b.node};

	x.turn = b.turn >= a.turn ? b.turn - a.turn : b.turn + (e->size - a.turn);
	out->turn = a.turn;
	out->node = e->slot[slot_of_expr(e, &x)];
	if (out->node)
		return CHECK_EXPR_GOOD;
	if (e->expr[a.node].scaled || e->expr[b.node].scaled)
		return CHECK_EXPR_SCALED;
	if (!check_set_union_turned(&e->pool, e->expr[a.node].set, e->expr[b.node].set,
				    x.turn, e->size, &x.set, twice))
		return CHECK_EXPR_NOMEM;
	if (*twice != UINT32_MAX) {
		*twice = turned(e, *twice, a.turn);
		return CHECK_EXPR_TWICE;
	}
	if (e->ordered && !sets_ascend(e, e->expr[a.node].set, e->expr[b.node].set)) {
		*twice = e->pool.span[e->expr[b.node].set.at].lo;
		return CHECK_EXPR_ORDER;
	}
	return expr_add(e, x, &out->node) ? CHECK_EXPR_GOOD : CHECK_EXPR_NOMEM;
}

enum check_expr_fault check_expr_scale(struct check_exprs *e, struct check_term a,
				       struct check_term *out)
{
	struct check_expr x = {.a = a.node, .scaled = true, .set = e->expr[a.node].set};

	out->turn = a.turn;
	out->node = e->slot[slot_of_expr(e, &x)];
	if (out->node)
		return CHECK_EXPR_GOOD;
	if (e->expr[a.node].scaled)
		return CHECK_EXPR_SCALED;
	if (x.set.size != e->size)
		return CHECK_EXPR_PART;
	return expr_add(e, x, &out->node) ? CHECK_EXPR_GOOD : CHECK_EXPR_NOMEM;
}

uint32_t check_expr_missing(const struct check_exprs *e, struct check_term t)
{
	const struct check_set s = e->expr[t.node].set;
	const struct check_set_span *span = e->pool.span + s.at;

	for (uint32_t rank = 0; rank < e->size; rank++) {
		const uint32_t x = turned(e, rank, e->size - t.turn);
		uint32_t i = 0;

		while (i < s.count && !(span[i].lo <= x && x < span[i].hi))
			i++;
		if (i == s.count)
			return rank;
	}
	return e->size;
}
