/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache of local registrations, for wires that can't touch memory that was not registered
 * with them. What was registered stays so while nobody needs the room, and is found again
 * by its addresses, unless the memory monitor (monitor.h) said that other memory may be
 * there now: then it is never given out again. Without a monitor nothing is kept.
 *
 * From any thread. The wire's two functions are called with no lock of the cache held,
 * from inside get, put, flush and close only, so under whatever lock its caller holds.
 */
#ifndef WEFT_MEM_REGCACHE_H
#define WEFT_MEM_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_regcache;

/* How memory is registered. Addresses are whole pages. */
struct mem_reg_ops {
	/* 0 and a handle that is not NULL, or a negative fi_errno. */
	int (*add)(void *arg, void *start, size_t len, void **handle);
	void (*drop)(void *arg, void *handle);
};

struct mem_regcache_attr {
	const struct mem_reg_ops *ops;
	void *arg;
	uint32_t max_count; /* registrations that are kept; 0: none */
	uint64_t max_size;  /* bytes that are kept */
	bool no_monitor;    /* as if there were none */
};

/* A registration that somebody uses: theirs until they put it. */
struct mem_reg {
	void *handle;
	uintptr_t start, end; /* covers at least what was asked for */
};

struct mem_regcache_stats {
	uint64_t hits, misses;
	uint64_t gone;	   /* kept ones that the monitor ended */
	uint64_t evicted;  /* that were idle and had to make room */
	uint64_t uncached; /* registrations that were not kept */
	uint64_t size;	   /* bytes of those that are kept now */
	uint32_t count;	   /* those */
};

/* -FI_ENOMEM. That there is no monitor is no error. */
int mem_regcache_open(const struct mem_regcache_attr *attr, struct mem_regcache **cache);
/* Drops everything, what somebody uses as well: nothing is put afterwards. In a forked
 * child nothing is dropped: it is the parent's. */
void mem_regcache_close(struct mem_regcache *cache);
bool mem_regcache_keeps(const struct mem_regcache *cache);

/* A registration of [base, base + len), len not 0. -FI_EINVAL, -FI_EOPBADSTATE in a
 * forked child, or what the wire says, when giving up all that is idle didn't help. */
int mem_regcache_get(struct mem_regcache *cache, const void *base, size_t len,
		     struct mem_reg **reg);
void mem_regcache_put(struct mem_regcache *cache, struct mem_reg *reg);
/* Drops what is idle. */
void mem_regcache_flush(struct mem_regcache *cache);
void mem_regcache_stats(struct mem_regcache *cache, struct mem_regcache_stats *stats);

#endif
