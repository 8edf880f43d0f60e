/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in streams over a driver that waits until a device is idle when it allocates,
 * frees, pins or loads (gpu/mock): streams that are held by the application from before
 * the first call, and by calls whose peers come late, while other calls need more memory
 * than there is; a graph that exists meanwhile; what can be prepared and what is
 * refused; a rank that dies while streams wait.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/tests/ranks.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define TIMEOUT	    INT64_C(60000000)
#define PATIENCE_MS 60000
#define SHORT	    ((uint64_t)1000)
/* More than what is pinned when a device is prepared has a piece for. */
#define LONG (((uint64_t)9 << 20) / sizeof(uint32_t))

enum { GO, END, END_2, WORDS };

struct job {
	struct app *app;
	struct gpu *gpu;
	struct weft_ctx *ctx;
	struct weft_comm *comm, *other;
	struct gpu_queue *queue;
	void *stream[2];
	uint32_t *host;	 /* pinned, LONG of them */
	void *memory[2]; /* device, LONG of them each */
	void *words;	 /* pinned */
	uint64_t rounds;
};

static _Atomic uint64_t *word(const struct job *job, int i)
{
	return (_Atomic uint64_t *)(void *)((char *)job->words + 128 * i);
}

static bool stream_word(struct job *job, int s, uint32_t kind, int i, uint64_t value)
{
	const struct gpu_word_op op = {
		.kind = kind, .word = word(job, i), .value = value};

	return gpu_stream_words(job->gpu, 0, job->stream[s], &op, 1) == 0;
}

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	nanosleep(&ts, NULL);
}

static bool comes(const struct job *job, int i, uint64_t value)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (atomic_load(word(job, i)) >= value)
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

/* Through a queue of the test's own, which nothing holds. */
static bool copy(struct job *job, void *dst, const void *src, uint64_t count)
{
	return !gpu_copy(job->queue, dst, src, count * sizeof(uint32_t)) &&
	       !gpu_queue_mark(job->queue) &&
	       !gpu_queue_sync(job->queue, UINT64_C(30000000000));
}

static bool fill(const struct ranks *r, struct job *job, int m, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		job->host[i] = (uint32_t)(i * 3 + (uint32_t)r->rank + (uint32_t)m * 7);
	return copy(job, job->memory[m], job->host, count);
}

static bool is_sum(const struct ranks *r, struct job *job, int m, uint64_t count)
{
	const uint32_t n = (uint32_t)r->size;

	if (!copy(job, job->host, job->memory[m], count))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		if (job->host[i] !=
		    n * (uint32_t)(i * 3 + (uint32_t)m * 7) + n * (n - 1) / 2)
			return false;
	}
	return true;
}

static enum weft_result sum(struct job *job, struct weft_comm *comm, int m,
			    uint64_t count, const struct weft_opts *opts)
{
	return weft_allreduce(comm, job->memory[m], job->memory[m], count, WEFT_UINT32,
			      WEFT_SUM, opts);
}

/* The application holds its stream before any call has named the device, and lets it go
 * when its calls have returned. */
static int first_body(struct ranks *r, struct job *job)
{
	const uint64_t counts[] = {SHORT, LONG};
	struct weft_opts opts = in_stream(job, 0);

	for (uint64_t k = 0; k < 2; k++) {
		if (!fill(r, job, 0, counts[k]) ||
		    !stream_word(job, 0, GPU_WORD_WAIT, GO, k + 1))
			return ranks_say(r, "stream: %s", gpu_error(job->gpu));
		if (sum(job, job->comm, 0, counts[k], &opts) != WEFT_SUCCESS)
			return ranks_say(r, "call: %s", weft_error_detail());
		if (!stream_word(job, 0, GPU_WORD_WRITE, END, k + 1))
			return ranks_say(r, "stream: %s", gpu_error(job->gpu));
		atomic_store(word(job, GO), k + 1);
		if (!comes(job, END, k + 1) || !is_sum(r, job, 0, counts[k]))
			return ranks_say(r, "call %d", (int)k);
	}
	return RANKS_GOOD;
}

