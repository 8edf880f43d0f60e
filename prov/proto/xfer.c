/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers in segments; see xfer.h. */
#include "config.h"

#include "prov/proto/xfer.h"

#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
#include "prov/mem/regcache.h"
#include "prov/proto/stage.h"

/* Steps over pieces that are used up (or were empty). */
void xfer_skip_used(struct xfer *x)
{
	while (x->local_at < x->local_count &&
	       x->local_off == x->local[x->local_at].iov_len) {
		x->local_at++;
		x->local_off = 0;
	}
	while (x->remote_at < x->remote_count &&
	       x->remote_off == x->remote[x->remote_at].len) {
		x->remote_at++;
		x->remote_off = 0;
	}
}

/* ---- registered memory, where the wire needs it: from the first segment until none is
 * under way */

void xfer_let_go(struct xfer *x)
{
	if (!x->regs) {
		return;
	}
	for (uint32_t i = 0; i < x->local_count; i++) {
		if (x->reg[i]) {
			mem_regcache_put(x->regs, x->reg[i]);
		}
		x->reg[i] = NULL;
	}
	x->regs = NULL;
}

int xfer_hold(struct xfer *x, struct mem_regcache *regs)
{
	if (x->regs) {
		return 0;
	}
	x->regs = regs;
	for (uint32_t i = 0; i < x->local_count; i++) {
		x->reg[i] = NULL;
	}
	for (uint32_t i = 0; i < x->local_count; i++) {
		int rc = x->local[i].iov_len
				 ? mem_regcache_get(x->regs, x->local[i].iov_base,
						    x->local[i].iov_len, &x->reg[i])
				 : 0;

		if (rc) {
			x->reg[i] = NULL;
			xfer_let_go(x);
			return rc;
		}
	}
	return 0;
}

/* Whether none of it need be registered. */
static bool is_inlined(const struct xfer *x, const struct wire_link_base *b)
{
	return x->put && x->total <= b->caps.inlined;
}

/* ---- segments */

/* The local pieces of the next `len` bytes. Does not move the cursor. */
uint32_t xfer_slice(const struct xfer *x, size_t len, struct iovec *out, void **handles)
{
	uint32_t n = 0;
	size_t off = x->local_off;

	for (uint32_t i = x->local_at; len > 0 && i < x->local_count; i++) {
		size_t here = x->local[i].iov_len - off;

		if (here > len) {
			here = len;
		}
		if (here > 0) {
			out[n].iov_base = (char *)x->local[i].iov_base + off;
			out[n].iov_len = here;
			handles[n] = x->regs ? x->reg[i]->handle : NULL;
			n++;
		}
		len -= here;
		off = 0;
	}
	return n;
}

void xfer_advance(struct xfer *x, size_t len)
{
	x->issued += len;
	x->remote_off += len;
	while (len > 0) {
		size_t here = x->local[x->local_at].iov_len - x->local_off;

		if (here > len) {
			here = len;
		}
		x->local_off += here;
		len -= here;
		if (x->local_off == x->local[x->local_at].iov_len) {
			x->local_at++;
			x->local_off = 0;
		}
	}
}

void xfer_seek(struct xfer *x, size_t offset)
{
	uint64_t left = offset;

	x->local_at = 0;
	x->remote_at = 0;
	x->issued = 0;
	x->inflight = 0;
	x->err = 0;
	x->unheld = false;
	while (x->remote_at < x->remote_count && left >= x->remote[x->remote_at].len) {
		left -= x->remote[x->remote_at].len;
		x->remote_at++;
	}
	x->remote_off = left;
	left = offset;
	while (x->local_at < x->local_count && left >= x->local[x->local_at].iov_len) {
		left -= x->local[x->local_at].iov_len;
		x->local_at++;
	}
	x->local_off = left;
	x->issued = offset;
}

