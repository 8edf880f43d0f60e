/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call can have wrong, tried on every collective: each spoiled call is refused by
 * weft_call_start() and weft_call_init() with a sentence that names what is wrong, sends
 * nothing and counts for nothing, so that the call in order that follows is good on all
 * ranks, however many wrong ones each of them made. A wait that ends too early leaves its
 * request alone.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/api/vector.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define SIZE	 3
#define COUNT	 6
#define ROOT	 1
#define DEADLINE INT64_C(100000000)
#define RUN_S	 200

/* A call that is in order, as a copy that can be spoiled. */
struct wrong {
	struct weft_call call;
	struct weft_opts opts;
	struct weft_counts counts[2]; /* of the source, of the destination */
	uint64_t numbers[2][REF_RANKS_MAX], at[2][REF_RANKS_MAX];
	struct weft_dynamic dynamic;
	int32_t rank;
	bool data, has[2]; /* the rank has a source, a destination */
	bool table[2];	   /* counts say how its blocks are */
	bool rooted, reduces, is_dynamic;
	size_t elem;
};

struct spoil {
	const char *what;
	bool (*apply)(struct wrong *w); /* false: this call cannot have it */
	enum weft_result want;
	const char *word;
};

static struct weft_buf *buf_of(struct wrong *w, int side)
{
	return side ? &w->call.dst : &w->call.src;
}

/* ---- numbers ------------------------------------------------------------------------
 */

static bool size_small(struct wrong *w)
{
	w->call.size = 8;
	return true;
}

static bool root_below(struct wrong *w)
{
	w->call.root = -1;
	return w->rooted;
}

static bool root_above(struct wrong *w)
{
	w->call.root = SIZE;
	return w->rooted;
}

static bool op_none(struct wrong *w)
{
	w->call.op = (enum weft_op)50;
	return w->reduces;
}

static bool op_user(struct wrong *w)
{
	w->call.op = (enum weft_op)(WEFT_OP_USER + 3);
	return w->reduces;
}

static bool op_bits(struct wrong *w)
{
	w->call.op = WEFT_BXOR;
	return w->reduces;
}

static bool type_bad(struct wrong *w, int side)
{
	buf_of(w, side)->type = (enum weft_type)77;
	return w->has[side];
}

static bool type_src(struct wrong *w)
{
	return type_bad(w, 0);
}

static bool type_dst(struct wrong *w)
{
	return type_bad(w, 1);
}

static bool types_differ(struct wrong *w)
{
	w->call.dst.type = WEFT_INT32;
	return w->has[0] && w->has[1];
}

/* ---- buffers ------------------------------------------------------------------------
 */

static bool null_src(struct wrong *w)
{
	w->call.src.addr = NULL;
	return w->has[0];
}

static bool null_dst(struct wrong *w)
{
	w->call.dst.addr = NULL;
	return w->has[1];
}

static bool kind_src(struct wrong *w)
{
	w->call.src.kind = WEFT_MEM_CUDA;
	return w->has[0];
}

static bool kind_dst(struct wrong *w)
{
	w->call.dst.kind = WEFT_MEM_CUDA;
	return w->has[1];
}

static bool kind_none(struct wrong *w)
{
	w->call.src.kind = (enum weft_mem_kind)77;
	return w->has[0];
}

static bool mem_src(struct wrong *w)
{
	w->call.src.mem = (struct weft_mem *)w;
	return w->has[0];
}

static bool mem_dst(struct wrong *w)
{
	w->call.dst.mem = (struct weft_mem *)w;
	return w->has[1];
}

/* The last element of one is the first of the other. */
static bool overlap_behind(struct wrong *w)
{
	w->call.dst.addr = (char *)w->call.src.addr + (w->call.src.count - 1) * w->elem;
	return w->has[0] && w->has[1];
}

static bool overlap_before(struct wrong *w)
{
	w->call.src.addr = (char *)w->call.dst.addr + (w->call.dst.count - 1) * w->elem;
	return w->has[0] && w->has[1];
}

