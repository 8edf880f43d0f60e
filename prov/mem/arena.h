/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that applications ask a domain for, so that peers on the host reach it by load
 * and store. It is cut from a few segments, each a sealed memfd that peers map whole, on
 * first use. Where a piece lies travels in the key table as one word: segment and offset.
 *
 * A segment is taken when the ones before it are full, is sparse (only what was touched
 * is there), and stays until the domain closes, so that its number keeps its meaning.
 */
#ifndef WEFT_MEM_ARENA_H
#define WEFT_MEM_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define MEM_ARENA_SEGMENTS 32

/* Where memory lies: segment + 1 above, offset below; 0: nowhere that is shared. */
#define MEM_SHARE_OFFSET_BITS 48

static inline uint64_t mem_share_word(uint32_t segment, uint64_t offset)
{
	return (uint64_t)(segment + 1) << MEM_SHARE_OFFSET_BITS | offset;
}

/* Of a word that isn't 0; may be out of range: a peer wrote it. */
static inline uint32_t mem_share_segment(uint64_t word)
{
	return (uint32_t)(word >> MEM_SHARE_OFFSET_BITS) - 1;
}

static inline uint64_t mem_share_offset(uint64_t word)
{
	return word & ((UINT64_C(1) << MEM_SHARE_OFFSET_BITS) - 1);
}

struct mem_arena;

/* Takes no memory yet. Every call may come from any thread. */
int mem_arena_open(struct mem_arena **arena);
/* All memory goes with it. */
void mem_arena_close(struct mem_arena *arena);

/* Whole pages, zeroed. -FI_EINVAL: len is 0, or no memory can be so large; -FI_ENOMEM,
 * -FI_EMFILE. */
int mem_arena_alloc(struct mem_arena *arena, size_t len, void **addr);
/* -FI_EINVAL: not an address that alloc gave; -FI_EBUSY: held. */
int mem_arena_free(struct mem_arena *arena, void *addr);

/* The word of [addr, addr + len) if all of it is in one allocation, which then can't be
 * freed until it was dropped as often as held; 0: it isn't. */
uint64_t mem_arena_hold(struct mem_arena *arena, const void *addr, size_t len);
void mem_arena_drop(struct mem_arena *arena, uint64_t word);

/* The descriptor of a segment, to send to a peer; stays the arena's. -1: no such. */
int mem_arena_fd(struct mem_arena *arena, uint32_t segment, size_t *size);

#endif
