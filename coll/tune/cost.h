/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What algorithms cost by a model of the network: a message takes alpha, each of its
 * bytes beta, each byte that is added up gamma. Whole numbers throughout, so that ranks
 * with the same terms choose alike whatever their processors do with fractions.
 */
#ifndef WEFT_TUNE_COST_H
#define WEFT_TUNE_COST_H

#include "coll/algo/algo.h"

struct cost_terms {
	uint64_t alpha_ps; /* picoseconds; 0: there are no terms */
	uint64_t beta_fs;  /* femtoseconds a byte */
	uint64_t gamma_fs; /* the same */
};

#define COST_ALPHA_MOST UINT64_C(1000000000000) /* a second */
#define COST_BYTE_MOST	UINT64_C(1000000000)	/* a microsecond */
#define COST_NONE	UINT64_MAX		/* the model says nothing of it */

/* NULL, or what is wrong. */
const char *cost_terms_check(const struct cost_terms *terms);

/* Picoseconds that the call takes; COST_NONE also for what the algorithm cannot do. */
uint64_t cost_of(const struct cost_terms *terms, const struct algo *algo,
		 const struct plan_call *call);

/* The cheapest; of some that are as cheap the first of its list. NULL: no terms, or the
 * model knows none that can do the call. next, unless it is NULL, is the second. */
const struct algo *cost_choose(const struct cost_terms *terms, const char *coll,
			       const struct plan_call *call, const struct algo **next);

/* Why that is, in words: the two cheapest, and the terms. */
void cost_say(const struct cost_terms *terms, const char *coll,
	      const struct plan_call *call, char *text, size_t len);

#endif
