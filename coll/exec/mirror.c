/* SPDX-License-Identifier: BSD-2-Clause */
/* See mirror.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/mirror.h"
#include "coll/exec/passage.h"
#include "coll/exec/tables.h"

/* Up to this a call is filled and drained as a whole: a copy takes as long to begin as
 * some hundred KiB of it take. */
#define WHOLE_BYTES ((size_t)256 << 10)

/* Grains: short enough that copies overlap with what else is done, long enough that
 * beginning one does not show; fewer than this of a buffer, but for very long ones. */
#define GRAIN_MIN ((size_t)256 << 10)
#define GRAIN_MAX ((size_t)4 << 20)
#define GRAINS	  64

static size_t grain_of(size_t len)
{
	size_t grain = GRAIN_MIN;

	while (grain < GRAIN_MAX && len / grain > GRAINS)
		grain *= 2;
	return grain;
}

/* Said now; the request fails in its next round, since steps go on that it was found in.
 */
static void mirror_fault(struct exec_req *req, const char *what, int32_t device)
{
	struct mirror *m = req->mirror;

	if (!m->fault[0])
		snprintf(m->fault, sizeof(m->fault), "%s GPU %d failed: %s", what, device,
			 gpu_error(req->x->gpus->gpu));
}

/* ---- taking mirrors ------------------------------------------------------------------
 */

static bool sides_overlap(const struct mirror *m)
{
	const struct mirror_side *src = &m->side[PLAN_SRC], *dst = &m->side[PLAN_DST];

	return src->device >= 0 && src->device == dst->device && src->len && dst->len &&
	       src->user < dst->user + dst->len && dst->user < src->user + src->len;
}

/* Nothing is pinned for a call in a stream: what is held may be waited for by the driver,
 * which cannot go on then. */
static enum weft_result side_take(struct exec_req *req, const struct exec_call *call,
				  int which, char *lowest, size_t len)
{
	struct mirror_side *side = &req->mirror->side[which];
	struct exec_kept *kept = call->device.kept;
	enum weft_result result = WEFT_SUCCESS;

	if (kept)
		side->pinned = kept->side[which];
	else
		result = pinned_get(req->x, len, !call->passage, &side->pinned);
	if (result != WEFT_SUCCESS)
		return result;
	side->memory = side->pinned->memory + (side->user - lowest);
	return WEFT_SUCCESS;
}

/* Of both sides, where they are in place. */
static size_t sides_span(const struct mirror *m, char **lowest)
{
	const struct mirror_side *src = &m->side[PLAN_SRC], *dst = &m->side[PLAN_DST];
	const char *src_end = src->user + src->len, *dst_end = dst->user + dst->len;

	*lowest = src->user < dst->user ? src->user : dst->user;
	return (size_t)((src_end > dst_end ? src_end : dst_end) - *lowest);
}

/* In place both sides are in one mirror, as they are in one memory. */
static enum weft_result sides_take(struct exec_req *req, const struct exec_call *call,
				   struct mirror *m)
{
	struct mirror_side *src = &m->side[PLAN_SRC], *dst = &m->side[PLAN_DST];
	enum weft_result result = WEFT_SUCCESS;

	m->shared = sides_overlap(m);
	if (m->shared) {
		char *lowest;
		const size_t len = sides_span(m, &lowest);

		result = side_take(req, call, PLAN_SRC, lowest, len);
		if (result == WEFT_SUCCESS)
			dst->memory = src->pinned->memory + (dst->user - lowest);
		return result;
	}
	for (int i = 0; i < 2 && result == WEFT_SUCCESS; i++) {
		if (m->side[i].device >= 0 && m->side[i].len)
			result = side_take(req, call, i, m->side[i].user, m->side[i].len);
	}
	return result;
}

static void sides_of(const struct exec_call *call, struct mirror *m)
{
	m->side[PLAN_SRC] = (struct mirror_side){.device = call->device.src,
						 .user = call->src,
						 .len = call->device.src_len};
	m->side[PLAN_DST] = (struct mirror_side){.device = call->device.dst,
						 .user = call->dst,
						 .len = call->device.dst_len};
}

enum weft_result exec_kept_open(struct exec *x, struct exec_call *run)
{
	struct exec_kept *kept = calloc(1, sizeof(*kept));
	enum weft_result result = WEFT_SUCCESS;
	struct mirror m = {.in = false};
	char *lowest;

