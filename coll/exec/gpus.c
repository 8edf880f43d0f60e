/* SPDX-License-Identifier: BSD-2-Clause */
/* See gpus.h. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/gpus.h"
#include "coll/exec/passage.h"
#include "gpu/quiet.h"

/* Types and operations go to the backend by their numbers. */
_Static_assert((int)GPU_FP64 == (int)WEFT_FP64 &&
		       (int)GPU_TYPE_COUNT == (int)WEFT_TYPE_COUNT,
	       "gpu.h has the types of weft.h");
_Static_assert((int)GPU_BXOR == (int)WEFT_BXOR && (int)GPU_OP_COUNT == (int)WEFT_OP_COUNT,
	       "gpu.h has the operations of weft.h");

/* How long a call waits for the driver, which may wait until a device is idle. */
#define PATIENCE_NS UINT64_C(30000000000)
/* How long for streams that are held, and how long the end of a context does. */
#define QUIET_NS  UINT64_C(5000000000)
#define CLOSE_NS  UINT64_C(1000000000)
#define NAP_FIRST 20000 /* ns between two looks, doubled up to the last */
#define NAP_LAST  2000000

/* What is pinned when the first device is prepared, so that calls in streams find it. */
static const struct {
	uint32_t count;
	size_t size;
} pool_first[] = {{8, (size_t)64 << 10}, {4, (size_t)1 << 20}, {2, (size_t)8 << 20}};

/* What a thread of its own asks the driver for, in a quiet time: if the driver waits for
 * a stream that the application holds, its callers do not. */
struct gpus_work {
	struct gpu *gpu;
	int32_t device;	       /* to prepare; -1: none */
	bool want_words;       /* and memory for words of streams */
	struct list pin;       /* struct pinned, to be pinned, of... */
	uint64_t bytes;	       /* ...so many bytes */
	struct list drop;      /* struct pinned, to be pinned no more */
	struct pinned *single; /* the one of pin, which the caller... */
	bool left;	       /* ...has left to the pool; NULL: pin is for the pool */
	struct gpus_queues queues;
	void *words, *other; /* other: in place of the one buffer to be pinned */
	int rc;
	char text[GPU_WHY_LEN];
	pthread_t thread;
	_Atomic bool done;
};

static enum weft_result gpus_open(struct exec *x)
{
	struct gpus *gpus = calloc(1, sizeof(*gpus));
	enum weft_result result;

	if (!gpus)
		return error_set(WEFT_ERR_NOMEM, "no memory for the GPUs of a context");
	list_init(&gpus->gates);
	result = pinned_pool_open(&gpus->pool);
	if (result != WEFT_SUCCESS) {
		free(gpus);
		return result;
	}
	if (gpu_open(NULL, &gpus->gpu)) {
		free(gpus);
		return error_set(WEFT_ERR_NOMEM, "no memory for a GPU backend");
	}
	gpus->queues = calloc((size_t)gpus->gpu->devices + 1, sizeof(*gpus->queues));
	if (!gpus->queues) {
		gpu_close(gpus->gpu);
		free(gpus);
		return error_set(WEFT_ERR_NOMEM, "no memory for queues of GPUs");
	}
	x->gpus = gpus;
	return WEFT_SUCCESS;
}

enum weft_result gpus_get(struct exec *x, const char *what, struct gpus **gpus)
{
	if (!x->gpus) {
		enum weft_result result = gpus_open(x);

		if (result != WEFT_SUCCESS)
			return result;
	}
	*gpus = x->gpus;
	if (!what || x->gpus->gpu->devices)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_UNSUPPORTED, "%s, but this process has no GPU: %s",
			 what, x->gpus->gpu->why);
}

/* ---- what may take until a device is idle --------------------------------------------
 */

static int work_prepare(struct gpus_work *w)
{
	int rc = gpu_device_use(w->gpu, w->device);

	if (!rc)
		rc = gpu_queue_open(w->gpu, w->device, &w->queues.in);
	if (!rc)
		rc = gpu_queue_open(w->gpu, w->device, &w->queues.out);
	if (!rc && w->want_words)
		rc = gpu_pinned_alloc(w->gpu, WORDS_BYTES, &w->words);
	return rc;
}

