/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: what a place holds, as an expression over the ranks' source
 * elements: nothing, rank r's element, a op b, or e divided. Equal expressions have equal
 * numbers, so that "all ranks computed the same bits" is a comparison of numbers, exactly
 * and not by a hash's luck.
 */
#ifndef WEFT_PLAN_CHECK_EXPR_H
#define WEFT_PLAN_CHECK_EXPR_H

#include "coll/plan/check_set.h"

#define CHECK_EXPR_NOTHING 0

struct check_expr {
	uint32_t a, b; /* operands; b is 0 of a quotient; both 0 of a leaf */
	bool scaled;
	struct check_set set; /* ranks whose element went in, each once */
};

struct check_exprs {
	struct check_expr *expr;
	size_t used, room;
	uint32_t *slot; /* open addressing by (a, b); 0: free */
	size_t slots;	/* a power of two */
	struct check_set_pool pool;
	bool ordered; /* the operation does not commute */
};

enum check_expr_fault {
	CHECK_EXPR_GOOD,
	CHECK_EXPR_NOMEM,
	CHECK_EXPR_TWICE,  /* a rank's element would go in twice */
	CHECK_EXPR_SCALED, /* an operand is divided already */
	CHECK_EXPR_PART,   /* divided before every rank's element went in */
	CHECK_EXPR_ORDER,  /* a rank of the second operand is below one of the first */
};

/* Leaves 1..size for ranks 0..size-1. */
bool check_exprs_init(struct check_exprs *e, uint32_t size);
void check_exprs_fini(struct check_exprs *e);

static inline uint32_t check_expr_leaf(uint32_t rank)
{
	return rank + 1;
}

/* *twice: the rank, of faults TWICE and ORDER. */
enum check_expr_fault check_expr_reduce(struct check_exprs *e, uint32_t a, uint32_t b,
					uint32_t *out, uint32_t *twice);
enum check_expr_fault check_expr_scale(struct check_exprs *e, uint32_t a, uint32_t size,
				       uint32_t *out);

#endif