/* One lies in the other, an element off its place. */
static bool overlap_within(struct wrong *w)
{
	const uint64_t src = w->call.src.count, dst = w->call.dst.count;
	const uint64_t own = (uint64_t)w->rank * COUNT + 1;

	if (src > dst)
		w->call.dst.addr = (char *)w->call.src.addr + own * w->elem;
	else
		w->call.src.addr = (char *)w->call.dst.addr +
				   (src < dst ? own : UINT64_C(1)) * w->elem;
	return w->has[0] && w->has[1] && !w->table[0] && !w->table[1];
}

static bool in_place_apart(struct wrong *w)
{
	w->call.src.addr = w->call.dst.addr;
	return w->call.coll == WEFT_COLL_ALLTOALLV || w->is_dynamic;
}

static bool buffers_two(struct wrong *w)
{
	static float elsewhere[COUNT];

	w->call.src.addr = elsewhere;
	return w->call.coll == WEFT_COLL_BROADCAST;
}

/* ---- lengths ------------------------------------------------------------------------
 */

static bool short_by_one(struct wrong *w, int side)
{
	struct weft_buf *buf = buf_of(w, side);

	if (w->table[side])
		buf->count = vector_span(SIZE, &w->counts[side]);
	buf->count--;
	/* Where there is nothing to compare it with, other ranks find it. */
	return (w->has[0] && w->has[1]) || w->table[side];
}

static bool short_src(struct wrong *w)
{
	return short_by_one(w, 0) && !w->is_dynamic;
}

static bool short_dst(struct wrong *w)
{
	return short_by_one(w, 1) && !w->is_dynamic;
}

static bool short_room(struct wrong *w)
{
	w->call.dst.count = w->dynamic.max_count * SIZE - 1;
	return w->is_dynamic;
}

static bool no_blocks(struct wrong *w)
{
	w->call.src.count--;
	return w->call.coll == WEFT_COLL_ALLTOALL;
}

static bool too_much(struct wrong *w)
{
	w->call.src.count = w->call.dst.count = UINT64_MAX / 2 + 1;
	return w->data;
}

static bool takes_no_send(struct wrong *w)
{
	w->call.send_counts = &w->counts[0];
	return !w->is_dynamic && w->call.coll != WEFT_COLL_REDUCE_SCATTERV &&
	       w->call.coll != WEFT_COLL_ALLTOALLV && w->call.coll != WEFT_COLL_SCATTERV;
}

static bool takes_no_recv(struct wrong *w)
{
	w->call.recv_counts = &w->counts[1];
	return w->call.coll != WEFT_COLL_ALLGATHERV &&
	       w->call.coll != WEFT_COLL_ALLTOALLV && w->call.coll != WEFT_COLL_GATHERV;
}

/* ---- counts -------------------------------------------------------------------------
 */

static bool counts_none(struct wrong *w, int side)
{
	if (side)
		w->call.recv_counts = NULL;
	else
		w->call.send_counts = NULL;
	return w->table[side];
}

static bool counts_none_send(struct wrong *w)
{
	return counts_none(w, 0);
}

static bool counts_none_recv(struct wrong *w)
{
	return counts_none(w, 1);
}

static bool counts_empty_send(struct wrong *w)
{
	w->counts[0].counts = NULL;
	return w->table[0];
}

static bool counts_empty_recv(struct wrong *w)
{
	w->counts[1].counts = NULL;
	return w->table[1];
}

static bool counts_kind_send(struct wrong *w)
{
	w->counts[0].kind = WEFT_MEM_CUDA;
	return w->table[0];
}

static bool counts_kind_recv(struct wrong *w)
{
	w->counts[1].kind = WEFT_MEM_CUDA;
	return w->table[1];
}

static bool counts_more(struct wrong *w, int side)
{
	w->numbers[side][2] = UINT64_MAX;
	w->at[side][2] += 1;
	return w->table[side] && !w->is_dynamic;
}

static bool counts_more_send(struct wrong *w)
{
	return counts_more(w, 0);
}

static bool counts_more_recv(struct wrong *w)
{
	return counts_more(w, 1);
}

/* The second block begins before the first has ended. */
static bool counts_back(struct wrong *w, int side)
{
	w->numbers[side][0] = 2;
	w->at[side][0] = 0;
	w->at[side][1] = 1;
	w->counts[side].displacements = w->at[side];
	return w->table[side] && !w->is_dynamic;
}

