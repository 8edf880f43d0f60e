/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: partitions with their offsets worked out, one copy for all ranks
 * that use the same, and ranges that refer to them. Equal partitions are the same
 * pointer, so that most ranges compare without arithmetic.
 */
#ifndef WEFT_PLAN_CHECK_SPACE_H
#define WEFT_PLAN_CHECK_SPACE_H

#include "coll/plan/plan.h"

struct check_space {
	struct check_space *next;
	uint32_t parts;
	uint64_t *begin; /* parts + 1 offsets; NULL in a folded space */
	/* Folded only: */
	const struct check_space *of;
	uint32_t slots;
	uint64_t base, slot_len;
};

/* A range of one instance. */
struct check_range {
	const struct check_space *space; /* NULL: an empty range */
	uint8_t buf;
	uint32_t first;
	uint32_t block;
	uint32_t stride;
	uint32_t count;
};

struct check_pieces {
	struct check_range range;
	uint32_t run;
	uint32_t done;
};

/* The space of partition `part`; found in *list or added to it. NULL: out of memory. The
 * partition is valid (plan_validate) and not late. */
const struct check_space *check_space_get(struct check_space **list,
					  const struct plan *plan, uint8_t part);

void check_space_free(struct check_space *list);

static inline uint64_t check_space_begin(const struct check_space *s, uint32_t i)
{
	return s->begin ? s->begin[i] : s->base + (i % s->slots) * s->slot_len;
}

static inline uint64_t check_space_length(const struct check_space *s, uint32_t i)
{
	const uint64_t *begin = s->begin ? s->begin : s->of->begin;

	return begin[i + 1] - begin[i];
}

/* Whether the range is one part, as most are: then that is all its pieces. */
static inline bool check_range_single(const struct check_range *r)
{
	return r->space && r->block == 1 && r->count == 1 && r->first < r->space->parts;
}

static inline void check_pieces_begin(struct check_pieces *it,
				      const struct check_range *range)
{
	it->range = *range;
	it->run = 0;
	it->done = 0;
}

/* Contiguous pieces, in order, not merged; false at the end. length > 0. */
bool check_piece_next(struct check_pieces *it, uint64_t *offset, uint64_t *length);

/* Whether two ranges are the same elements in the same order, where a's buffer begins at
 * a_at and b's at b_at of one memory. */
bool check_range_coincides(const struct check_range *a, uint64_t a_at,
			   const struct check_range *b, uint64_t b_at);

/* Whether two ranges are the same elements of the same buffer in the same order. */
bool check_range_same(const struct check_range *a, const struct check_range *b);

#endif
