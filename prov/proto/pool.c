/* SPDX-License-Identifier: BSD-2-Clause */
/* Object pools; see pool.h. */
#include "config.h"

#include "prov/proto/pool.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

int pool_init(struct pool *p, size_t obj_size, uint32_t chunk_log2)
{
	*p = (struct pool){.obj_size = (obj_size + 63) & ~(size_t)63,
			   .chunk_log2 = chunk_log2};
	p->chunks = calloc(POOL_CHUNKS_MAX, sizeof(*p->chunks));
	return p->chunks ? 0 : -FI_ENOMEM;
}

void pool_fini(struct pool *p)
{
	for (uint32_t i = 0; p->chunks && i < p->chunk_count; i++) {
		free(p->chunks[i]);
	}
	free(p->chunks);
	*p = (struct pool){0};
}

int pool_grow(struct pool *p)
{
	uint32_t count = 1u << p->chunk_log2, first = pool_limit(p);
	char *chunk;

	if (p->chunk_count == POOL_CHUNKS_MAX) {
		return -FI_ENOMEM;
	}
	chunk = aligned_alloc(64, count * p->obj_size);
	if (!chunk) {
		return -FI_ENOMEM;
	}
	__builtin_memset(chunk, 0, count * p->obj_size);
	p->chunks[p->chunk_count++] = chunk;
	/* Backwards, so that the lowest index is handed out first. */
	for (uint32_t i = count; i-- > 0;) {
		struct pool_obj *o = (struct pool_obj *)(chunk + i * p->obj_size);

		o->index = first + i;
		o->next = p->free;
		p->free = o;
	}
	p->free_count += count;
	return 0;
}