static bool counts_back_send(struct wrong *w)
{
	return counts_back(w, 0);
}

static bool counts_back_recv(struct wrong *w)
{
	return counts_back(w, 1);
}

/* What it keeps for itself is of two lengths. */
static bool counts_own(struct wrong *w)
{
	if (!w->numbers[1][w->rank])
		return false;
	w->numbers[1][w->rank]--;
	w->counts[1].displacements = w->at[1];
	return w->table[0] && w->table[1];
}

/* ---- of a dynamic one ---------------------------------------------------------------
 */

static bool dynamic_none(struct wrong *w)
{
	w->call.dynamic = NULL;
	return w->is_dynamic;
}

static bool dynamic_size(struct wrong *w)
{
	w->dynamic.size = 8;
	return w->is_dynamic;
}

static bool dynamic_flags(struct wrong *w)
{
	w->dynamic.flags = 64;
	return w->is_dynamic;
}

static bool dynamic_nowhere(struct wrong *w)
{
	w->dynamic.recv_counts = NULL;
	return w->is_dynamic;
}

static bool dynamic_most(struct wrong *w)
{
	w->dynamic.max_count = UINT64_MAX / 2;
	return w->is_dynamic;
}

/* ---- options ------------------------------------------------------------------------
 */

static bool opts_size(struct wrong *w)
{
	w->opts.size = 4;
	return true;
}

static bool opts_timeout(struct wrong *w)
{
	w->opts.timeout_us = -2;
	return true;
}

static bool opts_flags(struct wrong *w)
{
	w->opts.flags = 32;
	return true;
}

static bool opts_stream(struct wrong *w)
{
	w->opts.stream = w;
	return true;
}

static bool opts_stream_kind(struct wrong *w)
{
	w->opts.stream_kind = WEFT_STREAM_CUDA;
	return true;
}

static bool opts_src_kind(struct wrong *w)
{
	w->opts.src_kind = WEFT_MEM_CUDA;
	return w->has[0];
}

static bool opts_dst_kind(struct wrong *w)
{
	w->opts.dst_kind = WEFT_MEM_CUDA;
	return w->has[1];
}

static bool opts_kind_none(struct wrong *w)
{
	w->opts.dst_kind = (enum weft_mem_kind)77;
	return true;
}

static bool opts_src_mem(struct wrong *w)
{
	w->opts.src_mem = (struct weft_mem *)w;
	return true;
}

static bool opts_dst_mem(struct wrong *w)
{
	w->opts.dst_mem = (struct weft_mem *)w;
	return true;
}

static bool opts_algorithm(struct wrong *w)
{
	w->opts.algorithm = "magic";
	return true;
}

