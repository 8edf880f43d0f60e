/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives in graphs: captured once, launched many times with other contents, between
 * what comes before and after them in the stream; several in one graph, and two graphs
 * whose launches ranks give in the same order on streams of their own, beside plain calls
 * in another order; a dynamic all-to-allv whose lengths change from launch to launch;
 * what is refused; a rank that dies while a launch waits; and the end.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/tests/dynamic_case.h"
#include "coll/tests/ranks.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define TIMEOUT	    INT64_C(60000000)
#define PATIENCE_MS 60000
#define COUNT	    100003
#define LAUNCHES    4

struct job {
	struct app *app;
	struct gpu *gpu;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	void *stream[2];
	uint32_t *in[2], *out[2]; /* pinned */
	void *src[2], *dst[2];	  /* device */
	_Atomic uint64_t *end[2]; /* launches that are over, by stream */
};

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	nanosleep(&ts, NULL);
}

static bool comes(const struct job *job, int s, uint64_t value)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (atomic_load(job->end[s]) >= value)
			return true;
		nap();
	}
	return false;
}

static struct weft_opts in_stream(struct job *job, int s)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.src_kind = opts.dst_kind = WEFT_MEM_AUTO;
	opts.stream_kind = WEFT_STREAM_CUDA;
	opts.stream = job->stream[s];
	return opts;
}

static bool copy(struct job *job, int s, void *dst, const void *src)
{
	return gpu_stream_copy(job->gpu, 0, job->stream[s], dst, src,
			       COUNT * sizeof(uint32_t)) == 0;
}

static bool mark(struct job *job, int s, uint64_t value)
{
	const struct gpu_word_op op = {
		.kind = GPU_WORD_WRITE, .word = job->end[s], .value = value};

	return gpu_stream_words(job->gpu, 0, job->stream[s], &op, 1) == 0;
}

/* in -> src, summed up into dst, that broadcast by rank 0 in place, dst -> out. */
static void *capture(struct ranks *r, struct job *job, int s)
{
	struct weft_opts opts = in_stream(job, s);
	enum weft_result got[2];

	app_capture_begin(job->app, job->stream[s], 1);
	if (!copy(job, s, job->src[s], job->in[s]))
		return NULL;
	got[0] = weft_allreduce(job->comm, job->src[s], job->dst[s], COUNT, WEFT_UINT32,
				WEFT_SUM, &opts);
	if (got[0] != WEFT_SUCCESS) {
		ranks_say(r, "capturing: %s", weft_error_detail());
		return NULL;
	}
	got[1] = weft_broadcast(job->comm, job->dst[s], COUNT, WEFT_UINT32, 0, &opts);
	if (got[1] != WEFT_SUCCESS || !copy(job, s, job->out[s], job->dst[s])) {
		ranks_say(r, "capturing: %s", weft_error_detail());
		return NULL;
	}
	return app_capture_end(job->app, job->stream[s]);
}

static void fill(const struct ranks *r, struct job *job, int s, uint32_t round)
{
	for (uint32_t i = 0; i < COUNT; i++)
		job->in[s][i] = i * 3 + round * 100 + (uint32_t)r->rank;
}

static bool is_right(const struct ranks *r, const struct job *job, int s, uint32_t round)
{
	const uint32_t n = (uint32_t)r->size;

	for (uint32_t i = 0; i < COUNT; i++) {
		if (job->out[s][i] != n * (i * 3 + round * 100) + n * (n - 1) / 2)
			return false;
	}
	return true;
}

/* Launches are one behind the other; contents change between them. Plain calls are made
 * by some ranks before a launch, by others after it. */
