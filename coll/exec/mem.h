/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations and the handles that name them to peers. One cache per context, keyed by
 * range: a range inside a registered one is found, another is registered. An unused entry
 * is remembered until its place is needed (least recently used first), unless the
 * provider pins memory (FI_MR_ALLOCATED): then the caller may unmap the buffer after the
 * call, the pinned pages would be stale, and nothing tells us; so it is registered per
 * call. Memory that came from here (block.h) can't be unmapped unseen: it is registered
 * as a whole, and remembered always.
 *
 * A handle is {id, incarnation, key, base}: the id is the place in this table, the
 * incarnation says which registration has that place. Peers remember handles by it, and
 * `told` says which of them know this one.
 */
#ifndef WEFT_EXEC_MEM_H
#define WEFT_EXEC_MEM_H

#include "coll/exec/block.h"
#include "coll/exec/net.h"
#include "util/list.h"

#define MEM_ENTRIES_MAX 128

struct mem_entry {
	struct list lru; /* on mem->lru while in use or remembered */
	struct fid_mr *mr;
	uintptr_t start;
	size_t len;
	uint64_t key;
	uint64_t base; /* remote address of start */
	uint32_t incarnation;
	uint32_t refs;
	uint16_t id;
	bool remote;   /* peers may write it */
	bool kept;     /* of a block of ours: remembered whatever the provider pins */
	bool revoked;  /* no longer given out; closed when unused (rule D3) */
	uint8_t *told; /* bit per rank: knows this handle */
};

struct mem {
	struct net *net;
	struct list lru;    /* most recently used first */
	struct list blocks; /* struct block */
	struct mem_entry entry[MEM_ENTRIES_MAX];
};

void mem_init(struct mem *mem, struct net *net);
void mem_fini(struct mem *mem);

/*
 * A registration that covers [addr, addr + len), len > 0; remote: for puts by peers,
 * otherwise as local buffer. Returned by mem_put(). -FI_ENOMEM when every place is in
 * use, or the provider's error.
 */
int mem_get(struct mem *mem, void *addr, size_t len, bool remote,
	    struct mem_entry **entry);
void mem_put(struct mem *mem, struct mem_entry *entry);

/* Never given out again, closed with the last mem_put(). */
void mem_revoke(struct mem_entry *entry);

/* Closes all registrations that overlap the range; false: one is in use, or the provider
 * won't yet. None of them is given out again in any case. */
bool mem_forget(struct mem *mem, const void *addr, size_t len);

/* Whether rank knows the handle already; marks it as told. */
bool mem_tell(struct mem_entry *entry, int32_t rank);

#endif
