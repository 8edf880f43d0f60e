/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terms of the checker, against the expressions that they stand for, written out: two are
 * the same exactly when the expressions are, turned or not; and sets of ranks, turned,
 * against flags. WEFT_TEST_SEED=n repeats a run.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/plan/check_expr.h"
#include "util/tap.h"

#define SIZE_MAX_RANKS 24
#define TERMS	       200
#define TEXT	       400

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

/* ---- sets ---------------------------------------------------------------------------
 */

struct flags {
	bool in[64];
};

static bool set_draw(struct check_set_pool *pool, uint32_t size, uint32_t *seed,
		     struct check_set *set, struct flags *f)
{
	const uint32_t ranks = 1 + draw(seed, size);
	uint32_t first = draw(seed, size), twice;

	*f = (struct flags){.in = {false}};
	f->in[first] = true;
	if (!check_set_single(pool, first, set))
		return false;
	for (uint32_t i = 1; i < ranks; i++) {
		/* Neighbours now and then, so that there are long spans, too. */
		const uint32_t rank =
			draw(seed, 2) ? draw(seed, size) : (first + i) % size;
		struct check_set one;

		if (!check_set_single(pool, rank, &one) ||
		    !check_set_union(pool, *set, one, set, &twice))
			return false;
		f->in[rank] = true;
	}
	return true;
}

static bool set_is(const struct check_set_pool *pool, struct check_set s,
		   const struct flags *f, uint32_t size)
{
	uint32_t at = 0, count = 0;

	for (uint32_t i = 0; i < s.count; i++) {
		const struct check_set_span span = pool->span[s.at + i];

		/* Sorted, and joined where they meet. */
		if (span.lo >= span.hi || (i && span.lo <= at))
			return false;
		for (; at < span.lo; at++) {
			if (f->in[at])
				return false;
		}
		for (; at < span.hi; at++, count++) {
			if (!f->in[at])
				return false;
		}
	}
	for (; at < size; at++) {
		if (f->in[at])
			return false;
	}
	return count == s.size;
}

static bool turned_once(uint32_t *seed)
{
	const uint32_t size = 1 + draw(seed, 60), turn = draw(seed, size);
	struct check_set_pool pool = {.span = NULL};
	struct check_set a, b, c;
	struct flags x, y, both = {.in = {false}};
	bool common = false, good;
	uint32_t twice;

	if (!set_draw(&pool, size, seed, &a, &x) ||
	    !set_draw(&pool, size, seed, &b, &y) ||
	    !check_set_union_turned(&pool, a, b, turn, size, &c, &twice))
		tap_bail("out of memory");
	for (uint32_t i = 0; i < size; i++) {
		const uint32_t to = (i + turn) % size;

		both.in[i] |= x.in[i];
		both.in[to] |= y.in[i];
		common |= x.in[to] && y.in[i];
	}
	good = set_is(&pool, c, &both, size) && common == (twice != UINT32_MAX);
	/* The rank that is told is in both. */
	if (common && good)
		good = x.in[twice] && y.in[(twice + size - turn) % size];
	check_set_pool_fini(&pool);
	return good;
}

/* ---- terms --------------------------------------------------------------------------
 */

struct written {
	struct check_term term;
	uint64_t ranks; /* a bit each */
	char text[TEXT];
	char turned[TEXT]; /* the same, each rank one further */
};

static void leaf_write(const struct check_exprs *e, struct written *w, uint32_t rank)
{
	w->term = check_expr_leaf(e, rank);
	w->ranks = UINT64_C(1) << rank;
	snprintf(w->text, TEXT, "%u", rank);
	snprintf(w->turned, TEXT, "%u", (rank + 1) % e->size);
}

/* The longest are of SIZE_MAX_RANKS ranks: brackets, signs and numbers of 2 digits. */
_Static_assert(TEXT > SIZE_MAX_RANKS * 6 + 8, "all texts fit");

static void join_write(struct written *w, const struct written *a,
		       const struct written *b)
{
	char text[2 * TEXT + 4];

	w->ranks = a->ranks | b->ranks;
	snprintf(text, sizeof(text), "(%s+%s)", a->text, b->text);
	memcpy(w->text, text, TEXT);
	snprintf(text, sizeof(text), "(%s+%s)", a->turned, b->turned);
	memcpy(w->turned, text, TEXT);
}

static bool missing_is(const struct check_exprs *e, const struct written *w)
{
	uint32_t rank = 0;

	while (rank < e->size && w->ranks >> rank & 1)
		rank++;
	return check_expr_missing(e, w->term) == rank;
}

