/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives in streams: none begins before its stream has come there, and the stream
 * does not go on before the result is there; calls return at once, also blocking ones;
 * several streams and communicators; a rank that dies while streams wait; a device that
 * fails; and what is refused.
 */
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/tests/device_case.h"
#include "util/tap.h"

#define TIMEOUT	    INT64_C(60000000)
#define PATIENCE_MS 60000
#define CALLS	    6

struct job {
	struct device_case_gpu g;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	void *stream[2];
	void *words; /* pinned */
};

static _Atomic uint64_t *word(const struct job *job, int i)
{
	return (_Atomic uint64_t *)(void *)((char *)job->words + 128 * i);
}

static bool stream_word(struct job *job, int s, uint32_t kind, int i, uint64_t value)
{
	const struct gpu_word_op op = {
		.kind = kind, .word = word(job, i), .value = value};

	return gpu_stream_words(job->g.gpu, 0, job->stream[s], &op, 1) == 0;
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

/*
 * What an earlier step of the stream writes is what is added up, and a later step reads
 * the sum: the stream itself copies in before and out behind each call, with no wait of
 * the host between. Sources are poison until the stream is let go.
 */
static int order_run(struct ranks *r, struct job *job, uint64_t count, bool in_place)
{
	const size_t len = count * sizeof(uint32_t);
	struct weft_opts opts = in_stream(job, 0);
	struct gpu *gpu = job->g.gpu;
	uint32_t *in, *out;
	void *src, *dst, *host;
	uint64_t left = atomic_load(word(job, 1)) + 1;
	const uint64_t go = atomic_load(word(job, 0)) + 1;

	if (gpu_pinned_alloc(gpu, 2 * CALLS * len + 4096, &host) ||
	    gpu_alloc(gpu, 0, len, &src) || gpu_alloc(gpu, 0, len, &dst))
		return ranks_say(r, "memory: %s", gpu_error(gpu));
	in = host;
	out = in + CALLS * count;
	if (!stream_word(job, 0, GPU_WORD_WAIT, 0, go))
		return ranks_say(r, "stream: %s", gpu_error(gpu));
	for (uint32_t k = 0; k < CALLS; k++) {
		for (uint64_t i = 0; i < count; i++)
			in[k * count + i] =
				(uint32_t)(i * 7 + k * 1000 + (uint32_t)r->rank);
		if (gpu_stream_copy(gpu, 0, job->stream[0], in_place ? dst : src,
				    in + k * count, len))
			return ranks_say(r, "copy: %s", gpu_error(gpu));
		if (weft_allreduce(job->comm, in_place ? dst : src, dst, count,
				   WEFT_UINT32, WEFT_SUM, &opts) != WEFT_SUCCESS)
			return ranks_say(r, "call: %s", weft_error_detail());
		if (gpu_stream_copy(gpu, 0, job->stream[0], out + k * count, dst, len))
			return ranks_say(r, "copy: %s", gpu_error(gpu));
	}
	if (!stream_word(job, 0, GPU_WORD_WRITE, 1, left))
		return ranks_say(r, "stream: %s", gpu_error(gpu));
	/* All calls returned while the stream had not even begun. */
	if (atomic_load(word(job, 1)) >= left)
		return ranks_say(r, "the stream went on before it was let go");
	atomic_store(word(job, 0), go);
	if (!comes(job, 1, left))
		return ranks_say(r, "the stream does not end");
	for (uint32_t k = 0; k < CALLS; k++) {
		for (uint64_t i = 0; i < count; i++) {
			const uint32_t ranks = (uint32_t)r->size;
			const uint32_t want = ranks * (uint32_t)(i * 7 + k * 1000) +
					      ranks * (ranks - 1) / 2;

			if (out[k * count + i] != want)
				return ranks_say(r, "call %u: element %llu is wrong", k,
						 (unsigned long long)i);
		}
	}
	gpu_free(gpu, src);
	gpu_free(gpu, dst);
	gpu_pinned_free(gpu, host);
	return RANKS_GOOD;
}

static int order_body(struct ranks *r, struct job *job)
{
	int bad = order_run(r, job, 5, false);

	if (!bad)
		bad = order_run(r, job, 5, true);
	if (!bad)
		bad = order_run(r, job, 200003, false);
	if (!bad)
		bad = order_run(r, job, 200003, true);
	return bad;
}

/* A request of a call in a stream says how it went; host memory and a barrier, too. */
static int requests_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts = in_stream(job, 1);
	struct weft_req *req[2], *again;
	uint32_t x = 1, sum = 0;
	int done = 1;

	opts.src_kind = opts.dst_kind = WEFT_MEM_HOST;
	if (!stream_word(job, 1, GPU_WORD_WAIT, 2, 1) ||
	    weft_allreduce_start(job->comm, &x, &sum, 1, WEFT_UINT32, WEFT_SUM, &opts,
				 &req[0]) != WEFT_SUCCESS ||
	    weft_barrier_start(job->comm, &opts, &req[1]) != WEFT_SUCCESS ||
	    !stream_word(job, 1, GPU_WORD_WRITE, 3, 1))
		return ranks_say(r, "start: %s", weft_error_detail());
	for (int i = 0; i < 20; i++) {
		if (weft_req_test(req[0], &done) != WEFT_SUCCESS || done)
			return ranks_say(r, "it ended before its stream came there");
		nap();
	}
	if (weft_req_wait(req[0], 20000) != WEFT_ERR_TIMEOUT)
		return ranks_say(r, "it was done before its stream came there");
	x = 2;
	atomic_store(word(job, 2), 1);
	if (!comes(job, 3, 1) || weft_req_wait(req[0], 0) != WEFT_SUCCESS ||
	    weft_req_wait(req[1], 0) != WEFT_SUCCESS || sum != 2 * (uint32_t)r->size)
		return ranks_say(r, "wait: %s", weft_error_detail());
	/* A persistent one is put into the stream by each start. */
	if (weft_allreduce_init(job->comm, &x, &sum, 1, WEFT_UINT32, WEFT_SUM, &opts,
				&again) != WEFT_SUCCESS)
		return ranks_say(r, "init: %s", weft_error_detail());
	for (uint64_t i = 0; i < 3; i++) {
		x = (uint32_t)i + 5;
		if (weft_req_start(again) != WEFT_SUCCESS ||
		    !stream_word(job, 1, GPU_WORD_WRITE, 4, i + 1) ||
		    !comes(job, 4, i + 1) || sum != x * (uint32_t)r->size ||
		    weft_req_wait(again, 0) != WEFT_SUCCESS)
			return ranks_say(r, "round %d: %s", (int)i, weft_error_detail());
	}
	return weft_req_free(again) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : ranks_say(r, "free: %s", weft_error_detail());
}