	if (!kept)
		return error_set(WEFT_ERR_NOMEM, "no memory for a mirror");
	sides_of(run, &m);
	if (sides_overlap(&m)) {
		result = pinned_get(x, sides_span(&m, &lowest), true,
				    &kept->side[PLAN_SRC]);
	} else {
		for (int i = 0; i < 2 && result == WEFT_SUCCESS; i++) {
			if (m.side[i].device >= 0 && m.side[i].len)
				result = pinned_get(x, m.side[i].len, true,
						    &kept->side[i]);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (kept->side[i])
			kept->side[i]->kept = true;
	}
	if (result == WEFT_SUCCESS)
		run->device.kept = kept;
	else
		exec_kept_close(x, kept);
	return result;
}

void exec_kept_close(struct exec *x, struct exec_kept *kept)
{
	for (int i = 0; i < 2; i++) {
		if (kept->side[i])
			pinned_put(x, kept->side[i]);
	}
	free(kept);
}

static bool table_grow(void **table, size_t *max, size_t count, size_t size)
{
	if (count > *max) {
		free(*table);
		*table = calloc(count, size);
		*max = *table ? count : 0;
	}
	if (*table && count)
		memset(*table, 0, count * size);
	return *table || !count;
}

static enum weft_result mirror_tables(struct mirror *m)
{
	for (int i = 0; i < 2; i++) {
		struct mirror_side *side = &m->side[i];

		side->grain = grain_of(side->len);
		side->grains =
			side->memory ? (side->len + side->grain - 1) / side->grain : 0;
	}
	if (!table_grow((void **)&m->fill, &m->fill_max, m->side[PLAN_SRC].grains,
			sizeof(*m->fill)) ||
	    !table_grow((void **)&m->writes, &m->writes_max, m->side[PLAN_DST].grains,
			sizeof(*m->writes)))
		return error_set(WEFT_ERR_NOMEM, "no memory for copies of device memory");
	return WEFT_SUCCESS;
}

/* Piece by piece what a plan's instance writes into the destination, as bytes of it. */
struct written {
	struct plan_piece_iter it;
	size_t elem;
};

static bool writes_dst(const struct plan_instance *inst)
{
	return inst->kind != PLAN_SEND && inst->dst.buf == PLAN_DST;
}

static bool written_next(struct written *w, size_t *at, size_t *len)
{
	uint64_t offset, length;

	do {
		if (!plan_piece_next(&w->it, &offset, &length))
			return false;
	} while (!length);
	*at = offset * w->elem;
	*len = length * w->elem;
	return true;
}

static void written_begin(struct written *w, const struct exec_req *req,
			  const struct plan *plan, const struct plan_range *range)
{
	w->elem = req->elem_size;
	plan_piece_begin(&w->it, plan, &req->bind, range);
}

/* Counts for each grain of the destination what will write there. */
static void mirror_count(struct exec_req *req, const struct plan *plan)
{
	struct mirror *m = req->mirror;
	const size_t grain = m->side[PLAN_DST].grain;
	struct plan_instance inst;

	for (uint64_t i = 0; i < plan->instances; i++) {
		struct written w;
		size_t at, len;

		plan_instance_at(plan, i, &inst);
		if (!writes_dst(&inst))
			continue;
		written_begin(&w, req, plan, &inst.dst);
		while (written_next(&w, &at, &len)) {
			for (size_t g = at / grain; g <= (at + len - 1) / grain; g++)
				m->writes[g]++;
		}
	}
}

static void mirror_queues(struct exec_req *req, struct mirror *m)
{
	for (int i = 0; i < 2; i++) {
		struct gpus_queues queues;

		if (!m->side[i].memory)
			continue;
		gpus_queues(req->x, m->side[i].device, &queues);
		m->side[i].queue = i == PLAN_SRC ? queues.in : queues.out;
	}
}

static enum weft_result mirror_make(struct exec_req *req, const struct exec_call *call)
{
	struct mirror *m = req->mirror;
	enum weft_result result = sides_take(req, call, m);

