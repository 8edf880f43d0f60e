/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that are held and captured: gates counted and replayed, one broken while a
 * stream waits, what belongs to a graph, and captures that nothing of ours breaks. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/gate.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define LIMIT (60ull * 1000000000)

static struct app *app;
static struct gpu *gpu;
static struct gpu_queue *queue; /* to wait for streams with a limit */
static uint64_t *cell;		/* pinned */

static void finish(void *stream, const char *what)
{
	int ret = gpu_stream_after(gpu, 0, queue->stream, stream);

	if (ret == 0)
		ret = gpu_queue_sync(queue, LIMIT);
	if (!tap_ok(ret == 0, "%s", what))
		tap_diag("%d: %s", ret, gpu_error(gpu));
}

static struct gate_words *words_new(void)
{
	struct gate_words *words = NULL;

	if (gpu_pinned_alloc(gpu, sizeof(*words), (void **)&words) != 0) {
		tap_diag("no words: %s", gpu_error(gpu));
		exit(1);
	}
	return words;
}

static bool arrive(const struct gate *gate, uint64_t n)
{
	for (int i = 0; i < 60000 && gate_arrived(gate) < n; i++)
		usleep(1000);
	return gate_arrived(gate) == n;
}

static bool take(struct gate *gate)
{
	for (int i = 0; i < 60000; i++) {
		if (gate_take(gate))
			return true;
		usleep(1000);
	}
	return false;
}

/* The stream writes the cell. */
static int write_cell(void *stream, uint64_t value)
{
	return gpu_stream_words(gpu, 0, stream,
				&(struct gpu_word_op){.kind = GPU_WORD_WRITE,
						      .word = (_Atomic uint64_t *)cell,
						      .value = value},
				1);
}

static uint64_t cell_now(void)
{
	return atomic_load((_Atomic uint64_t *)cell);
}

static void counted(void *stream)
{
	struct gate_words *words = words_new();
	struct gate gate;
	bool good = true;

	tap_is_int(gate_init(&gate, gpu, 0, words), 0, "a counting gate");
	for (uint64_t n = 1; n <= 20; n++)
		good = good && gate_pass(&gate, stream, n) == 0 &&
		       write_cell(stream, n) == 0;
	tap_ok(good, "twenty passages in a stream");
	for (uint64_t n = 1; n <= 20; n++) {
		good = good && arrive(&gate, n) && cell_now() == n - 1;
		gate_open(&gate, n);
	}
	tap_ok(good,
	       "each is reached after the one before it was opened, and not earlier");
	finish(stream, "and the stream comes to its end");
	gpu_pinned_free(gpu, words);
}

static void broken(void *stream)
{
	struct gate_words *words = words_new();
	struct gate gate;

	gate_init(&gate, gpu, 0, words);
	for (uint64_t n = 1; n <= 5; n++)
		gate_pass(&gate, stream, n);
	tap_ok(arrive(&gate, 1), "a stream waits at a gate");
	gate_break(&gate);
	finish(stream, "broken: the stream goes through this and all later passages");
	gate_open(&gate, 3);
	gate_pass(&gate, stream, 6);
	finish(stream, "also those that come after it, whoever opens less");
	gpu_pinned_free(gpu, words);
}

static void dropped(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}

static void replayed(void *stream)
{
	struct gate_words *words = words_new();
	enum gpu_capture state;
	_Atomic int gone = 0;
	struct gate gate;
	bool good = true;
	uint64_t id = 0;
	void *graph;

	gate_init(&gate, gpu, 0, words);
	tap_is_int(gpu_stream_keep(gpu, 0, stream, dropped, &gone), -EINVAL,
		   "nothing is tied to a graph while none is made");
	app_capture_begin(app, stream, 0);
	tap_ok(gpu_stream_capture(gpu, 0, stream, &state, &id) == 0 &&
		       state == GPU_CAPTURE_ACTIVE && id,
	       "a captured stream says so");
	tap_is_int(gate_pass(&gate, stream, 0), 0, "a replayed gate");
	tap_is_int(write_cell(stream, 77), 0, "and what comes after it");
	tap_is_int(gpu_stream_keep(gpu, 0, stream, dropped, &gone), 0,
		   "and what it keeps");
	graph = app_capture_end(app, stream);
	tap_ok(graph != NULL, "make a graph");
	if (!graph)
		return;
	tap_ok(!gate_take(&gate), "nothing has run");
	for (int i = 0; i < 10; i++) {
		atomic_store((_Atomic uint64_t *)cell, 0);
		app_graph_launch(app, graph, stream);
		good = good && take(&gate) && cell_now() == 0;
		gate_open(&gate, 1);
		good = good && gpu_stream_after(gpu, 0, queue->stream, stream) == 0 &&
		       gpu_queue_sync(queue, LIMIT) == 0 && cell_now() == 77;
	}
	tap_ok(good, "ten replays each come to the gate, wait, and go on");
	tap_is_int(atomic_load(&gone), 0, "what it keeps is kept");
	app_graph_free(app, graph);
	for (int i = 0; i < 60000 && !atomic_load(&gone); i++)
		usleep(1000);
	tap_is_int(atomic_load(&gone), 1, "and let go once, with the graph");
	gpu_pinned_free(gpu, words);
}

