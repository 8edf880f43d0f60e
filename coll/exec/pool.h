/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixed-size objects with stable addresses, taken from chunks: grows when it must, gives
 * memory back only at the end, so that in steady state the data path allocates nothing.
 */
#ifndef WEFT_EXEC_POOL_H
#define WEFT_EXEC_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool {
	size_t size; /* of an object, bytes; at least a pointer */
	void *free;  /* first free object; each begins with the next pointer */
	struct pool_chunk *chunks;
};

void pool_init(struct pool *pool, size_t size);
void pool_fini(struct pool *pool);

/* Makes more objects; false when memory ran out. */
bool pool_grow(struct pool *pool);

/* Not cleared; NULL when memory ran out. */
static inline void *pool_get(struct pool *pool)
{
	void **object;

	if (!pool->free && !pool_grow(pool))
		return NULL;
	object = pool->free;
	pool->free = *object;
	return object;
}

static inline void pool_put(struct pool *pool, void *object)
{
	*(void **)object = pool->free;
	pool->free = object;
}

#endif
