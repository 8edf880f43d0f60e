/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same calls over and over: requests that ran a plan are rewound for its next call,
 * several of one plan at a time, while plans come and go; every time in other buffers,
 * with other values, also where every pair needs READY.
 *
 *   test_repeat [SEED]
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define REPEAT_ROUNDS 40
#define REPEAT_OPEN   7	 /* calls at a time: more than a plan keeps requests for */
#define REPEAT_PLANS  40 /* counts: more than a communicator remembers plans for */

struct repeat {
	const char *provider;
	size_t message_max; /* 0: the provider's */
	uint32_t seed;
};

static uint32_t repeat_random(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

/* One of few, so that it was run before. */
static struct ref_case repeat_case(uint32_t *state, uint32_t salt)
{
	static const uint64_t counts[] = {1, 3, 700, 9001, 33000};
	static const enum weft_coll colls[] = {WEFT_COLL_ALLREDUCE, WEFT_COLL_ALLGATHER,
					       WEFT_COLL_BROADCAST, WEFT_COLL_BARRIER};
	const enum weft_coll coll = colls[repeat_random(state, 4)];

	return (struct ref_case){.coll = coll,
				 .type = WEFT_INT32,
				 .op = repeat_random(state, 2) ? WEFT_SUM : WEFT_MAX,
				 .count = counts[repeat_random(state, 5)],
				 .in_place = coll == WEFT_COLL_BROADCAST ||
					     repeat_random(state, 2),
				 .salt = salt};
}

/* Up to REPEAT_OPEN calls, half of them like the first one. */
static int repeat_round(struct ranks *r, struct weft_comm *comm, uint32_t *state,
			uint32_t round)
{
	const uint32_t open = 1 + repeat_random(state, REPEAT_OPEN);
	struct ref_case c[REPEAT_OPEN];
	struct case_bufs b[REPEAT_OPEN];
	struct weft_req *req[REPEAT_OPEN];

	for (uint32_t i = 0; i < open; i++) {
		c[i] = repeat_case(state, round * REPEAT_OPEN + i);
		if (i && repeat_random(state, 2)) {
			c[i] = c[0];
			c[i].salt = round * REPEAT_OPEN + i;
		}
		if (!case_bufs_open(&b[i], &c[i], r) ||
		    case_start(comm, &c[i], &b[i], &req[i]) != WEFT_SUCCESS)
			return ranks_say(r, "round %u, call %u: %s", round, i,
					 weft_error_detail());
	}
	for (uint32_t i = 0; i < open; i++) {
		if (weft_req_wait(req[i], 0) != WEFT_SUCCESS ||
		    case_check(r, &c[i], &b[i]))
			return ranks_say(r, "round %u, call %u: %s", round, i,
					 weft_error_detail());
		case_bufs_close(&b[i]);
	}
	return RANKS_GOOD;
}

/* More plans than are remembered, twice. */
static int repeat_evict(struct ranks *r, struct weft_comm *comm)
{
	for (uint32_t i = 0; i < 2 * REPEAT_PLANS; i++) {
		struct ref_case c = {.coll = WEFT_COLL_ALLREDUCE,
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .count = 1 + i % REPEAT_PLANS,
				     .salt = i};

		if (case_run(r, comm, &c, false))
			return RANKS_BAD;
	}
	return RANKS_GOOD;
}

static int repeat_body(struct ranks *r)
{
	const struct repeat *arg = r->arg;
	const struct net_attr net = {.provider = arg->provider,
				     .message_max = arg->message_max};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	uint32_t state = arg->seed;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	enum weft_result result;

	opts.timeout_us = 30000000;
	opts.boot = &r->boot;
	result = ctx_open(&opts, &net, &ctx);
	if (result == WEFT_ERR_PROVIDER && strstr(weft_error_detail(), "no libfabric"))
		return RANKS_ABSENT;
	if (result != WEFT_SUCCESS || weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	for (uint32_t round = 0; round < REPEAT_ROUNDS; round++) {
		if (repeat_round(r, comm, &state, round))
			return RANKS_BAD;
		if (round == REPEAT_ROUNDS / 2 && repeat_evict(r, comm))
			return RANKS_BAD;
	}
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

int main(int argc, char **argv)
{
	const char *given = argc > 1 ? argv[1] : getenv("WEFT_TEST_SEED");
	struct repeat arg = {.seed = given ? (uint32_t)strtoul(given, NULL, 0)
					   : (uint32_t)time(NULL)};
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	tap_diag("seed %u", arg.seed);
	for (int i = 0; i < count; i++) {
		for (int puts = 0; puts < 2; puts++) {
			bool good;

			arg.provider = names[i];
			arg.message_max = puts ? 1 : 0;
			good = ranks_run(3, 100, repeat_body, &arg, end);
			if (!good && end[0] == RANKS_ABSENT) {
				tap_skip(1, "provider %s is not on this machine",
					 names[i]);
				break;
			}
			tap_ok(good, "%s: the same calls over and over%s", names[i],
			       puts ? ", each pair after READY" : "");
		}
	}
	return tap_done();
}