static const struct spoil spoils[] = {
	{"a call of a wrong size", size_small, WEFT_ERR_ARG, "WEFT_CALL_INIT"},
	{"a root below 0", root_below, WEFT_ERR_ARG, "root is -1"},
	{"a root beyond the ranks", root_above, WEFT_ERR_ARG, "root is 3"},
	{"no operation", op_none, WEFT_ERR_ARG, "op is 50"},
	{"an operation nobody made", op_user, WEFT_ERR_ARG, "no such operation"},
	{"bits of fp32", op_bits, WEFT_ERR_UNSUPPORTED, "supported:"},
	{"a source of no type", type_src, WEFT_ERR_ARG, "src.type is 77"},
	{"a destination of no type", type_dst, WEFT_ERR_ARG, "dst.type is 77"},
	{"two types", types_differ, WEFT_ERR_ARG, "the destination int32"},
	{"no source", null_src, WEFT_ERR_ARG, "src is NULL"},
	{"no destination", null_dst, WEFT_ERR_ARG, "dst is NULL"},
	{"a source elsewhere", kind_src, WEFT_ERR_UNSUPPORTED, "src.kind is"},
	{"a destination elsewhere", kind_dst, WEFT_ERR_UNSUPPORTED,
	 ".kind is WEFT_MEM_CUDA, but this process has no GPU"},
	{"a source nowhere", kind_none, WEFT_ERR_ARG, "src.kind is 77"},
	{"a registered source", mem_src, WEFT_ERR_UNSUPPORTED, "src.mem"},
	{"a registered destination", mem_dst, WEFT_ERR_UNSUPPORTED, "dst.mem"},
	{"an overlap behind", overlap_behind, WEFT_ERR_ARG, "overlap"},
	{"an overlap before", overlap_before, WEFT_ERR_ARG, "overlap"},
	{"an overlap within", overlap_within, WEFT_ERR_ARG, "overlap"},
	{"in place", in_place_apart, WEFT_ERR_UNSUPPORTED, "in place"},
	{"two buffers", buffers_two, WEFT_ERR_ARG, "one buffer"},
	{"a short source", short_src, WEFT_ERR_ARG, "elements"},
	{"a short destination", short_dst, WEFT_ERR_ARG, "elements"},
	{"a destination without room", short_room, WEFT_ERR_ARG, "must have"},
	{"blocks of no length", no_blocks, WEFT_ERR_ARG, "no blocks"},
	{"more than memory", too_much, WEFT_ERR_ARG, "more than memory"},
	{"send_counts", takes_no_send, WEFT_ERR_ARG, "takes no send_counts"},
	{"recv_counts", takes_no_recv, WEFT_ERR_ARG, "takes no recv_counts"},
	{"no send_counts", counts_none_send, WEFT_ERR_ARG, "send_counts is NULL"},
	{"no recv_counts", counts_none_recv, WEFT_ERR_ARG, "recv_counts is NULL"},
	{"empty send_counts", counts_empty_send, WEFT_ERR_ARG, "->counts is NULL"},
	{"empty recv_counts", counts_empty_recv, WEFT_ERR_ARG, "->counts is NULL"},
	{"send_counts elsewhere", counts_kind_send, WEFT_ERR_UNSUPPORTED, "send_counts"},
	{"recv_counts elsewhere", counts_kind_recv, WEFT_ERR_UNSUPPORTED,
	 "recv_counts->kind"},
	{"huge send_counts", counts_more_send, WEFT_ERR_ARG, "for rank 2 are more"},
	{"huge recv_counts", counts_more_recv, WEFT_ERR_ARG, "for rank 2 are more"},
	{"blocks that overlap", counts_back_send, WEFT_ERR_ARG, "displacements[1] is 1"},
	{"places that overlap", counts_back_recv, WEFT_ERR_ARG, "displacements[1] is 1"},
	{"an own block of two lengths", counts_own, WEFT_ERR_ARG, "own block"},
	{"no weft_dynamic", dynamic_none, WEFT_ERR_ARG, "dynamic is NULL"},
	{"a short weft_dynamic", dynamic_size, WEFT_ERR_ARG, "WEFT_DYNAMIC_INIT"},
	{"flags of weft_dynamic", dynamic_flags, WEFT_ERR_UNSUPPORTED, "dynamic.flags"},
	{"nowhere for counts", dynamic_nowhere, WEFT_ERR_ARG, "recv_counts is NULL"},
	{"a huge maximum", dynamic_most, WEFT_ERR_ARG, "more than memory"},
	{"short options", opts_size, WEFT_ERR_ARG, "WEFT_OPTS_INIT"},
	{"a negative deadline", opts_timeout, WEFT_ERR_ARG, "timeout_us is -2"},
	{"flags", opts_flags, WEFT_ERR_UNSUPPORTED, "weft_opts.flags"},
	{"a stream of no kind", opts_stream, WEFT_ERR_ARG, "stream_kind"},
	{"a stream", opts_stream_kind, WEFT_ERR_UNSUPPORTED, "stream"},
	{"a kind of source", opts_src_kind, WEFT_ERR_UNSUPPORTED, "no GPU"},
	{"a kind of destination", opts_dst_kind, WEFT_ERR_UNSUPPORTED, "no GPU"},
	{"a kind that is none", opts_kind_none, WEFT_ERR_ARG, "dst_kind is 77"},
	{"a source's memory", opts_src_mem, WEFT_ERR_UNSUPPORTED, "src_mem"},
	{"a destination's memory", opts_dst_mem, WEFT_ERR_UNSUPPORTED, "dst_mem"},
	{"an algorithm that is none", opts_algorithm, WEFT_ERR_ARG, "those there are"},
};

#define SPOILS (sizeof(spoils) / sizeof(spoils[0]))

/* ---- trying them --------------------------------------------------------------------
 */

