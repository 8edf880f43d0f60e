/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A backend for tests (gpu/gpu.h) with two devices whose memory no processor may touch:
 * its addresses are mapped without any access, and only copies of this backend know where
 * the bytes are. So what reads or writes device memory without a copy dies at once.
 * Queues and streams are threads, that are late now and then. What it lacks says ENOSYS.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "coll/tests/guarded_gpu.h"
#include "util/list.h"

#define DEVICES 2
#define RANGES	256
#define PAGE	((uint64_t)4096)

struct range {
	char *addr; /* what the application sees */
	char *real;
	uint64_t len, id;
	int device; /* -1: pinned */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[RANGES];
static uint64_t next_id = 1;
static _Atomic bool broken[DEVICES];
static _Atomic uint32_t late_us;
static _Thread_local char text[256];

static int fault(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- memory ---- */

static struct range *range_find(const void *addr)
{
	for (int i = 0; i < RANGES; i++) {
		const uint64_t at =
			(uint64_t)((uintptr_t)addr - (uintptr_t)ranges[i].addr);

		if (ranges[i].addr && at < ranges[i].len)
			return &ranges[i];
	}
	return NULL;
}

/* Where the bytes are; a copy that leaves its memory ends the test. */
static char *real_of(const void *addr, uint64_t len)
{
	char *real = (char *)(uintptr_t)addr;

	pthread_mutex_lock(&lock);
	const struct range *r = range_find(addr);

	if (r) {
		const uint64_t at = (uint64_t)((const char *)addr - r->addr);

		if (len > r->len - at) {
			fprintf(stderr, "guarded: a copy beyond the end of its memory\n");
			abort();
		}
		real = r->real + at;
	}
	pthread_mutex_unlock(&lock);
	return real;
}

static int range_add(char *addr, char *real, uint64_t len, int device)
{
	int rc = -ENOMEM;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < RANGES && rc; i++) {
		if (ranges[i].addr)
			continue;
		ranges[i] = (struct range){addr, real, len, next_id++, device};
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static bool range_drop(const void *addr, struct range *old)
{
	struct range *r;
	bool there;

	pthread_mutex_lock(&lock);
	r = range_find(addr);
	there = r && r->addr == addr;
	if (there) {
		*old = *r;
		r->addr = NULL;
	}
	pthread_mutex_unlock(&lock);
	return there;
}

static int g_alloc(struct gpu *gpu, int device, uint64_t len, void **addr)
{
	const uint64_t all = (len + PAGE - 1) / PAGE * PAGE;
	const int fd = memfd_create("guarded", MFD_CLOEXEC);
	char *seen, *real;

	(void)gpu;
	if (fd < 0 || ftruncate(fd, (off_t)all))
		return fault(-ENOMEM, "no memory");
	seen = mmap(NULL, all, PROT_NONE, MAP_SHARED, fd, 0);
	real = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (seen == MAP_FAILED || real == MAP_FAILED ||
	    range_add(seen, real, len, device))
		return fault(-ENOMEM, "no memory");
	*addr = seen;
	return 0;
}

static int g_free(struct gpu *gpu, void *addr)
{
	struct range old;

	(void)gpu;
	if (!range_drop(addr, &old))
		return fault(-EINVAL, "no memory of a device");
	munmap(old.addr, (old.len + PAGE - 1) / PAGE * PAGE);
	munmap(old.real, (old.len + PAGE - 1) / PAGE * PAGE);
	return 0;
}

static int g_pinned_alloc(struct gpu *gpu, uint64_t len, void **addr)
{
	(void)gpu;
	if (posix_memalign(addr, PAGE, len))
		return fault(-ENOMEM, "no memory");
	memset(*addr, 0, len);
	return range_add(*addr, *addr, len, -1);
}

static int g_pinned_free(struct gpu *gpu, void *addr)
{
	struct range old;

	(void)gpu;
	if (!range_drop(addr, &old))
		return fault(-EINVAL, "no pinned memory");
	free(addr);
	return 0;
}

static int g_pinned_register(struct gpu *gpu, void *addr, uint64_t len)
{
	(void)gpu;
	return range_add(addr, addr, len, -1);
}

static int g_pinned_unregister(struct gpu *gpu, void *addr)
{
	struct range old;

	(void)gpu;
	return range_drop(addr, &old) ? 0 : fault(-EINVAL, "no pinned memory");
}

static int g_query(struct gpu *gpu, const void *addr, uint64_t len, struct gpu_range *out)
{
	const struct range *r;

	(void)gpu;
	pthread_mutex_lock(&lock);
	r = range_find(addr);
	*out = (struct gpu_range){.kind = GPU_MEM_HOST,
				  .device = -1,
				  .base = (uint64_t)(uintptr_t)addr,
				  .len = len,
				  .whole = true};
	if (r) {
		out->kind = r->device < 0 ? GPU_MEM_PINNED : GPU_MEM_DEVICE;
		out->device = r->device;
		out->base = (uint64_t)(uintptr_t)r->addr;
		out->len = r->len;
		out->id = r->id;
		out->whole = (uint64_t)(uintptr_t)addr + len <= out->base + out->len;
	}
	out->reserved_base = out->base;
	out->reserved_len = out->len;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* ---- threads that work off what is put on them ---- */

struct job {
	struct list link;
	char *dst;
	const char *src;
	uint64_t len;
	uint64_t mark; /* 0: a copy, or... */
	struct gpu_word_op word;
	bool is_word; /* ...a step on a word */
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct list jobs;
	bool stop;
	int device;
	_Atomic uint64_t done;
	struct gpu_queue queue; /* of a queue */
};

static void nap(uint32_t us)
{
	const struct timespec ts = {.tv_sec = us / 1000000,
				    .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&ts, NULL);
}

static void word_do(const struct gpu_word_op *op)
{
	if (op->kind == GPU_WORD_WRITE) {
		atomic_store(op->word, op->value);
		return;
	}
	while ((int64_t)(atomic_load(op->word) - op->value) < 0)
		nap(20);
}

static void job_do(struct worker *w, const struct job *job)
{
	if (late_us && (uintptr_t)job->src / 64 % 3 == 0)
		nap(late_us);
	if (broken[w->device])
		return;
	if (job->is_word)
		word_do(&job->word);
	else if (job->mark)
		atomic_store_explicit(&w->done, job->mark, memory_order_release);
	else
		memcpy(job->dst, job->src, job->len);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		struct list *node;

		pthread_mutex_lock(&w->lock);
		while (list_empty(&w->jobs) && !w->stop)
			pthread_cond_wait(&w->more, &w->lock);
		node = list_pop_front(&w->jobs);
		pthread_mutex_unlock(&w->lock);
		if (!node)
			return NULL;
		job_do(w, container_of(node, struct job, link));
		free(container_of(node, struct job, link));
	}
}

static struct worker *worker_open(int device)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	list_init(&w->jobs);
	w->device = device;
	if (pthread_create(&w->thread, NULL, worker_main, w)) {
		free(w);
		return NULL;
	}
	return w;
}

/* Works off what is left. */
static void worker_close(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->more);
	free(w);
}

static int worker_put(struct worker *w, const struct job *job)
{
	struct job *copy = malloc(sizeof(*copy));

	if (!copy)
		return fault(-ENOMEM, "no memory");
	if (broken[w->device]) {
		free(copy);
		return fault(-EIO, "the device fell off the bus");
	}
	*copy = *job;
	list_init(&copy->link);
	pthread_mutex_lock(&w->lock);
	list_push_back(&w->jobs, &copy->link);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* ---- queues ---- */

static struct worker *queue_worker(struct gpu_queue *queue)
{
	return container_of(queue, struct worker, queue);
}

static int g_queue_open(struct gpu *gpu, int device, struct gpu_queue **queue)
{
	struct worker *w = worker_open(device);

	if (!w)
		return fault(-ENOMEM, "no memory");
	w->queue.gpu = gpu;
	w->queue.device = device;
	w->queue.done = &w->done;
	*queue = &w->queue;
	return 0;
}

static int g_queue_close(struct gpu_queue *queue)
{
	worker_close(queue_worker(queue));
	return 0;
}

static int g_queue_sync(struct gpu_queue *queue, uint64_t timeout_ns)
{
	for (uint64_t waited = 0;; waited += 50000) {
		if (broken[queue->device])
			return fault(-EIO, "the device fell off the bus");
		if (gpu_queue_done(queue, queue->issued))
			return 0;
		if (waited >= timeout_ns)
			return fault(-ETIMEDOUT, "not done");
		nap(50);
	}
}

static int g_queue_mark(struct gpu_queue *queue)
{
	const struct job job = {.mark = queue->issued + 1};
	const int rc = worker_put(queue_worker(queue), &job);

	if (!rc)
		queue->issued++;
	return rc;
}

static int g_copy(struct gpu_queue *queue, void *dst, const void *src, uint64_t len)
{
	const struct job job = {
		.dst = real_of(dst, len), .src = real_of(src, len), .len = len};

	return worker_put(queue_worker(queue), &job);
}

/* ---- streams ---- */

static int g_stream_open(struct gpu *gpu, int device, void **stream)
{
	(void)gpu;
	*stream = worker_open(device);
	return *stream ? 0 : fault(-ENOMEM, "no memory");
}

static int g_stream_close(struct gpu *gpu, int device, void *stream)
{
	(void)gpu;
	(void)device;
	worker_close(stream);
	return 0;
}

static int g_stream_words(struct gpu *gpu, int device, void *stream,
			  const struct gpu_word_op *ops, uint32_t count)
{
	int rc = 0;

	(void)gpu;
	(void)device;
	for (uint32_t i = 0; i < count && !rc; i++) {
		const struct job job = {.word = ops[i], .is_word = true};

		rc = worker_put(stream, &job);
	}
	return rc;
}

static int g_stream_copy(struct gpu *gpu, int device, void *stream, void *dst,
			 const void *src, uint64_t len)
{
	const struct job job = {
		.dst = real_of(dst, len), .src = real_of(src, len), .len = len};

	(void)gpu;
	(void)device;
	return worker_put(stream, &job);
}

static int g_stream_capture(struct gpu *gpu, int device, void *stream,
			    enum gpu_capture *state, uint64_t *id)
{
	(void)gpu;
	(void)device;
	(void)stream;
	*state = GPU_CAPTURE_NONE;
	*id = 0;
	return 0;
}

/* ---- the rest ---- */

static void g_close(struct gpu *gpu)
{
	free(gpu);
}

static const char *g_error(struct gpu *gpu)
{
	(void)gpu;
	return text;
}

static int g_thread_init(struct gpu *gpu)
{
	(void)gpu;
	return 0;
}

static bool g_device_active(struct gpu *gpu, int device)
{
	(void)gpu;
	return device == 0;
}

static int g_device_use(struct gpu *gpu, int device)
{
	(void)gpu;
	(void)device;
	return 0;
}

static int g_device_error(struct gpu *gpu, int device)
{
	(void)gpu;
	return broken[device] ? fault(-EIO, "the device fell off the bus") : 0;
}

static const struct gpu_ops guarded_ops = {
	.abi = GPU_ABI,
	.size = sizeof(struct gpu_ops),
	.close = g_close,
	.error = g_error,
	.thread_init = g_thread_init,
	.device_active = g_device_active,
	.device_use = g_device_use,
	.device_error = g_device_error,
	.query = g_query,
	.alloc = g_alloc,
	.free = g_free,
	.pinned_alloc = g_pinned_alloc,
	.pinned_free = g_pinned_free,
	.pinned_register = g_pinned_register,
	.pinned_unregister = g_pinned_unregister,
	.queue_open = g_queue_open,
	.queue_close = g_queue_close,
	.queue_sync = g_queue_sync,
	.queue_mark = g_queue_mark,
	.copy = g_copy,
	.stream_open = g_stream_open,
	.stream_close = g_stream_close,
	.stream_words = g_stream_words,
	.stream_copy = g_stream_copy,
	.stream_capture = g_stream_capture,
};

__attribute__((visibility("default"))) int weft_gpu_backend(uint32_t abi,
							    struct gpu **gpu, char *why)
{
	static struct gpu_device devices[DEVICES];
	struct gpu *g = calloc(1, sizeof(*g));

	if (!g || abi != GPU_ABI) {
		snprintf(why, GPU_WHY_LEN, "another contract");
		free(g);
		return -ENODEV;
	}
	for (int i = 0; i < DEVICES; i++) {
		snprintf(devices[i].name, sizeof(devices[i].name), "guarded %d", i);
		devices[i].hold = GPU_HOLD_MEMOPS;
		devices[i].memory = UINT64_C(1) << 30;
		devices[i].copy_engine = true;
	}
	g->ops = &guarded_ops;
	g->name = "guarded";
	g->devices = DEVICES;
	g->device = devices;
	*gpu = g;
	return 0;
}

__attribute__((visibility("default"))) void guarded_break(int device)
{
	broken[device] = true;
}

__attribute__((visibility("default"))) void guarded_late(uint32_t us)
{
	late_us = us;
}
