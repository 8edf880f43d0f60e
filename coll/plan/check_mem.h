/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: the contents of a buffer, as cells that hold one expression each.
 * Cells are cut where ranges and contents need it and never joined again: they become the
 * common refinement of all that is done to the buffer, and stay that.
 */
#ifndef WEFT_PLAN_CHECK_MEM_H
#define WEFT_PLAN_CHECK_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/plan/check_expr.h"

/* A cell ends where the next begins; one more past the last holds the buffer's end. */
struct check_cell {
	uint64_t at;
	int64_t shift; /* source element that element x is of: x + shift */
	struct check_term expr;
};

struct check_mem {
	struct check_cell *cell;
	size_t cells;
	size_t room;
	double per_element; /* cells per element: where to look first */
};

/* Consecutive elements that hold one expression of consecutive source elements. */
struct check_run {
	uint64_t length;
	uint64_t pos; /* source element of the first */
	struct check_term expr;
};

struct check_runs {
	struct check_run *run;
	size_t used;
	size_t room;
	uint64_t length;
};

/* A buffer of so many elements that hold nothing. false: out of memory. */
bool check_mem_init(struct check_mem *m, uint64_t length);
void check_mem_fini(struct check_mem *m);

/* Cuts a buffer that holds nothing yet at `count` elements that ascend, all at once: one
 * by one each moves the cells behind it. false: out of memory. */
bool check_mem_cut_new(struct check_mem *m, const uint64_t *at, size_t count);

/* Begins a new cell at an element (0 <= at <= length). */
bool check_mem_cut(struct check_mem *m, uint64_t at);

/* Appends what [offset, offset + length) holds; the caller keeps it within the buffer. */
bool check_mem_read(const struct check_mem *m, uint64_t offset, uint64_t length,
		    struct check_runs *out);

/* Where a writer is in a list of runs. */
struct check_cursor {
	size_t run;
	uint64_t done; /* elements of it */
};

/* Writes the next `length` elements of runs, which has them, at offset. */
bool check_mem_write(struct check_mem *m, uint64_t offset, uint64_t length,
		     const struct check_runs *runs, struct check_cursor *cursor);

/* Appends a run, joined to the last where it continues it. */
bool check_runs_add(struct check_runs *runs, struct check_run run);

static inline void check_runs_clear(struct check_runs *runs)
{
	runs->used = 0;
	runs->length = 0;
}

#endif