/* Two streams and two communicators: what one waits for the other does not. */
static int two_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts[2] = {in_stream(job, 0), in_stream(job, 1)};
	struct weft_comm *other;
	struct weft_req *req[2];
	uint32_t x = 3, sum[2] = {0};

	if (weft_comm_dup(job->comm, NULL, &other) != WEFT_SUCCESS)
		return ranks_say(r, "dup: %s", weft_error_detail());
	if (!stream_word(job, 0, GPU_WORD_WAIT, 5, 1) ||
	    weft_allreduce_start(job->comm, &x, &sum[0], 1, WEFT_UINT32, WEFT_SUM,
				 &opts[0], &req[0]) != WEFT_SUCCESS ||
	    weft_allreduce_start(other, &x, &sum[1], 1, WEFT_UINT32, WEFT_SUM, &opts[1],
				 &req[1]) != WEFT_SUCCESS ||
	    weft_req_wait(req[1], 0) != WEFT_SUCCESS || sum[1] != 3 * (uint32_t)r->size)
		return ranks_say(r, "other: %s", weft_error_detail());
	if (sum[0])
		return ranks_say(r, "the first began before its stream");
	atomic_store(word(job, 5), 1);
	if (weft_req_wait(req[0], 0) != WEFT_SUCCESS || sum[0] != 3 * (uint32_t)r->size)
		return ranks_say(r, "first: %s", weft_error_detail());
	return weft_comm_destroy(other) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : ranks_say(r, "destroy: %s", weft_error_detail());
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

