/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic all-to-allv: any counts, forms and ways of travelling against what must come,
 * byte by byte; counts as they are when a call is executed; nothing moves but what
 * counts; a call that one rank gets wrong is refused by all before anything is moved, and
 * ranks that disagree hear of it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/comm/comm.h"
#include "coll/tests/dynamic_case.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define TIMEOUT	   INT64_C(60000000)
#define CARD_BYTES 32 /* what a rank tells another */

struct world {
	const char *provider;
	struct net_attr net;
	uint32_t seed;
};

/* ---- any shapes, two at a time ------------------------------------------------------
 */

static int pair_run(struct ranks *r, struct weft_comm *comm, uint32_t *state)
{
	struct dynamic_shape s[2];
	struct dynamic_job j[2];
	struct weft_req *req[2];
	int bad = RANKS_GOOD;

	for (int i = 0; i < 2; i++) {
		dynamic_shape_draw(&s[i], r->size, state);
		if (!dynamic_job_open(&j[i], &s[i], r->rank))
			return ranks_say(r, "no memory");
		if (dynamic_job_start(&j[i], comm, &req[i]) != WEFT_SUCCESS)
			return ranks_say(r, "start: %s", weft_error_detail());
	}
	for (int i = 1; i >= 0; i--) {
		if (weft_req_wait(req[i], 0) != WEFT_SUCCESS)
			return ranks_say(r, "wait: %s", weft_error_detail());
		bad = bad ? bad : dynamic_job_check(r, &j[i]);
	}
	for (int i = 0; i < 2; i++)
		dynamic_job_close(&j[i]);
	return bad;
}

/* Started again with other counts each time; a rank calls where others start. */
static int persistent_run(struct ranks *r, struct weft_comm *comm, uint32_t *state)
{
	struct dynamic_shape s;
	struct dynamic_job j;
	struct weft_req *req;
	int bad = RANKS_GOOD;

	dynamic_shape_draw(&s, r->size, state);
	if (!dynamic_job_open(&j, &s, r->rank))
		return ranks_say(r, "no memory");
	if (dynamic_job_init(&j, comm, &req) != WEFT_SUCCESS)
		return ranks_say(r, "init: %s", weft_error_detail());
	for (int round = 0; round < 4 && !bad; round++) {
		const bool calls = round % 2 && r->rank == 0;
		enum weft_result got;

		s.salt += 1;
		dynamic_job_fill(&j, r->rank);
		got = calls ? dynamic_job_call(&j, comm) : weft_req_start(req);
		if (got == WEFT_SUCCESS && !calls)
			got = weft_req_wait(req, 0);
		if (got != WEFT_SUCCESS)
			return ranks_say(r, "round %d: %s", round, weft_error_detail());
		bad = dynamic_job_check(r, &j);
	}
	if (weft_req_free(req) != WEFT_SUCCESS)
		return ranks_say(r, "free: %s", weft_error_detail());
	dynamic_job_close(&j);
	return bad;
}

static int any_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	const struct world *w = r->arg;
	uint32_t state = w->seed;
	const int rounds = tap_short() ? 3 : 5;
	int bad = RANKS_GOOD;

	(void)ctx;
	for (int i = 0; i < rounds && !bad; i++)
		bad = i % 3 == 2 ? persistent_run(r, comm, &state)
				 : pair_run(r, comm, &state);
	return bad;
}

/* ---- what moves ---------------------------------------------------------------------
 */

static struct weft_stats stats_of(struct weft_ctx *ctx)
{
	struct weft_stats s = {.size = sizeof(s)};

	weft_ctx_stats(ctx, &s);
	return s;
}

/* Exactly the bytes of the blocks for others, and what tells their number; handles in the
 * first start of a persistent call and never again. */
static int moves_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct dynamic_shape s = {.size = r->size,
				  .sends = BY_LIST,
				  .takes = WITH_ROOM,
				  .type = WEFT_FP32,
				  .block = 300,
				  .salt = 5,
				  .max_count = 1500};
	struct weft_stats before, after;
	struct dynamic_job j;
	struct weft_req *req;
	uint64_t handles = 0;
	int bad = RANKS_GOOD;

	s.src_blocks = s.dst_blocks = (uint64_t)r->size * s.max_count;
	if (!dynamic_job_open(&j, &s, r->rank) ||
	    dynamic_job_init(&j, comm, &req) != WEFT_SUCCESS)
		return ranks_say(r, "init: %s", weft_error_detail());
	for (int round = 0; round < 4 && !bad; round++) {
		uint64_t want = CARD_BYTES * (uint64_t)(r->size - 1), got;

		dynamic_job_fill(&j, r->rank);
		for (int32_t i = 0; i < r->size; i++)
			want += i == r->rank ? 0 : j.counts[i] * j.unit;
		before = stats_of(ctx);
		if (weft_req_start(req) != WEFT_SUCCESS ||
		    weft_req_wait(req, 0) != WEFT_SUCCESS)
			return ranks_say(r, "round %d: %s", round, weft_error_detail());
		after = stats_of(ctx);
		got = after.msg_bytes + after.put_bytes - before.msg_bytes -
		      before.put_bytes;
		if (got != want)
			bad = ranks_say(r, "%llu bytes moved, not %llu",
					(unsigned long long)got,
					(unsigned long long)want);
		if (round == 0 && exec_caps(ctx->exec)->put && r->size > 1 &&
		    !after.handles)
			bad = ranks_say(r, "no handle travelled");
		if (round > 0 && after.handles != handles)
			bad = ranks_say(r, "handles travelled again");
		handles = after.handles;
		bad = bad ? bad : dynamic_job_check(r, &j);
	}
	if (weft_req_free(req) != WEFT_SUCCESS)
		return ranks_say(r, "free: %s", weft_error_detail());
	dynamic_job_close(&j);
	return bad;
}