int xfer_run(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
	     size_t budget)
{
	const struct wire_link_base *b = wire_link_base(link);
	int started = 0;

	if (__builtin_expect(x->stage != NULL, 0)) {
		return stage_run(x, link, regs, budget);
	}
	while (x->issued < x->total && budget > 0 && !x->err &&
	       x->inflight < XFER_INFLIGHT_MAX) {
		struct iovec local[XFER_IOV_MAX];
		void *handles[XFER_IOV_MAX];
		struct wire_segment seg = {
			.local = local, .handles = handles, .cookie = x};
		const struct xfer_remote *r;
		size_t len;
		int ret;

		if (__builtin_expect(b->caps.local, 0) && !is_inlined(x, b) &&
		    (x->err = xfer_hold(x, regs))) {
			x->unheld = true;
			break;
		}
		xfer_skip_used(x);
		r = &x->remote[x->remote_at];
		len = r->len - x->remote_off;
		len = len < x->total - x->issued ? len : x->total - x->issued;
		len = len < budget ? len : budget;
		len = len < XFER_STEP ? len : XFER_STEP;
		len = len < b->caps.max_segment ? len : b->caps.max_segment;
		seg.len = len;
		seg.local_count = xfer_slice(x, len, local, handles);
		seg.remote.addr = r->addr + x->remote_off;
		seg.remote.key = r->key;
		seg.remote.raw = x->raw;
		seg.placed = x->placed;
		ret = x->put ? b->ops->put(link, &seg) : b->ops->get(link, &seg);
		if (ret == -FI_EAGAIN) {
			break;
		}
		if (ret < 0) {
			x->err = ret;
			break;
		}
		x->inflight += ret == 0;
		xfer_advance(x, len);
		budget -= len;
		started++;
	}
	if (__builtin_expect(x->regs != NULL, 0) && x->inflight == 0) {
		xfer_let_go(x);
	}
	return started;
}

bool xfer_notify(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
		 const struct wire_notice *n)
{
	const struct wire_link_base *b = wire_link_base(link);
	struct iovec local[XFER_IOV_MAX];
	void *handles[XFER_IOV_MAX];
	struct wire_segment seg = {
		.local = local,
		.handles = handles,
		.len = x->total,
		.remote = {.addr = x->remote[0].addr, .key = x->remote[0].key},
		.cookie = x};
	int ret;

	if (b->caps.local && !is_inlined(x, b) && (x->err = xfer_hold(x, regs))) {
		return true;
	}
	seg.local_count = xfer_slice(x, x->total, local, handles);
	ret = b->ops->put_notify(link, &seg, n);
	if (ret == -FI_EAGAIN) {
		xfer_let_go(x);
		return false;
	}
	if (ret < 0) {
		x->err = ret;
	} else {
		x->inflight = ret == 0;
		x->issued = x->total;
	}
	if (x->inflight == 0) {
		xfer_let_go(x);
	}
	return true;
}

void xfer_segment_done(struct xfer *x, int err)
{
	x->inflight--;
	if (err && !x->err) {
		x->err = err;
	}
	if (__builtin_expect(x->regs != NULL, 0) && x->inflight == 0) {
		xfer_let_go(x);
	}
}

int iov_scatter(const struct iovec *iov, uint32_t count, size_t offset, const void *from,
		size_t len)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && len > 0 && i < count; i++) {
		size_t here;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		here = iov[i].iov_len - offset;
		here = here < len ? here : len;
		ret = mem_copy((char *)iov[i].iov_base + offset, from, here);
		from = (const char *)from + here;
		len -= here;
		offset = 0;
	}
	return ret;
}

int iov_gather(const struct iovec *iov, uint32_t count, size_t offset, void *to,
	       size_t len)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && len > 0 && i < count; i++) {
		size_t here;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		here = iov[i].iov_len - offset;
		here = here < len ? here : len;
		ret = mem_copy(to, (const char *)iov[i].iov_base + offset, here);
		to = (char *)to + here;
		len -= here;
		offset = 0;
	}
	return ret;
}
