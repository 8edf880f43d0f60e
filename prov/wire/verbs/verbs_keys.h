/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table by which peers find memory of this domain, read by them with RDMA (rule D1):
 * so a passive target need not answer. Bytes and the one validator are in verbs_keys.c.
 *
 *   root: rails, and where each level lies    (fixed; the card says where)
 *   level i: VERBS_KEYS_BUCKETS << i buckets of four entries
 *
 * An entry may be in two buckets of each level. Levels are added, and never moved or
 * given back before the domain is closed, so a reader may remember the root. A read may
 * meet a write: root and entries carry a sum of their own bytes, and what is torn is read
 * again.
 *
 * Two spaces of keys: those of the application, and names of registrations that mem_add
 * made. An entry carries an incarnation: a key that was used before is told from now
 * (rule D2).
 */
#ifndef WEFT_WIRE_VERBS_VERBS_KEYS_H
#define WEFT_WIRE_VERBS_VERBS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/dqplb/rails.h"

#define VERBS_KEYS_PIECES  4u
#define VERBS_KEYS_LEVELS  20u
#define VERBS_KEYS_BUCKETS 16u
#define VERBS_KEYS_BUCKET  4u /* entries */

enum verbs_keys_space { VERBS_KEYS_APP, VERBS_KEYS_NAME };

/* What peers may do by it, and which of its domain's counters want to hear of that. */
enum verbs_keys_access {
	VERBS_KEYS_READ = 1,
	VERBS_KEYS_WRITE = 2,
	VERBS_KEYS_COUNT_EP = 4,
	VERBS_KEYS_COUNT_MR = 8,
	VERBS_KEYS_ACCESS = 15
};

struct verbs_keys_piece {
	uint64_t addr;
	uint64_t len;
	uint32_t rkey[DQPLB_RAILS_MAX];
};

/* What a key means, in host order. */
struct verbs_keys_entry {
	uint64_t key;
	uint8_t space;
	uint8_t access; /* enum verbs_keys_access */
	bool virt_addr; /* remote addresses are those of the first piece, else offsets */
	uint8_t pieces;
	uint32_t incarnation;
	struct verbs_keys_piece piece[VERBS_KEYS_PIECES];
};

/* ---- owner --------------------------------------------------------------------------
 */

/* How a level's memory gets known to the devices: all rails may read it. */
struct verbs_keys_ops {
	/* 0 and *handle, the rkeys of all rails; or a negative fi_errno. */
	int (*add)(void *arg, void *start, size_t len, void **handle,
		   uint32_t rkey[DQPLB_RAILS_MAX]);
	void (*drop)(void *arg, void *handle);
};

struct verbs_keys;

int verbs_keys_open(uint32_t rails, const struct verbs_keys_ops *ops, void *arg,
		    struct verbs_keys **keys);
void verbs_keys_close(struct verbs_keys *keys);
/* Root: for the card. */
void verbs_keys_root(const struct verbs_keys *keys, uint64_t *addr, uint64_t *len,
		     uint32_t rkey[DQPLB_RAILS_MAX]);
/* -FI_ENOMEM. The key isn't there. */
int verbs_keys_insert(struct verbs_keys *keys, const struct verbs_keys_entry *entry);
/* Peers that look from now on don't find it. False: it wasn't there. */
bool verbs_keys_remove(struct verbs_keys *keys, uint8_t space, uint64_t key);

/* ---- reader -------------------------------------------------------------------------
 */

struct verbs_keys_level {
	uint64_t addr;
	uint64_t buckets;
	uint32_t rkey[DQPLB_RAILS_MAX];
};

struct verbs_keys_view {
	uint32_t rails;
	uint32_t levels;
	struct verbs_keys_level level[VERBS_KEYS_LEVELS];
};

enum verbs_keys_found {
	VERBS_KEYS_NONE, /* it isn't there */
	VERBS_KEYS_FOUND,
	VERBS_KEYS_TORN /* read again */
};

/* Bytes of the root; of a bucket in a table of so many rails (at most
 * VERBS_KEYS_BUCKET_MAX). */
size_t verbs_keys_root_size(void);
size_t verbs_keys_bucket_size(uint32_t rails);
#define VERBS_KEYS_BUCKET_MAX 1536u
#define VERBS_KEYS_ROOT_MAX   2048u

/* From bytes of a peer, not trusted. -EAGAIN: torn, read again; -EPROTO: nonsense, or
 * another number of rails than its card says. */
int verbs_keys_root_read(const void *bytes, uint32_t rails, struct verbs_keys_view *view);
/* Address of the bucket of choice 0 or 1 of a level. */
uint64_t verbs_keys_bucket_at(const struct verbs_keys_view *view, uint32_t level,
			      unsigned choice, uint8_t space, uint64_t key);
/* Looks for the key in the bytes of a bucket. */
enum verbs_keys_found verbs_keys_bucket_read(const void *bytes, uint32_t rails,
					     uint8_t space, uint64_t key,
					     struct verbs_keys_entry *entry);

#endif
