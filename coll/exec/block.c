/* SPDX-License-Identifier: BSD-2-Clause */
/* See block.h. */
#include "config.h"

#include "coll/exec/block.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coll/exec/mem.h"
#include "weft/weft_fi.h"

#define BLOCK_PAGE ((size_t)4096)

/* NULL: this provider has none. */
static struct weft_fi_mem_ops *provider_ops(struct net *net)
{
	struct weft_fi_mem_ops *ops = NULL;

	if (fi_open_ops(&net->domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&ops, NULL))
		return NULL;
	return ops && ops->size >= sizeof(*ops) ? ops : NULL;
}

static int pages_alloc(size_t len, void **addr)
{
	if (len > SIZE_MAX - BLOCK_PAGE || posix_memalign(addr, BLOCK_PAGE, len))
		return -FI_ENOMEM;
	memset(*addr, 0, len);
	return 0;
}

int block_alloc(struct mem *mem, size_t len, void **addr)
{
	struct weft_fi_mem_ops *ops = provider_ops(mem->net);
	struct block *b;
	int rc;

	if (len == 0)
		return -FI_EINVAL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -FI_ENOMEM;
	rc = ops ? ops->alloc(mem->net->domain, len, 0, &b->addr)
		 : pages_alloc(len, &b->addr);
	if (rc) {
		free(b);
		return rc;
	}
	b->len = len;
	b->shared = ops != NULL;
	list_push_front(&mem->blocks, &b->link);
	*addr = b->addr;
	return 0;
}

/* The memory itself; false: the provider still holds it. */
static bool block_release(struct mem *mem, struct block *b)
{
	if (!b->shared)
		free(b->addr);
	else if (provider_ops(mem->net)->free(mem->net->domain, b->addr))
		return false;
	list_remove(&b->link);
	free(b);
	return true;
}

int block_free(struct mem *mem, void *addr)
{
	list_foreach (pos, &mem->blocks) {
		struct block *b = container_of(pos, struct block, link);

		if (b->addr != addr)
			continue;
		if (!mem_forget(mem, b->addr, b->len) || !block_release(mem, b))
			return -FI_EBUSY;
		return 0;
	}
	return -FI_EINVAL;
}

struct block *block_find(struct mem *mem, const void *addr, size_t len)
{
	list_foreach (pos, &mem->blocks) {
		struct block *b = container_of(pos, struct block, link);
		const uintptr_t at = (uintptr_t)addr - (uintptr_t)b->addr;

		if (at <= b->len && len <= b->len - at)
			return b;
	}
	return NULL;
}

void blocks_fini(struct mem *mem)
{
	list_foreach_safe (pos, next, &mem->blocks) {
		struct block *b = container_of(pos, struct block, link);

		block_release(mem, b);
	}
}