/* Rank 0's stream is held by a call that the others make after another one, which needs
 * memory that is not pinned yet. */
static int late_one(struct ranks *r, struct job *job)
{
	struct weft_opts held = in_stream(job, 0), plain = WEFT_OPTS_INIT;
	const uint64_t left = ++job->rounds;

	plain.src_kind = plain.dst_kind = WEFT_MEM_AUTO;
	if (!fill(r, job, 0, LONG) || !fill(r, job, 1, LONG))
		return ranks_say(r, "copy: %s", gpu_error(job->gpu));
	if (r->rank == 0 && sum(job, job->comm, 0, LONG, &held) != WEFT_SUCCESS)
		return ranks_say(r, "held: %s", weft_error_detail());
	if (sum(job, job->other, 1, LONG, &plain) != WEFT_SUCCESS)
		return ranks_say(r, "plain: %s", weft_error_detail());
	if (r->rank && sum(job, job->comm, 0, LONG, &held) != WEFT_SUCCESS)
		return ranks_say(r, "late: %s", weft_error_detail());
	if (!stream_word(job, 0, GPU_WORD_WRITE, END, left) || !comes(job, END, left))
		return ranks_say(r, "the stream does not end");
	return is_sum(r, job, 0, LONG) && is_sum(r, job, 1, LONG)
		       ? RANKS_GOOD
		       : ranks_say(r, "a sum is wrong");
}

/* The same with the other call in a second stream. */
static int late_two(struct ranks *r, struct job *job)
{
	struct weft_opts held = in_stream(job, 0), other = in_stream(job, 1);
	const uint64_t left = ++job->rounds;

	if (!fill(r, job, 0, SHORT) || !fill(r, job, 1, LONG))
		return ranks_say(r, "copy: %s", gpu_error(job->gpu));
	if (r->rank == 0 && sum(job, job->comm, 0, SHORT, &held) != WEFT_SUCCESS)
		return ranks_say(r, "held: %s", weft_error_detail());
	if (sum(job, job->other, 1, LONG, &other) != WEFT_SUCCESS ||
	    !stream_word(job, 1, GPU_WORD_WRITE, END_2, left) || !comes(job, END_2, left))
		return ranks_say(r, "other: %s", weft_error_detail());
	if (r->rank && sum(job, job->comm, 0, SHORT, &held) != WEFT_SUCCESS)
		return ranks_say(r, "late: %s", weft_error_detail());
	if (!stream_word(job, 0, GPU_WORD_WRITE, END, left) || !comes(job, END, left))
		return ranks_say(r, "the stream does not end");
	return is_sum(r, job, 0, SHORT) && is_sum(r, job, 1, LONG)
		       ? RANKS_GOOD
		       : ranks_say(r, "a sum is wrong");
}

static int late_body(struct ranks *r, struct job *job)
{
	int bad = late_two(r, job);

	if (!bad)
		bad = late_one(r, job);
	/* With nothing held it is pinned, and good for calls that are held. */
	if (!bad)
		bad = late_one(r, job);
	return bad;
}