static bool refused(const struct ranks *r, enum weft_coll coll, const char *what,
		    enum weft_result got, enum weft_result want, const char *word)
{
	if (got == want && strstr(weft_error_detail(), word))
		return true;
	ranks_say(r, "%s, %s: got %s (%s), want %s with \"%s\"", weft_coll_name(coll),
		  what, weft_strerror(got), weft_error_detail(), weft_strerror(want),
		  word);
	return false;
}

/* `c` in its general form, with copies of all that it names. */
static void wrong_fill(struct wrong *w, const struct weft_comm *comm,
		       const struct ref_case *c, const struct case_bufs *b,
		       const struct weft_dynamic *dynamic)
{
	struct ref_blocks blocks[2];

	memset(w, 0, sizeof(*w));
	w->call = case_general(comm, c, b, w->counts, blocks);
	w->opts = (struct weft_opts)WEFT_OPTS_INIT;
	w->rank = weft_comm_rank(comm);
	w->data = c->coll != WEFT_COLL_BARRIER;
	w->has[0] = w->data && blocks[0].n;
	w->has[1] = w->data && blocks[1].n;
	w->table[0] = w->has[0] && w->call.send_counts;
	w->table[1] = w->has[1] && w->call.recv_counts;
	w->rooted = ref_rooted(c->coll);
	w->reduces = ref_reduces(c->coll);
	w->is_dynamic = c->coll == WEFT_COLL_ALLTOALLV_DYNAMIC;
	w->elem = weft_type_size(c->type);
	for (int i = 0; i < 2; i++) {
		memcpy(w->numbers[i], blocks[i].count, sizeof(w->numbers[i]));
		memcpy(w->at[i], blocks[i].at, sizeof(w->at[i]));
		w->counts[i].counts = w->numbers[i];
		if (w->counts[i].displacements)
			w->counts[i].displacements = w->at[i];
	}
	if (w->is_dynamic) {
		w->dynamic = *dynamic;
		w->call.dynamic = &w->dynamic;
	}
}

static bool spoil_try(const struct ranks *r, struct weft_comm *comm,
		      const struct ref_case *c, const struct case_bufs *b,
		      const struct weft_dynamic *dynamic, const struct spoil *s,
		      uint8_t *applied)
{
	struct wrong w;
	struct weft_req *req;

	wrong_fill(&w, comm, c, b, dynamic);
	if (!s->apply(&w))
		return true;
	*applied = 1;
	return refused(r, c->coll, s->what, weft_call_start(comm, &w.call, &w.opts, &req),
		       s->want, s->word) &&
	       refused(r, c->coll, s->what, weft_call_init(comm, &w.call, &w.opts, &req),
		       s->want, s->word);
}

/* By the functions of the collective's own name. */
static bool named_try(const struct ranks *r, struct weft_comm *comm,
		      const struct ref_case *c, const struct case_bufs *b)
{
	struct ref_case wrong = *c;
	struct weft_req *req;

	if (!refused(r, c->coll, "nowhere for a request", case_start(comm, c, b, NULL),
		     WEFT_ERR_ARG, "req is NULL") ||
	    !refused(r, c->coll, "nowhere for a persistent one",
		     case_init(comm, c, b, NULL), WEFT_ERR_ARG, "req is NULL"))
		return false;
	wrong.algorithm = "magic";
	return refused(r, c->coll, "by magic", case_call(comm, &wrong, b), WEFT_ERR_ARG,
		       "those there are") &&
	       refused(r, c->coll, "started by magic", case_start(comm, &wrong, b, &req),
		       WEFT_ERR_ARG, "those there are") &&
	       refused(r, c->coll, "a persistent one by magic",
		       case_init(comm, &wrong, b, &req), WEFT_ERR_ARG, "those there are");
}

static bool stats_same(struct weft_ctx *ctx, struct weft_stats *before)
{
	struct weft_stats now = {.size = sizeof(now)};

	weft_ctx_stats(ctx, &now);
	if (before->size && memcmp(&now, before, sizeof(now)) != 0)
		return false;
	*before = now;
	return true;
}

