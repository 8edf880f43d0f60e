/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reference interpreter: runs the plans of all ranks on real arrays in one process, in
 * random order, the way the rules of plan.h say it and in no cleverer way. Elements are
 * 64-bit integers. Each rank's buffers have guard elements behind them.
 */
#ifndef WEFT_ALGO_TESTS_INTERP_H
#define WEFT_ALGO_TESTS_INTERP_H

#include "coll/plan/plan.h"

struct interp_rank {
	const struct plan *plan;
	uint64_t *buf[3];    /* by enum plan_buf */
	uint64_t buf_len[3]; /* elements, without guards */
	const struct plan_binding *bind;
	bool ordered; /* REDUCE is interp_compose() */
};

/* Associative, and not commutative: halves a and b as the function x -> a x + b. */
uint64_t interp_compose(uint64_t f, uint64_t g);

/* Runs until all are finished. false and a sentence when a rule is broken or nothing can
 * go on. seed is advanced. REDUCE adds; PLAN_SCALE divides. */
bool interp_run(struct interp_rank *ranks, int32_t size, uint64_t *seed, char *why,
		size_t why_len);

/* xorshift64*, never 0 for a seed that is not 0. */
uint64_t interp_random(uint64_t *seed);

#endif
