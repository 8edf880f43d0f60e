/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans of the test's own, straight on the executor: lengths bound late from one snapshot
 * (rule F1), ranges of many pieces, counts that disagree.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define LATE_MOST UINT64_C(400000) /* elements in all */

struct plans_arg {
	const char *provider;
	int bad_rank; /* -1, or the rank whose counts disagree with the others */
};

/* ---- dynamic all-to-all: everybody to everybody, counts known at the start only -------
 */

/* Elements from a to b: nothing, little, a lot. */
static uint64_t late_count(int32_t from, int32_t to)
{
	static const uint64_t counts[] = {0, 3, 60000, 1, 9000, 17};

	return counts[(from * 5 + to * 2) % 6];
}

static int32_t late_value(int32_t from, int32_t to, uint64_t i)
{
	return (int32_t)((uint32_t)(from * 100 + to) * 1000003u + (uint32_t)i);
}

static struct plan *late_plan(int32_t rank, int32_t size)
{
	const struct plan_call call = {.rank = rank,
				       .size = size,
				       .count = LATE_MOST,
				       .elem_size = sizeof(int32_t)};
	struct plan_builder *b = plan_builder_open("test-late", &call);
	const uint8_t src = plan_add_late(b, LATE_MOST, (uint32_t)size);
	const uint8_t dst = plan_add_late(b, LATE_MOST, (uint32_t)size);
	struct plan *plan = NULL;
	const char *why = "?";

	for (int32_t i = 1; i < size; i++) {
		const int32_t to = (rank + i) % size, from = (rank + size - i) % size;

		plan_add_recv(b, from, plan_run(PLAN_DST, dst, (uint32_t)from, 1));
		plan_add_send(b, to, plan_run(PLAN_SRC, src, (uint32_t)to, 1),
			      plan_nothing());
	}
	plan_add_copy(b, plan_run(PLAN_DST, dst, (uint32_t)rank, 1),
		      plan_run(PLAN_SRC, src, (uint32_t)rank, 1));
	if (plan_builder_finish(b, &plan, &why))
		tap_diag("late plan: %s", why);
	return plan;
}

static enum weft_result plans_run(struct weft_ctx *ctx, struct exec_req *req,
				  const struct exec_call *call, uint64_t *spoil)
{
	struct exec_idle idle = {0};
	enum weft_result result = exec_req_start(req, call);
	const char *text;

	if (result != WEFT_SUCCESS)
		return result;
	/* What the caller does with its counts after the start changes nothing. */
	if (spoil)
		spoil[1] = UINT64_MAX;
	while (exec_req_state(req) != EXEC_DONE) {
		bool moved = exec_progress(ctx->exec);

		exec_idle_wait(ctx->exec, &idle, moved, exec_clock(ctx->exec));
	}
	result = exec_req_result(req, &text);
	if (result != WEFT_SUCCESS)
		printf("# (%s: %s)\n", weft_strerror(result), text);
	return result;
}

struct late {
	uint64_t send[RANKS_MAX + 1], recv[RANKS_MAX + 1];
	const uint64_t *disp[2];
	struct plan_binding bind;
	int32_t *src, *dst;
};

static bool late_open(struct late *l, const struct ranks *r, int bad_rank)
{
	memset(l, 0, sizeof(*l));
	for (int32_t i = 0; i < r->size; i++) {
		l->send[i + 1] = l->send[i] + late_count(r->rank, i);
		l->recv[i + 1] =
			l->recv[i] + late_count(i, r->rank) +
			(r->rank == bad_rank && late_count(i, r->rank) > 10 ? 1 : 0);
	}
	l->disp[0] = l->send;
	l->disp[1] = l->recv;
	l->bind.disp = l->disp;
	l->src = malloc(LATE_MOST * sizeof(int32_t));
	l->dst = malloc(LATE_MOST * sizeof(int32_t));
	if (!l->src || !l->dst)
		return false;
	memset(l->dst, 0, LATE_MOST * sizeof(int32_t));
	for (int32_t i = 0; i < r->size; i++) {
		for (uint64_t k = 0; k < late_count(r->rank, i); k++)
			l->src[l->send[i] + k] = late_value(r->rank, i, k);
	}
	return true;
}