/* One that cannot be pinned is no error. */
static void work_pins(struct gpus_work *w)
{
	list_foreach (pos, &w->drop)
		gpu_pinned_unregister(w->gpu,
				      container_of(pos, struct pinned, link)->memory);
	list_foreach (pos, &w->pin) {
		struct pinned *p = container_of(pos, struct pinned, link);
		const int rc = pinned_pin(w->gpu, p);

		/* Devices would see it elsewhere. */
		if (rc == -ENOSYS && p == w->single)
			gpu_pinned_alloc(w->gpu, p->size, &w->other);
	}
}

static void work_undo(struct gpus_work *w)
{
	if (w->queues.in)
		gpu_queue_close(w->queues.in);
	if (w->queues.out)
		gpu_queue_close(w->queues.out);
	w->queues = (struct gpus_queues){.in = NULL};
}

static void *work_main(void *arg)
{
	struct gpus_work *w = arg;

	gpu_thread_init(w->gpu);
	w->rc = w->device >= 0 ? work_prepare(w) : 0;
	if (w->rc) {
		snprintf(w->text, sizeof(w->text), "%s", gpu_error(w->gpu));
		work_undo(w);
	} else {
		work_pins(w);
	}
	quiet_end();
	atomic_store_explicit(&w->done, true, memory_order_release);
	return NULL;
}

static struct gpus_work *work_new(struct gpus *gpus, int32_t device)
{
	struct gpus_work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->gpu = gpus->gpu;
	w->device = device;
	list_init(&w->pin);
	list_init(&w->drop);
	return w;
}

/* Takes in what was done, and forgets the work. */
static void work_end(struct exec *x, struct gpus_work *w)
{
	struct gpus *gpus = x->gpus;
	struct list *node;

	pthread_join(w->thread, NULL);
	gpus->work = NULL;
	if (w->device >= 0 && !w->rc)
		gpus->queues[w->device] = w->queues;
	if (w->words)
		gpus->words = w->words;
	while ((node = list_pop_front(&w->drop))) {
		struct pinned *p = container_of(node, struct pinned, link);

		p->plain = true;
		gpus->pool.bytes -= p->size;
		pinned_free(x, p);
	}
	while ((node = list_pop_front(&w->pin))) {
		struct pinned *p = container_of(node, struct pinned, link);

		if (w->other) {
			block_free(&x->mem, p->memory);
			p->memory = w->other;
			p->block = p->plain = false;
		}
		if (!p->plain)
			gpus->pool.bytes += p->size;
		if (!w->single || w->left)
			pinned_put(x, p);
	}
	free(w);
}

/* Whether the work is done by then. */
static bool work_wait(const struct gpus_work *w, uint64_t patience_ns)
{
	uint64_t waited = 0, nap = NAP_FIRST;

	while (!atomic_load_explicit(&w->done, memory_order_acquire)) {
		const struct timespec ts = {.tv_nsec = (long)nap};

		if (waited >= patience_ns)
			return false;
		nanosleep(&ts, NULL);
		waited += nap;
		nap = nap * 2 < NAP_LAST ? nap * 2 : NAP_LAST;
	}
	return true;
}

/* Begins the work, in a quiet time, which ends with it; false: there is no thread. */
static bool work_begin(struct gpus *gpus, struct gpus_work *w)
{
	if (pthread_create(&w->thread, NULL, work_main, w)) {
		quiet_end();
		return false;
	}
	gpus->work = w;
	return true;
}

/* Nothing of an earlier one goes on; false: it still does. */
static bool work_is_free(struct exec *x, uint64_t patience_ns)
{
	struct gpus_work *w = x->gpus->work;

	if (!w)
		return true;
	if (!work_wait(w, patience_ns))
		return false;
	work_end(x, w);
	return true;
}

/* It was not begun: what it has is as it was. */
static void work_drop(struct exec *x, struct gpus_work *w)
{
	struct list *node;

	while ((node = list_pop_front(&w->drop)) || (node = list_pop_front(&w->pin)))
		pinned_put(x, container_of(node, struct pinned, link));
	free(w);
}

