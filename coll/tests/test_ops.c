/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the caller: one that commutes and one that does not, against what their
 * definition gives in the order of ranks, for every algorithm that may run them; those
 * that may not refuse; ranks that mean different operations hear it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(30000000)

/* Elements: nothing, one, and more than a slice of work. */
static const uint64_t counts[] = {0, 1, 1000, 70001};

struct ops {
	const char *provider;
	enum weft_op gcd, compose;
	int applied; /* what `arg` points to */
};

static uint32_t gcd_of(uint32_t a, uint32_t b)
{
	while (b) {
		const uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void gcd_apply(void *arg, enum weft_type type, void *dst, const void *a,
		      const void *b, uint64_t count)
{
	const uint32_t *x = a, *y = b;
	uint32_t *d = dst;

	if (type != WEFT_UINT32)
		abort();
	++*(int *)arg;
	for (uint64_t i = 0; i < count; i++)
		d[i] = gcd_of(x[i], y[i]);
}

/* Functions x -> a x + b in the halves of an element, one after the other. */
static uint64_t compose_of(uint64_t f, uint64_t g)
{
	const uint32_t a = (uint32_t)(f >> 32), b = (uint32_t)f, c = (uint32_t)(g >> 32),
		       d = (uint32_t)g;

	return (uint64_t)(a * c) << 32 | (uint32_t)(a * d + b);
}

static void compose_apply(void *arg, enum weft_type type, void *dst, const void *a,
			  const void *b, uint64_t count)
{
	const uint64_t *x = a, *y = b;
	uint64_t *d = dst;

	if (type != WEFT_UINT64)
		abort();
	++*(int *)arg;
	for (uint64_t i = 0; i < count; i++)
		d[i] = compose_of(x[i], y[i]);
}

static uint64_t value(bool ordered, int32_t rank, uint64_t i)
{
	const uint64_t x = (i + 7) * (uint64_t)(rank + 3) * UINT64_C(0x9e3779b97f4a7c15);

	return ordered ? x | UINT64_C(1) << 32 : (x >> 40) * 6;
}

static uint64_t result(bool ordered, int32_t size, uint64_t i)
{
	uint64_t all = value(ordered, 0, i);

	for (int32_t r = 1; r < size; r++) {
		const uint64_t next = value(ordered, r, i);

		all = ordered ? compose_of(all, next)
			      : gcd_of((uint32_t)all, (uint32_t)next);
	}
	return all;
}

static void put(bool ordered, void *buf, uint64_t i, uint64_t v)
{
	if (ordered)
		((uint64_t *)buf)[i] = v;
	else
		((uint32_t *)buf)[i] = (uint32_t)v;
}

static bool holds(bool ordered, const void *buf, uint64_t i, uint64_t v)
{
	return ordered ? ((const uint64_t *)buf)[i] == v
		       : ((const uint32_t *)buf)[i] == (uint32_t)v;
}

struct one {
	const struct algo *algo;
	enum weft_coll coll;
	bool ordered, in_place;
	uint64_t count;
	int32_t root;
};

/* Starts where this rank's result is, and how many elements a source has. */
static struct weft_call one_call(const struct one *o, const struct ops *ops,
				 const struct ranks *r, void *src, void *dst)
{
	const bool blocks = o->coll == WEFT_COLL_REDUCE_SCATTER;
	const enum weft_type type = o->ordered ? WEFT_UINT64 : WEFT_UINT32;
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = o->coll;
	call.op = o->ordered ? ops->compose : ops->gcd;
	call.root = o->root;
	call.src = (struct weft_buf){.addr = src,
				     .count = o->count * (blocks ? (uint64_t)r->size : 1),
				     .type = type};
	call.dst = (struct weft_buf){.addr = dst, .count = o->count, .type = type};
	return call;
}

static int one_check(struct ranks *r, const struct one *o, const void *dst)
{
	const uint64_t at =
		o->coll == WEFT_COLL_REDUCE_SCATTER ? (uint64_t)r->rank * o->count : 0;

	if (o->coll == WEFT_COLL_REDUCE && r->rank != o->root)
		return RANKS_GOOD;
	for (uint64_t i = 0; i < o->count; i++) {
		if (!holds(o->ordered, dst, i, result(o->ordered, r->size, at + i)))
			return ranks_say(r, "%s (%s)%s: element %llu is wrong",
					 o->algo->coll, o->algo->name,
					 o->ordered ? " in order" : "",
					 (unsigned long long)i);
	}
	return RANKS_GOOD;
}

static int one_run(struct ranks *r, struct weft_comm *comm, const struct ops *ops,
		   const struct one *o)
{
	const bool blocks = o->coll == WEFT_COLL_REDUCE_SCATTER;
	const uint64_t elements = o->count * (blocks ? (uint64_t)r->size : 1);
	const bool shared =
		o->in_place && (o->coll != WEFT_COLL_REDUCE || r->rank == o->root);
	const struct plan_call ask = {.size = r->size, .ordered = o->ordered};
	struct weft_opts opts = WEFT_OPTS_INIT;
	uint64_t *src = calloc(elements + 1, 8), *other = calloc(o->count + 1, 8);
	char *dst = (char *)(shared ? src : other);
	struct weft_req *req;
	struct weft_call call;
	enum weft_result got;
	int bad = RANKS_GOOD;

	if (!src || !other)
		return ranks_say(r, "no memory");
	if (shared && blocks)
		dst += (uint64_t)r->rank * o->count * (o->ordered ? 8 : 4);
	for (uint64_t i = 0; i < elements; i++)
		put(o->ordered, src, i, value(o->ordered, r->rank, i));
	call = one_call(o, ops, r, src, dst);
	opts.algorithm = o->algo->name;
	got = weft_call_start(comm, &call, &opts, &req);
	if (!o->algo->supports(&ask)) {
		if (got != WEFT_ERR_UNSUPPORTED ||
		    !strstr(weft_error_detail(), "order of ranks"))
			bad = ranks_say(r, "%s (%s) takes it: %s", o->algo->coll,
					o->algo->name, weft_error_detail());
	} else {
		if (got == WEFT_SUCCESS)
			got = weft_req_wait(req, WEFT_TIMEOUT_DEFAULT);
		bad = got == WEFT_SUCCESS ? one_check(r, o, dst)
					  : ranks_say(r, "%s (%s): %s", o->algo->coll,
						      o->algo->name, weft_error_detail());
	}
	free(src);
	free(other);
	return bad;
}

static int all_run(struct ranks *r, struct weft_comm *comm, const struct ops *ops)
{
	static const enum weft_coll colls[] = {WEFT_COLL_ALLREDUCE, WEFT_COLL_REDUCE,
					       WEFT_COLL_REDUCE_SCATTER};
	int bad = RANKS_GOOD;

	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		const char *name = weft_coll_name(colls[c]);
		const struct algo *algo;

		for (uint8_t a = 0; (algo = algo_at(name, a)); a++) {
			/* In place or not, in order or not, of each length. */
			for (unsigned v = 0; v < 16 && !bad; v++) {
				const struct one o = {.algo = algo,
						      .coll = colls[c],
						      .ordered = v % 2,
						      .in_place = v / 2 % 2,
						      .count = counts[v / 4],
						      .root = (int32_t)v % r->size};

				bad = one_run(r, comm, ops, &o);
			}
		}
	}
	return bad;
}

static int ops_body(struct ranks *r)
{
	struct ops *ops = r->arg;
	struct weft_op_opts gcd = WEFT_OP_OPTS_INIT, compose = WEFT_OP_OPTS_INIT;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, ops->provider, TIMEOUT, &ctx);

	if (bad)
		return bad;
	gcd.apply = gcd_apply;
	compose.apply = compose_apply;
	gcd.arg = compose.arg = &ops->applied;
	compose.flags = WEFT_OP_ORDERED;
	if (weft_op_create(ctx, &gcd, &ops->gcd) != WEFT_SUCCESS ||
	    weft_op_create(ctx, &compose, &ops->compose) != WEFT_SUCCESS ||
	    weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	bad = all_run(r, comm, ops);
	if (!bad && r->size > 1 && !ops->applied)
		bad = ranks_say(r, "nobody called the operations");
	if (!bad && (weft_comm_destroy(comm) != WEFT_SUCCESS ||
		     weft_op_destroy(ctx, ops->gcd) != WEFT_SUCCESS ||
		     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

/* Rank 0 means another operation than the others. */
static int mismatch_body(struct ranks *r)
{
	struct ops *ops = r->arg;
	struct weft_op_opts gcd = WEFT_OP_OPTS_INIT;
	uint32_t src[4] = {4, 6, 8, 9}, dst[4];
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	enum weft_result got;
	enum weft_op op[2];
	int bad = ranks_open(r, ops->provider, TIMEOUT, &ctx);

	if (bad)
		return bad;
	gcd.apply = gcd_apply;
	gcd.arg = &ops->applied;
	if (weft_op_create(ctx, &gcd, &op[0]) != WEFT_SUCCESS ||
	    weft_op_create(ctx, &gcd, &op[1]) != WEFT_SUCCESS ||
	    weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	got = weft_allreduce(comm, src, dst, 4, WEFT_UINT32, op[r->rank != 0], NULL);
	if (got != WEFT_ERR_MISMATCH || !strstr(weft_error_detail(), "user 0") ||
	    !strstr(weft_error_detail(), "user 1"))
		return ranks_say(r, "got %s (%s)", weft_strerror(got),
				 weft_error_detail());
	return RANKS_GOOD;
}

/* A rank that lost a peer, or disagreed, cannot close everything (rule D3): it leaves
 * with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	static const int32_t sizes[] = {1, 2, 3, 5, 8};
	struct ops ops = {.provider = NULL};
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		ops.provider = names[i];
		ranks_run(1, 30, ops_body, &ops, end);
		if (end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			tap_ok(ranks_run(sizes[s], 120, ops_body, &ops, end),
			       "%s: operations of the caller on %d ranks", names[i],
			       sizes[s]);
		tap_ok(ranks_run(3, 60, mismatch_body, &ops, end),
		       "%s: different operations are told", names[i]);
	}
	return tap_done();
}
