/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers through pinned memory; see stage.h. */
#include "config.h"

#include "prov/proto/stage.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
#include "prov/mem/regcache.h"

/* Begins as a struct xfer does: what comes back from the wire is one of the two. */
struct stage_piece {
	uint8_t owner; /* XFER_STAGED */
	bool used;
	struct stage *stage;
	struct xfer *x;
	char *at;
	size_t offset; /* of the transfer, and its bytes here */
	size_t len;
	struct mem_regcache *regs; /* where the wire wants it registered, as ... */
	struct mem_reg *reg;	   /* ... this */
};

struct stage {
	bool *busy;
	char *mem; /* NULL: not needed yet */
	struct stage_piece piece[STAGE_PIECES];
};

bool iov_is_device(const struct iovec *iov, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (mem_is_device(iov[i].iov_base, iov[i].iov_len)) {
			return true;
		}
	}
	return false;
}

int stage_open(bool *busy, struct stage **out)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	if (!stage) {
		return -FI_ENOMEM;
	}
	stage->busy = busy;
	for (int i = 0; i < STAGE_PIECES; i++) {
		stage->piece[i].owner = XFER_STAGED;
		stage->piece[i].stage = stage;
	}
	*out = stage;
	return 0;
}

void stage_close(struct stage *stage)
{
	if (stage) {
		mem_pinned_free(stage->mem);
		free(stage);
	}
}

/* -FI_EAGAIN: all are in use. */
static int piece_get(struct stage *stage, struct stage_piece **out)
{
	if (!stage->mem) {
		stage->mem = mem_pinned_alloc(STAGE_PIECES * STAGE_PIECE);
		if (!stage->mem) {
			return -FI_ENOMEM;
		}
	}
	for (int i = 0; i < STAGE_PIECES; i++) {
		struct stage_piece *p = &stage->piece[i];

		if (!p->used) {
			p->used = true;
			p->at = stage->mem + (size_t)i * STAGE_PIECE;
			p->reg = NULL;
			*out = p;
			return 0;
		}
	}
	*stage->busy = true;
	return -FI_EAGAIN;
}

static void piece_put(struct stage_piece *p)
{
	if (p->reg) {
		mem_regcache_put(p->regs, p->reg);
	}
	p->reg = NULL;
	p->used = false;
}

/* Between a piece and the transfer's own memory. */
static int piece_copy(const struct stage_piece *p, bool filling)
{
	const struct xfer *x = p->x;
	size_t offset = p->offset, done = 0;
	int ret = 0;

	for (uint32_t i = 0; !ret && done < p->len && i < x->local_count; i++) {
		size_t here = x->local[i].iov_len;
		char *own = x->local[i].iov_base;

		if (offset >= here) {
			offset -= here;
			continue;
		}
		here -= offset;
		here = here < p->len - done ? here : p->len - done;
		ret = filling ? mem_pinned_copy(p->at + done, own + offset, here)
			      : mem_pinned_copy(own + offset, p->at + done, here);
		done += here;
		offset = 0;
	}
	return ret;
}

/* The next piece of x, filled where it is a put; kept where the wire has no room for it.
 */
static int piece_make(struct xfer *x, struct mem_regcache *regs, bool local, size_t len)
{
	struct stage_piece *p;
	int ret = piece_get(x->stage, &p);

	if (ret) {
		return ret;
	}
	p->x = x;
	p->offset = x->issued;
	p->len = len;
	p->regs = regs;
	ret = local ? mem_regcache_get(regs, p->at, STAGE_PIECE, &p->reg) : 0;
	if (ret) {
		p->reg = NULL;
	} else if (x->put) {
		ret = piece_copy(p, true);
	}
	if (ret) {
		piece_put(p);
		return ret;
	}
	x->waiting = p;
	return 0;
}

static size_t next_len(const struct xfer *x, const struct wire_caps *caps, size_t budget,
		       size_t most)
{
	size_t len = x->remote[x->remote_at].len - x->remote_off;

	len = len < x->total - x->issued ? len : x->total - x->issued;
	len = len < budget ? len : budget;
	len = len < most ? len : most;
	return len < caps->max_segment ? len : caps->max_segment;
}