static bool coll_try(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm,
		     enum weft_coll coll, uint8_t applied[SPOILS])
{
	const struct ref_case c = {.coll = coll,
				   .type = WEFT_FP32,
				   .op = WEFT_SUM,
				   .count = COUNT,
				   .root = ROOT};
	struct weft_counts counts[2];
	struct ref_blocks blocks[2];
	struct weft_stats stats = {0};
	struct case_bufs b;
	bool good = case_bufs_open(&b, &c, r);
	const struct weft_dynamic *dynamic =
		good ? case_general(comm, &c, &b, counts, blocks).dynamic : NULL;

	/* Until all have ended the call before: control messages come when they like. */
	good = good && ranks_barrier(r) && stats_same(ctx, &stats);
	for (size_t i = 0; i < SPOILS && good; i++)
		good = spoil_try(r, comm, &c, &b, dynamic, &spoils[i], &applied[i]);
	good = good && named_try(r, comm, &c, &b);
	if (good && !stats_same(ctx, &stats)) {
		ranks_say(r, "%s: something was sent", weft_coll_name(coll));
		good = false;
	}
	case_bufs_close(&b);
	return case_run(r, comm, &c, false) == RANKS_GOOD && good;
}

static int spoil_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	uint8_t applied[SPOILS] = {0}, all[SIZE * SPOILS];
	bool good = true;

	for (int coll = 0; coll < WEFT_COLL_COUNT; coll++) {
		if (algo_at(weft_coll_name((enum weft_coll)coll), 0))
			good = coll_try(r, ctx, comm, (enum weft_coll)coll, applied) &&
			       good;
	}
	if (!ranks_gather(r, applied, all, sizeof(applied)))
		return ranks_say(r, "the ranks of the test lost each other");
	for (size_t i = 0; i < SPOILS; i++) {
		if (!all[i] && !all[SPOILS + i] && !all[2 * SPOILS + i])
			return ranks_say(r, "%s: no call had it", spoils[i].what);
	}
	return good ? RANKS_GOOD : RANKS_BAD;
}

/* Rank 0 comes when the others have waited in vain. */
static int wait_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	float mine = 1, sum = 0;
	struct weft_req *req = NULL;
	bool good = true;

	(void)ctx;
	if (r->rank != 0) {
		if (weft_allreduce_start(comm, &mine, &sum, 1, WEFT_FP32, WEFT_SUM, NULL,
					 &req) != WEFT_SUCCESS)
			return ranks_say(r, "start: %s", weft_error_detail());
		good = refused(r, WEFT_COLL_ALLREDUCE, "a wait below 0",
			       weft_req_wait(req, -2), WEFT_ERR_ARG, "timeout_us is -2");
		for (int i = 0; i < 2; i++)
			good = refused(r, WEFT_COLL_ALLREDUCE, "a wait in vain",
				       weft_req_wait(req, 2000), WEFT_ERR_TIMEOUT,
				       "the request goes on") &&
			       good;
	}
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank == 0 && weft_allreduce_start(comm, &mine, &sum, 1, WEFT_FP32,
						 WEFT_SUM, NULL, &req) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	if (weft_req_wait(req, 0) != WEFT_SUCCESS || sum != SIZE)
		return ranks_say(r, "%g: %s", (double)sum, weft_error_detail());
	return good ? RANKS_GOOD : RANKS_BAD;
}

enum part { SPOILED, WAITED, PARTS };

static const struct ranks_part parts[PARTS] = {
	[SPOILED] = {SIZE, -1, "every collective refuses what is wrong"},
	[WAITED] = {SIZE, -1, "a wait that ends before its request"},
};

static int (*const bodies[PARTS])(struct ranks *, struct weft_ctx *,
				  struct weft_comm *) = {
	[SPOILED] = spoil_body,
	[WAITED] = wait_body,
};

/* arg: the provider. */
static int job_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = ranks_open(r, r->arg, DEADLINE, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	bad = bodies[r->part](r, ctx, comm);
	if (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return bad;
}

int main(void)
{
	char names[4][32];
	const int count = ranks_providers("weft,tcp", names, 4);

	/* Device memory is refused where there is none. */
	setenv("WEFT_GPU_LIB", "none", 1);
	for (int i = 0; i < count; i++) {
		bool good[PARTS];

		if (!ranks_parts(parts, PARTS, RUN_S, job_body, names[i], good)) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