/* ---- dispatch and combine -----------------------------------------------------------
 */

enum { TOKENS = 40, HIDDEN = 96 };

/* What a rank has of it: `n` copies of tokens go out, one to each of two ranks. */
struct tokens {
	uint32_t token[TOKENS][HIDDEN], back[2 * TOKENS][HIDDEN];
	uint32_t there[RANKS_MAX * TOKENS][HIDDEN];
	uint64_t counts[RANKS_MAX], got[RANKS_MAX], at[RANKS_MAX];
	uint64_t list[2 * TOKENS], places[RANKS_MAX * TOKENS], n;
};

/* The first of two ranks that a token goes to. */
static int32_t token_home(uint32_t t, const struct ranks *r)
{
	return (int32_t)(dynamic_mix(t, (uint32_t)r->rank, 3) % (uint32_t)r->size);
}

static void tokens_fill(struct tokens *x, const struct ranks *r)
{
	for (size_t i = 0; i < RANKS_MAX * TOKENS; i++)
		x->places[i] = WEFT_BLOCK_NONE;
	for (uint64_t to = 0; to < (uint64_t)r->size; to++) {
		x->at[to] = to * TOKENS;
		for (uint32_t t = 0; t < TOKENS; t++) {
			const uint64_t home = (uint64_t)token_home(t, r);

			if (to != home && to != (home + 1) % (uint64_t)r->size)
				continue;
			x->places[to * TOKENS + x->counts[to]++] = 2 * t + (to != home);
			x->list[x->n++] = t;
		}
	}
	for (uint32_t t = 0; t < TOKENS; t++) {
		for (uint32_t i = 0; i < HIDDEN; i++)
			x->token[t][i] = dynamic_mix((uint32_t)r->rank, t, i);
	}
}

static int tokens_check(struct ranks *r, const struct tokens *x)
{
	for (uint32_t t = 0; t < TOKENS; t++) {
		const uint32_t home = (uint32_t)token_home(t, r);

		for (uint32_t i = 0; i < HIDDEN; i++) {
			const uint32_t was = dynamic_mix((uint32_t)r->rank, t, i);

			if (x->back[2 * t][i] != was + home ||
			    x->back[2 * t + 1][i] != was + (home + 1) % (uint32_t)r->size)
				return ranks_say(r, "token %u came back wrong", t);
		}
	}
	return RANKS_GOOD;
}

/* Each token goes to two ranks, which add their number, and comes back from both to
 * places of its own: as many as came, from where they lie, to where they are missed. */
static int combine_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	const uint64_t all = (uint64_t)r->size * TOKENS * HIDDEN;
	struct tokens *x = calloc(1, sizeof(*x));
	struct weft_counts send;
	struct weft_dynamic d = WEFT_DYNAMIC_INIT;
	int bad;

	(void)ctx;
	if (!x)
		return ranks_say(r, "no memory");
	tokens_fill(x, r);
	send = (struct weft_counts){.counts = x->counts};
	d.max_count = TOKENS;
	d.block = HIDDEN;
	d.send_blocks = x->list;
	d.recv_counts = x->got;
	if (weft_alltoallv_dynamic(comm, x->token, TOKENS * HIDDEN, &send, x->there, all,
				   &d, WEFT_UINT32, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "dispatch: %s", weft_error_detail());
	for (uint64_t i = 0; i < all; i++)
		x->there[i / HIDDEN][i % HIDDEN] += (uint32_t)r->rank;
	send = (struct weft_counts){.counts = x->got, .displacements = x->at};
	d.send_blocks = NULL;
	d.recv_blocks = x->places;
	d.recv_counts = x->counts;
	if (weft_alltoallv_dynamic(comm, x->there, all, &send, x->back,
				   2 * TOKENS * HIDDEN, &d, WEFT_UINT32,
				   NULL) != WEFT_SUCCESS)
		return ranks_say(r, "combine: %s", weft_error_detail());
	bad = tokens_check(r, x);
	free(x);
	return bad;
}

