/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local steps: COPY and REDUCE, and packing for staging. One step of a request is worked
 * on at a time, in slices, so that the network is polled in between.
 */
#include "config.h"

#include <string.h>

#include "coll/exec/engine.h"
#include "coll/exec/reduce.h"
#include "coll/exec/seen.h"

/* Work between two looks at the network: some 20 us of it. */
#define LOCAL_SLICE_BYTES ((uint64_t)256 << 10)

/* Up to this a step costs less than what postponing it does. */
#define LOCAL_SHORT_BYTES 4096

static void local_begin(struct exec_req *req, struct slot *slot)
{
	struct local *local = &req->local;
	const struct plan_range *range[3] = {&slot->inst.dst, &slot->inst.src,
					     &slot->inst.src2};
	const int count = slot->inst.kind == PLAN_REDUCE ? 3 : 2;

	local->slot = slot;
	for (int i = 0; i < count; i++) {
		local->whole[i] = slot_is_whole(slot, (enum slot_range)i);
		local->at[i] = slot->at[i];
		local->left[i] = local->whole[i] ? slot->bytes / req->elem_size : 0;
		if (!local->whole[i])
			plan_piece_begin(&local->it[i], req->call.plan, &req->bind,
					 range[i]);
	}
}

/* Elements that lie together in every operand now, at most max; 0 at the end. */
static uint64_t local_step(struct local *local, int count, uint64_t max)
{
	uint64_t step = max;

	for (int i = 0; i < count; i++) {
		if (local->left[i] == 0 &&
		    (local->whole[i] ||
		     !plan_piece_next(&local->it[i], &local->at[i], &local->left[i])))
			return 0;
		if (local->left[i] < step)
			step = local->left[i];
	}
	return step;
}

/* Does so many elements of the step, from the offsets on. */
static void local_apply(const struct slot *slot, const uint64_t at[SLOT_RANGES],
			uint64_t elements)
{
	struct exec_req *req = slot->req;
	const struct plan_instance *inst = &slot->inst;
	const uint64_t divisor = req->call.plan->divisor;
	const bool scale = inst->flags & PLAN_SCALE;
	const size_t size = req->elem_size;
	char *dst = req->buf[inst->dst.buf] + at[SLOT_DST] * size;
	const char *src = req->buf[inst->src.buf] + at[SLOT_SRC] * size;

	if (inst->kind == PLAN_REDUCE) {
		const char *src2 = req->buf[inst->src2.buf] + at[SLOT_SRC2] * size;

		if (req->call.apply)
			req->call.apply(req->call.apply_arg, req->call.type, dst, src,
					src2, elements);
		else
			reduce_apply(req->call.type, req->call.op, dst, src, src2,
				     elements);
		if (scale)
			reduce_scale(req->call.type, dst, dst, elements, divisor);
		req->x->stats.reduced_bytes += elements * size;
		return;
	}
	if (scale)
		reduce_scale(req->call.type, dst, src, elements, divisor);
	else if (dst != src)
		memmove(dst, src, elements * size);
	req->x->stats.plan_copy_bytes += elements * size;
}

/* Works on the current step; true when it is done. */
static bool local_slice(struct exec_req *req, uint64_t *budget)
{
	struct local *local = &req->local;
	const int count = local->slot->inst.kind == PLAN_REDUCE ? 3 : 2;

	while (*budget) {
		uint64_t step = local_step(local, count, *budget);

		if (!step)
			return true;
		local_apply(local->slot, local->at, step);
		*budget -= step;
		for (int i = 0; i < count; i++) {
			local->at[i] += step;
			local->left[i] -= step;
		}
	}
	return false;
}

bool local_is_short(const struct slot *slot)
{
	const uint8_t two = 1u << SLOT_DST | 1u << SLOT_SRC;
	const uint8_t all = slot->inst.kind == PLAN_REDUCE ? two | 1u << SLOT_SRC2 : two;

	return slot->bytes && slot->bytes <= LOCAL_SHORT_BYTES && slot->whole == all;
}

void local_do_short(struct slot *slot)
{
	local_apply(slot, slot->at, slot->bytes / slot->req->elem_size);
	slot_done(slot);
}

bool local_run(struct exec_req *req)
{
	uint64_t budget = LOCAL_SLICE_BYTES / req->elem_size;
	bool moved = false;

	while (budget) {
		struct slot *slot = req->local.slot;

		if (!slot) {
			struct list *node = list_pop_front(&req->local_queue);

			if (!node)
				break;
			slot = container_of(node, struct slot, link);
			local_begin(req, slot);
		}
		if (!moved)
			seen_stage(req, TRACE_STAGE_REDUCE);
		moved = true;
		if (!local_slice(req, &budget)) {
			req->awake = true; /* there is more */
			break;
		}
		req->local.slot = NULL;
		slot_done(slot);
	}
	if (moved)
		seen_stage_end(req);
	return moved;
}

void local_pack(struct slot *slot, const struct plan_range *range, char *packed,
		bool unpack)
{
	struct exec_req *req = slot->req;
	struct plan_piece_iter it;
	uint64_t offset, length;

	plan_piece_begin(&it, req->call.plan, &req->bind, range);
	while (plan_piece_next(&it, &offset, &length)) {
		char *piece = req->buf[range->buf] + offset * req->elem_size;
		const size_t bytes = length * req->elem_size;

		memcpy(unpack ? piece : packed, unpack ? packed : piece, bytes);
		packed += bytes;
	}
	req->x->stats.staged_bytes += slot->bytes;
}
