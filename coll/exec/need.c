/* SPDX-License-Identifier: BSD-2-Clause */
/* What steps need of the buffers of their request: registrations, and where ranges lie.
 */
#include "config.h"

#include "coll/exec/engine.h"
#include "coll/exec/seen.h"

/* Elements of a buffer. */
static uint64_t req_length(const struct exec_req *req, uint8_t buf)
{
	if (!req->bind.disp || buf == PLAN_SCRATCH)
		return req->call.plan->buf_len[buf];
	return buf == PLAN_SRC ? req->call.src_len : req->call.dst_len;
}

int req_mr(struct exec_req *req, uint8_t buf, bool remote, struct mem_entry **entry)
{
	if (!req->mr[buf]) {
		const size_t len = req_length(req, buf) * req->elem_size;
		int rc;

		seen_stage(req, TRACE_STAGE_REGISTER);
		rc = mem_get(&req->x->mem, req->buf[buf], len, remote, &req->mr[buf]);
		seen_stage_end(req);
		if (rc)
			return rc;
	}
	*entry = req->mr[buf];
	return 0;
}

int req_desc(struct exec_req *req, uint8_t buf, void **desc)
{
	struct mem_entry *entry;
	int rc;

	*desc = NULL;
	if (!req->x->net.mr_local)
		return 0;
	rc = req_mr(req, buf, buf != PLAN_SRC && req->x->caps.put, &entry);
	if (!rc)
		*desc = fi_mr_desc(entry->mr);
	return rc;
}

uint32_t slot_pieces(const struct slot *slot, enum slot_range which, struct iovec *iov,
		     uint32_t max)
{
	const struct exec_req *req = slot->req;
	const struct plan_range *range =
		which == SLOT_DST ? &slot->inst.dst : &slot->inst.src;
	struct plan_piece_iter it;
	uint64_t offset, length;
	uint32_t count = 0;

	if (!slot->bytes)
		return 0;
	if (slot_is_whole(slot, which)) {
		iov[0].iov_base = slot_place(slot, which, range->buf);
		iov[0].iov_len = slot->bytes;
		return 1;
	}
	plan_piece_begin(&it, req->call.plan, &req->bind, range);
	while (plan_piece_next(&it, &offset, &length)) {
		if (count == max)
			return max + 1;
		iov[count].iov_base = req->buf[range->buf] + offset * req->elem_size;
		iov[count].iov_len = length * req->elem_size;
		count++;
	}
	return count;
}