static int late_check(struct ranks *r, const struct late *l)
{
	uint64_t at = 0;

	for (int32_t i = 0; i < r->size; i++) {
		for (uint64_t k = 0; k < late_count(i, r->rank); k++, at++) {
			if (l->dst[at] != late_value(i, r->rank, k))
				return ranks_say(r, "element %llu of rank %d is wrong",
						 (unsigned long long)k, i);
		}
	}
	return RANKS_GOOD;
}

/* The rank with the wrong counts and one that sends to it find out; others hear of it, or
 * were done before. Everybody stays for a while to answer the others' revocations. */
static int late_mismatch(struct ranks *r, struct weft_ctx *ctx, int bad_rank,
			 enum weft_result result)
{
	const int64_t until = exec_now() + 1000000;
	struct exec_idle idle = {0};

	while (exec_now() < until) {
		bool moved = exec_progress(ctx->exec);

		exec_idle_wait(ctx->exec, &idle, moved, exec_clock(ctx->exec));
	}
	if (result == WEFT_ERR_MISMATCH ||
	    (result == WEFT_SUCCESS && r->rank != bad_rank))
		return RANKS_GOOD;
	return ranks_say(r, "no mismatch, but %s", weft_strerror(result));
}

static int late_body(struct ranks *r)
{
	const struct plans_arg *arg = r->arg;
	struct plan *plan = late_plan(r->rank, r->size);
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	struct exec_req *req;
	struct late l;
	struct exec_call call = {.plan = plan, .type = WEFT_INT32, .timeout_us = 5000000};
	int bad = ranks_open(r, arg->provider, 20000000, &ctx);

	if (bad)
		return bad;
	if (!plan || !late_open(&l, r, arg->bad_rank) ||
	    weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "set-up: %s", weft_error_detail());
	call.src = l.src;
	call.dst = l.dst;
	call.bind = &l.bind;
	call.src_len = call.dst_len = LATE_MOST;
	req = exec_req_alloc(ctx->exec);
	for (call.call = 0; call.call < 3; call.call++) {
		uint64_t kept[RANKS_MAX + 1];
		enum weft_result result;

		memcpy(kept, l.recv, sizeof(kept));
		result = plans_run(ctx, req, &call, l.recv);
		memcpy(l.recv, kept, sizeof(kept));
		if (arg->bad_rank >= 0) {
			bad = late_mismatch(r, ctx, arg->bad_rank, result);
			break;
		}
		if (result != WEFT_SUCCESS || late_check(r, &l))
			return RANKS_BAD;
	}
	/* Counts that descend are refused before anything starts. */
	l.recv[1] = l.recv[r->size] + 1;
	if (arg->bad_rank < 0 && r->size > 1 &&
	    exec_req_start(req, &call) != WEFT_ERR_ARG)
		return ranks_say(r, "descending counts were taken");
	exec_req_release(req);
	plan_free(plan);
	free(l.src);
	free(l.dst);
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

/* ---- many pieces: more than an iovec or a READY can name ------------------------------
 */

#define PIECES 24 /* parts; every second one is sent */

static struct plan *pieces_plan(int32_t rank, uint64_t part_len)
{
	const struct plan_call call = {.rank = rank,
				       .size = 2,
				       .count = PIECES * part_len,
				       .elem_size = sizeof(int32_t)};
	struct plan_builder *b = plan_builder_open("test-pieces", &call);
	const uint8_t part = plan_add_balanced(b, PIECES * part_len, PIECES);
	const struct plan_range even = {
		.part = part, .block = 1, .stride = 2, .count = PIECES / 2};
	struct plan_range src = even, dst = even;
	struct plan *plan = NULL;
	const char *why = "?";

	src.buf = PLAN_SRC;
	dst.buf = PLAN_DST;
	plan_add_recv(b, 1 - rank, dst);
	plan_add_send(b, 1 - rank, src, dst);
	if (plan_builder_finish(b, &plan, &why))
		tap_diag("pieces plan: %s", why);
	return plan;
}

static int pieces_one(struct ranks *r, struct weft_ctx *ctx, uint32_t number,
		      uint64_t part_len)
{
	const uint64_t total = PIECES * part_len;
	struct plan *plan = pieces_plan(r->rank, part_len);
	int32_t *src = malloc(total * sizeof(*src)), *dst = malloc(total * sizeof(*dst));
	struct exec_call call = {.call = number,
				 .plan = plan,
				 .src = src,
				 .dst = dst,
				 .type = WEFT_INT32,
				 .timeout_us = 5000000};
	struct exec_req *req = exec_req_alloc(ctx->exec);
	int bad = RANKS_GOOD;

	for (uint64_t i = 0; i < total; i++) {
		src[i] = (int32_t)i + 1000000 * r->rank;
		dst[i] = -1;
	}
	if (plans_run(ctx, req, &call, NULL) != WEFT_SUCCESS)
		return RANKS_BAD;
	for (uint64_t i = 0; i < total && !bad; i++) {
		const int32_t want =
			i / part_len % 2 ? -1 : (int32_t)i + 1000000 * (1 - r->rank);

		if (dst[i] != want)
			bad = ranks_say(r, "element %llu is %d, not %d",
					(unsigned long long)i, dst[i], want);
	}
	exec_req_release(req);
	plan_free(plan);
	free(src);
	free(dst);
	return bad;
}

static int pieces_body(struct ranks *r)
{
	const struct plans_arg *arg = r->arg;
	struct weft_stats stats = {.size = sizeof(stats)};
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, arg->provider, 20000000, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (pieces_one(r, ctx, 0, 10) || pieces_one(r, ctx, 1, 5000))
		return RANKS_BAD;
	weft_ctx_stats(ctx, &stats);
	/* Both ends pack: twelve pieces do not fit an iovec. */
	if (stats.staged_bytes != UINT64_C(2) * (10 + 5000) * PIECES / 2 * 4)
		return ranks_say(r, "%llu bytes staged",
				 (unsigned long long)stats.staged_bytes);
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* ---- handed over: a call that a thread goes on with -----------------------------------
 */

/* A plan of one copy: what is done by whoever starts it, unless it is handed over. */
static int handed_one(struct ranks *r, struct weft_ctx *ctx, uint32_t number, bool handed)
{
	const struct plan_call plan_call = {
		.rank = r->rank, .size = r->size, .count = 1, .elem_size = 4};
	struct plan_builder *b = plan_builder_open("test-handed", &plan_call);
	const uint8_t part = plan_add_balanced(b, 1, 1);
	int32_t src = 7, dst = 0;
	struct exec_call call = {.call = number,
				 .src = &src,
				 .dst = &dst,
				 .type = WEFT_INT32,
				 .timeout_us = 5000000,
				 .handed = handed};
	struct exec_req *req = exec_req_alloc(ctx->exec);
	struct plan *plan = NULL;
	const char *text = "?";
	int bad = RANKS_GOOD;

	plan_add_copy(b, plan_run(PLAN_DST, part, 0, 1), plan_run(PLAN_SRC, part, 0, 1));
	if (plan_builder_finish(b, &plan, &text))
		return ranks_say(r, "plan: %s", text);
	call.plan = plan;
	if (exec_req_start(req, &call) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	if (dst != (handed ? 0 : 7))
		bad = ranks_say(r, "%s: the start has left %d",
				handed ? "handed over" : "not handed over", dst);
	while (exec_req_state(req) != EXEC_DONE)
		exec_progress(ctx->exec);
	if (exec_req_result(req, &text) != WEFT_SUCCESS || dst != 7)
		bad = ranks_say(r, "the end has left %d: %s", dst, text);
	exec_req_release(req);
	plan_free(plan);
	return bad;
}

static int handed_body(struct ranks *r)
{
	const struct plans_arg *arg = r->arg;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, arg->provider, 20000000, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	bad = handed_one(r, ctx, 0, false);
	if (!bad)
		bad = handed_one(r, ctx, 1, true);
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp,shm", names, 8);

	for (int i = 0; i < count; i++) {
		struct plans_arg arg = {.provider = names[i], .bad_rank = -1};

		ranks_run(1, 30, late_body, &arg, end);
		if (end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(ranks_run(4, 60, late_body, &arg, end),
		       "%s: lengths bound late, from one snapshot (F1)", names[i]);
		arg.bad_rank = 2;
		tap_ok(ranks_run(4, 60, late_body, &arg, end),
		       "%s: late lengths that disagree are a mismatch everywhere",
		       names[i]);
		tap_ok(ranks_run(2, 60, pieces_body, &arg, end),
		       "%s: ranges of many pieces are packed and counted", names[i]);
		tap_ok(ranks_run(1, 60, handed_body, &arg, end),
		       "%s: what is handed over moves nothing when it starts", names[i]);
	}
	return tap_done();
}