/* Every two of them. */
static bool terms_compare(const struct check_exprs *e, const struct written *w,
			  uint32_t used)
{
	for (uint32_t i = 0; i < used; i++) {
		if (!missing_is(e, &w[i]))
			return false;
		for (uint32_t k = 0; k < used; k++) {
			const struct check_term next = {.node = w[i].term.node,
							.turn = (w[i].term.turn + 1) %
								e->size};

			if (check_term_same(w[i].term, w[k].term) !=
				    (strcmp(w[i].text, w[k].text) == 0) ||
			    check_term_same(next, w[k].term) !=
				    (strcmp(w[i].turned, w[k].text) == 0))
				return false;
		}
	}
	return true;
}

/* Expressions drawn from those before; few ranks, so that many come twice. */
static bool terms_once(uint32_t *seed)
{
	const uint32_t size = 2 + draw(seed, draw(seed, 2) ? 4 : SIZE_MAX_RANKS - 1);
	struct written *w = calloc(TERMS, sizeof(*w));
	struct check_exprs e;
	uint32_t used = 0;
	bool good = true;

	if (!w || !check_exprs_init(&e, size, false))
		tap_bail("out of memory");
	for (; used < size; used++)
		leaf_write(&e, &w[used], used);
	for (int tries = 0; good && used < TERMS && tries < 2000; tries++) {
		const struct written *a = &w[draw(seed, used)], *b = &w[draw(seed, used)];
		uint32_t twice = 0;
		const enum check_expr_fault fault =
			check_expr_reduce(&e, a->term, b->term, &w[used].term, &twice);

		if (a->ranks & b->ranks) {
			good = fault == CHECK_EXPR_TWICE &&
			       (a->ranks & b->ranks) >> twice & 1;
			continue;
		}
		good = fault == CHECK_EXPR_GOOD;
		join_write(&w[used], a, b);
		used++;
	}
	good = good && terms_compare(&e, w, used);
	check_exprs_fini(&e);
	free(w);
	return good;
}

static void ring_test(void)
{
	enum { RANKS = 500 };
	struct check_exprs e;
	bool good = check_exprs_init(&e, RANKS, false);

	for (uint32_t first = 0; first < RANKS && good; first++) {
		struct check_term sum = check_expr_leaf(&e, first), mean;
		uint32_t twice;

		for (uint32_t i = 1; i < RANKS && good; i++) {
			good = check_expr_scale(&e, sum, &mean) == CHECK_EXPR_PART &&
			       check_expr_reduce(&e, sum,
						 check_expr_leaf(&e, (first + i) % RANKS),
						 &sum, &twice) == CHECK_EXPR_GOOD;
		}
		good = good && check_expr_scale(&e, sum, &mean) == CHECK_EXPR_GOOD &&
		       mean.turn == first &&
		       check_expr_scale(&e, mean, &mean) == CHECK_EXPR_SCALED;
	}
	tap_ok(good, "each rank's sums round a ring");
	/* Nothing, a leaf, a sum for each further rank, a quotient. */
	tap_is_int((long long)e.used, RANKS + 2, "are turns of one rank's");
	check_exprs_fini(&e);
}

static void ordered_test(void)
{
	struct check_exprs e;
	struct check_term out, a, b;
	uint32_t twice = 0;

	if (!check_exprs_init(&e, 4, true))
		tap_bail("out of memory");
	a = check_expr_leaf(&e, 2);
	b = check_expr_leaf(&e, 3);
	tap_ok(check_expr_reduce(&e, a, b, &out, &twice) == CHECK_EXPR_GOOD,
	       "ranks in their order");
	a = check_expr_leaf(&e, 3);
	b = check_expr_leaf(&e, 0);
	tap_ok(check_expr_reduce(&e, a, b, &out, &twice) == CHECK_EXPR_ORDER &&
		       twice == 0,
	       "the same turned by one is out of order");
	check_exprs_fini(&e);
}

int main(void)
{
	const char *text = getenv("WEFT_TEST_SEED");
	uint32_t seed = text ? (uint32_t)strtoul(text, NULL, 10) : (uint32_t)time(NULL);
	bool good = true;

	tap_diag("seed %u", seed);
	for (int i = 0; i < 2000 && good; i++)
		good = turned_once(&seed);
	tap_ok(good, "sets, turned, are those of flags");
	good = true;
	for (int i = 0; i < 100 && good; i++)
		good = terms_once(&seed);
	tap_ok(good, "terms are the same exactly where expressions are");
	ring_test();
	ordered_test();
	return tap_done();
}
