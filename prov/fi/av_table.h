/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of a vector: a dense array by index, the lowest free index first, and a
 * hash from address to index. Equal addresses hang in one chain by ascending index
 * behind the lowest of them, which alone is in the hash: looking up is constant time
 * however often an address was inserted.
 */
#ifndef WEFT_FI_AV_TABLE_H
#define WEFT_FI_AV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/addr.h"

#define AV_TABLE_NONE UINT32_MAX

struct av_row {
	struct wire_addr addr;
	uint64_t user_id; /* what is told of messages from there; the index by default */
	uint32_t hash;
	uint32_t next; /* first of its address: next in the bucket */
	uint32_t twin; /* next higher index with the same address */
	uint32_t last; /* first of its address: the highest such index */
	bool used;
	bool first; /* lowest index of its address */
};

struct av_table {
	struct av_row *rows;
	uint32_t limit; /* indices are below this */
	uint32_t room;
	uint32_t count;	 /* rows in use */
	uint32_t lowest; /* no free index is below this */
	uint32_t *buckets;
	uint32_t bucket_count; /* a power of two, or 0 */
};

void av_table_init(struct av_table *t);
void av_table_fini(struct av_table *t);

/* Room for `count` rows in all, so that that many inserts can't fail. -FI_ENOMEM. */
int av_table_reserve(struct av_table *t, size_t count);

/* Equal addresses get rows of their own; user_id is the index. -FI_ENOMEM. */
int av_table_insert(struct av_table *t, const struct wire_addr *addr, uint32_t *index);
/* At that index; not in a table that av_table_insert is used on as well. -FI_EINVAL: it
 * isn't free; -FI_ENOMEM. */
int av_table_place(struct av_table *t, const struct wire_addr *addr, uint32_t index);
/* The index must be in use. */
void av_table_remove(struct av_table *t, uint32_t index);

/* The lowest index of that address, or AV_TABLE_NONE. */
uint32_t av_table_find(const struct av_table *t, const struct wire_addr *addr);

/* NULL when it is not in use. Good until the next insert. */
static inline const struct wire_addr *av_table_addr(const struct av_table *t,
						    uint64_t index)
{
	if (index >= t->limit || !t->rows[index].used)
		return NULL;
	return &t->rows[index].addr;
}

#endif
