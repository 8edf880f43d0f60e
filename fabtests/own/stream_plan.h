/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a checked stream consists of: both sides derive kind, length and bytes of each
 * unit from its number and the seed, so nothing about it has to be said on the way.
 */
#ifndef WEFT_FABTESTS_OWN_STREAM_PLAN_H
#define WEFT_FABTESTS_OWN_STREAM_PLAN_H

#include "fabtests/own/util.h"

enum stream_kind {
	STREAM_MESSAGE,
	STREAM_NOTICE, /* a write with data */
	STREAM_WRITE,  /* read back */
	STREAM_READ,   /* of the library */
	STREAM_KINDS
};

#define STREAM_MOST    (((size_t)1 << 20) + 3) /* bytes of a unit */
#define STREAM_LIBRARY ((size_t)2 << 20)       /* bytes that are read only */

struct stream_unit {
	enum stream_kind kind;
	size_t len;
	size_t from; /* STREAM_READ: offset in the library, a multiple of 8 */
	uint64_t seed;
};

struct stream_plan {
	uint64_t seed, bytes;
	uint32_t count;
	uint32_t kinds[STREAM_KINDS];
};

/* Units until they have that many bytes. */
struct stream_plan stream_plan_make(uint64_t seed, uint64_t bytes);
struct stream_unit stream_unit_of(const struct stream_plan *p, uint32_t number);

/* first: of the words of 8 bytes, by which bytes that moved are told. */
void stream_fill(void *mem, size_t len, uint64_t seed, size_t first);
/* false and a diagnostic line naming the first byte that differs. */
bool stream_check(struct side *s, const void *mem, size_t len, uint64_t seed,
		  size_t first, const char *what);

#endif
