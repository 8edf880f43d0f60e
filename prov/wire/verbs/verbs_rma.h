/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts and gets: an operation waits for its key, is cut where the peer's memory is in
 * pieces, and each part is a transfer of prov/dqplb, one after the other, the last
 * numbered where it is a notice. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_RMA_H
#define WEFT_WIRE_VERBS_VERBS_RMA_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/tx.h"
#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/verbs/verbs_rkey.h"

#define VERBS_OPS_BLOCK 64u
#define VERBS_OPS_MAX	8192u
#define VERBS_OP_TRIES	4u /* of a key that is refused and found again */

struct verbs_op {
	struct dqplb_xfer xfer;
	struct verbs_op *next; /* while it is free */
	struct list node;      /* of its key's waiting, or the link's ops */
	struct list turn; /* notices: in link->notices until its number is asked for */
	struct verbs_link *link;
	struct verbs_rkey *rkey; /* NULL: no bytes */
	void *cookie;
	bool put;
	bool notify;
	bool held;   /* an ordered notice: waits for those before it */
	bool placed; /* isn't done before its bytes are in the peer's memory */
	uint8_t tries;
	uint32_t refused; /* incarnation of the key that was refused */
	uint8_t local_count;
	uint8_t part; /* piece of the peer's memory that is under way */
	struct wire_notice notice;
	uint64_t addr; /* as the caller gave it */
	uint64_t len;
	uint64_t done;	 /* bytes of parts that are over */
	uint64_t sure;	 /* those that are in the peer's memory for good */
	uint64_t remote; /* address of the part's first byte */
	uint64_t lanes;	 /* bits: with xfer's those of writes that no read followed yet */
	uint64_t strayed; /* bits: those of them that are gone */
	/* Of one segment: where it was posted last. */
	bool marked;
	uint8_t mark_lane;
	uint32_t mark_incarnation;
	uint32_t mark; /* position of the send queue */
	struct {
		uintptr_t at;
		size_t len;
		const struct verbs_mr
			*mr; /* NULL: a short put, whose bytes are inlined */
	} local[VERBS_SGE];
};

/* Used last, used next. */
static inline void verbs_op_free(struct verbs_ep *ep, struct verbs_op *op)
{
	if (op->rkey)
		verbs_rkey_put(op->rkey);
	op->next = ep->ops_free;
	ep->ops_free = op;
}

/* A read follows what is under way of it, before it goes on. */
static inline bool verbs_op_followed(const struct verbs_op *op)
{
	return op->placed || (op->notify && op->done + op->xfer.len < op->len);
}

/* Likewise, and it is a single write. */
static inline bool verbs_op_marks(const struct verbs_op *op, uint32_t segment)
{
	return verbs_op_followed(op) && op->put && op->xfer.len <= segment &&
	       op->xfer.kind == DQPLB_WRITE;
}

/* Called by verbs_lanes_post: what a segment's work request says. Returns how many
 * entries of sge[VERBS_SGE] it filled. */
uint32_t verbs_op_sge(const struct verbs_op *op, uint64_t offset, uint32_t len,
		      uint32_t rail, struct ibv_sge *sge);
/* Address and key of the peer's memory for it. */
void verbs_op_remote(const struct verbs_op *op, uint64_t offset, uint32_t peer_rail,
		     uint64_t *addr, uint32_t *rkey);

/* Its transfer is over, and was taken: it ends, or goes on. */
void verbs_op_over(struct verbs_op *op);
/* Its key's fetch is over. */
void verbs_op_key(struct verbs_op *op);
/* What it wrote is in the peer's memory: it is over, or goes on. On no list. */
void verbs_op_done(struct verbs_op *op);
/* Again, from what is sure to be there. On no list. */
void verbs_op_anew(struct verbs_op *op);
/* Transfers that are over: reports them, or goes on. Returns how many. */
int verbs_ops_reap(struct verbs_link *link);
/* All end with err; no lane uses them. `tell`: reported. */
void verbs_ops_fail(struct verbs_link *link, int err, bool tell);

void verbs_ops_fini(struct verbs_ep *ep);

/* Wire functions. */
int verbs_put(struct wire_link *link, const struct wire_segment *seg);
int verbs_get(struct wire_link *link, const struct wire_segment *seg);
int verbs_put_notify(struct wire_link *link, const struct wire_segment *seg,
		     const struct wire_notice *n);

#endif