/* Everything that a registration needs, by a thread that did not ask for leave. */
static void *busy(void *arg)
{
	struct gpu_queue *q = NULL;
	struct gpu_range r;
	void *addr = NULL, *pin = NULL;
	bool good;

	good = gpu_alloc(gpu, 0, 4096, &addr) == 0 &&
	       gpu_query(gpu, addr, 4096, &r) == 0 &&
	       gpu_pinned_alloc(gpu, 4096, &pin) == 0 &&
	       gpu_queue_open(gpu, 0, &q) == 0 && gpu_copy(q, pin, addr, 4096) == 0 &&
	       gpu_queue_sync(q, LIMIT) == 0 && gpu_queue_close(q) == 0 &&
	       gpu_pinned_free(gpu, pin) == 0 && gpu_free(gpu, addr) == 0;
	*(bool *)arg = good;
	return NULL;
}

static void captures_live(void *stream)
{
	bool good = false;
	pthread_t thread;
	void *graph;

	app_capture_begin(app, stream, 0);
	write_cell(stream, 5);
	if (pthread_create(&thread, NULL, busy, &good) == 0)
		pthread_join(thread, NULL);
	tap_ok(good, "allocating, pinning and copying while another thread captures");
	graph = app_capture_end(app, stream);
	tap_ok(graph != NULL, "does not break the capture");
	if (graph)
		app_graph_free(app, graph);
	good = false;
	app_capture_begin(app, stream, 0);
	busy(&good);
	tap_ok(good, "nor does it by the thread that captures");
	graph = app_capture_end(app, stream);
	tap_ok(graph != NULL, "whose capture lives, too");
	if (graph)
		app_graph_free(app, graph);
}

static void joined(void *stream)
{
	void *other = NULL, *graph;

	gpu_stream_open(gpu, 0, &other);
	app_capture_begin(app, stream, 0);
	tap_is_int(gpu_stream_after(gpu, 0, other, stream), 0, "a second stream joins");
	tap_is_int(write_cell(other, 9), 0, "does something");
	tap_is_int(gpu_stream_after(gpu, 0, stream, other), 0, "and is waited for");
	graph = app_capture_end(app, stream);
	tap_ok(graph != NULL, "in one graph");
	atomic_store((_Atomic uint64_t *)cell, 0);
	if (graph) {
		app_graph_launch(app, graph, stream);
		finish(stream, "that runs");
		app_graph_free(app, graph);
	}
	tap_is_int((int64_t)cell_now(), 9, "and has the second stream's work in it");
	gpu_stream_close(gpu, 0, other);
}

static void called(void *stream)
{
	_Atomic int calls = 0;

	tap_is_int(gpu_stream_call(gpu, 0, stream, dropped, &calls), 0,
		   "a call of the host");
	finish(stream, "is done in its turn");
	tap_is_int(atomic_load(&calls), 1, "once");
	tap_is_int(gpu_stream_words(gpu, 0, stream, NULL, 0), -EINVAL,
		   "no steps: refused");
}

int main(void)
{
	void *stream = NULL;

	app = app_open();
	if (!app)
		return 1;
	gpu = app_gpu(app);
	app_device(app, 0);
	if (gpu_queue_open(gpu, 0, &queue) != 0 ||
	    gpu_stream_open(gpu, 0, &stream) != 0 ||
	    gpu_pinned_alloc(gpu, sizeof(*cell), (void **)&cell) != 0) {
		tap_diag("%s", gpu_error(gpu));
		return 1;
	}
	tap_ok(gpu->device[0].hold != GPU_HOLD_NONE, "streams are held: %d",
	       gpu->device[0].hold);
	counted(stream);
	broken(stream);
	replayed(stream);
	captures_live(stream);
	joined(stream);
	called(stream);
	gpu_stream_close(gpu, 0, stream);
	gpu_queue_close(queue);
	gpu_pinned_free(gpu, cell);
	gpu_close(gpu);
	return tap_done();
}
