/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The algorithms: one const table, one row each. The API, the checker, `weft info` and
 * `weft perf` all read this table.
 */
#ifndef WEFT_ALGO_ALGO_H
#define WEFT_ALGO_ALGO_H

#include <stdbool.h>

#include "coll/plan/checker.h"
#include "coll/plan/plan.h"

struct algo {
	const char *coll; /* weft_coll_name() of what it does: "allreduce" */
	const char *name; /* "ring" */
	const char *what; /* one line for people, with its cost in alpha-beta terms */
	enum plan_goal goal;
	/* Whether this size can be done at all (the mathematics forbids some). */
	bool (*supports)(const struct plan_call *call);
	/* 0, -ENOMEM, or -EINVAL with *why. */
	int (*build)(const struct plan_call *call, struct plan **plan, const char **why);
	bool vector; /* of a (v) form: blocks of any lengths */
};

extern const struct algo algo_table[];
extern const size_t algo_count;

/* NULL when there is none of that name for that collective. */
const struct algo *algo_find(const char *coll, const char *name);

/* Its number among those of its collective, in the order of the table, and back; NULL
 * where there are fewer. */
uint8_t algo_index(const struct algo *algo);
const struct algo *algo_at(const char *coll, uint8_t index);

/* The default choice for a call; never NULL for a collective that exists. */
const struct algo *algo_choose(const char *coll, const struct plan_call *call);

/* Whether that choice is the one of this name, since the ranks have lines and the call
 * is short enough for them. */
#define ALGO_LINES "lines"
bool algo_goes_by_lines(const char *coll, const struct plan_call *call);

/* What that choice goes by, in words. */
const char *algo_why(const char *coll, const struct plan_call *call);

/* "ring, recursive-doubling": those there are for a collective, for messages. */
void algo_list(const char *coll, char *text, size_t len);

#endif