static int wrong_body(struct ranks *r, struct job *job)
{
	struct weft_call call = WEFT_CALL_INIT;
	struct weft_opts opts = in_stream(job, 0);
	struct weft_req *req;
	uint32_t host[8] = {0};
	void *memory, *pinned;

	if (gpu_alloc(job->g.gpu, 0, 4096, &memory) ||
	    gpu_pinned_alloc(job->g.gpu, 4096, &pinned))
		return ranks_say(r, "memory: %s", gpu_error(job->g.gpu));
	call.coll = WEFT_COLL_ALLREDUCE;
	call.src = (struct weft_buf){
		.addr = memory, .count = 8, .type = WEFT_UINT32, .kind = WEFT_MEM_CUDA};
	call.dst = (struct weft_buf){.addr = host, .count = 8, .type = WEFT_UINT32};
	call.src.addr = host + 0;
	call.dst.addr = memory;
	if (!refused(r, weft_call_start(job->comm, &call, NULL, &req), WEFT_ERR_ARG,
		     "ordinary host memory"))
		return RANKS_BAD;
	call.src.addr = pinned;
	if (!refused(r, weft_call_start(job->comm, &call, NULL, &req), WEFT_ERR_ARG,
		     "pinned host memory"))
		return RANKS_BAD;
	call.src.addr = memory;
	call.dst.addr = host;
	call.src.device = 1;
	if (!refused(r, weft_call_start(job->comm, &call, NULL, &req), WEFT_ERR_ARG,
		     job->g.gpu->devices > 1 ? "is memory of GPU 0" : "src.device is 1"))
		return RANKS_BAD;
	call.src.device = 99;
	if (!refused(r, weft_call_start(job->comm, &call, NULL, &req), WEFT_ERR_ARG,
		     "src.device is 99"))
		return RANKS_BAD;
	call.src.device = 0;
	call.dst.addr = memory;
	if (!refused(r, weft_call_start(job->comm, &call, NULL, &req), WEFT_ERR_ARG,
		     "give both kinds"))
		return RANKS_BAD;
	/* Beyond the end of its memory, wherever that is. */
	call.coll = WEFT_COLL_BROADCAST;
	call.src.count = UINT64_C(1) << 40;
	call.dst = call.src;
	if (!refused(r, weft_call_start(job->comm, &call, NULL, &req), WEFT_ERR_ARG,
		     "only the first"))
		return RANKS_BAD;
	opts.src_kind = opts.dst_kind = WEFT_MEM_HOST;
	opts.src_device = 99;
	if (!refused(r, weft_barrier(job->comm, &opts), WEFT_ERR_ARG,
		     "src_device is 99") ||
	    weft_group_begin(job->comm) != WEFT_SUCCESS ||
	    !refused(r,
		     weft_send(job->comm, host, 1, WEFT_UINT32, (r->rank + 1) % r->size,
			       &opts),
		     WEFT_ERR_UNSUPPORTED, "group") ||
	    weft_group_end(job->comm) != WEFT_SUCCESS)
		return RANKS_BAD;
	/* After all of which calls are as good as before. */
	opts.src_device = 0;
	if (weft_barrier(job->comm, &opts) != WEFT_SUCCESS ||
	    !stream_word(job, 0, GPU_WORD_WRITE, 6, 1) || !comes(job, 6, 1))
		return ranks_say(r, "barrier: %s", weft_error_detail());
	gpu_free(job->g.gpu, memory);
	gpu_pinned_free(job->g.gpu, pinned);
	return RANKS_GOOD;
}

/* The last rank dies while the streams of the others wait in the middle of a collective,
 * with another one behind it: all go on, and the communicator says why. */
static int dies_body(struct ranks *r, struct job *job)
{
	struct weft_opts opts = in_stream(job, 0);
	struct weft_req *req;
	enum weft_result got;
	void *memory;

	opts.timeout_us = TIMEOUT / 4;
	if (gpu_alloc(job->g.gpu, 0, 1 << 20, &memory))
		return ranks_say(r, "memory: %s", gpu_error(job->g.gpu));
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank + 1 == r->size)
		raise(SIGKILL);
	if (weft_allreduce_start(job->comm, memory, memory, 1 << 18, WEFT_UINT32,
				 WEFT_SUM, &opts, &req) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	got = weft_allreduce(job->comm, memory, memory, 1 << 18, WEFT_UINT32, WEFT_SUM,
			     &opts);
	if (got != WEFT_SUCCESS && got != WEFT_ERR_COMM)
		return ranks_say(r, "second: %s", weft_error_detail());
	if (!stream_word(job, 0, GPU_WORD_WRITE, 7, 1) || !comes(job, 7, 1))
		return ranks_say(r, "the stream waits on");
	got = WEFT_ERR_BUSY;
	for (int i = 0; got == WEFT_ERR_BUSY && i < 40; i++)
		got = weft_req_wait(req, 0);
	if (got != WEFT_ERR_PEER && got != WEFT_ERR_TIMEOUT)
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (!refused(r, weft_barrier(job->comm, &opts), WEFT_ERR_COMM, "failed earlier"))
		return RANKS_BAD;
	return RANKS_GOOD;
}