	if (result == WEFT_SUCCESS)
		result = mirror_tables(m);
	if (result != WEFT_SUCCESS)
		return result;
	mirror_queues(req, m);
	m->in = m->side[PLAN_SRC].memory && !call->device.no_in;
	m->out = m->side[PLAN_DST].memory && !call->device.no_out;
	m->sparse = call->device.sparse;
	m->whole = !m->sparse &&
		   (lines_take(req->x, call) ||
		    m->side[PLAN_SRC].len + m->side[PLAN_DST].len <= WHOLE_BYTES);
	if (m->out && !m->sparse && !m->whole)
		mirror_count(req, call->plan);
	return WEFT_SUCCESS;
}

enum weft_result mirror_open(struct exec_req *req, const struct exec_call *call)
{
	struct mirror *m = req->mirror_memory;
	enum weft_result result;

	if (!m)
		m = req->mirror_memory = calloc(1, sizeof(*m));
	if (!m)
		return error_set(WEFT_ERR_NOMEM, "no memory for a mirror");
	*m = (struct mirror){.fill = m->fill,
			     .writes = m->writes,
			     .fill_max = m->fill_max,
			     .writes_max = m->writes_max};
	list_init(&m->waiting);
	sides_of(call, m);
	req->mirror = m;
	result = mirror_make(req, call);
	if (result != WEFT_SUCCESS) {
		mirror_close(req);
		return result;
	}
	for (int i = 0; i < 2; i++) {
		if (m->side[i].memory)
			req->buf[i] = m->side[i].memory;
	}
	return WEFT_SUCCESS;
}

void mirror_close(struct exec_req *req)
{
	struct mirror *m = req->mirror;

	for (int i = 0; i < 2; i++) {
		if (m->side[i].pinned && !m->side[i].pinned->kept)
			pinned_put(req->x, m->side[i].pinned);
		m->side[i].pinned = NULL;
	}
	req->mirror = NULL;
}

void mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return;
	free(mirror->fill);
	free(mirror->writes);
	free(mirror);
}

/* ---- fills ---------------------------------------------------------------------------
 */

/* Bytes of grains [from, to) of a side. */
static size_t grains_bytes(const struct mirror_side *side, size_t from, size_t to)
{
	const size_t end = to * side->grain < side->len ? to * side->grain : side->len;

	return end - from * side->grain;
}

/* Asks for grains that nobody has asked for, as few copies as may be. */
static void fill_grains(struct exec_req *req, size_t from, size_t to)
{
	struct mirror *m = req->mirror;
	const struct mirror_side *src = &m->side[PLAN_SRC];
	const size_t at = from * src->grain, len = grains_bytes(src, from, to);
	int rc = gpu_copy(src->queue, src->memory + at, src->user + at, len);

	if (!rc)
		rc = gpu_queue_mark(src->queue);
	if (rc) {
		mirror_fault(req, "copying from", src->device);
		return;
	}
	m->asked = src->queue->issued;
	for (size_t g = from; g < to; g++)
		m->fill[g] = m->asked;
	req->x->stats.staged_bytes += len;
}

/* Grains [from, to); the number of the last that is needed, which none will have after a
 * fault. */
static uint64_t fill_ask(struct exec_req *req, size_t from, size_t to)
{
	struct mirror *m = req->mirror;
	const size_t most = GRAIN_MAX / m->side[PLAN_SRC].grain;
	uint64_t number = 0;

	for (size_t g = from; g < to && !m->fault[0];) {
		size_t end = g;

		while (end < to && end - g < most && !m->fill[end])
			end++;
		if (end > g)
			fill_grains(req, g, end);
		else
			end = g + 1;
		for (; g < end; g++)
			number = m->fill[g] > number ? m->fill[g] : number;
	}
	return m->fault[0] ? UINT64_MAX : number;
}

/* The same of bytes of the mirror, as far as they are of the source. */
static uint64_t fill_bytes(struct exec_req *req, const char *at, size_t len)
{
	const struct mirror_side *src = &req->mirror->side[PLAN_SRC];
	const char *end = at + len;

	if (at < src->memory)
		at = src->memory;
	if (end > src->memory + src->len)
		end = src->memory + src->len;
	if (at >= end)
		return 0;
	return fill_ask(req, (size_t)(at - src->memory) / src->grain,
			(size_t)(end - src->memory - 1) / src->grain + 1);
}

