/* SPDX-License-Identifier: BSD-2-Clause */
/* See perf_memory.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/parse.h"
#include "cli/perf.h"
#include "cli/perf_memory.h"
#include "gpu/gpu.h"

/* A copy takes milliseconds; after this the device is taken for dead. */
#define COPY_NS UINT64_C(60000000000)

static bool fault(const struct perf *p, const char *what)
{
	fprintf(stderr, "weft %s: rank %" PRId32 ": %s GPU %" PRId32 ": %s\n",
		p->opts->who, p->rank, what, p->memory.device, gpu_error(p->memory.gpu));
	return false;
}

static void no_memory(const struct perf *p, size_t src, size_t dst)
{
	fprintf(stderr,
		"weft %s: rank %" PRId32 ": no memory for %zu and %zu bytes: choose "
		"smaller --sizes\n",
		p->opts->who, p->rank, src, dst);
}

/* The GPU of this rank, of those of its host. */
static bool device_open(struct perf *p)
{
	const char *text = getenv("WEFT_LOCAL_RANK");
	struct perf_memory *m = &p->memory;
	int64_t local = p->rank;

	if (gpu_open(NULL, &m->gpu)) {
		m->gpu = NULL;
		fprintf(stderr, "weft %s: no memory\n", p->opts->who);
		return false;
	}
	if (!m->gpu->devices) {
		fprintf(stderr,
			"weft %s: rank %" PRId32
			": --memory cuda, but this process has no GPU: %s; use --memory "
			"host, or see the "
			"GPUs of weft info\n",
			p->opts->who, p->rank, m->gpu->why);
		return false;
	}
	if (text && !parse_int(text, 0, INT32_MAX, &local))
		local = p->rank;
	m->device = (int32_t)(local % m->gpu->devices);
	return gpu_queue_open(m->gpu, m->device, &m->queue) ? fault(p, "a queue of")
							    : true;
}

/* Pinned, so that copies are not of the driver's making. */
static bool device_side(struct perf *p, struct perf_side *side, size_t len)
{
	struct gpu *gpu = p->memory.gpu;
	void *host, *device;

	if (gpu_pinned_alloc(gpu, len, &host))
		return fault(p, "pinned memory for");
	side->host = host;
	if (gpu_alloc(gpu, p->memory.device, len, &device))
		return fault(p, "memory of");
	side->device = device;
	return true;
}

/* What calls are given, or what data are made and checked in. */
static void side_take(struct perf *p, bool host)
{
	const struct perf_side *side = p->memory.side;

	p->src = host || !side[0].device ? side[0].host : side[0].device;
	p->dst = host || !side[1].device ? side[1].host : side[1].device;
}

bool perf_memory_open(struct perf *p, size_t src, size_t dst)
{
	struct perf_side *side = p->memory.side;
	bool good;

	if (p->opts->cuda) {
		good = device_open(p) && device_side(p, &side[0], src) &&
		       device_side(p, &side[1], dst);
	} else {
		side[0].host = malloc(src);
		side[1].host = malloc(dst);
		good = side[0].host && side[1].host;
		if (!good)
			no_memory(p, src, dst);
	}
	side_take(p, false);
	return good;
}

void perf_memory_close(struct perf *p)
{
	struct perf_memory *m = &p->memory;

	for (int i = 0; i < 2; i++) {
		if (m->side[i].device)
			gpu_free(m->gpu, m->side[i].device);
		if (m->gpu && m->side[i].host)
			gpu_pinned_free(m->gpu, m->side[i].host);
		if (!m->gpu)
			free(m->side[i].host);
	}
	if (m->queue)
		gpu_queue_close(m->queue);
	gpu_close(m->gpu);
}

void perf_memory_say(const struct perf *p, struct weft_opts *opts)
{
	if (!p->opts->cuda)
		return;
	opts->src_kind = opts->dst_kind = WEFT_MEM_CUDA;
	opts->src_device = opts->dst_device = p->memory.device;
}

/* Both sides, as far as the call has them, one way. */
static bool sides_copy(struct perf *p, const struct perf_op *op, uint64_t count, bool in)
{
	const int32_t blocks[2] = {op->src_blocks, op->dst_blocks};
	struct perf_memory *m = &p->memory;

	if (!m->queue || !op->sized)
		return true;
	for (int i = 0; i < 2; i++) {
		const struct perf_side *side = &m->side[i];
		const size_t len = (size_t)count * p->elem *
				   (size_t)(blocks[i] ? blocks[i] : p->size);

		if (len && gpu_copy(m->queue, in ? side->device : side->host,
				    in ? side->host : side->device, len))
			return fault(p, in ? "copying to" : "copying from");
	}
	if (gpu_queue_mark(m->queue) || gpu_queue_sync(m->queue, COPY_NS))
		return fault(p, "copying by");
	return true;
}

bool perf_prepare(struct perf *p, const struct perf_op *op, uint64_t count, bool sampled)
{
	side_take(p, true);
	op->prepare(p, count, sampled);
	side_take(p, false);
	return sides_copy(p, op, count, true);
}

bool perf_check(struct perf *p, const struct perf_op *op, uint64_t count, bool sampled,
		bool *right)
{
	if (!sides_copy(p, op, count, false))
		return false;
	side_take(p, true);
	*right = op->check(p, count, sampled);
	side_take(p, false);
	return true;
}
