/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The result of an all-gather in a file of memory that the ranks of one host share: its
 * bytes are those of the message RESULT. One of them makes it, the others find it by its
 * process and descriptor, as long as that one keeps it; nothing is left behind whoever
 * dies. What is found is believed only if nobody can change it any more, if it is as long
 * as it must be, and if it begins with the header that the job's RESULT would have.
 */
#ifndef WEFT_BOOT_BOOT_TABLE_H
#define WEFT_BOOT_BOOT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/boot/boot_side.h"

/* Results of fewer bytes go to each rank: that takes less than sharing them. Among many
 * ranks it is rank 0 that sharing spares. */
#define BOOT_TABLE_MIN	    ((uint64_t)64 << 10)
#define BOOT_TABLE_MIN_MANY ((uint64_t)4 << 10)
#define BOOT_TABLE_MANY	    64 /* ranks; more are many */

static inline bool boot_table_pays(int32_t size, uint64_t len)
{
	return (uint64_t)size * len >=
	       (size > BOOT_TABLE_MANY ? BOOT_TABLE_MIN_MANY : BOOT_TABLE_MIN);
}

/* Equal at ranks that can find each other's descriptors; 0: not known. */
uint64_t boot_table_host(int32_t rank);

/* Where a table is, in a message. */
uint64_t boot_table_place(int fd);

/* The file with the payload of size * len bytes; -1: there can be none. */
int boot_table_make(const uint8_t *job, const struct boot_gather *g, int32_t size,
		    const void *payload);

/* Into g->view, or g->out. False: it isn't there, or isn't what it must be. */
bool boot_table_take(uint64_t place, const uint8_t *job, const struct boot_gather *g,
		     int32_t size);

#endif