static int replay_body(struct ranks *r, struct job *job)
{
	void *graph = capture(r, job, 0);
	uint32_t one = 1, sum;

	if (!graph)
		return ranks_say(r, "no graph");
	for (uint32_t round = 1; round <= LAUNCHES; round++) {
		fill(r, job, 0, round);
		if (r->rank % 2 && weft_allreduce(job->comm, &one, &sum, 1, WEFT_UINT32,
						  WEFT_SUM, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "plain: %s", weft_error_detail());
		app_graph_launch(job->app, graph, job->stream[0]);
		if (!mark(job, 0, round))
			return ranks_say(r, "stream: %s", gpu_error(job->gpu));
		if (r->rank % 2 == 0 &&
		    weft_allreduce(job->comm, &one, &sum, 1, WEFT_UINT32, WEFT_SUM,
				   NULL) != WEFT_SUCCESS)
			return ranks_say(r, "plain: %s", weft_error_detail());
		if (!comes(job, 0, round))
			return ranks_say(r, "launch %u does not end", round);
		if (!is_right(r, job, 0, round))
			return ranks_say(r, "launch %u: wrong", round);
	}
	if (weft_comm_destroy(job->comm) != WEFT_ERR_BUSY ||
	    !strstr(weft_error_detail(), "graphs exist"))
		return ranks_say(r, "destroyed under a graph");
	app_graph_free(job->app, graph);
	return RANKS_GOOD;
}

/* Two graphs on two streams: launched one behind the other without a wait. */
static int two_body(struct ranks *r, struct job *job)
{
	void *graph[2] = {capture(r, job, 0), capture(r, job, 1)};

	if (!graph[0] || !graph[1])
		return ranks_say(r, "no graphs");
	for (uint32_t round = 1; round <= LAUNCHES; round++) {
		for (int k = 0; k < 2; k++) {
			/* Ranks do not share the order of the two. */
			const int s = (k + r->rank) % 2;

			fill(r, job, s, round + 50 * (uint32_t)s);
			app_graph_launch(job->app, graph[s], job->stream[s]);
			if (!mark(job, s, round))
				return ranks_say(r, "stream: %s", gpu_error(job->gpu));
		}
		for (int s = 0; s < 2; s++) {
			if (!comes(job, s, round) ||
			    !is_right(r, job, s, round + 50 * (uint32_t)s))
				return ranks_say(r, "graph %d, launch %u: wrong", s,
						 round);
		}
	}
	app_graph_free(job->app, graph[0]);
	app_graph_free(job->app, graph[1]);
	return RANKS_GOOD;
}

/* Lengths of a launch are what was written before it in the graph. in -> src, counts and
 * lists, dispatched into dst by lists of blocks, dst and what came -> out. */
struct tables {
	struct dynamic_shape shape;
	struct dynamic_job host; /* its arrays are what the graph copies */
	void *src, *dst, *counts, *list, *got;
	uint64_t *pinned; /* what the graph reads and writes, of the host */
	char *data;
};

static bool tables_open(const struct ranks *r, struct job *job, struct tables *t)
{
	const uint64_t n = (uint64_t)r->size;
	void *pinned, *data;

	t->shape = (struct dynamic_shape){.size = r->size,
					  .sends = BY_LIST,
					  .takes = PACKED,
					  .type = WEFT_UINT32,
					  .block = 100,
					  .max_count = 30,
					  .src_blocks = n * 30,
					  .dst_blocks = n * 30};
	if (!dynamic_job_open(&t->host, &t->shape, r->rank) ||
	    gpu_pinned_alloc(job->gpu, (2 * n + n * 30) * 8, &pinned) ||
	    gpu_pinned_alloc(job->gpu, 2 * n * 30 * t->host.unit, &data) ||
	    gpu_alloc(job->gpu, 0, n * 30 * t->host.unit, &t->src) ||
	    gpu_alloc(job->gpu, 0, n * 30 * t->host.unit, &t->dst) ||
	    gpu_alloc(job->gpu, 0, n * 8, &t->counts) ||
	    gpu_alloc(job->gpu, 0, n * 8, &t->got) ||
	    gpu_alloc(job->gpu, 0, n * 30 * 8, &t->list))
		return false;
	t->pinned = pinned;
	t->data = data;
	return true;
}

static void tables_close(struct job *job, struct tables *t)
{
	dynamic_job_close(&t->host);
	gpu_pinned_free(job->gpu, t->pinned);
	gpu_pinned_free(job->gpu, t->data);
	gpu_free(job->gpu, t->src);
	gpu_free(job->gpu, t->dst);
	gpu_free(job->gpu, t->counts);
	gpu_free(job->gpu, t->got);
	gpu_free(job->gpu, t->list);
}

static void *tables_capture(struct ranks *r, struct job *job, struct tables *t)
{
	const size_t n = (size_t)r->size, len = n * 30 * t->host.unit;
	struct weft_opts opts = in_stream(job, 0);
	struct weft_counts send = {.counts = t->counts, .kind = WEFT_MEM_CUDA};
	struct weft_dynamic d = t->host.dynamic;
	struct gpu *gpu = job->gpu;
	void *s = job->stream[0];

	d.send_blocks = t->list;
	d.recv_counts = t->got;
	d.kind = WEFT_MEM_CUDA;
	app_capture_begin(job->app, s, 1);
	if (gpu_stream_copy(gpu, 0, s, t->counts, t->pinned, n * 8) ||
	    gpu_stream_copy(gpu, 0, s, t->list, t->pinned + 2 * n, n * 30 * 8) ||
	    gpu_stream_copy(gpu, 0, s, t->src, t->data, len) ||
	    gpu_stream_copy(gpu, 0, s, t->dst, t->data + len, len))
		return NULL;
	if (weft_alltoallv_dynamic(job->comm, t->src, n * 30 * 100, &send, t->dst,
				   n * 30 * 100, &d, WEFT_UINT32,
				   &opts) != WEFT_SUCCESS) {
		ranks_say(r, "capturing: %s", weft_error_detail());
		return NULL;
	}
	if (gpu_stream_copy(gpu, 0, s, t->pinned + n, t->got, n * 8) ||
	    gpu_stream_copy(gpu, 0, s, t->data + len, t->dst, len))
		return NULL;
	return app_capture_end(job->app, s);
}

/* What a launch that was wrong may have failed of. */
static const char *why(struct job *job)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.timeout_us = 1000000;
	return weft_barrier(job->comm, &opts) == WEFT_SUCCESS ? "nothing has failed"
							      : weft_error_detail();
}

