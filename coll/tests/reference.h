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

/* Text of a case, for messages. */
void ref_case_print(const struct ref_case *c, char *text, size_t len);

/* What rank contributes. For broadcast the root's input; others get something else. */
void ref_fill(const struct ref_case *c, int32_t rank, void *buf);

/* Index of the first wrong element of the destination, or -1. */
int64_t ref_check(const struct ref_case *c, int32_t rank, int32_t size, const void *dst);

#endif
