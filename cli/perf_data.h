/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data for checks: what each rank puts in, and what must come out, as functions of rank,
 * position and round. Values are small integers that every type holds exactly, chosen so
 * that the result is exact in any order of reduction: it is compared bit by bit.
 *
 * Values repeat after DATA_PERIOD elements, a prime, so that long buffers are filled and
 * compared at the speed of memory, while no block of a plan begins at the same value
 * twice.
 */
#ifndef WEFT_CLI_PERF_DATA_H
#define WEFT_CLI_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

enum {
	DATA_PERIOD = 4093,
	DATA_VALUES = 257, /* 0 to 256: exact in bf16 */
	DATA_POISON = 0xa5,
	DATA_SAMPLES =
		16, /* positions that are looked at where a full check would cost */
};

/* What the elements of a buffer mean. */
enum data_kind {
	DATA_OF_RANK, /* of one rank, to be carried elsewhere */
	DATA_OPERAND, /* of one rank, to be reduced */
	DATA_RESULT,  /* of the reduction over all ranks */
};

struct data {
	enum weft_type type;
	enum weft_op op;
	int32_t ranks;
	size_t elem; /* bytes */
	uint8_t code[DATA_VALUES][8];
	uint8_t block[DATA_PERIOD *
		      8]; /* one period of what is being filled or compared */
};

void data_init(struct data *d, enum weft_type type, enum weft_op op, int32_t ranks);

/* Where to look: all of count elements, or DATA_SAMPLES of them. */
struct data_view {
	void *buf;
	uint64_t count;
	bool sampled;
};

void data_fill(struct data *d, const struct data_view *v, enum data_kind kind,
	       int32_t rank, uint64_t round);
void data_poison(struct data *d, const struct data_view *v);

/* True if all is as it must be; else *at is the first element that is not. */
bool data_check(struct data *d, const struct data_view *v, enum data_kind kind,
		int32_t rank, uint64_t round, uint64_t *at);

/* "0x3f800000, must be 0x40000000" of an element that data_check() found. */
void data_explain(struct data *d, const struct data_view *v, enum data_kind kind,
		  int32_t rank, uint64_t round, uint64_t at, char *text, size_t len);

#endif
