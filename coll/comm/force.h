/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WEFT_ALGO: the algorithms that the environment names in place of the library's choice,
 * "allreduce=ring:512k,allgather=ffbruck". What follows the colon is the length into
 * which an algorithm that works in chunks cuts.
 */
#ifndef WEFT_COMM_FORCE_H
#define WEFT_COMM_FORCE_H

#include "coll/algo/algo.h"
#include "weft/weft.h"

struct force {
	const struct algo *algo; /* NULL: the library chooses */
	uint64_t chunk_bytes;	 /* 0: the algorithm's own */
	bool told;		 /* that it cannot do what it is asked for */
};

/* text may be NULL or empty. ARG with a sentence that says what there is. */
enum weft_result force_read(const char *text, struct force table[WEFT_COLL_COUNT]);

#endif