/* A launch of a graph may hold its stream at any time: rank 0 launches first. */
static int graph_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts = in_stream(job, 0), plain = WEFT_OPTS_INIT;
	uint64_t left = ++job->rounds;
	void *graph;

	plain.src_kind = plain.dst_kind = WEFT_MEM_AUTO;
	app_capture_begin(job->app, job->stream[0], 1);
	if (sum(job, job->comm, 0, LONG, &opts) != WEFT_SUCCESS)
		return ranks_say(r, "captured: %s", weft_error_detail());
	graph = app_capture_end(job->app, job->stream[0]);
	if (!graph)
		return ranks_say(r, "no graph");
	for (int k = 0; k < 3; k++, left = ++job->rounds) {
		if (!fill(r, job, 0, LONG) || !fill(r, job, 1, LONG))
			return ranks_say(r, "copy: %s", gpu_error(job->gpu));
		if (r->rank == 0)
			app_graph_launch(job->app, graph, job->stream[0]);
		if (sum(job, job->other, 1, LONG, &plain) != WEFT_SUCCESS)
			return ranks_say(r, "plain: %s", weft_error_detail());
		if (r->rank)
			app_graph_launch(job->app, graph, job->stream[0]);
		if (!stream_word(job, 0, GPU_WORD_WRITE, END, left) ||
		    !comes(job, END, left))
			return ranks_say(r, "launch %d does not end", k);
		if (!is_sum(r, job, 0, LONG) || !is_sum(r, job, 1, LONG))
			return ranks_say(r, "launch %d: a sum is wrong", k);
	}
	app_graph_free(job->app, graph);
	return RANKS_GOOD;
}

static bool refused(struct ranks *r, enum weft_result got, enum weft_result want,
		    const char *text)
{
	if (got == want && strstr(weft_error_detail(), text))
		return true;
	ranks_say(r, "\"%s\": got %s (%s)", text, weft_strerror(got),
		  weft_error_detail());
	return false;
}

/* Prepared while a call of ours holds a stream, and when it does not any more. */
static int prepare_parts(struct ranks *r, struct job *job)
{
	struct weft_opts opts = in_stream(job, 0);
	const uint64_t left = ++job->rounds;

	if (!refused(r, weft_gpu_prepare(job->ctx, 99, 0, 0), WEFT_ERR_ARG,
		     "device is 99") ||
	    !refused(r, weft_gpu_prepare(NULL, 0, 0, 0), WEFT_ERR_ARG, "ctx is NULL") ||
	    !refused(r, weft_gpu_prepare(job->ctx, 0, UINT64_MAX, 1), WEFT_ERR_ARG,
		     "more than memory"))
		return RANKS_BAD;
	if (!fill(r, job, 0, LONG) || !stream_word(job, 0, GPU_WORD_WAIT, GO, 1) ||
	    sum(job, job->comm, 0, LONG, &opts) != WEFT_SUCCESS)
		return ranks_say(r, "call: %s", weft_error_detail());
	/* Of a second device, where there is one, nothing is there yet. */
	if (job->gpu->devices > 1 && !refused(r, weft_gpu_prepare(job->ctx, 1, 0, 0),
					      WEFT_ERR_BUSY, "streams are held"))
		return RANKS_BAD;
	atomic_store(word(job, GO), 1);
	if (!stream_word(job, 0, GPU_WORD_WRITE, END, left) || !comes(job, END, left))
		return ranks_say(r, "the stream does not end");
	if ((job->gpu->devices > 1 &&
	     weft_gpu_prepare(job->ctx, 1, 0, 0) != WEFT_SUCCESS) ||
	    weft_gpu_prepare(job->ctx, 0, LONG * sizeof(uint32_t), 2) != WEFT_SUCCESS ||
	    weft_gpu_prepare(job->ctx, 0, LONG * sizeof(uint32_t), 2) != WEFT_SUCCESS)
		return ranks_say(r, "prepare: %s", weft_error_detail());
	if (app_on_mock(job->app))
		app_knob(job->app, "fail-pin", 1000);
	if ((app_on_mock(job->app) &&
	     !refused(r, weft_gpu_prepare(job->ctx, 0, LONG * sizeof(uint32_t), 3),
		      WEFT_ERR_NOMEM, "does not pin")) ||
	    !refused(r, weft_gpu_prepare(job->ctx, 0, (uint64_t)4 << 30, 1),
		     WEFT_ERR_NOMEM, "WEFT_GPU_PINNED"))
		return RANKS_BAD;
	/* Calls get on without. */
	opts.stream_kind = WEFT_STREAM_NONE;
	opts.stream = NULL;
	return fill(r, job, 1, LONG) &&
			       sum(job, job->comm, 1, LONG, &opts) == WEFT_SUCCESS &&
			       is_sum(r, job, 1, LONG)
		       ? RANKS_GOOD
		       : ranks_say(r, "unpinned: %s", weft_error_detail());
}