static uint64_t fill_range(const struct slot *slot, const struct plan_range *range)
{
	struct exec_req *req = slot->req;
	const struct mirror *m = req->mirror;
	struct plan_piece_iter it;
	uint64_t offset, length, number = 0;

	if (range->buf != PLAN_SRC && !(range->buf == PLAN_DST && m->shared))
		return 0;
	plan_piece_begin(&it, req->call.plan, &req->bind, range);
	while (plan_piece_next(&it, &offset, &length)) {
		const uint64_t n =
			fill_bytes(req, req->buf[range->buf] + offset * req->elem_size,
				   length * req->elem_size);

		number = n > number ? n : number;
	}
	return number;
}

void mirror_admit(struct slot *slot)
{
	struct exec_req *req = slot->req;
	struct mirror *m = req->mirror;
	const struct plan_instance *inst = &slot->inst;
	uint64_t number = 0, n;

	if (!m->in || m->whole || !slot->bytes)
		return;
	if (inst->kind != PLAN_SEND)
		number = fill_range(slot, &inst->dst);
	if (inst->kind != PLAN_RECV) {
		n = fill_range(slot, &inst->src);
		number = n > number ? n : number;
	}
	if (inst->kind == PLAN_REDUCE) {
		n = fill_range(slot, &inst->src2);
		number = n > number ? n : number;
	}
	if (!number || gpu_queue_done(m->side[PLAN_SRC].queue, number))
		return;
	slot->fill = number;
	slot->deps_left++;
	list_push_back(&m->waiting, &slot->link);
}

/* ---- drains --------------------------------------------------------------------------
 */

static void drain_bytes(struct exec_req *req, size_t at, size_t len)
{
	struct mirror_side *dst = &req->mirror->side[PLAN_DST];

	if (req->mirror->fault[0])
		return;
	if (gpu_copy(dst->queue, dst->user + at, dst->memory + at, len)) {
		mirror_fault(req, "copying to", dst->device);
		return;
	}
	/* Of a mark that is made later. */
	req->mirror->drained = UINT64_MAX;
	req->x->stats.staged_bytes += len;
}

/* Whether what a grain of the destination holds of the source is there: in place blocks
 * that no step touches lie beside those that are written. */
static bool grain_is_whole(struct exec_req *req, size_t g)
{
	const struct mirror *m = req->mirror;
	const struct mirror_side *dst = &m->side[PLAN_DST];
	uint64_t number;

	if (!m->shared || !m->in)
		return true;
	number = fill_bytes(req, dst->memory + g * dst->grain,
			    grains_bytes(dst, g, g + 1));
	return !number || gpu_queue_done(m->side[PLAN_SRC].queue, number);
}

/* Grains [from, to) that nothing will write any more, and that are whole. */
static void drain_grains(struct exec_req *req, size_t from, size_t to)
{
	struct mirror *m = req->mirror;
	const struct mirror_side *dst = &m->side[PLAN_DST];
	size_t begin = from;

	for (size_t g = from; g <= to; g++) {
		const bool ready = g < to && m->writes[g] == 0;
		const bool whole = ready && grain_is_whole(req, g);

		if (ready && !whole)
			m->late = true;
		if (whole) {
			m->writes[g] = UINT32_MAX; /* is on its way */
			continue;
		}
		if (begin < g)
			drain_bytes(req, begin * dst->grain, grains_bytes(dst, begin, g));
		begin = g + 1;
	}
}

static void drain_late(struct exec_req *req)
{
	struct mirror *m = req->mirror;

	m->late = false;
	for (size_t g = 0; g < m->side[PLAN_DST].grains; g++) {
		if (m->writes[g] == 0)
			drain_grains(req, g, g + 1);
	}
}

void mirror_written(struct slot *slot)
{
	struct exec_req *req = slot->req;
	struct mirror *m = req->mirror;
	const size_t grain = m->side[PLAN_DST].grain;
	struct written w;
	size_t at, len;

	if (!m->out || m->whole || !slot->bytes || !writes_dst(&slot->inst))
		return;
	written_begin(&w, req, req->call.plan, &slot->inst.dst);
	while (written_next(&w, &at, &len)) {
		if (m->sparse) {
			drain_bytes(req, at, len);
			continue;
		}
		for (size_t g = at / grain; g <= (at + len - 1) / grain; g++)
			m->writes[g]--;
		drain_grains(req, at / grain, (at + len - 1) / grain + 1);
	}
}