static int dynamic_body(struct ranks *r, struct job *job)
{
	const size_t n = (size_t)r->size;
	struct tables t;
	void *graph;
	int bad = RANKS_GOOD;

	if (!tables_open(r, job, &t))
		return ranks_say(r, "no memory");
	graph = tables_capture(r, job, &t);
	if (!graph)
		return ranks_say(r, "no graph");
	for (uint32_t round = 1; round <= LAUNCHES && !bad; round++) {
		const size_t len = n * 30 * t.host.unit;

		t.shape.salt = round;
		dynamic_job_fill(&t.host, r->rank);
		memcpy(t.pinned, t.host.counts, n * 8);
		memcpy(t.pinned + 2 * n, t.host.send_blocks, n * 30 * 8);
		memcpy(t.data, t.host.src, len);
		memcpy(t.data + len, t.host.dst, len);
		app_graph_launch(job->app, graph, job->stream[0]);
		if (!mark(job, 0, round) || !comes(job, 0, round))
			return ranks_say(r, "launch %u does not end", round);
		memcpy(t.host.got, t.pinned + n, n * 8);
		memcpy(t.host.dst, t.data + len, len);
		bad = dynamic_job_check(r, &t.host);
		if (bad)
			ranks_say(r, "launch %u: %s", round, why(job));
	}
	app_graph_free(job->app, graph);
	tables_close(job, &t);
	return bad;
}

static int refused_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts = in_stream(job, 0);
	struct weft_req *req;
	enum weft_result got;

	app_capture_begin(job->app, job->stream[0], 1);
	got = weft_barrier_start(job->comm, &opts, &req);
	if (got != WEFT_ERR_UNSUPPORTED || !strstr(weft_error_detail(), "captured"))
		return ranks_say(r, "_start: %s (%s)", weft_strerror(got),
				 weft_error_detail());
	app_graph_free(job->app, app_capture_end(job->app, job->stream[0]));
	return RANKS_GOOD;
}

/* The last rank dies before a launch: the streams of the others go on, and the
 * communicator says why. */
