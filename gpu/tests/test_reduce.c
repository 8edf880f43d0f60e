/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions through gpu.h: on queues, streams and in graphs, what is refused, and
 * streams that a kernel holds. On the stand-in the kernels are the CPU's; that every
 * kernel is right is gpu/cuda/kernels/tests' business.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/gate.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define COUNT 10000
#define LIMIT (60ull * 1000000000)

static struct gpu *gpu;
static float *a, *b, *got, *got2; /* pinned: devices reach them */

static struct gpu_reduce call(void)
{
	return (struct gpu_reduce){.sources = 2,
				   .type = GPU_FP32,
				   .op = GPU_SUM,
				   .out = GPU_FP32,
				   .src = {a, b},
				   .dst = got,
				   .count = COUNT,
				   .scale = 1};
}

static void fill(float from)
{
	for (int i = 0; i < COUNT; i++) {
		a[i] = from + (float)i;
		b[i] = 0.5f * (float)i;
		got[i] = got2[i] = -1;
	}
}

static bool right(const float *p, float from, float scale)
{
	for (int i = 0; i < COUNT; i++) {
		if (p[i] != (from + 1.5f * (float)i) * scale)
			return false;
	}
	return true;
}

static void test_queue(void)
{
	struct gpu_reduce r = call();
	struct gpu_queue *queue;
	uint16_t *half = (void *)got2;

	tap_is_int(gpu_queue_open(gpu, 0, &queue), 0, "a queue");
	fill(1);
	r.dst2 = got2;
	tap_is_int(gpu_reduce(queue, &r), 0, "a reduction on it");
	tap_is_int(gpu_queue_sync(queue, LIMIT), 0, "is done");
	tap_ok(right(got, 1, 1) && right(got2, 1, 1), "in both results");
	fill(2);
	r.op = GPU_AVG, r.divisor = 2, r.blocks = 2, r.dst2 = NULL;
	tap_is_int(gpu_reduce(queue, &r), 0, "an average, by two blocks");
	tap_is_int(gpu_queue_sync(queue, LIMIT), 0, "is done");
	tap_ok(right(got, 2, 0.5f), "and right");
	fill(0);
	r = call(), r.sources = 1, r.out = GPU_BF16, r.dst = half, r.scale = 2;
	tap_is_int(gpu_reduce(queue, &r), 0, "one source, scaled, into bf16");
	tap_is_int(gpu_queue_sync(queue, LIMIT), 0, "is done");
	tap_ok(half[0] == 0 && half[1] == 0x4000 && half[2] == 0x4080, "and right");
	r.count = 0;
	tap_is_int(gpu_reduce(queue, &r), 0, "of nothing");
	tap_is_int(gpu_queue_close(queue), 0, "the queue ends");
}

static void refused(struct gpu_reduce r, const char *text)
{
	struct gpu_queue *queue;
	int ret;

	if (gpu_queue_open(gpu, 0, &queue) != 0)
		tap_bail("no queue: %s", gpu_error(gpu));
	ret = gpu_reduce(queue, &r);
	if (!tap_ok(ret == -EINVAL && strstr(gpu_error(gpu), text), "refused: %s", text))
		tap_diag("%d: %s", ret, gpu_error(gpu));
	gpu_queue_close(queue);
}

static void test_refusals(void)
{
	struct gpu_reduce r = call();

	r.op = GPU_BAND;
	refused(r, "of integers only");
	r = call(), r.sources = 9;
	refused(r, "1 to 8");
	r = call(), r.src[1] = (char *)b + 1;
	refused(r, "not aligned to 4");
	r = call(), r.out = GPU_INT32;
	refused(r, "only floating types");
}

static void wait_idle(void *stream)
{
	struct gpu_word_op op = {.kind = GPU_WORD_WRITE, .value = 1};
	_Atomic uint64_t *word;
	time_t end = time(NULL) + 60;
	void *pin;

	if (gpu_pinned_alloc(gpu, 4096, &pin) != 0)
		tap_bail("no pinned memory: %s", gpu_error(gpu));
	op.word = word = pin;
	tap_is_int(gpu_stream_words(gpu, 0, stream, &op, 1), 0, "a word at the end");
	while (!atomic_load(word) && time(NULL) < end)
		usleep(100);
	tap_ok(atomic_load(word) == 1, "is written");
	gpu_pinned_free(gpu, pin);
}