/* The device of the last rank fails: it says so, the other ranks hear it, and all get
 * out. */
static int broken_body(struct ranks *r, struct job *job)
{
	void (*fail)(int device) = NULL;
	struct weft_opts opts = WEFT_OPTS_INIT;
	void *memory;
	enum weft_result got;

	*(void **)&fail =
		dlsym(dlopen(getenv("WEFT_GPU_LIB"), RTLD_NOW), "guarded_break");
	if (!fail)
		return RANKS_GOOD;
	opts.src_kind = opts.dst_kind = WEFT_MEM_AUTO;
	opts.timeout_us = TIMEOUT / 4;
	if (gpu_alloc(job->g.gpu, 0, 4 << 20, &memory))
		return ranks_say(r, "memory: %s", gpu_error(job->g.gpu));
	if (weft_allreduce(job->comm, memory, memory, 1 << 20, WEFT_UINT32, WEFT_SUM,
			   &opts) != WEFT_SUCCESS)
		return ranks_say(r, "good: %s", weft_error_detail());
	if (r->rank + 1 == r->size)
		fail(0);
	got = weft_allreduce(job->comm, memory, memory, 1 << 20, WEFT_UINT32, WEFT_SUM,
			     &opts);
	if (got != WEFT_ERR_DEVICE && !(r->rank + 1 < r->size && got == WEFT_ERR_PEER))
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (!strstr(weft_error_detail(), "fell off the bus"))
		return ranks_say(r, "without the reason: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* The last rank is of no use after the last two. */
enum part { ORDER_3, ORDER_1, REQUESTS, TWO, WRONG, BROKEN, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[ORDER_3] = {3, -1, "calls in a row, in the order of their stream"},
	[ORDER_1] = {1, -1, "the same on one rank"},
	[REQUESTS] = {2, -1, "requests, persistent ones and host memory"},
	[TWO] = {2, -1, "streams that do not wait for each other"},
	[WRONG] = {2, -1, "what is refused"},
	[BROKEN] = {3, -1, "a device that fails"},
	[DIES] = {3, 2, "a rank that dies while streams wait"},
};

static int (*const bodies[PARTS])(struct ranks *, struct job *) = {
	[ORDER_3] = order_body, [ORDER_1] = order_body, [REQUESTS] = requests_body,
	[TWO] = two_body,	[WRONG] = wrong_body,	[DIES] = dies_body,
	[BROKEN] = broken_body,
};

static int job_open(struct ranks *r, struct job *job)
{
	int bad = device_gpu_open(r, &job->g);

	if (!bad)
		bad = ranks_open(r, r->arg, TIMEOUT, &job->ctx);
	if (bad)
		return bad;
	if (weft_comm_create(job->ctx, NULL, &job->comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (gpu_stream_open(job->g.gpu, 0, &job->stream[0]) ||
	    gpu_stream_open(job->g.gpu, 0, &job->stream[1]) ||
	    gpu_pinned_alloc(job->g.gpu, 4096, &job->words))
		return ranks_say(r, "stream: %s", gpu_error(job->g.gpu));
	return RANKS_GOOD;
}

static int job_body(struct ranks *r)
{
	struct job job;
	int bad = job_open(r, &job);

	if (!bad)
		bad = bodies[r->part](r, &job);
	if (bad || r->part == DIES || r->part == BROKEN)
		return bad;
	if (weft_comm_destroy(job.comm) != WEFT_SUCCESS ||
	    weft_ctx_close(job.ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	gpu_stream_close(job.g.gpu, 0, job.stream[0]);
	gpu_stream_close(job.g.gpu, 0, job.stream[1]);
	gpu_pinned_free(job.g.gpu, job.words);
	device_gpu_close(&job.g);
	return RANKS_GOOD;
}

/* Ranks that lost a peer or a device leave with memory held (rule D3). */
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
