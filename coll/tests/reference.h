/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What collectives must do, written as plainly as possible: inputs that each rank can
 * compute for every other, and a check of every element of the result.
 */
#ifndef WEFT_TESTS_REFERENCE_H
#define WEFT_TESTS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

struct ref_case {
	enum weft_coll coll;
	const char *algorithm; /* NULL: the default */
	enum weft_type type;
	enum weft_op op;
	uint64_t count;
	int32_t root;
	bool in_place;
	uint32_t salt; /* makes inputs of different calls differ */
};

/* Whether the result is a reduction, and whether there is a root. */
bool ref_reduces(enum weft_coll coll);
bool ref_rooted(enum weft_coll coll);

/* Elements that a rank's source and destination have; 0: the call does not look at it. */
uint64_t ref_src_count(const struct ref_case *c, int32_t rank, int32_t size);
uint64_t ref_dst_count(const struct ref_case *c, int32_t rank, int32_t size);

/* Text of a case, for messages. */
void ref_case_print(const struct ref_case *c, char *text, size_t len);

/* What rank contributes: count elements, from element `first` of its source on. */
void ref_fill(const struct ref_case *c, int32_t rank, uint64_t first, uint64_t count,
	      void *buf);

/* Index of the first wrong element of the destination, or -1. */
int64_t ref_check(const struct ref_case *c, int32_t rank, int32_t size, const void *dst);

#endif
