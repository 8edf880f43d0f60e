/* SPDX-License-Identifier: BSD-2-Clause */
/* See cost.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coll/tune/cost.h"

/* Products of what a call says and of terms fit: 64 + 30 + 32 bits at most. */
__extension__ typedef unsigned __int128 wide;

/* What a root pays for one more message that it does not wait for, of alpha. */
#define ONE_MORE 4

/* Pieces that algorithms with a pipeline cut a vector into, about. */
#define PIECE 65536

#define LANES 8 /* peers at a time of a direct all-to-all */

/* A call, as the formulas have it; all times in femtoseconds. */
struct cost {
	wide n;	       /* ranks */
	wide m;	       /* bytes, of the vector or of a block as the call's count says */
	wide a, b, g;  /* of a message, a byte, a byte that is added up */
	wide rounds;   /* log2 n, rounded up */
	wide quarters; /* log4 n, rounded up */
	wide odd;      /* 1 where n is no power of two, else 0 */
	wide pieces;   /* C */
	bool fetches;
};

static wide log_up(wide n, wide base)
{
	wide power = 1, log = 0;

	while (power < n) {
		power *= base;
		log++;
	}
	return log;
}

typedef wide cost_fn(const struct cost *c);

static wide rounds_cost(const struct cost *c)
{
	return c->rounds * c->a;
}

static wide pairs_cost(const struct cost *c)
{
	return (c->rounds + 2 * c->odd) * c->a;
}

static wide report_cost(const struct cost *c)
{
	return 2 * c->a + (c->n - 1) * c->a / ONE_MORE;
}

static wide tree_cost(const struct cost *c)
{
	return c->rounds * (c->a + c->m * c->b);
}

static wide broad_tree_cost(const struct cost *c)
{
	return c->quarters * (c->a + 3 * c->a / ONE_MORE + 3 * c->m * c->b);
}

static wide flat_cost(const struct cost *c)
{
	const wide bytes = c->m * c->b;

	return (c->n - 1) * c->a / ONE_MORE + c->a +
	       (c->fetches ? bytes : (c->n - 1) * bytes);
}

static wide chain_cost(const struct cost *c)
{
	return (c->pieces + c->n) * (c->a + c->m * c->b / c->pieces);
}

static wide two_trees_cost(const struct cost *c)
{
	return 2 * (c->rounds + c->pieces) * (c->a + c->m * c->b / (2 * c->pieces));
}

static wide gather_ring_cost(const struct cost *c)
{
	return (c->n - 1) * (c->a + c->m * c->b);
}

static wide gather_rounds_cost(const struct cost *c)
{
	return c->rounds * c->a + (c->n - 1) * c->m * c->b;
}

static wide sum_ring_cost(const struct cost *c)
{
	return 2 * (c->n - 1) * (c->a + c->m * c->b / c->n) +
	       (c->n - 1) * c->m * c->g / c->n;
}

static wide sum_rounds_cost(const struct cost *c)
{
	const wide step = c->a + c->m * (c->b + c->g);

	return c->rounds * step + c->odd * (step + c->a + c->m * c->b);
}

static wide sum_halves_cost(const struct cost *c)
{
	const wide part = (c->n - 1) * c->m / c->n;

	return 2 * c->rounds * c->a + part * (2 * c->b + c->g) +
	       c->odd * (2 * c->a + c->m * (2 * c->b + c->g));
}

static wide sum_trees_cost(const struct cost *c)
{
	return (4 * c->rounds + c->pieces) *
	       (c->a + c->m * (2 * c->b + c->g) / (2 * c->pieces));
}

static wide scatter_ring_cost(const struct cost *c)
{
	return (c->n - 1) * (c->a + c->m * (c->b + c->g));
}

static wide scatter_halves_cost(const struct cost *c)
{
	const wide bytes = (c->n - 1) * c->m * (c->b + c->g);

	return c->rounds * c->a + bytes +
	       c->odd * (2 * c->a + c->n * c->m * (c->b + c->g));
}

static wide direct_cost(const struct cost *c)
{
	const wide starts = (c->n - 1) * c->a / LANES;

	return (starts > c->a ? starts : c->a) + (c->n - 1) * c->m * c->b;
}

/* Each block is carried and copied log2 n / 2 times. */
static wide bruck_cost(const struct cost *c)
{
	return c->rounds * (c->a + c->n * c->m * (c->b + c->g) / 2);
}

static wide sum_tree_cost(const struct cost *c)
{
	return c->rounds * (c->a + c->m * (c->b + c->g));
}

static wide sum_broad_cost(const struct cost *c)
{
	return c->quarters * (c->a + 3 * c->m * (c->b + c->g));
}

static wide sum_chain_cost(const struct cost *c)
{
	return (c->pieces + c->n) * (c->a + c->m * (c->b + c->g) / c->pieces);
}

static wide sum_two_cost(const struct cost *c)
{
	return 2 * (c->rounds + c->pieces) *
	       (c->a + c->m * (c->b + c->g) / (2 * c->pieces));
}

static wide root_direct_cost(const struct cost *c)
{
	return c->a + (c->n - 1) * (c->a / ONE_MORE + c->m * c->b);
}

/* What is not here (hierarchical: its two levels have terms of their own; lines: they are
 * no messages) is not chosen by the model. */
