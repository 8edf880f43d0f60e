/* SPDX-License-Identifier: BSD-2-Clause */
/* What a coordinator keeps, as bytes: the same wherever they are kept. */
#ifndef WEFT_FT_SNAPSHOT_H
#define WEFT_FT_SNAPSHOT_H

#include "coll/ft/coord.h"

/* Allocated; NULL: no memory. job has FT_JOB_LEN bytes. */
uint8_t *ft_snapshot_put(const struct ft_durable *d, const uint8_t *job, size_t *len);

/* Reads one that the bytes begin with; *used is its length. NULL, or what is wrong with
 * it, as the end of a sentence. The roster of d is filled as ft_roster_copy() does. */
const char *ft_snapshot_get(const void *buf, size_t len, const uint8_t *job,
			    struct ft_durable *d, size_t *used);

/* Finds what was cut short or garbled, not who means harm. */
uint64_t ft_snapshot_check(const void *buf, size_t len, uint64_t salt);

#endif