static void test_stream(struct app *app)
{
	struct gpu_reduce r = call();
	void *stream, *graph;

	tap_is_int(gpu_stream_open(gpu, 0, &stream), 0, "a stream");
	fill(3);
	tap_is_int(gpu_stream_reduce(gpu, 0, stream, &r), 0, "a reduction on it");
	wait_idle(stream);
	tap_ok(right(got, 3, 1), "is right");
	app_device(app, 0);
	app_capture_begin(app, stream, 1);
	tap_is_int(gpu_stream_reduce(gpu, 0, stream, &r), 0, "one that is captured");
	graph = app_capture_end(app, stream);
	tap_ok(graph, "the capture is whole");
	for (int k = 0; k < 3 && graph; k++) {
		fill((float)k + 10);
		app_graph_launch(app, graph, stream);
		wait_idle(stream);
		tap_ok(right(got, (float)k + 10, 1), "replay %d is right", k);
	}
	if (graph)
		app_graph_free(app, graph);
	gpu_stream_close(gpu, 0, stream);
}

/* A stream that weft_words holds, as where the driver has no memory waits. */
static void test_hold(void)
{
	struct gate_words *words;
	time_t end = time(NULL) + 60;
	struct gpu_reduce r = call();
	struct gate gate;
	void *stream;

	tap_is_int(gpu->device[0].hold, GPU_HOLD_KERNEL, "streams are held by a kernel");
	if (gpu_pinned_alloc(gpu, sizeof(*words), (void **)&words) != 0 ||
	    gpu_stream_open(gpu, 0, &stream) != 0)
		tap_bail("no stream: %s", gpu_error(gpu));
	tap_is_int(gate_init(&gate, gpu, 0, words), 0, "a gate");
	fill(4);
	tap_is_int(gate_pass(&gate, stream, 1), 0, "in a stream");
	tap_is_int(gpu_stream_reduce(gpu, 0, stream, &r), 0,
		   "with a reduction behind it");
	while (gate_arrived(&gate) < 1 && time(NULL) < end)
		usleep(100);
	tap_is_int((int64_t)gate_arrived(&gate), 1, "the stream comes there");
	tap_ok(got[0] == -1, "and no further");
	gate_open(&gate, 1);
	wait_idle(stream);
	tap_ok(right(got, 4, 1), "and further when it is let go");
	gpu_stream_close(gpu, 0, stream);
	gpu_pinned_free(gpu, words);
}

int main(void)
{
	const char *build = getenv("WEFT_TOP_BUILDDIR");
	struct app *app;
	char path[4096];
	void *pin;

	snprintf(path, sizeof(path), "%s/gpu/mock/.libs/libweft-mock-kernels.so",
		 build ? build : ".");
	setenv("WEFT_GPU_HOLD", "kernel", 1);
	app = app_open();
	if (!app) {
		tap_skip(1, "no driver");
		return tap_done();
	}
	if (app_on_mock(app))
		setenv("WEFT_GPU_KERNELS", path, 1);
	gpu = app_gpu(app);
	tap_is_int(gpu_device_use(gpu, 0), 0, "a device");
	if (!gpu->device[0].kernels) {
		tap_diag("%s", gpu->kernels_why);
		if (app_on_mock(app))
			tap_ok(false, "it has kernels");
		else
			tap_skip(1, "no kernels: %s", gpu->kernels_why);
		return tap_done();
	}
	if (gpu_pinned_alloc(gpu, 4 * COUNT * sizeof(*a), &pin) != 0)
		tap_bail("no pinned memory: %s", gpu_error(gpu));
	a = pin, b = a + COUNT, got = b + COUNT, got2 = got + COUNT;
	test_queue();
	test_refusals();
	test_stream(app);
	test_hold();
	gpu_pinned_free(gpu, pin);
	gpu_close(gpu);
	return tap_done();
}
