/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of the (v) forms: from the caller's arrays to tables of blocks, checked. The
 * caller's arrays are read once, here.
 */
#ifndef WEFT_API_VECTOR_H
#define WEFT_API_VECTOR_H

#include "coll/comm/comm.h"

/* Blocks of one buffer: block i is at[2 i] to at[2 i + 1]. */
struct vector_table {
	uint64_t *at;	/* 2 * size + 1 offsets */
	uint64_t total; /* elements of all blocks together */
};

/* Elements that blocks by these counts span; UINT64_MAX where they make no sense, which
 * vector_read() explains. */
uint64_t vector_span(int32_t size, const struct weft_counts *counts);

/* name: "recv_counts". limit: elements that the buffer has. ARG, UNSUPPORTED with a
 * sentence that names the bad one. */
enum weft_result vector_read(int32_t size, const struct weft_counts *counts,
			     const char *name, uint64_t limit,
			     struct vector_table *table);

#endif
