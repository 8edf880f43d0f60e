/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixed-size objects with ids that a peer may send back: an id is an index and a
 * generation, so that a late or invented one finds nothing. Allocation and release are a
 * few instructions; memory is taken by pool_grow only, in chunks that never move.
 */
#ifndef WEFT_PROTO_POOL_H
#define WEFT_PROTO_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects begin with this. */
struct pool_obj {
	struct pool_obj *next; /* free list */
	uint32_t index;
	uint32_t gen; /* odd while allocated */
};

#define POOL_CHUNKS_MAX 16384

struct pool {
	struct pool_obj *free;
	uint32_t free_count;
	uint32_t chunk_log2; /* objects per chunk */
	uint32_t chunk_count;
	size_t obj_size;
	char **chunks; /* POOL_CHUNKS_MAX pointers */
};

/* No memory for objects yet. -FI_ENOMEM. */
int pool_init(struct pool *p, size_t obj_size, uint32_t chunk_log2);
void pool_fini(struct pool *p);
/* One more chunk, zeroed. -FI_ENOMEM. */
int pool_grow(struct pool *p);

/* How many objects that is. */
static inline uint32_t pool_chunk(const struct pool *p)
{
	return 1u << p->chunk_log2;
}

static inline void *pool_alloc(struct pool *p)
{
	struct pool_obj *o = p->free;

	if (o) {
		p->free = o->next;
		p->free_count--;
		o->gen++;
	}
	return o;
}

static inline void pool_release(struct pool *p, void *obj)
{
	struct pool_obj *o = obj;

	o->gen++;
	o->next = p->free;
	p->free = o;
	p->free_count++;
}

static inline uint64_t pool_id(const void *obj)
{
	const struct pool_obj *o = obj;

	return (uint64_t)o->gen << 32 | o->index;
}

/* Object number i, allocated or not; i is below pool_limit. */
static inline void *pool_at(const struct pool *p, uint32_t i)
{
	uint32_t in_chunk = i & ((1u << p->chunk_log2) - 1);

	return p->chunks[i >> p->chunk_log2] + in_chunk * p->obj_size;
}

static inline uint32_t pool_limit(const struct pool *p)
{
	return p->chunk_count << p->chunk_log2;
}

static inline bool pool_is_live(const void *obj)
{
	return ((const struct pool_obj *)obj)->gen & 1;
}

/* NULL when the id names nothing that is allocated now. */
static inline void *pool_find(const struct pool *p, uint64_t id)
{
	uint32_t index = (uint32_t)id, gen = (uint32_t)(id >> 32);
	struct pool_obj *o;

	if (index >= pool_limit(p) || !(gen & 1)) {
		return NULL;
	}
	o = pool_at(p, index);
	return o->gen == gen ? o : NULL;
}

#endif
