/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner's side of shared memory for applications: segments cut into blocks. */
#include "config.h"

#include "prov/mem/arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/memfd.h"
#include "util/list.h"

#define ARENA_PAGE	((size_t)4096)
#define ARENA_SEGMENT	((size_t)64 << 20) /* the first; each next is twice as large */
#define ARENA_BYTES_MAX ((size_t)1 << (MEM_SHARE_OFFSET_BITS - 2))

/* A stretch of a segment; they lie in order, without gaps. */
struct block {
	struct list node; /* segment.blocks */
	size_t offset;
	size_t len;
	bool used;
	uint32_t holds;
};

struct segment {
	int fd;
	char *map;
	size_t size;
	struct list blocks;
};

struct mem_arena {
	pthread_mutex_t lock; /* all below */
	uint32_t count;
	struct segment segments[MEM_ARENA_SEGMENTS];
};

int mem_arena_open(struct mem_arena **arena)
{
	struct mem_arena *a = calloc(1, sizeof(*a));

	if (!a)
		return -FI_ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	*arena = a;
	return 0;
}

void mem_arena_close(struct mem_arena *arena)
{
	for (uint32_t i = 0; i < arena->count; i++) {
		struct segment *s = &arena->segments[i];
		struct list *n;

		while ((n = list_pop_front(&s->blocks)))
			free(container_of(n, struct block, node));
		munmap(s->map, s->size);
		close(s->fd);
	}
	pthread_mutex_destroy(&arena->lock);
	free(arena);
}

static struct block *block_of(struct list *node)
{
	return container_of(node, struct block, node);
}

/* ---- allocation ---------------------------------------------------------------------
 */

/* Where address space is short, just what is needed. */
static int segment_create(struct mem_arena *a, size_t len)
{
	struct segment *s = &a->segments[a->count];
	size_t size = ARENA_SEGMENT;
	struct block *b;
	void *map;
	int ret;

	if (a->count == MEM_ARENA_SEGMENTS)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < a->count && size < ARENA_BYTES_MAX; i++)
		size *= 2;
	if (size < len)
		size = len;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -FI_ENOMEM;
	ret = mem_memfd_create("weft-mem", size, &s->fd, &map);
	if (ret == -FI_ENOMEM && size > len) {
		size = len;
		ret = mem_memfd_create("weft-mem", size, &s->fd, &map);
	}
	if (ret) {
		free(b);
		return ret;
	}
	s->map = map;
	s->size = size;
	b->len = size;
	list_init(&s->blocks);
	list_push_back(&s->blocks, &b->node);
	a->count++;
	return 0;
}

/* The first stretch that is long enough; what is left over stays free. */
static void *segment_take(struct segment *s, size_t len)
{
	list_foreach (n, &s->blocks) {
		struct block *b = block_of(n), *rest;

		if (b->used || b->len < len)
			continue;
		if (b->len > len) {
			rest = calloc(1, sizeof(*rest));
			if (!rest)
				return NULL;
			rest->offset = b->offset + len;
			rest->len = b->len - len;
			b->len = len;
			list_insert_after(&b->node, &rest->node);
		}
		b->used = true;
		return s->map + b->offset;
	}
	return NULL;
}

int mem_arena_alloc(struct mem_arena *arena, size_t len, void **addr)
{
	void *at = NULL;
	int ret = 0;

	if (len == 0 || len > ARENA_BYTES_MAX)
		return -FI_EINVAL;
	len = (len + ARENA_PAGE - 1) & ~(ARENA_PAGE - 1);
	pthread_mutex_lock(&arena->lock);
	for (uint32_t i = 0; i < arena->count && !at; i++)
		at = segment_take(&arena->segments[i], len);
	if (!at)
		ret = segment_create(arena, len);
	if (!at && !ret) {
		at = segment_take(&arena->segments[arena->count - 1], len);
		ret = at ? 0 : -FI_ENOMEM;
	}
	pthread_mutex_unlock(&arena->lock);
	if (ret == 0)
		*addr = at;
	return ret;
}

/* ---- finding and giving back --------------------------------------------------------
 */

/* The block that holds the address, or NULL. */
static struct block *block_find(struct mem_arena *a, const void *addr,
				struct segment **segment)
{
	uintptr_t at = (uintptr_t)addr;

	for (uint32_t i = 0; i < a->count; i++) {
		struct segment *s = &a->segments[i];
		uintptr_t base = (uintptr_t)s->map;

		if (at < base || at - base >= s->size)
			continue;
		list_foreach (n, &s->blocks) {
			struct block *b = block_of(n);

			if (at - base - b->offset < b->len) {
				*segment = s;
				return b->used ? b : NULL;
			}
		}
	}
	return NULL;
}

/* Takes in the block behind b if both are free. */
static void block_join(struct segment *s, struct block *b)
{
	struct list *next = b->node.next;

	if (next == &s->blocks || b->used || block_of(next)->used)
		return;
	b->len += block_of(next)->len;
	list_remove(next);
	free(block_of(next));
}

/* The pages go back to the system; whoever gets them next finds zeroes. */
static void block_clear(char *at, size_t len)
{
	if (madvise(at, len, MADV_REMOVE) != 0)
		memset(at, 0, len);
}

int mem_arena_free(struct mem_arena *arena, void *addr)
{
	struct segment *s;
	struct block *b;
	int ret = 0;

	pthread_mutex_lock(&arena->lock);
	b = block_find(arena, addr, &s);
	if (!b || (char *)addr != s->map + b->offset) {
		ret = -FI_EINVAL;
	} else if (b->holds) {
		ret = -FI_EBUSY;
	} else {
		block_clear(s->map + b->offset, b->len);
		b->used = false;
		block_join(s, b);
		if (b->node.prev != &s->blocks)
			block_join(s, block_of(b->node.prev));
	}
	pthread_mutex_unlock(&arena->lock);
	return ret;
}

uint64_t mem_arena_hold(struct mem_arena *arena, const void *addr, size_t len)
{
	struct segment *s;
	struct block *b;
	uint64_t word = 0;

	pthread_mutex_lock(&arena->lock);
	b = block_find(arena, addr, &s);
	if (b) {
		size_t offset = (size_t)((const char *)addr - s->map);

		if (len <= b->offset + b->len - offset && b->holds < UINT32_MAX) {
			b->holds++;
			word = mem_share_word((uint32_t)(s - arena->segments), offset);
		}
	}
	pthread_mutex_unlock(&arena->lock);
	return word;
}

void mem_arena_drop(struct mem_arena *arena, uint64_t word)
{
	struct segment *s;
	struct block *b;

	pthread_mutex_lock(&arena->lock);
	s = &arena->segments[mem_share_segment(word)];
	b = block_find(arena, s->map + mem_share_offset(word), &s);
	if (b && b->holds)
		b->holds--;
	pthread_mutex_unlock(&arena->lock);
}

int mem_arena_fd(struct mem_arena *arena, uint32_t segment, size_t *size)
{
	int fd = -1;

	pthread_mutex_lock(&arena->lock);
	if (segment < arena->count) {
		fd = arena->segments[segment].fd;
		*size = arena->segments[segment].size;
	}
	pthread_mutex_unlock(&arena->lock);
	return fd;
}
