/* SPDX-License-Identifier: BSD-2-Clause */
/* See check_set.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_set.h"

bool check_reserve(void *array, size_t *room, size_t need, size_t size)
{
	size_t more = *room ? *room : 64;
	void *old, *p;

	if (need <= *room)
		return true;
	while (more < need)
		more *= 2;
	memcpy(&old, array, sizeof(old));
	p = realloc(old, more * size);
	if (!p)
		return false;
	memcpy(array, &p, sizeof(p));
	*room = more;
	return true;
}

bool check_set_single(struct check_set_pool *pool, uint32_t rank, struct check_set *out)
{
	if (!check_reserve(&pool->span, &pool->room, pool->used + 1, sizeof(*pool->span)))
		return false;
	pool->span[pool->used] = (struct check_set_span){rank, rank + 1};
	*out = (struct check_set){.at = pool->used++, .count = 1, .size = 1};
	return true;
}

/* Two sorted lists of spans; those of a and what is behind them may move. */
struct lists {
	const struct check_set_span *a, *b;
	uint32_t a_count, b_count;
};

static void spans_merge(struct check_set_pool *pool, const struct lists *l,
			struct check_set *out, uint32_t *twice)
{
	size_t begin = pool->used, at = begin;
	uint32_t i = 0, j = 0;

	*twice = UINT32_MAX;
	*out = (struct check_set){.at = begin};
	while (i < l->a_count || j < l->b_count) {
		struct check_set_span s;

		if (j == l->b_count || (i < l->a_count && l->a[i].lo <= l->b[j].lo))
			s = l->a[i++];
		else
			s = l->b[j++];
		if (at > begin && s.lo < pool->span[at - 1].hi && *twice == UINT32_MAX)
			*twice = s.lo;
		if (at > begin && s.lo <= pool->span[at - 1].hi) {
			if (s.hi > pool->span[at - 1].hi)
				pool->span[at - 1].hi = s.hi;
		} else {
			pool->span[at++] = s;
		}
	}
	for (size_t k = begin; k < at; k++)
		out->size += pool->span[k].hi - pool->span[k].lo;
	out->count = (uint32_t)(at - begin);
	pool->used = at;
}

bool check_set_union(struct check_set_pool *pool, struct check_set a, struct check_set b,
		     struct check_set *out, uint32_t *twice)
{
	if (!check_reserve(&pool->span, &pool->room, pool->used + a.count + b.count,
			   sizeof(*pool->span)))
		return false;
	spans_merge(pool,
		    &(struct lists){.a = pool->span + a.at,
				    .b = pool->span + b.at,
				    .a_count = a.count,
				    .b_count = b.count},
		    out, twice);
	return true;
}

/* Into pool->turned, sorted; returns how many spans there are now. What passes the last
 * rank goes on at rank 0, and so comes first. */
static uint32_t spans_turn(struct check_set_pool *pool, struct check_set s, uint32_t turn,
			   uint32_t size)
{
	const struct check_set_span *span = pool->span + s.at;
	struct check_set_span *out = pool->turned;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s.count; i++) {
		const uint64_t lo = (uint64_t)span[i].lo + turn,
			       hi = (uint64_t)span[i].hi + turn;

		if (hi > size)
			out[n++] = (struct check_set_span){
				lo > size ? (uint32_t)(lo - size) : 0,
				(uint32_t)(hi - size)};
	}
	for (uint32_t i = 0; i < s.count; i++) {
		const uint64_t lo = (uint64_t)span[i].lo + turn,
			       hi = (uint64_t)span[i].hi + turn;

		if (lo < size)
			out[n++] = (struct check_set_span){
				(uint32_t)lo, (uint32_t)(hi < size ? hi : size)};
	}
	return n;
}

bool check_set_union_turned(struct check_set_pool *pool, struct check_set a,
			    struct check_set b, uint32_t turn, uint32_t size,
			    struct check_set *out, uint32_t *twice)
{
	/* Of the spans one may be cut in two. */
	if (!check_reserve(&pool->span, &pool->room, pool->used + a.count + b.count + 1,
			   sizeof(*pool->span)) ||
	    !check_reserve(&pool->turned, &pool->turned_room, (size_t)b.count + 1,
			   sizeof(*pool->turned)))
		return false;
	spans_merge(pool,
		    &(struct lists){.a = pool->span + a.at,
				    .b = pool->turned,
				    .a_count = a.count,
				    .b_count = spans_turn(pool, b, turn, size)},
		    out, twice);
	return true;
}

uint32_t check_set_missing(const struct check_set_pool *pool, struct check_set s)
{
	if (!s.count || pool->span[s.at].lo)
		return 0;
	return pool->span[s.at].hi;
}

void check_set_pool_fini(struct check_set_pool *pool)
{
	free(pool->span);
	free(pool->turned);
	*pool = (struct check_set_pool){.span = NULL};
}
