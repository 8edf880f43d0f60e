/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between devices and the host, by copy engines. Memory of the host that is not
 * pinned is reached through two pinned buffers: while the engine works on one, the
 * processor copies the other.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "gpu/gpu.h"
#include "prov/mem/device.h"
#include "prov/mem/device_int.h"
#include "prov/mem/params.h"

#define HALF	    ((size_t)256 << 10) /* bytes of one of the two buffers */
#define DEADLINE_NS UINT64_C(10000000000)
#define LOOKS	    256 /* at a mark, between two at the clock */

/* How a device copies. */
struct lane {
	struct gpu_queue *queue; /* NULL: not used yet */
	char *half[2];
};

static pthread_mutex_t copy_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lane lanes[GPU_DEVICES];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int failed(const char *what, int device)
{
	FI_WARN(&weft_provider, FI_LOG_EP_DATA, "GPU %d: %s: %s\n", device, what,
		gpu_error(mem_device_gpu()));
	return -FI_EIO;
}

static int lane_open(int device, struct lane **out)
{
	struct lane *lane = &lanes[device];
	struct gpu *gpu = mem_device_gpu();
	void *at;

	*out = lane;
	if (lane->queue)
		return 0;
	if (!lane->half[0]) {
		if (gpu_pinned_alloc(gpu, 2 * HALF, &at) != 0)
			return failed("pinned memory to copy through", device);
		lane->half[0] = at;
		lane->half[1] = lane->half[0] + HALF;
	}
	if (gpu_queue_open(gpu, device, &lane->queue) != 0) {
		lane->queue = NULL;
		return failed("a queue to copy by", device);
	}
	return 0;
}

/* Until the copies up to that mark are done. */
static int mark_wait(const struct lane *lane, uint64_t mark)
{
	uint64_t deadline = now_ns() + DEADLINE_NS;

	while (!gpu_queue_done(lane->queue, mark)) {
		for (int i = 0; i < LOOKS && !gpu_queue_done(lane->queue, mark); i++)
			__asm__ volatile("" ::: "memory");
		sched_yield();
		if (gpu_queue_done(lane->queue, mark))
			break;
		if (now_ns() < deadline)
			continue;
		return gpu_queue_sync(lane->queue, 0) == -ETIMEDOUT
			       ? failed("a copy is not done after 10 s",
					lane->queue->device)
			       : failed("a copy", lane->queue->device);
	}
	return 0;
}

/* Nothing that was given is under way afterwards, so that its memory may go. */
static int settle(const struct lane *lane, int ret)
{
	int rc = gpu_queue_sync(lane->queue, DEADLINE_NS);

	return ret ? ret : rc ? failed("a copy", lane->queue->device) : 0;
}

/* One piece by the engine, with a mark behind it. */
static int engine(const struct lane *lane, void *to, const void *from, size_t len)
{
	if (gpu_copy(lane->queue, to, from, len) != 0 || gpu_queue_mark(lane->queue) != 0)
		return failed("a copy", lane->queue->device);
	return 0;
}

static int direct(const struct lane *lane, void *to, const void *from, size_t len)
{
	int ret = engine(lane, to, from, len);

	if (!ret)
		ret = mark_wait(lane, lane->queue->issued);
	return ret ? settle(lane, ret) : 0;
}

static size_t piece(size_t left)
{
	return left < HALF ? left : HALF;
}

/* From the device to memory of the host. */
static int pull(const struct lane *lane, char *to, const char *from, size_t len)
{
	size_t asked = piece(len), done = 0;
	int ret = engine(lane, lane->half[0], from, asked), at = 0;
	uint64_t mark = lane->queue->issued;

	while (!ret && done < len) {
		size_t here = asked - done, next = piece(len - asked);

		if (next)
			ret = engine(lane, lane->half[!at], from + asked, next);
		if (!ret)
			ret = mark_wait(lane, mark);
		if (ret)
			break;
		memcpy(to + done, lane->half[at], here);
		done += here;
		asked += next;
		mark = lane->queue->issued;
		at = !at;
	}
	return ret ? settle(lane, ret) : 0;
}

/* From memory of the host to the device. */
static int push(const struct lane *lane, char *to, const char *from, size_t len)
{
	uint64_t mark[2] = {0, 0};
	int ret = 0, at = 0;

	for (size_t done = 0; !ret && done < len; at = !at) {
		size_t here = piece(len - done);

		ret = mark[at] ? mark_wait(lane, mark[at]) : 0;
		if (ret)
			break;
		memcpy(lane->half[at], from + done, here);
		ret = engine(lane, to + done, lane->half[at], here);
		mark[at] = lane->queue->issued;
		done += here;
	}
	if (!ret)
		ret = mark_wait(lane, lane->queue->issued);
	return ret ? settle(lane, ret) : 0;
}

/* Between two devices, where one reaches the other; else by the host. */
static int across(int to_device, const struct lane *lane, char *to, const char *from,
		  size_t len)
{
	struct gpu *gpu = mem_device_gpu();
	struct lane *there;
	int ret;

	if (to_device == lane->queue->device ||
	    gpu_peer(gpu, lane->queue->device, to_device) == 0)
		return direct(lane, to, from, len);
	ret = lane_open(to_device, &there);
	for (size_t done = 0; !ret && done < len;) {
		size_t here = piece(len - done);

		ret = direct(lane, lane->half[0], from + done, here);
		if (!ret)
			ret = direct(there, to + done, lane->half[0], here);
		done += here;
	}
	return ret;
}

static int copy(char *to, const char *from, size_t len, bool pinned)
{
	int source = mem_device_find(from, len), target = mem_device_find(to, len), ret;
	struct lane *lane;

	if (source < 0 || target < 0) {
		FI_WARN(&weft_provider, FI_LOG_EP_DATA,
			"%zu bytes %s %p: memory of a GPU that is not registered to its "
			"end, or was freed before its registration was closed\n",
			len, source < 0 ? "from" : "to",
			source < 0 ? (const void *)from : (void *)to);
		return -FI_EFAULT;
	}
	if (source == MEM_DEVICE_NONE && target == MEM_DEVICE_NONE) {
		memcpy(to, from, len);
		return 0;
	}
	pthread_mutex_lock(&copy_lock);
	ret = lane_open(source != MEM_DEVICE_NONE ? source : target, &lane);
	if (!ret && source != MEM_DEVICE_NONE && target != MEM_DEVICE_NONE)
		ret = across(target, lane, to, from, len);
	else if (!ret && pinned)
		ret = direct(lane, to, from, len);
	else if (!ret)
		ret = source != MEM_DEVICE_NONE ? pull(lane, to, from, len)
						: push(lane, to, from, len);
	pthread_mutex_unlock(&copy_lock);
	return ret;
}

int mem_device_copy(void *to, const void *from, size_t len)
{
	return len ? copy(to, from, len, false) : 0;
}

int mem_pinned_copy(void *to, const void *from, size_t len)
{
	return len ? copy(to, from, len, true) : 0;
}

void *mem_pinned_alloc(size_t len)
{
	void *at;

	if (gpu_pinned_alloc(mem_device_gpu(), len, &at) != 0) {
		FI_WARN(&weft_provider, FI_LOG_EP_DATA,
			"GPU: %zu bytes of pinned memory: %s\n", len,
			gpu_error(mem_device_gpu()));
		return NULL;
	}
	return at;
}

void mem_pinned_free(void *at)
{
	if (at)
		gpu_pinned_free(mem_device_gpu(), at);
}
