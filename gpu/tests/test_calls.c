/* SPDX-License-Identifier: BSD-2-Clause */
/* One list of calls over the null backend and over the one for CUDA: the first refuses
 * all that needs a device, with the reason; the second does it. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gpu/gate.h"
#include "gpu/gpu.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define LEN   (1u << 20)
#define LIMIT (60ull * 1000000000) /* of every wait: generous */

/* What the list works with; addresses are NULL where the backend gave none. */
struct bench {
	struct gpu *gpu;
	bool none; /* null backend: -ENODEV is what is wanted */
	void *dev, *dev2;
	uint8_t *pin, *pin2;
	struct gpu_queue *queue;
	void *stream;
};

/* What a call returned: what it must on this backend, with a sentence where it failed. */
static void want(struct bench *b, int ret, const char *what)
{
	const int good = b->none ? -ENODEV : 0;
	const char *text = ret ? gpu_error(b->gpu) : "";

	if (!tap_ok(ret == good && (ret == 0 || strstr(text, b->gpu->why)), "%s: %s: %s",
		    b->gpu->name, what, b->none ? "refused, with the reason" : "done"))
		tap_diag("%d: %s", ret, text);
}

static void memory(struct bench *b)
{
	uint64_t here = 0;
	struct gpu_range r;

	tap_is_int(gpu_query(b->gpu, &here, sizeof(here), &r), 0, "query of the stack");
	tap_ok(r.kind == GPU_MEM_HOST && r.device == -1 && r.whole && r.id == 0 &&
		       r.base == (uintptr_t)&here && r.len == sizeof(here),
	       "%s: the stack is host memory", b->gpu->name);
	want(b, gpu_alloc(b->gpu, 0, LEN, &b->dev), "alloc");
	want(b, gpu_alloc(b->gpu, 0, LEN, &b->dev2), "alloc of more");
	want(b, gpu_pinned_alloc(b->gpu, LEN, (void **)&b->pin), "pinned memory");
	want(b, gpu_pinned_alloc(b->gpu, LEN, (void **)&b->pin2), "more of it");
	if (b->none)
		return;
	tap_is_int(gpu_query(b->gpu, (char *)b->dev + 17, 100, &r), 0,
		   "query of a device's");
	tap_ok(r.kind == GPU_MEM_DEVICE && r.device == 0 && r.whole && r.id &&
		       r.base <= (uintptr_t)b->dev && r.len >= LEN,
	       "device memory is known, from its middle");
	tap_is_int(gpu_query(b->gpu, b->pin + 5, 10, &r), 0, "query of pinned memory");
	tap_ok(r.kind == GPU_MEM_PINNED && r.device == -1, "pinned memory is known");
	tap_ok(b->pin[0] == 0 && memcmp(b->pin, b->pin + 1, LEN - 1) == 0, "and zeroed");
}

static void queue(struct bench *b)
{
	struct gpu_copy2d c = {.width = 10, .rows = 7, .dst_pitch = 16, .src_pitch = 32};
	bool good = true;

	want(b, gpu_queue_open(b->gpu, 0, &b->queue), "queue");
	if (b->none)
		return;
	for (uint32_t i = 0; i < LEN; i++)
		b->pin[i] = (uint8_t)(i * 7 + (i >> 8));
	want(b, gpu_copy(b->queue, b->dev, b->pin, LEN), "copy to the device");
	want(b, gpu_copy(b->queue, b->dev2, b->dev, LEN), "copy on the device");
	want(b, gpu_copy(b->queue, b->pin2, b->dev2, LEN), "copy back");
	want(b, gpu_queue_mark(b->queue), "mark");
	tap_is_int((int64_t)b->queue->issued, 1, "the first mark is number 1");
	want(b, gpu_queue_sync(b->queue, LIMIT), "sync");
	tap_ok(gpu_queue_done(b->queue, 1) && !gpu_queue_done(b->queue, 2),
	       "one mark is done, a second is not");
	tap_is_mem(b->pin2, b->pin, LEN, "what was copied there and back is the same");

	c.dst = b->dev2;
	c.src = b->dev;
	want(b, gpu_fill(b->queue, b->dev2, 0xee, LEN), "fill");
	want(b, gpu_copy2d(b->queue, &c), "copy of rows");
	want(b, gpu_copy(b->queue, b->pin2, b->dev2, LEN), "copy back");
	want(b, gpu_queue_sync(b->queue, LIMIT), "sync");
	for (uint32_t i = 0; i < LEN; i++) {
		const uint32_t row = i / 16, at = i % 16;
		const uint8_t is = row < 7 && at < 10 ? b->pin[row * 32 + at] : 0xee;

		good = good && b->pin2[i] == is;
	}
	tap_ok(good, "rows are where they belong, and the rest is as it was");
	c.dst_pitch = 9;
	tap_is_int(gpu_copy2d(b->queue, &c), -EINVAL, "rows that overlap are refused");
}

