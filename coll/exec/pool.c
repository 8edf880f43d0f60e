/* SPDX-License-Identifier: BSD-2-Clause */
/* See pool.h. */
#include "config.h"

#include <stdalign.h>
#include <stdlib.h>

#include "coll/exec/pool.h"

#define POOL_CHUNK_OBJECTS 64

struct pool_chunk {
	struct pool_chunk *next;
	alignas(max_align_t) char memory[];
};

void pool_init(struct pool *pool, size_t size)
{
	const size_t align = alignof(max_align_t);

	pool->size = (size + align - 1) / align * align;
	pool->free = NULL;
	pool->chunks = NULL;
}

void pool_fini(struct pool *pool)
{
	while (pool->chunks) {
		struct pool_chunk *next = pool->chunks->next;

		free(pool->chunks);
		pool->chunks = next;
	}
	pool->free = NULL;
}

bool pool_grow(struct pool *pool)
{
	struct pool_chunk *chunk =
		malloc(sizeof(*chunk) + POOL_CHUNK_OBJECTS * pool->size);

	if (!chunk)
		return false;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (int i = 0; i < POOL_CHUNK_OBJECTS; i++)
		pool_put(pool, chunk->memory + (size_t)i * pool->size);
	return true;
}
