/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers of one packet each, registered with every rail, made many at a time when the
 * first is wanted and kept until the endpoint closes. An endpoint has two pools: one for
 * what is sent (endpoint lock), one for what is received (mutex; a buffer is found by its
 * index without).
 */
#ifndef WEFT_WIRE_VERBS_VERBS_BUFS_H
#define WEFT_WIRE_VERBS_VERBS_BUFS_H

#include <stdatomic.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_mem.h"

#define VERBS_BUF_SIZE	 4416u /* bytes of a buffer: a packet and its head */
#define VERBS_BUF_CHUNK	 32u   /* that are made at a time */
#define VERBS_BUF_CHUNKS 8192u

struct verbs_buf {
	struct verbs_buf *next; /* whoever has it may use it */
	const uint32_t *lkey;	/* of each rail */
	uint32_t index;
	char bytes[VERBS_BUF_SIZE] __attribute__((aligned(64)));
};

struct verbs_bufs {
	struct verbs_dom *dom;
	struct verbs_buf *free;
	uint32_t chunks;
	struct verbs_mr **mr; /* of each chunk */
	_Atomic(struct verbs_buf *) *chunk;
};

int verbs_bufs_init(struct verbs_bufs *bufs, struct verbs_dom *dom);
/* No device uses one of them any more. */
void verbs_bufs_fini(struct verbs_bufs *bufs);
/* VERBS_BUF_CHUNK more: 0 or -FI_ENOMEM. */
int verbs_bufs_grow(struct verbs_bufs *bufs);

/* NULL: there is no memory for more. */
static inline struct verbs_buf *verbs_buf_get(struct verbs_bufs *bufs)
{
	struct verbs_buf *b = bufs->free;

	if (__builtin_expect(!b, 0)) {
		if (verbs_bufs_grow(bufs))
			return NULL;
		b = bufs->free;
	}
	bufs->free = b->next;
	return b;
}

static inline void verbs_buf_put(struct verbs_bufs *bufs, struct verbs_buf *b)
{
	b->next = bufs->free;
	bufs->free = b;
}

static inline struct verbs_buf *verbs_buf_at(const struct verbs_bufs *bufs,
					     uint32_t index)
{
	return atomic_load_explicit(&bufs->chunk[index / VERBS_BUF_CHUNK],
				    memory_order_acquire) +
	       index % VERBS_BUF_CHUNK;
}

#endif