static void stream(struct bench *b)
{
	enum gpu_capture state = GPU_CAPTURE_BROKEN;
	struct gate_words *words = NULL;
	struct gate gate;
	uint64_t id = 1;

	want(b, gpu_stream_open(b->gpu, 0, &b->stream), "stream");
	if (b->none)
		return;
	want(b, gpu_stream_capture(b->gpu, 0, b->stream, &state, &id), "capture state");
	tap_ok(state == GPU_CAPTURE_NONE && id == 0, "it is not captured");
	want(b, gpu_pinned_alloc(b->gpu, sizeof(*words), (void **)&words), "words");
	tap_is_int(gate_init(&gate, b->gpu, 0, words), 0, "a gate");
	want(b, gpu_copy(b->queue, b->dev, b->pin, LEN), "something to copy");
	want(b, gpu_queue_sync(b->queue, LIMIT), "is there");
	memset(b->pin2, 0, 8);
	want(b, gate_pass(&gate, b->stream, 1), "in the stream");
	want(b, gpu_stream_copy(b->gpu, 0, b->stream, b->pin2, b->dev, 8), "and a copy");
	for (int i = 0; i < 60000 && gate_arrived(&gate) < 1; i++)
		usleep(1000);
	tap_is_int((int64_t)gate_arrived(&gate), 1, "the stream comes to the gate");
	tap_ok(memcmp(b->pin2, "\0\0\0\0\0\0\0", 8) == 0, "and stops there");
	gate_open(&gate, 1);
	want(b, gpu_stream_after(b->gpu, 0, b->queue->stream, b->stream),
	     "queue after it");
	want(b, gpu_queue_sync(b->queue, LIMIT), "and both come to their end");
	tap_is_mem(b->pin2, b->pin, 8, "the copy behind the gate was done");
	want(b, gpu_pinned_free(b->gpu, words), "free");
}

static void end(struct bench *b)
{
	want(b, gpu_device_error(b->gpu, 0), "device error");
	if (!b->none) {
		tap_is_int(gpu_device_use(b->gpu, b->gpu->devices), -ENODEV,
			   "a device that is not there");
		tap_ok(strstr(gpu_error(b->gpu), "there is no GPU"),
		       "is refused in words");
		want(b, gpu_stream_close(b->gpu, 0, b->stream), "close");
		want(b, gpu_queue_close(b->queue), "close");
	}
	want(b, gpu_pinned_free(b->gpu, b->pin), "free");
	want(b, gpu_pinned_free(b->gpu, b->pin2), "free");
	want(b, gpu_free(b->gpu, b->dev), "free");
	want(b, gpu_free(b->gpu, b->dev2), "free");
	gpu_close(b->gpu);
}

static void list(struct gpu *gpu, bool none)
{
	struct bench b = {.gpu = gpu, .none = none};

	memory(&b);
	queue(&b);
	stream(&b);
	end(&b);
}

int main(void)
{
	struct gpu *gpu = NULL;
	struct app *app;

	tap_is_int(gpu_open(&(struct gpu_opts){.library = "none"}, &gpu), 0, "open none");
	tap_is_str(gpu->name, "null", "the null backend");
	tap_ok(strstr(gpu->why, "none") && gpu->devices == 0, "says why: %s", gpu->why);
	list(gpu, true);
	app = app_open();
	if (!app)
		return 1;
	list(app_gpu(app), false);
	return tap_done();
}
