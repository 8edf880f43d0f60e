/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transfer: one put or get between local pieces and remote pieces, cut into segments
 * and driven a budget at a time, so that a long one does not hold up others. RMA
 * operations and pulled messages embed one.
 */
#ifndef WEFT_PROTO_XFER_H
#define WEFT_PROTO_XFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "prov/wire/wire.h"

#define XFER_IOV_MAX 4
/* Bytes of one segment at most, and of one transfer per progress pass. */
#define XFER_STEP ((size_t)1 << 20)
/* Segments under way at once. */
#define XFER_INFLIGHT_MAX 32

/* What is at the other end of a wire's cookie: a transfer, that one of two has, or a
 * piece of stage.h, which begins with the same byte. */
enum xfer_owner { XFER_TX, XFER_ARRIVAL, XFER_STAGED };

struct stage;
struct stage_piece;

struct xfer_remote {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

struct xfer {
	uint8_t owner; /* enum xfer_owner: what embeds it */
	bool put;
	bool raw;
	bool placed; /* a put: as wire_segment.placed */
	uint8_t local_count;
	uint8_t remote_count;
	uint8_t local_at; /* piece that the next segment starts in */
	uint8_t remote_at;
	size_t local_off; /* within that piece */
	uint64_t remote_off;
	size_t total;
	size_t issued;
	uint32_t inflight;
	int err; /* 0 or the first -fi_errno */
	struct iovec local[XFER_IOV_MAX];
	struct xfer_remote remote[XFER_IOV_MAX];
	bool unheld;			   /* err says why memory of ours can't be
					    * registered */
	struct mem_regcache *regs;	   /* NULL: nothing is registered for it */
	struct mem_reg *reg[XFER_IOV_MAX]; /* of each local piece, while segments are
					    * under way; NULL: an empty one */
	uint32_t lends;			   /* local pieces that are lent ... */
	uint64_t lent[XFER_IOV_MAX];	   /* ... and their names */
	struct stage *stage;		   /* NULL: the wire moves these bytes itself */
	struct stage_piece *waiting;	   /* of it: what the wire had no room for */
};

/* Everything of `total` bytes was done, or it failed and nothing is under way. */
static inline bool xfer_is_over(const struct xfer *x)
{
	return x->inflight == 0 && (x->err || x->issued == x->total);
}

static inline bool xfer_is_issued(const struct xfer *x)
{
	return x->err || x->issued == x->total;
}

/* Nothing is under way; the next segment begins at `offset`, which is at most total. */
void xfer_seek(struct xfer *x, size_t offset);
/* Starts segments worth at most `budget` bytes; the cookie is x. Returns how many.
 * regs: the endpoint's, where links need it (caps.local). */
int xfer_run(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
	     size_t budget);
/* All of a put to one remote piece at once, of which nothing has begun, with what its
 * target hears of it. False: no room now; else it is under way, or failed (x->err). */
bool xfer_notify(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
		 const struct wire_notice *n);
/* A segment that was under way is over. */
void xfer_segment_done(struct xfer *x, int err);

/* Registers the local pieces, if they aren't. 0, or what the cache says; then none is.
 * xfer_run does so by itself. Given back when no segment is under way any more, or by
 * xfer_let_go, which may come when nothing is held. */
int xfer_hold(struct xfer *x, struct mem_regcache *regs);
void xfer_let_go(struct xfer *x);

/* For stage.c: steps over pieces that are used up; `len` bytes are under way. */
void xfer_skip_used(struct xfer *x);
void xfer_advance(struct xfer *x, size_t len);
/* The local pieces of the next len bytes, at most XFER_IOV_MAX; how many. */
uint32_t xfer_slice(const struct xfer *x, size_t len, struct iovec *out, void **handles);

/* Copies between memory and pieces, from `offset` of the pieces on. The caller has
 * checked that it fits. Pieces may be a GPU's: errors are those of mem_copy. */
int iov_scatter(const struct iovec *iov, uint32_t count, size_t offset, const void *from,
		size_t len);
int iov_gather(const struct iovec *iov, uint32_t count, size_t offset, void *to,
	       size_t len);

#endif
