/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: sets of ranks as sorted lists of intervals in one pool. Sets are
 * never changed and live as long as the pool. Exact at any size, and short for the sets
 * that collectives make (a few intervals).
 */
#ifndef WEFT_PLAN_CHECK_SET_H
#define WEFT_PLAN_CHECK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_set {
	size_t at;	/* first interval in the pool */
	uint32_t count; /* intervals */
	uint32_t size;	/* ranks */
};

struct check_set_pool {
	struct check_set_span {
		uint32_t lo, hi; /* lo <= rank < hi */
	} * span;
	size_t used;
	size_t room;
	struct check_set_span *turned; /* a set on its way through a union */
	size_t turned_room;
};

/* false: out of memory. */
bool check_set_single(struct check_set_pool *pool, uint32_t rank, struct check_set *out);

/* a and b together. *twice is a rank that is in both, or UINT32_MAX. */
bool check_set_union(struct check_set_pool *pool, struct check_set a, struct check_set b,
		     struct check_set *out, uint32_t *twice);

/* The same with b turned: `turn` is added to its ranks, modulo `size`. */
bool check_set_union_turned(struct check_set_pool *pool, struct check_set a,
			    struct check_set b, uint32_t turn, uint32_t size,
			    struct check_set *out, uint32_t *twice);

/* The smallest rank that is not in the set. */
uint32_t check_set_missing(const struct check_set_pool *pool, struct check_set s);

void check_set_pool_fini(struct check_set_pool *pool);

/* Room for `need` elements of `size` bytes in *array, doubling. false: out of memory. */
bool check_reserve(void *array, size_t *room, size_t need, size_t size);

#endif
