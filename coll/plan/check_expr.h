/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: what a place holds, as an expression over the ranks' source
 * elements: nothing, rank r's element, a op b, or e divided. Equal expressions have equal
 * terms, so that "all ranks computed the same bits" is a comparison of numbers, exactly
 * and not by a hash's luck.
 *
 * A term is a node and a turn: the node's expression with so much added to each rank in
 * it, modulo the number of ranks. Expressions that differ by a turn only have one node,
 * so that a ring, where each rank does what its neighbour does one rank further on, has
 * as many nodes as ranks and not their square. No expression is a turn of itself, since a
 * rank goes into it once: so a term stands for one expression, and an expression has one
 * term. Where operands keep the order of ranks a turn would mix it up: all turns are 0
 * then, and each rank's element is a node of its own.
 */
#ifndef WEFT_PLAN_CHECK_EXPR_H
#define WEFT_PLAN_CHECK_EXPR_H

#include "coll/plan/check_set.h"

struct check_term {
	uint32_t node; /* 0: nothing */
	uint32_t turn;
};

/* The first operand at turn 0. */
struct check_expr {
	uint32_t a, b; /* nodes of operands; b is 0 of a quotient; both 0 of a leaf */
	uint32_t turn; /* of the second operand */
	bool scaled;
	struct check_set set; /* ranks whose element went in, each once */
};

struct check_exprs {
	struct check_expr *expr;
	size_t used, room;
	uint32_t size;
	uint32_t *slot; /* open addressing by (a, b, turn); 0: free */
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

bool check_exprs_init(struct check_exprs *e, uint32_t size, bool ordered);
void check_exprs_fini(struct check_exprs *e);

/* The element of a rank. */
static inline struct check_term check_expr_leaf(const struct check_exprs *e,
						uint32_t rank)
{
	struct check_term leaf = {.node = 1, .turn = rank};

	if (e->ordered) {
		leaf.node = rank + 1;
		leaf.turn = 0;
	}
	return leaf;
}

static inline bool check_term_same(struct check_term a, struct check_term b)
{
	return a.node == b.node && a.turn == b.turn;
}

/* *twice: the rank, of faults TWICE and ORDER. */
enum check_expr_fault check_expr_reduce(struct check_exprs *e, struct check_term a,
					struct check_term b, struct check_term *out,
					uint32_t *twice);
enum check_expr_fault check_expr_scale(struct check_exprs *e, struct check_term a,
				       struct check_term *out);

/* The smallest rank whose element did not go in; the number of ranks: all went in. */
uint32_t check_expr_missing(const struct check_exprs *e, struct check_term t);

#endif