static int prepare_body(struct ranks *r, struct job *job)
{
	const int bad = prepare_parts(r, job);

	if (app_on_mock(job->app))
		app_knob(job->app, "fail-pin", 0);
	return bad;
}

/* A bound that is less than a call needs, and values that nobody knows. */
static int bound_body(struct ranks *r, struct job *job)
{
	struct weft_opts plain = WEFT_OPTS_INIT;

	plain.src_kind = plain.dst_kind = WEFT_MEM_AUTO;
	if (!fill(r, job, 0, LONG) ||
	    sum(job, job->comm, 0, LONG, &plain) != WEFT_SUCCESS ||
	    !is_sum(r, job, 0, LONG))
		return ranks_say(r, "call: %s", weft_error_detail());
	return refused(r, weft_gpu_prepare(job->ctx, 0, (uint64_t)2 << 20, 1),
		       WEFT_ERR_NOMEM, "pins 1 MiB at most")
		       ? RANKS_GOOD
		       : RANKS_BAD;
}

static int unknown_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts = in_stream(job, 0);
	uint32_t x = 1, y = 0;

	if (!refused(r, sum(job, job->comm, 0, SHORT, &opts), WEFT_ERR_UNSUPPORTED,
		     "WEFT_GPU_HOLD is \"sometimes\""))
		return RANKS_BAD;
	/* What needs no stream is as good as ever. */
	return weft_allreduce(job->comm, &x, &y, 1, WEFT_UINT32, WEFT_SUM, NULL) ==
				       WEFT_SUCCESS &&
			       y == (uint32_t)r->size
		       ? RANKS_GOOD
		       : ranks_say(r, "host: %s", weft_error_detail());
}

/* The last rank dies while a call of each of two streams waits for it: both go on by the
 * deadline, and from then on every call says so. */
static int dies_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts[2] = {in_stream(job, 0), in_stream(job, 1)};

	opts[0].timeout_us = opts[1].timeout_us = TIMEOUT / 4;
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank + 1 == r->size)
		raise(SIGKILL);
	if (sum(job, job->comm, 0, LONG, &opts[0]) != WEFT_SUCCESS ||
	    sum(job, job->other, 1, SHORT, &opts[1]) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	if (!stream_word(job, 0, GPU_WORD_WRITE, END, 1) ||
	    !stream_word(job, 1, GPU_WORD_WRITE, END_2, 1) || !comes(job, END, 1) ||
	    !comes(job, END_2, 1))
		return ranks_say(r, "a stream waits on");
	for (int i = 0; i < 3; i++) {
		if (!refused(r, sum(job, job->comm, 0, SHORT, &opts[0]), WEFT_ERR_COMM,
			     "failed earlier") ||
		    !refused(r, sum(job, job->other, 1, SHORT, NULL), WEFT_ERR_COMM,
			     "failed earlier"))
			return RANKS_BAD;
	}
	/* The device is nobody's any more, so that memory comes and goes. */
	return weft_gpu_prepare(job->ctx, 0, LONG * sizeof(uint32_t), 2) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : ranks_say(r, "after it: %s", weft_error_detail());
}

enum part { FIRST, LATE, GRAPH, PREPARE, BOUND, UNKNOWN, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[FIRST] = {2, -1, "a stream that is held before the first call"},
	[LATE] = {3, -1, "a stream that a call holds while others need memory"},
	[GRAPH] = {2, -1, "a graph whose launch holds its stream meanwhile"},
	[PREPARE] = {2, -1, "what is prepared, and when it is not"},
	[BOUND] = {2, -1, "no more is pinned than is allowed"},
	[UNKNOWN] = {2, -1, "a way to hold streams that nobody knows"},
	[DIES] = {3, 2, "a rank that dies while two streams wait"},
};

