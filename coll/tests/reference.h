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

/* Whether the type has the operation: bitwise ones are of integers. */
bool ref_supported(enum weft_type type, enum weft_op op);

bool ref_vector(enum weft_coll coll);

/* A (v) form that is not done in place. */
bool ref_apart(enum weft_coll coll);

/* The longest block that a case of a (v) form can have. */
uint64_t ref_block_most(const struct ref_case *c);

#define REF_RANKS_MAX 16

/* A buffer as blocks: one, or one per rank. None: the call does not look at it. */
struct ref_blocks {
	int32_t n;
	uint64_t count[REF_RANKS_MAX], at[REF_RANKS_MAX];
	uint64_t span; /* elements */
	bool gaps;     /* between the blocks of a (v) form */
};
struct ref_blocks ref_src(const struct ref_case *c, int32_t rank, int32_t size);
struct ref_blocks ref_dst(const struct ref_case *c, int32_t rank, int32_t size);

/* Text of a case, for messages. */
void ref_case_print(const struct ref_case *c, char *text, size_t len);

/* What rank contributes, into its source; gaps stay as they are. */
void ref_fill(const struct ref_case *c, int32_t rank, int32_t size, void *buf);

/* Index of the first wrong element of the destination, or -1. Gaps are not looked at. */
int64_t ref_check(const struct ref_case *c, int32_t rank, int32_t size, const void *dst);

#endif
