/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that callers ask a context for. Where the provider has memory that processes of
 * one host share (weft/weft_fi.h), it comes from there; else it is whole pages. A block
 * is registered as a whole when any part of it is first used, and only freeing it, or a
 * full table, closes that.
 */
#ifndef WEFT_EXEC_BLOCK_H
#define WEFT_EXEC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "util/list.h"

struct mem;
struct net;

struct block {
	struct list link; /* mem->blocks */
	void *addr;
	size_t len;
	bool shared; /* the provider's */
};

/* Zeroed. -FI_EINVAL: no bytes; -FI_ENOMEM, or what the provider said. */
int block_alloc(struct mem *mem, size_t len, void **addr);
/* -FI_EINVAL: not what block_alloc gave; -FI_EBUSY: in use by a request, or a peer may
 * still write it (rule D3). */
int block_free(struct mem *mem, void *addr);
/* The block that holds all of the range, or NULL. */
struct block *block_find(struct mem *mem, const void *addr, size_t len);
/* All of them, when no registration is left. */
void blocks_fini(struct mem *mem);

#endif
