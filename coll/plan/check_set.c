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

bool check_set_union(struct check_set_pool *pool, struct check_set a, struct check_set b,
		     struct check_set *out, uint32_t *twice)
{
	size_t begin = pool->used, at = begin;
	uint32_t i = 0, j = 0;

	*twice = UINT32_MAX;
	if (!check_reserve(&pool->span, &pool->room, begin + a.count + b.count,
			   sizeof(*pool->span)))
		return false;
	*out = (struct check_set){.at = begin};
	while (i < a.count || j < b.count) {
		struct check_set_span s;

		if (j == b.count ||
		    (i < a.count && pool->span[a.at + i].lo <= pool->span[b.at + j].lo))
			s = pool->span[a.at + i++];
		else
			s = pool->span[b.at + j++];
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
	*pool = (struct check_set_pool){.span = NULL};
}