/* Idle ones that are pinned give way, the shortest first. */
static void work_trim(struct exec *x, struct gpus_work *w, size_t size)
{
	struct pinned_pool *pool = &x->gpus->pool;
	const size_t round = pinned_round(size);
	uint64_t left = pool->bytes;

	if (round > pool->most)
		return;
	list_foreach_safe (pos, next, &pool->idle) {
		struct pinned *p = container_of(pos, struct pinned, link);

		if (left <= pool->most - round)
			return;
		if (p->plain || !p->block)
			continue;
		left -= p->size;
		list_remove(&p->link);
		list_push_back(&w->drop, &p->link);
	}
}

bool gpus_pin(struct exec *x, struct pinned *pinned)
{
	struct gpus_work *w;

	if (pinned->size > x->gpus->pool.most || !work_is_free(x, 0) || !quiet_begin(0))
		return true;
	w = work_new(x->gpus, -1);
	if (!w) {
		quiet_end();
		return true;
	}
	w->single = pinned;
	work_trim(x, w, pinned->size);
	list_push_back(&w->pin, &pinned->link);
	if (!work_begin(x->gpus, w)) {
		list_remove(&pinned->link);
		work_drop(x, w);
		return true;
	}
	if (!work_wait(w, PATIENCE_NS)) {
		w->left = true;
		return false;
	}
	work_end(x, w);
	return true;
}

/* ---- devices -------------------------------------------------------------------------
 */

static bool device_is_ready(const struct gpus *gpus, int32_t device)
{
	return gpus->queues[device].out != NULL;
}

static void pool_add(struct exec *x, struct gpus_work *w, size_t size, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct pinned *p;

		if (!pinned_fits(x, w->bytes, size))
			return;
		p = pinned_new(x, size);
		if (!p)
			return;
		w->bytes += p->size;
		list_push_back(&w->pin, &p->link);
	}
}

static enum weft_result device_fault(int32_t device, int rc, const char *text)
{
	return error_set(rc == -ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_DEVICE,
			 "preparing GPU %d: %s", device, text);
}

/* After a wait that was too long, or that would be. */
static enum weft_result device_busy(int32_t device)
{
	return error_set(WEFT_ERR_BUSY,
			 "preparing GPU %d waits until it is idle, and streams are held: "
			 "call weft_gpu_prepare() before a stream is made to wait",
			 device);
}

/* Prepares the device where it is not, and pins so much more. Waits so long for a quiet
 * time, and for the driver. */
static enum weft_result device_work(struct exec *x, int32_t device, size_t size,
				    uint32_t count, uint64_t quiet_ns, uint64_t driver_ns)
{
	struct gpus *gpus = x->gpus;
	const bool ready = device_is_ready(gpus, device);
	enum weft_result result = WEFT_SUCCESS;
	struct gpus_work *w;

	if (!quiet_begin(quiet_ns))
		return device_busy(device);
	w = work_new(gpus, ready ? -1 : device);
	if (!w) {
		quiet_end();
		return error_set(WEFT_ERR_NOMEM, "no memory to prepare a GPU with");
	}
	w->want_words = !ready && !gpus->words;
	for (size_t i = 0; w->want_words && i < sizeof(pool_first) / sizeof(*pool_first);
	     i++)
		pool_add(x, w, pool_first[i].size, pool_first[i].count);
	pool_add(x, w, size, count);
	if (!work_begin(gpus, w)) {
		work_drop(x, w);
		return error_set(WEFT_ERR_NOMEM, "no thread to prepare a GPU with");
	}
	if (!work_wait(w, driver_ns))
		return device_busy(device);
	if (w->rc)
		result = device_fault(device, w->rc, w->text);
	work_end(x, w);
	return result;
}

enum weft_result gpus_use(struct exec *x, int32_t device)
{
	if (device_is_ready(x->gpus, device))
		return WEFT_SUCCESS;
	if (!work_is_free(x, PATIENCE_NS))
		return device_busy(device);
	if (device_is_ready(x->gpus, device))
		return WEFT_SUCCESS;
	return device_work(x, device, 0, 0, QUIET_NS, PATIENCE_NS);
}