/* What the wire has taken is over already. */
static int piece_over(struct stage_piece *p)
{
	int ret = p->x->put ? 0 : piece_copy(p, false);

	piece_put(p);
	return ret;
}

/* Gives x->waiting to the wire. 1, 0, or what it says. */
static int piece_give(struct xfer *x, struct wire_link *link)
{
	const struct wire_link_base *b = wire_link_base(link);
	const struct xfer_remote *r = &x->remote[x->remote_at];
	struct stage_piece *p = x->waiting;
	struct iovec iov = {p->at, p->len};
	void *handle = p->reg ? p->reg->handle : NULL;
	const struct wire_segment seg = {
		.local = &iov,
		.handles = &handle,
		.local_count = 1,
		.remote = {.addr = r->addr + x->remote_off, .key = r->key, .raw = x->raw},
		.len = p->len,
		.placed = x->placed,
		.cookie = p};

	return x->put ? b->ops->put(link, &seg) : b->ops->get(link, &seg);
}

/* Straight between two GPUs, where the link can. 1: done; 0: not so; else it failed. */
static int straight(struct xfer *x, struct wire_link *link, size_t *budget)
{
	const struct wire_link_base *b = wire_link_base(link);
	const struct xfer_remote *r = &x->remote[x->remote_at];
	size_t len = next_len(x, &b->caps, *budget, XFER_STEP);
	struct iovec local[XFER_IOV_MAX];
	void *handles[XFER_IOV_MAX];
	const struct wire_segment seg = {
		.local = local,
		.handles = handles,
		.local_count = xfer_slice(x, len, local, handles),
		.remote = {.addr = r->addr + x->remote_off, .key = r->key, .raw = x->raw},
		.len = len,
		.placed = x->placed,
		.cookie = x};
	int ret = b->ops->move_device(link, &seg, x->put);

	if (ret == -FI_EPERM) {
		return 0;
	}
	if (ret > 0) {
		*budget -= len;
		xfer_advance(x, len);
	}
	return ret;
}

/* One segment. 1: started; -FI_EAGAIN: not now; else it failed. */
static int step(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
		size_t *budget)
{
	const struct wire_caps *caps = &wire_link_base(link)->caps;
	struct stage_piece *p;
	int ret = 0;

	xfer_skip_used(x);
	if (!x->waiting && x->inflight == 0 && wire_link_base(link)->ops->move_device) {
		ret = straight(x, link, budget);
		if (ret) {
			return ret;
		}
	}
	if (!x->waiting) {
		ret = piece_make(x, regs, caps->local,
				 next_len(x, caps, *budget, STAGE_PIECE));
	}
	if (ret) {
		return ret;
	}
	p = x->waiting;
	ret = piece_give(x, link);
	if (ret == -FI_EAGAIN) {
		return ret;
	}
	x->waiting = NULL;
	if (ret < 0) {
		piece_put(p);
		return ret;
	}
	*budget -= p->len < *budget ? p->len : *budget;
	xfer_advance(x, p->len);
	if (ret == 0) {
		x->inflight++;
		return 1;
	}
	ret = piece_over(p);
	return ret ? ret : 1;
}

int stage_run(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
	      size_t budget)
{
	int started = 0;

	while (x->issued < x->total && budget > 0 && !x->err) {
		int ret = step(x, link, regs, &budget);

		if (ret == -FI_EAGAIN) {
			break;
		}
		if (ret < 0) {
			x->err = ret;
			break;
		}
		started++;
	}
	if (x->err) {
		stage_let_go(x);
	}
	return started;
}

struct xfer *stage_done(void *cookie, int *err)
{
	struct stage_piece *p = cookie;
	struct xfer *x = p->x;

	if (*err || x->err) {
		piece_put(p);
	} else {
		*err = piece_over(p);
	}
	return x;
}

void stage_let_go(struct xfer *x)
{
	if (x->waiting) {
		piece_put(x->waiting);
		x->waiting = NULL;
	}
}