/* A mark behind what was drained so far; false: the device does not take it. */
static bool drain_mark(struct exec_req *req)
{
	struct mirror *m = req->mirror;
	struct gpu_queue *queue = m->side[PLAN_DST].queue;

	if (m->drained != UINT64_MAX)
		return true;
	if (gpu_queue_mark(queue))
		return false;
	m->drained = queue->issued;
	return true;
}

/* ---- a request -----------------------------------------------------------------------
 */

static bool fills_are_done(const struct mirror *m)
{
	return !m->asked || gpu_queue_done(m->side[PLAN_SRC].queue, m->asked);
}

static bool drains_are_done(const struct mirror *m)
{
	return !m->drained || gpu_queue_done(m->side[PLAN_DST].queue, m->drained);
}

bool mirror_is_open(struct exec_req *req)
{
	struct mirror *m = req->mirror;
	const struct mirror_side *src = &m->side[PLAN_SRC];

	if (m->ending)
		return false;
	if (!m->whole || !m->in)
		return true;
	if (!m->filled) {
		m->filled = true;
		fill_ask(req, 0, src->grains);
	}
	return !m->fault[0] && fills_are_done(m);
}

/* Lets slots go on whose fills are there. */
static bool mirror_fills(struct exec_req *req)
{
	struct mirror *m = req->mirror;
	const struct gpu_queue *queue = m->side[PLAN_SRC].queue;
	const uint64_t done = atomic_load_explicit(queue->done, memory_order_acquire);

	if (done == m->seen)
		return false;
	m->seen = done;
	list_foreach_safe (pos, tmp, &m->waiting) {
		struct slot *slot = container_of(pos, struct slot, link);

		if (slot->fill > done)
			continue;
		list_remove(&slot->link);
		slot_let(slot);
	}
	if (m->late)
		drain_late(req);
	return true;
}

/* The copies of a failed request have ended, or never will. */
static void mirror_landed(struct exec_req *req)
{
	req->mirror->flies = false;
	req->ops--;
	req_let_stream(req);
	req_drained(req);
}

bool mirror_run(struct exec_req *req)
{
	struct mirror *m = req->mirror;
	bool moved = false;

	if (m->flies) {
		if (!fills_are_done(m) || !drains_are_done(m))
			return false;
		mirror_landed(req);
		return true;
	}
	if (req->state != EXEC_RUNNING)
		return false;
	if (!m->fault[0] && (!list_empty(&m->waiting) || m->late))
		moved = mirror_fills(req);
	if (m->ending && !m->late && !drain_mark(req))
		mirror_fault(req, "copying to", m->side[PLAN_DST].device);
	if (m->fault[0]) {
		req_fail(req, WEFT_ERR_DEVICE, -1, "%s: %s", exec_req_what(req),
			 m->fault);
		return true;
	}
	if (!m->ending || m->late || !fills_are_done(m) || !drains_are_done(m) ||
	    (req->call.tables && !tables_are_back(req)))
		return moved;
	req_settle(req);
	return true;
}

void mirror_end(struct exec_req *req)
{
	struct mirror *m = req->mirror;

	m->ending = true;
	if (m->whole && m->out && req->result == WEFT_SUCCESS)
		drain_bytes(req, 0, m->side[PLAN_DST].len);
	mirror_run(req);
}

void mirror_fail(struct exec_req *req)
{
	struct mirror *m = req->mirror;

	while (list_pop_front(&m->waiting))
		;
	m->late = false;
	/* Of a device that does not even take a mark nothing is waited for. */
	if (!drain_mark(req))
		m->drained = 0;
	if (fills_are_done(m) && drains_are_done(m))
		return;
	m->flies = true;
	req->ops++;
}

void mirror_check(struct exec_req *req)
{
	struct mirror *m = req->mirror;

	for (int i = 0; i < 2; i++) {
		const struct mirror_side *side = &m->side[i];
		const int rc = side->queue ? gpu_queue_sync(side->queue, 0) : 0;

		if (!rc || rc == -ETIMEDOUT)
			continue;
		if (m->flies)
			mirror_landed(req);
		else
			mirror_fault(req, "copying by", side->device);
		return;
	}
}