enum weft_result exec_gpu_prepare(struct exec *x, int32_t device, size_t size,
				  uint32_t count)
{
	struct gpus *gpus;
	enum weft_result result = gpus_get(x, "weft_gpu_prepare() was called", &gpus);
	uint32_t have;

	if (result != WEFT_SUCCESS)
		return result;
	if (device < 0 || device >= gpus->gpu->devices)
		return error_set(WEFT_ERR_ARG,
				 "weft_gpu_prepare: device is %d: this process has %d "
				 "GPUs, counted from 0",
				 device, gpus->gpu->devices);
	result = gpus_use(x, device);
	have = size && result == WEFT_SUCCESS ? pinned_count(x, size) : count;
	if (result != WEFT_SUCCESS || have >= count)
		return result;
	if (pinned_round(size) > (gpus->pool.most - gpus->pool.bytes) / (count - have))
		return error_set(WEFT_ERR_NOMEM,
				 "weft_gpu_prepare: %u buffers of %zu bytes, where %llu "
				 "MiB are pinned: with WEFT_GPU_PINNED a context pins "
				 "%llu MiB at most",
				 count - have, pinned_round(size),
				 (unsigned long long)gpus->pool.bytes >> 20,
				 (unsigned long long)gpus->pool.most >> 20);
	result = device_work(x, device, size, count - have, QUIET_NS, PATIENCE_NS);
	if (result == WEFT_SUCCESS && pinned_count(x, size) < count)
		result = error_set(WEFT_ERR_NOMEM,
				   "weft_gpu_prepare: the driver does not pin %u buffers "
				   "of %zu bytes",
				   count - have, pinned_round(size));
	return result;
}

/* The driver is in the process, or a backend was named. */
static bool somebody_has_gpus(void)
{
	void *driver;

	if (getenv("WEFT_GPU_LIB"))
		return true;
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (driver)
		dlclose(driver);
	return driver != NULL;
}

bool exec_has_gpus(const struct exec *x)
{
	return x->gpus && x->gpus->gpu->devices > 0;
}

void exec_gpus_warm(struct exec *x)
{
	struct gpus *gpus;

	if (!somebody_has_gpus() || gpus_get(x, NULL, &gpus) != WEFT_SUCCESS)
		return;
	/* Who cannot is told when he needs it; what takes longer goes on meanwhile. */
	for (int i = 0; i < gpus->gpu->devices; i++) {
		if (!device_is_ready(gpus, i) && gpu_device_active(gpus->gpu, i) &&
		    work_is_free(x, 0))
			(void)device_work(x, i, 0, 0, 0, QUIET_NS);
	}
	error_clear();
}

void gpus_close(struct exec *x)
{
	struct gpus *gpus = x->gpus;
	bool all;

	if (!gpus)
		return;
	all = passages_close(gpus);
	/* A stream that may still look at a word of ours keeps the backend, and so does a
	 * thread that the driver does not let go. */
	if (!work_is_free(x, CLOSE_NS) || !quiet_begin(CLOSE_NS)) {
		x->gpus = NULL;
		return;
	}
	for (int i = 0; i < gpus->gpu->devices; i++) {
		if (gpus->queues[i].in)
			gpu_queue_close(gpus->queues[i].in);
		if (gpus->queues[i].out)
			gpu_queue_close(gpus->queues[i].out);
	}
	pinned_pool_close(x);
	if (all && gpus->words)
		gpu_pinned_free(gpus->gpu, gpus->words);
	if (all)
		gpu_close(gpus->gpu);
	quiet_end();
	free(gpus->queues);
	free(gpus);
	x->gpus = NULL;
}

void gpus_queues(struct exec *x, int32_t device, struct gpus_queues *queues)
{
	*queues = x->gpus->queues[device];
}

/* ---- words of streams ----------------------------------------------------------------
 */

void *words_get(struct gpus *gpus)
{
	for (uint32_t i = 0; gpus->words && i < WORDS_COUNT; i++) {
		if (gpus->words_used[i / 64] & UINT64_C(1) << i % 64)
			continue;
		gpus->words_used[i / 64] |= UINT64_C(1) << i % 64;
		return gpus->words + (size_t)i * WORDS_EACH;
	}
	return NULL;
}

void words_put(struct gpus *gpus, void *words)
{
	const size_t i = (size_t)((char *)words - gpus->words) / WORDS_EACH;

	memset(words, 0, WORDS_EACH);
	gpus->words_used[i / 64] &= ~(UINT64_C(1) << i % 64);
}