static int dies_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	void *graph = capture(r, job, 0);
	enum weft_result got;

	if (!graph)
		return ranks_say(r, "no graph");
	fill(r, job, 0, 1);
	app_graph_launch(job->app, graph, job->stream[0]);
	if (!mark(job, 0, 1) || !comes(job, 0, 1) || !is_right(r, job, 0, 1) ||
	    !ranks_barrier(r))
		return ranks_say(r, "the first launch is wrong");
	if (r->rank + 1 == r->size)
		raise(SIGKILL);
	app_graph_launch(job->app, graph, job->stream[0]);
	app_graph_launch(job->app, graph, job->stream[0]);
	if (!mark(job, 0, 2) || !comes(job, 0, 2))
		return ranks_say(r, "the stream waits on");
	got = weft_barrier(job->comm, &opts);
	if (got != WEFT_ERR_COMM)
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	return RANKS_GOOD;
}

enum part { REPLAY, TWO, DYNAMIC, REFUSED, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[REPLAY] = {3, -1, "launched again and again"},
	[TWO] = {2, -1, "two graphs on two streams"},
	[DYNAMIC] = {3, -1, "lengths that each launch reads on the device"},
	[REFUSED] = {2, -1, "what is refused"},
	[DIES] = {3, 2, "a rank that dies between launches"},
};

static int (*const bodies[PARTS])(struct ranks *, struct job *) = {
	[REPLAY] = replay_body,	  [TWO] = two_body,   [DYNAMIC] = dynamic_body,
	[REFUSED] = refused_body, [DIES] = dies_body,
};

static bool side_open(struct job *job, int s)
{
	const uint64_t len = COUNT * sizeof(uint32_t);
	void *in, *out, *end;

	if (gpu_stream_open(job->gpu, 0, &job->stream[s]) ||
	    gpu_pinned_alloc(job->gpu, len, &in) ||
	    gpu_pinned_alloc(job->gpu, len, &out) ||
	    gpu_pinned_alloc(job->gpu, 4096, &end) ||
	    gpu_alloc(job->gpu, 0, len, &job->src[s]) ||
	    gpu_alloc(job->gpu, 0, len, &job->dst[s]))
		return false;
	job->in[s] = in;
	job->out[s] = out;
	job->end[s] = end;
	return true;
}

static int job_open(struct ranks *r, struct job *job)
{
	const char *build = getenv("WEFT_TOP_BUILDDIR");
	char path[4096];
	int bad;

	/* The library takes the same backend as the test. */
	snprintf(path, sizeof(path), "%s/.libs/libweft-gpu.so", build ? build : ".");
	setenv("WEFT_GPU_LIB", path, 1);
	job->app = app_open();
	if (!job->app)
		return RANKS_ABSENT;
	app_device(job->app, 0);
	job->gpu = app_gpu(job->app);
	bad = ranks_open(r, r->arg, TIMEOUT, &job->ctx);
	if (bad)
		return bad;
	if (weft_comm_create(job->ctx, NULL, &job->comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (!side_open(job, 0) || !side_open(job, 1))
		return ranks_say(r, "stream: %s", gpu_error(job->gpu));
	return RANKS_GOOD;
}

static void side_close(struct job *job, int s)
{
	gpu_stream_close(job->gpu, 0, job->stream[s]);
	gpu_pinned_free(job->gpu, job->in[s]);
	gpu_pinned_free(job->gpu, job->out[s]);
	gpu_pinned_free(job->gpu, (void *)(uintptr_t)job->end[s]);
	gpu_free(job->gpu, job->src[s]);
	gpu_free(job->gpu, job->dst[s]);
}

static int job_body(struct ranks *r)
{
	struct job job;
	enum weft_result got = WEFT_ERR_BUSY;
	int bad = job_open(r, &job);

	if (!bad)
		bad = bodies[r->part](r, &job);
	if (bad || r->part == DIES)
		return bad;
	/* The driver says when a graph is gone, some time after that. */
	for (int ms = 0; got == WEFT_ERR_BUSY && ms < PATIENCE_MS; ms++) {
		got = weft_comm_destroy(job.comm);
		nap();
	}
	if (got != WEFT_SUCCESS || weft_ctx_close(job.ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	side_close(&job, 0);
	side_close(&job, 1);
	gpu_close(job.gpu);
	return RANKS_GOOD;
}

/* Ranks that lost a peer leave with memory held (rule D3). */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	char names[8][32];
	bool good[PARTS];
	int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		if (!ranks_parts(parts, PARTS, 120, job_body, names[i], good)) {
			tap_skip(1, "provider %s or a GPU is not on this machine",
				 names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
