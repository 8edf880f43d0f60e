/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every collective and algorithm on device memory: source, destination or both, of kinds
 * that are said or found out, in place or apart, blocking, started and persistent, short
 * and long, over providers that know nothing of devices. The device's memory is such that
 * a processor that touches it dies, so nothing can be right by chance.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/tests/device_case.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(60000000)

static enum weft_coll coll_of(const struct algo *algo)
{
	int coll = 0;

	while (coll < WEFT_COLL_COUNT &&
	       strcmp(weft_coll_name((enum weft_coll)coll), algo->coll) != 0)
		coll++;
	return (enum weft_coll)coll;
}

struct how {
	enum device_where where;
	bool found; /* kinds are AUTO */
	bool persistent;
	int dst_device;
};

static const struct how hows[] = {
	{DEVICE_BOTH, .found = false},	{DEVICE_BOTH, .found = true, .persistent = true},
	{DEVICE_SRC, .found = false},	{DEVICE_DST, .found = true},
	{DEVICE_BOTH, .dst_device = 1},
};

#define HOWS ((int)(sizeof(hows) / sizeof(hows[0])))

static enum weft_result case_once(struct weft_comm *comm, const struct weft_call *call,
				  const struct weft_opts *opts)
{
	struct weft_req *req;
	enum weft_result got = weft_call_start(comm, call, opts, &req);

	return got == WEFT_SUCCESS ? weft_req_wait(req, WEFT_TIMEOUT_DEFAULT) : got;
}

/* Twice, with other contents: what is left of the first is wrong in the second. */
static int case_repeat(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm,
		       struct ref_case *c, struct device_bufs *b, const struct how *how)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_counts counts[2];
	struct ref_blocks blocks[2];
	struct weft_call call = case_general(comm, c, &b->used, counts, blocks);
	enum weft_result got = WEFT_SUCCESS;
	struct weft_req *req = NULL;
	int bad = RANKS_GOOD;

	opts.algorithm = c->algorithm;
	device_bufs_say(b, how->found, &call);
	if (how->persistent)
		got = weft_call_init(comm, &call, &opts, &req);
	for (int i = 0; i < 2 && !bad && got == WEFT_SUCCESS; i++) {
		/* The blocks of a (v) form depend on it. */
		c->salt += i && !ref_vector(c->coll) &&
			   c->coll != WEFT_COLL_ALLTOALLV_DYNAMIC;
		if (i && !device_bufs_refill(g, b, c, r))
			return ranks_say(r, "refill: %s", gpu_error(g->gpu));
		if (how->persistent) {
			got = weft_req_start(req);
			if (got == WEFT_SUCCESS)
				got = weft_req_wait(req, WEFT_TIMEOUT_DEFAULT);
		} else {
			got = case_once(comm, &call, &opts);
		}
		if (got == WEFT_SUCCESS)
			bad = device_check(g, r, c, b);
	}
	if (got == WEFT_SUCCESS && req)
		got = weft_req_free(req);
	return got == WEFT_SUCCESS ? bad : ranks_say(r, "%s", weft_error_detail());
}

static int case_do(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm,
		   struct ref_case *c, const struct how *how)
{
	struct device_bufs b;
	char text[200];
	int bad;

	ref_case_print(c, text, sizeof(text));
	if (!device_bufs_open(
		    g, &b, c, r, how->where, 0,
		    c->in_place || c->coll == WEFT_COLL_BROADCAST ? 0 : how->dst_device))
		return ranks_say(r, "%s: no memory", text);
	bad = case_repeat(r, g, comm, c, &b, how);
	device_bufs_close(g, &b);
	return bad ? ranks_say(r, "%s (where %d)", text, (int)how->where) : RANKS_GOOD;
}

static const uint64_t counts_short[] = {9, 30011};
static const uint64_t counts_long[] = {700001};

/* Each algorithm with each count; ways and places take turns. */
static int all_do(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm,
		  const uint64_t *counts, int count_n, int step)
{
	int turn = 0, bad = RANKS_GOOD;

	for (size_t a = 0; a < algo_count && !bad; a++) {
		const enum weft_coll coll = coll_of(&algo_table[a]);
		struct ref_case c = {.coll = coll,
				     .algorithm = algo_table[a].name,
				     .type = WEFT_INT32,
				     .op = a % 2 ? WEFT_SUM : WEFT_AVG,
				     .root = (int32_t)a % r->size,
				     .salt = (uint32_t)a};

		if (coll == WEFT_COLL_BARRIER)
			continue;
		for (int v = 0; v < 2 * HOWS * count_n && !bad; v += step) {
			c.count = counts[v / (2 * HOWS)];
			c.in_place = (v / HOWS) % 2 && !ref_apart(coll) &&
				     coll != WEFT_COLL_BROADCAST;
			c.salt++;
			bad = case_do(r, g, comm, &c, &hows[turn++ % HOWS]);
		}
	}
	return bad;
}

