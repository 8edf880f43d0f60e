/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a key table lies in its memory; shared by the owner (keytab.c) and readers
 * (keyview.c), nobody else.
 *
 *   header (one page) | direct entries (capacity) | hashed entries (2 * capacity)
 *
 * A key of the table's choosing carries its direct entry's index and a generation, so
 * that it is found with one probe. A caller's key is in one of two buckets of eight
 * hashed entries: at a load of one half two choices practically never run full, and a
 * lookup ends after sixteen entries, whatever the memory holds.
 *
 * Each entry is guarded by a count that is odd while the owner writes. A reader needs no
 * second try: an entry changes only when its key is inserted (which hasn't been returned
 * to anybody yet), gets its access, or is removed, and then "no such key" is a true
 * answer.
 */
#ifndef WEFT_MEM_KEYTAB_FORMAT_H
#define WEFT_MEM_KEYTAB_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "prov/mem/keytab.h"

#define KEYTAB_MAGIC	    UINT64_C(0x3062617479656b77) /* "wkeytab0" */
#define KEYTAB_VERSION	    4
#define KEYTAB_HEADER_SIZE  4096
#define KEYTAB_CAPACITY_MIN 64u
#define KEYTAB_CAPACITY_MAX (1u << 24)
#define KEYTAB_BUCKET	    8u

/* Key of the table's choosing: mark | generation (31 bits) | direct index (32 bits). */
#define KEYTAB_KEY_MARK (UINT64_C(1) << 63)

struct keytab_header {
	uint64_t magic;
	uint32_t version;
	uint32_t entry_size;
	uint32_t capacity;	  /* power of two */
	_Atomic(uint32_t) events; /* MEM_EVENTS_*; bits are set and never cleared */
};

enum keytab_entry_flags {
	KEYTAB_USED = 1,
	KEYTAB_VIRT_ADDR = 2,
	KEYTAB_DEVICE = 4,
};

/* Fields are atomics since reader and owner do meet; single accesses are relaxed and seq
 * orders them. */
struct keytab_entry {
	_Atomic(uint32_t) seq;
	_Atomic(uint32_t) flags;
	_Atomic(uint64_t) key;
	_Atomic(uint64_t) access;
	_Atomic(uint32_t) iov_count;
	_Atomic(uint32_t) incarnation;
	struct {
		_Atomic(uint64_t) addr;
		_Atomic(uint64_t) len;
	} iov[MEM_REGION_IOV];
	_Atomic(uint64_t) share[MEM_REGION_IOV];
};

static_assert(sizeof(struct keytab_entry) == 128, "entries are two cache lines");
static_assert(sizeof(struct keytab_header) <= KEYTAB_HEADER_SIZE, "header fits its page");

static inline uint64_t keytab_map_size(uint32_t capacity)
{
	return KEYTAB_HEADER_SIZE + 3 * (uint64_t)capacity * sizeof(struct keytab_entry);
}

static inline uint64_t keytab_mix(uint64_t key, uint64_t salt)
{
	uint64_t h = key + salt;

	h = (h ^ (h >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 32)) * UINT64_C(0x94d049bb133111eb);
	return h ^ (h >> 30);
}

/* Index, from the first direct entry, of the first hashed entry of bucket `choice` (0,
 * 1). */
static inline uint32_t keytab_bucket(uint32_t capacity, uint64_t key, unsigned choice)
{
	uint64_t h = keytab_mix(key, choice ? UINT64_C(0x8f6d0c5a13b7e249)
					    : UINT64_C(0x2b1e94c7f0a35d68));
	uint32_t buckets = 2 * capacity / KEYTAB_BUCKET;

	return capacity + (uint32_t)(h & (buckets - 1)) * KEYTAB_BUCKET;
}

#endif