/* ---- refused by all -----------------------------------------------------------------
 */

enum wrong { OVER, BEHIND, NO_BLOCK, NO_PLACE, BLOCKS, WRONGS };

static const struct {
	enum weft_result result;
	const char *word;
} refusals[WRONGS] = {
	[OVER] = {WEFT_ERR_ARG, "max_count is 10"},
	[BEHIND] = {WEFT_ERR_ARG, "behind the end of its source"},
	[NO_BLOCK] = {WEFT_ERR_ARG, "(send_blocks)"},
	[NO_PLACE] = {WEFT_ERR_ARG, "(recv_blocks)"},
	[BLOCKS] = {WEFT_ERR_MISMATCH, "weft_dynamic.block"},
};

static void make_wrong(struct dynamic_job *j, enum wrong wrong)
{
	switch (wrong) {
	case OVER:
		j->counts[1] = j->dynamic.max_count + 1;
		break;
	case BEHIND:
		j->at[0] = UINT64_MAX - 1;
		j->counts[0] = 3;
		j->send.displacements = j->at;
		j->dynamic.send_blocks = NULL;
		break;
	case NO_BLOCK:
		j->counts[0] = 3;
		j->send_blocks[1] = j->shape->src_blocks;
		break;
	case NO_PLACE:
		j->recv_blocks[11] = j->shape->dst_blocks;
		break;
	case BLOCKS: /* the same number of elements */
		j->dynamic.block = 10;
		j->dynamic.max_count = 4;
		break;
	case WRONGS:
		break;
	}
}

/* One rank gets it wrong; nobody writes anything, all say the same, and go on. */
static int refused_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct dynamic_shape s = {.size = r->size,
				  .sends = BY_LIST,
				  .takes = TO_LIST,
				  .type = WEFT_FP32,
				  .block = 4,
				  .max_count = 10};
	char own[512], all[RANKS_MAX][512];

	(void)ctx;
	s.src_blocks = (uint64_t)r->size * s.max_count;
	s.dst_blocks = s.src_blocks + 1 + (s.src_blocks % 7 == 6);
	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		enum weft_result got;
		struct dynamic_job j;

		s.salt = wrong;
		if (!dynamic_job_open(&j, &s, r->rank))
			return ranks_say(r, "no memory");
		if (r->rank == 1)
			make_wrong(&j, wrong);
		got = dynamic_job_call(&j, comm);
		snprintf(own, sizeof(own), "%s", weft_error_detail());
		if (got != refusals[wrong].result || !strstr(own, refusals[wrong].word) ||
		    !strstr(own, "rank 1"))
			return ranks_say(r, "wrong %d: %s: %s", wrong, weft_strerror(got),
					 own);
		if (!ranks_gather(r, own, all, sizeof(own)))
			return ranks_say(r, "the ranks of the test lost each other");
		if (strcmp(own, all[0]) != 0)
			return ranks_say(r, "\"%s\", rank 0: \"%s\"", own, all[0]);
		for (uint64_t i = 0; i < s.dst_blocks * j.unit; i++) {
			if (j.dst[i] != DYNAMIC_FILL)
				return ranks_say(r, "wrong %d: something was written",
						 wrong);
		}
		dynamic_job_close(&j);
		/* As it should be, on the same communicator. */
		if (!dynamic_job_open(&j, &s, r->rank))
			return ranks_say(r, "no memory");
		if (dynamic_job_call(&j, comm) != WEFT_SUCCESS)
			return ranks_say(r, "after it: %s", weft_error_detail());
		if (dynamic_job_check(r, &j))
			return RANKS_BAD;
		dynamic_job_close(&j);
	}
	return RANKS_GOOD;
}

/* ---- ranks that disagree ------------------------------------------------------------
 */