/* Plain calls, whose kinds are in the options. */
static int plain_do(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm)
{
	struct ref_case c = {.coll = WEFT_COLL_ALLREDUCE,
			     .type = WEFT_FP32,
			     .op = WEFT_SUM,
			     .count = 1000};
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct device_bufs b;
	int bad;

	opts.src_kind = opts.dst_kind = WEFT_MEM_CUDA;
	if (!device_bufs_open(g, &b, &c, r, DEVICE_BOTH, 0, 0))
		return ranks_say(r, "no memory");
	if (weft_allreduce(comm, b.used.src, b.used.dst, c.count, c.type, c.op, &opts) !=
	    WEFT_SUCCESS)
		return ranks_say(r, "all-reduce: %s", weft_error_detail());
	bad = device_check(g, r, &c, &b);
	device_bufs_close(g, &b);
	c = (struct ref_case){
		.coll = WEFT_COLL_BROADCAST, .type = WEFT_UINT8, .count = 300001};
	if (bad || !device_bufs_open(g, &b, &c, r, DEVICE_BOTH, 0, 0))
		return ranks_say(r, "all-reduce was wrong, or no memory");
	/* One buffer: either kind says it. */
	opts.src_kind = WEFT_MEM_HOST;
	if (weft_broadcast(comm, b.used.dst, c.count, c.type, 0, &opts) != WEFT_SUCCESS)
		return ranks_say(r, "broadcast: %s", weft_error_detail());
	bad = device_check(g, r, &c, &b);
	device_bufs_close(g, &b);
	return bad;
}

/* A message of an even rank to the next, which knows what a broadcast of that one is. */
static int pair_do(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm,
		   uint64_t count)
{
	const bool sends = r->rank % 2 == 0;
	const int32_t peer = sends ? r->rank + 1 : r->rank - 1;
	const struct ref_case c = {.coll = WEFT_COLL_BROADCAST,
				   .type = WEFT_UINT16,
				   .count = count,
				   .root = sends ? r->rank : peer};
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct device_bufs b;
	enum weft_result got;
	int bad = RANKS_GOOD;

	if (peer >= r->size)
		return RANKS_GOOD;
	opts.src_kind = opts.dst_kind = WEFT_MEM_AUTO;
	if (!device_bufs_open(g, &b, &c, r, DEVICE_BOTH, 0, 0))
		return ranks_say(r, "no memory");
	got = sends ? weft_send(comm, b.used.dst, count, c.type, peer, &opts)
		    : weft_recv(comm, b.used.dst, count, c.type, peer, &opts);
	if (got != WEFT_SUCCESS)
		return ranks_say(r, "message: %s", weft_error_detail());
	if (!sends)
		bad = device_check(g, r, &c, &b);
	device_bufs_close(g, &b);
	return bad;
}

static int pairs_do(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm)
{
	const uint64_t counts[] = {1, 5000, 600001};
	int bad = RANKS_GOOD;

	for (int i = 0; i < 3 && !bad; i++)
		bad = pair_do(r, g, comm, counts[i]);
	return bad;
}

/* A window of one rank that lies on the device is refused by all, who go on. */
static int window_do(struct ranks *r, struct device_case_gpu *g, struct weft_comm *comm)
{
	const int32_t odd = r->size - 1;
	struct weft_win *win;
	uint64_t host[16];
	void *there;

	if (gpu_alloc(g->gpu, 0, sizeof(host), &there))
		return ranks_say(r, "no memory");
	if (weft_win_create(comm, r->rank == odd ? there : host, sizeof(host), NULL,
			    &win) != WEFT_ERR_UNSUPPORTED ||
	    !strstr(weft_error_detail(), "base is memory of GPU 0"))
		return ranks_say(r, "window: %s", weft_error_detail());
	gpu_free(g->gpu, there);
	return weft_win_create(comm, host, sizeof(host), NULL, &win) == WEFT_SUCCESS &&
			       weft_win_destroy(win) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : ranks_say(r, "window of the host: %s", weft_error_detail());
}

enum part { SHORT_4, LONG_4, SHORT_3, SHORT_2, LONG_2, SHORT_1, PARTS };

static const struct ranks_part parts[PARTS] = {
	[SHORT_4] = {4, -1, "all of them on 4 ranks"},
	[LONG_4] = {4, -1, "long ones on 4 ranks"},
	[SHORT_3] = {3, -1, "all of them on 3 ranks"},
	[SHORT_2] = {2, -1, "all of them on 2 ranks"},
	[LONG_2] = {2, -1, "long ones on 2 ranks"},
	[SHORT_1] = {1, -1, "all of them on 1 rank"},
};

static int job_body(struct ranks *r)
{
	struct device_case_gpu g;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad = device_gpu_open(r, &g);

	if (!bad)
		bad = ranks_open(r, r->arg, TIMEOUT, &ctx);
	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (r->part == LONG_4 || r->part == LONG_2)
		bad = all_do(r, &g, comm, counts_long, 1, r->part == LONG_4 ? 5 : 3);
	else
		bad = all_do(r, &g, comm, counts_short, 2, r->part == SHORT_4 ? 1 : 3);
	if (!bad)
		bad = plain_do(r, &g, comm);
	if (!bad)
		bad = pairs_do(r, &g, comm);
	if (!bad)
		bad = window_do(r, &g, comm);
	if (!bad && (weft_comm_destroy(comm) != WEFT_SUCCESS ||
		     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = ranks_say(r, "close: %s", weft_error_detail());
	if (!bad)
		device_gpu_close(&g);
	return bad;
}

int main(void)
{
	char names[8][32];
	bool good[PARTS];
	int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		if (!ranks_parts(parts, PARTS, 240, job_body, names[i], good)) {
			tap_skip(1, "provider %s or a GPU is not on this machine",
				 names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