static const struct {
	const char *coll, *name;
	cost_fn *cost;
} cost_table[] = {
	{"barrier", "dissemination", rounds_cost},
	{"barrier", "flat", report_cost},
	{"barrier", "recursive-doubling", pairs_cost},
	{"broadcast", "binomial", tree_cost},
	{"broadcast", "flat", flat_cost},
	{"broadcast", "chain", chain_cost},
	{"broadcast", "knomial", broad_tree_cost},
	{"broadcast", "double-tree", two_trees_cost},
	{"allgather", "ring", gather_ring_cost},
	{"allgather", "recursive-doubling", gather_rounds_cost},
	{"allgather", "ffbruck", gather_rounds_cost},
	{"allgather", "streamed-doubling", gather_rounds_cost},
	{"allreduce", "ring", sum_ring_cost},
	{"allreduce", "recursive-doubling", sum_rounds_cost},
	{"allreduce", "halving-doubling", sum_halves_cost},
	{"allreduce", "double-tree", sum_trees_cost},
	{"reduce_scatter", "ring", scatter_ring_cost},
	{"reduce_scatter", "recursive-halving", scatter_halves_cost},
	{"alltoall", "pairwise", gather_ring_cost},
	{"alltoall", "direct", direct_cost},
	{"alltoall", "bruck", bruck_cost},
	{"reduce", "binomial", sum_tree_cost},
	{"reduce", "chain", sum_chain_cost},
	{"reduce", "knomial", sum_broad_cost},
	{"reduce", "double-tree", sum_two_cost},
	{"gather", "binomial", gather_rounds_cost},
	{"gather", "direct", root_direct_cost},
	{"scatter", "binomial", gather_rounds_cost},
	{"scatter", "direct", root_direct_cost},
};

const char *cost_terms_check(const struct cost_terms *terms)
{
	if (terms->alpha_ps < 1 || terms->alpha_ps > COST_ALPHA_MOST)
		return "alpha_ps must be 1 to 1000000000000";
	if (terms->beta_fs > COST_BYTE_MOST)
		return "beta_fs must be at most 1000000000";
	if (terms->gamma_fs > COST_BYTE_MOST)
		return "gamma_fs must be at most 1000000000";
	return NULL;
}

static cost_fn *cost_fn_of(const struct algo *algo)
{
	for (size_t i = 0; i < sizeof(cost_table) / sizeof(cost_table[0]); i++) {
		if (!strcmp(cost_table[i].coll, algo->coll) &&
		    !strcmp(cost_table[i].name, algo->name))
			return cost_table[i].cost;
	}
	return NULL;
}

uint64_t cost_of(const struct cost_terms *terms, const struct algo *algo,
		 const struct plan_call *call)
{
	cost_fn *fn = cost_fn_of(algo);
	struct cost c = {
		.n = call->size > 1 ? (wide)call->size : 1,
		.m = (wide)call->count * call->elem_size,
		.a = (wide)terms->alpha_ps * 1000,
		.b = terms->beta_fs,
		.g = terms->gamma_fs,
		.fetches = call->fetches,
	};
	wide ps;

	if (!fn || !algo->supports(call))
		return COST_NONE;
	if (c.m > UINT64_MAX >> 16)
		c.m = UINT64_MAX >> 16; /* more than any memory */
	c.rounds = log_up(c.n, 2);
	c.quarters = log_up(c.n, 4);
	c.odd = (c.n & (c.n - 1)) != 0;
	c.pieces = 1 + c.m / PIECE;
	ps = fn(&c) / 1000;
	return ps < COST_NONE ? (uint64_t)ps : COST_NONE - 1;
}

const struct algo *cost_choose(const struct cost_terms *terms, const char *coll,
			       const struct plan_call *call, const struct algo **next)
{
	uint64_t least = COST_NONE, second = COST_NONE;
	const struct algo *best = NULL, *other = NULL;

	for (size_t i = 0; i < algo_count && terms->alpha_ps; i++) {
		const struct algo *algo = &algo_table[i];
		uint64_t cost;

		if (strcmp(algo->coll, coll) != 0)
			continue;
		cost = cost_of(terms, algo, call);
		if (cost < least) {
			other = best;
			second = least;
			best = algo;
			least = cost;
		} else if (cost < second) {
			other = algo;
			second = cost;
		}
	}
	if (next)
		*next = other;
	return best;
}

void cost_say(const struct cost_terms *terms, const char *coll,
	      const struct plan_call *call, char *text, size_t len)
{
	const struct algo *next, *best = cost_choose(terms, coll, call, &next);
	int at;

	if (!best) {
		snprintf(text, len, "the cost model knows none for it");
		return;
	}
	at = snprintf(text, len, "cost model: %.2f us",
		      (double)cost_of(terms, best, call) * 1e-6);
	if (next && at > 0 && (size_t)at < len)
		at += snprintf(text + at, len - (size_t)at, ", %s %.2f us", next->name,
			       (double)cost_of(terms, next, call) * 1e-6);
	if (at > 0 && (size_t)at < len)
		snprintf(text + at, len - (size_t)at,
			 " (alpha %.3f us, beta %.3f ns/KiB, gamma %.3f ns/KiB)",
			 (double)terms->alpha_ps * 1e-6, (double)terms->beta_fs * 1024e-6,
			 (double)terms->gamma_fs * 1024e-6);
}
