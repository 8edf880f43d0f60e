/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How transfers travel (rules F3, F4): the same cases by messages only, by puts only
 * (also tiny ones and places of several pieces), and both; counters prove which way was
 * taken, that handles travel once, and that all-gather stages nothing.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

struct mode {
	const char *name;
	const char *provider;
	bool no_put;
	size_t message_max;
};

static int mode_open(struct ranks *r, const struct mode *m, struct weft_ctx **ctx)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct net_attr net = {.provider = m->provider,
			       .no_put = m->no_put,
			       .message_max = m->message_max};
	enum weft_result result;

	opts.timeout_us = 20000000;
	opts.boot = &r->boot;
	result = ctx_open(&opts, &net, ctx);
	if (result == WEFT_ERR_PROVIDER && strstr(weft_error_detail(), "no libfabric"))
		return RANKS_ABSENT;
	if (result != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int mode_cases(struct ranks *r, struct weft_comm *comm)
{
	static const uint64_t counts[] = {1, 5, 70001, 300};

	for (size_t a = 0; a < algo_count; a++) {
		for (size_t i = 0; i < 4; i++) {
			struct ref_case c = {.algorithm = algo_table[a].name,
					     .type = WEFT_INT32,
					     .op = WEFT_SUM,
					     .count = counts[i],
					     .root = 1 % r->size,
					     .in_place = i % 2 && !algo_table[a].vector,
					     .salt = (uint32_t)(a * 10 + i)};

			while (strcmp(weft_coll_name(c.coll), algo_table[a].coll) != 0)
				c.coll = (enum weft_coll)(c.coll + 1);
			if (case_run(r, comm, &c, false))
				return RANKS_BAD;
		}
	}
	return RANKS_GOOD;
}

static int mode_stats(struct ranks *r, const struct mode *m, struct weft_ctx *ctx)
{
	struct weft_stats s = {.size = sizeof(s)};

	if (weft_ctx_stats(ctx, &s) != WEFT_SUCCESS)
		return ranks_say(r, "stats: %s", weft_error_detail());
	if (m->no_put && s.puts)
		return ranks_say(r, "%llu puts without RMA", (unsigned long long)s.puts);
	if (!m->no_put && exec_caps(ctx->exec)->put && !s.puts)
		return ranks_say(r, "no put was made");
	if (m->message_max == 1 && exec_caps(ctx->exec)->put_pieces && s.staged_bytes)
		return ranks_say(r, "%llu bytes staged",
				 (unsigned long long)s.staged_bytes);
	return RANKS_GOOD;
}

static int mode_body(struct ranks *r)
{
	const struct mode *m = r->arg;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = mode_open(r, m, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (mode_cases(r, comm) || mode_stats(r, m, ctx))
		return RANKS_BAD;
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* 1 MiB, three times; the counters of the first call and of the last. */
static int large_run(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm,
		     const struct ref_case *c, struct weft_stats stats[2])
{
	struct case_bufs b;
	struct weft_req *req;

	if (!case_bufs_open(&b, c, r))
		return ranks_say(r, "no memory");
	for (int i = 0; i < 3; i++) {
		if (case_start(comm, c, &b, &req) != WEFT_SUCCESS ||
		    weft_req_wait(req, 0) != WEFT_SUCCESS || case_check(r, c, &b))
			return ranks_say(r, "call %d: %s", i, weft_error_detail());
		stats[i > 0].size = sizeof(stats[0]);
		weft_ctx_stats(ctx, &stats[i > 0]);
	}
	case_bufs_close(&b);
	return RANKS_GOOD;
}

/* An all-gather stages nothing, and asks for no READY where long messages are as good; an
 * all-reduce out of place puts, and its handles travel in the first call. */
static int large_cases(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	const struct ref_case gather = {.coll = WEFT_COLL_ALLGATHER,
					.algorithm = "ring",
					.type = WEFT_FP32,
					.count = 1 << 18};
	const struct ref_case reduce = {.coll = WEFT_COLL_ALLREDUCE,
					.algorithm = "ring",
					.type = WEFT_INT32,
					.op = WEFT_SUM,
					.count = 1 << 18};
	const struct net_caps *caps = exec_caps(ctx->exec);
	struct weft_stats s[2];

	if (large_run(r, ctx, comm, &gather, s))
		return RANKS_BAD;
	if (caps->long_max > caps->message_max ? s[1].readys != 0 : s[1].readys == 0)
		return ranks_say(r, "%llu READY messages in all-gather",
				 (unsigned long long)s[1].readys);
	if (large_run(r, ctx, comm, &reduce, s))
		return RANKS_BAD;
	if (s[1].staged_bytes)
		return ranks_say(r, "%llu bytes staged",
				 (unsigned long long)s[1].staged_bytes);
	if (caps->put && !s[0].handles)
		return ranks_say(r, "no handle travelled");
	if (s[1].handles != s[0].handles && !exec_registers_per_call(ctx->exec))
		return ranks_say(r, "%llu handles after the first call, %llu at the end",
				 (unsigned long long)s[0].handles,
				 (unsigned long long)s[1].handles);
	return RANKS_GOOD;
}

static int large_body(struct ranks *r)
{
	const struct mode *m = r->arg;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = mode_open(r, m, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (large_cases(r, ctx, comm))
		return RANKS_BAD;
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

int main(void)
{
	struct mode modes[] = {
		{.name = "messages only", .no_put = true},
		{.name = "messages only, each after READY",
		 .no_put = true,
		 .message_max = 1},
		{.name = "puts of everything", .message_max = 1},
		{.name = "both"},
	};
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	/* What goes by messages and puts is looked at here. */
	setenv("WEFT_LINES", "off", 1);
	for (int i = 0; i < count; i++) {
		for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
			modes[k].provider = names[i];
			if (!ranks_run(5, 60, mode_body, &modes[k], end) &&
			    end[0] == RANKS_ABSENT) {
				tap_skip(1, "provider %s is not on this machine",
					 names[i]);
				break;
			}
			tap_ok(end[0] == 0 && end[1] == 0 && end[2] == 0 && end[3] == 0 &&
				       end[4] == 0,
			       "%s, 5 ranks: %s", names[i], modes[k].name);
		}
		if (end[0] == RANKS_ABSENT)
			continue;
		tap_ok(ranks_run(3, 60, large_body, &modes[3], end),
		       "%s: handles travel once, nothing is staged, READY where needed",
		       names[i]);
	}
	return tap_done();
}
