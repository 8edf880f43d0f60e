/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The map of nodes: made-up ones give the hierarchical algorithms something to do, over
 * all ranks and over groups of them; ranks that do not agree hear it; by default one host
 * is one node.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(60000000)

/* Every hierarchical algorithm, for a few lengths. */
static int run_all(struct ranks *r, struct weft_comm *comm)
{
	static const uint64_t counts[] = {1, 1000, 70000};
	/* Cases are checked by the numbers in the group. */
	struct ranks as = *r;

	as.rank = weft_comm_rank(comm);
	as.size = weft_comm_size(comm);
	for (size_t i = 0; i < 3 * algo_count; i++) {
		const struct algo *algo = &algo_table[i / 3];
		struct ref_case c = {.algorithm = algo->name,
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .salt = (uint32_t)i,
				     .count = counts[i % 3],
				     .in_place = i % 2};
		int coll = 0;

		if (strcmp(algo->name, "hierarchical") != 0)
			continue;
		while (strcmp(weft_coll_name((enum weft_coll)coll), algo->coll) != 0)
			coll++;
		c.coll = (enum weft_coll)coll;
		c.root = (int32_t)(i % (size_t)as.size);
		if (c.coll == WEFT_COLL_BROADCAST)
			c.in_place = false;
		if (c.coll == WEFT_COLL_BARRIER) {
			c.count = 0;
			c.in_place = false;
		}
		if (case_run(&as, comm, &c, false))
			return RANKS_BAD;
	}
	return RANKS_GOOD;
}

static int nodes_are(struct ranks *r, const struct weft_comm *comm, int32_t count)
{
	const int32_t are = comm->nodes ? comm->nodes->count : 1;

	return are == count ? RANKS_GOOD
			    : ranks_say(r, "%d nodes where there must be %d", are, count);
}

/* Five ranks, two a node; of the group of 0, 1 and 4 two are on one. */
static int map_body(struct ranks *r)
{
	const bool in = r->rank < 2 || r->rank == 4;
	struct weft_comm *all, *some;
	struct weft_ctx *ctx;
	int bad;

	setenv("WEFT_NODES", "2", 1);
	bad = ranks_open(r, r->arg, TIMEOUT, &ctx);
	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &all) != WEFT_SUCCESS ||
	    weft_comm_split(all, in ? 0 : 1, 0, NULL, &some) != WEFT_SUCCESS)
		return ranks_say(r, "communicators: %s", weft_error_detail());
	bad = nodes_are(r, all, 3) || run_all(r, all);
	/* Ranks 2 and 3 are one node. */
	bad = bad || nodes_are(r, some, in ? 2 : 1);
	if (!bad && weft_barrier(some, NULL) != WEFT_SUCCESS)
		bad = ranks_say(r, "group: %s", weft_error_detail());
	if (bad)
		return RANKS_BAD;
	if (weft_comm_destroy(some) != WEFT_SUCCESS ||
	    weft_comm_destroy(all) != WEFT_SUCCESS || weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

static bool refused(struct ranks *r, enum weft_result want, const char *word)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	enum weft_result result;
	struct weft_ctx *ctx;

	opts.provider = r->arg;
	opts.timeout_us = TIMEOUT;
	opts.boot = &r->boot;
	result = weft_ctx_open(&opts, &ctx);
	if (result == want && strstr(weft_error_detail(), word))
		return true;
	ranks_say(r, "got %s: %s", weft_strerror(result), weft_error_detail());
	return false;
}

static int disagree_body(struct ranks *r)
{
	setenv("WEFT_NODES", "two", 1);
	if (!refused(r, WEFT_ERR_ARG, "WEFT_NODES is \"two\""))
		return RANKS_BAD;
	setenv("WEFT_NODES", r->rank == 1 ? "3" : "2", 1);
	return refused(r, WEFT_ERR_MISMATCH, "has WEFT_NODES=") ? RANKS_GOOD : RANKS_BAD;
}

static int one_body(struct ranks *r)
{
	struct weft_comm *all;
	struct weft_ctx *ctx;
	int bad = ranks_open(r, r->arg, TIMEOUT, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &all) != WEFT_SUCCESS)
		return ranks_say(r, "communicator: %s", weft_error_detail());
	bad = nodes_are(r, all, 1) || run_all(r, all);
	if (bad)
		return RANKS_BAD;
	if (weft_comm_destroy(all) != WEFT_SUCCESS || weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

int main(void)
{
	char names[8][32];
	int count = ranks_providers("weft,tcp", names, 8), end[RANKS_MAX];

	unsetenv("WEFT_NODES");
	for (int i = 0; i < count; i++) {
		const bool good = ranks_run(5, 120, map_body, names[i], end);

		if (end[0] == RANKS_ABSENT) {
			tap_skip(3, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(good, "%s: hierarchical algorithms over made-up nodes", names[i]);
		tap_ok(ranks_run(3, 120, one_body, names[i], end),
		       "%s: ranks of one host share a node", names[i]);
		tap_ok(ranks_run(3, 120, disagree_body, names[i], end),
		       "%s: made-up nodes that ranks do not agree about", names[i]);
	}
	return tap_done();
}