/* On communicators of their own, which are over then. */
static int disagree_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct dynamic_shape s = {.size = r->size,
				  .sends = ONE_BY_ONE,
				  .takes = TO_LIST,
				  .type = WEFT_FP32,
				  .block = 4,
				  .max_count = 10};

	(void)ctx;
	s.src_blocks = (uint64_t)r->size * s.max_count;
	s.dst_blocks = s.src_blocks + 1 + (s.src_blocks % 7 == 6);
	for (int i = 0; i < 2; i++) {
		struct weft_comm *sub;
		enum weft_result got;
		struct dynamic_job j;

		if (weft_comm_dup(comm, NULL, &sub) != WEFT_SUCCESS ||
		    !dynamic_job_open(&j, &s, r->rank))
			return ranks_say(r, "dup: %s", weft_error_detail());
		for (int32_t k = 0; k < r->size; k++)
			j.counts[k] = 5;
		if (i == 0 && r->rank == 1)
			j.dynamic.max_count = 9;
		if (i == 1 && r->rank == 1)
			j.recv_blocks[3] = WEFT_BLOCK_NONE;
		got = dynamic_job_call(&j, sub);
		if (got != WEFT_ERR_MISMATCH ||
		    !strstr(weft_error_detail(), i ? "has places for 3 of them"
						   : "every rank must give the same"))
			return ranks_say(r, "%d: %s: %s", i, weft_strerror(got),
					 weft_error_detail());
		got = dynamic_job_call(&j, sub);
		if (got != WEFT_ERR_COMM)
			return ranks_say(r, "%d, again: %s", i, weft_strerror(got));
		for (int k = 0; weft_comm_destroy(sub) != WEFT_SUCCESS; k++) {
			struct timespec nap = {.tv_nsec = 1000000};

			if (k == 60000)
				return ranks_say(r, "destroy: %s", weft_error_detail());
			nanosleep(&nap, NULL);
		}
		dynamic_job_close(&j);
	}
	/* Nobody leaves while others still want an answer. */
	if (weft_barrier(comm, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* ---- parts --------------------------------------------------------------------------
 */

enum part { ANY_4, ANY_5, ANY_1, MOVES, COMBINE, REFUSED, DISAGREE, PARTS };

static const struct ranks_part parts[PARTS] = {
	[ANY_4] = {4, -1, "any shapes on 4 ranks"},
	[ANY_5] = {5, -1, "any shapes on 5 ranks"},
	[ANY_1] = {1, -1, "any shapes on 1 rank"},
	[MOVES] = {3, -1, "only real bytes move, handles travel once"},
	[COMBINE] = {5, -1, "tokens go out and come back"},
	[REFUSED] = {4, -1, "what one rank gets wrong all refuse, and go on"},
	[DISAGREE] = {3, -1, "ranks that disagree hear of it"},
};

static int (*const bodies[PARTS])(struct ranks *, struct weft_ctx *,
				  struct weft_comm *) = {
	[ANY_4] = any_body,	    [ANY_5] = any_body,	      [ANY_1] = any_body,
	[MOVES] = moves_body,	    [COMBINE] = combine_body, [REFUSED] = refused_body,
	[DISAGREE] = disagree_body,
};

static int job_body(struct ranks *r)
{
	const struct world *w = r->arg;
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct net_attr net = w->net;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad;

	opts.boot = &r->boot;
	opts.timeout_us = TIMEOUT;
	net.provider = w->provider;
	if (ctx_open(&opts, &net, &ctx) != WEFT_SUCCESS)
		return strstr(weft_error_detail(), "no libfabric")
			       ? RANKS_ABSENT
			       : ranks_say(r, "open: %s", weft_error_detail());
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	bad = bodies[r->part](r, ctx, comm);
	if (!bad && (weft_comm_destroy(comm) != WEFT_SUCCESS ||
		     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

static const struct {
	const char *name;
	struct net_attr net;
} modes[] = {
	{"as it comes", {.no_put = false}},
	{"messages only", {.no_put = true}},
	{"no data with messages", {.no_data = true}},
	{"puts of everything", {.message_max = 1}},
	{"messages only, without data", {.no_put = true, .no_data = true}},
	{"registered per call", {.per_call = true}},
};

/* All over the first provider when there is time; over the others as they come. Not by
 * messages only over shm, whose long sends never end when a receive was cancelled. */
static bool mode_runs(const char *provider, int number, size_t mode)
{
	if (getenv("WEFT_TEST_ALL"))
		return strcmp(provider, "shm") != 0 || !modes[mode].net.no_put;
	return number == 0 ? mode == 3 || mode == 4 || mode == 5
			   : mode == (strcmp(provider, "tcp") == 0 ? 4 : 2);
}

int main(void)
{
	const char *seed = getenv("WEFT_TEST_SEED");
	struct world w = {.seed = seed ? (uint32_t)strtoul(seed, NULL, 10)
				       : (uint32_t)time(NULL) | 1};
	char names[8][32];
	int count = ranks_providers("weft,tcp,shm", names, 8);
	bool good[PARTS];

	tap_diag("seed %u", w.seed);
	for (int i = 0; i < count; i++) {
		w.provider = names[i];
		for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
			if (!mode_runs(names[i], i, m))
				continue;
			w.net = modes[m].net;
			if (!ranks_parts(parts, PARTS, 240, job_body, &w, good)) {
				tap_skip(1, "provider %s is not on this machine",
					 names[i]);
				break;
			}
			for (int p = 0; p < PARTS; p++)
				tap_ok(good[p], "%s, %s: %s", names[i], modes[m].name,
				       parts[p].what);
		}
	}
	return tap_done();
}