static int (*const bodies[PARTS])(struct ranks *, struct job *) = {
	[FIRST] = first_body,	  [LATE] = late_body,	[GRAPH] = graph_body,
	[PREPARE] = prepare_body, [BOUND] = bound_body, [UNKNOWN] = unknown_body,
	[DIES] = dies_body,
};

static int memory_open(struct ranks *r, struct job *job)
{
	const uint64_t len = LONG * sizeof(uint32_t);
	void *host, *words;

	if (gpu_queue_open(job->gpu, 0, &job->queue) ||
	    gpu_stream_open(job->gpu, 0, &job->stream[0]) ||
	    gpu_stream_open(job->gpu, 0, &job->stream[1]) ||
	    gpu_pinned_alloc(job->gpu, len, &host) ||
	    gpu_pinned_alloc(job->gpu, 4096, &words) ||
	    gpu_alloc(job->gpu, 0, len, &job->memory[0]) ||
	    gpu_alloc(job->gpu, 0, len, &job->memory[1]))
		return ranks_say(r, "memory: %s", gpu_error(job->gpu));
	job->host = host;
	job->words = words;
	return RANKS_GOOD;
}

static int job_open(struct ranks *r, struct job *job)
{
	const char *build = getenv("WEFT_TOP_BUILDDIR");
	char path[4096];
	int bad;

	memset(job, 0, sizeof(*job));
	/* The library takes the same backend as the test. */
	snprintf(path, sizeof(path), "%s/.libs/libweft-gpu.so", build ? build : ".");
	setenv("WEFT_GPU_LIB", path, 1);
	job->app = app_open();
	if (!job->app)
		return RANKS_ABSENT;
	app_device(job->app, 0);
	job->gpu = app_gpu(job->app);
	bad = memory_open(r, job);
	if (r->part == BOUND)
		setenv("WEFT_GPU_PINNED", "1", 1);
	if (r->part == UNKNOWN)
		setenv("WEFT_GPU_HOLD", "sometimes", 1);
	if (!bad)
		bad = ranks_open(r, r->arg, TIMEOUT, &job->ctx);
	if (bad)
		return bad;
	if (weft_comm_create(job->ctx, NULL, &job->comm) != WEFT_SUCCESS ||
	    weft_comm_create(job->ctx, NULL, &job->other) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	return RANKS_GOOD;
}

static bool comm_ends(struct weft_comm *comm)
{
	enum weft_result got = WEFT_ERR_BUSY;

	/* The driver says when a graph is gone, some time after that. */
	for (int ms = 0; got == WEFT_ERR_BUSY && ms < PATIENCE_MS; ms++) {
		got = weft_comm_destroy(comm);
		nap();
	}
	return got == WEFT_SUCCESS;
}

static int job_body(struct ranks *r)
{
	struct job job;
	int bad = job_open(r, &job);

	if (!bad)
		bad = bodies[r->part](r, &job);
	unsetenv("WEFT_GPU_PINNED");
	unsetenv("WEFT_GPU_HOLD");
	if (bad || r->part == DIES)
		return bad;
	if (!comm_ends(job.comm) || !comm_ends(job.other) ||
	    weft_ctx_close(job.ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	gpu_queue_close(job.queue);
	gpu_stream_close(job.gpu, 0, job.stream[0]);
	gpu_stream_close(job.gpu, 0, job.stream[1]);
	gpu_pinned_free(job.gpu, job.host);
	gpu_pinned_free(job.gpu, job.words);
	gpu_free(job.gpu, job.memory[0]);
	gpu_free(job.gpu, job.memory[1]);
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
		if (!ranks_parts(parts, PARTS, 180, job_body, names[i], good)) {
			tap_skip(1, "provider %s or a GPU is not on this machine",
				 names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