bool exec_thread_init(struct exec *x)
{
	return x->gpus && gpu_thread_init(x->gpus->gpu) == 0;
}

/* ---- whose memory is this ------------------------------------------------------------
 */

static const char *const kind_name[] = {
	[GPU_MEM_HOST] = "ordinary host memory",
	[GPU_MEM_PINNED] = "pinned host memory",
	[GPU_MEM_DEVICE] = "device memory",
	[GPU_MEM_MANAGED] = "managed memory",
};

/* All of the buffer is memory of the device that has its first byte. */
static enum weft_result memory_is_whole(struct exec *x, const char *name,
					const struct weft_buf *buf, size_t len,
					struct gpu_range range)
{
	struct gpu *gpu = x->gpus->gpu;
	const uint64_t begin = (uint64_t)(uintptr_t)buf->addr;
	const int device = range.device;

	while (range.base + range.len < begin + len) {
		const uint64_t at = range.base + range.len;
		const int rc = gpu_query(gpu, (const void *)(uintptr_t)at,
					 begin + len - at, &range);

		if (rc)
			return error_set(WEFT_ERR_DEVICE, "%s: whose memory it is: %s",
					 name, gpu_error(gpu));
		if (range.kind != GPU_MEM_DEVICE || range.device != device || !range.len)
			return error_set(WEFT_ERR_ARG,
					 "%s: of its %zu bytes only the first %llu are "
					 "memory of GPU "
					 "%d",
					 name, len, (unsigned long long)(at - begin),
					 device);
	}
	return WEFT_SUCCESS;
}

static enum weft_result memory_is(struct exec *x, const char *name,
				  const struct weft_buf *buf, size_t len,
				  const struct gpu_range *range, int32_t *found)
{
	const bool said = buf->kind == WEFT_MEM_CUDA;
	enum weft_result result;

	*found = -1;
	if (range->kind != GPU_MEM_DEVICE) {
		/* Managed memory is the host's, too. */
		if (!said || range->kind == GPU_MEM_MANAGED)
			return WEFT_SUCCESS;
		return error_set(WEFT_ERR_ARG,
				 "%s.kind is WEFT_MEM_CUDA, but %p is %s: give "
				 "WEFT_MEM_HOST, or WEFT_MEM_AUTO to have it found out",
				 name, buf->addr, kind_name[range->kind]);
	}
	if (said && range->device != buf->device)
		return error_set(WEFT_ERR_ARG,
				 "%s.device is %d, but %p is memory of GPU %d", name,
				 buf->device, buf->addr, range->device);
	result = memory_is_whole(x, name, buf, len, *range);
	if (result == WEFT_SUCCESS)
		result = gpus_use(x, range->device);
	if (result == WEFT_SUCCESS)
		*found = range->device;
	return result;
}

enum weft_result exec_find_memory(struct exec *x, const char *name,
				  const struct weft_buf *buf, int32_t *found)
{
	const size_t len = buf->count * weft_type_size(buf->type);
	struct gpu_range range;
	struct gpus *gpus;
	char what[64];
	enum weft_result result;

	*found = -1;
	if (buf->kind == WEFT_MEM_HOST)
		return WEFT_SUCCESS;
	snprintf(what, sizeof(what), "%s.kind is WEFT_MEM_CUDA", name);
	result = gpus_get(x, buf->kind == WEFT_MEM_CUDA ? what : NULL, &gpus);
	if (result != WEFT_SUCCESS || !len || !gpus->gpu->devices)
		return result;
	if (buf->kind == WEFT_MEM_CUDA &&
	    (buf->device < 0 || buf->device >= gpus->gpu->devices))
		return error_set(
			WEFT_ERR_ARG,
			"%s.device is %d: this process has %d GPUs, counted from "
			"0",
			name, buf->device, gpus->gpu->devices);
	if (gpu_query(gpus->gpu, buf->addr, len, &range))
		return error_set(WEFT_ERR_DEVICE, "%s: whose memory it is: %s", name,
				 gpu_error(gpus->gpu));
	return memory_is(x, name, buf, len, &range, found);
}
